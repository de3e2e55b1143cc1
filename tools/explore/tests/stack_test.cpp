// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that each check of the simulated network stack reports the defect that is injected for it
// (core/kern/sim/tests/defects_stack.cpp).
#include "explored.hpp"

using namespace explore;

namespace
{

void expect_reported(const std::string &name, const std::string &title)
{
	expect_at_once("stack_defects." + name, title);
}

} // namespace

TEST(ExplorerStack, ReportsDoubleNapiDisable)
{
	expect_reported("napi_disabled_twice_is_reported", "NAPI is disabled twice");
}
TEST(ExplorerStack, ReportsDoubleNapiEnable)
{
	expect_reported("napi_enabled_twice_is_reported", "NAPI is enabled twice");
}
TEST(ExplorerStack, ReportsNapiDeletedWhileEnabled)
{
	expect_reported("napi_deleted_while_enabled_is_reported",
			"NAPI is deleted while it is enabled");
}
TEST(ExplorerStack, ReportsNapiDisableInRcuSection)
{
	expect_reported("napi_disabled_in_rcu_section_is_reported",
			"a function that may sleep is called in atomic context");
}
TEST(ExplorerStack, ReportsNapiPollsThatCountTransmitCompletionsAgainstTheBudget)
{
	expect_reported("napi_poll_that_counts_transmissions_against_its_budget_is_reported",
			"completed transmissions are charged to the NAPI budget");
}
TEST(ExplorerStack, ReportsLeakedPackets)
{
	expect_reported("leaked_skb_is_reported", "memory was not freed");
}
TEST(ExplorerStack, ReportsPacketsFreedWhileTheDeviceOwnsThem)
{
	expect_reported("skb_freed_while_owned_by_the_device_is_reported",
			"a packet is freed while the device owns it");
}
TEST(ExplorerStack, ReportsCompletionOfMoreBytesThanWereSent)
{
	expect_reported("transmit_completion_of_more_bytes_than_sent_is_reported",
			"more bytes are completed than were sent");
}
TEST(ExplorerStack, ReportsLeakedNetworkInterfaces)
{
	expect_reported("leaked_net_device_is_reported", "a network interface remains");
}
TEST(ExplorerStack, ReportsNetDeviceChangesWithoutRtnl)
{
	expect_reported("net_device_change_without_rtnl_is_reported",
			"a required lock is not held");
}
