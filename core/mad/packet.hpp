/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Defines the work requests that special QPs post: one outgoing datagram, or one buffer for an
 * incoming datagram.
 */
#pragma once

#include <ib/mad.hpp>
#include <kern/list.hpp>
#include <kern/memory.hpp>
#include <rdma/ib_mad.h>
#include <rdma/ib_verbs.h>

namespace mad
{

class Send;

/* Agents treat the two SMP classes as one (IBA 14.2). */
constexpr bool same_class(u8 a, u8 b)
{
	constexpr u8 directed = IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE,
		     by_lid = IB_MGMT_CLASS_SUBN_LID_ROUTED;
	return (a == directed ? by_lid : a) == (b == directed ? by_lid : b);
}

/* One datagram of a send, which owns it. A packet in the send queue keeps its Send alive. */
class Packet : public ib_cqe
{
public:
	alignas(8) std::uint8_t bytes[ib::mad_bytes];
	ib_ud_wr wr;
	Send *send;

	ib::MadHeader &header() { return *reinterpret_cast<ib::MadHeader *>(bytes); }
	ib::RmppHeader &rmpp()
	{
		return *reinterpret_cast<ib::RmppHeader *>(bytes + sizeof(ib::MadHeader));
	}
	ib::Smp &smp() { return *reinterpret_cast<ib::Smp *>(bytes); }

private:
	friend class SendQueue;
	enum class Place : std::uint8_t {
		idle,
		backlog, /* waits in the queue */
		posted,  /* posted to the hardware */
	};

	ib_sge sge_;
	kern::ListNode node_; /* in the list of its place */
	Place place_;
	std::uint8_t period_; /* while posted: SendQueue::begin_period() */
};

/*
 * A receive buffer (rdma/receive_queue.hpp). While it is posted, it belongs to its special QP.
 * After that it belongs to the code that handles it, and finally to the agent's handler, which
 * returns it with ib_free_recv_mad().
 */
struct Receive : ib_mad_recv_wc, ib_cqe {
	ib_wc completion; /* ib_mad_recv_wc::wc points to it */
	kern::ListNode
		/*
		 * while posted, and while it waits to be handled: in a list of its special QP; then
		 * in the list of its message
		 */
		node;
	u64 dma_addr;
	/*
	 * Written by the hardware: space for the GRH, followed by the datagram. Mapped for DMA
	 * while posted.
	 */
	struct Buffer {
		ib_grh grh;
		ib::Mad mad;
	};
	alignas(8) Buffer buffer;
	static constexpr u32 dma_bytes = sizeof(Buffer);
	void *dma_memory() { return &buffer; }

	/* Errors: ENOMEM. Context: any. */
	static kern::Result<kern::Owned<Receive>> create();

	const ib::MadHeader &header() const { return buffer.mad.header; }
	const ib::RmppHeader &rmpp() const
	{
		return *reinterpret_cast<const ib::RmppHeader *>(buffer.mad.data);
	}
	ib::Smp &smp() { return *reinterpret_cast<ib::Smp *>(&buffer.mad); }
	bool is_response() const { return buffer.mad.header.is_response(); }

	/* Fills in the structures that the consumer sees, for a message of one MAD. */
	void present();
	/* Returns the Receive that contains this recv_buf.list. */
	static Receive *of_link(ib_list_head *link);
};

static_assert(sizeof(Receive::Buffer) == sizeof(ib_grh) + ib::mad_bytes);

} // namespace mad
