// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that log lines of the subnet manager that guests cause are escaped and limited.
#include <gtest/gtest.h>

#include "sm/tests/captured_log.hpp"
#include "sm/tests/sa_lab.hpp"

namespace weft::sm
{
namespace
{

using namespace testing;

TEST(SmLog, ControlCharactersInNodeDescriptionsAreEscapedInTheLog)
{
	Lab lab;
	fabric::Switch &sw = lab.fabric.add_switch({.name = "sw", .ports = 4});
	fabric::Port &port = lab.fabric.add_port("host");
	lab.fabric.connect(port, sw.port(1));
	const fabric::MadPort host(port,
				   {.description = "\x1b[2Jforged\nline", .node_guid = 0x1000}, {});
	const CapturedLog log;
	ASSERT_TRUE(Lab::settled(lab.start(sw, 2)));
	EXPECT_NE(std::string::npos, log.text().find("\\x1b[2Jforged\\x0aline")) << log.text();
	EXPECT_EQ(std::string::npos, log.text().find('\x1b')) << log.text();
	EXPECT_EQ(std::string::npos, log.text().find("\nline")) << log.text();
}

// Only a few unacknowledged tables are sent at a time, and other requests are refused.
TEST_F(SaTest, RefusedGetTableRequestsDoNotFloodTheLog)
{
	const CapturedLog log;
	for (unsigned i = 0; i < 500; i++) {
		ib::SaMad mad = a.request(MadMethod::get_table, ib::attr_node_record, 0);
		a.send_sa(mad);
		lab.loop.poll();
	}
	// This request is answered, which shows that all other requests have been handled.
	ASSERT_TRUE(path(b, c));
	EXPECT_GT(log.lines(), 0u);
	EXPECT_LT(log.lines(), 20u) << log.text();
}

} // namespace
} // namespace weft::sm
