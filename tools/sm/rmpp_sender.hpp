// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Sends responses of subnet administration that do not fit into one MAD, by RMPP (IBA 13.6). Only
 * the sender's part of RMPP is implemented. All functions are called on the manager's thread.
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
	 * Limits of transfers to one requester, and of unacknowledged bytes of all transfers.
	 * Beyond them, requests must be repeated.
	 */
	static constexpr std::size_t kTransfersOfOne = 16;
	static constexpr std::size_t kBytesMax = std::size_t{256} << 20;
	static constexpr std::size_t kBytesOfOne = kBytesMax / 8;

	explicit RmppSender(MadClient &client) : client_(client) {}

	/*
	 * Begins a transfer of records to a requester, which is identified by the GUID of its port.
	 * `head` has everything except the RMPP fields.
	 */
	void start(const fabric::MadAddress &to, std::uint64_t requester, const ib::SaMad &head,
		   RecordSet records);
	/* Handles an ACK, STOP or ABORT. */
	void handle(const fabric::AddressedMad &mad);
	/*
	 * Sends segments, one for each requester in rotation. Repeats or drops transfers that are
	 * due at @now.
	 */
	void run(Clock::time_point now, Work &work);
	/* Returns when run() has work to do, or the clock's maximum if there is no transfer. */
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
		/*
		 * Numbers of the last segments that were acknowledged, were sent, and may be sent.
		 */
		std::uint32_t acknowledged = 0;
		std::uint32_t sent = 0;
		std::uint32_t window_last = 1;
		unsigned retries = 0;
		/*
		 * True if the transfer is in the requester's list of transfers with segments to
		 * send.
		 */
		bool sending = false;
		/*
		 * Time at which the acknowledgement is overdue; the clock's maximum while segments
		 * are being sent.
		 */
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
