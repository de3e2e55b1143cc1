// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Inserts one arbitrary segment into the messages that two streams exchange as the input directs.
// Data may only be placed in the permitted regions, and each stream must end exactly once.
#include <algorithm>
#include <cstdlib>

#include "net/iwarp/testing/party.hpp"

using namespace weft::iwarp;
using weft::iwarp::testing::Party;

namespace
{

class Input
{
public:
	Input(const std::uint8_t *data, std::size_t size) : bytes_(data, size) {}

	bool empty() const { return bytes_.empty(); }
	unsigned next()
	{
		if (bytes_.empty())
			return 0;
		const unsigned value = bytes_[0];
		bytes_ = bytes_.subspan(1);
		return value;
	}
	// The value is valid in most cases.
	Stag stag() { return 1 + next() % 5; }
	std::uint64_t offset()
	{
		const unsigned value = next();
		return value == 0xff ? ~0ull - 5 : 0x1000u + value;
	}

private:
	View bytes_;
};

Segment segment_of(Input &input, Bytes &payload)
{
	payload.assign(input.next() % 64, 0x5a);
	Segment segment{.opcode = static_cast<Opcode>(input.next() % 8),
			.last = input.next() % 4 != 0,
			.stag = input.stag(),
			.payload = payload};
	segment.offset = input.offset();
	segment.queue = segment.opcode == Opcode::read_request ? kReadQueue
			: segment.opcode == Opcode::terminate  ? kTerminateQueue
							       : kSendQueue;
	segment.sequence = 1 + input.next() % 6;
	segment.message_offset = input.next() % 4 ? 0 : 64;
	if (segment.opcode == Opcode::read_request)
		payload = encode(ReadRequest{input.stag(), input.offset(), input.next(),
					     input.stag(), input.offset()});
	segment.payload = payload;
	return segment;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	Input input(data, size);
	Party a(StreamConfig{.initiator = true, .most_ulpdu = 64, .ird = 2, .ord = 2}),
		b(StreamConfig{.most_ulpdu = 64, .ird = 2, .ord = 2});
	for (Party *party : {&a, &b}) {
		for (Stag stag = 1; stag <= 3; ++stag)
			party->regions[stag] = {Bytes(300), 0x1000, stag != 2, stag != 3};
		party->receives.assign(8, 200);
	}
	testing::pump(a, b);
	// The segment follows a's own FPDUs. A new writer can be used, because a writer without
	// markers has no state.
	FpduWriter writer(false, true);
	for (int steps = 0; steps < 200 && !input.empty() && !(a.end && b.end); ++steps) {
		Party &party = input.next() % 2 ? a : b, &other = &party == &a ? b : a;
		switch (input.next() % 5) {
		case 0:
			party.send(Bytes(input.next()), static_cast<Opcode>(3 + input.next() % 4),
				   input.stag());
			break;
		case 1:
			party.write(Bytes(input.next()), input.stag(), input.offset());
			break;
		case 2:
			party.read({input.stag(), input.offset(), input.next(), input.stag(),
				    input.offset()});
			break;
		case 3: {
			other.stream.feed(party.output());
			Bytes payload;
			other.stream.feed(writer.frame(encode(segment_of(input, payload))));
			break;
		}
		default:
			testing::pump(a, b);
		}
	}
	testing::pump(a, b);
	for (const Party *party : {&a, &b})
		for (const auto &message : party->messages)
			if (message.bytes.size() > 200)
				std::abort();
	return 0;
}
