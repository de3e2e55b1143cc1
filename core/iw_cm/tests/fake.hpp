// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Provides a fake driver, which connects QPs of software RNICs synchronously, in the caller's task.
 * Only one can exist at a time, because its state is static.
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
	 * Returns false if there is no listener.
	 */
	static bool request(u16 port, u8 host);

	/* Error that the next call of a kind fails with. */
	static inline int connect_error = 0, accept_error = 0, listen_error = 0;
	/*
	 * If set, the next listen delivers a request and waits until this returns true before it
	 * returns.
	 */
	static inline bool (*asked_at_once)() = nullptr;
	/*
	 * While this is set, listening on this port does not return; the second one counts the
	 * waiting calls.
	 */
	static inline kern::Atomic<u32> unanswered_port{0};
	static inline kern::Atomic<unsigned int> unanswered{0};
	/* If set, a connect is not answered. The next one is the QP of the last connect. */
	static inline kern::Atomic<bool> holding_connect{false};
	static inline kern::Atomic<ib_qp *> held_qp{nullptr};
	/* Counts events that the CM rejected because they were not promised, or came twice. */
	static inline kern::Atomic<unsigned int> rejected{0};
	/* The network is silent: connects get no response. */
	static inline bool still = false;

	static const iw_cm_ops ops;
};

} // namespace iw_cm_fixture
