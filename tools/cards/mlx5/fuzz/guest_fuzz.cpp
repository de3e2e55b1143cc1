// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Fuzzes an emulated ConnectX-5 with the accesses of a malicious guest (malicious_guest.hpp).
#include <cstddef>
#include <cstdint>

#include <spdlog/spdlog.h>

#include "cards/mlx5/tests/malicious_driver.hpp"

extern "C" int LLVMFuzzerInitialize(int *, char ***)
{
	spdlog::set_level(spdlog::level::off);
	return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	static weft::testing::MaliciousGuest<weft::mlx5::testing::MaliciousDriver> guest;
	guest.run(weft::testing::Input({data, size}));
	return 0;
}
