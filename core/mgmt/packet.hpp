/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * One datagram on its way out, and one buffer for a datagram on its way in: what the special QPs hand to the hardware.
 */
#pragma once

#include <ib/mad.hpp>
#include <kern/list.hpp>
#include <kern/memory.hpp>
#include <rdma/ib_mad.h>
#include <rdma/ib_verbs.h>

namespace mgmt
{

class Send;

/* A datagram of a send, which owns it. All but `idle` keep the Send alive. */
struct Packet : ib_cqe {
	alignas(8) std::uint8_t bytes[ib::mad_bytes];
	ib_ud_wr wr;
	ib_sge sge;
	kern::ListNode backlog_node;
	Send *send;
	enum class Place : std::uint8_t {
		idle,
		backlog, /* the special QP's */
		posted,	 /* the hardware has it */
	} place;

	ib::MadHeader &header() { return *reinterpret_cast<ib::MadHeader *>(bytes); }
	ib::RmppHeader &rmpp()
	{
		return *reinterpret_cast<ib::RmppHeader *>(bytes + sizeof(ib::MadHeader));
	}
	ib::Smp &smp() { return *reinterpret_cast<ib::Smp *>(bytes); }
};

/*
 * A receive buffer. While it is posted it belongs to its special QP; after that to whoever handles it, in the end to the agent's
 * handler, who gives it back by ib_free_recv_mad().
 */
struct Receive : ib_mad_recv_wc, ib_cqe {
	ib_wc completion; /* what ib_mad_recv_wc::wc points to */
	kern::ListNode node; /* while posted, and while it waits to be handled, in a list of its special QP; then of its message */
	u64 dma_addr;
	/* What the hardware writes: space for the GRH, then the datagram. Mapped for DMA while posted. */
	struct Buffer {
		ib_grh grh;
		ib::Mad mad;
	};
	alignas(8) Buffer buffer;

	/* Errors: ENOMEM. Context: any. */
	static kern::Result<kern::Owned<Receive>> create();

	const ib::MadHeader &header() const { return buffer.mad.header; }
	const ib::RmppHeader &rmpp() const
	{
		return *reinterpret_cast<const ib::RmppHeader *>(buffer.mad.data);
	}
	ib::Smp &smp() { return *reinterpret_cast<ib::Smp *>(&buffer.mad); }
	bool is_response() const { return buffer.mad.header.is_response(); }

	/* Fills in what a consumer sees of a single MAD. */
	void present();
	/* The receive whose recv_buf.list this is. */
	static Receive *of_link(ib_links *link);
};

static_assert(sizeof(Receive::Buffer) == sizeof(ib_grh) + ib::mad_bytes);

} // namespace mgmt
