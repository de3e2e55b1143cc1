// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests daemons that run one lab together, each of them a part: names, faults, changes and the
// subnet manager must be the same as if one daemon ran the whole lab.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "net/fabric/packet.hpp"
#include "sm/subnet.hpp"
#include "weftd/control.hpp"
#include "weftd/lab_part.hpp"
#include "weftd/lab_runtime.hpp"
#include "weftd/subnet_view.hpp"
#include "weftd/tests/places_labs.hpp"

namespace weft::weftd
{
namespace
{

using namespace std::chrono_literals;
using namespace testing;
using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RunningLab : public ::testing::Test
{
protected:
	RunningLab()
	    : directory_(std::filesystem::temp_directory_path() /
			 fmt::format("weft-part-{}", ::getpid()))
	{
		std::filesystem::remove_all(directory_);
		std::filesystem::create_directory(directory_);
		const auto key = directory_ / "trunk.key";
		std::ofstream(key) << std::string(32, 'k');
		std::filesystem::permissions(key, std::filesystem::perms::owner_read);
	}
	~RunningLab() override { std::filesystem::remove_all(directory_); }

	// Returns @text, with paths below the directory.
	Lab parse_here(const std::string &text) const
	{
		Lab lab = parse(text);
		resolve_paths(lab, directory_);
		return lab;
	}

	const std::filesystem::path directory_;
};

// Sends packets from host h2 to its switch. Returns which of them the link loses.
std::vector<bool> losses_in(const Lab &lab, const std::filesystem::path &directory)
{
	LabRuntime runtime(lab, directory);
	fabric::Port &from = *runtime.fabric().find_port("h2/1"),
		     &to = *runtime.fabric().find_port("s2/1");
	for (int tries = 0; tries < 1000 && !from.link_up(); ++tries)
		std::this_thread::sleep_for(10ms);
	std::vector<bool> lost;
	for (unsigned psn = 0; psn < 64; ++psn) {
		packet::Headers headers;
		headers.lrh.slid = 1;
		headers.lrh.dlid = 2;
		headers.bth.opcode = ib::opcode_ud_send_only;
		headers.bth.pkey = ib::pkey_default_full;
		headers.bth.set_psn(psn);
		auto packet = std::move(*fabric::Packet::make(
			headers, fabric::Payload::copy_of(std::vector<std::byte>(8))));
		const auto before = to.counters().symbol_errors.load();
		EXPECT_EQ(from.send(packet), fabric::Sent::done);
		lost.push_back(to.counters().symbol_errors.load() != before);
	}
	return lost;
}

// A link has the same faults in a part of the lab, although it is another one of its links.
TEST_F(RunningLab, LinkDropsTheSamePacketsWhetherOneDaemonOrSeveralRunTheLab)
{
	std::string text = "name = \"faults\"\ntrunk-key-file = \"trunk.key\"\n";
	for (const char *const number : {"1", "2"})
		text += fmt::format(
			"[[switch]]\nname = \"s{0}\"\n[[host]]\nname = \"h{0}\"\nmodel = "
			"\"endpoint\"\n[[link]]\nends = [\"h{0}\", \"s{0}\"]\n"
			"loss = \"50%\"\ntraining = \"0ms\"\n",
			number);
	text += "[[link]]\nends = [\"s1\", \"s2\"]\n[sm]\nenabled = false\n";
	const Lab whole = parse_here(text);
	const auto lost = losses_in(whole, directory_);
	EXPECT_NE(std::ranges::count(lost, true), 0);
	const Lab part =
		part_of(whole, {"p2", {2, {{"p1", trunk::Address::parse("127.0.0.1:1")}}}, ""});
	EXPECT_EQ(losses_in(part, directory_), lost);
}

// One place's half of the lab, in a running daemon.
class RunningPart : public RunningLab
{
protected:
	RunningPart()
	    : runtime_(std::make_unique<LabRuntime>(part_of(parse_here(text()), {"b", {}, ""}),
						    directory_)),
	      session_(std::make_unique<ControlSession>(*runtime_, [] {}))
	{
	}
	~RunningPart() override
	{
		session_.reset();
		runtime_.reset();
	}

	static std::string text() { return replaced(two_places(), "192.0.2.1", "127.0.0.1:1"); }
	json ask(const json &request) { return json::parse(session_->handle(request.dump())); }
	json apply(const std::string &text)
	{
		return ask({{"command", "lab.apply"},
			    {"source", "new"},
			    {"folder", directory_.string()},
			    {"text", text}});
	}
	std::set<std::string> links() const
	{
		std::set<std::string> result;
		for (const fabric::Link *link : runtime_->fabric().links())
			result.insert(link->name());
		return result;
	}

	std::unique_ptr<LabRuntime> runtime_;
	std::unique_ptr<ControlSession> session_;
};

TEST_F(RunningPart, LinkNamesAreTheSameWhetherOneDaemonOrSeveralRunTheLab)
{
	EXPECT_THAT(links(), ElementsAre("h3/1-s3/1", "s2/36-s3/35", "s3/36-s1/35"));
	const json shown = ask({{"command", "fabric.show"}})["result"];
	EXPECT_EQ(shown["trunks"][0]["name"], "s2/36-s3/35");
	EXPECT_EQ(shown["trunks"][0]["end"], "s2/36");
	EXPECT_EQ(shown["hosts"][0]["number"], 3);
	EXPECT_EQ(shown["subnet_manager"], json());
	EXPECT_EQ(ask({{"command", "link.down"}, {"link", "s3/36-s1/35"}})["result"]["up"], false);
}

// A file that is applied is divided again, and GUIDs are those of the whole lab.
TEST_F(RunningPart, ApplyingALabFileUpdatesThePartOfTheLabThatThisDaemonRuns)
{
	EXPECT_THAT(apply(text())["result"]["changes"], IsEmpty());
	const auto more = replaced(text(), "[[host]]\nname = \"h1\"",
				   "[[host]]\nname = \"h0\"\n[[host]]\nname = \"h1\"") +
			  "[[link]]\nends = [\"h0\", \"s3\"]\n[[link]]\nends = [\"s1\", \"s3\"]\n";
	EXPECT_THAT(apply(more)["result"]["changes"],
		    ElementsAre("+ host h0", "+ trunk s1/3-s3/3", "+ link h0/1-s3/2",
				"+ link s1/3-s3/3"));
	const Lab whole = parse(text());
	const auto taken = [&](ib::Guid guid) {
		return std::ranges::any_of(whole.hosts,
					   [&](const LabHost &host) { return host.guid == guid; });
	};
	const auto &added = *std::ranges::find_if(
		runtime_->hosts(), [](const auto &host) { return host->name == "h0"; });
	EXPECT_FALSE(taken(added->guid));
	EXPECT_THAT(apply(text())["result"]["changes"],
		    ElementsAre("- host h0", "- trunk s1/3-s3/3", "- link h0/1-s3/2",
				"- link s1/3-s3/3"));
	EXPECT_THAT(links(), ElementsAre("h3/1-s3/1", "s2/36-s3/35", "s3/36-s1/35"));
	EXPECT_THAT(
		apply(replaced(text(), "127.0.0.1:1", "127.0.0.1:3"))["result"]["changes"],
		ElementsAre(HasSubstr("~ trunk s2/36-s3/35: address connect 127.0.0.1:1 -> connect "
				      "127.0.0.1:3"),
			    HasSubstr("~ trunk s3/36-s1/35")));
	EXPECT_EQ(links().size(), 3u);
	// A node can move to this place.
	EXPECT_THAT(apply(replaced(text(), "name = \"s2\"\nplace = \"a\"",
				   "name = \"s2\"\nplace = \"b\""))["result"]["changes"],
		    Contains("+ switch s2"));
	EXPECT_THAT(links(), ElementsAre("h2/1-s2/1", "h3/1-s3/1", "s1/36-s2/35", "s2/36-s3/35",
					 "s3/36-s1/35"));
}

// The trunk of a segment whose hosts are at two places.
TEST_F(RunningPart, EthernetTrunkIsShownAndChangedLikeOtherTrunks)
{
	const auto on_ethernet = [](const std::string &lab, const char *host) {
		return replaced(lab, fmt::format("name = \"{}\"", host),
				fmt::format("name = \"{}\"\nethernet = \"lan\"", host));
	};
	const auto at_b = on_ethernet(text(), "h3") + "[[ethernet]]\nname = \"lan\"\n",
		   both = on_ethernet(at_b, "h1");
	EXPECT_THAT(apply(both)["result"]["changes"],
		    ElementsAre("+ trunk lan@a/b-lan@b/a", "+ Ethernet lan",
				"+ h3/eth0 on Ethernet lan"));
	const json shown = ask({{"command", "fabric.show"}})["result"];
	EXPECT_EQ(shown["trunks"][2]["name"], "lan@a/b-lan@b/a");
	EXPECT_EQ(shown["trunks"][2]["end"], "lan@a/b");
	EXPECT_EQ(shown["trunks"][2]["ethernet"], "lan");
	EXPECT_EQ(shown["trunks"][0]["ethernet"], json());
	EXPECT_EQ(shown["ethernet"]["attachments"].size(), 1u);
	EXPECT_EQ(shown["ethernet"]["links"][0]["name"], "h3/eth0-lan/2");
	EXPECT_EQ(shown["ethernet"]["links"][1]["name"], "lan@a/b-lan@b/a");
	const json sample = ask({{"command", "fabric.sample"}})["result"]["ethernet"];
	EXPECT_TRUE(sample["ports"].contains("lan@b/a"));
	EXPECT_THAT(sample["attached"], IsEmpty());
	for (const char *const name : {"lan@b/a", "lan@a/b", "lan@a/b-lan@b/a"}) {
		const json set = ask({{"command", "link.set"},
				      {"link", name},
				      {"settings", {{"delay", "1ms"}}}})["result"];
		EXPECT_EQ(set["settings"]["delay"], "1ms");
		EXPECT_THAT(apply(both)["result"]["changes"],
			    ElementsAre("~ trunk lan@a/b-lan@b/a: delay 1ms -> 0ms"));
	}
	EXPECT_EQ(ask({{"command", "counters"}, {"port", "lan@b/a"}})["result"].size(), 1u);
	EXPECT_THAT(
		apply(on_ethernet(both, "h2"))["result"]["changes"],
		ElementsAre(HasSubstr("~ trunk lan@a/b-lan@b/a: hosts at the other place 1 -> 2")));
	EXPECT_THAT(apply(at_b)["result"]["changes"], ElementsAre("- trunk lan@a/b-lan@b/a"));
	EXPECT_EQ(ask({{"command", "fabric.show"}})["result"]["ethernet"]["links"].size(), 1u);
	EXPECT_THAT(apply(text())["result"]["changes"],
		    ElementsAre("- Ethernet lan", "- h3/eth0 on Ethernet lan"));
}

// A trunk that cannot be started does not remain in the lab.
TEST_F(RunningLab, EthernetTrunkWhoseTcpPortIsInUseIsReportedAndCanBeAppliedAgain)
{
	std::optional busy = trunk::Address::parse("127.0.0.1:0").listen(1);
	const auto address = trunk::Address::local(busy->get());
	const std::string text = replaced(replaced(two_places(), "192.0.2.1", address.text()),
					  "192.0.2.2:5000", "127.0.0.1:1");
	std::string lan = "name = \"ring\"\ntrunk-key-file = \"trunk.key\"\n[sm]\nenabled = "
			  "false\n[[ethernet]]\nname = \"lan\"\n" +
			  text.substr(text.find("[[place]]"));
	for (const char *const place : {"a", "b"})
		lan += fmt::format("[[host]]\nname = \"h{0}\"\nplace = \"{0}\"\nmodel = "
				   "\"example\"\nethernet = \"lan\"\n",
				   place);
	const Lab part = part_of(parse_here(lan), {"a", {}, ""});
	Lab without = part;
	without.trunks.clear();
	LabRuntime runtime(without, directory_);
	EXPECT_THROW(runtime.apply(part), LabError);
	EXPECT_THAT(runtime.lab().trunks, IsEmpty());
	EXPECT_EQ(runtime.ethernet().state().attachments.size(), 1u);
	busy.reset();
	runtime.apply(part);
	EXPECT_EQ(runtime.trunks().size(), 1u);
	EXPECT_EQ(runtime.ethernet().state().attachments.size(), 2u);
}

// A daemon without the M_Key of an untrusted host cannot configure it. The host is at another
// place, so it keeps its M_Key when the daemon of the subnet manager is restarted.
TEST_F(RunningLab, RestartedSubnetManagerKnowsTheMkeyOfAHostThatAnotherDaemonEmulates)
{
	const std::string text =
		replaced(replaced(two_places(), "name = \"h3\"",
				  "name = \"h3\"\ntrusted = false\nmodel = \"endpoint\""),
			 "192.0.2.1", fmt::format("127.0.0.1:{}", 20000 + ::getpid() % 10000));
	const auto start = [&](const std::string &place) {
		std::filesystem::create_directory(directory_ / place);
		return std::make_unique<LabRuntime>(part_of(parse_here(text), {place, {}, ""}),
						    directory_ / place);
	};
	const ib::Guid port_guid = parse(text).hosts[2].guid + 1;
	const auto await_active = [&](LabRuntime &runtime, bool active) {
		for (int tries = 0; tries < 1000; ++tries) {
			const auto subnet = managed_subnet(runtime);
			const auto found = subnet ? subnet->find_port(port_guid) : sm::PortRef{};
			const bool is_active =
				found && subnet->port(found).info.state() == ib::PortState::active;
			if (subnet && is_active == active)
				return true;
			std::this_thread::sleep_for(10ms);
		}
		return false;
	};
	const auto b = start("b");
	auto a = start("a");
	ASSERT_TRUE(await_active(*a, true));
	a.reset();
	a = start("a");
	ASSERT_TRUE(await_active(*a, true));
	fabric::Link &link = *b->fabric().find_port("h3/1")->link();
	link.set_plugged(false);
	ASSERT_TRUE(await_active(*a, false));
	link.set_plugged(true);
	EXPECT_TRUE(await_active(*a, true));
}

} // namespace
} // namespace weft::weftd
