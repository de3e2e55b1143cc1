// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that a restarted weftd restores the state of its lab from the state file.
#include "weftd/state_file.hpp"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "sm/subnet_manager.hpp"
#include "weftd/control.hpp"
#include "weftd/lab.hpp"
#include "weftd/lab_runtime.hpp"

namespace weft::weftd
{
namespace
{

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char *kTwoHosts = R"(
[[switch]]
name = "s1"
ports = 8
[[host]]
name = "a"
[[host]]
name = "b"
[[link]]
ends = ["a", "s1"]
[[link]]
ends = ["b", "s1"]
)";
// Host c comes first, so a and b keep their GUIDs only because the state file contains them.
constexpr const char *kThreeHosts = R"(
[[switch]]
name = "s1"
ports = 8
[[host]]
name = "c"
[[host]]
name = "b"
[[host]]
name = "a"
[[link]]
ends = ["c", "s1"]
[[link]]
ends = ["b", "s1"]
[[link]]
ends = ["a", "s1"]
)";

class State : public ::testing::Test
{
protected:
	State()
	    : directory_(std::filesystem::temp_directory_path() /
			 ("weft-state-" + std::to_string(::getpid())))
	{
		std::filesystem::remove_all(directory_);
		std::filesystem::create_directory(directory_);
		state_ = std::make_shared<StateFile>(file());
		state_->begin(LabText{"pair", "/labs", kTwoHosts});
		start();
	}
	~State() override
	{
		stop();
		std::filesystem::remove_all(directory_);
	}

	std::filesystem::path file() const { return directory_ / "state"; }

	void start()
	{
		runtime_ = std::make_unique<LabRuntime>(
			parse_lab(state_->lab()->text, state_->lab()->source, "test"), directory_);
		for (const auto &request : state_->requests()) {
			const auto answer =
				json::parse(ControlSession(*runtime_, [] {}).handle(request));
			EXPECT_TRUE(answer["ok"]) << answer;
		}
		session_ = std::make_unique<ControlSession>(*runtime_, [] {}, nullptr, state_);
	}
	void stop()
	{
		session_.reset();
		runtime_.reset();
	}
	// As after a SIGKILL, only the file is left.
	void start_again()
	{
		stop();
		state_ = std::make_shared<StateFile>(file());
		EXPECT_TRUE(state_->continues());
		state_->count_restart();
		start();
	}

	json ask(const json &request) { return json::parse(session_->handle(request.dump())); }
	json result(const json &request)
	{
		const auto answer = ask(request);
		EXPECT_TRUE(answer["ok"]) << answer;
		return answer["result"];
	}
	json apply(const char *text, bool dry_run = false)
	{
		return result({{"command", "lab.apply"},
			       {"source", "new"},
			       {"folder", "/labs"},
			       {"text", text},
			       {"dry_run", dry_run}});
	}
	// Returns everything that must be the same after a restart.
	json shown()
	{
		json fabric = result({{"command", "fabric.show"}});
		fabric.erase("subnet_manager");
		fabric.erase("subnet_managers");
		for (const char *kind : {"hosts", "switches"})
			for (json &node : fabric[kind]) {
				node.erase("lid");
				for (json &port : node["ports"])
					port.erase("lid");
			}
		for (json &link : fabric["links"])
			link.erase("up"); // trained meanwhile or not; the setting remains
		for (const char *kind : {"hosts", "switches"})
			for (json &node : fabric[kind])
				for (json &port : node["ports"])
					port.erase("up");
		return fabric;
	}

	std::filesystem::path directory_;
	std::shared_ptr<StateFile> state_;
	std::unique_ptr<LabRuntime> runtime_;
	std::unique_ptr<ControlSession> session_;
};

TEST_F(State, RestartRestoresLinkSettings)
{
	const json before = shown();
	result({{"command", "link.down"}, {"link", "a"}});
	result({{"command", "link.set"},
		{"link", "b/1"},
		{"settings", {{"loss", "0.25"}, {"delay", "1500ns"}, {"speed", "EDR"}}}});
	const json changed = shown();
	EXPECT_NE(before, changed);
	start_again();
	EXPECT_EQ(changed, shown());

	result({{"command", "link.up"}, {"link", "a"}});
	EXPECT_EQ(2u, state_->requests().size()) << "one for each link";
	start_again();
	EXPECT_EQ("up", result({{"command", "fabric.show"}})["links"][0]["settings"]["state"]);
}

// A client that pulls a cable and plugs it in again may crash in between, and so may weftd.
TEST_F(State, LinkDownRequestThatAsksNotToBeRecordedIsUndoneByARestartOfWeftd)
{
	const json before = shown();
	result({{"command", "link.down"}, {"link", "a"}, {"record", false}});
	EXPECT_NE(before, shown());
	EXPECT_THAT(state_->requests(), IsEmpty());
	start_again();
	EXPECT_EQ(before, shown());
	EXPECT_FALSE(ask({{"command", "link.down"}, {"link", "a"}, {"record", 0}})["ok"]);
	EXPECT_EQ(before, shown()) << "of a request that was refused";
}

TEST_F(State, RestartRestoresGuidsAndLinkSettingsOfAnAppliedLabFile)
{
	result({{"command", "link.down"}, {"link", "b"}});
	apply(kThreeHosts);
	result({{"command", "link.set"}, {"link", "c"}, {"settings", {{"loss", "1"}}}});
	const json changed = shown();
	start_again();
	EXPECT_EQ(changed, shown());
}

TEST_F(State, LabApplyRequestIsNotSavedIfItIsADryRunOrChangesNothing)
{
	apply(kThreeHosts, true);
	apply(kTwoHosts);
	EXPECT_THAT(state_->requests(), IsEmpty());
}

TEST_F(State, RefusedRequestIsNotSavedInTheStateFile)
{
	EXPECT_FALSE(ask({{"command", "link.down"}, {"link", "x"}})["ok"]);
	EXPECT_THAT(state_->requests(), IsEmpty());
}

TEST_F(State, RestartRestoresSettingsOfSubnetManagerAndCards)
{
	result({{"command", "sm.disable"}});
	result({{"command", "sm.corrupt-replies"}, {"one_in", 1}});
	result({{"command", "card.random_faults"}, {"host", "a"}, {"one_in", 1000000}});
	const auto recorded = state_->requests();
	EXPECT_EQ(3u, recorded.size());
	start_again();
	EXPECT_EQ(recorded, state_->requests());
	sm::SubnetManager &manager = *runtime_->subnet_manager();
	const auto manages = [](const auto &status) { return status.state == ib::SmState::master; };
	// The manager may have become master before it was disabled.
	std::this_thread::sleep_for(std::chrono::seconds(1));
	EXPECT_TRUE(manager.wait_for([&](const auto &status) { return !manages(status); },
				     std::chrono::seconds(60)));
	EXPECT_FALSE(manager.wait_for(manages, std::chrono::milliseconds(500)));
	// The manager has no clients, so this is the only thread that uses the object.
	ib::SaMad answer{};
	manager.reply_corrupter().pass(answer);
	EXPECT_EQ(1u, manager.reply_corrupter().corrupted());
	result({{"command", "sm.enable"}});
	EXPECT_TRUE(manager.wait_for(manages, std::chrono::seconds(60)));
	// Only the last request counts.
	result({{"command", "sm.enable"}});
	EXPECT_EQ(3u, state_->requests().size());
	EXPECT_THAT(state_->requests().back(), HasSubstr("sm.enable"));
}

// Faults that have not occurred yet occur after the restart. Faults that occur at once are not
// repeated.
TEST_F(State, RestartRestoresArmedFaults)
{
	const auto arm = [this](const char *host, const char *fault, unsigned count) {
		result({{"command", "card.fault"},
			{"host", host},
			{"fault", fault},
			{"count", count}});
	};
	const auto armed = [this](unsigned host) {
		return result({{"command", "fabric.show"}})["hosts"][host]["armed"];
	};
	arm("a", "catastrophic", 1);
	arm("a", "interrupt", 3);
	EXPECT_THAT(state_->requests(), IsEmpty());
	arm("a", "cqe-owner", 2);
	arm("a", "cqe-owner", 1);
	arm("a", "command-nth", 9);
	arm("b", "eqe-type", 4);
	EXPECT_EQ(armed(0), (json{{"cqe-owner", 3}, {"command-nth", 9}}));
	const auto recorded = state_->requests();
	EXPECT_EQ(recorded.size(), 3u) << "one for each host and fault";
	for (unsigned i = 0; i < 2; ++i) {
		start_again();
		EXPECT_EQ(armed(0), (json{{"cqe-owner", 3}, {"command-nth", 9}}));
		EXPECT_EQ(armed(1), (json{{"eqe-type", 4}}));
		EXPECT_EQ(state_->requests(), recorded);
	}
	arm("a", "command-nth", 0);
	start_again();
	EXPECT_EQ(armed(0), (json{{"cqe-owner", 3}}));
	// A host of an applied lab exists only after the lab was applied again.
	apply(kThreeHosts);
	arm("c", "eqe-type", 1);
	apply(kTwoHosts);
	apply(kThreeHosts);
	EXPECT_EQ(armed(0), json::object()) << "it is another card";
	arm("c", "eqe-type", 5);
	start_again();
	EXPECT_EQ(armed(0), (json{{"eqe-type", 5}}));
}

// As if a fault crashed weftd each time before its decreased count was recorded.
TEST_F(State, ArmedFaultIsNotRestoredAfterTooManyRestartsInARow)
{
	const json arm{{"command", "card.fault"}, {"host", "a"}, {"fault", "cqe-owner"}};
	result(arm);
	for (unsigned i = 0; i < StateFile::kMostRestored - 1; ++i)
		start_again();
	result(arm); // counting restarts begins here
	for (unsigned i = 0; i < StateFile::kMostRestored - 1; ++i)
		start_again();
	{
		Loop loop("control");
		ControlServer server(
			loop, *runtime_, directory_ / "control.sock", [] {}, nullptr, state_);
	} // a normal exit, after which counting begins again
	for (unsigned i = 0; i < StateFile::kMostRestored; ++i) {
		start_again();
		EXPECT_EQ(result({{"command", "fabric.show"}})["hosts"][0]["armed"],
			  (json{{"cqe-owner", 2}}));
	}
	start_again();
	EXPECT_FALSE(state_->has_armed());
	EXPECT_EQ(result({{"command", "fabric.show"}})["hosts"][0]["armed"], json::object());
}

// A harmless fault that happens often must not let another one crash weftd without a limit.
TEST_F(State, NumberOfRestartsThatRestoreAFaultIsLimitedEvenIfAnotherFaultOccursOften)
{
	for (const char *fault : {"cqe-owner", "eqe-type"})
		result({{"command", "card.fault"}, {"host", "a"}, {"fault", fault}, {"count", 9}});
	for (std::uint64_t left = StateFile::kMostRestored; left != 0; --left) {
		start_again();
		ASSERT_TRUE(state_->has_armed());
		state_->record_armed({{"a", "cqe-owner", left}, {"a", "eqe-type", 9}});
	}
	start_again();
	EXPECT_FALSE(state_->has_armed());
}

// Earlier versions of weftd read only the requests, and would arm the faults again at each restart.
TEST_F(State, ArmedFaultsAreStoredSeparatelyFromRequests)
{
	result({{"command", "card.fault"}, {"host", "a"}, {"fault", "cqe-owner"}});
	std::ifstream stream(file());
	const json state = json::parse(stream);
	EXPECT_THAT(state["requests"], IsEmpty());
	EXPECT_EQ(state["armed"].size(), 1u);
}

TEST_F(State, ArmedFaultIsSavedEvenIfTheRequestAsksNotToRecordIt)
{
	result({{"command", "card.fault"},
		{"host", "a"},
		{"fault", "cqe-owner"},
		{"record", false}});
	EXPECT_TRUE(StateFile(file()).has_armed());
}

// A fault that has occurred is not repeated: weftd records the decreased count within a second, or
// when it exits.
TEST_F(State, RemainingCountsOfArmedFaultsAreSavedPeriodicallyAndAtExit)
{
	state_->record_armed({{"a", "cqe-owner", 7}});
	EXPECT_TRUE(StateFile(file()).has_armed());
	{
		Loop loop("control");
		ControlServer server(
			loop, *runtime_, directory_ / "control.sock", [] {}, nullptr, state_);
		const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
		while (StateFile(file()).has_armed() && std::chrono::steady_clock::now() < deadline)
			std::this_thread::sleep_for(std::chrono::milliseconds(10));
		EXPECT_FALSE(StateFile(file()).has_armed());
	}
	state_->record_armed({{"a", "cqe-owner", 7}});
	{
		Loop loop("control");
		ControlServer server(
			loop, *runtime_, directory_ / "control.sock", [] {}, nullptr, state_);
	}
	EXPECT_FALSE(StateFile(file()).has_armed());
}

TEST_F(State, NumberOfStoredLabFilesIsLimited)
{
	for (unsigned i = 0; i < StateFile::kMostApplied; ++i)
		apply(i % 2 ? kTwoHosts : kThreeHosts);
	apply(kThreeHosts);
	EXPECT_EQ(StateFile::kMostApplied, state_->requests().size());
	EXPECT_THAT(state_->requests().back(), HasSubstr("name = \\\"c\\\""));
}

TEST_F(State, InvalidStateFileIsRefused)
{
	for (const char *text : {"", "{", "[]", "{\"version\": 1}", "{\"version\": 2}",
				 R"({"version": 1, "lab": 3, "requests": []})",
				 R"({"version": 1, "lab": null, "requests": [{}]})",
				 R"({"version": 1, "lab": null, "requests": [], "armed": [{}]})"}) {
		std::ofstream(file(), std::ios::trunc) << text;
		EXPECT_THROW(StateFile{file()}, std::runtime_error) << text;
	}
	EXPECT_FALSE(StateFile(directory_ / "none").continues());
}

// A change takes effect whether it can be recorded or not.
TEST_F(State, RequestsSucceedIfTheStateFileIsUnwritable)
{
	state_ = std::make_shared<StateFile>(directory_ / "no-folder/state");
	state_->begin(LabText{"pair", "/labs", kTwoHosts});
	stop();
	start();
	EXPECT_EQ("down", result({{"command", "link.down"}, {"link", "a"}})["settings"]["state"]);
}

} // namespace
} // namespace weft::weftd
