// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "sm/subnet_manager.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <spdlog/spdlog.h>

#include "sm/discovery.hpp"
#include "sm/routing.hpp"

namespace weft::sm
{

namespace
{

using namespace std::chrono_literals;
using ib::MadMethod;
using ib::SmState;

constexpr auto kRetryDelayFirst = 500ms;
constexpr auto kRetryDelayMax = 30s;
/* Discovery starts after this many polls that a manager answers without being master. */
constexpr unsigned kPollsWithoutMasterMax = 3;
/* Minimum interval between checks of managers that have queried this one. */
constexpr auto kCuriosityInterval = 2s;

Loop make_loop(Reactor *reactor)
{
	if (reactor)
		return Loop("subnet manager", *reactor);
	return Loop("subnet manager");
}

Config with_mkey(Config config, const Loop &loop)
{
	if (config.mkey == 0)
		config.mkey = random_mkey(loop.environment());
	return config;
}

const char *state_name(SmState state)
{
	switch (state) {
	case SmState::not_active:
		return "not active";
	case SmState::discovering:
		return "discovering";
	case SmState::standby:
		return "standby";
	case SmState::master:
		return "master";
	}
	return "?";
}

} // namespace

std::uint64_t random_mkey(Environment &environment)
{
	std::uint64_t key = 0;
	while (key == 0)
		key = environment.random();
	return key;
}

SubnetManager::SubnetManager(fabric::Port &port, Config config, Reactor *reactor)
    : loop_(make_loop(reactor)), config_(with_mkey(std::move(config), loop_)),
      client_(loop_, port, config_,
	      {.requests = {.begin = [this](fabric::AddressedMad &&mad,
					    Work &work) { return receive(std::move(mad), work); },
			    .finish = [this](const Job &job,
					     Work &work) { sa_.finish(job, work); }},
	       .serve = [this](Work &work) { serve(work); },
	       .busy = [this] { return busy(); },
	       .arrived = [this] { work(); }}),
      configurator_(client_, config_), sa_(client_, config_, configurator_),
      lid_file_(config_.lids), timer_(std::in_place, loop_, [this] { work(); })
{
	lids_.restore(lid_file_.load());
	lids_.plan(config_.expected, config_.lmc);
	loop_.post([this] {
		turn_ = Turn::waiting;
		work();
	});
}

SubnetManager::~SubnetManager()
{
	client_.stop();
	/*
	 * The current work stops early. This task may run within it, so repeat until it has ended.
	 */
	for (bool ended = false; !ended;)
		loop_.run([&] {
			ended = turn_ != Turn::working;
			if (!ended)
				return;
			timer_.reset();
			client_.close();
		});
}

void SubnetManager::request_sweep()
{
	sweep_requested_.store(true);
	client_.wake();
}

void SubnetManager::request_renumbering()
{
	renumbering_requested_.store(true);
	request_sweep();
}

void SubnetManager::set_enabled(bool enabled)
{
	enabled_.store(enabled);
	client_.wake();
}

SubnetManager::Status SubnetManager::status() const
{
	const MutexLock lock(status_mutex_);
	Status status = status_;
	status.served = served_.load(std::memory_order_relaxed);
	status.served_at_once = served_at_once_.load(std::memory_order_relaxed);
	return status;
}

bool SubnetManager::wait_for(const std::function<bool(const Status &)> &condition,
			     std::chrono::milliseconds timeout)
{
	if (loop_.in_loop())
		return loop_.run_until([&] { return condition(status()); }, timeout);
	MutexLock lock(status_mutex_);
	return status_changed_.wait_for(
		lock, timeout, [&]() WEFT_REQUIRES(status_mutex_) { return condition(status_); });
}

void SubnetManager::become(SmState state)
{
	if (state_ != state)
		spdlog::info("sm: {} is {}", config_.name, state_name(state));
	/*
	 * Discard the results of earlier sweeps, because they may be outdated when this manager
	 * becomes master again.
	 */
	if (state_ != state && state != SmState::master) {
		configurator_.forget();
		sa_.publish(nullptr);
	}
	state_ = state;
	const MutexLock lock(status_mutex_);
	status_.state = state;
	status_changed_.notify_all();
}

void SubnetManager::publish(std::shared_ptr<const Subnet> subnet, bool complete)
{
	subnet_ = subnet;
	sa_.publish(subnet);
	const MutexLock lock(status_mutex_);
	status_.subnet = std::move(subnet);
	status_.sweeps++;
	status_.complete = complete;
	status_.requests = client_.smps();
	status_changed_.notify_all();
}

void SubnetManager::work()
{
	if (turn_ == Turn::not_begun || client_.stopped())
		return;
	/* perform() is running and handles MADs that have arrived. */
	if (turn_ == Turn::working)
		return;
	turn_ = Turn::working;
	client_.take_answers();
	/* Work in small slices, so that a request that arrives meanwhile may be served first. */
	Work slice(Work::kSlice);
	while (slice.left() && busy() && !client_.stopped()) {
		Work part(Work::kQuantum);
		serve(part);
		slice.charge(part.done());
	}
	if (slice.done() > served_at_once_.load(std::memory_order_relaxed))
		served_at_once_.store(slice.done(), std::memory_order_relaxed);
	const std::int64_t served = served_.load(std::memory_order_relaxed);
	step();
	turn_ = Turn::waiting;
	/*
	 * The rest runs after other work of the loop's reactor. So do the effects of traps and
	 * joins that were handled during a sweep.
	 */
	if (busy() || served_.load(std::memory_order_relaxed) != served ||
	    state_ == SmState::discovering)
		client_.wake();
	else
		wait_for_work();
}

void SubnetManager::serve(Work &work)
{
	const std::int64_t before = work.done();
	client_.requests().serve_fresh(work);
	requests_first_ = !requests_first_;
	if (requests_first_)
		client_.requests().serve(work);
	sa_.run(loop_.now(), work);
	if (!requests_first_)
		client_.requests().serve(work);
	served_.fetch_add(work.done() - before, std::memory_order_relaxed);
}

bool SubnetManager::busy()
{
	return client_.requests().waiting() || sa_.due() <= loop_.now();
}

void SubnetManager::wait_for_work()
{
	auto until = sa_.due();
	if (state_ == SmState::master)
		until = std::min({until, next_light_sweep_, next_retry_});
	else if (state_ == SmState::standby)
		until = std::min(until, next_poll_);
	timer_->arm_at(until);
}

void SubnetManager::step()
{
	auto now = loop_.now();
	if (!enabled_.load()) {
		disabled_by_order_ = false;
		if (state_ != SmState::not_active) {
			client_.mads().set_is_sm(false);
			become(SmState::not_active);
		}
		return;
	}
	if (state_ == SmState::not_active) {
		/*
		 * After DISABLE from another manager, wait for its STANDBY, or for set_enabled().
		 */
		if (disabled_by_order_)
			return;
		client_.mads().set_is_sm(true);
		become(SmState::discovering);
	}

	/* The link of the manager's own port has come up. */
	ib::PortState own = client_.mads().port_info().state();
	if (own == ib::PortState::init && own_state_ != ib::PortState::init)
		sweep_requested_.store(true);
	own_state_ = own;

	switch (state_) {
	case SmState::discovering:
		sweep(Extent::everything);
		break;
	case SmState::master:
		if (next_retry_ <= now || sweep_requested_.load())
			sweep(Extent::everything);
		else if (link_changed_)
			sweep(Extent::changes);
		else if (next_light_sweep_ <= now)
			light_sweep();
		if (state_ == SmState::master)
			flush_multicast();
		break;
	case SmState::standby:
		if (next_poll_ <= now)
			poll_master();
		break;
	case SmState::not_active:
		break;
	}
}

Subnet SubnetManager::discover_subnet(Extent extent)
{
	if (extent == Extent::changes && subnet_ && well_known_)
		if (auto subnet = discover_changes(client_, *subnet_))
			return std::move(*subnet);
	return discover(client_);
}

void SubnetManager::sweep(Extent extent)
{
	if (extent == Extent::everything)
		sweep_requested_.store(false);
	link_changed_ = false;
	next_retry_ = Clock::time_point::max();
	auto begin = loop_.now();
	std::uint64_t timeouts = client_.timeouts();
	auto subnet = std::make_shared<Subnet>(discover_subnet(extent));
	if (client_.stopped())
		return;
	if (meet_others(*subnet) == Verdict::stand_by) {
		next_poll_ = loop_.now() + config_.poll_interval;
		polls_without_master_ = 0;
		become(SmState::standby);
		return;
	}
	if (renumbering_requested_.exchange(false))
		lids_.renumber();
	lids_.assign(*subnet, config_.lmc);
	route(*subnet);
	PortRef own = subnet->find_port(config_.guid + 1);
	if (!own || subnet->port(own).lid == 0) {
		spdlog::error("sm: no answer from our own port");
		next_retry_ = loop_.now() + kRetryDelayFirst;
		become(SmState::master);
		return;
	}
	become(SmState::master);
	lid_file_.store(lids_.entries());
	bool complete = configurator_.configure(*subnet, subnet->port(own).lid,
						sa_.groups().all_routes(*subnet));
	complete = complete && client_.timeouts() == timeouts;
	well_known_ = complete;
	act_count_++;
	last_sweep_ = loop_.now();
	next_light_sweep_ = last_sweep_ + config_.light_sweep_interval;
	if (complete) {
		retry_delay_ = 0ms;
	} else {
		retry_delay_ = std::min<std::chrono::milliseconds>(
			std::max<std::chrono::milliseconds>(retry_delay_ * 2, kRetryDelayFirst),
			kRetryDelayMax);
		next_retry_ = last_sweep_ + retry_delay_;
	}
	look_at_rival_again();
	auto took = std::chrono::duration_cast<std::chrono::microseconds>(last_sweep_ - begin);
	/* A guest can take its link down and up at any rate, so the log lines are limited. */
	if (const auto taken = sweep_log_.take(last_sweep_); taken.allowed)
		spdlog::info("sm: sweep of {}{} nodes, {} switches, {} end ports in {} us{}{}",
			     extent == Extent::changes ? "changes among " : "",
			     subnet->nodes.size(), subnet->switches.size(),
			     subnet->end_ports.size(), took.count(), complete ? "" : ", incomplete",
			     withheld_text(taken.withheld));
	publish(std::move(subnet), complete);
}

/*
 * Managers that have discovered the subnet at the same time are both master, and no trap is sent
 * when they are. The one that the other outranks notices this in its next sweep.
 */
void SubnetManager::look_at_rival_again()
{
	if (!rival_) {
		rival_delay_ = 0ms;
		return;
	}
	rival_delay_ = std::clamp<std::chrono::milliseconds>(rival_delay_ * 2, kCuriosityInterval,
							     kRetryDelayMax);
	next_retry_ = std::min(next_retry_, last_sweep_ + rival_delay_);
}

void SubnetManager::light_sweep()
{
	next_light_sweep_ = loop_.now() + config_.light_sweep_interval;
	if (!subnet_)
		return;
	std::vector<SmpRequest> batch;
	for (int index : subnet_->switches)
		batch.emplace_back(subnet_->nodes[static_cast<std::size_t>(index)].path,
				   MadMethod::get, ib::attr_switch_info);
	client_.perform(batch);
	for (const SmpRequest &request : batch) {
		if (!request.ok())
			sweep_requested_.store(true);
		else if (request.answer<ib::SwitchInfo>().port_state_change())
			link_changed_ = true;
	}
}

void SubnetManager::flush_multicast()
{
	if (!subnet_)
		return;
	/*
	 * While the tables are written, other requests are served. Their answers wait for the next
	 * tables.
	 */
	const auto answers = sa_.take_waiting();
	if (sa_.groups().changed()) {
		auto changes = sa_.groups().take_changes(*subnet_);
		if (!configurator_.write_multicast(*subnet_, changes))
			next_retry_ = std::min(next_retry_, loop_.now() + kRetryDelayFirst);
	}
	sa_.release(answers);
}

bool SubnetManager::outranks(const ib::SmInfo &other) const
{
	/*
	 * IBA 14.4.1.2: the manager with the higher priority wins, and at equal priority the one
	 * with the lower GUID.
	 */
	if (other.priority() != config_.priority)
		return config_.priority > other.priority();
	return config_.guid + 1 < other.guid;
}

SubnetManager::Verdict SubnetManager::meet_others(const Subnet &subnet)
{
	std::vector<SmpRequest> batch;
	for (PortRef ref : subnet.end_ports) {
		const PortData &port = subnet.port(ref);
		if ((port.info.capability_mask & ib::port_cap_is_sm) != 0 &&
		    !config_.untrusted.contains(port.guid) && port.guid != config_.guid + 1)
			batch.emplace_back(subnet.route(ref), MadMethod::get, ib::attr_sm_info);
	}
	client_.perform(batch);
	rival_ = false;
	for (SmpRequest &request : batch) {
		if (!request.ok())
			continue;
		const auto other = request.answer<ib::SmInfo>();
		rival_ |= other.state() == SmState::discovering || other.state() == SmState::master;
		bool we_manage = state_ == SmState::master;
		if (handover_from_ != 0 && other.guid == handover_from_) {
			/* HANDOVER is acknowledged when this manager is active (IBA 14.4.1.1). */
			handover_from_ = 0;
			SmpRequest acknowledge(request.path, MadMethod::set, ib::attr_sm_info,
					       ib::sm_info_acknowledge);
			acknowledge.with(sm_info());
			client_.perform(acknowledge);
			continue;
		}
		if (other.state() == SmState::master && (!we_manage || !outranks(other))) {
			spdlog::info("sm: GUID {:#018x} with priority {} is master",
				     other.guid.value(), other.priority());
			master_path_ = request.path;
			if (we_manage) {
				SmpRequest handover(request.path, MadMethod::set, ib::attr_sm_info,
						    ib::sm_info_handover);
				handover.with(sm_info());
				client_.perform(handover);
			}
			return Verdict::stand_by;
		}
		if (other.state() == SmState::standby && we_manage && !outranks(other)) {
			spdlog::info("sm: handing over to GUID {:#018x} with priority {}",
				     other.guid.value(), other.priority());
			SmpRequest handover(request.path, MadMethod::set, ib::attr_sm_info,
					    ib::sm_info_handover);
			handover.with(sm_info());
			client_.perform(handover);
			if (!handover.ok())
				continue;
			master_path_ = request.path;
			return Verdict::stand_by;
		}
	}
	return Verdict::manage;
}

void SubnetManager::poll_master()
{
	next_poll_ = loop_.now() + config_.poll_interval;
	SmpRequest request(master_path_, MadMethod::get, ib::attr_sm_info);
	client_.perform(request);
	if (request.ok() && request.answer<ib::SmInfo>().state() == SmState::master) {
		polls_without_master_ = 0;
		return;
	}
	/* After a handover, a manager that responds may need some time until it is master. */
	if (request.ok() && ++polls_without_master_ < kPollsWithoutMasterMax)
		return;
	/* A HANDOVER may have arrived meanwhile. */
	if (state_ == SmState::standby) {
		spdlog::info("sm: the master does not respond any more");
		become(SmState::discovering);
	}
}

ib::SmInfo SubnetManager::sm_info() const
{
	ib::SmInfo info{};
	info.guid = config_.guid + 1;
	/*
	 * IBA 14.4.7: the key is only for managers that have sent their own. OpenSM sends it to all
	 * managers, and takes the subnet from a master that does not send it.
	 */
	info.sm_key = config_.sm_key;
	info.act_count = act_count_;
	info.priority_state =
		static_cast<std::uint8_t>(config_.priority << 4 | static_cast<unsigned>(state_));
	return info;
}

std::optional<Job> SubnetManager::receive(fabric::AddressedMad &&mad, Work &work)
{
	const ib::MadHeader &header = mad.mad.header;
	if (header.is_smp()) {
		if (header.base_version != ib::mad_base_version || header.class_version != 1)
			return std::nullopt;
		work.charge(cost::kMadSent);
		if (header.is_method(MadMethod::trap))
			receive_trap(mad);
		else if (header.attr_id == ib::attr_sm_info && !header.is_response())
			receive_sm_info(std::move(mad));
	} else if (header.cls() == ib::MgmtClass::subn_adm) {
		return sa_.handle(std::move(mad), work);
	}
	return std::nullopt;
}

void SubnetManager::receive_trap(const fabric::AddressedMad &mad)
{
	if (state_ != SmState::master || mad.mad.header.attr_id != ib::attr_notice ||
	    mad.mad.header.cls() != ib::MgmtClass::subn_lid_routed)
		return;
	const auto &smp = reinterpret_cast<const ib::Smp &>(mad.mad);
	switch (trap_budget_.take(mad.address.slid, loop_.now())) {
	case TrapBudget::Verdict::handle:
		break;
	case TrapBudget::Verdict::handle_last:
		client_.log().warn(mad.address.slid, loop_.now(),
				   "LID {} sends many traps: some will have to wait",
				   mad.address.slid);
		break;
	case TrapBudget::Verdict::ignore:
		return;
	}
	ib::Notice notice{};
	std::memcpy(&notice, smp.data, ib::notice_smp_bytes);
	ib::Mad repress = mad.mad;
	repress.header.method = static_cast<std::uint8_t>(MadMethod::trap_repress);
	/* A port that has this manager's M_Key accepts a TrapRepress only with that key. */
	PortRef sender = subnet_ ? subnet_->find_lid(mad.address.slid) : PortRef{};
	reinterpret_cast<ib::Smp &>(repress).mkey =
		sender ? config_.key_of(subnet_->port(sender).guid) : 0;
	client_.send(mad.address.reversed(), repress);
	/* A notice must come from its issuer, because no node forwards notices (IBA 13.4.8.2). */
	if (subnet_ && subnet_->find_lid(notice.issuer_lid) != sender)
		return;
	if (notice.is_generic())
		client_.log().info(mad.address.slid, loop_.now(), "trap {} from LID {}",
				   notice.trap_number.value(), notice.issuer_lid.value());
	/* Only the manager itself may report changes of GIDs and groups (IBA 14.2.5.1). */
	if (notice.is_generic() && notice.trap_number >= ib::trap_gid_in_service &&
	    notice.trap_number <= ib::trap_mcast_group_deleted)
		return;
	sa_.report(notice);
	if (!notice.is_generic())
		return;
	switch (notice.trap_number) {
	case ib::trap_link_state_change:
		link_changed_ = true;
		break;
	case ib::trap_capability_change:
	case ib::trap_system_image_guid_change:
		sweep_requested_.store(true);
		break;
	default:
		break;
	}
}

void SubnetManager::receive_sm_info(fabric::AddressedMad &&mad)
{
	auto &smp = reinterpret_cast<ib::Smp &>(mad.mad);
	bool set = smp.header.is_method(MadMethod::set);
	if (!set && !smp.header.is_method(MadMethod::get))
		return;
	std::uint16_t status = ib::mad_status_ok;
	ib::SmState before = state_;
	if (set)
		status = control(smp.header.attr_mod, ib::smp_attribute<ib::SmInfo>(smp));
	std::memset(smp.data, 0, sizeof(smp.data));
	ib::smp_attribute<ib::SmInfo>(smp) = sm_info();
	smp.header.method = static_cast<std::uint8_t>(MadMethod::get_resp);
	smp.header.status = status;
	if (smp.header.cls() == ib::MgmtClass::subn_directed_route)
		client_.mads().send_directed(smp);
	else
		client_.send(mad.address.reversed(), mad.mad);
	/* The sender may be a manager that is not known yet, so check soon. */
	if (!set && before == SmState::master)
		next_retry_ = std::min(next_retry_, last_sweep_ + kCuriosityInterval);
}

std::uint16_t SubnetManager::control(std::uint32_t order, const ib::SmInfo &from)
{
	/* IBA 14.4.1.1, table 187: the state transition for each control request. */
	switch (order) {
	case ib::sm_info_handover:
		if (state_ != SmState::standby && state_ != SmState::master)
			break;
		client_.log().info(SourceLog::kNoLid, loop_.now(),
				   "GUID {:#018x} hands the subnet over", from.guid.value());
		handover_from_ = from.guid;
		become(SmState::master);
		sweep_requested_.store(true);
		return ib::mad_status_ok;
	case ib::sm_info_acknowledge:
		if (state_ == SmState::standby || state_ == SmState::master)
			return ib::mad_status_ok;
		break;
	case ib::sm_info_disable:
		if (state_ != SmState::standby)
			break;
		disabled_by_order_ = true;
		become(SmState::not_active);
		return ib::mad_status_ok;
	case ib::sm_info_standby:
		if (state_ != SmState::not_active)
			break;
		disabled_by_order_ = false;
		become(SmState::standby);
		return ib::mad_status_ok;
	case ib::sm_info_discover:
		if (state_ != SmState::standby)
			break;
		become(SmState::discovering);
		return ib::mad_status_ok;
	default:
		break;
	}
	return ib::mad_status_invalid_value;
}

} // namespace weft::sm
