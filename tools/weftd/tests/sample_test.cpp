// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the request fabric.sample: its result contains only the values that have changed since the
// client's previous sample (identified by its generation number), or all values if that sample is
// unknown, or if ports or hosts have been added or removed since.
#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <unistd.h>

#include "base/unix_listener.hpp"
#include "weftd/control.hpp"
#include "weftd/lab_runtime.hpp"

namespace weft::weftd
{
namespace
{

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Without a subnet manager, so that no packets change counters.
constexpr const char *kSampledLab = R"(
[sm]
enabled = false
[[ethernet]]
name = "lan"
[[switch]]
name = "s1"
ports = 8
[[host]]
name = "a"
ethernet = "lan"
[[host]]
name = "b"
[[link]]
ends = ["a", "s1"]
[[link]]
ends = ["b", "s1"]
)";

class Sample : public ::testing::Test
{
protected:
	Sample()
	    : directory_(std::filesystem::temp_directory_path() /
			 ("weft-sample-" + std::to_string(::getpid())))
	{
		std::filesystem::remove_all(directory_);
		std::filesystem::create_directory(directory_);
		runtime_ = std::make_unique<LabRuntime>(parse_lab(kSampledLab, "lab", "test"),
							directory_);
		session_ = std::make_unique<ControlSession>(*runtime_, [] {});
	}
	~Sample() override
	{
		session_.reset();
		runtime_.reset();
		std::filesystem::remove_all(directory_);
	}

	json ask(const json &request)
	{
		const auto answer = json::parse(session_->handle(request.dump()));
		return answer["ok"] == true ? answer["result"] : answer["error"];
	}
	json sample_since(const json &since)
	{
		return ask({{"command", "fabric.sample"}, {"since", since}, {"cards", true}});
	}
	void apply(const std::string &text)
	{
		const auto answer = ask({{"command", "lab.apply"},
					 {"source", "new"},
					 {"folder", "/labs"},
					 {"text", text}});
		EXPECT_TRUE(answer.is_object()) << answer;
	}
	static bool is_complete(const json &sample)
	{
		const json ethernet = sample.value("ethernet", json::object());
		return !sample.contains("since") && sample.contains("down") &&
		       sample.contains("guests") && sample["ports"].contains("a/1") &&
		       sample["columns"].size() == sample["ports"]["a/1"].size() &&
		       sample["cards"].contains("a") && ethernet.contains("links") &&
		       ethernet.contains("attached") && ethernet["ports"].contains("a/eth0") &&
		       ethernet["columns"].size() == ethernet["ports"]["a/eth0"].size();
	}
	fabric::Counters &counters_of_a()
	{
		return runtime_->fabric().find_port("a/1")->counters();
	}

	std::filesystem::path directory_;
	std::unique_ptr<LabRuntime> runtime_;
	std::unique_ptr<ControlSession> session_;
};

TEST_F(Sample, SampleSinceAnEarlierGenerationContainsOnlyChangedValues)
{
	const json first = sample_since(0);
	EXPECT_TRUE(is_complete(first)) << first;
	EXPECT_EQ(first["ports"].size(), 4u) << "two links";
	EXPECT_EQ(first["cards"]["a"]["commands"], 0);
	EXPECT_FALSE(ask({{"command", "fabric.sample"}}).contains("cards"));

	const json idle = sample_since(first["generation"]);
	EXPECT_EQ(idle["since"], first["generation"]);
	EXPECT_GT(idle["generation"], first["generation"]);
	EXPECT_GT(idle["time"], first["time"]);
	for (const char *name : {"columns", "down", "guests"})
		EXPECT_FALSE(idle.contains(name)) << name;
	EXPECT_EQ(idle["ports"], json::object());
	EXPECT_EQ(idle["cards"], json::object());
	EXPECT_EQ(idle["ethernet"], (json{{"ports", json::object()}}));
	EXPECT_TRUE(idle.contains("subnet_manager"));

	fabric::Counters::add(counters_of_a().xmit_packets, 3);
	const json packets = sample_since(idle["generation"]);
	ASSERT_EQ(packets["ports"].size(), 1u) << packets;
	EXPECT_EQ(packets["ports"]["a/1"][0], 3);
	EXPECT_EQ(packets["ports"]["a/1"].size(), first["columns"].size());
	EXPECT_TRUE(sample_since(packets["generation"])["ports"].empty());

	runtime_->fabric().find_port("a/1")->enable();
	json up;
	do
		up = sample_since(idle["generation"]);
	while (!up.contains("down"));
	EXPECT_THAT(up["down"], ElementsAre("b/1-s1/2"));
	EXPECT_FALSE(up.contains("guests"));
	EXPECT_FALSE(sample_since(up["generation"]).contains("down"));
}

TEST_F(Sample, ColumnsHaveTheValuesThatTheCountersCommandReturnsByName)
{
	const json names = sample_since(0)["columns"];
	auto &counters = counters_of_a();
	counters.xmit_data = 1;
	counters.rcv_data = 2;
	counters.xmit_packets = 3;
	counters.rcv_packets = 4;
	counters.multicast_xmit_packets = 5;
	counters.multicast_rcv_packets = 6;
	counters.symbol_errors = 7;
	counters.xmit_wait = 8;
	const json by_name = ask({{"command", "counters"}, {"port", "a/1"}})["a/1"];
	const json values = sample_since(0)["ports"]["a/1"];
	ASSERT_EQ(names.size(), values.size());
	EXPECT_EQ(names.size(), by_name.size());
	for (std::size_t i = 0; i < names.size(); ++i)
		EXPECT_EQ(values[i], by_name[names[i].get<std::string>()]) << names[i];
	EXPECT_EQ(by_name["multicast_rcv_packets"], 6);
}

// What one client has got is not missing in the answer to another one.
TEST_F(Sample, EachClientGetsTheChangesSinceItsOwnLastSample)
{
	const json first = sample_since(0);
	fabric::Counters::add(counters_of_a().xmit_wait);
	const json second = sample_since(first["generation"]);
	fabric::Counters::add(runtime_->fabric().find_port("b/1")->counters().rcv_errors);
	EXPECT_EQ(sample_since(first["generation"])["ports"].size(), 2u);
	EXPECT_EQ(sample_since(second["generation"])["ports"].size(), 1u);
}

TEST_F(Sample, SampleSinceAnUnknownGenerationContainsAllValues)
{
	const auto last = sample_since(0)["generation"].get<std::uint64_t>();
	for (const std::uint64_t since :
	     {std::uint64_t{1}, last - 1, last + 1000, ~std::uint64_t{0}})
		EXPECT_TRUE(is_complete(sample_since(since))) << since;
	EXPECT_EQ(sample_since(last)["since"], last);
	for (const json &since : {json(-1), json("x"), json(1.5), json(nullptr)})
		EXPECT_THAT(sample_since(since).dump(), HasSubstr("'since' must be a number"));
	EXPECT_TRUE(ask({{"command", "fabric.sample"}, {"cards", 1}}).is_string());
}

// A generation has no meaning for ports and hosts that did not exist then.
TEST_F(Sample, NextSampleContainsAllValuesAfterAHostOrPortWasAddedOrRemoved)
{
	const std::string lab = kSampledLab;
	std::uint64_t last = sample_since(0)["generation"];
	for (const std::string &added :
	     {std::string(
		      "[[host]]\nname = \"c\"\nmodel = \"endpoint\"\n[[link]]\nends = [\"c\", \"s1\"]\n"),
	      std::string("[[host]]\nname = \"d\"\n"),
	      std::string("[[host]]\nname = \"e\"\nethernet = \"lan\"\n"), std::string()}) {
		apply(lab + added);
		const json sample = sample_since(last);
		EXPECT_TRUE(is_complete(sample)) << added << sample;
		last = sample["generation"];
		EXPECT_EQ(sample_since(last)["since"], last);
	}
}

TEST_F(Sample, SampleContainsChangesOfEthernetPortsAndLinks)
{
	const json first = sample_since(0);
	const FileDescriptor guest = connect_unix(directory_ / "a-eth0.sock");
	json attached;
	do
		attached = sample_since(first["generation"])["ethernet"];
	while (!attached.contains("attached"));
	EXPECT_THAT(attached["attached"], ElementsAre("a/eth0-lan/1"));
	EXPECT_FALSE(attached.contains("links"));
	EXPECT_FALSE(attached.contains("columns"));

	const json before = sample_since(first["generation"]);
	std::array<char, 64> frame{0, 0, 0, 60};
	ASSERT_EQ(::send(guest.get(), frame.data(), frame.size(), 0), 64);
	json frames;
	do
		frames = sample_since(before["generation"])["ethernet"];
	while (frames["ports"].size() < 2);
	EXPECT_TRUE(frames["ports"].contains("a/eth0") && frames["ports"].contains("lan/1"));
	EXPECT_FALSE(frames.contains("attached"));

	ask({{"command", "link.down"}, {"link", "a/eth0"}});
	const json down = sample_since(before["generation"])["ethernet"];
	EXPECT_EQ(down["links"]["a/eth0-lan/1"], false);
}

// The clients of a server share the stored values, so that a client may continue on another
// connection.
TEST_F(Sample, SampleGenerationStaysValidOnANewControlConnection)
{
	Loop loop("control");
	const auto path = directory_ / "control.sock";
	ControlServer server(loop, *runtime_, path, [] {});
	const auto sample = [&](const json &since) {
		const auto socket = connect_unix(path);
		const std::string line =
			json{{"command", "fabric.sample"}, {"since", since}}.dump() + '\n';
		EXPECT_EQ(::send(socket.get(), line.data(), line.size(), 0),
			  static_cast<ssize_t>(line.size()));
		std::string answer;
		for (char byte; ::recv(socket.get(), &byte, 1, 0) == 1 && byte != '\n';)
			answer += byte;
		return json::parse(answer)["result"];
	};
	const json first = sample(0);
	EXPECT_FALSE(first.contains("since"));
	EXPECT_EQ(sample(first["generation"])["since"], first["generation"]);
}

} // namespace
} // namespace weft::weftd
