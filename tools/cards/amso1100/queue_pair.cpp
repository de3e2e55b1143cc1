// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the states of a queue pair and of its connection. Work requests are handled in
// requests.cpp.
#include "cards/amso1100/queue_pair.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace weft::amso1100
{

namespace wire = hw::amso1100;
using iwarp::Access;
using wire::EventId;
using wire::QpState;
using wire::Status;

namespace
{

// Returns true if the state machine permits this transition.
bool may_follow(QpState from, QpState to)
{
	switch (from) {
	case QpState::idle:
		return to == QpState::connecting || to == QpState::error;
	case QpState::connecting:
		return to == QpState::rts || to == QpState::idle || to == QpState::error;
	case QpState::rts:
		return to == QpState::closing || to == QpState::terminate || to == QpState::error;
	case QpState::closing:
		return to == QpState::terminate || to == QpState::error;
	case QpState::terminate:
		return to == QpState::error;
	case QpState::error:
		return to == QpState::idle;
	}
	return false;
}

Access access_of(Verdict verdict)
{
	switch (verdict) {
	case Verdict::good:
		return Access::done;
	case Verdict::invalid_stag:
	// Report an invalid STag, so that a peer learns nothing about other PDs.
	case Verdict::other_pd:
		return Access::invalid_stag;
	case Verdict::rights:
		return Access::refused;
	case Verdict::bounds:
	case Verdict::wrapped:
		return Access::bounds;
	}
	return Access::refused;
}

// Returns the event that reports a refused Write to the host. read_event() does so for Reads.
EventId write_event(Verdict verdict)
{
	switch (verdict) {
	case Verdict::bounds:
		return EventId::tagged_bounds_violation;
	case Verdict::rights:
		return EventId::tagged_rights_violation;
	case Verdict::other_pd:
		return EventId::tagged_invalid_pd;
	case Verdict::wrapped:
		return EventId::wrap_error;
	default:
		return EventId::tagged_invalid_stag;
	}
}

EventId read_event(Verdict verdict)
{
	switch (verdict) {
	case Verdict::bounds:
		return EventId::reads_bounds_violation;
	case Verdict::rights:
		return EventId::reads_rights_violation;
	case Verdict::other_pd:
		return EventId::reads_invalid_pd;
	case Verdict::wrapped:
		return EventId::reads_wrap_error;
	default:
		return EventId::reads_invalid_stag;
	}
}

} // namespace

QueuePair::QueuePair(std::uint32_t own_handle, std::uint16_t place, const Card &card,
		     const Config &config)
    : handle(own_handle), place_(place), card_(card), config_(config),
      zero_stag_(card.privileged && (config.flags & wire::qp_flag::zero_stag))
{
	++config_.sq_cq.users;
	++config_.rq_cq.users;
}

QueuePair::~QueuePair()
{
	drop_connection();
	--config_.sq_cq.users;
	--config_.rq_cq.users;
}

// Changes the state, which is done nowhere else.
void QueuePair::enter(QpState state)
{
	if (!may_follow(state_, state))
		throw std::logic_error("a queue pair cannot go there");
	state_ = state;
	// Clear the state that the previous connection has left.
	if (state == QpState::idle) {
		silent_ = 0;
		refused_.reset();
	}
	if (state == QpState::rts)
		MessageQueues::count(card_.queues.counts.connections);
	if (state == QpState::terminate || state == QpState::error)
		flush();
}

void QueuePair::report(EventId id)
{
	last_event_ = card_.queues.event(event_message(
		id, card_.user_context, {wire::ResourceType::qp, handle, config_.user_context},
		static_cast<std::uint32_t>(state_)));
}

// Reports the result of connect() and the resulting state. There is exactly one such event for each
// connect().
void QueuePair::report_connect(Status result, iwarp::View private_data)
{
	Message message = event_message(EventId::connect_result, card_.user_context,
					{wire::ResourceType::qp, handle, config_.user_context},
					static_cast<std::uint32_t>(state_));
	message[wire::header::result] = static_cast<std::byte>(result);
	if (result == Status::ok)
		put_connection(message, wire::connect_result::local_address, carrier_->pair(),
			       private_data);
	last_event_ = card_.queues.event(message);
}

void QueuePair::set_reads(std::uint32_t ord, std::uint32_t ird)
{
	if (ord != wire::no_change)
		config_.ord = std::min(ord, kMostReads);
	if (ird != wire::no_change)
		config_.ird = std::min(ird, kMostReads);
}

Status QueuePair::modify(QpState next)
{
	if (next == state_)
		return Status::ok;
	switch (next) {
	case QpState::error:
		abandon();
		return Status::ok;
	case QpState::closing:
		if (state_ != QpState::rts)
			return Status::invalid_qp_state;
		enter(QpState::closing);
		carrier_->close();
		return Status::ok;
	case QpState::idle:
		if (state_ != QpState::error)
			return Status::invalid_qp_state;
		enter(QpState::idle);
		return Status::ok;
	default:
		return Status::invalid_qp_state;
	}
}

// Moves the queue pair to Error at the host's request. The event of a pending connect or close is
// reported. In RTS there is no event, because the reply to the request already shows that the
// connection has ended.
void QueuePair::abandon()
{
	const QpState before = state_;
	drop_connection();
	if (before == QpState::error)
		return;
	enter(QpState::error);
	if (before == QpState::connecting)
		report_connect(Status::connection_reset);
	else if (before == QpState::closing)
		report(EventId::connection_reset);
}

std::uint64_t QueuePair::leave()
{
	const QpState before = state_;
	drop_connection();
	discard();
	if (before == QpState::connecting) {
		enter(QpState::error);
		report_connect(Status::connection_reset);
	}
	return last_event_;
}

void QueuePair::drop_connection()
{
	if (iwarp::Carrier *const carrier = std::exchange(carrier_, nullptr)) {
		carrier->set_owner(nullptr);
		carrier->abort();
	}
}

// Moves the queue pair to Error because the card cannot continue to use it.
void QueuePair::die(EventId why)
{
	const QpState before = state_;
	if (before == QpState::error || before == QpState::terminate)
		return;
	drop_connection();
	enter(QpState::error);
	if (before == QpState::connecting)
		report_connect(Status::connection_reset);
	report(why);
	if (before == QpState::rts || before == QpState::closing)
		report(EventId::connection_reset);
}

void QueuePair::refuse_to_connect(Status why)
{
	report_connect(why);
}

void QueuePair::connect(tcp::Stack &stack, const tcp::Endpoint &remote, iwarp::Bytes private_data)
{
	if (state_ != QpState::idle)
		return refuse_to_connect(Status::invalid_qp_state);
	const auto ird = static_cast<std::uint16_t>(config_.ird);
	const auto ord = static_cast<std::uint16_t>(config_.ord);
	iwarp::StreamConfig config{.initiator = true, .ird = ird, .ord = ord};
	config.start.revision = 2;
	// The initiator sends an empty Write first, so that the responder may send at any time.
	config.start.enhanced =
		iwarp::Enhanced{.ird = ird, .ord = ord, .peer_to_peer = true, .by_write = true};
	config.start.private_data = std::move(private_data);
	iwarp::Carrier &carrier = card_.connections.make(config, *this);
	if (!carrier.connect(stack, remote)) {
		card_.connections.forget(carrier);
		return refuse_to_connect(Status::network_unreachable);
	}
	carrier_ = &carrier;
	enter(QpState::connecting);
}

void QueuePair::accept(iwarp::Carrier &carrier, const iwarp::Bytes &private_data)
{
	carrier_ = &carrier;
	carrier.set_owner(this);
	enter(QpState::connecting);
	enter(QpState::rts);
	carrier.accept(private_data, config_.ird, config_.ord);
	serve();
}

void QueuePair::established(const iwarp::StartFrame &reply)
{
	if (reply.private_data.size() > wire::most_private_data) {
		drop_connection();
		enter(QpState::idle);
		return report_connect(Status::connection_reset);
	}
	enter(QpState::rts);
	report_connect(Status::ok, reply.private_data);
	if (reply.enhanced && reply.enhanced->peer_to_peer)
		carrier_->post({.opcode = iwarp::Opcode::write, .id = kReady});
	serve();
}

Status QueuePair::connect_failure(const iwarp::End &end) const
{
	const auto how = carrier_->tcp_end();
	if (how == tcp::End::timed_out)
		return Status::connection_timed_out;
	if (how == tcp::End::unreachable)
		return Status::host_unreachable;
	if (how == tcp::End::reset && !carrier_->started())
		return Status::connection_refused;
	static_cast<void>(end);
	return Status::connection_reset;
}

void QueuePair::ended(const iwarp::End &end)
{
	if (state_ == QpState::connecting) {
		const Status why = connect_failure(end);
		carrier_ = nullptr;
		enter(QpState::idle);
		return report_connect(why);
	}
	finish(end);
}

// First reports the error of the peer or of this side, if there was one, and then the close.
void QueuePair::finish(const iwarp::End &end)
{
	const auto how = std::exchange(carrier_, nullptr)->tcp_end();
	std::optional<EventId> first;
	EventId last = EventId::connection_reset;
	switch (end.kind) {
	case iwarp::End::Kind::closed:
		last = outstanding_.empty() ? EventId::close_complete : EventId::bad_close;
		break;
	case iwarp::End::Kind::lost:
		if (!how)
			last = EventId::bad_close;
		else if (how == tcp::End::timed_out || how == tcp::End::unreachable)
			last = EventId::connection_lost;
		break;
	case iwarp::End::Kind::failed:
		first = refused_ ? refused_ : protocol_event(end.error);
		if (receiving_ && end.error == iwarp::errors::kMessageTooLong)
			receiving_->fault = Status::total_length_too_big;
		break;
	case iwarp::End::Kind::terminated:
		first = EventId::terminate_received;
		break;
	case iwarp::End::Kind::refused:
		break;
	}
	if (first) {
		enter(QpState::terminate);
		report(*first);
	}
	enter(QpState::error);
	report(last);
}

std::optional<EventId> QueuePair::protocol_event(const iwarp::Error &error) const
{
	namespace errors = iwarp::errors;
	static constexpr std::pair<iwarp::Error, EventId> kEvents[] = {
		{errors::kCrc, EventId::invalid_crc},
		{errors::kMarker, EventId::bad_fpdu},
		{errors::kTaggedVersion, EventId::invalid_ddp_version},
		{errors::kUntaggedVersion, EventId::invalid_ddp_version},
		{errors::kRdmapVersion, EventId::invalid_rdma_version},
		{errors::kUnexpectedOpcode, EventId::unexpected_opcode},
		{errors::kQueueNumber, EventId::invalid_queue_number},
		{errors::kStreamCatastrophic, EventId::read_too_small},
		{errors::kNoBuffer, EventId::invalid_msn_range},
		{errors::kSequenceNumber, EventId::invalid_msn_gap},
		{errors::kMessageOffset, EventId::invalid_msn_gap},
		{errors::kTaggedInvalidStag, EventId::tagged_invalid_stag},
		{errors::kTaggedBounds, EventId::tagged_bounds_violation},
		{errors::kTaggedWrapped, EventId::wrap_error},
		{errors::kWrapped, EventId::reads_wrap_error},
	};
	const auto found =
		std::ranges::find(kEvents, error, &std::pair<iwarp::Error, EventId>::first);
	return found == std::end(kEvents) ? std::nullopt : std::optional(found->second);
}

Access QueuePair::place(iwarp::Stag stag, std::uint64_t offset, iwarp::View payload)
{
	if (!(config_.flags & wire::qp_flag::rdma_write)) {
		refused_ = EventId::write_not_enabled;
		return Access::refused;
	}
	const Verdict verdict = card_.regions.write(remote(), stag, offset, std::as_bytes(payload),
						    wire::mr_flag::remote_write);
	if (verdict != Verdict::good)
		refused_ = write_event(verdict);
	return access_of(verdict);
}

Access QueuePair::fetch(iwarp::Stag stag, std::uint64_t offset, std::span<std::uint8_t> into)
{
	if (!(config_.flags & wire::qp_flag::read_response)) {
		refused_ = EventId::read_not_enabled;
		return Access::refused;
	}
	const Verdict verdict = card_.regions.read(
		remote(), stag, offset, std::as_writable_bytes(into), wire::mr_flag::remote_read);
	if (verdict != Verdict::good)
		refused_ = read_event(verdict);
	return access_of(verdict);
}

Access QueuePair::invalidate(iwarp::Stag stag)
{
	const Verdict verdict = card_.regions.invalidate_for_peer(config_.pd, stag);
	if (verdict != Verdict::good)
		refused_ = write_event(verdict);
	return access_of(verdict);
}

// The stream has already checked that the response is for the range that was requested.
Access QueuePair::place_response(iwarp::Stag stag, std::uint64_t offset, iwarp::View payload)
{
	return access_of(card_.regions.write(local(), stag, offset, std::as_bytes(payload),
					     wire::mr_flag::local_write));
}

} // namespace weft::amso1100
