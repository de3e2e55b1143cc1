// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the parsing of lab files, and the errors that are reported.
#include "weftd/lab.hpp"

#include <algorithm>
#include <fstream>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/loop.hpp"
#include "net/fabric/fabric.hpp"
#include "bus/pci/device.hpp"
#include "weftd/default_guids.hpp"

namespace weft::weftd
{
namespace
{

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Returns the error of a lab file, or nothing.
std::string complaint(const std::string &text)
{
	try {
		parse_lab(text, "lab.toml");
		return {};
	} catch (const LabError &error) {
		return error.what();
	}
}

constexpr const char *kTwoNodes = R"([[switch]]
name = "s"
ports = 4
[[host]]
name = "a"
[[host]]
name = "b"
ports = 2
)";

// A host's settings for its guest are passed on. Paths are relative to the file, and the name of a
// kernel is not a path.
TEST(Lab, BootSettingsOfGuestsAreParsed)
{
	const auto file = std::filesystem::path(::testing::TempDir()) / "boot.toml";
	std::ofstream(file)
		<< kTwoNodes
		<< "boot = { kernel = \"../linux\", modules = \"/lib\", initrd = \"a.cpio\", "
		   "share = \"./out\", append = \"quiet\", memory = \"2G\", cpus = 4 }\n"
		<< "[[host]]\nname = \"third\"\nboot = { kernel = \"stock\", stack = \"weft\" }\n";
	const Lab lab = load_lab(file);
	const auto folder = file.parent_path();
	const LabBoot &boot = lab.hosts[1].boot;
	EXPECT_EQ(boot.kernel, (folder.parent_path() / "linux").string());
	EXPECT_EQ(boot.modules, "/lib");
	EXPECT_EQ(boot.initrd, (folder / "a.cpio").string());
	EXPECT_EQ(boot.share, (folder / "out").string());
	EXPECT_EQ(boot.append, "quiet");
	EXPECT_EQ(boot.memory, "2G");
	EXPECT_EQ(boot.cpus, 4u);
	EXPECT_EQ(lab.hosts[2].boot.kernel, "stock");
	EXPECT_EQ(lab.hosts[2].boot.stack, "weft");
	EXPECT_FALSE(lab.hosts[0].boot.kernel);

	EXPECT_THAT(complaint(std::string(kTwoNodes) + "boot = { cpus = 0 }\n"),
		    HasSubstr("cpus must be 1 to 64"));
	EXPECT_THAT(complaint(std::string(kTwoNodes) + "boot = { stack = \"x\" }\n"),
		    HasSubstr("stack must be \"linux\" or \"weft\""));
	EXPECT_THAT(complaint(std::string(kTwoNodes) + "boot = { kernal = \"x\" }\n"),
		    HasSubstr("there is no 'kernal' here"));
}

// The subnet manager identifies an untrusted host by the GUIDs of all its ports.
TEST(Lab, PortGuidsOfUntrustedHostsArePassedToTheSubnetManager)
{
	const std::string text =
		std::string(kTwoNodes) + "guid = \"0x10\"\ntrusted = false\n[sm]\nm_key = 7\n";
	const Lab lab = parse_lab(text, "lab.toml");
	EXPECT_TRUE(lab.hosts[0].trusted);
	EXPECT_FALSE(lab.hosts[1].trusted);
	EXPECT_THAT(lab.sm.untrusted, ElementsAre(0x11u, 0x12u));
	EXPECT_EQ(lab.sm.mkey, 7u);
	EXPECT_THAT(parse_lab(kTwoNodes, "lab.toml").sm.untrusted, IsEmpty());
}

// The card is for QEMU unless the host selects another bus.
TEST(Lab, HostCanSelectVfioUserOrVhostUserForItsCard)
{
	const Lab lab = parse_lab(std::string(kTwoNodes) + "bus = \"vhost-user\"\n", "lab.toml");
	EXPECT_EQ(lab.hosts[0].bus, LabBus::vfio_user);
	EXPECT_EQ(lab.hosts[1].bus, LabBus::vhost_user);
	EXPECT_EQ(parse_lab(std::string(kTwoNodes) + "bus = \"vfio-user\"\n", "lab.toml")
			  .hosts[1]
			  .bus,
		  LabBus::vfio_user);
}

// A program that starts User-Mode Linux guests does not have to write the bus into each host's
// section. A lab that replaces another one keeps this default.
TEST(Lab, VfioUserOrVhostUserCanBeTheDefaultForHostsWithoutABusSetting)
{
	const std::string text = std::string(kTwoNodes) + "bus = \"vfio-user\"\n";
	const Lab lab = parse_lab(text, "lab.toml", "", nullptr, {.bus = LabBus::vhost_user});
	EXPECT_EQ(lab.hosts[0].bus, LabBus::vhost_user);
	EXPECT_EQ(lab.hosts[1].bus, LabBus::vfio_user);
	EXPECT_EQ(parse_lab(text, "lab.toml", "", &lab).hosts[0].bus, LabBus::vhost_user);
}

// A host has a card of its model, which is created with the settings of that model.
TEST(Lab, HostCanSelectTheModelOfItsCard)
{
	const auto registers = [](const std::string &host) {
		const Lab lab = parse_lab(
			"[[host]]\nname = \"h\"\n" + host + "[sm]\nenabled = false\n", "lab.toml");
		const LabHost &config = lab.hosts.at(0);
		fabric::Fabric fabric(1);
		std::vector<fabric::Port *> ports;
		for (unsigned port = 0; port < config.ports; ++port)
			ports.push_back(&fabric.add_port("h"));
		Loop loop("h");
		const auto card = config.model->make(
			{config.name, config.guid, ports, nullptr, config.trusted, config.flags},
			&loop);
		const PciDescription &description = card->function()->description();
		return std::pair(description.vendor, description.bars[0].size);
	};
	const std::pair<std::uint16_t, std::uint64_t> whole{0x15b3, 1 << 20}, small{0x15b3, 4096};
	EXPECT_EQ(registers(""), whole);
	EXPECT_EQ(registers("model = \"mlx4\"\n"), whole);
	EXPECT_EQ(registers("small_bars = false\n"), whole);
	EXPECT_EQ(registers("small_bars = true\n"), small);
	EXPECT_EQ(registers("model = \"example\"\n").first, 0x5745);
}

TEST(Lab, RateOfTheDefaultPartitionCanBeConfigured)
{
	const auto rate = [](const std::string &value) {
		return parse_lab(std::string(kTwoNodes) + "[sm]\nrate = " + value, "lab.toml")
			.sm.partitions.at(0)
			.rate;
	};
	EXPECT_EQ(rate("2.5"), ib::Rate::gbps_2_5);
	EXPECT_EQ(rate("40"), ib::Rate::gbps_40);
	EXPECT_FALSE(parse_lab(kTwoNodes, "lab.toml").sm.partitions.at(0).rate) << "derived";
	for (const char *wrong : {"3", "\"fast\"", "0", "-10"})
		EXPECT_THAT(complaint(std::string(kTwoNodes) + "[sm]\nrate = " + wrong),
			    HasSubstr("in Gb/s"))
			<< wrong;
	EXPECT_THAT(complaint(std::string(kTwoNodes) +
			      "[sm]\nrate = 10\n[[sm.partition]]\nname = \"p\""),
		    HasSubstr("rate is that of the default partition"));
}

// The default lab is one switch, two hosts with the sockets that the manual names, and a manager.
TEST(Lab, DefaultLabIsTwoHostsOnASwitch)
{
	const Lab lab = default_lab();
	ASSERT_EQ(lab.switches.size(), 1u);
	ASSERT_EQ(lab.hosts.size(), 2u);
	EXPECT_EQ(lab.hosts[0].socket, "node1.sock");
	EXPECT_EQ(lab.hosts[1].socket, "node2.sock");
	EXPECT_TRUE(lab.sm_enabled);
	EXPECT_EQ(lab.links.size(), 3u) << "two hosts and the subnet manager";
}

// Returns all GUIDs of @lab: those of nodes, of ports and of the subnet manager.
std::vector<ib::Guid> guids(const Lab &lab)
{
	std::vector<ib::Guid> all{lab.sm.guid, lab.sm.guid + 1};
	for (const auto &config : lab.switches)
		all.push_back(config.guid);
	for (const auto &host : lab.hosts)
		for (unsigned port = 0; port <= host.ports; ++port)
			all.push_back(host.guid + port);
	return all;
}

// GUIDs that are not in the file look like a vendor's. Communication managers assign service IDs
// with 0x02 in the top byte themselves, and an SRP target listens on its GUID.
TEST(Lab, DefaultGuidsHaveAVendorPrefix)
{
	const auto all = guids(parse_lab(kTwoNodes, "lab.toml", "here"));
	EXPECT_EQ(all.size(), 8u);
	EXPECT_EQ(std::set<ib::Guid>(all.begin(), all.end()).size(), all.size());
	for (const ib::Guid guid : all)
		EXPECT_EQ(guid >> 32, 0x0002c903u) << std::hex << guid;
}

// GUIDs depend on the name of the lab: they are the same at each start, and different in another
// lab. A name in the file takes precedence over the one passed to weftd.
TEST(Lab, DefaultGuidsDependOnTheLabName)
{
	const auto here = guids(parse_lab(kTwoNodes, "lab.toml", "here"));
	const auto there = guids(parse_lab(kTwoNodes, "lab.toml", "there"));
	EXPECT_EQ(here, guids(parse_lab(kTwoNodes, "other.toml", "here")));
	for (const ib::Guid guid : here)
		EXPECT_EQ(std::ranges::count(there, guid), 0) << std::hex << guid;
	const std::string named = std::string("name = \"mine\"\n") + kTwoNodes;
	EXPECT_EQ(guids(parse_lab(named, "lab.toml", "here")),
		  guids(parse_lab(named, "lab.toml", "there")));
	EXPECT_NE(guids(parse_lab(named, "lab.toml", "here")), here);
}

// A lab can have as many nodes as there are default GUIDs, and no more.
TEST(Lab, DefaultGuidsAreUniqueAndLimitedInNumber)
{
	const DefaultGuids ids("here");
	std::set<ib::Guid> all;
	for (std::size_t i = 0; i < DefaultGuids::kHosts; ++i)
		for (const unsigned port : {0u, 1u, 2u})
			all.insert(ids.host(i) + port);
	EXPECT_EQ(all.size(), 3 * DefaultGuids::kHosts);
	EXPECT_EQ(*all.begin() >> 32, 0x0002c903u);
	EXPECT_EQ(*all.rbegin() >> 32, 0x0002c904u);
	for (const ib::Guid own : {ids.subnet_manager(), ids.switch_node(0),
				   ids.switch_node(DefaultGuids::kSwitches - 1)})
		EXPECT_FALSE(all.contains(own));
	EXPECT_EQ(ids.switch_node(DefaultGuids::kSwitches - 1) - ids.switch_node(0),
		  DefaultGuids::kSwitches - 1);
	EXPECT_EQ(ids.host(DefaultGuids::kHosts), 0u);
	EXPECT_EQ(ids.switch_node(DefaultGuids::kSwitches), 0u);

	std::string most;
	for (std::size_t i = 0; i < DefaultGuids::kHosts; ++i)
		most += fmt::format("[[host]]\nname = \"h{}\"\n", i);
	const std::string quiet = "[sm]\nenabled = false\n";
	EXPECT_EQ(complaint(most + quiet), "");
	EXPECT_THAT(complaint(most + "[[host]]\nname = \"one\"\n" + quiet),
		    HasSubstr("give it a guid"));
}

// A GUID that would make a communication manager refuse to listen causes a warning.
TEST(Lab, WarnsOfGuidsThatBeginWith0x02BecauseTheCmCannotListenOnThem)
{
	const auto warnings = [](const char *guid) {
		return parse_lab(std::string(kTwoNodes) + "guid = \"" + guid + "\"\n", "lab.toml")
			.warnings;
	};
	EXPECT_THAT(warnings("0x0102c90300001000"), IsEmpty());
	EXPECT_THAT(warnings("0x0302c90300001000"), IsEmpty());
	EXPECT_THAT(warnings("0x0202c90300001000"),
		    ElementsAre(AllOf(StartsWith("lab.toml:9: "), HasSubstr("0x02"))));
}

TEST(Lab, WarnsIfPartitionsAreConfiguredButTheSubnetManagerIsDisabled)
{
	const auto warnings = [](const char *enabled) {
		return parse_lab(std::string(kTwoNodes) + "[sm]\nenabled = " + enabled +
					 "\n[[sm.partition]]\nname = \"p\"\npkey = 0x8001\n",
				 "lab.toml")
			.warnings;
	};
	EXPECT_THAT(warnings("true"), IsEmpty());
	EXPECT_THAT(warnings("false"), ElementsAre(AllOf(StartsWith("lab.toml:11: "),
							 HasSubstr("no subnet manager"))));
}

// A lab file creates no file outside the socket directory, and cannot use a name that weftd itself
// uses there.
TEST(Lab, SocketMustBeAFileNameInTheSocketDirectory)
{
	for (const std::string name :
	     {"", ".", "..", "/run/b.sock", "../b.sock", "b/c.sock", "attach.sock", "control.sock",
	      "lab.sock", "time.sock", "weftd.lock", "lids"})
		EXPECT_THAT(
			[&] {
				parse_lab(std::string(kTwoNodes) + "socket = \"" + name + "\"\n",
					  "lab.toml");
			},
			ThrowsMessage<std::runtime_error>(HasSubstr("socket must be a file name")))
			<< name;
}

// Every setting in the file is parsed correctly.
TEST(Lab, EachSettingOfALabFileIsParsed)
{
	const Lab lab = parse_lab(std::string("seed = \"0x1234\"\n") + kTwoNodes + R"(
guid = "0x0002c90300001000"
socket = "other.sock"
[[link]]
ends = ["a", "s/3"]
width = "1x"
speed = "edr"
mtu = 2048
state = "down"
delay = "20us"
jitter = "1.5ms"
loss = 0.25
duplication = "2%"
[[link]]
ends = ["b/2", "s"]
[sm]
priority = 3
lmc = 1
vls = 8
switch = "s"
sm_key = "0xffffffffffffffff"
sa_key = "0x12"
[[sm.partition]]
name = "storage"
pkey = 0x12
others = "none"
mtu = 4096
sl = 3
[sm.partition.members]
b = "full"
)",
				  "lab.toml");
	EXPECT_EQ(lab.seed, 0x1234u);
	EXPECT_EQ(lab.hosts[1].guid, 0x0002c90300001000u);
	EXPECT_EQ(lab.hosts[1].socket, "other.sock");
	const auto &link = lab.links.at(0);
	EXPECT_EQ(link.ends[0].port, 1u);
	EXPECT_EQ(link.ends[1].port, 3u);
	EXPECT_EQ(link.config.rate.width, ib::width_1x);
	EXPECT_EQ(link.config.rate.speed_ext, ib::speed_edr);
	EXPECT_EQ(link.config.mtu, ib::Mtu::mtu_2048);
	EXPECT_FALSE(link.config.up);
	EXPECT_EQ(link.config.faults.delay, std::chrono::microseconds(20));
	EXPECT_EQ(link.config.faults.jitter, std::chrono::microseconds(1500));
	EXPECT_DOUBLE_EQ(link.config.faults.loss, 0.25);
	EXPECT_DOUBLE_EQ(link.config.faults.duplication, 0.02);
	EXPECT_EQ(lab.links.at(1).ends[0].port, 2u);
	EXPECT_EQ(lab.links.at(1).ends[1].port, 1u);
	EXPECT_EQ(lab.sm.priority, 3u);
	EXPECT_EQ(lab.sm.lmc, 1u);
	EXPECT_EQ(lab.sm.vls, 4u) << "the encoding of eight";
	EXPECT_EQ(lab.sm.sm_key, ~std::uint64_t{0});
	EXPECT_EQ(lab.sm.sa_key, 0x12u);
	ASSERT_EQ(lab.sm.partitions.size(), 1u);
	const auto &partition = lab.sm.partitions[0];
	EXPECT_EQ(partition.pkey, 0x8012);
	EXPECT_EQ(partition.others, sm::Partition::Membership::none);
	EXPECT_EQ(partition.mtu, ib::Mtu::mtu_4096);
	EXPECT_EQ(partition.sl, 3);
	EXPECT_EQ(partition.members.size(), 2u) << "both ports of b";
}

// An end without a number never takes a port that another link names, whatever their order.
TEST(Lab, LinkEndsWithoutAPortNumberDoNotGetPortsThatAnotherLinkSpecifies)
{
	const Lab lab = parse_lab(std::string(kTwoNodes) + R"([[link]]
ends = ["a", "s"]
[[link]]
ends = ["b", "s/1"]
)",
				  "lab.toml");
	EXPECT_EQ(lab.links[0].ends[1].port, 2u);
	EXPECT_EQ(lab.links[1].ends[1].port, 1u);
	EXPECT_EQ(lab.links[2].ends[1].port, 3u) << "the subnet manager";
}

// Each error contains the file, the line and the cause.
TEST(Lab, ErrorsInALabFileReportTheLineAndReason)
{
	const struct {
		const char *text;
		const char *where;
		const char *reason;
	} cases[] = {
		{"[[switch]\nname = 1", "lab.toml:1: ", "expected ']'"},
		{"[[switch]]\nname = \"s\"\nprots = 4", "lab.toml:3: ", "'prots'"},
		{"\nsede = 1", "lab.toml:2: ", "'sede'"},
		{"[[switch]]\nports = 4", "lab.toml:1: ", "needs a name"},
		{"[[switch]]\nname = \"s\"\nports = 255", "lab.toml:3: ", "1 to 254"},
		{"[[switch]]\nname = \"s\"\nports = \"4\"", "lab.toml:3: ", "an integer"},
		{"[[switch]]\nname = \"s\"\nmtu = 1500", "lab.toml:3: ", "1500"},
		{"[[switch]]\nname = \"a/b\"", "lab.toml:2: ", "letters"},
		{"[[switch]]\nname = \"\"", "lab.toml:2: ", "letters"},
		{"[[host]]\nname = \"h\"\nports = 3", "lab.toml:3: ", "1 to 2"},
		{"[[host]]\nname = \"h\"\nguid = \"xyz\"", "lab.toml:3: ", "guid"},
		{"[[host]]\nname = \"h\"\nguid = 0", "lab.toml:3: ", "guid"},
		{"[[host]]\nname = \"h\"\nsocket = \"\"", "lab.toml:1: ", "socket"},
		{"switch = 5", "lab.toml:1: ", "[[switch]]"},
		{"[[link]]\nends = [\"a\"]", "lab.toml:1: ", "ends"},
		{"[[link]]\nends = [1, 2]", "lab.toml:2: ", "string"},
		{"[[link]]\nends = [\"a/x\", \"b\"]", "lab.toml:2: ", "number"},
		{"[[link]]\nends = [\"a/0\", \"b\"]", "lab.toml:2: ", "number"},
		{"[[link]]\nends = [\"a\", \"b\"]", "lab.toml:1: ", "no node 'a'"},
		{"[[link]]\nends = [\"a\", \"b\"]\nloss = 2", "lab.toml:3: ", "probability"},
		{"[[link]]\nends = [\"a\", \"b\"]\ndelay = 5", "lab.toml:3: ", "duration"},
		{"[[link]]\nends = [\"a\", \"b\"]\nspeed = \"HDR\"", "lab.toml:3: ", "SDR"},
		{"[[link]]\nends = [\"a\", \"b\"]\nlost = 0.1", "lab.toml:3: ", "'lost'"},
		{"[sm]\npriority = 16", "lab.toml:2: ", "0 to 15"},
		{"[sm]\nlmc = 8", "lab.toml:2: ", "0 to 7"},
		{"[sm]\nvls = 3", "lab.toml:2: ", "1, 2, 4 or 8"},
		{"[sm]\nvls = 16", "lab.toml:2: ", "1 to 8"},
		{"[sm]\nmtu = 1000", "lab.toml:2: ", "1000"},
		{"[sm]\nsm_key = \"0xg\"", "lab.toml:2: ", "number"},
		{"[sm]\ngid_prefix = -1", "lab.toml:2: ", "number"},
		{"[sm]\nmtu = 4096\n[[sm.partition]]\nname = \"p\"", "lab.toml:1: ", "its own"},
		{"[sm]\nlm = 1", "lab.toml:2: ", "'lm'"},
		{"sm = 1", "lab.toml:1: ", "a table"},
		{"[[sm.partition]]\npkey = 5", "lab.toml:1: ", "needs a name"},
		{"[[sm.partition]]\nname = \"p\"\npkey = 0", "lab.toml:3: ", "1 to 65535"},
		{"[[sm.partition]]\nname = \"p\"\npkey = 0x8000", "lab.toml:3: ", "not a P_Key"},
		{"[[sm.partition]]\nname = \"p\"\nsl = 16", "lab.toml:3: ", "0 to 15"},
		{"[[sm.partition]]\nname = \"p\"\nipoib = \"no\"", "lab.toml:3: ", "true or false"},
		{"[[sm.partition]]\nname = \"p\"\nmembers = 3", "lab.toml:3: ", "members"},
		{"seed = \"many\"", "lab.toml:1: ", "seed"},
		{"[[switch]]\nname = \"012345678901234567890123456789012\"",
		 "lab.toml:2: ", "1 to 32"},
		{"[[link]]\nends = [\"a\", \"b\"]\nmtu = 100", "lab.toml:3: ", "100"},
		{"[[link]]\nends = [\"a\", \"b\"]\nwidth = \"2x\"", "lab.toml:3: ", "1x"},
		{"[[link]]\nends = [\"a\", \"b\"]\nstate = \"off\"", "lab.toml:3: ", "up"},
		{"[[link]]\nends = [\"a\", \"b\"]\njitter = \"5 years\"",
		 "lab.toml:3: ", "duration"},
		{"[sm]\nswitch = \"x\"", "lab.toml:2: ", "no switch 'x'"},
		{"[sm]\nenabled = 1", "lab.toml:2: ", "true or false"},
		{"[[sm.partition]]\nname = \"p\"\nothers = \"all\"", "lab.toml:3: ", "limited"},
		{"[[sm.partition]]\nname = \"p\"\n[sm.partition.members]\nx = \"full\"",
		 "lab.toml:4: ", "no host 'x'"},
		{"[[host]]\nname = \"h\"\n[[sm.partition]]\nname = \"p\"\n"
		 "[sm.partition.members]\nh = \"owner\"",
		 "lab.toml:6: ", "limited"},
		{"[[sm.partition]]\nname = \"p\"\n[[sm.partition]]\nname = \"p\"\npkey = 5",
		 "lab.toml:3: ", "'p' is given twice"},
		{"[[sm.partition]]\nname = \"p\"\npkey = 5\n"
		 "[[sm.partition]]\nname = \"q\"\npkey = 0x8005",
		 "lab.toml:4: ", "'p' has the P_Key 0x8005 already"},
		{"[[sm.partition]]\nname = \"p\"\npkye = 5", "lab.toml:3: ", "'pkye'"},
		{"[[sm.partition]]\nname = \"p\"\nmtu = 1", "lab.toml:3: ", "256 to 4096"},
		{"[[host]]\nname = \"h\"\nnic = 1", "lab.toml:3: ", "'nic'"},
		{"[[host]]\nname = \"h\"\nmodel = \"x\"",
		 "lab.toml:3: ", "there is amso1100, endpoint, example, mlx4, mlx5, mthca"},
		{"[[host]]\nname = \"h\"\nmodel = \"example\"\nports = 1",
		 "lab.toml:4: ", "ports must be 0 to 0"},
		{"[[host]]\nname = \"h\"\nmodel = \"example\"\nsmall_bars = true",
		 "lab.toml:4: ", "'small_bars'"},
		{"[[host]]\nname = \"h\"\nenhanced_ipoib = true",
		 "lab.toml:3: ", "'enhanced_ipoib'"},
		{"[[host]]\nname = \"h\"\nports = true", "lab.toml:3: ", "an integer"},
		{"[[host]]\nname = \"h\"\nsmall_bars = 1", "lab.toml:3: ", "true or false"},
		{"[[host]]\nname = \"h\"\nsocket = 7", "lab.toml:3: ", "a string"},
		{"[[host]]\nname = \"h\"\nbus = \"pci\"", "lab.toml:3: ", "vhost-user"},
		{"[[host]]\nname = \"h\"\nbus = 1", "lab.toml:3: ", "a string"},
		{"[[host]]\nname = \"h\"\ndoorbells = \"polled\"", "lab.toml:3: ", "'doorbells'"},
		{"[[switch]]\nname = \"s\"\nguid = -1", "lab.toml:3: ", "guid"},
		{"[[switch]]\nname = 5", "lab.toml:2: ", "a string"},
		{"[[host]]\nname = \"h\"\nname = \"g\"", "lab.toml:3: ", "name"},
		{"host = [1]", "lab.toml:1: ", "[[host]]"},
		{"[[link]]\nends = [\"a\", \"b\"]\nloss = [1]", "lab.toml:3: ", "loss"},
		{"[[link]]\nends = [\"a\", \"b\"]\ntraining = \"2h\"", "lab.toml:3: ", "duration"},
		{"[[link]]\nends = [\"a\", \"b\"]\nreordering = \"101%\"",
		 "lab.toml:3: ", "probability"},
		{"[[link]]\nends = [\"a\", \"b\"]\ncorruption = -0.1",
		 "lab.toml:3: ", "probability"},
		{"[[link]]\nends = [\"a\", \"b\"]\nsilent_corruption = \"x\"",
		 "lab.toml:3: ", "number"},
	};
	for (const auto &each : cases) {
		EXPECT_THAT(complaint(each.text), StartsWith(each.where)) << each.text;
		EXPECT_THAT(complaint(each.text), HasSubstr(each.reason)) << each.text;
	}
}

// Nodes, ports, GUIDs and sockets that collide are refused.
TEST(Lab, DuplicateNamesGuidsAndSocketsAreRefused)
{
	const std::string nodes = kTwoNodes;
	EXPECT_EQ(complaint(nodes + "[[host]]\nname = \"s\""),
		  "lab.toml:9: the name 's' is given twice");
	EXPECT_EQ(complaint(nodes + "[[switch]]\nname = \"s\""),
		  "lab.toml:9: the name 's' is given twice");
	EXPECT_THAT(complaint(nodes + "[[host]]\nname = \"sm\""), HasSubstr("'sm' is given twice"));
	EXPECT_EQ(complaint(nodes + "[[host]]\nname = \"sm\"\n[sm]\nenabled = false"), "");
	EXPECT_THAT(complaint(nodes + "[[host]]\nname = \"c\"\nsocket = \"a.sock\""),
		    HasSubstr("'a.sock' is given twice"));
	const auto taken = fmt::format("{:#018x}", parse_lab(nodes, "lab.toml").hosts[0].guid + 1);
	EXPECT_THAT(complaint(nodes + "[[host]]\nname = \"c\"\nguid = \"" + taken + "\""),
		    HasSubstr("GUID " + taken + " is given twice"));
	EXPECT_EQ(complaint(nodes + "[[switch]]\nname = \"t\"\nguid = 5\n"
				    "[[switch]]\nname = \"u\"\nguid = 5"),
		  "lab.toml:12: the GUID 0x0000000000000005 is given twice");
	const std::string link = "[[link]]\nends = [\"a\", \"s/1\"]\n";
	EXPECT_THAT(complaint(nodes + link + "[[link]]\nends = [\"a\", \"s/2\"]"),
		    HasSubstr("lab.toml:11: no port of 'a' is free"));
	EXPECT_THAT(complaint(nodes + link + "[[link]]\nends = [\"b\", \"s/1\"]"),
		    HasSubstr("lab.toml:11: port s/1 has a link already"));
	EXPECT_THAT(complaint(nodes + link + "[[link]]\nends = [\"a\", \"b\"]"),
		    HasSubstr("no port of 'a' is free"));
	EXPECT_THAT(complaint(nodes + "[[link]]\nends = [\"a\", \"s/5\"]"),
		    HasSubstr("'s' has 4 ports"));
}

// A subnet manager needs a free port. Without one there is an error, unless the lab has no subnet
// manager.
TEST(Lab, SubnetManagerRequiresAFreePort)
{
	const std::string back_to_back = "[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n"
					 "[[link]]\nends = [\"a\", \"b\"]\n";
	EXPECT_THAT(complaint(back_to_back),
		    AllOf(StartsWith("lab.toml:1: "), HasSubstr("sm.enabled = false")));
	EXPECT_EQ(complaint(back_to_back + "[sm]\nenabled = false"), "");
	EXPECT_THAT(complaint("[[switch]]\nname = \"s\"\nports = 1\n[[host]]\nname = \"a\"\n"
			      "[[link]]\nends = [\"a\", \"s\"]\n[sm]\nswitch = \"s\""),
		    AllOf(StartsWith("lab.toml:8: "), HasSubstr("no free port")));
}

// A missing file is reported by name.
TEST(Lab, MissingLabFileIsRefused)
{
	EXPECT_THROW(load_lab("/nonexistent/lab.toml"), LabError);
}

constexpr const char *kTrunk = R"([[trunk]]
name = "west"
end = "s/4"
listen = "127.0.0.1:7470"
key-file = "key"
)";

// The option exists only for models that can poll. Pages of a card can be mapped only over
// vfio-user.
TEST(Lab, PolledDoorbellsRequireMlx5AndVfioUser)
{
	const auto text = [](const std::string &settings, const std::string &model = "mlx5") {
		return kTwoNodes + ("[[host]]\nname = \"c\"\nmodel = \"" + model + "\"\n") +
		       settings;
	};
	const auto polled = [&](const std::string &settings, const LabDefaults &defaults = {}) {
		return parse_lab(text(settings), "lab.toml", "lab", nullptr, defaults)
			.hosts.back()
			.polled_doorbells;
	};
	const LabDefaults polls{.polled_doorbells = true};
	const std::string vhost = "bus = \"vhost-user\"\n";
	EXPECT_FALSE(polled(""));
	EXPECT_FALSE(polled("doorbells = \"trapped\""));
	EXPECT_TRUE(polled("doorbells = \"polled\""));
	EXPECT_TRUE(polled("", polls));
	EXPECT_FALSE(polled("doorbells = \"trapped\"", polls));
	EXPECT_FALSE(polled(vhost, polls)) << "the default does not apply to this bus";
	EXPECT_FALSE(polled(vhost + "doorbells = \"trapped\""));
	EXPECT_FALSE(
		parse_lab(kTwoNodes, "lab.toml", "lab", nullptr, polls).hosts[0].polled_doorbells)
		<< "the default does not apply to other models";

	EXPECT_EQ(complaint(text("doorbells = \"mapped\"")),
		  "lab.toml:12: doorbells must be \"trapped\" or \"polled\"");
	EXPECT_THAT(complaint(text("doorbells = true")),
		    AllOf(StartsWith("lab.toml:12: "), HasSubstr("a string")));
	EXPECT_EQ(complaint(text(vhost + "doorbells = \"polled\"")),
		  "lab.toml:13: doorbells can be \"polled\" only with the bus \"vfio-user\"");
	for (const char *model : {"mlx4", "mthca", "amso1100"})
		EXPECT_THAT(complaint(text("doorbells = \"polled\"", model)),
			    AllOf(StartsWith("lab.toml:12: "), HasSubstr("'doorbells'")))
			<< model;
}

// A trunk is the far end of an ordinary link.
TEST(Lab, TrunkSettingsAreParsed)
{
	const auto file = std::filesystem::path(::testing::TempDir()) / "trunk.toml";
	std::ofstream(file) << kTwoNodes << kTrunk << "delay = \"2ms\"\n"
			    << "[[trunk]]\nname = \"east\"\nend = \"s\"\nconnect = \"[::1]:1\"\n"
			    << "key-file = \"/etc/key\"\n";
	const Lab lab = load_lab(file);
	ASSERT_EQ(lab.trunks.size(), 2u);
	EXPECT_EQ(lab.trunks[0].role, trunk::Role::listens);
	EXPECT_EQ(lab.trunks[0].address.text(), "127.0.0.1:7470");
	EXPECT_EQ(lab.trunks[0].key_file, (file.parent_path() / "key").string());
	EXPECT_EQ(lab.trunks[1].role, trunk::Role::connects);
	EXPECT_EQ(lab.trunks[1].address.text(), "[::1]:1");
	EXPECT_EQ(lab.trunks[1].key_file, "/etc/key");
	EXPECT_EQ(lab.links.at(0).name(), "s/4-west/1");
	EXPECT_EQ(lab.links.at(0).config.faults.delay, std::chrono::milliseconds(2));
	EXPECT_EQ(lab.links.at(1).name(), "s/1-east/1");
}

TEST(Lab, ErrorsInTrunkSettingsOfALabFileReportTheLineAndReason)
{
	const std::string good = std::string(kTwoNodes) + kTrunk;
	EXPECT_EQ(complaint(good), "");
	const auto with = [&](std::string from, const std::string &to) {
		std::string text = good;
		text.replace(text.find(from), from.size(), to);
		return complaint(text);
	};
	const std::string listen = "listen = \"127.0.0.1:7470\"\n";
	EXPECT_THAT(with(listen, ""),
		    AllOf(StartsWith("lab.toml:9: "), HasSubstr("either listen")));
	EXPECT_THAT(with(listen, listen + "connect = \"127.0.0.1:1\"\n"),
		    HasSubstr("either listen"));
	for (const char *wrong : {"", "127.0.0.1", "127.0.0.1:", ":7470", "host:7470", "::1:7470",
				  "127.0.0.1:65536", "127.0.0.1:-1", "[127.0.0.1]:1", "[::1]"})
		EXPECT_THAT(with("127.0.0.1:7470", wrong),
			    AllOf(StartsWith("lab.toml:12: "), HasSubstr("is not an IP address")))
			<< wrong;
	EXPECT_EQ(with("127.0.0.1:7470", "127.0.0.1:0"), "") << "any port";
	EXPECT_THAT(with(listen, "connect = \"127.0.0.1:0\"\n"),
		    AllOf(StartsWith("lab.toml:12: "), HasSubstr("port 0 is only for listen")));
	EXPECT_THAT(with("key-file = \"key\"\n", ""), HasSubstr("needs a key-file"));
	EXPECT_THAT(with("end = \"s/4\"\n", ""), HasSubstr("needs end"));
	EXPECT_THAT(with("s/4", "s/5"), HasSubstr("'s' has 4 ports"));
	EXPECT_THAT(with("s/4", "nowhere"), HasSubstr("there is no node 'nowhere'"));
	EXPECT_THAT(with("\"west\"", "\"a\""), HasSubstr("the name 'a' is given twice"));
	EXPECT_THAT(with("listen =", "lissten = 1\nlisten ="), HasSubstr("there is no 'lissten'"));
	EXPECT_THAT(with("s/4", "west/1"), HasSubstr("port west/1 has a link already"));
}

} // namespace
} // namespace weft::weftd
