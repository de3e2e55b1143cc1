// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "tests/malicious_guest/frames.hpp"

#include <algorithm>

namespace weft::malicious_guest
{

namespace
{

using Bytes = std::vector<std::uint8_t>;

unsigned below(Random &random, unsigned end)
{
	return std::uniform_int_distribution<unsigned>(0, end - 1)(random);
}

bool one_in(Random &random, unsigned count)
{
	return below(random, count) == 0;
}

void put_noise(Random &random, Bytes &frame, std::size_t count)
{
	std::generate_n(std::back_inserter(frame), count,
			[&] { return static_cast<std::uint8_t>(random()); });
}

void put16(Bytes &frame, unsigned value)
{
	frame.push_back(static_cast<std::uint8_t>(value >> 8));
	frame.push_back(static_cast<std::uint8_t>(value));
}

/* Returns an encapsulation header (RFC 4391 section 6) whose reserved bytes are not always zero. */
Bytes encapsulated(Random &random, unsigned type)
{
	Bytes frame;
	put16(frame, type);
	put16(frame, one_in(random, 4) ? static_cast<unsigned>(random()) : 0);
	return frame;
}

/* Returns the right length, one close to it, or any other. */
unsigned lying_length(Random &random, unsigned truth)
{
	switch (below(random, 4)) {
	case 0:
		return truth;
	case 1:
		return truth + below(random, 8) - 4;
	case 2:
		return 0;
	default:
		return static_cast<unsigned>(random() & 0xffff);
	}
}

void put_tcp(Random &random, Bytes &frame, std::size_t payload)
{
	put_noise(random, frame, 12);
	/* The data offset is 0 to 15 words. Values below 5 and beyond the packet are invalid. */
	frame.push_back(static_cast<std::uint8_t>(random() & 0xf0));
	put_noise(random, frame, 7 + payload);
}

Bytes ipv4(Random &random, std::size_t room)
{
	Bytes frame = encapsulated(random, 0x0800);
	const auto payload = below(random, static_cast<unsigned>(room - 60));
	frame.push_back(one_in(random, 2) ? 0x45 : static_cast<std::uint8_t>(random()));
	frame.push_back(0);
	put16(frame, lying_length(random, 40 + payload));
	put_noise(random, frame, 5);
	constexpr std::uint8_t protocols[] = {1, 2, 6, 6, 6, 17, 47, 255};
	frame.push_back(protocols[below(random, sizeof(protocols))]);
	put_noise(random, frame, 10);
	put_tcp(random, frame, payload);
	return frame;
}

Bytes ipv6(Random &random, std::size_t room)
{
	Bytes frame = encapsulated(random, 0x86dd);
	const auto payload = below(random, static_cast<unsigned>(room - 80));
	frame.push_back(0x60);
	put_noise(random, frame, 3);
	put16(frame, lying_length(random, 20 + payload));
	constexpr std::uint8_t next_headers[] = {0, 6, 6, 17, 43, 44, 58, 60};
	frame.push_back(next_headers[below(random, sizeof(next_headers))]);
	put_noise(random, frame, 33);
	put_tcp(random, frame, payload);
	return frame;
}

/*
 * Returns an ARP packet (RFC 4391 section 9.1.1) with the hardware address of the receiver or an
 * invented one, and lengths that may not match.
 */
Bytes arp(Random &random, std::span<const std::uint8_t, 20> address)
{
	Bytes frame = encapsulated(random, 0x0806);
	put16(frame, one_in(random, 4) ? static_cast<unsigned>(random()) : 32);
	put16(frame, 0x0800);
	frame.push_back(one_in(random, 4) ? static_cast<std::uint8_t>(random()) : 20);
	frame.push_back(one_in(random, 8) ? static_cast<std::uint8_t>(random()) : 4);
	put16(frame, 1 + below(random, 3));
	for (int side = 0; side < 2; side++) {
		if (one_in(random, 2))
			frame.insert(frame.end(), address.begin(), address.end());
		else
			put_noise(random, frame, address.size());
		put_noise(random, frame, 4);
	}
	if (one_in(random, 4))
		frame.resize(below(random, static_cast<unsigned>(frame.size())));
	return frame;
}

/*
 * Returns a neighbour advertisement or solicitation (RFC 4861) whose option has an arbitrary
 * length.
 */
Bytes neighbour_discovery(Random &random, std::span<const std::uint8_t, 20> address)
{
	Bytes frame = encapsulated(random, 0x86dd);
	const std::uint8_t version[] = {0x60, 0, 0, 0};
	frame.insert(frame.end(), std::begin(version), std::end(version));
	put16(frame, 48);
	frame.push_back(58);
	frame.push_back(255);
	put_noise(random, frame, 32);
	frame.push_back(static_cast<std::uint8_t>(133 + below(random, 5)));
	frame.push_back(0);
	put_noise(random, frame, 22);
	frame.push_back(static_cast<std::uint8_t>(1 + below(random, 5)));
	frame.push_back(one_in(random, 2) ? 3 : static_cast<std::uint8_t>(random()));
	put16(frame, 0);
	frame.insert(frame.end(), address.begin(), address.end());
	return frame;
}

} // namespace

Bytes make_frame(Random &random, std::size_t limit, std::span<const std::uint8_t, 20> address)
{
	Bytes frame;

	switch (below(random, 7)) {
	case 0:
		put_noise(random, frame, below(random, static_cast<unsigned>(limit) + 1));
		break;
	case 1:
		/* Too short for a header, or for anything after it. */
		put_noise(random, frame, below(random, 5));
		break;
	case 2:
		frame = encapsulated(random, static_cast<unsigned>(random()));
		put_noise(random, frame, below(random, static_cast<unsigned>(limit) - 3));
		break;
	case 3:
		frame = ipv4(random, limit);
		break;
	case 4:
		frame = ipv6(random, limit);
		break;
	case 5:
		frame = arp(random, address);
		break;
	default:
		frame = neighbour_discovery(random, address);
		break;
	}
	if (one_in(random, 8))
		frame.resize(below(random, static_cast<unsigned>(frame.size()) + 1));
	if (frame.size() > limit)
		frame.resize(limit);
	return frame;
}

} // namespace weft::malicious_guest
