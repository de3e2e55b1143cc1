// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Posts arbitrary send WQEs on QPs of every transport service. The first byte of an input selects
 * the QP; each WQE is a length byte, followed by that many 16-byte units. Some words are replaced
 * by values that a guest would know, such as keys, so that the input passes more than the first
 * check.
 */
#include <algorithm>
#include <cstring>

#include "cards/mlx4/transport/fuzz/fixture.hpp"

using namespace weft::mlx4::transport;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	if (size < 2)
		return 0;
	FuzzFixture &fixture = fuzz_fixture();
	const auto &pair = fixture.pair(data[0] % FuzzFixture::kKinds);
	std::span<const std::uint8_t> input(data + 1, size - 1);
	for (unsigned count = 0; count < 12 && input.size() > 1; count++) {
		std::size_t units = 1 + input[0] % 63;
		bool honest = (input[0] & 0x40) != 0;
		input = input.subspan(1);
		std::vector<std::byte> wqe(units * weft::mlx4::transport::wqe_unit);
		std::size_t bytes = std::min(wqe.size(), input.size());
		std::memcpy(wqe.data(), input.data(), bytes);
		input = input.subspan(bytes);
		if (honest) {
			wqe[7] = static_cast<std::byte>(units);
			for (std::size_t at = 16; at + 16 <= wqe.size(); at += 16) {
				auto marker = std::to_integer<unsigned>(wqe[at]);
				if (marker == 0xa1) {
					WqeData piece = fixture.memory_a.piece(
						std::to_integer<unsigned>(wqe[at + 1]),
						std::to_integer<unsigned>(wqe[at + 2]) * 37);
					std::memcpy(wqe.data() + at, &piece, 16);
				} else if (marker == 0xb2) {
					WqeRemoteAddress remote{
						fixture.memory_b.address +
							std::to_integer<unsigned>(wqe[at + 1]),
						fixture.memory_b.key, 0};
					std::memcpy(wqe.data() + at, &remote, 16);
				} else if (marker == 0xc3) {
					const ib::be32 key = fixture.free_key;
					std::memcpy(wqe.data() + at + 4, &key, sizeof(key));
				}
			}
		}
		fixture.a.post_send(*pair[0], wqe);
		fixture.settle();
	}
	fixture.finish();
	return 0;
}
