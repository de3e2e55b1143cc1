// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the frames between the places of a lab in virtual time and the server of the rounds
// (Documentation/virtual-time-hosts.rst, "The protocol of rounds"). All places run on one host, so
// integers have its order of bytes. This code does not use sockets.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weft::virtual_time
{

// Version of everything in this header. Places of different versions are refused.
constexpr std::uint16_t kRoundVersion = 1;
constexpr std::size_t kMostRoundText = 512;
// The frame of a trunk, with its header: a packet run of 64 KiB is the largest one.
constexpr std::size_t kMostTrunkFrame = 65'660;
// A time that means "never". Times are nanoseconds since the start of the lab, and lower than this.
constexpr std::uint64_t kNoTime = std::uint64_t{1} << 62;

enum class RoundFrameType : std::uint8_t {
	hello = 1,  // from a place
	packet = 2, // a frame of a trunk
	report = 3, // from a place: it has done everything below the limit of the round
	grant = 4,  // from the server: the limit of the next round
	end = 5,    // the place, or the lab, has ended
};

struct RoundFrameHeader {
	std::uint32_t body_bytes;
	RoundFrameType type;
	std::uint8_t zero[3];
};
static_assert(sizeof(RoundFrameHeader) == 8);

struct RoundHello {
	char magic[8];
	std::uint16_t version;
	std::uint16_t place; // its index in the lab
	std::uint32_t zero;
	std::uint64_t lab; // identifies the lab and its seed
};
static_assert(sizeof(RoundHello) == 24);
constexpr char kRoundMagic[9] = "weft-rnd";

// Followed by the frame of the trunk.
struct RoundPacketBody {
	std::uint32_t trunk; // its index in the lab
	std::uint32_t zero;
	std::uint64_t arrival; // virtual time
	std::uint64_t number;  // counted for each direction of the trunk
};
static_assert(sizeof(RoundPacketBody) == 24);

struct RoundReport {
	std::uint64_t round;
	std::uint64_t next;    // the time of the place's next event, or kNoTime
	std::uint8_t finished; // 1 if all scripts of the place have ended
	std::uint8_t zero[7];
};
static_assert(sizeof(RoundReport) == 24);

struct RoundGrant {
	std::uint64_t round;
	std::uint64_t limit; // events before this time may be executed
};
static_assert(sizeof(RoundGrant) == 16);

// Followed by the reason.
struct RoundEndBody {
	std::uint8_t failed; // 0 or 1
	std::uint8_t zero[7];
};
static_assert(sizeof(RoundEndBody) == 8);

constexpr std::size_t kMostRoundBody = sizeof(RoundPacketBody) + kMostTrunkFrame;

struct RoundPacket {
	std::uint32_t trunk = 0;
	std::uint64_t arrival = 0;
	std::uint64_t number = 0;
	std::vector<std::byte> frame;
};
struct RoundEnd {
	bool failed = false;
	std::string reason;
};

using RoundBuffer = std::vector<std::byte>;

// Append a frame to @out.
void append_hello(RoundBuffer &out, std::uint16_t place, std::uint64_t lab);
void append_packet(RoundBuffer &out, const RoundPacket &packet);
void append_report(RoundBuffer &out, std::uint64_t round, std::uint64_t next, bool finished);
void append_grant(RoundBuffer &out, std::uint64_t round, std::uint64_t limit);
// A reason that is too long is cut.
void append_end(RoundBuffer &out, const RoundEnd &end);

struct RoundFrame {
	RoundFrameType type;
	std::span<const std::byte> body;
};

// Read the bodies of frames. Return nothing if a body is malformed.
std::optional<RoundHello> read_hello(std::span<const std::byte> body);
std::optional<RoundPacket> read_round_packet(std::span<const std::byte> body);
std::optional<RoundReport> read_report(std::span<const std::byte> body);
std::optional<RoundGrant> read_grant(std::span<const std::byte> body);
// Characters that are not printable ASCII are replaced.
std::optional<RoundEnd> read_end(std::span<const std::byte> body);

// Splits a stream of bytes into frames.
class RoundFrameReader
{
public:
	void add(std::span<const std::byte> bytes);
	// Returns the next frame, which is valid until add(). Returns nothing if it is not
	// complete, or if the stream is malformed.
	std::optional<RoundFrame> next();
	bool malformed() const { return malformed_; }

private:
	RoundBuffer bytes_;
	std::size_t taken_ = 0;
	bool malformed_ = false;
};

// Returns a time as text, such as "1.000000000".
std::string seconds_text(std::uint64_t nanoseconds);

} // namespace weft::virtual_time
