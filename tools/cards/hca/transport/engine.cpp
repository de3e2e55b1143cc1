// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/hca/transport/engine.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

#include "cards/hca/program_ports.hpp"
#include "cards/hca/transport/addressing.hpp"
#include "cards/hca/transport/work_queues.hpp"

namespace weft::hca::transport
{

namespace
{

/*
 * Number of steps (packets or completions) of a QP, or of a multicast packet, in one turn, and
 * number of turns in one slice of the loop.
 */
constexpr unsigned kTurnBudget = 32;
constexpr unsigned kSliceTurns = 16;
/* Polling interval for receives that are posted to a QP in the error state. */
constexpr Duration kPollFirst = std::chrono::milliseconds(1);
/* Maximum interval. QPs that have reached it are polled together, by one timer. */
constexpr Duration kPollLongest = std::chrono::milliseconds(250);
/* Number of these QPs that are polled before the loop runs other tasks. */
constexpr unsigned kSliceQuiet = 256;

bool is_datagram_service(ServiceType service)
{
	return service == ServiceType::ud || service == ServiceType::whole_packet;
}

} // namespace

Engine::Engine(Context &card)
    : card_(card), completions_(*this), output_(card), requester_(*this), responder_(*this),
      datagrams_(*this), wakeup_(card.loop, [this] { run(); }),
      timer_(card.loop, [this] { timers_due(); }), quiet_timer_(card.loop, [this] { poll_quiet(); })
{
}

Engine::~Engine() = default;

/* ------------------------------------------------------------------ queue pairs and commands */

void Engine::qp_created(QueuePair &pair)
{
	pair.transport = std::make_unique<Qp>(pair);
}

void Engine::qp_changed(QueuePair &pair, QpState from)
{
	Qp *qp = state_of(&pair);
	if (!qp)
		return;
	if (pair.state == QpState::rtr && from == QpState::init)
		responder_.start(*qp);
	if (pair.state == QpState::rts && from == QpState::rtr)
		requester_.start(*qp);
	if (pair.state == QpState::rts && from == QpState::sqer)
		requester_.restart(*qp);
	if (pair.state == QpState::err && from != QpState::err) {
		responder_.leave(*qp);
		fail(*qp);
	}
	schedule(*qp);
}

void Engine::qp_destroyed(QueuePair &pair)
{
	Qp *qp = state_of(&pair);
	if (!qp)
		return;
	responder_.leave(*qp);
	// The acknowledgement may be for a QP of this card. Nothing else may wake the engine.
	if (!output_.looped().empty())
		wakeup_.signal();
	if (qp->timer)
		timers_.erase({*qp->timer, qp});
	leases_.end(*qp);
	requester_.release_all(*qp);
	pair.transport.reset();
}

QueuePairProgress Engine::progress(const QueuePair &pair) const
{
	QueuePairProgress progress;
	const auto *qp = static_cast<const Qp *>(pair.transport.get());
	if (!qp)
		return progress;
	progress.next_send_psn = qp->send.psn.value();
	progress.next_receive_psn = qp->receive.expected.value();
	progress.last_acked_psn = (qp->send.unacknowledged - 1).value();
	progress.receive_msn = qp->receive.msn;
	progress.ssn = qp->send.ssn;
	// The index of the oldest request of each queue that is not complete. Software detects the
	// end of a flush by these indices.
	progress.sq_counter =
		qp->send.work.empty() ? qp->send.next_wqe : qp->send.work.front()->index;
	progress.rq_counter =
		static_cast<std::uint16_t>(qp->receive.next_wqe - qp->receive.receive.taken);
	progress.current_retry = static_cast<std::uint8_t>(qp->send.retries_left);
	progress.current_rnr_retry = static_cast<std::uint8_t>(qp->send.rnr_retries_left);
	return progress;
}

void Engine::send_doorbell(QueuePair &pair)
{
	Qp *qp = state_of(&pair);
	if (!qp || !pair.accepts_send_doorbell())
		return;
	qp->send.rung = true;
	/* Serve it at once if no other QP waits, because another wakeup would add latency. */
	if (runnable_.empty())
		service(*qp);
	else
		schedule(*qp);
}

void Engine::key_gone(std::uint32_t index)
{
	Memory &memory = card_.memory;
	leases_.end_key(index);
	/*
	 * The keys that have parts of this one are unknown, so packets of all keys with parts lose
	 * access.
	 */
	if (memory.take_lost_parts())
		leases_.end_keys_unless([&memory](std::uint32_t key) {
			return memory.holds(key) && !memory.has_parts(key);
		});
}

void Engine::keys_changed()
{
	leases_.end_keys_unless([this](std::uint32_t key) { return card_.memory.holds(key); });
}

void Engine::fail(Qp &qp, std::optional<Event> event)
{
	if (event)
		raise(qp, *event);
	qp.pair.state = QpState::err;
	qp.broken = false;
	leases_.end(qp);
	/*
	 * The packet is dropped, as any packet may be lost, because completions must not wait for
	 * its credit.
	 */
	qp.waiting.reset();
	qp.poll_pause = kPollFirst;
	clear_deadline(qp);
	schedule(qp);
}

void Engine::stop_send_queue(Qp &qp)
{
	qp.pair.state = QpState::sqer;
	schedule(qp);
}

/* ----------------------------------------------------------------------------------- events */

void Engine::raise(Qp &qp, Event event)
{
	/* A new event must not overtake pending ones. */
	if (!qp.pending_events && card_.completions.raise(event, qp.pair.qpn))
		return;
	qp.pending_events =
		static_cast<std::uint8_t>(qp.pending_events | 1u << static_cast<unsigned>(event));
	if (!qp.pending_events_link.linked())
		pending_events_.push_back(qp, qp.pending_events_link);
}

/*
 * Raises a QP's pending events in the order of their kinds. Returns false if one cannot be raised.
 */
bool Engine::report(Qp &qp)
{
	while (qp.pending_events) {
		const auto first = static_cast<unsigned>(std::countr_zero(qp.pending_events));
		if (!card_.completions.raise(static_cast<Event>(first), qp.pair.qpn))
			return false;
		qp.pending_events =
			static_cast<std::uint8_t>(qp.pending_events & (qp.pending_events - 1));
	}
	qp.pending_events_link.leave();
	return true;
}

void Engine::events_wanted()
{
	for (unsigned i = 0; i < kSliceEvents && !pending_events_.empty(); i++)
		if (!report(pending_events_.front()))
			break;
}

/* ------------------------------------------------------------------------------- scheduling */

void Engine::schedule(Qp &qp)
{
	if (qp.queued.linked())
		return;
	runnable_.push_back(qp, qp.queued);
	wakeup_.signal();
}

void Engine::run()
{
	if (timers_left_)
		timers_due();
	if (polling_quiet_)
		poll_quiet();
	for (unsigned turn = 0; turn < kSliceTurns; turn++) {
		bool looped = !output_.looped().empty();
		if (!looped && fan_outs_.empty() && runnable_.empty())
			break;
		if (!fan_outs_.empty()) {
			fan_out();
		} else if (looped) {
			Output::Looped back = std::move(output_.looped().front());
			output_.looped().pop_front();
			deliver(back.port, back.packet, true);
		}
		if (!runnable_.empty())
			service(runnable_.take_front());
	}
	if (output_.looped().empty() && output_.take_starved())
		unblock(kLaneInside);
	if (!runnable_.empty() || !output_.looped().empty() || !fan_outs_.empty())
		wakeup_.signal();
}

/*
 * Serves a QP for one turn: first responses, for which the peer waits, then the QP's own requests.
 */
void Engine::service(Qp &qp)
{
	if (qp.broken && qp.pair.state != QpState::err)
		fail(qp, Event::wq_catastrophic);
	if (!card_.port(qp.pair.path.port))
		return;
	const bool credit = send_waiting(qp);
	bool more = credit && responder_.advance(qp, kTurnBudget);
	if (qp.pair.state == QpState::err) {
		flush(qp);
	} else if (qp.pair.state == QpState::sqer) {
		/* In this state, only the send queue has failed. */
		more |= requester_.flush(qp, kTurnBudget);
	} else if (!credit) {
		return;
	} else if (is_datagram_service(qp.pair.service)) {
		more |= datagrams_.advance(qp, kTurnBudget);
	} else {
		more |= requester_.advance(qp, kTurnBudget);
	}
	if (qp.pair.state == QpState::sq_draining && Requester::idle(qp)) {
		qp.pair.state = QpState::sqd;
		if (qp.pair.sqd_event)
			raise(qp, Event::sq_drained);
	}
	if (more)
		schedule(qp);
	if (!output_.looped().empty())
		wakeup_.signal();
}

void Engine::flush(Qp &qp)
{
	bool more = requester_.flush(qp, kTurnBudget);
	more |= responder_.flush(qp, kTurnBudget);
	if (more) {
		schedule(qp);
		return;
	}
	if (qp.pair.uses_srq && !qp.last_wqe_reported) {
		qp.last_wqe_reported = true;
		raise(qp, Event::last_wqe_reached);
	}
	/*
	 * No doorbell reports a receive that is posted in this state, so poll, at increasing
	 * intervals.
	 */
	if (qp.pair.has_receive_queue && !qp.pair.uses_srq && !qp.deadline && !qp.quiet.linked())
		set_deadline(qp, card_.loop.now() + qp.poll_pause);
}

void Engine::poll_error_state(Qp &qp)
{
	bool posted = receives_posted(card_, qp) != 0;
	qp.poll_pause = posted ? kPollFirst : std::min(2 * qp.poll_pause, kPollLongest);
	if (posted)
		schedule(qp);
	else if (qp.poll_pause < kPollLongest)
		set_deadline(qp, card_.loop.now() + qp.poll_pause);
	else
		become_quiet(qp);
}

void Engine::become_quiet(Qp &qp)
{
	if (quiet_.empty() && !polling_quiet_)
		quiet_timer_.arm_at(card_.loop.now() + kPollLongest);
	quiet_.push_back(qp, qp.quiet);
}

/*
 * Polls all quiet QPs for receives, in slices. to_poll_ contains those that are left in the current
 * round.
 */
void Engine::poll_quiet()
{
	if (!std::exchange(polling_quiet_, true))
		to_poll_.append(quiet_);
	for (unsigned i = 0; i < kSliceQuiet && !to_poll_.empty(); i++) {
		Qp &qp = to_poll_.take_front();
		if (receives_posted(card_, qp) == 0) {
			quiet_.push_back(qp, qp.quiet);
			continue;
		}
		qp.poll_pause = kPollFirst;
		schedule(qp);
	}
	polling_quiet_ = !to_poll_.empty();
	if (polling_quiet_)
		wakeup_.signal();
	else if (!quiet_.empty())
		quiet_timer_.arm_at(card_.loop.now() + kPollLongest);
}

/* ------------------------------------------------------------------------------------ timers */

/*
 * Each acknowledgement postpones the deadline. To avoid a timer update each time, a timer that
 * expires too early is set again for the actual deadline.
 */
void Engine::set_deadline(Qp &qp, TimePoint when)
{
	qp.deadline = when;
	if (qp.timer && *qp.timer <= when)
		return;
	if (qp.timer)
		timers_.erase({*qp.timer, &qp});
	qp.timer = when;
	timers_.emplace(when, &qp);
	arm_timer();
}

/*
 * Do not arm the timer while due QPs are left: it would expire at once, before the loop runs other
 * tasks.
 */
void Engine::arm_timer()
{
	if (!timers_.empty() && !timers_left_)
		timer_.arm_at(timers_.begin()->first);
}

void Engine::timers_due()
{
	TimePoint now = card_.loop.now();
	timers_left_ = true;
	for (unsigned i = 0; i < kSliceTimers; i++) {
		auto first = timers_.begin();
		if (first == timers_.end() || first->first > now)
			break;
		Qp *qp = first->second;
		timers_.erase(first);
		qp->timer.reset();
		if (!qp->deadline)
			continue;
		if (*qp->deadline > now) {
			set_deadline(*qp, *qp->deadline);
			continue;
		}
		qp->deadline.reset();
		if (qp->pair.state == QpState::err)
			poll_error_state(*qp);
		else
			requester_.timed_out(*qp);
	}
	timers_left_ = !timers_.empty() && timers_.begin()->first <= now;
	if (timers_left_)
		wakeup_.signal();
	else
		arm_timer();
}

/* ------------------------------------------------------------------------------------ output */

fabric::Sent Engine::send_packet(const Qp &qp, fabric::Packet &packet)
{
	bool loopback = qp.pair.path.force_loopback && !ib::lid_is_multicast(packet.lrh().dlid);
	return output_.send(qp.pair.path.port, packet, loopback);
}

bool Engine::emit(Qp &qp, fabric::Packet &&packet)
{
	assert(!qp.waiting);
	if (send_packet(qp, packet) != fabric::Sent::no_credit)
		return true;
	qp.waiting.emplace(std::move(packet));
	wait_for_credit(qp);
	return false;
}

bool Engine::send_waiting(Qp &qp)
{
	if (!qp.waiting)
		return true;
	if (send_packet(qp, *qp.waiting) == fabric::Sent::no_credit) {
		wait_for_credit(qp);
		return false;
	}
	qp.waiting.reset();
	return true;
}

void Engine::wait_for_credit(Qp &qp)
{
	const std::size_t lane = output_.refused_inside()
					 ? kLaneInside
					 : lane_of(qp.pair.path.port, qp.waiting->lrh().vl());
	if (qp.blocked == lane)
		return;
	/* The packet for which it waited was dropped, and the next one uses another lane. */
	qp.on_lane.leave();
	qp.blocked = lane;
	blocked_[lane].push_back(qp, qp.on_lane);
}

void Engine::unblock(std::size_t lane)
{
	while (!blocked_[lane].empty()) {
		Qp &qp = blocked_[lane].take_front();
		qp.blocked.reset();
		schedule(qp);
	}
}

void Engine::credit_available(unsigned port, std::uint8_t vl)
{
	unblock(lane_of(port, vl));
}

/*
 * Credits that returned while the port had no link were not reported, so QPs that wait for credits
 * retry.
 */
void Engine::port_changed(unsigned port)
{
	for (std::uint8_t vl = 0; vl < fabric::Port::kVls; vl++)
		credit_available(port, vl);
}

/* ------------------------------------------------------------------------------------- input */

void Engine::receive(unsigned port, fabric::Packet &&packet)
{
	deliver(port, packet, false);
}

void Engine::deliver(unsigned port_number, fabric::Packet &packet, bool looped_back)
{
	CardPort *port = card_.port(port_number);
	if (!port)
		return;
	ib::Lid dlid = packet.lrh().dlid;
	std::uint32_t number = packet.bth().dest_qp();
	if (!ib::opcode_traits(packet.bth().opcode).has(ib::OpcodeTraits::valid))
		return;
	if (number == ib::qpn_smi) {
		deliver_management(port_number, packet);
		return;
	}
	/*
	 * IBA 9.6.1: VL 15 is for QP0 only. Packets on it skip the checks of data VLs, so drop
	 * those for other QPs.
	 */
	if (packet.lrh().vl() == ib::vl_management)
		return;
	if (!port->active() && !looped_back)
		return;
	if (ib::lid_is_multicast(dlid)) {
		deliver_multicast(port_number, packet, looped_back);
		return;
	}
	if (!looped_back && !port->owns_lid(dlid))
		return;
	/* IBA 9.6.1.2. A path with forced loopback may use any address. */
	if (const ib::Grh *grh = packet.grh();
	    grh && port->owns_lid(dlid) && !port->owns_gid(grh->dgid))
		return;
	if (number == ib::qpn_gsi && offered(port_number, packet))
		return;
	Qp *qp = number == ib::qpn_gsi ? state_of(card_.special_queue_pair(port_number, 1))
				       : state_of(card_.queue_pair(number));
	/*
	 * QP0 is addressed only by number 0. If the driver's number for it were accepted, packets
	 * on data VLs would pass QP0's checks.
	 */
	if (qp && qp->pair.special != 0)
		deliver_to(*qp, port_number, packet);
}

bool Engine::offered(unsigned port, const fabric::Packet &packet)
{
	return card_.programs && card_.programs->port(port).offer(packet);
}

void Engine::deliver_management(unsigned port_number, fabric::Packet &packet)
{
	if (packet.lrh().vl() != ib::vl_management ||
	    packet.bth().opcode != ib::opcode_ud_send_only)
		return;
	if (packet.payload().size() == sizeof(ib::Smp)) {
		ib::Smp smp;
		packet.payload().copy_to(std::as_writable_bytes(std::span(&smp, 1)));
		bool handled = false;
		auto answer =
			card_.management.wire_smp(port_number, smp, packet.lrh().slid, handled);
		if (answer) {
			packet::Headers headers;
			address_reply(*card_.port(port_number), packet, headers);
			headers.bth.opcode = ib::opcode_ud_send_only;
			headers.bth.set_dest_qp(packet.parse().deth.src_qp);
			auto reply = fabric::Packet::make(
				headers,
				fabric::Payload::copy_of(std::as_bytes(std::span(&*answer, 1))));
			if (reply)
				output_.send(port_number, *reply);
		}
		if (answer || handled)
			return;
	}
	if (offered(port_number, packet))
		return;
	if (Qp *qp = state_of(card_.special_queue_pair(port_number, 0)))
		deliver_to(*qp, port_number, packet);
}

void Engine::deliver_multicast(unsigned port_number, fabric::Packet &packet, bool looped_back)
{
	/* IBA 9.6.1.1: a multicast packet has a GRH and names the multicast QP number. */
	if (!packet.grh() || packet.bth().dest_qp() != ib::qpn_multicast ||
	    !ib::opcode_traits(packet.bth().opcode).has(ib::OpcodeTraits::deth))
		return;
	if (fan_outs_.size() >= kFanOutsMax) {
		card_.diagnostics.multicast_dropped++;
		return;
	}
	fan_outs_.push_back({port_number, looped_back, std::move(packet)});
	/*
	 * Return the credit now, so that packets behind it on the link do not wait for the
	 * replication.
	 */
	fan_outs_.back().packet.release_credit();
	if (fan_outs_.size() == 1) {
		begin_fan_out();
		fan_out();
	}
}

void Engine::begin_fan_out()
{
	members_.clear();
	next_member_ = 0;
	card_.groups.members(fan_outs_.front().packet.grh()->dgid, members_);
}

/* Delivers the first multicast packet to its members, for one turn. */
void Engine::fan_out()
{
	FanOut &first = fan_outs_.front();
	const std::uint32_t source = first.packet.parse().deth.src_qp;
	const std::size_t end = std::min(members_.size(), next_member_ + kTurnBudget);
	for (; next_member_ < end; next_member_++) {
		const auto &member = members_[next_member_];
		if (first.looped_back && member.block_loopback && member.qpn == source)
			continue;
		Qp *qp = state_of(card_.queue_pair(member.qpn));
		if (qp && qp->pair.service == ServiceType::ud && qp->pair.path.port == first.port)
			deliver_to(*qp, first.port, first.packet);
	}
	if (next_member_ == members_.size()) {
		fan_outs_.pop_front();
		if (!fan_outs_.empty())
			begin_fan_out();
	}
	if (!fan_outs_.empty())
		wakeup_.signal();
}

void Engine::refuse_pkey(CardPort &port, const packet::Headers &headers)
{
	port.count_pkey_violation();
	card_.management.key_violation(port.number(), ib::trap_bad_pkey, headers);
}

void Engine::refuse_qkey(CardPort &port, const packet::Headers &headers)
{
	port.count_qkey_violation();
	card_.management.key_violation(port.number(), ib::trap_bad_qkey, headers);
}

void Engine::deliver_to(Qp &qp, unsigned port_number, fabric::Packet &packet)
{
	if (!qp.can_receive())
		return;
	auto opcode = packet.bth().opcode;
	auto traits = ib::opcode_traits(opcode);
	if (is_datagram_service(qp.pair.service)) {
		if (qp.pair.path.port == port_number)
			datagrams_.receive(qp, port_number, packet);
		return;
	}
	const packet::Headers headers = packet.parse();
	CardPort &port = *card_.port(port_number);
	/* IBA 9.6.1.5: a connected QP accepts only packets of its own peer. */
	const AddressPath &path = qp.pair.path;
	if (path.port != port_number || path.remote_lid != headers.lrh.slid)
		return;
	if (!ib::pkey_match(headers.bth.pkey, port.pkey(path.pkey_index))) {
		refuse_pkey(port, headers);
		return;
	}
	ib::Transport expected = qp.pair.service == ServiceType::uc    ? ib::Transport::uc
				 : qp.pair.service == ServiceType::xrc ? ib::Transport::xrc
								       : ib::Transport::rc;
	bool masked = opcode == ib::opcode_rc_masked_compare_swap ||
		      opcode == ib::opcode_rc_masked_fetch_add;
	bool masked_xrc = opcode == ib::opcode_xrc_masked_compare_swap ||
			  opcode == ib::opcode_xrc_masked_fetch_add;
	if (ib::opcode_transport(opcode) != expected &&
	    !(masked && expected == ib::Transport::rc) &&
	    !(masked_xrc && expected == ib::Transport::xrc))
		return;
	if (traits.has(ib::OpcodeTraits::response))
		requester_.response(qp, packet);
	else
		responder_.request(qp, packet);
}

} // namespace weft::hca::transport

namespace weft::hca
{

std::unique_ptr<Transport> make_transport(Context &context)
{
	return std::make_unique<transport::Engine>(context);
}

} // namespace weft::hca
