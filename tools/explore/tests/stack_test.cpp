// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Proves that each check of the simulated network stack reports its injected defect
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
	expect_reported("napi_disabled_twice_is_reported",
			"NAPI is disabled that is disabled already");
}
TEST(ExplorerStack, ReportsDoubleNapiEnable)
{
	expect_reported("napi_enabled_twice_is_reported",
			"NAPI is enabled that is enabled already");
}
TEST(ExplorerStack, ReportsNapiDeletedWhileEnabled)
{
	expect_reported("napi_deleted_while_enabled_is_reported", "NAPI ends that is enabled");
}
TEST(ExplorerStack, ReportsNapiDisableInRcuSection)
{
	expect_reported("napi_disabled_in_rcu_section_is_reported", "sleeping where one must not");
}
TEST(ExplorerStack, ReportsSendsChargedToTheNapiBudget)
{
	expect_reported("napi_budget_charged_for_sends_is_reported",
			"a poll of what is sent is charged to the budget");
}
TEST(ExplorerStack, ReportsLeakedPackets)
{
	expect_reported("leaked_packet_is_reported", "memory is left");
}
TEST(ExplorerStack, ReportsPacketsFreedInFlight)
{
	expect_reported("packet_freed_while_device_owns_it_is_reported",
			"a packet is freed while the device has it");
}
TEST(ExplorerStack, ReportsCompletionOfUnsentBytes)
{
	expect_reported("completion_of_unsent_bytes_is_reported",
			"more is completed than was handed over");
}
TEST(ExplorerStack, ReportsLeakedNetworkInterfaces)
{
	expect_reported("leaked_interface_is_reported", "a network interface is left");
}
TEST(ExplorerStack, ReportsNetDeviceChangesWithoutRtnl)
{
	expect_reported("device_change_without_rtnl_is_reported",
			"a lock is not held that should be");
}
