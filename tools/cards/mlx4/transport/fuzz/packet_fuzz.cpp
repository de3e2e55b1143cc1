// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Injects arbitrary packets on the link. In the fuzzer's input, each packet consists of a byte of
 * options, a length, and the bytes from the BTH on. The option byte can request a valid LRH,
 * destination QP and PSN, so that the packet reaches a QP.
 */
#include <algorithm>
#include <cstring>

#include "cards/mlx4/transport/fuzz/fixture.hpp"
#include "core/wire/headers.hpp"

using namespace weft;
using namespace weft::mlx4::transport;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	FuzzFixture &fixture = fuzz_fixture();
	std::span<const std::uint8_t> input(data, size);
	for (unsigned count = 0; count < 24 && input.size() > 3; count++) {
		const unsigned choice = input[0], offset = input[1];
		std::size_t payload_bytes = std::size_t{input[2]} * 4;
		input = input.subspan(3);
		packet::Headers headers;
		auto take = [&](void *into, std::size_t bytes) {
			bytes = std::min(bytes, input.size());
			std::memcpy(into, input.data(), bytes);
			input = input.subspan(bytes);
		};
		const auto &pair = fixture.pair(choice % FuzzFixture::kKinds);
		take(&headers.bth, sizeof(headers.bth));
		take(&headers.deth, sizeof(headers.deth));
		take(&headers.reth, sizeof(headers.reth));
		take(&headers.aeth, sizeof(headers.aeth));
		headers.atomic.address = headers.reth.address;
		headers.atomic.rkey = headers.reth.rkey;
		headers.lrh.slid = 1;
		headers.lrh.dlid = 2;
		if (choice & 0x80) {
			headers.bth.pkey = 0xffff;
			headers.bth.set_dest_qp(pair[1]->qpn);
			headers.deth.qkey = 0x1111;
			headers.xrceth.srq = fixture.srq.number();
			auto progress = fixture.b.transport().progress(*pair[1]);
			std::uint32_t base =
				choice & 0x40 ? progress.last_acked_psn : progress.next_receive_psn;
			headers.bth.set_psn(base + (offset & 0xf) - (offset >> 4));
		}
		if (choice & 0x20) {
			headers.reth.address = fixture.memory_b.address + offset;
			headers.reth.rkey = fixture.memory_b.key;
			headers.atomic.address = fixture.memory_b.address + (offset & ~7u);
			headers.atomic.rkey = fixture.memory_b.key;
		}
		std::vector<std::byte> payload(payload_bytes);
		const unsigned packets = choice & 0x10 ? 1 + offset % 5 : 1;
		fabric::Payload all;
		for (unsigned i = 0; i < packets; i++)
			if (!payload.empty())
				all.append(fabric::Payload::Piece{
					payload.data(), static_cast<std::uint32_t>(payload.size()),
					nullptr});
		/* An outstanding request, so that responses are accepted. */
		if (choice & 0x08)
			fixture.b.post_send(*pair[1],
					    WqeBuilder(WqeOpcode::rdma_read)
						    .add(WqeRemoteAddress{fixture.memory_a.address,
									  fixture.memory_a.key, 0})
						    .add(fixture.memory_b.piece(0, 1000))
						    .done());
		auto packet = fabric::Packet::make_run(headers, std::move(all), packets);
		if (packet)
			fixture.b.transport().receive(1, std::move(*packet));
		fixture.settle();
	}
	fixture.finish();
	return 0;
}
