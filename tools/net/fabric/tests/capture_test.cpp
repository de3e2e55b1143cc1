// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that a capture of a link contains no packet that tshark reports as malformed.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "net/fabric/capture.hpp"
#include "net/fabric/tests/test_node.hpp"

namespace weft::fabric
{
namespace
{

using namespace testing;

std::string output_of(const std::string &command)
{
	std::unique_ptr<FILE, int (*)(FILE *)> pipe(popen(command.c_str(), "r"), pclose);
	std::string text;
	std::array<char, 4096> buffer;
	while (pipe && std::fgets(buffer.data(), buffer.size(), pipe.get()))
		text += buffer.data();
	return text;
}

TEST(Capture, TsharkDecodesEveryTypeOfPacket)
{
	if (std::system("tshark --version >/dev/null 2>&1") != 0)
		GTEST_SKIP() << "tshark is not installed";
	auto path = std::filesystem::temp_directory_path() /
		    ("weft-capture-" + std::to_string(getpid()) + ".pcap");
	unsigned sent = 0;
	{
		Fabric fabric;
		PacketNode a(fabric.add_port("a", 1000));
		PacketNode b(fabric.add_port("b", 1000));
		Link &link = fabric.connect(a.port, b.port);
		auto capture = std::make_shared<Capture>(path.string());
		link.set_capture(capture);
		for (unsigned opcode = 0; opcode < 0x80; opcode++) {
			auto traits = ib::opcode_traits(static_cast<std::uint8_t>(opcode));
			if (!traits.has(ib::OpcodeTraits::valid))
				continue;
			packet::Headers headers;
			headers.lrh.dlid = std::uint16_t{2};
			headers.lrh.slid = std::uint16_t{1};
			headers.has_grh = opcode % 2 == 0;
			headers.grh.sgid = ib::Gid::from_parts(ib::gid_prefix_link_local, 1);
			headers.grh.dgid = ib::Gid::from_parts(ib::gid_prefix_link_local, 2);
			headers.bth.opcode = static_cast<std::uint8_t>(opcode);
			headers.bth.pkey = ib::pkey_default_full;
			headers.bth.set_dest_qp(0x50);
			headers.deth.src_qp = 0x51u;
			std::vector<std::byte> data(traits.has(ib::OpcodeTraits::payload) ? 101
											  : 0);
			auto packet = Packet::make(headers, Payload::copy_of(data));
			ASSERT_TRUE(packet);
			ASSERT_EQ(Sent::done, a.port.send(*packet));
			sent++;
		}
		// Also send a subnet management packet.
		ib::Mad mad{};
		mad.header.base_version = 1;
		mad.header.mgmt_class = 0x81;
		mad.header.class_version = 1;
		mad.header.method = 1;
		mad.header.attr_id = std::uint16_t{ib::attr_node_info};
		Packet smp = make_mad_packet(MadAddress{}, mad);
		ASSERT_EQ(Sent::done, a.port.send(smp));
		sent++;
		EXPECT_EQ(sent, capture->packets());
		link.set_capture(nullptr);
	}
	std::string file = path.string();
	std::string all = output_of("tshark -r " + file + " 2>/dev/null");
	EXPECT_EQ(sent, std::count(all.begin(), all.end(), '\n')) << all;
	std::string malformed =
		output_of("tshark -r " + file + " -Y '_ws.malformed || _ws.expert' 2>/dev/null");
	EXPECT_EQ("", malformed);
	std::string management = output_of("tshark -r " + file + " -Y infiniband.mad 2>/dev/null");
	EXPECT_EQ(1, std::count(management.begin(), management.end(), '\n')) << management;
	// Each packet has the name of its link.
	EXPECT_EQ(std::to_string(sent) + " a-b\n",
		  output_of("tshark -r " + file +
			    " -T fields -e frame.interface_name 2>/dev/null | sort | uniq -c | "
			    "awk '{ print $1, $2 }'"));
	std::filesystem::remove(path);
}

TEST(Capture, SizeOfTheCaptureFileIsLimited)
{
	const auto path = std::filesystem::temp_directory_path() /
			  ("weft-bound-" + std::to_string(getpid()) + ".pcap");
	const std::vector<std::byte> packet(100);
	// The section's header, the interface, and two blocks of 32 bytes with records of 16 + 100.
	constexpr std::uint64_t headers = 28 + 44, packet_size = 32 + 116;
	for (const std::uint64_t most :
	     {headers + 2 * packet_size, headers + 3 * packet_size - 1}) {
		Capture capture(path.string(), most);
		const unsigned interface = capture.add_interface("node1");
		for (unsigned sent = 1; sent <= 3; sent++) {
			EXPECT_FALSE(capture.full());
			capture.record(interface, packet);
		}
		EXPECT_TRUE(capture.full());
		// A packet that would fit is not written either, so that a capture has no gaps.
		capture.record(interface, std::vector<std::byte>(1));
		EXPECT_EQ(2u, capture.packets());
		capture.flush();
		EXPECT_EQ(headers + 2 * packet_size, std::filesystem::file_size(path));
	}
	std::filesystem::remove(path);
}

TEST(Capture, UnwritableCaptureFileIsRefusedWithTheReason)
{
	EXPECT_THROW(Capture("/nonexistent/directory/x.pcap"), std::runtime_error);
}

TEST(Wire, PacketIsUnchangedByEncodingAndDecoding)
{
	for (std::size_t bytes : {0u, 1u, 255u, 4096u}) {
		Packet packet = ud_packet(3, 4, bytes, 77);
		auto wire = packet.to_wire();
		auto again = Packet::from_wire(std::span(wire).first(wire.size() - ib::vcrc_bytes));
		ASSERT_TRUE(again);
		EXPECT_FALSE(again->icrc_error());
		EXPECT_EQ(wire, again->to_wire());
		wire[30] ^= std::byte{4};
		if (bytes > 10) {
			again = Packet::from_wire(std::span(wire).first(wire.size() - 2));
			ASSERT_TRUE(again);
			EXPECT_TRUE(again->icrc_error());
		}
	}
}

} // namespace
} // namespace weft::fabric
