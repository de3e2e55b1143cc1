// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements the connection of a queue pair: requests of the connection manager, and events for it.
 */
#include "listener.hpp"
#include "qp.hpp"

namespace amso1100
{
namespace
{

static_assert(wire::most_private_data <= IW_CM_PRIVATE_DATA_SIZE);

/* Reads the addresses and the peer's private data from a successful reply. */
void read_reply(const Message &message, iw_cm_event &event)
{
	namespace at = wire::connect_result;
	__builtin_memcpy(event.local.bytes, message.bytes() + at::local_address, sizeof(u32));
	__builtin_memcpy(event.remote.bytes, message.bytes() + at::remote_address, sizeof(u32));
	event.local.port = message.get<u16>(at::local_port);
	event.remote.port = message.get<u16>(at::remote_port);
	const u32 length = message.get<u32>(at::private_length);
	if (length > wire::most_private_data)
		return;
	event.private_data = message.bytes() + at::private_data;
	event.private_data_len = static_cast<u8>(length);
}

u32 at_most(u32 value, u32 limit)
{
	return value < limit ? value : limit;
}

} // namespace

Stream Qp::stream()
{
	kern::Guard guard(stream_lock_);
	return stream_;
}

bool Qp::advance(StreamEvent event, int status, const Message *message)
{
	kern::Guard guard(stream_lock_);
	const StreamStep taken = step(stream_, event);
	stream_ = taken.next;
	report(taken.upcall, status, message);
	return taken.upcall != Upcall::invalid;
}

void Qp::report(Upcall what, int status, const Message *message)
{
	stream_lock_.assert_held();
	iw_cm_event event{};
	switch (what) {
	case Upcall::connected:
		event.event = IW_CM_EVENT_CONNECT_REPLY;
		read_reply(*message, event);
		break;
	case Upcall::refused:
		event.event = IW_CM_EVENT_CONNECT_REPLY;
		event.status = status;
		break;
	case Upcall::accepted:
		event.event = IW_CM_EVENT_ESTABLISHED;
		break;
	case Upcall::closed:
		event.event = IW_CM_EVENT_CLOSE;
		break;
	default:
		return;
	}
	iw_cm_id *const id = id_;
	if (what == Upcall::refused || what == Upcall::closed)
		id_ = nullptr;
	(void)id->event_handler(id, &event);
}

kern::Result<> Qp::begin_stream(StreamEvent event, iw_cm_id &id)
{
	kern::Guard guard(stream_lock_);
	const StreamStep taken = step(stream_, event);
	if (taken.upcall == Upcall::invalid)
		return kern::Error{-EISCONN};
	stream_ = taken.next;
	id_ = &id;
	id.provider_data = reinterpret_cast<void *>(
		Rnic::context_of(number_, rnic_.qp_entry(number_)->generation));
	return {};
}

kern::Result<> Qp::set_reads(const iw_cm_param &param)
{
	return request_state(wire::no_change, at_most(param.ord, rnic_.limits().ord),
			     at_most(param.ird, rnic_.limits().ird));
}

kern::Result<> Qp::connect(iw_cm_id &id, const iw_cm_param &param)
{
	namespace at = wire::qp_connect;
	if (param.private_data_len > wire::most_private_data)
		return kern::Error{-EINVAL};
	if (id.remote.v6)
		return kern::Error{-EPROTONOSUPPORT};
	/* The card must know the interface's current addresses. */
	rnic_.flush_address_changes();
	kern::Guard guard(state_lock_);
	KERN_TRY(set_reads(param));
	KERN_TRY(begin_stream(StreamEvent::connect, id));
	Message message(wire::MessageId::qp_connect);
	message.put_opaque(wire::rnic_handle, rnic_.handle());
	message.put_opaque(at::qp_handle, handle_);
	__builtin_memcpy(message.bytes() + at::remote_address, id.remote.bytes, sizeof(u32));
	message.put(at::remote_port, id.remote.port);
	message.put(at::private_length, u32{param.private_data_len});
	if (param.private_data_len)
		__builtin_memcpy(message.bytes() + at::private_data, param.private_data,
				 param.private_data_len);
	/* From now on, the result is always reported by an event. */
	const auto posted =
		rnic_.channel().post(message, at::private_data + param.private_data_len);
	if (!posted)
		(void)advance(StreamEvent::refused, posted.error());
	return {};
}

kern::Result<> Qp::accept(iw_cm_id &id, const iw_cm_param &param)
{
	namespace at = wire::request_accept;
	const u32 endpoint = static_cast<u32>(reinterpret_cast<u64>(id.provider_data));
	kern::Guard guard(state_lock_);
	const auto begun = [&]() -> kern::Result<> {
		if (param.private_data_len > wire::most_private_data)
			return kern::Error{-EINVAL};
		KERN_TRY(set_reads(param));
		return begin_stream(StreamEvent::accept, id);
	}();
	if (!begun) {
		rnic_.reject(endpoint);
		return begun;
	}
	Message message(wire::MessageId::request_accept);
	message.put_opaque(wire::rnic_handle, rnic_.handle());
	message.put_opaque(at::qp_handle, handle_);
	message.put_opaque(at::endpoint, endpoint);
	message.put(at::private_length, u32{param.private_data_len});
	if (param.private_data_len)
		__builtin_memcpy(message.bytes() + at::private_data, param.private_data,
				 param.private_data_len);
	const auto accepted =
		rnic_.channel().call(message, at::private_data + param.private_data_len);
	if (!accepted) {
		(void)advance(StreamEvent::refused);
		return accepted;
	}
	/* The end of the stream may have been reported before the reply is processed here. */
	return kern::check(advance(StreamEvent::made) ? 0 : -ECONNRESET);
}

kern::Result<> Qp::disconnect(bool abrupt)
{
	kern::Guard guard(state_lock_);
	if (abrupt)
		return end();
	if (!advance(StreamEvent::close))
		return kern::Error{-ENOTCONN};
	return request_state(static_cast<u32>(wire::QpState::closing));
}

} // namespace amso1100
