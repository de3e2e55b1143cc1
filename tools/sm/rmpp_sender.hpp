// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Sends responses that do not fit into one MAD: the sender's half of RMPP, IBA 13.6. Used on one
 * thread.
 */
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <utility>

#include "sm/due_index.hpp"
#include "sm/mad_client.hpp"
#include "sm/records.hpp"
#include "sm/work.hpp"

namespace weft::sm
{

class RmppSender
{
public:
	/*
	 * A requester that asks for more tables at once must repeat its request, and so must every
	 * requester while this many bytes of answers wait for acknowledgement.
	 */
	static constexpr std::size_t kTransfersOfOne = 16;
	static constexpr std::size_t kBytesMax = std::size_t{256} << 20;
	static constexpr std::size_t kBytesOfOne = kBytesMax / 8;

	explicit RmppSender(MadClient &client) : client_(client) {}

	/*
	 * Begin a transfer of records to a requester, which the GUID of its port identifies. `head`
	 * has everything but the RMPP fields.
	 */
	void start(const fabric::MadAddress &to, std::uint64_t requester, const ib::SaMad &head,
		   RecordSet records);
	/* An ACK, STOP or ABORT arrived. */
	void handle(const fabric::AddressedMad &mad);
	/*
	 * Send segments, one for each requester in rotation; repeat and abandon what is due at
	 * @now.
	 */
	void run(Clock::time_point now, Work &work);
	/* When run() has something to do; the clock's maximum with no transfer under way. */
	Clock::time_point due() const;
	std::size_t transfers() const { return transfers_.size(); }

private:
	/* The requester's LID and transaction. */
	using Key = std::pair<ib::Lid, std::uint64_t>;
	struct Transfer {
		fabric::MadAddress to;
		std::uint64_t requester = 0;
		ib::SaMad head{};
		RecordSet records;
		std::uint32_t segments = 0;
		/* The last segment that was acknowledged, sent, and that may be sent. */
		std::uint32_t acknowledged = 0;
		std::uint32_t sent = 0;
		std::uint32_t window_last = 1;
		unsigned retries = 0;
		/* In the requester's list of those that have segments to send. */
		bool sending = false;
		/* When the acknowledgement is overdue; never, while it is sending. */
		Clock::time_point due = Clock::time_point::max();
	};
	struct Requester {
		std::size_t transfers = 0;
		std::size_t bytes = 0;
		std::deque<Key> sending;
	};
	using Transfers = std::map<Key, Transfer>;

	std::uint32_t window_end(const Transfer &transfer) const;
	void begin_sending(const Key &key, Transfer &transfer);
	void send_segment(const Transfer &transfer, std::uint32_t segment);
	void abort(const Transfer &transfer, ib::RmppStatus status);
	void set_due(const Key &key, Transfer &transfer, Clock::time_point due);
	void end(Transfers::iterator transfer);
	void expire(const Key &key, Work &work);
	void send_next(Work &work);

	MadClient &client_;
	Transfers transfers_;
	std::map<std::uint64_t, Requester> requesters_;
	std::size_t bytes_ = 0;
	/* Requesters that have transfers with segments to send. */
	std::deque<std::uint64_t> sending_;
	DueIndex<Key> due_;
};

} // namespace weft::sm
