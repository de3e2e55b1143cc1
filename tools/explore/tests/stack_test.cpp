// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Each check of the hosted kernel's network stack is seen to report its planted defect
// (core/kern/hosted/tests/planted_stack.cpp).
#include "explored.hpp"

using namespace explore;

namespace
{

void expect_reported(const std::string &name, const std::string &title)
{
	expect_at_once("planted_stack." + name, title);
}

} // namespace

TEST(ExplorerStack, reports_napi_that_is_disabled_twice)
{
	expect_reported("napi_disabled_twice", "NAPI is disabled that is disabled already");
}
TEST(ExplorerStack, reports_napi_that_is_enabled_twice)
{
	expect_reported("napi_enabled_twice", "NAPI is enabled that is enabled already");
}
TEST(ExplorerStack, reports_napi_that_ends_enabled)
{
	expect_reported("napi_that_ends_enabled", "NAPI ends that is enabled");
}
TEST(ExplorerStack, reports_a_reader_that_waits_for_a_poll)
{
	expect_reported("napi_disabled_by_a_reader", "sleeping where one must not");
}
TEST(ExplorerStack, reports_a_packet_that_is_forgotten)
{
	expect_reported("packet_forgotten", "memory is left");
}
TEST(ExplorerStack, reports_a_packet_that_is_freed_while_the_device_has_it)
{
	expect_reported("packet_freed_while_lent", "a packet is freed while the device has it");
}
TEST(ExplorerStack, reports_more_completed_than_sent)
{
	expect_reported("more_completed_than_sent", "more is completed than was handed over");
}
TEST(ExplorerStack, reports_an_interface_that_is_left)
{
	expect_reported("interface_left", "a network interface is left");
}
TEST(ExplorerStack, reports_a_change_without_the_rtnl_lock)
{
	expect_reported("changed_without_the_lock", "a lock is not held that should be");
}
