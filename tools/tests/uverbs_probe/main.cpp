// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Contains the main function of weft-uverbs-probe, which misuses /dev/infiniband/uverbs0, umad0 and
 * issm0. The first argument selects what the program does:
 *
 *   refusals           makes requests that must be refused, and checks their errors
 *   methods            does the same with the ioctl() interface
 *   bounds             checks how many of the device's objects one user can create
 *   control-group      checks the limits of the rdma controller of cgroups
 *   limits             checks that root can create as many objects as the device reports
 *   random SEED COUNT  issues random commands from several threads
 *   random-mads SEED COUNT [MASK]
 *                      registers random agents and sends random MADs, whose path bits are in MASK
 *   short-mads SEED COUNT
 *                      sends MADs that end within their headers
 *   deaths SEED TIMES  starts programs and kills them during each command
 *   ends               closes files and ends processes that have objects
 *   domains            checks XRC domains and their sharing
 *   stay               creates one object of each kind, prints "ready", and waits for a line
 *   stay-in-group      does the same with a QP in a multicast group
 *   outlive            prints "ready", and waits for a line; the device is removed meanwhile
 *   outlive-many       does the same with a thousand objects
 *   mads               checks MADs: refusals, responses, limits, and closing of files
 *   mads-outlive       does the same as outlive, with umad0 and issm0
 *
 * The program prints unexpected results, and exits with status 1 if there are any.
 */
#include <cstdio>
#include <cstdlib>

#include "tests/uverbs_probe/program.hpp"

int main(int count, char **words)
{
	const std::string what = count > 1 ? words[1] : "";

	if (what == "refusals")
		weft::uverbs::try_refusals();
	else if (what == "methods")
		weft::uverbs::try_methods();
	else if (what == "bounds")
		weft::uverbs::try_shares();
	else if (what == "control-group")
		weft::uverbs::try_control_group();
	else if (what == "limits")
		weft::uverbs::try_limits();
	else if (what == "random" && count == 4)
		weft::uverbs::try_random(std::strtoull(words[2], nullptr, 0),
					 std::strtoul(words[3], nullptr, 0));
	else if (what == "random-mads" && (count == 4 || count == 5))
		weft::uverbs::try_random_mads(
			std::strtoull(words[2], nullptr, 0), std::strtoul(words[3], nullptr, 0),
			count == 5 ? static_cast<unsigned>(std::strtoul(words[4], nullptr, 0))
				   : ~0u);
	else if (what == "short-mads" && count == 4)
		weft::uverbs::try_short_mads(std::strtoull(words[2], nullptr, 0),
					     std::strtoul(words[3], nullptr, 0));
	else if (what == "deaths" && count == 4)
		weft::uverbs::try_deaths(std::strtoull(words[2], nullptr, 0),
					 std::strtoul(words[3], nullptr, 0));
	else if (what == "ends")
		weft::uverbs::try_ends();
	else if (what == "domains")
		weft::uverbs::try_domains();
	else if (what == "stay")
		weft::uverbs::stay();
	else if (what == "stay-in-group")
		weft::uverbs::stay_in_group();
	else if (what == "outlive")
		weft::uverbs::outlive_device();
	else if (what == "outlive-many")
		weft::uverbs::outlive_with_many();
	else if (what == "mads")
		weft::uverbs::try_mads();
	else if (what == "mads-outlive")
		weft::uverbs::outlive_port();
	else
		return 2;
	return weft::uverbs::failures() ? 1 : 0;
}
