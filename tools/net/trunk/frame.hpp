// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the wire protocol between the two ends of a trunk (Documentation/trunks.rst). A
// connection carries frames: a header of eight bytes and a body. After the handshake, the frames
// are in records (record.hpp). Integers are big-endian. This code does not use sockets.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <ib/endian.hpp>

#include "net/ethernet/frame.hpp"
#include "net/fabric/packet.hpp"
#include "net/fabric/port.hpp"

namespace weft::trunk
{

// Version of everything in this header and in record.hpp. Daemons of different versions refuse each
// other.
constexpr std::uint16_t kVersion = 3;
constexpr std::string_view kMagic = "weft-trk";

constexpr std::size_t kMostName = 32;
constexpr std::size_t kNonceBytes = 32;
constexpr std::size_t kPublicKeyBytes = 32;
constexpr std::size_t kMacBytes = 32;

// Maximum number of packets of one virtual lane that a sender may have outstanding. A run counts as
// the number of packets that it represents.
constexpr unsigned kWindow = 256;
// A receiver may keep fewer credits than this until it has something else to send.
constexpr unsigned kCreditBatch = kWindow / 4;
// A longer run might never find enough credits, because the receiver keeps some.
constexpr unsigned kMostRunPackets = kWindow - kCreditBatch;
constexpr std::size_t kMostRunBytes = 64 << 10;

enum class FrameType : std::uint8_t {
	hello = 1,
	proof = 2,
	packet = 3,
	credits = 4,
	link = 5,
	alive = 6,
	bye = 7,
	ethernet = 8,
};
constexpr FrameType kLastFrameType = FrameType::ethernet;

// What a trunk connects: a link of the InfiniBand fabric or an Ethernet segment.
enum class Kind : std::uint8_t { infiniband = 1, ethernet = 2 };

// Reason for which an end closes the connection, for the log of the other end.
enum class Reason : std::uint8_t {
	none = 0,
	version = 1,  // the peer speaks another version of the protocol
	role = 2,     // both ends listen, or both connect
	name = 3,     // the peer has another trunk's name
	key = 4,      // the peer does not have the key
	protocol = 5, // the peer broke the protocol
	silence = 6,  // no data arrived for too long
	replaced = 7, // the peer has opened a new connection
	removed = 8,  // the trunk was removed or its daemon exits
	in_use = 9,   // another daemon is connected
	stalled = 10, // the peer did not read the data that was sent to it
	record = 11,  // a record from the peer is not authentic, or not the next one
	kind = 12,    // one end connects a link, the other one an Ethernet segment
};
constexpr Reason kLastReason = Reason::kind;
std::string_view text_of(Reason reason);

struct FrameHeader {
	ib::be32 body_bytes;
	FrameType type;
	std::uint8_t zero[3];
};
static_assert(sizeof(FrameHeader) == 8);

enum class Role : std::uint8_t { connects = 1, listens = 2 };

struct HelloBody {
	char magic[8];
	ib::be16 version;
	Role role;
	std::uint8_t name_bytes;
	char name[kMostName]; // the rest is filled with zeros
	std::uint8_t nonce[kNonceBytes];
	std::uint8_t public_key[kPublicKeyBytes]; // X25519, new for each connection
	Kind kind;
	std::uint8_t zero[3];
};
static_assert(sizeof(HelloBody) == 112);

struct ProofBody {
	std::uint8_t mac[kMacBytes];
};

// Followed by the headers and the payload without its pad.
struct PacketBody {
	ib::be16 packets;
	std::uint8_t hops;
	std::uint8_t icrc_error; // 0 or 1
	std::uint8_t header_bytes;
	std::uint8_t zero[3];
};
static_assert(sizeof(PacketBody) == 8);

struct CreditsBody {
	std::uint8_t vl;
	std::uint8_t zero;
	ib::be16 packets;
};
static_assert(sizeof(CreditsBody) == 4);

// State of one end's half of the link. A half that goes down begins a new attempt. Both halves come
// up when each is ready and has seen the other's current attempt.
struct LinkBody {
	ib::be32 attempt;
	ib::be32 seen; // the last attempt of the other end that this end has seen
	std::uint8_t ready;
	// Rates that the half supports: bits of PortInfo.
	std::uint8_t widths;
	std::uint8_t speeds;
	std::uint8_t speeds_ext;
	std::uint8_t mtu; // PortInfo's encoding
	std::uint8_t zero[3];
};
static_assert(sizeof(LinkBody) == 16);

struct ByeBody {
	Reason reason;
	std::uint8_t zero[3];
};
static_assert(sizeof(ByeBody) == 4);

// Maximum body sizes before and after the peer has proved that it has the key.
constexpr std::size_t kMostHandshakeBody = 256;
constexpr std::size_t kMostBody = sizeof(PacketBody) + ib::headers_max + kMostRunBytes;

// Does not initialise the elements with which a vector grows, because bytes of packets follow.
template<class T>
struct UninitialisedAllocator : std::allocator<T> {
	using std::allocator<T>::allocator;

	template<class Object>
	void construct(Object *at)
	{
		::new (static_cast<void *>(at)) Object;
	}
	template<class Object, class... Arguments>
	void construct(Object *at, Arguments &&...arguments)
	{
		::new (static_cast<void *>(at)) Object(std::forward<Arguments>(arguments)...);
	}
};
using Buffer = std::vector<std::byte, UninitialisedAllocator<std::byte>>;

// A received frame. Its body is valid until the FrameReader gets more bytes.
struct Frame {
	FrameType type;
	std::span<const std::byte> body;
};

// Returns a frame with this body.
Buffer make_frame(FrameType type, std::span<const std::byte> body = {});
template<class Body>
Buffer make_frame(FrameType type, const Body &body)
{
	return make_frame(type, std::as_bytes(std::span(&body, 1)));
}
// Returns the frame of a packet or run, with a copy of the payload. Returns nothing if the
// payload's owner has withdrawn it.
std::optional<Buffer> make_packet_frame(const fabric::Packet &packet);

// Reads a whole frame with its header. Returns nothing if the header is malformed, or if the length
// of the body is wrong.
std::optional<Frame> read_frame(std::span<const std::byte> bytes);
// Read the bodies of frames. Return nothing if a body is malformed.
std::optional<fabric::Packet> read_packet(std::span<const std::byte> body);
std::optional<CreditsBody> read_credits(std::span<const std::byte> body);
std::optional<LinkBody> read_link(std::span<const std::byte> body);
std::optional<Reason> read_bye(std::span<const std::byte> body);
// Returns the bytes of an Ethernet frame, which are the body.
std::optional<std::span<const std::uint8_t>> read_ethernet(std::span<const std::byte> body);

} // namespace weft::trunk
