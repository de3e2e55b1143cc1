// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Contains the main function of weft-uverbs-probe, which misuses /dev/infiniband/uverbs0, umad0 and
 * issm0.
 *
 *	weft-uverbs-probe refusals		requests that must be refused, with their errors
 *	weft-uverbs-probe methods		the same for the ioctl() interface
 *	weft-uverbs-probe bounds		how much of the device one user can use
 *	weft-uverbs-probe control-group		limits of the rdma controller
 *	weft-uverbs-probe limits		whether root can create as much as the device reports
 *	weft-uverbs-probe random SEED COUNT	random commands, from several threads
 *	weft-uverbs-probe random-mads SEED COUNT [MASK]	random agents and MADs, whose path bits are in MASK
 *	weft-uverbs-probe short-mads SEED COUNT	MADs that end within their headers
 *	weft-uverbs-probe deaths SEED TIMES	programs that are killed in each command
 *	weft-uverbs-probe ends			closing, forking, dying
 *	weft-uverbs-probe domains		XRC domains and their sharing
 *	weft-uverbs-probe stay			creates an object of each kind, prints "ready", and exits after a line of input
 *	weft-uverbs-probe stay-in-group		the same with a QP in a multicast group
 *	weft-uverbs-probe outlive		prints "ready", waits for a line; the device is removed meanwhile
 *	weft-uverbs-probe outlive-many		the same with a thousand objects
 *	weft-uverbs-probe mads			MADs: refusals, responses, bounds, closing
 *	weft-uverbs-probe mads-outlive		as outlive, for umad0 and issm0
 *
 * Prints unexpected results; the exit status is 1 if there are any.
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
