// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Contains the main function of weft-ucma-probe, which calls /dev/infiniband/rdma_cm without a
 * library. It sends no data, and creates queue pairs only for a kernel that requires them.
 *
 *   weft-ucma-probe random SEED COUNT
 *       issues random commands from several threads
 *   weft-ucma-probe serve PORT SEED
 *       listens on TCP PORT and UDP PORT + 1, and prints "ready"
 *   weft-ucma-probe connect ADDRESS PORT SEED COUNT
 *       connects COUNT times
 *
 * With seed 0, "serve" accepts all requests, and "connect" fails unless all connections are
 * established. With another seed, both abandon some connections in each state.
 */
#include <arpa/inet.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/ucma_probe/node.hpp"

namespace
{

std::uint64_t number(const char *word)
{
	return std::strtoull(word, nullptr, 0);
}

} // namespace

int main(int count, char **words)
{
	const std::string what = count > 1 ? words[1] : "";

	if (what == "random" && count == 4) {
		weft::ucma::try_random(number(words[2]), number(words[3]));
	} else if (what == "serve" && count == 4) {
		weft::ucma::serve(static_cast<std::uint16_t>(number(words[2])), number(words[3]));
	} else if (what == "connect" && count == 6) {
		const std::uint32_t address = ntohl(inet_addr(words[2]));
		const auto port = static_cast<std::uint16_t>(number(words[3]));
		const unsigned long established =
			weft::ucma::connect_to(address, port, number(words[4]), number(words[5]));
		std::printf("%lu established\n", established);
		return number(words[4]) == 0 && established != number(words[5]);
	} else {
		return 2;
	}
	return 0;
}
