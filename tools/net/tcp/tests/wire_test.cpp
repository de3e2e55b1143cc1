// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that the checksums of IPv4 and TCP segments are those that RFC 1071 defines.
#include <gtest/gtest.h>

#include "net/tcp/wire.hpp"

namespace weft::tcp
{
namespace
{

// Computes the sum as RFC 1071 describes it: 16-bit words in big-endian order, with the carry added
// again.
std::uint16_t plain_sum(View bytes, std::uint32_t begin)
{
	std::uint64_t sum = begin;
	for (std::size_t i = 0; i < bytes.size(); ++i)
		sum += std::uint64_t{bytes[i]} << (i % 2 ? 0 : 8);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return static_cast<std::uint16_t>(sum);
}

TEST(TcpWire, ChecksumsMatchRfc1071)
{
	const Bytes example{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7}; // section 3
	EXPECT_EQ(checksum(example), 0xffff - 0xddf2);
	Bytes bytes(67);
	for (std::size_t i = 0; i < bytes.size(); ++i)
		bytes[i] = static_cast<std::uint8_t>(0xff - i * i);
	for (std::size_t start = 0; start < 5; ++start)
		for (std::size_t size = 0; size <= bytes.size() - start; ++size)
			for (const std::uint32_t begin : {0u, 1u, 0xffffu, 0x3fedcu}) {
				const View part = View(bytes).subspan(start, size);
				ASSERT_EQ(checksum(part, begin), 0xffff - plain_sum(part, begin))
					<< start << " + " << size << " on " << begin;
			}
}

} // namespace
} // namespace weft::tcp
