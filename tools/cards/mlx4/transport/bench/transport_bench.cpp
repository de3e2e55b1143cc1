// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Measures the data path without a guest: two cards on one link are driven by one thread, so a
 * result includes the work of both cards. Also measures memcpy with the same buffers.
 */
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>

#include <spdlog/spdlog.h>

#include "cards/mlx4/transport/tests/node.hpp"

using namespace weft;
using namespace weft::mlx4;
using namespace weft::mlx4::transport;

namespace
{

using weft::mlx4::CompletionQueue;
using weft::mlx4::QueuePair;
using BenchClock = std::chrono::steady_clock;

double seconds_since(BenchClock::time_point start)
{
	return std::chrono::duration<double>(BenchClock::now() - start).count();
}

class Bench
{
public:
	explicit Bench(ib::Mtu mtu)
	{
		options_.mtu = mtu;
		options_.log_send = 8;
		options_.log_receive = 8;
		options_.ack_timeout = 18;
		qp_a = &a.create_qp(options_, cq_a, cq_a);
		qp_b = &b.create_qp(options_, cq_b, cq_b);
		a.connect(*qp_a, b, *qp_b, options_);
		b.connect(*qp_b, a, *qp_a, options_);
	}

	/* Keeps @depth requests posted until @count have completed; returns the seconds it took. */
	double run(const std::vector<std::byte> &wqe, unsigned depth, unsigned count,
		   const std::vector<WqeData> *receive)
	{
		auto start = BenchClock::now();
		unsigned posted = 0, done = 0;
		auto post = [&] {
			if (receive)
				b.post_receive(*qp_b, *receive);
			a.post(*qp_a, wqe);
			posted++;
		};
		while (posted < std::min(depth, count))
			post();
		a.ring(*qp_a);
		while (done < count) {
			a.poll();
			b.poll();
			while (b.poll_cq(cq_b)) {
			}
			bool ring = false;
			while (auto completion = a.poll_cq(cq_a)) {
				if (completion->is_error) {
					std::fprintf(stderr, "syndrome %u\n",
						     static_cast<unsigned>(completion->syndrome));
					std::exit(1);
				}
				done++;
				if (posted < count) {
					post();
					ring = true;
				}
			}
			if (ring)
				a.ring(*qp_a);
		}
		return seconds_since(start);
	}

	fabric::Fabric fabric;
	fabric::Port &port_a = fabric.add_port("a");
	fabric::Port &port_b = fabric.add_port("b");
	fabric::Link &link = fabric.connect(port_a, port_b);
	Node a{port_a, 1};
	Node b{port_b, 2};
	CompletionQueue &cq_a = a.create_cq(), &cq_b = b.create_cq();
	QueuePair *qp_a, *qp_b;

private:
	QpOptions options_;
};

double memcpy_rate(std::span<std::byte> to, std::span<const std::byte> from)
{
	unsigned rounds = static_cast<unsigned>((1ull << 30) / from.size());
	auto start = BenchClock::now();
	for (unsigned i = 0; i < rounds; i++) {
		std::memcpy(to.data(), from.data(), from.size());
		asm volatile("" : : "r"(to.data()) : "memory");
	}
	return static_cast<double>(from.size()) * rounds / seconds_since(start);
}

void measure(ib::Mtu mtu, bool paged)
{
	Bench bench(mtu);
	std::vector<std::uint64_t> pages;
	constexpr std::uint64_t largest = 1 << 20;
	Region from =
		paged ? bench.a.paged_region(largest, 0x100000000, pages) : bench.a.region(largest);
	Region to =
		paged ? bench.b.paged_region(largest, 0x100000000, pages) : bench.b.region(largest);
	std::printf("mtu %u, %s memory\n", ib::mtu_bytes(mtu), paged ? "scattered" : "contiguous");
	for (std::uint64_t size :
	     {std::uint64_t{8}, std::uint64_t{4096}, std::uint64_t{65536}, largest}) {
		unsigned count = static_cast<unsigned>(
			std::clamp<std::uint64_t>((1ull << 30) / size, 500, 200000));
		struct Kind {
			const char *name;
			WqeOpcode opcode;
		};
		for (Kind kind :
		     {Kind{"write", WqeOpcode::rdma_write}, Kind{"send", WqeOpcode::send},
		      Kind{"read", WqeOpcode::rdma_read}}) {
			WqeBuilder builder(kind.opcode);
			bool send = kind.opcode == WqeOpcode::send;
			if (!send)
				builder.add(WqeRemoteAddress{to.address, to.key, 0});
			auto wqe = builder.add(from.piece(0, size)).done();
			std::vector<WqeData> receive{to.piece()};
			double time = bench.run(wqe, 64, count, send ? &receive : nullptr);
			double rate = static_cast<double>(size) * count / time;
			std::printf("  %-6s %8llu bytes  %9.0f /s  %8.1f MB/s", kind.name,
				    static_cast<unsigned long long>(size), count / time,
				    rate / 1e6);
			if (size >= 4096 && !paged)
				std::printf("  %5.1f %% of memcpy",
					    100 * rate /
						    memcpy_rate(bench.b.bytes(to.address, size),
								bench.a.bytes(from.address, size)));
			std::printf("\n");
		}
	}
}

} // namespace

int main()
{
	spdlog::set_level(spdlog::level::warn);
	measure(ib::Mtu::mtu_2048, false);
	measure(ib::Mtu::mtu_4096, false);
	measure(ib::Mtu::mtu_4096, true);
}
