// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Measures how long the subnet manager takes to bring up a large subnet, and to recover after a
// link has flapped. The arguments are the size of a two-level fat tree:
//
//   subnet_bench [LEAVES HOSTS_PER_LEAF SPINES]
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include <spdlog/spdlog.h>

#include "sm/subnet_manager.hpp"
#include "sm/tests/big_subnet.hpp"

namespace
{

using namespace weft;
using BenchClock = std::chrono::steady_clock;

double since(BenchClock::time_point start)
{
	return std::chrono::duration<double>(BenchClock::now() - start).count();
}

unsigned argument(int argc, char **argv, int index, unsigned otherwise)
{
	return argc > index ? static_cast<unsigned>(std::strtoul(argv[index], nullptr, 10))
			    : otherwise;
}

} // namespace

int main(int argc, char **argv)
{
	spdlog::set_level(spdlog::level::warn);
	const auto begin = BenchClock::now();
	fabric::Fabric fabric;
	sm::testing::BigSubnet subnet(fabric, argument(argc, argv, 1, 250),
				      argument(argc, argv, 2, 40), argument(argc, argv, 3, 4));
	fabric::Port &port = subnet.manager_port(fabric);
	std::printf("made %.3f\n", since(begin));

	const auto start = BenchClock::now();
	sm::SubnetManager manager(port, {});
	const auto complete = [&](std::uint64_t before) {
		return manager.wait_for(
			[&](const auto &status) {
				return status.sweeps > before && status.complete;
			},
			std::chrono::minutes(5));
	};
	if (!complete(0) || subnet.active() != subnet.hosts.size())
		return 1;
	std::printf("active %.3f\n", since(start));
	std::printf("requests %llu\n", static_cast<unsigned long long>(manager.status().requests));

	const auto before = manager.status();
	const auto flapped = BenchClock::now();
	subnet.links.back()->set_plugged(false);
	if (!complete(before.sweeps))
		return 1;
	const auto gone = manager.status();
	subnet.links.back()->set_plugged(true);
	if (!complete(gone.sweeps) || subnet.active() != subnet.hosts.size())
		return 1;
	std::printf("flap %.3f\n", since(flapped));
	std::printf("flap-requests %llu\n",
		    static_cast<unsigned long long>(manager.status().requests - before.requests));
	return 0;
}
