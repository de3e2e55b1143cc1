// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that samples of which only the changes are sent equal complete ones.
#include "weft/samples.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

namespace weft::cli
{
namespace
{

using nlohmann::json;

json complete(unsigned generation, double time, json ports)
{
	return {{"generation", generation},
		{"time", time},
		{"columns", {"xmit_packets"}},
		{"ports", std::move(ports)},
		{"down", {"a"}},
		{"guests", json::array()},
		{"ethernet", {{"columns", {"xmit_frames"}}, {"ports", {{"e", {1}}, {"f", {1}}}}}},
		{"subnet_manager", {{"state", "standby"}, {"sweeps", 1}}}};
}

TEST(Samples, IncrementalCounterSampleKeepsUnchangedValuesOfThePreviousSample)
{
	Samples samples;
	EXPECT_EQ(samples.request(), json::object());
	EXPECT_TRUE(samples.add(complete(7, 1, {{"a", {1}}, {"b", {1}}, {"c", {1}}})));
	EXPECT_EQ(samples.before().at("ports"), samples.now().at("ports"));
	EXPECT_EQ(samples.request(), (json{{"since", 7}}));

	EXPECT_FALSE(samples.add({{"generation", 8},
				  {"since", 7},
				  {"time", 2},
				  {"ports", {{"b", {5}}}},
				  {"ethernet", {{"ports", {{"f", {3}}}}}},
				  {"subnet_manager", nullptr}}));
	EXPECT_EQ(samples.before().at("ports"), (json{{"a", {1}}, {"b", {1}}, {"c", {1}}}));
	EXPECT_EQ(samples.before().at("time"), 1);
	EXPECT_EQ(samples.now().at("ports"), (json{{"a", {1}}, {"b", {5}}, {"c", {1}}}));
	EXPECT_EQ(samples.now().at("down"), json::array({"a"}));
	EXPECT_EQ(samples.now().at("ethernet").at("ports"), (json{{"e", {1}}, {"f", {3}}}));
	EXPECT_EQ(samples.now().at("ethernet").at("columns").size(), 1u);
	EXPECT_TRUE(samples.now().at("subnet_manager").is_null());

	// The change of b is in both samples now.
	EXPECT_FALSE(samples.add({{"generation", 9},
				  {"since", 8},
				  {"time", 3},
				  {"ports", {{"c", {2}}}},
				  {"down", json::array()}}));
	EXPECT_EQ(samples.before().at("ports"), (json{{"a", {1}}, {"b", {5}}, {"c", {1}}}));
	EXPECT_EQ(samples.before().at("time"), 2);
	EXPECT_EQ(samples.now().at("ports"), (json{{"a", {1}}, {"b", {5}}, {"c", {2}}}));
	EXPECT_EQ(samples.now().at("down"), json::array());
	EXPECT_EQ(samples.request(), (json{{"since", 9}}));
}

// After a change of the lab, weftd sends a complete sample, possibly with other ports.
TEST(Samples, CompleteCounterSampleReplacesAllPortsOfThePreviousSample)
{
	Samples samples;
	samples.add(complete(7, 1, {{"a", {1}}, {"b", {1}}}));
	EXPECT_TRUE(samples.add(complete(9, 2, {{"b", {4}}, {"d", {1}}})));
	EXPECT_EQ(samples.before().at("ports"), (json{{"a", {1}}, {"b", {1}}}));
	EXPECT_EQ(samples.now().at("ports"), (json{{"b", {4}}, {"d", {1}}}));
	EXPECT_FALSE(samples.add(
		{{"generation", 10}, {"since", 9}, {"time", 3}, {"ports", {{"d", {2}}}}}));
	EXPECT_EQ(samples.before().at("ports"), (json{{"b", {4}}, {"d", {1}}}));
	EXPECT_EQ(samples.now().at("ports"), (json{{"b", {4}}, {"d", {2}}}));
}

TEST(Samples, IncrementalCounterSampleIsRefusedIfItsBaseSampleOrOneOfItsPortsIsUnknown)
{
	Samples samples;
	const json changes{{"generation", 9}, {"since", 8}, {"time", 1}, {"ports", json::object()}};
	EXPECT_THROW(samples.add(changes), std::runtime_error);
	samples.add(complete(7, 1, {{"a", {1}}}));
	EXPECT_THROW(samples.add(changes), std::runtime_error);
	EXPECT_THROW(
		samples.add(
			{{"generation", 8}, {"since", 7}, {"time", 2}, {"ports", {{"x", {1}}}}}),
		std::runtime_error);
}

} // namespace
} // namespace weft::cli
