// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "listener.hpp"

#include <hw/amso1100/events.hpp>
#include "ib_device.hpp"
#include "qp.hpp"

namespace amso1100
{
namespace
{

/*
 * Encodes a value as the provider_data of an ID. For a connection request, this is the card's
 * handle.
 */
void *encode(u64 value)
{
	return reinterpret_cast<void *>(value);
}

u32 endpoint_of(const iw_cm_id &id)
{
	return static_cast<u32>(reinterpret_cast<u64>(id.provider_data));
}

int connect(iw_cm_id *id, const iw_cm_param *param)
{
	return Qp::of(param->qp).connect(*id, *param).error();
}

int accept(iw_cm_id *id, const iw_cm_param *param)
{
	return Qp::of(param->qp).accept(*id, *param).error();
}

int reject(iw_cm_id *id, const void *, u8)
{
	/* The card cannot send private data in a reject. */
	IbDevice::rnic_of(id->device).reject(endpoint_of(*id));
	return 0;
}

/* If the QP has been destroyed in the meantime, the end of its stream has already been reported. */
void disconnect(iw_cm_id *id, bool abrupt)
{
	Rnic &rnic = IbDevice::rnic_of(id->device);
	const u64 context = reinterpret_cast<u64>(id->provider_data);
	kern::Guard guard(rnic.users_lock());
	const QpEntry *const entry = rnic.qp_entry(static_cast<u32>(context));
	if (entry && entry->qp && entry->generation == context >> 32)
		kern::ignore(entry->qp->disconnect(abrupt));
}

int create_listen(iw_cm_id *id, unsigned int backlog)
{
	auto made = Listener::create(IbDevice::rnic_of(id->device), *id, backlog);
	if (!made)
		return made.error();
	id->provider_data = made.take().release();
	return 0;
}

void destroy_listen(iw_cm_id *id)
{
	kern::destroy(static_cast<Listener *>(std::exchange(id->provider_data, nullptr)));
}

} // namespace

constinit const iw_cm_ops connection_ops = {
	.connect = connect,
	.accept = accept,
	.reject = reject,
	.disconnect = disconnect,
	.create_listen = create_listen,
	.destroy_listen = destroy_listen,
};

kern::Result<kern::Owned<Listener>> Listener::create(Rnic &rnic, iw_cm_id &id, unsigned int backlog)
{
	auto listener = KERN_TRY(kern::make<Listener>(kern::Gfp::kernel, rnic, id));
	KERN_TRY(listener->start(backlog));
	return listener;
}

kern::Result<> Listener::start(unsigned int backlog)
{
	namespace at = wire::listen_create;
	if (id_.local.v6)
		return kern::Error{-EPROTONOSUPPORT};
	/* The card must know the interface's current addresses. */
	rnic_.flush_address_changes();
	number_ = KERN_TRY(rnic_.handlers().alloc(this, 1, ~0u >> 1));
	Message message(wire::MessageId::listen_create);
	message.put_opaque(at::user_context, Rnic::context_of(number_, rnic_.next_generation()));
	message.put_opaque(at::rnic_handle, rnic_.handle());
	__builtin_memcpy(message.bytes() + at::address, id_.local.bytes, sizeof(u32));
	message.put(at::port, id_.local.port);
	message.put(at::backlog, u32{backlog});
	KERN_TRY(rnic_.channel().call(message, at::size));
	handle_ = message.get_opaque<u32>(at::reply_handle);
	live_ = true;
	return {};
}

Listener::~Listener()
{
	if (live_) {
		Message message(wire::MessageId::listen_destroy);
		message.put_opaque(wire::rnic_handle, rnic_.handle());
		message.put_opaque(wire::object_handle, handle_);
		/* If this fails, the card does not listen any more either. */
		kern::ignore(rnic_.channel().call(message, wire::object_request_size));
	}
	if (number_)
		rnic_.handlers().erase(number_);
	rnic_.flush_events();
}

void Listener::handle_event(const Message &event)
{
	namespace at = wire::connection_request;
	if (event.bytes()[wire::header::id] != static_cast<u8>(wire::EventId::connection_request))
		return;
	const u32 endpoint = event.get_opaque<u32>(at::endpoint);
	const u32 length = event.get<u32>(at::private_length);
	iw_cm_event request{};
	request.event = IW_CM_EVENT_CONNECT_REQUEST;
	__builtin_memcpy(request.local.bytes, event.bytes() + at::local_address, sizeof(u32));
	__builtin_memcpy(request.remote.bytes, event.bytes() + at::remote_address, sizeof(u32));
	request.local.port = event.get<u16>(at::local_port);
	request.remote.port = event.get<u16>(at::remote_port);
	request.private_data = event.bytes() + at::private_data;
	request.private_data_len = static_cast<u8>(length);
	request.provider_data = encode(endpoint);
	/* A request whose private data is too long is invalid. */
	if (length > wire::most_private_data || id_.event_handler(&id_, &request) != 0)
		rnic_.reject_later(endpoint);
}

} // namespace amso1100
