// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that `weft lab apply` changes a running lab to match another lab file.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <unistd.h>

#include "base/unix_listener.hpp"
#include "net/fabric/switch.hpp"
#include "sm/subnet_manager.hpp"
#include "weftd/control.hpp"
#include "weftd/lab_runtime.hpp"

namespace weft::weftd
{
namespace
{

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char *kPair = R"(
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

class Apply : public ::testing::Test
{
protected:
	Apply()
	    : directory_(std::filesystem::temp_directory_path() /
			 ("weft-apply-" + std::to_string(::getpid())))
	{
		std::filesystem::remove_all(directory_);
		std::filesystem::create_directory(directory_);
		runtime_ =
			std::make_unique<LabRuntime>(parse_lab(kPair, "pair", "test"), directory_);
		session_ = std::make_unique<ControlSession>(*runtime_, [] {});
	}
	~Apply() override
	{
		session_.reset();
		runtime_.reset();
		std::filesystem::remove_all(directory_);
	}

	static json request(const std::string &text)
	{
		return {{"command", "lab.apply"},
			{"source", "new"},
			{"folder", "/labs"},
			{"text", text}};
	}
	json ask(const json &request) { return json::parse(session_->handle(request.dump())); }
	std::vector<std::string> apply(const std::string &text)
	{
		const auto answer = ask(request(text));
		EXPECT_TRUE(answer["ok"]) << answer;
		return answer["result"]["changes"];
	}
	std::string refusal(const std::string &text)
	{
		const auto answer = ask(request(text));
		EXPECT_FALSE(answer["ok"]) << answer;
		return answer.value("error", "");
	}
	json shown() { return ask({{"command", "fabric.show"}})["result"]; }
	json shown_without_states()
	{
		json fabric = shown();
		fabric.erase("subnet_manager");
		fabric.erase("subnet_managers");
		for (auto &node : fabric["switches"])
			node.erase("lid");
		return json::parse(fabric.dump());
	}
	bool managed(std::size_t end_ports)
	{
		return runtime_->subnet_manager()->wait_for(
			[&](const auto &status) {
				return status.complete && status.subnet &&
				       status.subnet->end_ports.size() == end_ports;
			},
			10s);
	}
	ib::Guid guid_of(const std::string &host)
	{
		for (const auto &each : runtime_->hosts())
			if (each->name == host)
				return each->guid;
		return 0;
	}

	std::filesystem::path directory_;
	std::unique_ptr<LabRuntime> runtime_;
	std::unique_ptr<ControlSession> session_;
};

// Between the steps of fabric.show, another client may remove what has not been described yet.
TEST_F(Apply, FabricShowBeginsAgainIfTheLabChangesMeanwhile)
{
	std::string text = kPair;
	for (unsigned i = 2; i < 8; ++i)
		text += "[[switch]]\nname = \"t" + std::to_string(i) +
			"\"\nports = 8\n[[link]]\nends = [\"t" + std::to_string(i) + "/1\", \"s1/" +
			std::to_string(i + 1) + "\"]\n";
	for (unsigned i = 0; i < 40; ++i)
		text += "[[host]]\nname = \"h" + std::to_string(i) +
			"\"\nmodel = \"endpoint\"\n[[link]]\nends = [\"h" + std::to_string(i) +
			"\", \"t" + std::to_string(2 + i / 7) + "\"]\n";
	ASSERT_EQ(ask(request(text))["ok"], true);
	ControlSession other(*runtime_, [] {});
	other.begin(json{{"command", "fabric.show"}}.dump());
	ASSERT_EQ(other.go_on(), std::nullopt);
	ASSERT_EQ(ask(request(kPair))["ok"], true);
	std::optional<std::string> shown;
	while (!shown)
		shown = other.go_on();
	const auto result = json::parse(*shown)["result"];
	EXPECT_EQ(result["hosts"].size(), 2u) << result["hosts"];
	EXPECT_EQ(result["switches"].size(), 1u);
	EXPECT_EQ(result["links"].size(), runtime_->fabric().links().size());
}

// A client that changes the lab between all steps of fabric.show does not delay its answer for
// ever.
TEST_F(Apply, FabricShowIsAnsweredWhileTheLabChangesWithoutAPause)
{
	const auto lab = [](unsigned hosts) {
		std::string text = kPair;
		text += "[[switch]]\nname = \"t\"\nports = 64\n";
		for (unsigned i = 0; i < hosts; ++i)
			text += "[[host]]\nname = \"h" + std::to_string(i) +
				"\"\nmodel = \"endpoint\"\n[[link]]\nends = [\"h" +
				std::to_string(i) + "\", \"t\"]\n";
		return text;
	};
	unsigned hosts = 40;
	ASSERT_EQ(ask(request(lab(hosts)))["ok"], true);
	ControlSession other(*runtime_, [] {});
	other.begin(json{{"command", "fabric.show"}}.dump());
	std::optional<std::string> shown;
	for (unsigned steps = 0; steps < 10 && !(shown = other.go_on()); ++steps)
		ASSERT_EQ(ask(request(lab(++hosts)))["ok"], true);
	ASSERT_TRUE(shown);
	EXPECT_EQ(json::parse(*shown)["result"]["hosts"].size(), hosts + 2);
}

// Applying the same file again changes nothing. Comments and the order of hosts make no difference.
TEST_F(Apply, UnchangedLabFileChangesNothing)
{
	const Host *const a = runtime_->hosts()[0].get();
	EXPECT_THAT(apply(kPair), IsEmpty());
	EXPECT_THAT(apply("# other\n[[switch]]\nname = \"s1\"\nports = 8\n"
			  "[[host]]\nname = \"b\"\n[[host]]\nname = \"a\"\n"
			  "[[link]]\nends = [\"s1\", \"b\"]\n[[link]]\nends = [\"a\", \"s1\"]\n"),
		    IsEmpty());
	EXPECT_EQ(runtime_->hosts()[1].get(), a)
		<< "the card is the same one, and in the file's order";
	ask({{"command", "link.down"}, {"link", "b"}});
	EXPECT_THAT(apply(kPair), ElementsAre("~ link b/1-s1/2: state down -> up"))
		<< "named the other way round before";
}

// Endpoints have no socket and no guest, and the subnet manager finds them when they are added and
// removed together with cards.
TEST_F(Apply, HostsWithoutAGuestAreAddedAndRemoved)
{
	const std::string endpoint =
		"[[host]]\nname = \"e\"\nmodel = \"endpoint\"\n[[link]]\nends = [\"e\", \"s1\"]\n";
	ASSERT_TRUE(managed(2))
		<< "the cards have no guest, so that the manager's port and the switch's are all";
	EXPECT_THAT(apply(kPair + endpoint), ElementsAre("+ host e", "+ link e/1-s1/4"));
	EXPECT_TRUE(managed(3));
	const auto hosts = shown()["hosts"];
	ASSERT_EQ(hosts.size(), 3u);
	EXPECT_EQ(hosts[2]["model"], "endpoint");
	EXPECT_TRUE(hosts[2]["socket"].is_null());
	EXPECT_FALSE(hosts[2]["guest"]);
	EXPECT_FALSE(std::filesystem::exists(directory_ / "e.sock"));
	EXPECT_TRUE(std::filesystem::exists(directory_ / "a.sock"));
	EXPECT_EQ(ask({{"command", "fabric.sample"}})["result"]["guests"], json::array());
	EXPECT_EQ(ask({{"command", "card.fault"}, {"host", "e"}, {"fault", "cqe-owner"}})["error"],
		  "the card of e has no faults to inject");
	apply(kPair);
	EXPECT_TRUE(managed(2));
	for (const char *key : {"socket = \"x\"", "bus = \"vfio-user\"", "boot = {cpus = 1}",
				"ethernet = \"lan\"", "small_bars = true"})
		EXPECT_THAT(refusal(kPair + ("[[host]]\nname = \"e\"\nmodel = \"endpoint\"\n" +
					     std::string(key) + "\n")),
			    HasSubstr("there is no '"))
			<< key;
}

// Hosts, switches and links are added and removed, and the subnet manager notices. The remaining
// ones keep their GUIDs, ports and cards.
TEST_F(Apply, NodesAreAddedAndRemoved)
{
	const Host *const a = runtime_->hosts()[0].get();
	const auto guid = guid_of("b");
	const std::string larger = R"(
[[switch]]
name = "s0"
[[switch]]
name = "s1"
ports = 8
[[host]]
name = "c"
[[host]]
name = "a"
[[host]]
name = "b"
[[link]]
ends = ["c", "s0"]
[[link]]
ends = ["s0", "s1"]
[[link]]
ends = ["a", "s1"]
[[link]]
ends = ["b", "s1"]
)";
	EXPECT_THAT(apply(larger),
		    ElementsAre("+ switch s0", "+ host c", "+ link c/1-s0/1", "+ link s0/2-s1/4"));
	ASSERT_EQ(runtime_->hosts().size(), 3u);
	EXPECT_EQ(runtime_->hosts()[1].get(), a);
	EXPECT_EQ(guid_of("b"), guid) << "though it is the third now";
	EXPECT_NE(guid_of("c"), 0u);
	EXPECT_TRUE(std::filesystem::is_socket(directory_ / "c.sock"));

	EXPECT_THAT(apply(kPair),
		    ElementsAre("- switch s0", "- host c", "- link c/1-s0/1", "- link s0/2-s1/4"));
	EXPECT_FALSE(std::filesystem::exists(directory_ / "c.sock"));
	EXPECT_EQ(shown()["links"].size(), 3u);
	EXPECT_THAT(apply(larger),
		    ElementsAre("+ switch s0", "+ host c", "+ link c/1-s0/1", "+ link s0/2-s1/4"));
}

// The subnet manager keeps its port while other ports are free, and moves if the port is needed.
TEST_F(Apply, SubnetManagerMovesToAnotherPortIfAHostNeedsItsPort)
{
	std::string text = "[[switch]]\nname = \"s0\"\n" + std::string(kPair);
	for (const char *host : {"c", "d", "e", "f", "g"})
		text += std::string("[[host]]\nname = \"") + host + "\"\n[[link]]\nends = [\"" +
			host + "\", \"s1\"]\n";
	apply(text);
	EXPECT_EQ(shown()["switches"][0]["ports"][2]["link"], "sm/1-s1/3");
	text += "[[host]]\nname = \"h\"\n[[link]]\nends = [\"h\", \"s1\"]\n";
	EXPECT_THAT(apply(text), ElementsAre("+ host h", "- link sm/1-s1/3", "+ link h/1-s1/3",
					     "+ link sm/1-s0/1"));
}

// The manager sees the changed fabric.
TEST_F(Apply, SubnetManagerSweepsTheChangedFabric)
{
	// There is one switch and the subnet manager. The hosts have no guests, so their ports are
	// down.
	ASSERT_TRUE(managed(2));
	apply(std::string(kPair) +
	      "[[switch]]\nname = \"s2\"\n[[link]]\nends = [\"s1\", \"s2\"]\n");
	EXPECT_TRUE(managed(3));
	apply(kPair);
	EXPECT_TRUE(managed(2));
	EXPECT_THAT(apply(std::string(kPair) + "[sm]\nlmc = 1\n"),
		    ElementsAre(HasSubstr("~ subnet manager")));
	EXPECT_TRUE(managed(2));
	EXPECT_THAT(apply(std::string(kPair) + "[sm]\nenabled = false\n"),
		    ElementsAre(HasSubstr("- link sm/1"), "- subnet manager"));
	EXPECT_EQ(runtime_->subnet_manager(), nullptr);
	EXPECT_THAT(apply(kPair), ElementsAre(HasSubstr("+ link sm/1"), "+ subnet manager"));
	EXPECT_TRUE(managed(2));
}

// The next daemon uses the LIDs that the previous one has assigned.
TEST_F(Apply, LidsAreUnchangedAfterARestartOfTheDaemon)
{
	auto lab = parse_lab(kPair, "pair", "test");
	lab.sm.lids = directory_ / "lids";
	const auto lid_of_switch = [&] {
		runtime_ = std::make_unique<LabRuntime>(lab, directory_);
		EXPECT_TRUE(managed(2));
		return runtime_->fabric().switches()[0]->lid();
	};
	session_.reset();
	runtime_.reset();
	const auto before = lid_of_switch();
	runtime_.reset();
	std::ofstream(lab.sm.lids)
		<< std::hex << std::uint64_t{lab.switches[0].guid} << std::dec << " 77 0\n";
	EXPECT_EQ(lid_of_switch(), 77);
	EXPECT_NE(before, 77);
	runtime_.reset();
	EXPECT_EQ(lid_of_switch(), 77) << "it was written again";
	session_ = std::make_unique<ControlSession>(*runtime_, [] {});
}

// A link that stays gets its new settings. A setting that was changed at run time is compared with
// its current value.
TEST_F(Apply, ChangedLinkSettingsAreAppliedToExistingLinks)
{
	ask({{"command", "link.down"}, {"link", "b"}});
	const std::string slow = std::string(kPair) + "delay = \"1ms\"\n";
	EXPECT_THAT(apply(slow),
		    ElementsAre("~ link b/1-s1/2: state down -> up, delay 0ms -> 1ms"));
	EXPECT_THAT(apply(slow), IsEmpty());
	EXPECT_EQ(shown()["links"][1]["settings"]["delay"], "1ms");
	EXPECT_EQ(shown()["links"][1]["settings"]["state"], "up");
}

TEST_F(Apply, TrunksAreAddedChangedAndRemoved)
{
	const auto key = directory_ / "key";
	std::ofstream(key) << std::string(32, 'k');
	std::filesystem::permissions(key, std::filesystem::perms::owner_read);
	const auto open_key = directory_ / "open-key";
	std::filesystem::copy_file(key, open_key);
	std::filesystem::permissions(open_key, std::filesystem::perms::all);
	const auto lab = [&](const std::string &address, const std::filesystem::path &file) {
		return std::string(kPair) + "[[trunk]]\nname = \"west\"\nend = \"s1/8\"\n" +
		       address + "\nkey-file = \"" + file.string() + "\"\n";
	};
	const std::string listen = "listen = \"127.0.0.1:0\"";
	const std::string before = shown_without_states().dump();
	EXPECT_THAT(apply(lab(listen, key)), ElementsAre("+ trunk west", "+ link s1/8-west/1"));
	const json trunk = shown()["trunks"].at(0);
	EXPECT_EQ(trunk["role"], "listens");
	EXPECT_FALSE(trunk["connected"]);
	EXPECT_THAT(apply(lab(listen, key)), IsEmpty());
	// Nothing listens at port 1.
	EXPECT_THAT(apply(lab("connect = \"127.0.0.1:1\"", key)),
		    ElementsAre(HasSubstr("~ trunk west")));
	EXPECT_EQ(shown()["trunks"].at(0)["role"], "connects");
	EXPECT_EQ(shown()["links"].size(), 4u);

	EXPECT_THAT(refusal(lab(listen, open_key)), HasSubstr("chmod 600"));
	EXPECT_EQ(shown()["trunks"].at(0)["role"], "connects");
	// Nothing is changed if the key can no longer be read.
	std::filesystem::rename(key, key.string() + ".moved");
	EXPECT_FALSE(ask(request(lab(listen, key)))["ok"]);
	EXPECT_EQ(shown()["trunks"].at(0)["role"], "connects");
	// Other changes are still possible: the trunk keeps its key.
	const std::string connect = lab("connect = \"127.0.0.1:1\"", key);
	EXPECT_THAT(apply(connect + "[[switch]]\nname = \"s9\"\n"), ElementsAre("+ switch s9"));
	EXPECT_THAT(apply(connect), ElementsAre("- switch s9"));
	std::filesystem::rename(key.string() + ".moved", key);
	// A key that was replaced is noticed, by a dry run too, and used from then on.
	EXPECT_THAT(apply(connect), IsEmpty());
	std::filesystem::permissions(key, std::filesystem::perms::owner_all);
	std::ofstream(key, std::ios::trunc) << std::string(32, 'j');
	const auto replaced = ElementsAre(
		AllOf(HasSubstr("~ trunk west"), HasSubstr("another key in its key-file")));
	json dry_run = request(connect);
	dry_run["dry_run"] = true;
	EXPECT_THAT(ask(dry_run)["result"]["changes"].get<std::vector<std::string>>(), replaced);
	EXPECT_THAT(apply(connect), replaced);
	EXPECT_THAT(apply(connect), IsEmpty());
	EXPECT_EQ(shown()["links"].size(), 4u);
	EXPECT_THAT(apply(kPair), ElementsAre("- trunk west", "- link s1/8-west/1"));
	// A trunk that cannot listen is not kept, and is started when the file is applied again.
	const FileDescriptor other(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
	sockaddr_in address{};
	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	socklen_t size = sizeof(address);
	auto *const bytes = reinterpret_cast<sockaddr *>(&address);
	ASSERT_EQ(::bind(other.get(), bytes, size), 0);
	ASSERT_EQ(::listen(other.get(), 1), 0);
	ASSERT_EQ(::getsockname(other.get(), bytes, &size), 0);
	const std::string taken =
		"listen = \"127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "\"\n";
	EXPECT_FALSE(ask(request(lab(taken, key)))["ok"]);
	EXPECT_THAT(shown()["trunks"], IsEmpty());
	EXPECT_THAT(apply(lab(listen, key)), ElementsAre("+ trunk west", "+ link s1/8-west/1"));
	EXPECT_THAT(apply(kPair), ElementsAre("- trunk west", "- link s1/8-west/1"));
	EXPECT_EQ(shown_without_states().dump(), before);
}

// A host with a different card is replaced, and so is a switch with a different number of ports,
// with its links. The result lists both.
TEST_F(Apply, NodesWithAChangedNumberOfPortsAreReplaced)
{
	const std::string text = kPair;
	auto two_ports = text;
	two_ports.insert(two_ports.find("name = \"b\"") + 10, "\nports = 2");
	const auto answer = ask(request(two_ports))["result"];
	EXPECT_THAT(answer["changes"].get<std::vector<std::string>>(),
		    ElementsAre("~ host b: ports 1 -> 2; its guest loses the card"));
	EXPECT_EQ(answer["replaced"], json::array({"b"}));
	EXPECT_EQ(shown()["hosts"][1]["ports"].size(), 2u);
	EXPECT_EQ(shown()["hosts"][1]["ports"][0]["link"], "b/1-s1/2");

	auto smaller = two_ports;
	smaller.replace(smaller.find("ports = 8"), 9, "ports = 4");
	EXPECT_THAT(apply(smaller),
		    ElementsAre("~ switch s1: ports 8 -> 4; its links go down meanwhile"));
	EXPECT_EQ(shown()["switches"][0]["ports"].size(), 4u);
	EXPECT_EQ(shown()["links"].size(), 3u);
}

// A host that is no longer trusted is restricted only at its own switch port.
TEST_F(Apply, ManagementRestrictionOfAnUntrustedHostMovesWithItsLinkToAnotherSwitchPort)
{
	const auto text = [](const char *port) {
		return std::string(
			       "[[switch]]\nname = \"s1\"\nports = 8\n[[host]]\nname = \"a\"\ntrusted = false\n"
			       "[[link]]\nends = [\"a\", \"s1/") +
		       port + "\"]\n";
	};
	apply(text("1"));
	const fabric::Switch &s1 = *runtime_->fabric().switches()[0];
	EXPECT_TRUE(s1.restricts_management(1));
	EXPECT_THAT(apply(text("5")), ElementsAre("- link a/1-s1/1", "+ link a/1-s1/5"));
	EXPECT_FALSE(s1.restricts_management(1));
	EXPECT_TRUE(s1.restricts_management(5));
	EXPECT_THAT(refusal("[[host]]\nname = \"a\"\ntrusted = false\n[[host]]\nname = \"b\"\n"
			    "[[link]]\nends = [\"a\", \"b\"]\n[sm]\nenabled = false\n"),
		    HasSubstr("must be linked to a switch"));
	EXPECT_TRUE(s1.restricts_management(5));
}

// A file that is invalid, or does not fit the current lab, changes nothing. Neither does a dry run.
TEST_F(Apply, InvalidLabFileOrDryRunChangesNothing)
{
	const json before = shown_without_states();
	const std::string more = std::string(kPair) + "[[host]]\nname = \"c\"\n";
	for (const std::string &wrong :
	     {std::string("[[host"), more + "[[host]]\nname = \"c\"\n",
	      more + "[[link]]\nends = [\"c\", \"nowhere\"]\n", more + "colour = \"red\"\n",
	      more + "[[link]]\nends = [\"c\", \"s1/9\"]\n", std::string(5000, '[')}) {
		EXPECT_THAT(refusal(wrong), HasSubstr("new:"));
		EXPECT_EQ(shown_without_states(), before) << wrong;
	}
	// This error occurs only when the card's socket is created, after many other changes.
	const std::string unreachable =
		std::string("[[switch]]\nname = \"s2\"\n[[host]]\nname = \"b\"\nports = 2\n") +
		"[[host]]\nname = \"c\"\nsocket = \"" + std::string(200, 'x') +
		"\"\n"
		"[[link]]\nends = [\"b/2\", \"s2\"]\n[[link]]\nends = [\"c\", \"s2\"]\n";
	EXPECT_FALSE(refusal(unreachable).empty());
	EXPECT_EQ(shown_without_states(), before);
	EXPECT_TRUE(managed(2)) << "and there is a manager again";

	auto look = request(more);
	look["dry_run"] = true;
	EXPECT_EQ(ask(look)["result"]["changes"], json::array({"+ host c"}));
	EXPECT_EQ(shown_without_states(), before);
	look["folder"] = "labs";
	EXPECT_FALSE(ask(look)["ok"]);
}

// Two concurrent applies through the socket are executed one after the other.
TEST_F(Apply, ConcurrentLabApplyRequestsAreExecutedOneAfterTheOther)
{
	Loop loop("control");
	const auto path = directory_ / "control.sock";
	const auto one = request(std::string(kPair) +
				 "[[host]]\nname = \"c\"\n[[link]]\nends = [\"c\", \"s1\"]\n");
	const auto other = request(
		"[[switch]]\nname = \"s2\"\n[[host]]\nname = \"a\"\n[[link]]\nends = [\"a\", \"s2\"]\n");
	{
		ControlServer server(loop, *runtime_, path, [] {});
		std::atomic<unsigned> wrong{0};
		const auto client = [&](const std::string &line) {
			const auto socket = connect_unix(path);
			for (int round = 0; round < 10; ++round) {
				if (::send(socket.get(), line.data(), line.size(), MSG_NOSIGNAL) !=
				    static_cast<ssize_t>(line.size()))
					++wrong;
				std::string got;
				while (!got.ends_with('\n')) {
					char buffer[4096];
					const auto bytes =
						::recv(socket.get(), buffer, sizeof(buffer), 0);
					if (bytes <= 0)
						break;
					got.append(buffer, static_cast<std::size_t>(bytes));
				}
				if (!json::parse(got, nullptr, false).value("ok", false))
					++wrong;
			}
		};
		std::thread first(client, one.dump() + '\n'), second(client, other.dump() + '\n');
		first.join();
		second.join();
		EXPECT_EQ(wrong, 0u);
	}
	const auto hosts = shown()["hosts"].size();
	EXPECT_TRUE(hosts == 3 || hosts == 1) << "one file or the other";
}

// Hosts that are added later share the mappings of the process, too.
TEST_F(Apply, SumOfTheMemoryMappingLimitsOfAllHostsStaysBoundedWhenHostsAreAdded)
{
	std::size_t sum = 0;
	std::string text = kPair;
	for (int i = 0; i < 40; ++i) {
		text += "[[host]]\nname = \"n" + std::to_string(i) + "\"\n";
		if (i % 10 == 9)
			apply(text);
	}
	for (const auto &host : runtime_->hosts()) {
		EXPECT_GE(host->most_mappings, 64u);
		sum += host->most_mappings;
	}
	EXPECT_LE(sum, 32768u);
}

} // namespace
} // namespace weft::weftd
