// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines an endpoint of weft_traffic.ko: one QP with everything that it needs, and the operations
// that tests use.
#pragma once
#include <kern/atomic.hpp>
#include <kern/dma.hpp>
#include <kern/memory.hpp>
#include <kern/wait_queue.hpp>
#include <rdma/driver.hpp>
#include <rdma/ib_verbs.h>
#include "answer.hpp"
#include "arguments.hpp"
#include "events.hpp"

namespace traffic
{

/* Returns the new object, or the error that an error pointer contains. */
template<class T>
kern::Result<T *> checked(T *pointer)
{
	if (rdma::is_err(pointer))
		return kern::Error{rdma::ptr_err(pointer)};
	return pointer;
}

inline constexpr u32 datagram_qkey = 0x11111111;

/*
 * Moves the QP from RESET to RTS, or with until=rtr only to RTR. Arguments: lid=, and for connected
 * types mtu= psn= timeout= retry= rnr= deny=, and alternate= for the LID of an armed alternate
 * path.
 */
kern::Result<> connect_qp(ib_qp *qp, u32 port, u32 remote_qpn, const Arguments &arguments);

/*
 * The number of device removals in progress. Meanwhile all waits for completions end with
 * ECANCELED.
 */
extern kern::Atomic<u32> removals;

/*
 * Memory: one region to send from and one to receive into, each with `depth` slots of `size` bytes.
 * The command specifies whether it uses slots or the whole region. Byte k of a message with seed s
 * is pattern(s, k), so that mixed-up messages, offsets or lengths are detected.
 */
class Endpoint
{
public:
	static kern::Result<kern::Owned<Endpoint>>
	create(ib_device *device, const Arguments &arguments, Answer &answer);
	~Endpoint();

	/*
	 * Connects like connect_qp(). For type ud it also creates the address handle; av_port= is
	 * for a port other than the QP's.
	 */
	kern::Result<> connect(const Arguments &arguments);
	/* Posts `count` receives of `size` bytes each, slot by slot. */
	kern::Result<> post_receives(const Arguments &arguments);
	/*
	 * Posts `count` requests once `after` messages have arrived, waits for all of them, and
	 * reports their results.
	 */
	kern::Result<> send(const Arguments &arguments, Answer &answer);
	/* Waits for `count` receives and checks every byte; posts each again if `repost`. */
	kern::Result<> receive(const Arguments &arguments, Answer &answer);
	/* Checks the receiving region from `offset` on, byte for byte. */
	kern::Result<> verify(const Arguments &arguments, Answer &answer);
	/*
	 * Moves the QP to=err, reset, sqd (which raises an event) or rts. Reports its state, and
	 * the events that have arrived.
	 */
	kern::Result<> state(const Arguments &arguments, Answer &answer);
	/* The SRQ raises its event when fewer than `limit` receives are left. */
	kern::Result<> limit(const Arguments &arguments);
	kern::Result<> read_word(const Arguments &arguments, Answer &answer);
	kern::Result<> resize(const Arguments &arguments);
	/*
	 * Events of the receive CQ are delayed until there are `count` completions, or by `period`
	 * microseconds.
	 */
	kern::Result<> moderate(const Arguments &arguments);
	/*
	 * Arms the receive CQ, and reports the time between the arrival of `count` completions,
	 * which are not polled, and their event. The peer sends them (with after=1) after one
	 * message, which this side sends when it is waiting, so that slow guests do not distort the
	 * result.
	 */
	kern::Result<> arm(const Arguments &arguments);
	kern::Result<> delay(const Arguments &arguments, Answer &answer);
	/*
	 * Stress test of notification: one side sends `count` messages in bursts, at times that
	 * depend on `seed`. The other side receives them, and sleeps whenever arming permits it.
	 * Both need the command `post` first. The test ends if there is no event for `ms`.
	 */
	kern::Result<> burst(const Arguments &arguments, Answer &answer);
	kern::Result<> notify(const Arguments &arguments, Answer &answer);
	/*
	 * Registers the receiving region by fast registration, or binds a memory window of `type` 1
	 * or 2 to a part of it. Reports the key.
	 */
	kern::Result<> register_fast(const Arguments &arguments, Answer &answer);
	kern::Result<> bind(const Arguments &arguments, Answer &answer);
	/* Invalidates the registration, or with window=1 the binding. */
	kern::Result<> invalidate(const Arguments &arguments, Answer &answer);

	static u8 pattern(u32 seed, u32 at)
	{
		return static_cast<u8>(seed * 167 + at + (at >> 8) * 13);
	}

private:
	static constexpr unsigned int wait_ms = 60000;
	static constexpr u32 max_batch = 32;
	static constexpr u32 max_pieces = 4;
	/* A request of any kind, and its memory. */
	struct Request {
		union {
			ib_send_wr wr;
			ib_rdma_wr rdma;
			ib_atomic_wr atomic;
			ib_ud_wr ud;
			ib_reg_wr reg;
			ib_bind_mw_wr bind;
			ib_xrc_wr xrc;
		};
		ib_sge sge[max_pieces];
	};

	explicit Endpoint(ib_device *device);
	kern::Result<> open(const Arguments &arguments);
	/* Returns the next completion, or ETIMEDOUT. */
	kern::Result<ib_wc> wait_completion(ib_cq *cq, unsigned int ms);
	kern::Result<> modify(ib_qp_attr &attr, int mask);
	void describe(Request &request, const Arguments &arguments, u32 number);
	/* Posts one request and waits until it has completed. */
	kern::Result<ib_wc> perform(Request &request);
	kern::Result<> post_receive(u32 slot, u32 size);
	void fill(u32 offset, u32 size, u32 seed);
	/* Returns the offset of the first wrong byte, or @size. */
	u32 check(u32 offset, u32 size, u32 seed) const;

	ib_device *device_;
	u32 port_ = 1;
	ib_qp_type type_ = IB_QPT_RC;
	u32 depth_ = 0;
	u32 size_ = 0;
	u32 receive_size_ = 0;
	u32 next_slot_ = 0;
	u32 armed_at_ = 0;
	kern::WaitQueue completed_;
	kern::Atomic<u32> interrupts_{0};
	EventCounts events_;
	ib_pd *pd_ = nullptr;
	ib_cq *send_cq_ = nullptr;
	ib_cq *recv_cq_ = nullptr;
	ib_srq *srq_ = nullptr;
	ib_qp *qp_ = nullptr;
	// For type XRC: qp_ sends, this one receives, through the SRQ.
	ib_xrcd *xrcd_ = nullptr;
	ib_qp *target_ = nullptr;
	ib_ah *ah_ = nullptr;
	ib_mr *all_ = nullptr;
	ib_mr *fast_ = nullptr;
	ib_mw *window_ = nullptr;
	u32 remote_qpn_ = 0;
	u32 remote_srqn_ = 0;
	kern::OwnedArray<Request> requests_;
	kern::DmaBuffer send_memory_;
	kern::DmaBuffer recv_memory_;
};

} // namespace traffic
