// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "fake.hpp"

#include <kern/kunit_fixture.hpp>
#include <rdma/driver.hpp>
#include "../../../hw/soft/rnic.h"

namespace iw_cm_fixture
{
namespace
{

struct Link {
	iw_cm_id *active, *passive;
	ib_qp *active_qp;
	iw_cm_address from;
	int users; /* IDs whose last event has not been delivered yet */
};

constexpr unsigned int most = 8;
iw_cm_id *listeners[most];
ib_device *devices[2];

iw_cm_id *find(u16 port, const ib_device *device = nullptr)
{
	for (iw_cm_id *id : listeners)
		if (id && id->local.port == port && (!device || id->device == device))
			return id;
	return nullptr;
}

void say(iw_cm_id *id, iw_cm_event_type type, int status = 0, const void *data = nullptr,
	 u8 length = 0)
{
	iw_cm_event event{};
	event.event = type;
	event.status = status;
	event.local = id->local;
	event.remote = id->remote;
	event.private_data = data;
	event.private_data_len = length;
	(void)id->event_handler(id, &event);
}

void drop(Link *link)
{
	if (--link->users == 0)
		kern::destroy(link);
}

/* The active end gets its last event. */
void end_active(Link *link, iw_cm_event_type type, int status)
{
	iw_cm_id *const id = link->active;
	if (!id)
		return;
	link->active = nullptr;
	id->provider_data = nullptr;
	say(id, type, status);
	drop(link);
}

void end_passive(Link *link)
{
	iw_cm_id *const id = link->passive;
	if (!id)
		return;
	link->passive = nullptr;
	id->provider_data = nullptr;
	say(id, IW_CM_EVENT_CLOSE);
	drop(link);
}

int connect(iw_cm_id *id, const iw_cm_param *param)
{
	if (Fake::holding_connect.load_acquire()) {
		Fake::held_qp.store_release(param->qp);
		(void)kern::kunit::eventually([] { return !Fake::holding_connect.load_acquire(); });
	}
	if (const int error = std::exchange(Fake::connect_error, 0))
		return error;
	auto made = kern::make<Link>(kern::Gfp::kernel);
	if (!made)
		return made.error();
	Link *const link = made.take().release();
	*link = {id, nullptr, param->qp, {}, 1};
	link->from.port = 4711;
	id->provider_data = link;
	if (Fake::still)
		return 0;
	iw_cm_id *const listener = find(id->remote.port);
	iw_cm_event event{};
	event.event = IW_CM_EVENT_CONNECT_REQUEST;
	event.local = id->remote;
	event.remote = link->from;
	event.private_data = param->private_data;
	event.private_data_len = param->private_data_len;
	event.provider_data = link;
	if (!listener || listener->event_handler(listener, &event) != 0)
		end_active(link, IW_CM_EVENT_CONNECT_REPLY, -ECONNREFUSED);
	return 0;
}

int accept(iw_cm_id *id, const iw_cm_param *param)
{
	auto *const link = static_cast<Link *>(id->provider_data);
	int error = std::exchange(Fake::accept_error, 0);
	if (!error && !link->active)
		error = -ECONNRESET;
	if (!error)
		error = soft_stream(link->active_qp, param->qp);
	if (error) {
		end_active(link, IW_CM_EVENT_CONNECT_REPLY, -ECONNRESET);
		return error;
	}
	link->passive = id;
	link->users++;
	say(id, IW_CM_EVENT_ESTABLISHED);
	say(link->active, IW_CM_EVENT_CONNECT_REPLY, 0, param->private_data,
	    param->private_data_len);
	return 0;
}

int reject(iw_cm_id *id, const void *, u8)
{
	Fake::rejected.fetch_add(1);
	if (auto *const link = static_cast<Link *>(id->provider_data))
		end_active(link, IW_CM_EVENT_CONNECT_REPLY, -ECONNRESET);
	return 0;
}

/* Sends a request with no peer id, from 10.0.0.host; 0: from no address. */
void ask(iw_cm_id *listener, u8 host)
{
	iw_cm_event event{};
	event.event = IW_CM_EVENT_CONNECT_REQUEST;
	event.local.bytes[0] = 10;
	event.local.bytes[3] = 2;
	event.local.port = listener->local.port;
	event.remote.bytes[0] = host ? u8{10} : u8{0};
	event.remote.bytes[3] = host;
	event.remote.port = 4711;
	(void)listener->event_handler(listener, &event);
}

void disconnect(iw_cm_id *id, bool abrupt)
{
	auto *const link = static_cast<Link *>(id->provider_data);
	if (!link)
		return;
	const bool connected = link->passive;
	if (!connected && !abrupt)
		return;
	link->users++;
	end_active(link, connected ? IW_CM_EVENT_CLOSE : IW_CM_EVENT_CONNECT_REPLY,
		   connected ? 0 : -ECONNABORTED);
	end_passive(link);
	drop(link);
}

int create_listen(iw_cm_id *id, unsigned int)
{
	if (const auto done = std::exchange(Fake::asked_at_once, nullptr)) {
		ask(id, 1);
		(void)kern::kunit::eventually(done);
	}
	if (Fake::unanswered_port.load_acquire() == id->local.port) {
		Fake::unanswered.fetch_add(1);
		(void)kern::kunit::eventually(
			[&] { return Fake::unanswered_port.load_acquire() != id->local.port; });
		Fake::unanswered.fetch_sub(1);
	}
	if (const int error = std::exchange(Fake::listen_error, 0))
		return error;
	if (find(id->local.port, id->device))
		return -EADDRINUSE;
	for (iw_cm_id *&place : listeners) {
		if (place)
			continue;
		place = id;
		return 0;
	}
	return -ENOMEM;
}

void destroy_listen(iw_cm_id *id)
{
	for (iw_cm_id *&place : listeners)
		if (place == id)
			place = nullptr;
}

} // namespace

constinit const iw_cm_ops Fake::ops = {
	.connect = connect,
	.accept = accept,
	.reject = reject,
	.disconnect = disconnect,
	.create_listen = create_listen,
	.destroy_listen = destroy_listen,
};

bool Fake::start()
{
	const soft_options options = {};
	connect_error = accept_error = listen_error = 0;
	asked_at_once = nullptr;
	rejected.store_release(0);
	unanswered_port.store_release(0);
	holding_connect.store_release(false);
	held_qp.store_release(nullptr);
	still = false;
	for (ib_device *&device : devices) {
		device = soft_create_rnic(&options);
		if (rdma::is_err(device) || iw_cm_add_device(device, &ops) != 0)
			return false;
	}
	return true;
}

void Fake::stop()
{
	for (ib_device *&device : devices) {
		if (!device || rdma::is_err(device))
			continue;
		iw_cm_remove_device(device);
		soft_destroy(std::exchange(device, nullptr));
	}
}

bool Fake::request(u16 port, u8 host)
{
	iw_cm_id *const listener = find(port);
	if (listener)
		ask(listener, host);
	return listener;
}

ib_device *Fake::device(unsigned int number)
{
	return devices[number];
}

} // namespace iw_cm_fixture
