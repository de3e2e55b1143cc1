// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "sm/mad_client.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>
#include <utility>

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

namespace weft::sm
{

namespace
{

/* Limit of responses that wait: those to the requests of the window, each repeated a few times. */
constexpr std::size_t kAnswersMax = 1024;
/* Number of responses during a sweep after which other tasks of the loop's reactor run. */
constexpr std::size_t kAnswersPerTurn = 64;
/* Number of sources for directed-route SMPs, whose senders have no LIDs. */
constexpr FairQueue::Source kDirectedSources = 64;
constexpr FairQueue::Source kFirstDirectedSource = 0x10000;

bool is_smp_answer(const ib::MadHeader &header)
{
	return header.is_smp() && header.is_method(ib::MadMethod::get_resp);
}

/* Returns true for responses to reports of the SA, and for RMPP messages of a receiver. */
bool is_urgent(const fabric::AddressedMad &mad)
{
	if (mad.mad.header.cls() != ib::MgmtClass::subn_adm)
		return false;
	const auto &rmpp = reinterpret_cast<const ib::SaMad &>(mad.mad).rmpp;
	return mad.mad.header.is_response() ||
	       ((rmpp.flags() & ib::RmppHeader::active) != 0 && rmpp.type != ib::RmppHeader::data);
}

} // namespace

MadClient::MadClient(Loop &loop, fabric::Port &port, const Config &config, Handlers handlers)
    : loop_(loop), config_(config), handlers_(std::move(handlers)), requests_(handlers_.requests),
      /*
       * The TIDs start at a random number, so that neither late responses to an earlier manager on
       * this port nor forged ones match.
       */
      first_tid_(loop.random()), end_tid_(first_tid_.load()),
      arrived_(std::in_place, loop, handlers_.arrived),
      mads_(std::in_place, port,
	    fabric::MadPort::Config{.description = config.name,
				    .node_guid = config.guid,
				    .is_sm = true,
				    .environment = &loop.environment()},
	    fabric::MadPort::Handlers{
		    .received = [this](fabric::AddressedMad &&mad) { received(std::move(mad)); },
		    .port_changed = [this] { wake(); }})
{
}

/* Called on any thread. */
void MadClient::received(fabric::AddressedMad &&mad)
{
	if (is_smp_answer(mad.mad.header)) {
		/* Any port can send responses, so keep only responses that may match a request. */
		if (!is_awaited(mad.mad.header.tid))
			return;
		const MutexLock lock(mutex_);
		if (answers_.size() >= kAnswersMax)
			return;
		answers_.push_back(std::move(mad));
	} else {
		const FairQueue::Source source = source_of(mad);
		const bool urgent = is_urgent(mad);
		if (!requests_.push(source, urgent, std::move(mad)))
			return;
	}
	wake();
}

/* Returns the source for the port that has sent a MAD, whichever of its LIDs it has used. */
FairQueue::Source MadClient::source_of(const fabric::AddressedMad &mad) const
{
	if (mad.mad.header.cls() != ib::MgmtClass::subn_directed_route)
		return mad.address.slid >> config_.lmc;
	/* Each switch on the route has filled in a port of the return path. */
	const auto &smp = reinterpret_cast<const ib::Smp &>(mad.mad);
	const std::string_view route(
		reinterpret_cast<const char *>(smp.return_path),
		std::min<std::size_t>(smp.header.hop_cnt + 1u, sizeof(smp.return_path)));
	return kFirstDirectedSource +
	       static_cast<FairQueue::Source>(std::hash<std::string_view>()(route) %
					      kDirectedSources);
}

bool MadClient::is_awaited(std::uint64_t tid) const
{
	const std::uint64_t first = first_tid_.load(std::memory_order_acquire);
	return tid - first < end_tid_.load(std::memory_order_acquire) - first;
}

void MadClient::close()
{
	/*
	 * After the first reset no MAD arrives any more, and after the second one no callback is
	 * called any more.
	 */
	mads_.reset();
	arrived_.reset();
}

void MadClient::stop()
{
	stopped_.store(true, std::memory_order_release);
	wake();
}

std::size_t MadClient::take_answers()
{
	std::vector<fabric::AddressedMad> answers = std::exchange(taken_, {});
	{
		const MutexLock lock(mutex_);
		answers.swap(answers_);
	}
	for (const fabric::AddressedMad &mad : answers)
		take_answer(mad);
	const std::size_t count = answers.size();
	answers.clear();
	taken_ = std::move(answers);
	return count;
}

void MadClient::perform(SmpRequest &request)
{
	std::vector<SmpRequest> batch{std::move(request)};
	perform(batch);
	request = std::move(batch.front());
}

void MadClient::perform(std::vector<SmpRequest> &batch)
{
	auto next = batch.begin();
	smps_ += batch.size();
	first_tid_.store(end_tid_.load(std::memory_order_relaxed), std::memory_order_release);
	while (!stopped() && (next != batch.end() || !pending_.empty())) {
		const Clock::time_point due = now() + config_.smp_timeout;
		while (next != batch.end() && pending_.size() < config_.smp_window) {
			const std::uint64_t tid = end_tid_.fetch_add(1, std::memory_order_acq_rel);
			pending_.push_back({tid, &*next, config_.smp_retries, due});
			transmit(pending_.back());
			++next;
		}
		/* Most responses arrive while the request is being sent. */
		const std::size_t answered = take_answers();
		serve_others(answered);
		if (!pending_.empty())
			expire();
	}
	pending_.clear();
	first_tid_.store(end_tid_.load(std::memory_order_relaxed), std::memory_order_release);
}

/*
 * While responses arrive, other requesters get a share of the time, so that neither blocks the
 * other. Otherwise other requesters get all of it.
 */
void MadClient::serve_others(std::size_t answered)
{
	credit_ += static_cast<std::int64_t>(answered) * Work::kShareOfSmp;
	if (answered == 0)
		credit_ = std::max(credit_, Work::kQuantum);
	if (credit_ > 0 && handlers_.busy()) {
		Work work(credit_);
		handlers_.serve(work);
		credit_ -= work.done();
	}
	/* Unused credit is limited, so that there are no bursts. */
	credit_ = std::min(credit_, Work::kQuantum);
	if (answered == 0)
		return wait_for_answer();
	answered_since_turn_ += answered;
	if (answered_since_turn_ < kAnswersPerTurn)
		return;
	answered_since_turn_ = 0;
	loop_.reactor().turn(Clock::time_point::min());
}

void MadClient::wait_for_answer()
{
	auto soonest = handlers_.busy() ? Clock::time_point::min() : Clock::time_point::max();
	for (const Pending &pending : pending_)
		soonest = std::min(soonest, pending.due);
	loop_.reactor().turn(soonest);
}

void MadClient::expire()
{
	const Clock::time_point now = this->now();
	for (auto it = pending_.begin(); it != pending_.end();) {
		Pending &pending = *it;
		if (pending.due > now) {
			++it;
		} else if (pending.tries_left == 0) {
			log_.warn(SourceLog::kNoLid, now,
				  "no answer to {} of attribute {:#06x} by route [{}]",
				  pending.request->method == ib::MadMethod::set ? "Set" : "Get",
				  pending.request->attribute,
				  fmt::join(pending.request->path, ","));
			timeouts_++;
			it = pending_.erase(it);
		} else {
			pending.tries_left--;
			pending.due = now + config_.smp_timeout;
			transmit(pending);
			++it;
		}
	}
}

void MadClient::transmit(const Pending &pending)
{
	const SmpRequest &request = *pending.request;
	ib::Smp smp{};
	smp.header.base_version = ib::mad_base_version;
	smp.header.mgmt_class = static_cast<std::uint8_t>(ib::MgmtClass::subn_directed_route);
	smp.header.class_version = 1;
	smp.header.method = static_cast<std::uint8_t>(request.method);
	smp.header.hop_cnt = static_cast<std::uint8_t>(request.path.size());
	smp.header.tid = pending.tid;
	smp.header.attr_id = request.attribute;
	smp.header.attr_mod = request.modifier;
	smp.mkey = request.mkey;
	smp.dr_slid = ib::lid_permissive;
	smp.dr_dlid = ib::lid_permissive;
	std::copy(request.path.begin(), request.path.end(), smp.initial_path + 1);
	std::memcpy(smp.data, request.data, sizeof(smp.data));
	mads_->send_directed(smp);
}

void MadClient::take_answer(const fabric::AddressedMad &mad)
{
	const auto &smp = reinterpret_cast<const ib::Smp &>(mad.mad);
	const auto found = std::ranges::find(pending_, smp.header.tid.value(), &Pending::tid);
	/* It may be a second response to a repeated request. */
	if (found == pending_.end())
		return;
	SmpRequest &request = *found->request;
	if (smp.header.attr_id != request.attribute || smp.header.attr_mod != request.modifier) {
		log_.warn(SourceLog::kNoLid, now(),
			  "the answer by route [{}] is about another attribute",
			  fmt::join(request.path, ","));
		return;
	}
	request.answered = true;
	request.status = static_cast<std::uint16_t>(smp.header.status & ~ib::mad_status_direction);
	std::memcpy(request.data, smp.data, sizeof(request.data));
	/* Keep the order: the request that has waited longest is first. */
	pending_.erase(found);
}

} // namespace weft::sm
