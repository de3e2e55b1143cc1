// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Sends an arbitrary byte stream from a guest, in fragments of any size, through a link with faults
// to a switch. Memory use must stay limited, only valid frames may be forwarded, and the counters
// must match the sent frames.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <span>

#include "base/loop.hpp"
#include "net/ethernet/frame_reader.hpp"
#include "net/ethernet/link.hpp"
#include "net/ethernet/switch.hpp"

using namespace weft;
using namespace weft::ethernet;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	if (size < 2)
		return 0;
	const unsigned how = data[0], step = 1u + data[1];
	std::span<const std::uint8_t> stream(data + 2, size - 2);
	VirtualEnvironment environment;
	Loop loop("fuzz", Loop::Mode::manual, environment);
	Switch lan(loop, "lan");
	const auto take = [](const FramePtr &frame) {
		if (frame->size() < kLeastFrame || frame->size() > kMostFrame)
			std::abort();
	};
	Port guest("guest", take), other("other", take);
	LinkSettings settings;
	if (how & 1)
		settings.faults.delay = std::chrono::microseconds(50);
	if (how & 2)
		settings.faults.reordering = 0.5;
	if (how & 4)
		settings.faults.silent_corruption = 0.5;
	if (how & 8)
		settings.faults.duplication = 0.5;
	Link near(loop, guest, lan.add_port(), settings, 1),
		far(loop, other, lan.add_port(), {}, 2);
	FrameReader reader;
	std::uint64_t sent = 0;
	while (!stream.empty()) {
		const auto part = stream.first(std::min<std::size_t>(step, stream.size()));
		stream = stream.subspan(part.size());
		const bool follows = reader.feed(part, [&](Frame frame) {
			++sent;
			guest.send(std::make_shared<const Frame>(std::move(frame)));
		});
		if (!follows)
			break;
	}
	loop.poll();
	if (guest.counters.xmit_frames != sent || lan.addresses() > Switch::kMostAddresses)
		std::abort();
	return 0;
}
