// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the messages of an open umad file: those that wait to be read (received MADs, and sends
 * without a response), and outstanding sends.
 */
#pragma once
#include <kern/list.hpp>
#include <kern/memory.hpp>
#include "abi.hpp"

namespace umad
{

class Agent;

/*
 * Maximum number of MADs of a file in each direction, counting each segment of RMPP messages. A
 * message is accepted as a whole if the number is below the limit before it. Unsolicited MADs
 * beyond the limit are dropped. Outcomes of sends are never dropped, because a program may wait for
 * them forever: a send counts as pending until its outcome has been read, and writes beyond the
 * limit are refused.
 */
inline constexpr unsigned int mads_max = 8192;

/*
 * A message that waits to be read: a received message, or the header of a send that got no
 * response.
 */
struct Unread {
	enum class Kind : u8 {
		unsolicited,
		outcome, // the outcome of a send
	};
	const Kind kind;
	kern::ListNode node;
	abi::Header header{};
	/* nullptr for a send that got no response. */
	ib_mad_recv_wc *received = nullptr;
	ib_mad_hdr unanswered{};

	explicit Unread(Kind what) : kind(what) {}
	~Unread() { drop_received(); }
	void drop_received()
	{
		if (received)
			ib_free_recv_mad(std::exchange(received, nullptr));
	}

	/* Size of the message without the header. */
	size_t size() const
	{
		return received ? static_cast<size_t>(received->mad_len) : sizeof(unanswered);
	}
	unsigned int mads() const
	{
		const size_t behind = size() > IB_MGMT_MAD_SIZE ? size() - IB_MGMT_MAD_SIZE : 0;
		return 1 + static_cast<unsigned int>((behind + IB_MGMT_RMPP_DATA - 1) /
						     IB_MGMT_RMPP_DATA);
	}
	/*
	 * Returns the number of MADs that count against mads_max: all, except the one MAD for which
	 * the outcome of a send has reserved space.
	 */
	unsigned int counted_mads() const { return kind == Kind::outcome ? mads() - 1 : mads(); }
};

/* A send, from write() until the midlayer reports its completion. */
class Send
{
public:
	/*
	 * bytes: the MAD, or an RMPP message with one header of its class; at least
	 * IB_MGMT_RMPP_HDR bytes. Context: process. Errors: EINVAL for an invalid size, address or
	 * P_Key index; ENOMEM.
	 */
	static kern::Result<kern::Owned<Send>> create(Agent &agent, const abi::Header &header,
						      kern::ConstBytes bytes);
	~Send();

	ib_mad_hdr &mad() const { return *static_cast<ib_mad_hdr *>(buffer_->mad); }
	ib_mad_send_buf &buffer() const { return *buffer_; }
	unsigned int mads() const { return static_cast<unsigned int>(buffer_->seg_count); }
	/* Returns true if the response to one could be mistaken for the response to the other. */
	bool is_mistakable_for(const Send &other) const;
	/*
	 * Returns the message that reports to the program that there was no response. Empty if the
	 * send needs no response, and on the second call.
	 */
	kern::Owned<Unread> take_outcome();

	/* In the list of the file. */
	kern::ListNode node;

private:
	explicit Send(const abi::Header &header) : header_(header) {}
	kern::Result<> start(Agent &agent, kern::ConstBytes bytes);
	kern::Result<> check_pkey(const ib_mad_agent &agent) const;
	kern::Result<> make_address(ib_mad_agent &agent);
	void fill(kern::ConstBytes bytes);
	bool has_same_destination(const Send &other) const;

	const abi::Header header_;
	ib_ah *address_ = nullptr;
	ib_mad_send_buf *buffer_ = nullptr;
	/* Allocated in advance, so that the outcome can be reported if memory is short. */
	kern::Owned<Unread> outcome_;
};

} // namespace umad
