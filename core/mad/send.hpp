/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Defines a MAD that an agent sends: one datagram, or an RMPP message of many. It completes exactly
 * once (MGMT-03): with the hardware's status, with the response, by timeout, by cancellation, or
 * because the agent or the device is removed.
 */
#pragma once

#include "packet.hpp"
#include "rmpp.hpp"
#include "send_state.hpp"

namespace mad
{

class Agent;

/* The base class is the structure that ib_create_send_mad() returns. */
class Send : public ib_mad_send_buf
{
public:
	/*
	 * from posting to completion: in PendingSends or LocalQueue, then in the list of
	 * decided sends
	 */
	kern::ListNode agent_node;
	kern::ListNode timer_node;           /* in PendingSends while it waits */
	u64 deadline = 0;                    /* kern::now_ns() */
	unsigned tries = 0;                  /* transmissions without a response */
	ib_wc_status status = IB_WC_SUCCESS; /* valid once the state is decided */
	u32 vendor_err = 0;
	/* number of busy packets and running handlers, which delay the completion */
	unsigned holds = 0;
	SendState state = SendState::decided;
	bool awaits_answer = false; /* a response is due after the message has been sent */
	bool reply = false;   /* a reply of the MAD layer: freed on completion without a callback */
	bool transit = false; /* another node's SMP, whose next hop has been decided */

	RmppSender rmpp{0}; /* count() is 0 without RMPP */
	/*
	 * One packet, or one for each segment. Each is allocated separately, as DMA requires.
	 * more_packets has the packets after the first.
	 */
	kern::Owned<Packet> first_packet;
	kern::OwnedArray<kern::Owned<Packet>> more_packets;

	/**
	 * Send::create() - allocate a send with its packets
	 * @agent: the agent that sends
	 * @header_bytes: size of the headers of the class, including the RMPP header
	 * @data_bytes: size of the data after the headers; without RMPP, both must fit into one MAD
	 *
	 * Errors: EINVAL for sizes that do not fit; ENOMEM. Context: any that @gfp permits.
	 */
	static kern::Result<kern::Owned<Send>> create(Agent &agent, u32 remote_qpn, u16 pkey_index,
						      bool rmpp, int header_bytes, int data_bytes,
						      kern::Gfp gfp);

	/* Creates a send without packets for this agent. */
	explicit Send(Agent &owner);

	Agent &agent() const;

	bool is_decided() const { return state == SendState::decided; }
	/* Changes the state. The caller holds the special QP's lock. */
	void step(SendEvent event) { state = next_state(state, event); }
	bool is_rmpp() const { return rmpp.count() != 0; }
	Packet &first() const { return *first_packet; }
	std::uint32_t packet_count() const
	{
		return static_cast<std::uint32_t>(more_packets.size()) + 1;
	}
	/* Returns the packet of a segment. Segments are numbered from 1. */
	Packet &packet(std::uint32_t segment) const
	{
		return segment == 1 ? *first_packet : *more_packets[segment - 2];
	}
	ib::MadHeader &header() const { return first().header(); }

	/* Copies the headers of the first segment into the packet of a segment and numbers it. */
	void prepare_segment(std::uint32_t segment);

private:
	friend class SendQueue;
	unsigned queued_ = 0; /* packets in the send queue that are not posted */
};

/*
 * Every MAD that is sent allocates one Send. The next larger allocation size of the kernel would
 * cost the clearing of another 64 bytes.
 */
static_assert(sizeof(Send) <= 192);

using SendList = kern::List<Send, &Send::agent_node>;

} // namespace mad
