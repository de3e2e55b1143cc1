// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Fuzzes a trunk with arbitrary bytes from its peer: first in the handshake, then after the peer
// was authenticated. No input may cause a crash or a hang, or bring the link up without a
// connection. Frames of an Ethernet segment must not reach another trunk, take the address of a
// local host, or exceed the segment's limits.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include <spdlog/spdlog.h>

#include "net/ethernet/switch.hpp"
#include "net/ethernet/trunk_attachment.hpp"
#include "net/fabric/fabric.hpp"
#include "net/fabric/switch.hpp"
#include "net/trunk/ethernet_end.hpp"
#include "net/trunk/frame_reader.hpp"
#include "net/trunk/handshake.hpp"
#include "net/trunk/trunk_port.hpp"

namespace
{

using namespace weft;
using namespace weft::trunk;

class Sink : public fabric::PortSink
{
public:
	void receive(fabric::Packet &&packet) override
	{
		fabric::Packet dropped(std::move(packet));
	}
	void link_changed(bool) override {}
};

// A switch between the trunk and a node.
struct Fixture {
	Fixture()
	{
		fabric.connect(far, sw.port(1));
		fabric.connect(end, sw.port(2));
		end.attach(sink);
		end.enable();
		trunk.emplace(far, [] {});
	}
	~Fixture()
	{
		trunk.reset();
		end.detach();
	}

	fabric::Fabric fabric;
	fabric::Switch &sw = fabric.add_switch({.name = "sw", .ports = 2});
	fabric::Port &far = fabric.add_port("trunk/1");
	fabric::Port &end = fabric.add_port("end");
	Sink sink;
	std::optional<TrunkPort> trunk;
};

// Gives the reader the input in portions, and each frame to @take until that returns false.
template<class Take>
void feed(FrameReader &reader, std::span<const std::byte> input, Take &&take)
{
	while (!input.empty() && reader.wrong() == Reason::none) {
		const auto room = reader.room();
		if (room.empty())
			std::abort();
		const auto part = std::min({room.size(), input.size(), std::size_t{97}});
		std::ranges::copy(input.first(part), room.begin());
		reader.added(part);
		input = input.subspan(part);
		while (const auto frame = reader.next())
			if (!take(*frame))
				return;
	}
}

void greet(std::span<const std::byte> input)
{
	static const Key kKey(SecretBytes(Key::kLeastBytes, std::byte{1}));
	const Role role =
		input.empty() || input[0] < std::byte{0x80} ? Role::connects : Role::listens;
	Handshake handshake(Kind::infiniband, role, "west", kKey);
	FrameReader reader;
	std::vector<Buffer> answers;
	feed(reader, input.subspan(std::min<std::size_t>(1, input.size())),
	     [&](const Frame &frame) {
		     const auto progress = handshake.take(frame, answers);
		     // The input cannot contain a valid proof.
		     if (progress == Handshake::Progress::done)
			     std::abort();
		     return progress == Handshake::Progress::goes_on;
	     });
	if (answers.size() > 1)
		std::abort();
}

// Answers the state of the link that the trunk has sent first, so that the link comes up.
void bring_up(TrunkPort &trunk, const Buffer &frame)
{
	auto state = read_link(std::span(frame).subspan(sizeof(FrameHeader)));
	if (!state)
		std::abort();
	state->seen = state->attempt;
	state->ready = 1;
	const Buffer answer = make_frame(FrameType::link, *state);
	if (trunk.take({FrameType::link, std::span(answer).subspan(sizeof(FrameHeader))}))
		std::abort();
	// The link comes up when the trunk has confirmed the answer to the peer.
	std::deque<Buffer> out;
	trunk.serve(out, kMostBody);
	if (!trunk.link_up())
		std::abort();
}

// Passes packets and runs to the trunk, with fields from the input and with consistent lengths,
// which arbitrary bytes rarely have. Returns true if the fixture is unchanged.
bool exchange_packets(TrunkPort &trunk, std::span<const std::byte> input)
{
	constexpr unsigned most_packets = 17;
	struct Fields {
		ib::Lrh lrh;
		ib::Bth bth;
		std::uint8_t size, packets;
	} fields;
	bool unchanged = true;
	std::deque<Buffer> out;
	for (; input.size() >= sizeof(fields); input = input.subspan(sizeof(fields))) {
		std::memcpy(&fields, input.data(), sizeof(fields));
		packet::Headers headers;
		headers.lrh = fields.lrh;
		headers.bth = fields.bth;
		const unsigned packets = 1 + fields.packets % most_packets;
		const std::vector<std::byte> bytes(std::size_t{fields.size} * 16 * packets);
		const auto packet =
			fabric::Packet::make_run(headers, fabric::Payload::copy_of(bytes), packets);
		if (!packet)
			continue;
		unchanged = unchanged && packet->lrh().vl() != ib::vl_management;
		const Buffer frame = *make_packet_frame(*packet);
		if (trunk.take({FrameType::packet, std::span(frame).subspan(sizeof(FrameHeader))}))
			break;
		trunk.serve(out, kMostBody);
		out.clear();
	}
	return unchanged;
}

// Passes the frames of one record to @take until that returns false.
template<class Take>
void feed_record(std::span<const std::byte> input, Take &&take)
{
	static const SessionKey kKey;
	if (input.empty() || input.size() > kMostRecord)
		return;
	std::deque<Buffer> plain{Buffer(input.begin(), input.end())};
	Buffer record;
	RecordSealer(kKey).seal(plain, record);
	FrameReader reader;
	reader.decrypt(kKey);
	feed(reader, record, take);
}

// Passes the frames of one record to the trunk. Returns true if the fixture is unchanged.
bool exchange_frames(TrunkPort &trunk, std::span<const std::byte> input)
{
	std::deque<Buffer> out;
	bool unchanged = true;
	feed_record(input, [&](const Frame &frame) {
		const auto packet =
			frame.type == FrameType::packet ? read_packet(frame.body) : std::nullopt;
		unchanged = unchanged && (!packet || packet->lrh().vl() != ib::vl_management);
		if (trunk.take(frame))
			return false;
		trunk.serve(out, kMostBody);
		out.clear();
		return true;
	});
	return unchanged;
}

// A segment with two hosts, the trunk, and a trunk to a third daemon.
struct Segment {
	Segment()
	{
		local.send(frame_from(kLocal));
		while (loop.poll() != 0) {
		}
	}
	static ethernet::FramePtr frame_from(ethernet::Address source,
					     ethernet::Address destination = 0xffffffffffff)
	{
		ethernet::Frame bytes(60);
		for (unsigned i = 0; i < 6; i++) {
			bytes[i] = static_cast<std::uint8_t>(destination >> (40 - 8 * i));
			bytes[6 + i] = static_cast<std::uint8_t>(source >> (40 - 8 * i));
		}
		return std::make_shared<const ethernet::Frame>(std::move(bytes));
	}

	static constexpr ethernet::Address kLocal = 0x020000000001;
	static constexpr unsigned kHosts = 2;
	unsigned arrived = 0;
	bool from_peer = false;
	VirtualEnvironment environment;
	Loop loop{"fuzz", Loop::Mode::manual, environment};
	ethernet::Switch lan{loop, "lan"};
	ethernet::Port local{"local", [this](const ethernet::FramePtr &frame) {
				     if (frame->size() < ethernet::kLeastFrame ||
					 frame->size() > ethernet::kMostFrame)
					     std::abort();
				     arrived++;
			     }};
	ethernet::Port other{"other", [](const ethernet::FramePtr &) {}};
	ethernet::Port third{"third", [this](const ethernet::FramePtr &) {
				     if (from_peer)
					     std::abort();
			     }};
	ethernet::Port &facing = lan.add_trunk_port("lan@a/b", kHosts);
	const std::shared_ptr<ethernet::Channel> channel = std::make_shared<ethernet::Channel>();
	ethernet::TrunkAttachment attachment{loop, "lan@b/a", channel,
					     [this] { lan.forget(facing); }};
	ethernet::Link local_link{loop, local, lan.add_port(), {}, 1},
		other_link{loop, other, lan.add_port(), {}, 2},
		third_link{loop, third, lan.add_trunk_port("lan@a/c", 1), {}, 3},
		trunk_link{loop, attachment.port(), facing, {}, 4};
	EthernetEnd trunk{loop, channel, [] {}};
};

// Builds frames with the sizes and addresses of the input, which arbitrary bytes rarely have.
template<class Take>
void make_ethernet_frames(std::span<const std::byte> input, Take &&take)
{
	struct Fields {
		std::uint8_t size[2], local, addresses[12];
	} fields;
	for (; input.size() >= sizeof(fields); input = input.subspan(sizeof(fields))) {
		std::memcpy(&fields, input.data(), sizeof(fields));
		const std::size_t size = (fields.size[0] << 8 | fields.size[1]) % 10000;
		Buffer body(size);
		std::ranges::fill(body, std::byte{});
		std::ranges::copy(std::as_bytes(std::span(fields.addresses))
					  .first(std::min(size, sizeof(fields.addresses))),
				  body.begin());
		if ((fields.local & 1) != 0 && size >= ethernet::kLeastFrame)
			std::memcpy(body.data() + 6,
				    Segment::frame_from(Segment::kLocal)->data() + 6, 6);
		if (!take({FrameType::ethernet, body}))
			return;
	}
}

void exchange_ethernet(Segment &segment, std::span<const std::byte> input)
{
	const auto settle = [&] {
		while (segment.loop.poll() != 0) {
		}
	};
	std::deque<Buffer> out;
	const bool made = !input.empty() && (input[0] & std::byte{1}) != std::byte{};
	const auto rest = input.subspan(std::min<std::size_t>(1, input.size()));
	const auto take = [&](const Frame &frame) {
		if (segment.trunk.full())
			settle();
		if (segment.trunk.full())
			std::abort();
		if (segment.trunk.take(frame))
			return false;
		segment.trunk.serve(out, kMostBody);
		out.clear();
		return true;
	};
	segment.local.send(Segment::frame_from(Segment::kLocal));
	segment.trunk.connected();
	segment.from_peer = true;
	if (made)
		make_ethernet_frames(rest, take);
	else
		feed_record(rest, take);
	settle();
	segment.from_peer = false;
	if (segment.lan.addresses() > Segment::kHosts * ethernet::Switch::kMostAddresses + 2)
		std::abort();
	// The address of the local host has not moved.
	const unsigned before = segment.arrived;
	segment.other.send(Segment::frame_from(Segment::kLocal + 1, Segment::kLocal));
	if (segment.arrived != before + 1)
		std::abort();
	segment.trunk.disconnected();
	settle();
	if (segment.lan.addresses() != 2)
		std::abort();
}

// The input cannot contain an authentic record.
void forge(std::span<const std::byte> input)
{
	FrameReader reader;
	reader.decrypt(SessionKey());
	feed(reader, input, [](const Frame &) -> bool { std::abort(); });
}

// Returns true if the fixture is unchanged: only management packets change it.
bool exchange(TrunkPort &trunk, std::span<const std::byte> input)
{
	std::deque<Buffer> out;
	bool unchanged = true;
	trunk.connected();
	trunk.serve(out, kMostBody);
	const std::byte choice = input.empty() ? std::byte{} : input[0];
	const auto rest = input.subspan(std::min<std::size_t>(1, input.size()));
	if ((choice & std::byte{1}) != std::byte{})
		bring_up(trunk, out.front());
	if ((choice & std::byte{2}) != std::byte{})
		unchanged = exchange_packets(trunk, rest);
	else if ((choice & std::byte{4}) != std::byte{})
		forge(rest);
	else
		unchanged = exchange_frames(trunk, rest);
	trunk.disconnected();
	if (trunk.link_up())
		std::abort();
	return unchanged;
}

} // namespace

extern "C" int LLVMFuzzerInitialize(int *, char ***)
{
	spdlog::set_level(spdlog::level::off);
	return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	// Creating it takes a hundred times longer than an input, so it is created again only when
	// it has changed.
	static std::optional<Fixture> fixture;
	if (!fixture)
		fixture.emplace();
	const auto input = std::as_bytes(std::span(data, size));
	greet(input);
	static std::optional<Segment> segment;
	if (!segment)
		segment.emplace();
	if (!input.empty() && (input[0] & std::byte{8}) != std::byte{})
		exchange_ethernet(*segment, input);
	else if (!exchange(*fixture->trunk, input))
		fixture.reset();
	return 0;
}
