// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests Ethernet segments in a lab: their tables in the lab file, their changes in a running lab,
// and the requests about them on the control socket.
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
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
using ::testing::IsEmpty;

constexpr const char *kPair = R"(
[sm]
enabled = false
[[ethernet]]
name = "lan"
[[host]]
name = "a"
ethernet = "lan"
[[host]]
name = "b"
ethernet = { network = "lan", delay = "2ms", loss = "1%" }
)";

std::string refusal_of(const std::string &text)
{
	try {
		parse_lab(text, "file");
	} catch (const LabError &error) {
		return error.what();
	}
	return {};
}

TEST(EthernetLabFile, HostAttachmentsToEthernetSegmentsAndTheirLinkSettingsAreParsed)
{
	const Lab lab = parse_lab(kPair, "file");
	ASSERT_EQ(lab.attachments.size(), 2u);
	EXPECT_EQ(lab.attachments[0].network, "lan");
	EXPECT_EQ(lab.attachments[0].name(), "a/eth0");
	EXPECT_FALSE(lab.attachments[0].link.faults.any());
	EXPECT_EQ(lab.attachments[1].link.faults.loss, 0.01);
	EXPECT_EQ(lab.attachments[1].link.faults.delay, std::chrono::milliseconds(2));
}

TEST(EthernetLabFile, ErrorMessagesContainTheLineNumber)
{
	const std::string lan = "[[ethernet]]\nname = \"lan\"\n";
	EXPECT_THAT(refusal_of("[[host]]\nname = \"a\"\nethernet = \"lan\"\n"),
		    HasSubstr("file:3: there is no [[ethernet]] 'lan'"));
	EXPECT_THAT(refusal_of(lan + lan), HasSubstr("file:3: the name 'lan' is given twice"));
	EXPECT_THAT(refusal_of(lan + "[[switch]]\nname = \"lan\"\n"),
		    HasSubstr("the name 'lan' is given twice"));
	EXPECT_THAT(refusal_of(lan + "ports = 3\n"), HasSubstr("there is no 'ports' here"));
	EXPECT_THAT(refusal_of(lan + "[[host]]\nname = \"a\"\nethernet = 3\n"),
		    HasSubstr("ethernet must be a string"));
	EXPECT_THAT(
		refusal_of(
			lan +
			"[[host]]\nname = \"a\"\nethernet = { network = \"lan\", width = \"4x\" }\n"),
		HasSubstr("there is no 'width' here"));
	EXPECT_THAT(
		refusal_of(lan +
			   "[[host]]\nname = \"a\"\nethernet = { network = \"lan\", loss = 2 }\n"),
		HasSubstr("loss: "));
	EXPECT_THAT(
		refusal_of(
			lan +
			"[[host]]\nname = \"a\"\nethernet = \"lan\"\n[[host]]\nname = \"b\"\nsocket = \"a-eth0.sock\"\n"),
		HasSubstr("the socket 'a-eth0.sock' is given twice"));
	std::string crowd = lan;
	for (unsigned i = 0; i < 254; ++i)
		crowd += "[[host]]\nname = \"h" + std::to_string(i) +
			 "\"\nmodel = \"example\"\nethernet = \"lan\"\n";
	EXPECT_EQ(refusal_of("[sm]\nenabled = false\n" + crowd), "");
	EXPECT_THAT(refusal_of(crowd + "[[host]]\nname = \"last\"\nethernet = \"lan\"\n"),
		    HasSubstr(":1021: Ethernet 'lan' has only 254 ports"));
}

class EthernetLab : public ::testing::Test
{
protected:
	EthernetLab()
	    : directory_(std::filesystem::temp_directory_path() /
			 ("weft-lan-" + std::to_string(::getpid())))
	{
		std::filesystem::remove_all(directory_);
		std::filesystem::create_directory(directory_);
		runtime_ =
			std::make_unique<LabRuntime>(parse_lab(kPair, "pair", "test"), directory_);
		session_ = std::make_unique<ControlSession>(*runtime_, [] {});
	}
	~EthernetLab() override
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
	json apply(const std::string &text)
	{
		const auto answer = ask({{"command", "lab.apply"},
					 {"source", "new"},
					 {"folder", "/labs"},
					 {"text", text}});
		return answer.is_object() ? answer["changes"] : answer;
	}
	static std::string edited(std::string text, const std::string &what,
				  const std::string &with)
	{
		return text.replace(text.find(what), what.size(), with);
	}

	std::filesystem::path directory_;
	std::unique_ptr<LabRuntime> runtime_;
	std::unique_ptr<ControlSession> session_;
};

TEST_F(EthernetLab, FabricShowCommandListsEthernetSegmentsAndTheirLinks)
{
	const auto shown = ask({{"command", "fabric.show"}});
	EXPECT_EQ(shown["ethernet"]["switches"][0]["name"], "lan");
	EXPECT_EQ(shown["ethernet"]["links"][1]["name"], "b/eth0-lan/2");
	EXPECT_EQ(shown["ethernet"]["links"][1]["settings"]["loss"], "0.01");
	EXPECT_FALSE(shown["ethernet"]["links"][1]["settings"].contains("mtu"));
	EXPECT_EQ(shown["hosts"][0]["ethernet"]["socket"], (directory_ / "a-eth0.sock").string());
	EXPECT_EQ(shown["hosts"][0]["ethernet"]["guest"], false);
	const FileDescriptor guest = connect_unix(directory_ / "a-eth0.sock");
	while (ask({{"command", "fabric.show"}})["hosts"][0]["ethernet"]["guest"] != true)
		std::this_thread::yield();
}

TEST_F(EthernetLab, LinkCanBeSpecifiedByNameOrPort)
{
	for (const char *name : {"a/eth0", "lan/1", "a/eth0-lan/1"}) {
		auto link = ask({{"command", "link.set"},
				 {"link", name},
				 {"settings", {{"delay", "1ms"}, {"state", "down"}}}});
		EXPECT_EQ(link["settings"]["delay"], "1ms");
		EXPECT_EQ(link["up"], false);
		link = ask({{"command", "link.up"}, {"link", name}});
		EXPECT_EQ(link["up"], true);
		EXPECT_EQ(ask({{"command",
				"fabric.show"}})["ethernet"]["links"][0]["settings"]["delay"],
			  "1ms");
		ask({{"command", "link.set"}, {"link", name}, {"settings", {{"delay", "0ms"}}}});
	}
	EXPECT_THAT(
		ask({{"command", "link.set"}, {"link", "a/eth0"}, {"settings", {{"width", "4x"}}}})
			.get<std::string>(),
		HasSubstr("an Ethernet link has no 'width'"));
}

TEST_F(EthernetLab, ControlCommandsForCountersAndFabricSamplesIncludeEthernetPorts)
{
	EXPECT_EQ(ask({{"command", "counters"}, {"port", "lan/2"}})["lan/2"]["xmit_frames"], 0);
	const auto ends = ask({{"command", "counters"}, {"port", "a/eth0-lan/1"}});
	EXPECT_EQ(ends.size(), 2u);
	EXPECT_TRUE(ends.contains("a/eth0") && ends.contains("lan/1"));
	const auto sample = ask({{"command", "fabric.sample"}})["ethernet"];
	EXPECT_EQ(sample["ports"].size(), 4u);
	EXPECT_EQ(sample["ports"]["a/eth0"].size(), sample["columns"].size());
	EXPECT_EQ(sample["links"]["a/eth0-lan/1"], true);
	EXPECT_THAT(sample["attached"], IsEmpty());
}

TEST_F(EthernetLab, CaptureOfASegmentRecordsAllItsLinks)
{
	const auto file = directory_ / "lan.pcapng";
	EXPECT_THAT(ask({{"command", "capture.start"}, {"link", "lan"}, {"file", file}})["links"],
		    ElementsAre("a/eth0-lan/1", "b/eth0-lan/2"));
	EXPECT_THAT(ask({{"command", "capture.start"}, {"link", "a/eth0"}, {"file", file}})
			    .get<std::string>(),
		    HasSubstr("captured already"));
	EXPECT_EQ(ask({{"command", "capture.progress"}})["packets"], 0);
	ask({{"command", "capture.stop"}});
	EXPECT_FALSE(ask({{"command", "fabric.show"}})["ethernet"]["links"][0].contains(
		"captured_packets"));
	EXPECT_GT(std::filesystem::file_size(file), 28u);
}

TEST_F(EthernetLab, AppliedLabFileChangesARunningEthernetSegment)
{
	EXPECT_THAT(apply(kPair), IsEmpty());
	EXPECT_THAT(apply(edited(kPair, "loss = \"1%\"", "loss = \"2%\"")),
		    ElementsAre("~ b/eth0: loss 0.01 -> 0.02"));
	const auto second = edited(kPair, "[[host]]", "[[ethernet]]\nname = \"more\"\n[[host]]");
	EXPECT_THAT(apply(edited(second, "ethernet = \"lan\"", "ethernet = \"more\"")),
		    ElementsAre("+ Ethernet more", "- a/eth0 on Ethernet lan",
				"+ a/eth0 on Ethernet more", "~ b/eth0: loss 0.02 -> 0.01"));
	EXPECT_EQ(ask({{"command", "fabric.show"}})["ethernet"]["links"][0]["name"],
		  "a/eth0-more/1");
	EXPECT_THAT(apply("[sm]\nenabled = false\n"),
		    ElementsAre("- host a", "- host b", "- Ethernet lan", "- Ethernet more",
				"- a/eth0 on Ethernet more", "- b/eth0 on Ethernet lan"));
	EXPECT_FALSE(std::filesystem::exists(directory_ / "a-eth0.sock"));
}

// The attachment is the card's own, not that of an additional network device: it has no socket, and
// is removed and added together with the card.
TEST_F(EthernetLab, HostWithAnIwarpCardHasNoSocketForAnAdditionalNetworkDevice)
{
	const auto with_card = edited(kPair, "name = \"a\"", "name = \"a\"\nmodel = \"amso1100\"");
	EXPECT_THAT(apply(with_card), ElementsAre(HasSubstr("host a"), "- a/eth0 on Ethernet lan",
						  "+ a/eth0 on Ethernet lan"));
	auto place = ask({{"command", "fabric.show"}})["hosts"][0]["ethernet"];
	EXPECT_FALSE(place.contains("socket"));
	EXPECT_EQ(place["guest"], true);
	EXPECT_THAT(ask({{"command", "fabric.sample"}})["ethernet"]["attached"],
		    ElementsAre("a/eth0-lan/1"));
	EXPECT_FALSE(std::filesystem::exists(directory_ / "a-eth0.sock"));
	EXPECT_THAT(apply(with_card), IsEmpty());
	const auto elsewhere =
		edited(with_card, "[[host]]", "[[ethernet]]\nname = \"more\"\n[[host]]");
	EXPECT_THAT(apply(edited(elsewhere, "ethernet = \"lan\"", "ethernet = \"more\"")),
		    ElementsAre("+ Ethernet more", "- a/eth0 on Ethernet lan",
				"+ a/eth0 on Ethernet more"));
	EXPECT_EQ(ask({{"command", "fabric.show"}})["hosts"][0]["ethernet"]["guest"], true);
	apply(kPair);
	place = ask({{"command", "fabric.show"}})["hosts"][0]["ethernet"];
	EXPECT_EQ(place["guest"], false);
	EXPECT_TRUE(std::filesystem::exists(directory_ / "a-eth0.sock"));
}

// If a socket is already in use, earlier changes are rolled back.
TEST_F(EthernetLab, LabApplyIsRolledBackIfTheSocketOfANewHostIsInUse)
{
	const UnixListener other(directory_ / "c-eth0.sock");
	EXPECT_THAT(apply(std::string(kPair) + "[[host]]\nname = \"c\"\nethernet = \"lan\"\n")
			    .get<std::string>(),
		    HasSubstr("c-eth0.sock"));
	const auto shown = ask({{"command", "fabric.show"}});
	EXPECT_EQ(shown["hosts"].size(), 2u);
	EXPECT_EQ(shown["ethernet"]["attachments"].size(), 2u);
	EXPECT_THAT(apply(kPair), IsEmpty());
}

} // namespace
} // namespace weft::weftd
