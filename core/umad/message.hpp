// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* A file's messages: received MADs that wait to be read, and sends that are outstanding. */
#pragma once
#include <kern/list.hpp>
#include <kern/memory.hpp>
#include "abi.hpp"

namespace umad
{

class Agent;

/*
 * MADs that a file holds each way, the segments of RMPP messages counted singly; a message that
 * begins below that is taken whole. Unsolicited MADs beyond it are dropped. Outcomes of sends are
 * never dropped, because a program may wait for them forever: a send counts as under way until its
 * outcome has been read, and writes beyond the limit are refused.
 */
inline constexpr unsigned int mads_max = 8192;

/* A message that waits to be read: one received, or the header of a send that was not answered. */
struct Unread {
	enum class Kind : u8 {
		unasked,
		outcome, // of a send
	};
	const Kind kind;
	kern::ListNode node;
	abi::Header header{};
	/* nullptr of a send that was not answered. */
	ib_mad_recv_wc *received = nullptr;
	ib_mad_hdr unanswered{};

	explicit Unread(Kind what) : kind(what) {}
	~Unread() { drop_received(); }
	void drop_received()
	{
		if (received)
			ib_free_recv_mad(std::exchange(received, nullptr));
	}

	/* Bytes behind the header. */
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
	/* Returns the number of MADs that do not use the space of a send. */
	unsigned int unpaid_mads() const { return kind == Kind::outcome ? mads() - 1 : mads(); }
};

/* A send, from the write until the midlayer reports its result. */
class Send
{
public:
	/*
	 * bytes: the MAD, or all of an RMPP message behind one header of its class; at least
	 * IB_MGMT_RMPP_HDR. Context: process. Errors: EINVAL for a size, an address or a P_Key's
	 * index that cannot be, ENOMEM.
	 */
	static kern::Result<kern::Owned<Send>> create(Agent &agent, const abi::Header &header,
						      kern::ConstBytes bytes);
	~Send();

	ib_mad_hdr &mad() const { return *static_cast<ib_mad_hdr *>(buffer_->mad); }
	ib_mad_send_buf &buffer() const { return *buffer_; }
	unsigned int mads() const { return static_cast<unsigned int>(buffer_->seg_count); }
	/* True if the peer could take the answer of one for that of the other. */
	bool is_mistakable_for(const Send &other) const;
	/*
	 * As the program reads it if there was no response; empty for a send that expects none, and
	 * on the second call.
	 */
	kern::Owned<Unread> take_outcome();

	/* In its file's list. */
	kern::ListNode node;

private:
	explicit Send(const abi::Header &header) : header_(header) {}
	kern::Result<> start(Agent &agent, kern::ConstBytes bytes);
	kern::Result<> check_pkey(const ib_mad_agent &agent) const;
	kern::Result<> make_address(ib_mad_agent &agent);
	void fill(kern::ConstBytes bytes);
	bool goes_where(const Send &other) const;

	const abi::Header header_;
	ib_ah *address_ = nullptr;
	ib_mad_send_buf *buffer_ = nullptr;
	/* There from the beginning, so that it cannot be lost for want of memory. */
	kern::Owned<Unread> outcome_;
};

} // namespace umad
