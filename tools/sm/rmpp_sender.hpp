// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Sends answers that do not fit one MAD: the sender's half of RMPP, IBA 13.6. One thread.
 */
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sm/mad_client.hpp"
#include "sm/records.hpp"

namespace weft::sm
{

class RmppSender
{
public:
	/*
	 * Whoever asks for more tables at once has to ask again, as has everybody while so many
	 * bytes of answers wait for acknowledgement.
	 */
	static constexpr std::size_t transfers_of_one = 16;
	static constexpr std::size_t bytes_max = std::size_t{256} << 20;
	static constexpr std::size_t bytes_of_one = bytes_max / 8;

	explicit RmppSender(MadClient &client) : client_(client) {}

	/*
	 * Begin a transfer of records to who asked, by the GUID of its port. `head` has everything
	 * but the RMPP fields.
	 */
	void start(const fabric::MadAddress &to, std::uint64_t requester, const ib::SaMad &head,
		   const RecordSet &records);
	/* An ACK, STOP or ABORT arrived. */
	void handle(const fabric::AddressedMad &mad);
	/* Repeat and give up what is due. */
	void tick(Clock::time_point now);
	/* When tick() is due; the clock's maximum with no transfer under way. */
	Clock::time_point due() const;
	std::size_t transfers() const { return transfers_.size(); }

private:
	struct Transfer {
		fabric::MadAddress to;
		std::uint64_t requester = 0;
		ib::SaMad head{};
		std::vector<std::uint8_t> bytes;
		std::uint32_t segments = 0;
		/* The last segment that was acknowledged, sent, and that may be sent. */
		std::uint32_t acknowledged = 0;
		std::uint32_t sent = 0;
		std::uint32_t window_last = 1;
		unsigned retries = 0;
		Clock::time_point due{};
	};
	/* The requester's LID and transaction. */
	using Key = std::pair<ib::Lid, std::uint64_t>;

	void send_window(Transfer &transfer);
	void send_segment(const Transfer &transfer, std::uint32_t segment);
	void abort(const Transfer &transfer, ib::RmppStatus status);

	MadClient &client_;
	std::map<Key, Transfer> transfers_;
};

} // namespace weft::sm
