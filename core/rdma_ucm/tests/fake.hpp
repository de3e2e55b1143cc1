// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Replaces rdma_cm in the tests of this directory. The replacement's IDs do nothing by themselves.
 * A test makes them report any events, any number of times and in any order. They follow rdma_cm's
 * rules for handlers and locks, so that lockdep checks them.
 */
#pragma once
#include <kern/atomic.hpp>
#include <kern/lock.hpp>
#include <rdma/rdma_cm.h>

namespace fake
{

/* Calls of rdma_cm that tests count. */
enum class Call : u8 {
	bind,
	resolve_addr,
	resolve_route,
	set_path,
	connect,
	listen,
	accept,
	reject,
	disconnect,
	notify,
	join,
	leave,
	option,
	calls
};

class Cm : public rdma_cm_id
{
public:
	Cm(rdma_cm_event_handler handler, void *of, rdma_ucm_port_space space, ib_qp_type type);
	~Cm();

	static Cm &of(rdma_cm_id *id) { return *static_cast<Cm *>(id); }

	/* Delivers an event as rdma_cm does. */
	int deliver(rdma_cm_event event);
	int deliver(rdma_cm_event_type type, int status = 0)
	{
		return deliver(
			{.event = type, .status = status, .param = {}, .join_context = nullptr});
	}
	/* Simulates a request at a listener. Returns the handler's result. */
	int request(const void *data = nullptr, u8 length = 0);
	/* Binds the ID to the device and sets a path. */
	void resolve();

	kern::Mutex handling;
	/* Parameters of the last join, and of the last accept or connect. */
	void *join_context = nullptr;
	rdma_conn_param param{};
	u8 private_data[256]{};
};

/* The number of existing IDs, the newest ID, and the number of calls of a kind. */
unsigned int alive();
Cm *newest();
unsigned int calls(Call which);
/*
 * Sets the ID for which another thread calls speak(). speak() returns false after the ID has been
 * destroyed.
 */
void set_spoken_for(Cm *cm);
bool speak(int (*what)(Cm &cm));
/* Sets the number of a QP that belongs to no program; initially there is none. */
void set_anothers_qp(u32 number);
/* Sets the result of every call from now on; resets all of this. */
void set_result(int error);
void reset();

/* The device of IDs that are bound to one. */
extern ib_device device;

} // namespace fake
