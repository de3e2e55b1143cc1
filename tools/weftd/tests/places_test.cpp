// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests labs that several daemons (places) run together: the places in the lab file, the plan, and
// the part of each place.
#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "net/trunk/frame.hpp"
#include "weftd/lab_part.hpp"
#include "weftd/plan_text.hpp"
#include "weftd/tests/places_labs.hpp"

namespace weft::weftd
{
namespace
{

using namespace testing;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

Lab part(const std::string &text, const std::string &place, const PlanOptions &plan = {})
{
	return part_of(parse(text), {place, plan, ""});
}

// Returns the reason why a lab file, or its plan, is refused.
template<typename Function>
std::string refusal(Function function)
{
	try {
		function();
		return {};
	} catch (const std::exception &error) {
		return error.what();
	}
}
std::string refusal_of(const std::string &text)
{
	return refusal([&] { parse(text); });
}
std::string refusal_of_plan(const std::string &text, const PlanOptions &options = {})
{
	return refusal([&] { make_plan(parse(text), options); });
}

template<typename Things>
std::vector<std::string> names(const Things &things)
{
	std::vector<std::string> result;
	for (const auto &thing : things)
		result.push_back(thing.name);
	return result;
}

TEST(Places, InvalidPlaceSectionsOfALabFileAreReportedWithTheirLine)
{
	const std::string end = "[[place]]\nname = \"a\"\n";
	EXPECT_EQ(refusal_of("[[switch]]\nname = \"s\"\nplace = \"x\"\n" + end),
		  "lab.toml:3: there is no [[place]] 'x'");
	EXPECT_EQ(refusal_of("[[switch]]\nname = \"s\"\n[[host]]\nname = \"h\"\nplace = \"x\"\n" +
			     end),
		  "lab.toml:5: there is no [[place]] 'x'");
	EXPECT_EQ(refusal_of("[[switch]]\nname = \"s\"\n[sm]\nplace = \"x\"\n" + end),
		  "lab.toml:4: there is no [[place]] 'x'");
	EXPECT_EQ(refusal_of(end + end), "lab.toml:3: the place 'a' is given twice");
	EXPECT_THAT(refusal_of(end + "address = \"host\"\n"),
		    StartsWith("lab.toml:3: address: 'host:7470' is not an IP address"));
	EXPECT_THAT(refusal_of(end + "address = \"192.0.2.1:0\"\n"),
		    StartsWith("lab.toml:3: address: "));
	for (const char *const address :
	     {"0.0.0.0", "[::]", "224.0.0.1", "[ff02::1]:5000", "255.255.255.255",
	      "[::ffff:0.0.0.0]", "[::ffff:224.0.0.1]"})
		EXPECT_THAT(refusal_of(fmt::format("{}address = \"{}\"\n", end, address)),
			    StartsWith("lab.toml:3: address: it must be the address of one host"))
			<< address;
	EXPECT_EQ(refusal_of("[[place]]\nname = \"-a\"\n"),
		  "lab.toml:2: the name of a place must not begin with '-', because it is an "
		  "argument of options");
	EXPECT_THAT(refusal_of(end + "switch = 1\n"), HasSubstr("there is no 'switch' here"));

	std::string many = "[[switch]]\nname = \"s\"\n";
	for (std::size_t number = 1; number <= kMostPlaces; ++number)
		many += fmt::format("[[place]]\nname = \"{}\"\n", number);
	EXPECT_EQ(refusal_of(many), "");
	EXPECT_THAT(refusal_of(many + end), HasSubstr("a lab has at most 64 places"));
	EXPECT_THAT(refusal_of_plan(kRing, {kMostPlaces + 1, {}}),
		    HasSubstr("a lab has at most 64 places"));
}

TEST(Places, AddressOfADaemonInTheLabFileHasADefaultTcpPort)
{
	EXPECT_EQ(part(two_places(), "a").trunks[0].address.text(), "192.0.2.1:7470");
	EXPECT_EQ(parse(two_places()).places->places[1].address->text(), "192.0.2.2:5000");
	EXPECT_EQ(with_trunk_port("[2001:db8::1]"), "[2001:db8::1]:7470");
	EXPECT_EQ(with_trunk_port("[2001:db8::1]:1"), "[2001:db8::1]:1");
	EXPECT_EQ(with_trunk_port("host"), "host:7470");
}

// Without --place, one daemon runs the whole lab.
TEST(Places, DaemonWithoutThePlaceOptionRunsTheWholeLabWithoutTrunks)
{
	const Lab lab = parse(two_places());
	EXPECT_THAT(names(lab.switches), ElementsAre("s1", "s2", "s3"));
	EXPECT_THAT(lab.trunks, IsEmpty());
	EXPECT_EQ(lab.part, nullptr);
}

TEST(Places, DaemonRunsTheNodesAndTrunkEndsThatTheLabFileAssignsToIt)
{
	const Lab a = part(two_places(), "a"), b = part(two_places(), "b");
	EXPECT_THAT(names(a.switches), ElementsAre("s1", "s2"));
	EXPECT_THAT(names(a.hosts), ElementsAre("h1", "h2"));
	EXPECT_THAT(names(b.switches), ElementsAre("s3"));
	EXPECT_THAT(names(b.hosts), ElementsAre("h3"));
	for (const Lab *lab : {&a, &b}) {
		EXPECT_THAT(names(lab->trunks), ElementsAre("s2/36-s3/35", "s3/36-s1/35"));
		// The place that comes first in the file listens, at consecutive ports.
		EXPECT_EQ(lab->trunks[0].address.text(), "192.0.2.1:7470");
		EXPECT_EQ(lab->trunks[1].address.text(), "192.0.2.1:7471");
		EXPECT_EQ(lab->trunks[0].role,
			  lab == &a ? trunk::Role::listens : trunk::Role::connects);
		EXPECT_EQ(lab->trunks[0].key_file, "trunk.key");
	}
	EXPECT_EQ(a.trunks[0].end, (LabEnd{"s3", 35}));
	EXPECT_EQ(b.trunks[0].end, (LabEnd{"s2", 36}));
	EXPECT_EQ(a.trunks[1].end, (LabEnd{"s3", 36}));
	EXPECT_EQ(b.trunks[1].end, (LabEnd{"s1", 35}));
}

// The faults of a link that is cut must not be doubled.
TEST(Places, OnlyTheListeningEndOfATrunkAppliesTheFaultsOfItsLink)
{
	const auto link_of = [](const Lab &lab, const std::string &name) {
		return *std::ranges::find(lab.links, name, &LabLink::name);
	};
	const Lab p1 = part(kRing, "p1",
			    {3,
			     {{"p1", trunk::Address::parse("192.0.2.1:7470")},
			      {"p2", trunk::Address::parse("192.0.2.2:7470")}}}),
		  p2 = part(kRing, "p2",
			    {3,
			     {{"p1", trunk::Address::parse("192.0.2.1:7470")},
			      {"p2", trunk::Address::parse("192.0.2.2:7470")}}});
	EXPECT_EQ(link_of(p1, "s1/36-s2/35").config.faults.loss, 0.01);
	EXPECT_EQ(link_of(p2, "s1/36-s2/35").config.faults.loss, 0);
	for (const Lab *lab : {&p1, &p2})
		EXPECT_EQ(link_of(*lab, "s1/36-s2/35").config.rate.width, ib::width_1x);
}

// Names, GUIDs, ports and numbers of each node and link are those of the whole lab, and each one is
// in one part, or for a trunk in two.
TEST(Places, EachNodeOfADividedLabBelongsToOneDaemonAndEachTrunkToTwoDaemons)
{
	const Lab whole = parse(kRing);
	for (const std::size_t places : {1u, 2u, 3u}) {
		PlanOptions options{places, {}};
		for (std::size_t number = 1; number <= places; ++number)
			options.peers[fmt::format("p{}", number)] =
				trunk::Address::parse(fmt::format("192.0.2.{}:7470", number));
		std::map<std::string, ib::Guid> guids;
		std::map<std::string, unsigned> host_numbers;
		std::multimap<std::string, std::size_t> numbers;
		unsigned managers = 0;
		std::size_t trunks = 0;
		for (std::size_t number = 1; number <= places; ++number) {
			const Lab lab = part(kRing, fmt::format("p{}", number), options);
			for (const auto &config : lab.switches)
				EXPECT_TRUE(guids.emplace(config.name, config.guid).second);
			for (const LabHost &host : lab.hosts) {
				EXPECT_TRUE(guids.emplace(host.name, host.guid).second);
				host_numbers[host.name] = host.number;
			}
			for (const LabLink &link : lab.links)
				numbers.emplace(link.name(), link.number);
			managers += lab.sm_enabled ? 1 : 0;
			trunks += lab.trunks.size();
			EXPECT_EQ(lab.expected_ports, whole.expected_ports);
			EXPECT_EQ(lab.sm.untrusted, whole.sm.untrusted);
		}
		EXPECT_EQ(managers, 1u);
		EXPECT_EQ(guids.size(), whole.switches.size() + whole.hosts.size());
		for (const auto &config : whole.switches)
			EXPECT_EQ(guids[config.name], config.guid);
		for (const LabHost &host : whole.hosts) {
			EXPECT_EQ(guids[host.name], host.guid);
			EXPECT_EQ(host_numbers[host.name], host.number);
		}
		EXPECT_EQ(numbers.size(), whole.links.size() + trunks / 2);
		for (const LabLink &link : whole.links) {
			const auto [first, last] = numbers.equal_range(link.name());
			EXPECT_NE(first, last) << link.name();
			for (auto each = first; each != last; ++each)
				EXPECT_EQ(each->second, link.number);
		}
	}
}

TEST(Places, SubnetManagerRunsOnlyOnTheDaemonOfItsSwitch)
{
	const auto switch_of = [](const std::string &sm) {
		return parse(two_places() + "[sm]\n" + sm).sm_switch;
	};
	EXPECT_EQ(parse(two_places()).sm_switch, "s1");
	EXPECT_EQ(switch_of("place = \"b\"\n"), "s3");
	EXPECT_EQ(switch_of("switch = \"s3\"\n"), "s3");
	EXPECT_TRUE(part(two_places(), "a").sm_enabled);
	EXPECT_FALSE(part(two_places(), "b").sm_enabled);
	EXPECT_FALSE(part(two_places() + "[sm]\nplace = \"b\"\n", "a").sm_enabled);
	EXPECT_TRUE(part(two_places() + "[sm]\nplace = \"b\"\n", "b").sm_enabled);
	EXPECT_TRUE(part(two_places() + "[sm]\nswitch = \"s3\"\n", "b").sm_enabled);
	EXPECT_THAT(
		refusal_of(two_places() + "[sm]\nplace = \"b\"\nswitch = \"s1\"\n"),
		HasSubstr("the subnet manager is to run at place 'b', but its switch 's1' is at "
			  "place 'a'"));
	const auto full = replaced(two_places(), "name = \"s3\"", "name = \"s3\"\nports = 1");
	const auto without_links = full.substr(0, full.find("[[link]]")) +
				   "[[link]]\nends = [\"h3\", \"s3\"]\n" + kTwoPlaces;
	EXPECT_THAT(refusal_of(without_links + "[sm]\nplace = \"b\"\n"),
		    HasSubstr("place 'b' has no switch with a free port"));
}

// A host may be apart from its switch; its link is then a trunk.
TEST(Places, StandbySubnetManagerRunsOnlyOnTheDaemonOfItsSwitch)
{
	const auto text = std::string(two_places()) + "[sm]\nswitch = \"s1\"\nstandby = \"s3\"\n";
	const Lab whole = parse(text);
	const Lab a = part_of(whole, {"a", {}, "/key"}), b = part_of(whole, {"b", {}, "/key"});
	EXPECT_TRUE(a.sm_enabled);
	EXPECT_EQ(a.sm_standby, "");
	EXPECT_FALSE(b.sm_enabled);
	EXPECT_EQ(b.sm_standby, "s3");
	// Both expect the same LIDs. The manager on standby has the lower priority, because it has
	// the lower GUID.
	EXPECT_EQ(a.expected_ports, b.expected_ports);
	EXPECT_NE(std::ranges::find(a.expected_ports,
				    sm::ExpectedPort{whole.standby().guid + 1, false}),
		  a.expected_ports.end());
	EXPECT_EQ(whole.sm.priority, 1U);
	EXPECT_EQ(b.standby().priority, 0U);
	EXPECT_NE(b.standby().guid, whole.sm.guid);
}

TEST(Places, HostOnAnotherDaemonThanItsSwitchIsLinkedByATrunk)
{
	const Lab b =
		part(replaced(two_places(), "name = \"h1\"", "name = \"h1\"\nplace = \"b\""), "b");
	EXPECT_THAT(names(b.hosts), ElementsAre("h1", "h3"));
	EXPECT_THAT(names(b.trunks), ElementsAre("s2/36-s3/35", "s3/36-s1/35", "h1/1-s1/1"));
	EXPECT_THAT(refusal_of_plan(replaced(two_places(), "name = \"h1\"",
					     "name = \"h1\"\nplace = \"b\"\ntrusted = false")),
		    HasSubstr("host 'h1' is not trusted, so it must be at the place of 's1', which "
			      "is 'a'"));
}

TEST(Places, HostWithoutASwitchIsAssignedToTheDaemonOfItsPeerHostOrEthernetSegment)
{
	const auto text = two_places() + R"(
[[ethernet]]
name = "lan"
[[host]]
name = "follows-host"
ports = 2
[[host]]
name = "at-b"
place = "b"
ethernet = "lan"
[[host]]
name = "follows-ethernet"
model = "amso1100"
ethernet = "lan"
[[host]]
name = "alone"
[[link]]
ends = ["follows-host", "at-b"]
)";
	EXPECT_THAT(names(part(text, "b").hosts),
		    ElementsAre("h3", "follows-host", "at-b", "follows-ethernet"));
	EXPECT_THAT(names(part(text, "b").ethernets), ElementsAre("lan"));
	EXPECT_THAT(names(part(text, "a").hosts), ElementsAre("h1", "h2", "alone"));
	EXPECT_THAT(part(text, "a").attachments, IsEmpty());
}

// The lab of two places with an Ethernet for the three hosts.
std::string with_ethernet()
{
	std::string text = two_places();
	for (const char *const host : {"h1", "h2", "h3"})
		text = replaced(text, fmt::format("name = \"{}\"", host),
				fmt::format("name = \"{}\"\nethernet = \"lan\"", host));
	return text + "[[ethernet]]\nname = \"lan\"\n[[ethernet]]\nname = \"empty\"\n";
}

TEST(Places, EthernetSegmentWithHostsOnTwoDaemonsIsConnectedByATrunk)
{
	const Lab whole = parse(with_ethernet()), a = part(with_ethernet(), "a"),
		  b = part(with_ethernet(), "b");
	EXPECT_THAT(whole.trunks, IsEmpty());
	EXPECT_THAT(names(a.ethernets), ElementsAre("lan", "empty"));
	EXPECT_THAT(names(b.ethernets), ElementsAre("lan"));
	ASSERT_EQ(a.attachments.size(), 2u);
	ASSERT_EQ(b.attachments.size(), 1u);
	// The port numbers are those of the whole lab.
	EXPECT_EQ(a.attachments[1].port, 2u);
	EXPECT_EQ(b.attachments[0].port, 3u);
	for (const Lab *lab : {&a, &b}) {
		EXPECT_THAT(names(lab->trunks),
			    ElementsAre("s2/36-s3/35", "s3/36-s1/35", "lan@a/b-lan@b/a"));
		const LabTrunk &trunk = lab->trunks[2];
		EXPECT_EQ(trunk.address.text(), "192.0.2.1:7472");
		EXPECT_EQ(trunk.role, lab == &a ? trunk::Role::listens : trunk::Role::connects);
		EXPECT_EQ(trunk.key_file, "trunk.key");
		EXPECT_EQ(trunk.ethernet->network, "lan");
	}
	const auto &near = a.trunks[2].ethernet->config, &far = b.trunks[2].ethernet->config;
	EXPECT_EQ(near.near, "lan@a/b");
	EXPECT_EQ(near.far, "lan@b/a");
	EXPECT_EQ(far.near, near.far);
	EXPECT_EQ(far.far, near.near);
	EXPECT_TRUE(near.near_is_first);
	EXPECT_FALSE(far.near_is_first);
	// The numbers of hosts at the other place.
	EXPECT_EQ(near.hosts, 1u);
	EXPECT_EQ(far.hosts, 2u);
	EXPECT_THAT(refusal([] {
			    part(replaced(with_ethernet(), "trunk-key-file = \"trunk.key\"", ""),
				 "a");
		    }),
		    HasSubstr("the lab needs a trunk-key-file"));
}

// A full mesh between the places that have hosts of the segment.
TEST(Places, EachPairOfDaemonsWithHostsOfAnEthernetSegmentHasATrunk)
{
	std::string text = "name = \"big\"\n[[ethernet]]\nname = \"lan\"\n[sm]\nenabled = false\n";
	for (unsigned number = 1; number <= 100; ++number)
		text += fmt::format("[[host]]\nname = \"h{}\"\nmodel = \"example\"\n{}", number,
				    number % 2 ? "ethernet = \"lan\"\n" : "");
	const Lab lab = parse(text);
	const Plan plan = make_plan(lab, {kMostPlaces, {}});
	// Hosts without other links are spread evenly.
	EXPECT_EQ(plan.ethernets.at("lan").size(), 50u);
	EXPECT_EQ(plan.trunks.size(), 50u * 49 / 2);
	const Plan three = make_plan(lab, {3, {}});
	EXPECT_THAT(three.ethernets.at("lan"),
		    ElementsAre(::testing::Pair(0, 17), ::testing::Pair(1, 17),
				::testing::Pair(2, 16)));
	std::vector<std::string> trunks;
	for (const PlannedTrunk &trunk : three.trunks)
		trunks.push_back(fmt::format("{} {} {}", trunk.name, trunk.listens, trunk.index));
	EXPECT_THAT(trunks, ElementsAre("lan@p1/p2-lan@p2/p1 0 0", "lan@p1/p3-lan@p3/p1 0 1",
					"lan@p2/p3-lan@p3/p2 1 0"));
	EXPECT_THAT(
		plan_text(lab, three, {"p2"}),
		AllOf(HasSubstr("    Ethernets (1): lan\n"),
		      HasSubstr("trunk lan@p1/p2-lan@p2/p1          connects to p1 at port 7470\n"),
		      HasSubstr("0 of 0 links are trunks between places; 3 more trunks connect "
				"Ethernets\n")));
}

TEST(Places, PortsOfAnEthernetSegmentKeepTheirNumbersWhenTheLabFileChanges)
{
	const Lab before = parse(with_ethernet());
	const auto changed =
		replaced(with_ethernet(), "[[host]]\nname = \"h1\"\nethernet = \"lan\"",
			 "[[host]]\nname = \"h0\"\nethernet = \"lan\"\n[[host]]\nname = "
			 "\"h1\"\n");
	const Lab after = parse_lab(changed, "lab.toml", "", &before);
	std::map<std::string, unsigned> ports;
	for (const LabAttachment &attachment : after.attachments)
		ports[attachment.host] = attachment.port;
	EXPECT_EQ(ports, (std::map<std::string, unsigned>{{"h0", 1}, {"h2", 2}, {"h3", 3}}));
}

TEST(Places, LabFileWithoutThePlacesAddressNameOrTrunkKeyThatAPlanNeedsIsRefused)
{
	EXPECT_THAT(refusal_of_plan(kRing), HasSubstr("the lab has no [[place]]"));
	EXPECT_THAT(refusal_of_plan(two_places(), {2, {}}), HasSubstr("has 2 places already"));
	EXPECT_THAT(
		refusal_of_plan(two_places(), {0, {{"c", trunk::Address::parse("192.0.2.1:1")}}}),
		HasSubstr("there is no place 'c'; there is a, b"));
	EXPECT_THAT(refusal_of_plan(replaced(two_places(), "name = \"ring\"", "")),
		    HasSubstr("a lab with several places needs a name"));
	EXPECT_THAT(refusal([] { part(two_places(), "c"); }), HasSubstr("there is no place 'c'"));
	EXPECT_THAT(refusal([] {
			    part(replaced(two_places(), "trunk-key-file = \"trunk.key\"", ""), "a");
		    }),
		    HasSubstr("the lab needs a trunk-key-file"));
	const auto without_address = replaced(two_places(), "address = \"192.0.2.1\"", "");
	for (const char *const place : {"a", "b"})
		EXPECT_THAT(
			refusal([&] { part(without_address, place); }),
			AllOf(StartsWith("lab.toml:"),
			      HasSubstr("place 'a' listens for trunks, so it needs an address")));
	EXPECT_EQ(part_of(parse(without_address),
			  {"b", {0, {{"a", trunk::Address::parse("192.0.2.9:1000")}}}, "/key"})
			  .trunks[1]
			  .address.text(),
		  "192.0.2.9:1001");
	EXPECT_THAT(refusal_of_plan(replaced(two_places(), "192.0.2.1", "192.0.2.1:65535")),
		    HasSubstr("place 'a' listens for 2 trunks from port 65535 on"));
}

TEST(Places, LabFileWithTwoDaemonsOnOneTcpPortIsRefused)
{
	const auto at = [](unsigned a, unsigned b) {
		const auto address = [](unsigned port) {
			return trunk::Address::parse(fmt::format("127.0.0.1:{}", port));
		};
		return refusal_of_plan(kRing, {3, {{"p1", address(a)}, {"p2", address(b)}}});
	};
	// p1 listens for two trunks and p2 for one.
	EXPECT_THAT(at(7470, 7471),
		    HasSubstr("place 'p2' listens at 1 ports from 127.0.0.1:7471 on"));
	EXPECT_THAT(at(7470, 7470), HasSubstr("place 'p1' listens at 2 ports"));
	EXPECT_EQ(at(7470, 7472), "");
	EXPECT_EQ(at(7471, 7470), "");
}

TEST(Places, TcpPortConflictWithADaemonThatListensForNoTrunksIsIgnored)
{
	const std::string idle = "[[place]]\nname = \"c\"\naddress = \"192.0.2.1:7471\"\n";
	const auto text = replaced(replaced(two_places(), "[[place]]", idle + "[[place]]"),
				   "192.0.2.1\"", "192.0.2.1:7470\"");
	EXPECT_EQ(refusal_of_plan(text), "");
}

// A program that starts the places chooses free ports, so the plan has none. Without such a
// program, a place has the default port.
TEST(Places, LabPlanContainsNoTrunkTcpPortIfTheLabFileSetsNone)
{
	std::string text = kRing;
	for (const char *const name : {"a", "b", "c"})
		text += fmt::format("[[place]]\nname = \"{}\"\naddress = \"127.0.0.1\"\n", name);
	const Lab lab = parse(text);
	const json described = describe(lab, make_plan(lab, {}), {});
	for (const json &place : described["places"]) {
		EXPECT_EQ(place["address"], "127.0.0.1");
		for (const json &trunk : place["trunks"])
			EXPECT_EQ(trunk["port"], nullptr);
	}
	EXPECT_THAT(refusal([&] { part(text, "a"); }),
		    HasSubstr("place 'b' listens at 1 ports from 127.0.0.1:7470 on, but place 'a' "
			      "listens at 2 ports from 127.0.0.1:7470 on"));
	const Lab given = part(text, "b",
			       {0,
				{{"a", trunk::Address::parse("127.0.0.1:1000")},
				 {"b", trunk::Address::parse("127.0.0.1:1002")}}});
	EXPECT_EQ(given.trunks[0].address.text(), "127.0.0.1:1000");
	const Lab lab6 = parse(replaced(text, "127.0.0.1", "[2001:db8::1]"));
	EXPECT_EQ(describe(lab6, make_plan(lab6, {}), {})["places"][0]["address"], "[2001:db8::1]");
}

// Discovery goes along the links in the order of ports, see Discovery in sm/discovery.cpp.
TEST(Places, LabFilePortsAreListedInTheOrderInWhichTheSubnetManagerDiscoversThem)
{
	const Lab lab = parse(kRing);
	std::vector<ib::Guid> guids;
	for (const sm::ExpectedPort &port : lab.expected_ports)
		guids.push_back(port.guid);
	const auto &s = lab.switches;
	const auto &h = lab.hosts;
	EXPECT_THAT(guids, ElementsAre(lab.sm.guid + 1, s[0].guid, h[0].guid + 1, s[2].guid,
				       s[1].guid, h[2].guid + 1, h[1].guid + 1));
	EXPECT_THAT(parse(std::string(kRing) + "[sm]\nenabled = false\n").expected_ports,
		    IsEmpty());
}

// The numbers of links determine the seeds of their faults.
TEST(Places, ExistingLinksKeepTheirNumbersWhenALinkIsInsertedIntoTheLabFile)
{
	const Lab before = parse(kRing);
	std::vector<std::size_t> numbers;
	for (const LabLink &link : before.links)
		numbers.push_back(link.number);
	EXPECT_THAT(numbers, ElementsAre(1, 2, 3, 4, 5, 6, 7)) << "as without places";
	const auto changed =
		replaced(replaced(kRing, "[[host]]\nname = \"h1\"",
				  "[[host]]\nname = \"h0\"\n[[host]]\nname = \"h1\""),
			 "[[link]]\nends = [\"h1\", \"s1\"]",
			 "[[link]]\nends = [\"h0\", \"s1\"]\n[[link]]\nends = [\"h1\", \"s1\"]");
	const Lab after = parse_lab(changed, "lab.toml", "", &before);
	for (const LabLink &link : after.links) {
		const auto old = std::ranges::find(before.links, link.name(), &LabLink::name);
		EXPECT_EQ(link.number, old == before.links.end() ? 8 : old->number) << link.name();
	}
	EXPECT_EQ(after.links_numbered, 8u);
	EXPECT_EQ(after.hosts[0].number, 4u);
	EXPECT_EQ(after.hosts[1].number, 1u);
}

TEST(Places, TrunkNamesInTheTrunkProtocolAreUniqueAndShort)
{
	EXPECT_EQ(protocol_name("s1/36-s2/35"), "s1/36-s2/35");
	const std::string long_one = "a-switch-with-a-long-name/36-another-switch/35",
			  other = "a-switch-with-a-long-name/36-another-switch/36";
	EXPECT_LE(protocol_name(long_one).size(), trunk::kMostName);
	EXPECT_NE(protocol_name(long_one), protocol_name(other));
	EXPECT_THAT(protocol_name(long_one), StartsWith("a-switch-with-a~"));
}

TEST(Places, PlanOfALabIsDescribedAsJsonAndAsText)
{
	const Lab lab = parse(two_places());
	const Plan plan = make_plan(lab, {});
	const json described = describe(lab, plan, {});
	ASSERT_EQ(described["places"].size(), 2u);
	const json &b = described["places"][1];
	EXPECT_EQ(
		b,
		json::parse(
			R"({"name": "b", "address": "192.0.2.2:5000", "subnet_manager": false, "standby": false,
		"switches": ["s3"], "hosts": ["h3"], "ethernets": {}, "peers": {"a": "192.0.2.1"}, "trunks": [
		{"link": "s2/36-s3/35", "ethernet": null, "role": "connects", "peer": "a", "index": 0, "port": null},
		{"link": "s3/36-s1/35", "ethernet": null, "role": "connects", "peer": "a", "index": 1, "port": null}]})"));
	const Lab with_port = parse(replaced(two_places(), "192.0.2.1", "192.0.2.1:6000"));
	const json a = describe(with_port, make_plan(with_port, {}), {"a"})["places"][0];
	EXPECT_EQ(a["address"], "192.0.2.1:6000");
	EXPECT_EQ(a["trunks"][1]["port"], 6001);
	EXPECT_EQ(described["places"][0]["trunks"][1]["role"], "listens");
	EXPECT_EQ(describe(lab, plan, {"b"})["places"], json::array({b}));
	EXPECT_EQ(plan_text(lab, plan, {}),
		  "place  a                192.0.2.1  runs the subnet manager\n"
		  "    switches (2): s1 s2\n"
		  "    hosts (2): h1 h2\n"
		  "    trunk s2/36-s3/35                  listens at port 7470 for b\n"
		  "    trunk s3/36-s1/35                  listens at port 7471 for b\n"
		  "place  b                192.0.2.2:5000\n"
		  "    switches (1): s3\n"
		  "    hosts (1): h3\n"
		  "    trunk s2/36-s3/35                  connects to a at port 7470\n"
		  "    trunk s3/36-s1/35                  connects to a at port 7471\n"
		  "2 of 7 links are trunks between places\n");
}

TEST(Places, PlanTextAbbreviatesLongLists)
{
	std::string text = "name = \"big\"\n[[switch]]\nname = \"s\"\n";
	for (int number = 1; number <= 20; ++number)
		text += fmt::format(
			"[[host]]\nname = \"h{0}\"\nmodel = \"endpoint\"\n[[link]]\nends = "
			"[\"h{0}\", \"s\"]\n",
			number);
	const Lab lab = parse(text);
	EXPECT_THAT(plan_text(lab, make_plan(lab, {2, {}}), {}),
		    AllOf(HasSubstr("hosts (20): h1 h2 h3 h4 h5 h6 h7 h8 and 12 more\n"),
			  HasSubstr("place  p2               no address\n")));
}

} // namespace
} // namespace weft::weftd
