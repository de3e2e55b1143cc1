// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Sends an arbitrary byte stream, in fragments of any size, to one end of a new connection. The end
// may buffer at most one FPDU, and its own output must be a valid stream.
#include <algorithm>
#include <cstdlib>

#include "net/iwarp/testing/party.hpp"

using namespace weft::iwarp;
using weft::iwarp::testing::Party;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	if (size < 2)
		return 0;
	const unsigned how = data[0], step = 1u + data[1];
	View input(data + 2, size - 2);
	const bool markers = how & 1, crc = how & 2, begun = how & 4, initiator = how & 8;
	Party party(
		StreamConfig{.initiator = initiator, .start = {.markers = markers, .crc = crc}});
	party.receives.assign(16, 4096);
	party.regions[0] = party.regions[0x200] = {Bytes(4096), 0};
	if (begun)
		party.stream.feed(
			encode(StartFrame{.reply = initiator, .markers = markers, .crc = crc}));
	party.output();
	FpduReader other(markers, crc || !begun);
	while (!input.empty() && !party.end) {
		const auto part = input.first(std::min<std::size_t>(step, input.size()));
		input = input.subspan(part.size());
		party.stream.feed(part);
		const Bytes out = party.output();
		if (begun && other.feed(out, [](View ulpdu) {
			    return !std::holds_alternative<Error>(parse_segment(ulpdu));
		    }))
			std::abort();
	}
	party.stream.closed(true);
	if (!party.end || !party.stream.finished())
		std::abort();
	return 0;
}
