// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Fuzzes an emulated ConnectX-5 with the accesses of a malicious guest (malicious_guest.hpp), while
// the card polls its doorbells.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include <sys/epoll.h>

#include <spdlog/spdlog.h>

#include "base/environment.hpp"
#include "cards/mlx5/tests/malicious_driver.hpp"

namespace
{

using namespace weft;

// Steps - time that advances whenever it is read, so that the pauses between polls are short and
// the same for each run of an input.
class Steps final : public Environment
{
public:
	Clock::time_point now() const override
	{
		now_ += std::chrono::microseconds(20);
		return Clock::time_point(now_);
	}
	std::chrono::system_clock::time_point date() const override
	{
		return std::chrono::system_clock::time_point(
			std::chrono::duration_cast<std::chrono::system_clock::duration>(now_));
	}
	std::uint64_t random() override { return ++random_; }
	// The fuzzer never waits for time to pass.
	int wait(int poll, epoll_event *events, int most, Clock::time_point) override
	{
		return std::max(0, ::epoll_wait(poll, events, most, 0));
	}

private:
	mutable Clock::duration now_ = std::chrono::hours(1);
	std::uint64_t random_ = 0;
};

struct Guest {
	Steps time;
	fabric::Fabric fabric;
	weft::testing::MaliciousGuest<mlx5::testing::MaliciousDriver> guest{
		fabric.add_port("malicious"),
		mlx5::testing::TinyDriver::kGuid,
		ib::Lid{0},
		std::function<void()>(),
		time,
		true};
};

} // namespace

extern "C" int LLVMFuzzerInitialize(int *, char ***)
{
	spdlog::set_level(spdlog::level::off);
	return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	static Guest fuzzed;
	fuzzed.guest.run(weft::testing::Input({data, size}));
	return 0;
}
