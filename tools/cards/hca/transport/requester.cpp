// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Creates packets from posted requests; responses are handled in requester_responses.cpp.
#include "cards/hca/transport/requester.hpp"

#include <algorithm>
#include <optional>

#include "cards/hca/transport/addressing.hpp"
#include "cards/hca/transport/engine.hpp"
#include "cards/hca/transport/work_queues.hpp"

namespace weft::hca::transport
{

namespace
{

/* Limit of bytes in flight, and the interval at which an acknowledgement is requested. */
constexpr std::uint32_t kWindowBytes = 1 << 20;
constexpr std::uint32_t kAcknowledgeBytes = 128 << 10;
constexpr std::size_t kSpareMax = 1024;
/*
 * Minimum timeout, even if the guest requests a shorter one: threads of a busy host may sleep
 * longer.
 */
constexpr Duration kShortestTimeout = std::chrono::milliseconds(2);

ib::Operation data_operation(const SendRequest &request, bool first, bool last)
{
	using Op = ib::Operation;
	if (request.is_write()) {
		bool immediate = request.opcode == SendOpcode::rdma_write_imm;
		if (!last)
			return first ? Op::write_first : Op::write_middle;
		if (first)
			return immediate ? Op::write_only_imm : Op::write_only;
		return immediate ? Op::write_last_imm : Op::write_last;
	}
	if (!last)
		return first ? Op::send_first : Op::send_middle;
	switch (request.opcode) {
	case SendOpcode::send_imm:
		return first ? Op::send_only_imm : Op::send_last_imm;
	case SendOpcode::send_invalidate:
		return first ? Op::send_only_inv : Op::send_last_inv;
	default:
		return first ? Op::send_only : Op::send_last;
	}
}

ib::Transport transport_of(ServiceType service)
{
	switch (service) {
	case ServiceType::uc:
		return ib::Transport::uc;
	case ServiceType::xrc:
		return ib::Transport::xrc;
	default:
		return ib::Transport::rc;
	}
}

} // namespace

Requester::Requester(Engine &engine)
    : engine_(engine), mover_(engine.card().memory, engine.leases())
{
}

void Requester::start(Qp &qp)
{
	RequesterState &s = qp.send;
	s.psn = s.next = s.unacknowledged = s.limit = Psn(qp.pair.initial_send_psn);
	s.retries_left = qp.pair.retry_count;
	s.rnr_retries_left = qp.pair.rnr_retry;
}

/* Flushes the remaining requests if the driver did not wait for the end of the flush. */
void Requester::restart(Qp &qp)
{
	RequesterState &s = qp.send;
	while (!s.work.empty())
		flush_front(qp);
	s.large.reset();
	s.cursor = 0;
	s.stopped = false;
	s.next = s.unacknowledged = s.limit = s.psn;
}

bool Requester::advance(Qp &qp, unsigned budget)
{
	RequesterState &s = qp.send;
	while (budget-- > 0) {
		if (!qp.can_send() || s.rnr_wait || qp.waiting)
			return false;
		if (s.cursor == s.work.size() && !fetch(qp))
			return false;
		switch (step(qp, *s.work[s.cursor])) {
		case Step::sent:
			break;
		case Step::wait:
		case Step::failed:
			return false;
		}
	}
	return true;
}

/* Appends the next posted request to the work. Returns false if none can be taken now. */
bool Requester::fetch(Qp &qp)
{
	RequesterState &s = qp.send;
	if (s.stopped || qp.pair.state != QpState::rts || !may_fetch(qp))
		return false;
	auto work = new_work();
	switch (take_send(engine_.card(), qp, *work)) {
	case Taken::none:
		recycle(std::move(work));
		return false;
	case Taken::broken:
		recycle(std::move(work));
		engine_.fail(qp, Event::wq_catastrophic);
		return false;
	case Taken::yes:
		break;
	}
	if (work->failure == Syndrome::none)
		work->failure = prepare(qp, *work);
	work->first = s.psn;
	if (work->failure == Syndrome::none)
		s.psn += work->packets;
	else
		s.stopped = true;
	hold(qp, std::move(work));
	return true;
}

/*
 * Returns true if the QP may fetch a request. A QP without a fetched request may always fetch one,
 * so that each QP makes progress. Its own completions schedule it again.
 */
bool Requester::may_fetch(const Qp &qp) const
{
	const std::size_t held = qp.send.work.size();
	return held == 0 || (held < kHeldMax && held_ < kHeldAllMax);
}

/* Performs the checks that are possible before anything is sent, and counts the packets. */
Syndrome Requester::prepare(Qp &qp, SendWork &work)
{
	const SendRequest &request = work.request;
	if (request.is_local())
		return request.opcode == SendOpcode::fast_register && !qp.pair.fast_register
			       ? Syndrome::local_qp_operation
			       : Syndrome::none;
	if (request.is_atomic()) {
		work.packets = 1;
		return Syndrome::none;
	}
	if (qp.mtu() == 0)
		return Syndrome::local_qp_operation;
	/* The PSNs of one message must fit the window, whatever the context permits. */
	std::uint64_t packets =
		std::max<std::uint64_t>(1, (request.length + qp.mtu() - 1) / qp.mtu());
	if (request.length > std::uint64_t{1} << qp.pair.log_max_message || packets >= Psn::kWindow)
		return Syndrome::local_length;
	work.packets = static_cast<std::uint32_t>(packets);
	return Syndrome::none;
}

Requester::Step Requester::step(Qp &qp, SendWork &work)
{
	RequesterState &s = qp.send;
	if (work.failure != Syndrome::none) {
		/* All earlier requests must have completed. */
		if (s.cursor != 0)
			return Step::wait;
		fail_front(qp, work.failure);
		return Step::failed;
	}
	if (!work.started && !may_start(qp, work))
		return Step::wait;
	if (work.request.is_local())
		return do_locally(qp, work);
	if (!window_open(qp, work))
		return Step::wait;
	if (!work.started) {
		work.started = true;
		if (work.request.is_read_or_atomic())
			s.reads++;
	}
	Step result;
	if (work.request.is_read())
		result = send_read(qp, work);
	else if (work.request.is_atomic())
		result = send_atomic(qp, work);
	else
		result = send_data(qp, work);
	if (result == Step::sent && s.next == work.end()) {
		s.cursor++;
		if (qp.pair.service == ServiceType::uc) {
			work.finished = true;
			s.unacknowledged = s.next;
			retire(qp);
		}
	}
	return result;
}

bool Requester::may_start(Qp &qp, const SendWork &work) const
{
	const RequesterState &s = qp.send;
	/* IBA 10.8.3.3: a fenced request waits for all reads and atomics before it. */
	if (work.request.fence && s.reads != 0)
		return false;
	if (work.request.is_read_or_atomic() && s.reads >= qp.reads_max())
		return false;
	/* Earlier requests may still use the key. */
	if (work.request.opcode == SendOpcode::local_invalidate ||
	    work.request.opcode == SendOpcode::bind_window ||
	    (work.request.opcode == SendOpcode::update_key && work.request.update_key.ends_use))
		return s.cursor == 0;
	return true;
}

bool Requester::window_open(const Qp &qp, const SendWork &work) const
{
	const RequesterState &s = qp.send;
	if (qp.pair.service == ServiceType::uc)
		return true;
	auto outstanding = static_cast<std::uint32_t>(s.next.distance_from(s.unacknowledged));
	if (work.request.is_read())
		return outstanding + work.packets < Psn::kWindow;
	return std::uint64_t{outstanding} * qp.mtu() < kWindowBytes;
}

Requester::Step Requester::do_locally(Qp &qp, SendWork &work)
{
	Context &card = engine_.card();
	const SendRequest &request = work.request;
	work.started = true;
	if (!work.finished) {
		auto error = MemoryError::none;
		/* All failures of key operations have this status (IBA 11.6.2). */
		auto syndrome = Syndrome::window_bind;
		std::optional<std::uint32_t> gone;
		switch (request.opcode) {
		case SendOpcode::fast_register:
			error = card.memory.fast_register(request.fast_register, qp.pair.pd);
			break;
		case SendOpcode::local_invalidate:
			error = card.memory.invalidate(request.invalidate_key, qp.pair.pd,
						       qp.pair.qpn, false);
			gone = request.invalidate_key;
			break;
		case SendOpcode::bind_window:
			error = card.memory.bind_window(request.bind, qp.pair.pd, qp.pair.qpn);
			gone = request.bind.new_rkey;
			break;
		case SendOpcode::update_key:
			error = card.memory.update_key(
				request.update_key,
				qp.key_use(request.update_key.key, KeyAccess::local_read));
			if (request.update_key.ends_use)
				gone = request.update_key.key;
			break;
		default:
			break;
		}
		if (error != MemoryError::none) {
			work.failure = syndrome;
			qp.send.stopped = true;
			return step(qp, work);
		}
		/*
		 * Report this only after success. A key for which the operation was refused may be
		 * in use by another QP, whose packets are in flight.
		 */
		if (gone)
			engine_.key_gone(*gone >> 8);
		work.finished = true;
	}
	qp.send.cursor++;
	retire(qp);
	return Step::sent;
}

packet::Headers Requester::headers_for(const Qp &qp, ib::Operation operation, Psn psn) const
{
	packet::Headers headers;
	const CardPort *port = engine_.card().port(qp.pair.path.port);
	address_connected(*port, qp.pair.path, headers);
	headers.bth.opcode = ib::opcode(transport_of(qp.pair.service), operation);
	headers.bth.set_dest_qp(qp.pair.remote_qpn);
	headers.bth.set_migrated(true);
	headers.bth.set_psn(psn.value());
	return headers;
}

void Requester::transmit(Qp &qp, const packet::Headers &headers, fabric::Payload payload,
			 unsigned packets)
{
	auto packet = fabric::Packet::make_run(headers, std::move(payload), packets);
	if (packet)
		engine_.emit(qp, std::move(*packet));
}

/* Updates the state after all packets before @psn have been sent. */
void Requester::sent_up_to(Qp &qp, Psn psn)
{
	RequesterState &s = qp.send;
	s.next = psn;
	if (s.limit.before(psn))
		s.limit = psn;
	if (!qp.deadline)
		restart_timer(qp);
}

OwnedBytes Requester::allocate_copy(std::size_t size)
{
	OwnedBytes copy = OwnedBytes::allocate(size);
	copied_->fetch_add(size, std::memory_order_relaxed);
	std::byte *const bytes = copy.data.get();
	/* The counter is decremented when the last reference to the copy is dropped. */
	copy.data = std::shared_ptr<std::byte[]>(
		bytes, [count = copied_, size, keep = std::move(copy.data)](std::byte *) {
			count->fetch_sub(size, std::memory_order_relaxed);
		});
	return copy;
}

Requester::Step Requester::send_data(Qp &qp, SendWork &work)
{
	RequesterState &s = qp.send;
	const SendRequest &request = work.request;
	const unsigned mtu = qp.mtu();
	auto number = static_cast<std::uint32_t>(s.next.distance_from(work.first));
	bool first = number == 0;
	bool last = number + 1 == work.packets;
	std::uint64_t offset = std::uint64_t{number} * mtu;
	const bool copies = qp.pair.service == ServiceType::uc;
	const bool single = last || (copies && copied() >= kCopiedMax);
	const unsigned packets = single ? 1 : run_length(work.packets - number - 1, mtu);
	auto bytes = static_cast<std::uint32_t>(
		std::min<std::uint64_t>(std::uint64_t{packets} * mtu, request.length - offset));

	fabric::Payload payload;
	MemoryError error;
	if (copies) {
		/*
		 * The request completes before the packet has arrived, and the guest may then reuse
		 * the buffer.
		 */
		OwnedBytes copy = allocate_copy(bytes);
		error = mover_.gather(request, offset, qp.key_use(0, KeyAccess::local_read),
				      copy.span());
		payload = copy.payload();
	} else {
		error = mover_.refer(qp, request, offset, bytes, payload);
	}
	if (error != MemoryError::none) {
		work.failure = Syndrome::local_protection;
		s.stopped = true;
		return step(qp, work);
	}

	packet::Headers headers = headers_for(qp, data_operation(request, first, last), s.next);
	s.unrequested += bytes;
	if (qp.is_connected() && (last || s.unrequested >= kAcknowledgeBytes)) {
		headers.bth.set_ack_request(true);
		s.unrequested = 0;
	}
	if (last) {
		/* Only requests that use a receive can be solicited. */
		headers.bth.set_solicited(request.solicited &&
					  request.opcode != SendOpcode::rdma_write);
		headers.immdt.value = request.immediate;
		headers.ieth.rkey = request.immediate;
	}
	headers.reth = {request.remote_address, request.rkey,
			static_cast<std::uint32_t>(request.length)};
	headers.xrceth.srq = request.remote_srq;
	transmit(qp, headers, std::move(payload), packets);
	sent_up_to(qp, s.next + packets);
	return Step::sent;
}

Requester::Step Requester::send_read(Qp &qp, SendWork &work)
{
	RequesterState &s = qp.send;
	/* A retry requests only the missing part. */
	auto number = static_cast<std::uint32_t>(s.next.distance_from(work.first));
	std::uint64_t offset = std::uint64_t{number} * qp.mtu();
	packet::Headers headers = headers_for(qp, ib::Operation::read_request, s.next);
	headers.bth.set_ack_request(true);
	headers.reth = {work.request.remote_address + offset, work.request.rkey,
			static_cast<std::uint32_t>(work.request.length - offset)};
	headers.xrceth.srq = work.request.remote_srq;
	transmit(qp, headers, {});
	s.unrequested = 0;
	sent_up_to(qp, work.end());
	return Step::sent;
}

Requester::Step Requester::send_atomic(Qp &qp, SendWork &work)
{
	const SendRequest &request = work.request;
	bool swap = request.opcode == SendOpcode::compare_swap ||
		    request.opcode == SendOpcode::masked_compare_swap;
	packet::Headers headers = headers_for(
		qp, swap ? ib::Operation::compare_swap : ib::Operation::fetch_add, qp.send.next);
	bool xrc = qp.pair.service == ServiceType::xrc;
	if (request.opcode == SendOpcode::masked_compare_swap)
		headers.bth.opcode = xrc ? ib::opcode_xrc_masked_compare_swap
					 : ib::opcode_rc_masked_compare_swap;
	if (request.opcode == SendOpcode::masked_fetch_add)
		headers.bth.opcode =
			xrc ? ib::opcode_xrc_masked_fetch_add : ib::opcode_rc_masked_fetch_add;
	headers.bth.set_ack_request(true);
	headers.atomic.address = request.remote_address;
	headers.atomic.rkey = request.rkey;
	headers.atomic.swap_or_add = request.swap_or_add;
	headers.atomic.compare = request.compare;
	headers.swap_or_add_mask = request.swap_or_add_mask;
	headers.compare_mask = request.compare_mask;
	headers.xrceth.srq = request.remote_srq;
	transmit(qp, headers, {});
	qp.send.unrequested = 0;
	sent_up_to(qp, work.end());
	return Step::sent;
}

void Requester::restart_timer(Qp &qp)
{
	auto timeout = ack_timeout(qp.pair.path.ack_timeout);
	if (!qp.is_connected() || !timeout || qp.send.rnr_wait)
		return;
	/* Values between one and four times the nominal timeout are permitted (IBA 9.7.6.1.3). */
	engine_.set_deadline(qp,
			     engine_.card().loop.now() + std::max(2 * *timeout, kShortestTimeout));
}

void Requester::fail_front(Qp &qp, Syndrome syndrome)
{
	auto work = release(qp);
	qp.send.cursor = 0;
	/* After the completion the guest may reuse the buffer. */
	engine_.leases().end(qp);
	engine_.completions().send_failed(qp, work->index, syndrome);
	recycle(std::move(work));
	if (qp.pair.service == ServiceType::uc)
		engine_.stop_send_queue(qp);
	else
		engine_.fail(qp);
}

void Requester::flush_front(Qp &qp)
{
	auto work = release(qp);
	engine_.completions().send_failed(qp, work->index, Syndrome::flushed);
	recycle(std::move(work));
}

bool Requester::flush(Qp &qp, unsigned budget)
{
	RequesterState &s = qp.send;
	s.rnr_wait = false;
	s.reads = 0;
	s.cursor = 0;
	s.stopped = false;
	s.large.reset();
	for (; budget > 0; budget--) {
		if (s.work.empty()) {
			auto posted = new_work();
			if (take_send(engine_.card(), qp, *posted) != Taken::yes) {
				recycle(std::move(posted));
				return false;
			}
			hold(qp, std::move(posted));
		}
		flush_front(qp);
	}
	return true;
}

SendWork &Requester::hold(Qp &qp, std::unique_ptr<SendWork> work)
{
	held_++;
	return *qp.send.work.emplace_back(std::move(work));
}

std::unique_ptr<SendWork> Requester::release(Qp &qp)
{
	held_--;
	auto work = std::move(qp.send.work.front());
	qp.send.work.pop_front();
	return work;
}

void Requester::release_all(Qp &qp)
{
	held_ -= qp.send.work.size();
	qp.send.work.clear();
}

std::unique_ptr<SendWork> Requester::new_work()
{
	if (spare_.empty())
		return std::make_unique<SendWork>();
	auto work = std::move(spare_.back());
	spare_.pop_back();
	return work;
}

void Requester::recycle(std::unique_ptr<SendWork> work)
{
	if (spare_.size() < kSpareMax)
		spare_.push_back(std::move(work));
}

} // namespace weft::hca::transport
