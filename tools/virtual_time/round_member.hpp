// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Connects the clock of a place to the server of the rounds. The clock advances to the limit of the
// round, and then waits for the next one. Packets of trunks are sent with the report at the end of
// a round, and received before the next one begins.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/file_descriptor.hpp"
#include "base/loop.hpp"
#include "virtual_time/round_frame.hpp"
#include "virtual_time/shared_time.hpp"

namespace weft::virtual_time
{

// Created, used and destroyed on the loop's thread.
class RoundMember final : private SharedTime::Round
{
public:
	struct Handlers {
		// A frame of a trunk arrives now. Returns what is wrong with it, or null.
		std::function<const char *(std::uint32_t trunk, std::span<const std::byte> frame)>
			arrive;
		// Returns true if all scripts of the place have ended.
		std::function<bool()> finished;
		// The lab has ended, or the server has disconnected. Called once.
		std::function<void(const RoundEnd &)> ended;
	};

	// @time is @loop's environment. @place is the index of the place. Waits up to
	// kConnectTime, of real time, for the server.
	RoundMember(Loop &loop, SharedTime &time, std::uint16_t place, std::uint64_t lab,
		    const std::filesystem::path &socket, Handlers handlers);
	~RoundMember();
	RoundMember(const RoundMember &) = delete;
	RoundMember &operator=(const RoundMember &) = delete;

	static constexpr std::chrono::seconds kConnectTime{30};

	// Sends a frame, which arrives after @delay.
	void send(std::uint32_t trunk, std::chrono::nanoseconds delay,
		  std::span<const std::byte> frame);
	// Notifies the server that this place ends now. Nothing may be sent afterwards.
	void end(const RoundEnd &end);

private:
	// Orders packets: arrival, trunk, number.
	using Order = std::tuple<std::uint64_t, std::uint32_t, std::uint64_t>;

	Clock::time_point limit() const override;
	Clock::time_point first_arrival() const override;
	void deliver() override;
	void complete(Clock::time_point next) override;

	void read();
	// Returns what is wrong, or null.
	const char *take(const RoundFrame &frame);
	void fail(const std::string &reason);
	void finish(const RoundEnd &end);
	void flush(RoundBuffer frames);
	std::uint64_t now() const;

	SharedTime &time_;
	const Handlers handlers_;
	FileDescriptor socket_;
	std::optional<Watch> watch_;
	RoundFrameReader reader_;
	std::uint64_t round_ = 0;
	std::uint64_t limit_ = 1;
	bool reported_ = false;
	bool ended_ = false;
	std::vector<RoundPacket> leaving_;
	std::map<std::uint32_t, std::uint64_t> numbers_; // packets sent, by trunk
	std::map<Order, std::vector<std::byte>> arriving_;
};

} // namespace weft::virtual_time
