// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that tshark reads the captures of an Ethernet, and that their size is limited.
#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "net/ethernet/capture.hpp"
#include "nodes.hpp"

namespace weft::ethernet
{
namespace
{

class EthernetCapture : public ::testing::Test
{
public:
	~EthernetCapture() override { std::filesystem::remove(file); }

	// Returns the fields of each packet in one line.
	std::string tshark(const std::string &options)
	{
		const std::string command = "tshark -n -r " + file.string() + " -T fields " +
					    options + " 2>/dev/null"; // it warns if root runs it
		const std::unique_ptr<FILE, int (*)(FILE *)> pipe(::popen(command.c_str(), "r"),
								  ::pclose);
		std::string output;
		std::array<char, 4096> part;
		while (const auto size = std::fread(part.data(), 1, part.size(), pipe.get()))
			output.append(part.data(), size);
		return output;
	}

	const std::filesystem::path file =
		std::filesystem::temp_directory_path() /
		("weft-ethernet-" + std::to_string(::getpid()) + ".pcapng");
	VirtualEnvironment environment;
};

TEST_F(EthernetCapture, TsharkDecodesTheCaptureFile)
{
	if (std::system("command -v tshark >/dev/null"))
		GTEST_SKIP() << "tshark is missing";
	Loop loop{"test", Loop::Mode::manual, environment};
	Node a("a"), b("b"), c("c");
	const auto capture = std::make_shared<Capture>(file, environment);
	Link first(loop, a.port, b.port, {}, 1);
	first.set_capture(capture);
	// Sends frames with every length of padding.
	for (std::size_t size = 0; size < 4; ++size)
		a.port.send(frame_to(kBroadcast, 0x02000000000a, 'x', 46 + size));
	{
		Node d("d");
		Link second(loop, c.port, d.port, {}, 1);
		second.set_capture(capture);
		d.port.send(
			frame_to(0x02000000000c, 0x02000000000d, 'y', kMostFrame - kLeastFrame));
	}
	capture->flush();
	EXPECT_EQ(capture->packets(), 5u);
	EXPECT_FALSE(capture->full());
	EXPECT_EQ(tshark("-e frame.interface_name -e eth.src -e frame.len -e eth.type"),
		  "a-b\t02:00:00:00:00:0a\t60\t0x88b5\n"
		  "a-b\t02:00:00:00:00:0a\t61\t0x88b5\n"
		  "a-b\t02:00:00:00:00:0a\t62\t0x88b5\n"
		  "a-b\t02:00:00:00:00:0a\t63\t0x88b5\n"
		  "c-d\t02:00:00:00:00:0d\t9022\t0x88b5\n");
	EXPECT_EQ(tshark("-Y _ws.malformed -e frame.number"), "");
}

TEST_F(EthernetCapture, SizeOfTheCaptureFileIsLimited)
{
	constexpr std::uint64_t most = 1000;
	Capture capture(file, environment, most);
	const unsigned interface = capture.add_interface("a-b");
	while (!capture.full())
		capture.record(interface, *frame_to(kBroadcast, 0x02000000000a));
	capture.flush();
	const auto frames = capture.packets();
	EXPECT_LE(std::filesystem::file_size(file), most);
	EXPECT_GT(frames, 5u);
	// Later frames are not written even if they would fit, so that a capture has no gaps.
	capture.record(interface, Frame(kLeastFrame));
	EXPECT_EQ(capture.packets(), frames);
}

TEST_F(EthernetCapture, UnwritableCaptureFileIsReported)
{
	EXPECT_THROW(Capture("/nowhere/at/all", environment), std::runtime_error);
}

} // namespace
} // namespace weft::ethernet
