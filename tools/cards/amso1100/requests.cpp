// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Executes the work requests of a queue pair: reads them from its queues, and completes them.
// Completions are written in the order of the requests. A request without its own completion is
// counted in the next completion.
#include <algorithm>
#include <utility>

#include "cards/amso1100/bytes.hpp"
#include "cards/amso1100/queue_pair.hpp"

namespace weft::amso1100
{

namespace wire = hw::amso1100;
using iwarp::Opcode;
using wire::EventId;
using wire::QpState;
using wire::Status;
using wire::WorkId;

namespace
{

bool is_send(WorkId id)
{
	return id >= WorkId::send && id <= WorkId::send_solicited_invalidate;
}
bool is_read(WorkId id)
{
	return id == WorkId::rdma_read || id == WorkId::rdma_read_invalidate;
}

Opcode opcode_of(WorkId id)
{
	switch (id) {
	case WorkId::send_invalidate:
		return Opcode::send_invalidate;
	case WorkId::send_solicited:
		return Opcode::send_solicited;
	case WorkId::send_solicited_invalidate:
		return Opcode::send_solicited_invalidate;
	case WorkId::rdma_write:
		return Opcode::write;
	default:
		return Opcode::send;
	}
}

// Returns the status for an access to the host's own memory.
Status local_status(Verdict verdict)
{
	switch (verdict) {
	case Verdict::good:
		return Status::ok;
	case Verdict::rights:
		return Status::access_violation;
	default:
		return Status::bounds_violation;
	}
}

} // namespace

void QueuePair::serve()
{
	if (config_.sq.bad() || config_.rq.bad())
		return die(EventId::local_catastrophic);
	if (state_ == QpState::error)
		flush();
	else if (connected())
		take_requests();
}

// Takes at most as many requests as the host may have outstanding, regardless of the producer
// index.
void QueuePair::take_requests()
{
	while (connected() && outstanding_.size() < config_.sq.depth() - 1) {
		const auto slot = config_.sq.next();
		if (!slot)
			return;
		SendWork work = parse_send_work(*slot, config_.send_sges, config_.write_sges);
		const bool waits =
			(work.flags & wire::work::fence) || work.id == WorkId::invalidate;
		if (waits && !outstanding_.empty())
			return;
		if (work.fault == Status::ok)
			work.fault = examine(work);
		if (work.fault == Status::ok && work.id == WorkId::fast_register)
			work.fault = card_.regions.fast_register(config_.pd, *slot);
		if (work.fault == Status::ok && work.id == WorkId::invalidate) {
			const auto key = static_cast<std::uint8_t>((*slot)[wire::invalidate::key]);
			const auto stag =
				load_be<std::uint32_t>(*slot, wire::invalidate::stag) | key;
			if (card_.regions.invalidate(config_.pd, stag) != Verdict::good)
				work.fault = Status::invalid_stag;
		}
		config_.sq.take();
		outstanding_.push_back({std::move(work)});
		submit(first_ + outstanding_.size() - 1);
	}
}

// Checks the request before its first byte is sent.
Status QueuePair::examine(const SendWork &work) const
{
	if (is_read(work.id)) {
		if (!config_.ord)
			return Status::zero_read_resources;
		return local_status(card_.regions.check(local(), work.local_stag, work.local_offset,
							work.length, wire::mr_flag::local_write));
	}
	for (const Sge &sge : work.sges.view()) {
		if (!sge.length)
			continue;
		const Verdict verdict = card_.regions.check(local(), sge.stag, sge.offset,
							    sge.length, wire::mr_flag::local_read);
		if (verdict != Verdict::good)
			return local_status(verdict);
	}
	return Status::ok;
}

// Submits a request to the stream. Invalid requests are queued, too, so that earlier ones are
// executed first. A stream that cannot read the data that it must send ends with a Terminate.
void QueuePair::submit(std::uint64_t sequence)
{
	Outstanding &each = outstanding(sequence);
	const SendWork &work = each.work;
	iwarp::Request request{.opcode = opcode_of(work.id),
			       .id = sequence,
			       .fence = (work.flags & wire::work::read_fence) != 0};
	const auto read = [this, sequence](std::uint32_t offset, std::span<std::uint8_t> into) {
		return gather(sequence, offset, into);
	};
	if (work.fault != Status::ok) {
		request.opcode = Opcode::send;
		request.source = {.length = 1, .read = read};
	} else if (is_read(work.id)) {
		request.opcode = Opcode::read_request;
		request.read = {.sink = work.local_stag,
				.sink_offset = work.local_offset,
				.length = work.length,
				.source = work.remote_stag,
				.source_offset = work.remote_offset};
	} else if (is_send(work.id) || work.id == WorkId::rdma_write) {
		request.source = {.length = static_cast<std::uint32_t>(work.sges.length),
				  .read = read};
		request.stag = work.remote_stag;
		request.offset = work.remote_offset;
	} else {
		each.done = true;
		return retire();
	}
	carrier_->post(std::move(request));
}

// Reads data of a request. Returns false if the data cannot be read, which ends the stream.
bool QueuePair::gather(std::uint64_t sequence, std::uint32_t offset, std::span<std::uint8_t> into)
{
	if (!is_outstanding(sequence))
		return false;
	SendWork &work = outstanding(sequence).work;
	const auto bytes = std::as_writable_bytes(into);
	const auto piece = [&](const Sge &sge, std::uint64_t at, std::size_t done,
			       std::size_t size) {
		const Verdict verdict =
			card_.regions.read(local(), sge.stag, sge.offset + at,
					   bytes.subspan(done, size), wire::mr_flag::local_read);
		work.fault = local_status(verdict);
		return verdict == Verdict::good;
	};
	if (work.fault == Status::ok && work.sges.walk(offset, bytes.size(), piece))
		return true;
	failed_ = sequence;
	return false;
}

void QueuePair::completed(std::uint64_t id)
{
	if (id == kReady || !is_outstanding(id))
		return;
	outstanding(id).done = true;
	retire();
	if (connected())
		serve();
}

// Completes finished requests, oldest first.
void QueuePair::retire()
{
	while (!outstanding_.empty() && outstanding_.front().done) {
		const SendWork work = std::move(outstanding_.front().work);
		outstanding_.pop_front();
		++first_;
		if (work.id == WorkId::rdma_read_invalidate)
			card_.regions.invalidate(config_.pd, work.local_stag);
		if (!complete_send(work, Status::ok))
			return;
	}
}

std::optional<std::uint64_t> QueuePair::next_receive()
{
	const auto slot = config_.rq.next();
	if (!slot)
		return std::nullopt;
	receiving_ = parse_receive_work(*slot, config_.receive_sges);
	config_.rq.take();
	// A receive that cannot be used reports its error when the first byte of the message is
	// stored.
	return receiving_->fault == Status::ok ? receiving_->sges.length : UINT64_MAX;
}

bool QueuePair::place_message(std::uint64_t offset, iwarp::View payload)
{
	const auto bytes = std::as_bytes(payload);
	const auto piece = [&](const Sge &sge, std::uint64_t at, std::size_t done,
			       std::size_t size) {
		const Verdict verdict =
			card_.regions.write(local(), sge.stag, sge.offset + at,
					    bytes.subspan(done, size), wire::mr_flag::local_write);
		receiving_->fault = local_status(verdict);
		return verdict == Verdict::good;
	};
	return receiving_->fault == Status::ok &&
	       receiving_->sges.walk(offset, bytes.size(), piece);
}

void QueuePair::received(std::uint64_t length, bool solicited,
			 std::optional<iwarp::Stag> invalidated)
{
	const ReceiveWork work = *std::exchange(receiving_, std::nullopt);
	complete_receive(work, work.fault, static_cast<std::uint32_t>(length), solicited,
			 invalidated.value_or(0));
}

// Completes every outstanding request with a separate entry. The request that caused the end
// reports the reason.
void QueuePair::flush()
{
	const auto failed = std::exchange(failed_, std::nullopt);
	while (!outstanding_.empty()) {
		const Outstanding each = std::move(outstanding_.front());
		outstanding_.pop_front();
		const bool guilty = failed == first_++;
		complete_send(each.work, guilty      ? each.work.fault
					 : each.done ? Status::ok
						     : Status::flushed);
	}
	if (const auto receiving = std::exchange(receiving_, std::nullopt))
		complete_receive(*receiving, receiving->fault == Status::ok ? Status::flushed
									    : receiving->fault);
	while (const auto slot = config_.sq.next()) {
		const SendWork work = parse_send_work(*slot, config_.send_sges, config_.write_sges);
		config_.sq.take();
		complete_send(work, Status::flushed);
	}
	while (const auto slot = config_.rq.next()) {
		const ReceiveWork work = parse_receive_work(*slot, config_.receive_sges);
		config_.rq.take();
		complete_receive(work, Status::flushed);
	}
}

void QueuePair::discard()
{
	outstanding_.clear();
	receiving_.reset();
	while (config_.sq.next())
		config_.sq.take();
	while (config_.rq.next())
		config_.rq.take();
}

CompletionQueue::Entry QueuePair::entry_of(const Posted &posted, Status result) const
{
	CompletionQueue::Entry entry{};
	entry[wire::header::id] = static_cast<std::byte>(posted.id);
	entry[wire::header::result] = static_cast<std::byte>(result);
	entry[wire::work::sge_count] = static_cast<std::byte>(posted.sge_count);
	entry[wire::work::flags] = static_cast<std::byte>(posted.flags);
	store_be<std::uint64_t>(entry, wire::header::context, posted.context);
	store_be<std::uint64_t>(entry, wire::completion::qp_context, config_.user_context);
	store_be<std::uint32_t>(entry, wire::completion::qp_state,
				static_cast<std::uint32_t>(state_));
	store_be<std::uint32_t>(entry, wire::completion::qp_handle, handle);
	return entry;
}

// Returns false if the entry could not be written. The queue pair is then in Terminate or Error.
bool QueuePair::complete_send(const SendWork &work, Status result)
{
	if (result == Status::ok && !(work.flags & wire::work::signaled)) {
		++silent_;
		return true;
	}
	CompletionQueue::Entry entry = entry_of(work, result);
	store_be<std::uint32_t>(entry, wire::work::silent_count, std::exchange(silent_, 0));
	return add(config_.sq_cq, entry, false);
}

bool QueuePair::complete_receive(const ReceiveWork &work, Status result, std::uint32_t bytes,
				 bool solicited, std::uint32_t invalidated)
{
	CompletionQueue::Entry entry = entry_of(work, result);
	store_be<std::uint32_t>(entry, wire::completion::bytes, bytes);
	store_be<std::uint32_t>(entry, wire::completion::stag, invalidated);
	return add(config_.rq_cq, entry, solicited);
}

bool QueuePair::add(CompletionQueue &cq, const CompletionQueue::Entry &entry, bool solicited)
{
	const auto added = cq.add(entry, solicited);
	if (added == CompletionQueue::Added::yes)
		return true;
	const bool full = added == CompletionQueue::Added::full;
	if (!full || &cq != &config_.sq_cq) {
		// Report it once, although every queue pair that uses this CQ detects it.
		if (!std::exchange(cq.failure_reported, true))
			cq.last_event = card_.queues.event(event_message(
				full ? EventId::cq_overflow : EventId::cq_operation_error,
				card_.user_context,
				{wire::ResourceType::cq, cq.handle, cq.config.user_context}));
	}
	die(full && &cq == &config_.sq_cq ? EventId::sq_completion_overflow
					  : EventId::local_catastrophic);
	return false;
}

} // namespace weft::amso1100
