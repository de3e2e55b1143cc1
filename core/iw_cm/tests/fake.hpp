// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * A driver that connects QPs of software RNICs synchronously, in the caller's task. Only one can
 * exist at a time, because its state is static.
 */
#pragma once
#include <kern/atomic.hpp>
#include <kern/lock.hpp>
#include <kern/memory.hpp>
#include <rdma/iw_cm.h>

namespace iw_cm_fixture
{

class Fake
{
public:
	/* Two RNICs that reach each other. */
	static bool start();
	static void stop();
	static ib_device *device(unsigned int number);
	/*
	 * Delivers a request from 10.0.0.host, or from no address (0), to the port's listener.
	 * False: there is none.
	 */
	static bool request(u16 port, u8 host);

	/* Error that the next call of a kind fails with. */
	static inline int connect_error = 0, accept_error = 0, listen_error = 0;
	/* Tells the next listener of a request, and looks until that is true, before it answers. */
	static inline bool (*asked_at_once)() = nullptr;
	/* The port at which a listen is not answered as long as this is set; how many wait. */
	static inline kern::Atomic<u32> unanswered_port{0};
	static inline kern::Atomic<unsigned int> unanswered{0};
	/* If set, a connect is not answered; below, the QP of the last one. */
	static inline kern::Atomic<bool> holding_connect{false};
	static inline kern::Atomic<ib_qp *> held_qp{nullptr};
	/* Told of what it never promised, or twice. */
	static inline kern::Atomic<unsigned int> rejected{0};
	/* The network is silent: connects get no response. */
	static inline bool still = false;

	static const iw_cm_ops ops;
};

} // namespace iw_cm_fixture
