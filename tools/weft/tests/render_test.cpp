// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that text and drawings of a fabric match the description that weftd returns on its control
// socket, whatever characters the names of nodes contain.
#include "weft/render.hpp"

#include <algorithm>
#include <map>
#include <regex>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::cli
{
namespace
{

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

json port(const std::string &name, const json &link, bool up)
{
	return {{"name", name}, {"link", link}, {"up", up}};
}

json link(const std::string &a, const std::string &b, bool up = true)
{
	return {{"name", a + "-" + b},
		{"ends", {a, b}},
		{"up", up},
		{"settings",
		 {{"width", "4x"},
		  {"speed", "QDR"},
		  {"mtu", "4096"},
		  {"state", up ? "up" : "down"},
		  {"training", "250ms"},
		  {"delay", "0ms"},
		  {"jitter", "0ms"},
		  {"loss", "0"},
		  {"duplication", "0"},
		  {"reordering", "0"},
		  {"corruption", "0"},
		  {"silent_corruption", "0"}}}};
}

json host(const std::string &name, bool has_guest, json ports)
{
	return {{"name", name},
		{"guid", "0x0002c90300000100"},
		{"guest", has_guest},
		{"socket", "/run/" + name + ".sock"},
		{"ports", std::move(ports)}};
}

// Returns two hosts on a switch, the second with its cable pulled, and a subnet manager. (clang
// treats braces around a single value as a copy, not as an array.)
json two_hosts()
{
	return {{"seed", "0x77656674"},
		{"switches",
		 {{{"name", "s1"},
		   {"guid", "0x0002c90200000001"},
		   {"lid", 3},
		   {"ports",
		    {port("s1/1", "a/1-s1/1", true), port("s1/2", "b/1-s1/2", false),
		     port("s1/3", "sm/1-s1/3", true), port("s1/4", nullptr, false)}}}}},
		{"hosts",
		 {host("a", true, json::array({port("a/1", "a/1-s1/1", true)})),
		  host("b", false, json::array({port("b/1", "b/1-s1/2", false)}))}},
		{"links", {link("a/1", "s1/1"), link("b/1", "s1/2", false), link("sm/1", "s1/3")}},
		{"subnet_manager",
		 {{"node", "sm"}, {"state", "master"}, {"sweeps", 7}, {"complete", true}}}};
}

// Returns the names of the elements of a document, and fails if it is not well-formed.
std::map<std::string, int> elements(const std::string &document)
{
	static const std::regex kTag("<(/?)([a-z]+)((?: [a-zA-Z-]+=\"[^\"<]*\")*)(/?)>");
	static const std::regex kReference("&(?:lt|gt|amp|quot);");
	std::map<std::string, int> count;
	std::vector<std::string> open;
	std::string text; // the text outside of tags
	auto rest = document.begin();
	for (std::sregex_iterator found(document.begin(), document.end(), kTag), none;
	     found != none; ++found) {
		text.append(rest, (*found)[0].first);
		rest = (*found)[0].second;
		const std::string name = (*found)[2];
		if ((*found)[1].length()) {
			EXPECT_FALSE(open.empty()) << "</" << name << "> ends nothing";
			if (!open.empty()) {
				EXPECT_EQ(open.back(), name);
				open.pop_back();
			}
			continue;
		}
		EXPECT_TRUE(!open.empty() || count.empty()) << "a second root";
		++count[name];
		if (!(*found)[4].length())
			open.push_back(name);
	}
	text.append(rest, document.end());
	EXPECT_TRUE(open.empty()) << open.back() << " never ends";
	text = std::regex_replace(text, kReference, "");
	EXPECT_THAT(text, Not(HasSubstr("<")));
	EXPECT_THAT(text, Not(HasSubstr("&")));
	for (const char c : text)
		EXPECT_TRUE(static_cast<unsigned char>(c) >= ' ' || c == '\n');
	return count;
}

// A host to which no guest can connect shows its model instead of a socket.
TEST(FabricText, HostWithoutGuestShowsItsCardModel)
{
	json fabric = two_hosts();
	fabric["hosts"][1]["socket"] = nullptr;
	fabric["hosts"][1]["model"] = "endpoint";
	EXPECT_THAT(fabric_text(fabric),
		    HasSubstr("host   b                0x0002c90300000100  no guest  endpoint\n"));
}

TEST(FabricText, HasOneLineForEachNodeEachPortAndEachLink)
{
	EXPECT_EQ(fabric_text(two_hosts()),
		  "seed 0x77656674\n"
		  "switch s1               0x0002c90200000001  LID 3  4 ports\n"
		  "    s1/1             up    a/1-s1/1\n"
		  "    s1/2             down  b/1-s1/2\n"
		  "    s1/3             up    sm/1-s1/3\n"
		  "host   a                0x0002c90300000100  guest on  /run/a.sock\n"
		  "    a/1              up    a/1-s1/1\n"
		  "host   b                0x0002c90300000100  no guest  /run/b.sock\n"
		  "    b/1              down  b/1-s1/2\n"
		  "link   a/1-s1/1                     up    4x QDR MTU 4096\n"
		  "link   b/1-s1/2                     down  4x QDR MTU 4096 state=down\n"
		  "link   sm/1-s1/3                    up    4x QDR MTU 4096\n"
		  "subnet manager on sm: master, 7 sweeps\n");
}

TEST(FabricText, ShowsTrunksAndTheReasonWhyATrunkIsNotConnected)
{
	json fabric = two_hosts();
	json trunk{{"name", "west"},    {"end", "west/1"},
		   {"role", "listens"}, {"address", "127.0.0.1:7470"},
		   {"connected", true}, {"peer", "127.0.0.1:5000"},
		   {"reason", nullptr}, {"refusal", nullptr},
		   {"connections", 1},  {"refused", 0},
		   {"violations", 0}};
	fabric["trunks"] = json::array({trunk});
	EXPECT_THAT(fabric_text(fabric),
		    HasSubstr("trunk  west             listens 127.0.0.1:7470  "
			      "connected to 127.0.0.1:5000\n"));
	elements(fabric_svg(fabric));
	trunk["connected"] = false;
	trunk["peer"] = nullptr;
	trunk["reason"] = "Connection refused";
	trunk["refused"] = 2;
	trunk["refusal"] = "192.0.2.7:5001: the two ends have different keys";
	fabric["trunks"] = json::array({trunk});
	EXPECT_THAT(
		fabric_text(fabric),
		HasSubstr("not connected: Connection refused refused=2\n"
			  "    last refused 192.0.2.7:5001: the two ends have different keys\n"));
}

// In a part of a lab, two trunks may lead to the same switch, which is drawn once.
TEST(FabricSvg, NodeAtTheRemoteEndOfTwoTrunksIsDrawnOnce)
{
	json fabric = two_hosts();
	const auto boxes = [&] {
		const std::string picture = fabric_svg(fabric);
		std::size_t count = 0;
		for (auto at = picture.find("<rect"); at != std::string::npos;
		     at = picture.find("<rect", at + 1))
			++count;
		return count;
	};
	const auto before = boxes();
	for (const std::string end : {"far/1", "far/2"}) {
		fabric["trunks"].push_back(
			{{"name", "s1/4-" + end}, {"end", end}, {"connected", end == "far/1"}});
		EXPECT_EQ(boxes(), before + 1);
	}
	EXPECT_THAT(fabric_svg(fabric), HasSubstr("trunk, not connected"));
}

TEST(FabricText, ReportsAnIncompleteSmSweepAndOmitsTheSmLineIfTheFabricHasNoSm)
{
	json fabric = two_hosts();
	fabric["subnet_manager"]["complete"] = false;
	EXPECT_THAT(fabric_text(fabric), HasSubstr("7 sweeps, the last one not complete\n"));
	fabric["subnet_manager"] = nullptr;
	EXPECT_THAT(fabric_text(fabric), Not(HasSubstr("subnet manager")));
}

// The log and the names in it may contain data from guests.
TEST(LogText, EscapesControlCharacters)
{
	const json log = {{"lines",
			   {{{"time", "now"},
			     {"level", "info"},
			     {"part", "sm"},
			     {"text", "node \x1b[2J\nnow error weftd: forged \xc2\x9b"}}}}};
	EXPECT_EQ(log_text(log),
		  "now info    sm: node \\x1b[2J\\x0anow error weftd: forged \\xc2\\x9b\n");
}

TEST(LinkText, ShowsOnlyNonDefaultSettings)
{
	json faulty = link("a/1", "s1/1");
	faulty["settings"]["loss"] = "0.01";
	faulty["settings"]["delay"] = "20us";
	faulty["captured_packets"] = 12;
	EXPECT_EQ(link_text(faulty), "a/1-s1/1                     up    4x QDR MTU 4096 "
				     "delay=20us loss=0.01 captured=12\n");
}

// `weft link up` answers before training has ended.
TEST(LinkText, DistinguishesLinksInPollingStateFromUnpluggedLinks)
{
	json pulled = link("a/1", "s1/1", false);
	EXPECT_THAT(link_text(pulled), HasSubstr(" down  "));
	pulled["settings"]["state"] = "up";
	EXPECT_THAT(link_text(pulled), HasSubstr(" polling  "));
}

TEST(FaultText, ShowsArmedAndTriggeredFaults)
{
	const json none{{"cqe-index", 0}, {"cqe-number", 0}};
	EXPECT_EQ(fault_text("cqe-number", 1, none),
		  "armed: cqe-number, 1 time\nfaults so far: none\n");
	const json some{{"cqe-index", 0}, {"cqe-number", 2}, {"eqe-type", 1}};
	EXPECT_EQ(fault_text("eqe-type", 3, some),
		  "armed: eqe-type, 3 times\nfaults so far: cqe-number=2 eqe-type=1\n");
	EXPECT_EQ(faults_text(none), "faults so far: none\n");
}

TEST(SubnetManagerText, ShowsWhetherTheManagerIsEnabled)
{
	EXPECT_EQ(subnet_manager_setting_text({{"node", "sm"}, {"enabled", true}}),
		  "subnet manager on sm: enabled\n");
	EXPECT_EQ(subnet_manager_setting_text({{"node", "sm"}, {"enabled", false}}),
		  "subnet manager on sm: disabled\n");
}

json ethernet()
{
	const json settings{{"state", "up"}, {"delay", "1ms"}, {"loss", "0"}};
	return {{"switches", {{{"name", "lan"}, {"addresses", 2}}}},
		{"attachments",
		 {{{"name", "a/eth0"}, {"guest", true}, {"socket", "/run/a-eth0.sock"}}}},
		{"links",
		 {{{"name", "a/eth0-lan/1"},
		   {"up", true},
		   {"settings", settings},
		   {"captured_packets", 5}}}}};
}

TEST(FabricText, ShowsEthernetSegmentsWithTheirPortsAndLinks)
{
	json fabric = two_hosts();
	fabric["ethernet"] = ethernet();
	EXPECT_THAT(
		fabric_text(fabric),
		HasSubstr(
			"Ethernet lan            knows 2 addresses\n"
			"    a/eth0           guest on  /run/a-eth0.sock\n"
			"link   a/eth0-lan/1                 up    Ethernet delay=1ms captured=5\n"));
}

TEST(CountersText, ShowsCountersOfInfinibandAndEthernetPorts)
{
	const json counters{{"a/1", {{"xmit_packets", 3}}}, {"a/eth0", {{"xmit_frames", 4}}}};
	EXPECT_EQ(counters_text(counters, false),
		  "a/1     xmit_packets=3\na/eth0  xmit_frames=4\n");
	EXPECT_EQ(counters_text(counters, true), "a/1     xmit_packets=3\na/eth0  xmit_frames=4\n");
}

TEST(CountersText, HidesZeroCountersByDefault)
{
	const json counters = {
		{"a/1", {{"xmit_packets", 5}, {"symbol_errors", 0}}},
		{"long/1", {{"xmit_packets", 0}, {"symbol_errors", 0}}},
	};
	EXPECT_EQ(counters_text(counters, false), "a/1     xmit_packets=5\nlong/1\n");
	EXPECT_EQ(counters_text(counters, true), "a/1     symbol_errors=0  xmit_packets=5\n"
						 "long/1  symbol_errors=0  xmit_packets=0\n");
}

// The position and size of a rectangle in a drawing.
struct Place {
	int x, y, width, height;
};
std::vector<Place> boxes_of(const std::string &svg)
{
	std::vector<Place> boxes;
	static const std::regex kBox(
		"<rect x=\"(-?\\d+)\" y=\"(-?\\d+)\" width=\"(\\d+)\" height=\"(\\d+)\"");
	for (std::sregex_iterator found(svg.begin(), svg.end(), kBox), none; found != none; ++found)
		boxes.push_back({std::stoi((*found)[1]), std::stoi((*found)[2]),
				 std::stoi((*found)[3]), std::stoi((*found)[4])});
	return boxes;
}
void expect_inside_and_apart(const std::string &svg, const std::vector<Place> &boxes)
{
	std::smatch size;
	ASSERT_TRUE(std::regex_search(svg, size, std::regex("viewBox=\"0 0 (\\d+) (\\d+)\"")));
	const int width = std::stoi(size[1]), height = std::stoi(size[2]);
	for (const Place &one : boxes) {
		EXPECT_GE(one.x, 0);
		EXPECT_GE(one.y, 0);
		EXPECT_LE(one.x + one.width, width);
		EXPECT_LE(one.y + one.height, height);
		for (const Place &other : boxes)
			EXPECT_TRUE(&one == &other || one.x + one.width <= other.x ||
				    other.x + other.width <= one.x ||
				    one.y + one.height <= other.y ||
				    other.y + other.height <= one.y);
	}
}

TEST(FabricSvg, HasOneBoxPerNodeAndOneLinePerLink)
{
	const std::string svg = fabric_svg(two_hosts());
	auto count = elements(svg);
	EXPECT_EQ(count["svg"], 1);
	EXPECT_EQ(count["rect"], 1 + 4) << "background, switch, two hosts, manager";
	EXPECT_EQ(count["path"], 3);
	EXPECT_EQ(count["title"], 3 + 4);
	for (const char *name : {">s1<", ">a<", ">b<", ">sm<"})
		EXPECT_THAT(svg, HasSubstr(name));
	EXPECT_THAT(svg, HasSubstr(">switch, LID 3<"));
	EXPECT_THAT(svg, HasSubstr("<title>b/1-s1/2</title><path d=\"M"));
	EXPECT_THAT(svg, HasSubstr("class=\"down\""));
	EXPECT_THAT(svg, HasSubstr(">4x QDR down<"));
}

TEST(FabricSvg, ShowsAllSubnetManagers)
{
	json fabric = two_hosts();
	json standby = fabric["subnet_manager"];
	standby["node"] = "sm-standby";
	standby["state"] = "standby";
	fabric["subnet_managers"] = {fabric["subnet_manager"], standby};
	fabric["links"].push_back(fabric["links"][0]);
	fabric["links"].back()["ends"] = {"s1/4", "sm-standby/1"};
	const std::string svg = fabric_svg(fabric);
	auto count = elements(svg);
	EXPECT_EQ(count["rect"], 1 + 5);
	EXPECT_EQ(count["path"], 4) << "the link of the second manager";
	EXPECT_THAT(svg, HasSubstr(">sm-standby<"));
	EXPECT_THAT(svg, HasSubstr(">standby manager<"));
}

TEST(FabricSvg, BoxesAreInsideThePictureAndDoNotOverlap)
{
	json fabric = two_hosts();
	for (int i = 0; i < 20; ++i)
		fabric["hosts"].push_back(host("h" + std::to_string(i), false, json::array()));
	const std::string svg = fabric_svg(fabric);
	const auto boxes = boxes_of(svg);
	ASSERT_EQ(boxes.size(), 24u);
	expect_inside_and_apart(svg, boxes);
}

json switch_named(const std::string &name)
{
	return {{"name", name}, {"guid", "0x1"}, {"lid", 1}, {"ports", json::array()}};
}

// Returns leaves with hosts, each linked to all spines.
json fat_tree(int leaves, int spines, int hosts)
{
	json fabric = {{"seed", "0x1"},
		       {"switches", json::array()},
		       {"hosts", json::array()},
		       {"links", json::array()},
		       {"subnet_manager", nullptr}};
	for (int leaf = 0; leaf < leaves; ++leaf)
		fabric["switches"].push_back(switch_named("leaf" + std::to_string(leaf)));
	for (int spine = 0; spine < spines; ++spine)
		fabric["switches"].push_back(switch_named("spine" + std::to_string(spine)));
	for (int number = 0; number < hosts; ++number) {
		const auto name = "node" + std::to_string(number);
		fabric["hosts"].push_back(host(name, false, json::array()));
		fabric["links"].push_back(
			link(name + "/1", "leaf" + std::to_string(number * leaves / hosts) + "/" +
						  std::to_string(number + 1)));
	}
	for (int leaf = 0; leaf < leaves; ++leaf)
		for (int spine = 0; spine < spines; ++spine)
			fabric["links"].push_back(link(
				"leaf" + std::to_string(leaf) + "/" + std::to_string(300 + spine),
				"spine" + std::to_string(spine) + "/" + std::to_string(leaf + 1)));
	return fabric;
}

// 18 switches and 215 hosts fit on a screen, with spines above leaves above their hosts. So do
// rings, and single switches with many hosts.
TEST(FabricSvg, LargeFabricsFitAPictureOf1500By1000Pixels)
{
	json ring = fat_tree(16, 0, 64);
	for (int at = 0; at < 16; ++at)
		ring["links"].push_back(link("leaf" + std::to_string(at) + "/400",
					     "leaf" + std::to_string((at + 1) % 16) + "/401"));
	for (const json &fabric : {fat_tree(12, 6, 215), fat_tree(1, 0, 200), ring}) {
		const std::string svg = fabric_svg(fabric);
		elements(svg);
		std::smatch size;
		ASSERT_TRUE(
			std::regex_search(svg, size, std::regex("viewBox=\"0 0 (\\d+) (\\d+)\"")));
		EXPECT_LE(std::stoi(size[1]), 1500);
		EXPECT_LE(std::stoi(size[2]), 1000);
		const auto boxes = boxes_of(svg);
		EXPECT_EQ(boxes.size(), fabric["switches"].size() + fabric["hosts"].size());
		expect_inside_and_apart(svg, boxes);
	}
	const std::string svg = fabric_svg(fat_tree(12, 6, 215));
	const auto y_of = [&](const std::string &name) {
		std::smatch at;
		EXPECT_TRUE(std::regex_search(
			svg, at,
			std::regex("data-name=\"" + name +
				   "\"><title>[^<]*</title><rect x=\"\\d+\" y=\"(\\d+)\"")));
		return std::stoi(at[1]);
	};
	EXPECT_LT(y_of("spine5"), y_of("leaf0"));
	EXPECT_EQ(y_of("leaf0"), y_of("leaf11"));
	EXPECT_LT(y_of("leaf0"), y_of("node0"));
}

json sample(double time, json ports, json down)
{
	return {{"time", time},
		{"columns", {"xmit_packets", "xmit_data", "symbol_errors", "xmit_wait"}},
		{"ports", std::move(ports)},
		{"down", std::move(down)},
		{"guests", {"a"}},
		{"subnet_manager",
		 {{"node", "sm"}, {"state", "master"}, {"sweeps", 7}, {"complete", true}}}};
}

json ports_of_two_hosts(int packets, int errors)
{
	const json still = {0, 0, 0, 0};
	return {{"a/1", {packets, 1000 * packets, 0, 3 * packets}},
		{"s1/1", still},
		{"b/1", {0, 0, errors, 0}},
		{"s1/2", still},
		{"sm/1", still},
		{"s1/3", still}};
}

TEST(TopText, ShowsLinkRatesBetweenTwoCounterSamples)
{
	TopView view;
	view.title = "dir";
	const auto before = sample(10, ports_of_two_hosts(100, 1), json::array()),
		   now = sample(12, ports_of_two_hosts(300, 5), {"b/1-s1/2"});
	EXPECT_EQ(
		top_text(two_hosts(), before, now, view),
		"weft top  dir\n"
		"links 2 up, 1 down   guests 1 of 2   sm master, 7 sweeps\n"
		"by rate (r rate, e errors, n name, q ends); > is from the first end\n"
		"\n"
		"LINK          STATE SPEED   > bit/s < bit/s > pkt/s < pkt/s  errors   err/s waits/s\n"
		"a/1-s1/1      up    4x QDR     3.2M       0     100       0       0       0     300\n"
		"b/1-s1/2      DOWN  4x QDR        0       0       0       0       5       2       0\n"
		"sm/1-s1/3     up    4x QDR        0       0       0       0       0       0       0");
	view.order = TopOrder::errors;
	const auto by_errors = top_text(two_hosts(), before, now, view);
	EXPECT_LT(by_errors.find("b/1-s1/2"), by_errors.find("a/1-s1/1"));
	// A restarted daemon counts from zero, and its clock may differ.
	EXPECT_EQ(top_text(two_hosts(), now, before, view).find("3.2M"), std::string::npos);
}

// A link with an injected fault does not look like a healthy one, and its faults are shown.
TEST(TopText, MarksLinksWithInjectedFaults)
{
	json fabric = two_hosts();
	fabric["links"][0]["settings"]["loss"] = "0.05";
	fabric["links"][0]["settings"]["delay"] = "1ms";
	fabric["links"][1]["settings"]["loss"] = "1";
	const auto now = sample(10, ports_of_two_hosts(0, 0), {"b/1-s1/2"});
	const auto text = top_text(fabric, now, now, {});
	EXPECT_THAT(
		text,
		HasSubstr(
			"a/1-s1/1      fault 4x QDR        0       0       0       0       0       0       0 delay=1ms loss=0.05\n"));
	EXPECT_THAT(text, HasSubstr("\nb/1-s1/2      DOWN "));
	EXPECT_THAT(text, HasSubstr("\nsm/1-s1/3     up "));
	// A link that was pulled, or whose training takes longer, has no fault.
	fabric["links"][2]["settings"]["training"] = "1ms";
	fabric["links"][2]["settings"]["state"] = "down";
	EXPECT_THAT(top_text(fabric, now, now, {}), HasSubstr("\nsm/1-s1/3     up "));
	EXPECT_EQ(link_faults(fabric["links"][2]["settings"]), "");
}

TEST(TopText, FitsTheTerminalAndEscapesControlCharacters)
{
	json fabric = two_hosts();
	fabric["links"][0]["name"] = "\x1b[2Jevil";
	const auto now = sample(1, ports_of_two_hosts(0, 0), json::array());
	for (std::size_t height = 1; height < 12; ++height) {
		const auto text = top_text(fabric, now, now, {40, height, TopOrder::name, "dir"});
		EXPECT_LE(static_cast<std::size_t>(std::ranges::count(text, '\n')) + 1, height);
		EXPECT_EQ(text.find('\x1b'), std::string::npos);
		for (std::size_t at = 0; at < text.size();) {
			const auto end = std::min(text.find('\n', at), text.size());
			EXPECT_LE(end - at, 40u);
			at = end + 1;
		}
	}
	EXPECT_NE(top_text(fabric, now, now, {80, 7, TopOrder::name, ""})
			  .find("... and 2 more links"),
		  std::string::npos);
	EXPECT_EQ(top_order_of('x'), std::nullopt);
}

TEST(FabricSvg, ParallelLinksDoNotOverlap)
{
	json fabric = two_hosts();
	fabric["links"].push_back(link("a/2", "s1/4"));
	fabric["links"].push_back(link("s1/5", "a/3")); // the same two nodes, the other way round
	fabric["links"].push_back(link("a/4", "b/4"));
	const std::string svg = fabric_svg(fabric);
	elements(svg);
	std::map<std::string, int> paths;
	static const std::regex kPath("<path d=\"([^\"]*)\"");
	for (std::sregex_iterator found(svg.begin(), svg.end(), kPath), none; found != none;
	     ++found)
		++paths[(*found)[1]];
	EXPECT_EQ(paths.size(), 6u);
	EXPECT_THAT(svg, HasSubstr("Q")) << "hosts side by side: a bow";
}

// A link with an injected fault has a separate line style, and its faults are shown, even where
// other links have no label.
TEST(FabricSvg, MarksLinksWithInjectedFaults)
{
	json fabric = two_hosts();
	EXPECT_THAT(fabric_svg(fabric), Not(HasSubstr("class=\"faulty\"")));
	fabric["links"][0]["settings"]["loss"] = "0.05";
	std::string svg = fabric_svg(fabric);
	elements(svg);
	EXPECT_THAT(svg, HasSubstr("<title>a/1-s1/1 loss=0.05</title>"));
	EXPECT_THAT(svg, HasSubstr(">4x QDR loss=0.05<"));
	EXPECT_THAT(svg, HasSubstr("class=\"faulty\""));
	EXPECT_THAT(svg, HasSubstr(".faulty{"));
	fabric = fat_tree(12, 6, 215);
	fabric["links"][7]["settings"]["corruption"] = "0.1<";
	svg = fabric_svg(fabric);
	elements(svg);
	EXPECT_THAT(svg, HasSubstr(">4x QDR corruption=0.1&lt;</text>"));
}

TEST(FabricSvg, EscapesMarkupInNames)
{
	json fabric = two_hosts();
	const std::string name = "<b>\"x\"&amp;\x01\n</svg>";
	fabric["hosts"][0]["name"] = name;
	fabric["switches"][0]["name"] = "s&t";
	fabric["links"][0] = link(name + "/1", "s&t/1");
	fabric["links"][0]["settings"]["speed"] = "<fast>";
	const std::string svg = fabric_svg(fabric);
	auto count = elements(svg);
	EXPECT_EQ(count["svg"], 1);
	EXPECT_EQ(count["b"], 0);
	EXPECT_EQ(count["rect"], 5);
	EXPECT_THAT(svg, HasSubstr("&lt;b&gt;&quot;x&quot;&amp;amp;??&lt;/svg&gt;"));
	EXPECT_THAT(svg, HasSubstr(">s&amp;t<"));
}

TEST(FabricSvg, EmptyFabricIsRendered)
{
	const json nothing = {{"seed", "0x1"},
			      {"switches", json::array()},
			      {"hosts", json::array()},
			      {"links", json::array()},
			      {"subnet_manager", nullptr}};
	EXPECT_EQ(elements(fabric_svg(nothing))["rect"], 1);
	EXPECT_EQ(fabric_text(nothing), "seed 0x1\n");
}

TEST(Render, JsonWithMissingMembersOrWrongTypesThrowsAnException)
{
	EXPECT_THROW(fabric_svg(json::object()), json::exception);
	EXPECT_THROW(fabric_text({{"seed", 5}}), json::exception);
	EXPECT_THROW(counters_text({{"a", {{"n", "text"}}}}, true), json::exception);
}

} // namespace
} // namespace weft::cli
