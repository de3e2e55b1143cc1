// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Sends arbitrary DDP segments in valid FPDUs. In the fuzzer's input, a length byte precedes each
// segment.
#include <algorithm>
#include <cstdlib>

#include "net/iwarp/testing/party.hpp"

using namespace weft::iwarp;
using weft::iwarp::testing::Party;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	View input(data, size);
	Party party(StreamConfig{});
	party.stream.feed(encode(StartFrame{}));
	party.receives.assign(4, 300);
	party.regions[0] = {Bytes(100), 0};
	FpduWriter writer(false, true);
	while (!input.empty() && !party.end) {
		const std::size_t length = std::min<std::size_t>(input[0], input.size() - 1);
		const View ulpdu = input.subspan(1, length);
		input = input.subspan(1 + length);
		party.stream.feed(writer.frame(ulpdu));
		party.output();
		// Encoding a valid segment again must give the same bytes, except for reserved
		// bits.
		const auto parsed = parse_segment(ulpdu);
		if (const auto *segment = std::get_if<Segment>(&parsed)) {
			Bytes again = encode(*segment);
			again[0] |= ulpdu[0] & 0x3c;
			again[1] |= ulpdu[1] & 0x30;
			if (!std::ranges::equal(again, ulpdu))
				std::abort();
		}
	}
	for (const auto &message : party.messages)
		if (message.bytes.size() > 300)
			std::abort();
	return 0;
}
