// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that requests on the control socket return the state of a running lab and change it.
#include "weftd/control.hpp"

#include <array>
#include <chrono>
#include <filesystem>
#include <future>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <unistd.h>

#include "base/unix_listener.hpp"
#include "sm/subnet_manager.hpp"
#include "weftd/log.hpp"
#include "weftd/lab_runtime.hpp"

namespace weft::weftd
{
namespace
{

using nlohmann::json;
using ::testing::HasSubstr;

class Control : public ::testing::Test
{
protected:
	Control()
	    : directory_(std::filesystem::temp_directory_path() /
			 ("weft-control-" + std::to_string(::getpid())))
	{
		std::filesystem::remove_all(directory_);
		std::filesystem::create_directory(directory_);
		runtime_ = std::make_unique<LabRuntime>(default_lab(), directory_);
		session_ = std::make_unique<ControlSession>(*runtime_, [this] { ++shutdowns_; });
	}
	~Control() override
	{
		session_.reset();
		runtime_.reset();
		std::filesystem::remove_all(directory_);
	}

	json ask(const json &request) { return json::parse(session_->handle(request.dump())); }
	json result(const json &request)
	{
		const auto answer = ask(request);
		EXPECT_TRUE(answer["ok"]) << answer;
		return answer["result"];
	}
	std::string refusal(const json &request)
	{
		const auto answer = ask(request);
		EXPECT_FALSE(answer["ok"]) << answer;
		return answer.value("error", "");
	}

	std::filesystem::path directory_;
	std::unique_ptr<LabRuntime> runtime_;
	std::unique_ptr<ControlSession> session_;
	int shutdowns_ = 0;
};

// The topology is complete: nodes, ports with their links, sockets, and the subnet manager.
TEST_F(Control, FabricShowReturnsTheWholeTopology)
{
	const auto fabric = result({{"command", "fabric.show"}});
	ASSERT_EQ(fabric["hosts"].size(), 2u);
	EXPECT_EQ(fabric["hosts"][0]["name"], "node1");
	EXPECT_EQ(fabric["hosts"][0]["guest"], false);
	EXPECT_EQ(fabric["hosts"][0]["socket"], (directory_ / "node1.sock").string());
	EXPECT_EQ(fabric["switches"][0]["ports"].size(), 8u);
	EXPECT_EQ(fabric["links"].size(), 3u);
	EXPECT_EQ(fabric["links"][0]["settings"]["speed"], "QDR");
	EXPECT_EQ(fabric["subnet_manager"]["node"], "sm");
}

// LIDs, partitions and routes are those of the subnet manager's last sweep.
TEST_F(Control, FabricShowReturnsLidsPartitionsAndRoutes)
{
	ASSERT_TRUE(runtime_->subnet_manager()->wait_for(
		[](const sm::SubnetManager::Status &status) {
			return status.state == ib::SmState::master && status.complete;
		},
		std::chrono::seconds(30)));
	const auto own = result({{"command", "fabric.subnet"}, {"node", "sm"}});
	const auto lid = own["ports"]["1"]["lid"].get<unsigned>();
	EXPECT_NE(lid, 0u);
	EXPECT_THAT(own["ports"]["1"]["pkeys"].dump(), HasSubstr("0xffff"));
	EXPECT_EQ(own["routes"], json::object());
	// The subnet manager is connected to port 3 of the switch.
	const auto at_switch = result({{"command", "fabric.subnet"}, {"node", "switch1"}});
	EXPECT_EQ(at_switch["routes"]["3"], std::to_string(lid));
	EXPECT_EQ(at_switch["ports"]["0"]["lid"],
		  result({{"command", "fabric.show"}})["switches"][0]["lid"]);
	// A host whose card has no driver has not been configured.
	EXPECT_EQ(result({{"command", "fabric.show"}})["hosts"][0]["ports"][0]["lid"], 0);
	EXPECT_THAT(refusal({{"command", "fabric.subnet"}, {"node", "nowhere"}}),
		    HasSubstr("no node 'nowhere'"));
}

// A client of the control socket, for a server that the test's thread runs.
class Client
{
public:
	Client(Loop &loop, const std::filesystem::path &path)
	    : loop_(loop), socket_(connect_unix(path))
	{
	}
	void send(const json &request)
	{
		const auto line = request.dump() + '\n';
		EXPECT_EQ(::send(socket_.get(), line.data(), line.size(), MSG_NOSIGNAL),
			  static_cast<ssize_t>(line.size()));
	}
	// Returns true if a whole answer has arrived.
	bool answered() { return received() && input_.ends_with('\n'); }
	// Returns the size of the part of an answer that has arrived.
	std::size_t received()
	{
		std::array<char, 65536> bytes;
		ssize_t size = 0;
		while ((size = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT)) > 0)
			input_.append(bytes.data(), static_cast<std::size_t>(size));
		return input_.size();
	}
	// Runs the server until the answer has arrived.
	json answer()
	{
		EXPECT_TRUE(loop_.run_until([&] { return answered(); }, std::chrono::seconds(60)));
		return json::parse(std::exchange(input_, {}));
	}

private:
	Loop &loop_;
	const FileDescriptor socket_;
	std::string input_;
};

// A large lab is described in steps, between which the server answers the other clients.
TEST_F(Control, FabricShowOfALargeLabDoesNotDelayOtherClients)
{
	std::string text = "[[switch]]\nname = \"s\"\nports = 254\n";
	for (unsigned i = 0; i < 200; ++i)
		text += "[[host]]\nname = \"h" + std::to_string(i) +
			"\"\nmodel = \"endpoint\"\n[[link]]\nends = [\"h" + std::to_string(i) +
			"\", \"s\"]\n";
	session_.reset();
	runtime_.reset();
	runtime_ = std::make_unique<LabRuntime>(parse_lab(text, "large", "test"), directory_);
	Loop loop("control", Loop::Mode::manual);
	ControlServer server(loop, *runtime_, directory_ / "control.sock", [] {});
	Client large(loop, directory_ / "control.sock"), small(loop, directory_ / "control.sock");
	// The server has accepted both when it has answered them.
	for (Client *client : {&large, &small}) {
		client->send({{"command", "none"}});
		EXPECT_EQ(client->answer()["ok"], false);
	}
	large.send({{"command", "fabric.show"}, {"id", "large"}});
	small.send({{"command", "counters"}, {"port", "h7/1"}, {"id", "small"}});
	for (unsigned turns = 0; turns < 4 && !small.answered(); ++turns)
		loop.reactor().turn(Clock::time_point::min());
	ASSERT_TRUE(small.answered());
	EXPECT_EQ(large.received(), 0u);
	EXPECT_EQ(small.answer()["id"], "small");
	const auto shown = large.answer();
	EXPECT_EQ(shown["id"], "large");
	EXPECT_EQ(shown["ok"], true);
	EXPECT_EQ(shown["result"]["hosts"].size(), 200u);
	EXPECT_EQ(shown["result"]["hosts"][199]["name"], "h199");
	EXPECT_EQ(shown["result"]["links"].size(), runtime_->fabric().links().size());
	// The next request of the same client is answered as before.
	large.send({{"command", "none"}});
	EXPECT_EQ(large.answer()["ok"], false);
}

// A busy card does not delay a request for the topology.
TEST_F(Control, FabricShowDoesNotWaitForABusyCard)
{
	std::promise<void> busy, idle;
	runtime_->hosts()[0]->loop->post([&busy, released = idle.get_future().share()] {
		busy.set_value();
		released.wait();
	});
	busy.get_future().wait();
	auto shown = std::async(std::launch::async,
				[&] { return result({{"command", "fabric.show"}}); });
	const auto answered = shown.wait_for(std::chrono::seconds(10));
	idle.set_value();
	EXPECT_EQ(answered, std::future_status::ready);
	EXPECT_EQ(shown.get()["hosts"].size(), 2u);
}

// A link is found by its own name, either way round, by a port, and by a node with one link.
TEST_F(Control, LinkCanBeSpecifiedByNamePortOrNode)
{
	for (const char *name :
	     {"node1/1-switch1/1", "switch1/1-node1/1", "node1/1", "switch1/1", "node1"})
		EXPECT_EQ(result({{"command", "link.up"}, {"link", name}})["name"],
			  "node1/1-switch1/1");
	EXPECT_THAT(refusal({{"command", "link.up"}, {"link", "switch1"}}),
		    HasSubstr("several links"));
	EXPECT_THAT(refusal({{"command", "link.up"}, {"link", "switch1/8"}}), HasSubstr("no link"));
	EXPECT_THAT(refusal({{"command", "link.up"}, {"link", "nowhere"}}), HasSubstr("nowhere"));
	EXPECT_THAT(refusal({{"command", "link.up"}}), HasSubstr("'link' must be given"));
}

// Pulling a cable takes the link down, and plugging it in brings the link up. The link of the
// subnet manager shows this.
TEST_F(Control, LinkDownAndUpCommandsUnplugAndPlugTheCable)
{
	const json show{{"command", "fabric.show"}};
	EXPECT_EQ(result({{"command", "link.down"}, {"link", "sm"}})["up"], false);
	EXPECT_FALSE(runtime_->find_link("sm").up());
	EXPECT_EQ(result({{"command", "link.up"}, {"link", "sm"}})["up"], true);
	EXPECT_TRUE(runtime_->find_link("sm").up());
}

// Either all settings of a request are applied, or none.
TEST_F(Control, EitherAllOrNoneOfTheLinkSettingsInARequestAreApplied)
{
	const auto set = [&](const json &settings) {
		return json{{"command", "link.set"}, {"link", "node1"}, {"settings", settings}};
	};
	const auto link = result(set({{"delay", "5us"}, {"loss", "1%"}, {"mtu", 2048}}));
	EXPECT_EQ(link["settings"]["delay"], "5us");
	EXPECT_EQ(link["settings"]["loss"], "0.01");
	EXPECT_EQ(link["settings"]["mtu"], "2048");
	EXPECT_DOUBLE_EQ(runtime_->find_link("node1").faults().loss, 0.01);
	EXPECT_THAT(refusal(set({{"delay", "9us"}, {"loss", "2"}})), HasSubstr("probability"));
	EXPECT_THAT(refusal(set({{"colour", "red"}})), HasSubstr("colour"));
	EXPECT_THAT(refusal(set(json::object())), HasSubstr("settings"));
	EXPECT_THAT(refusal(set("loss=1")), HasSubstr("settings"));
	EXPECT_EQ(runtime_->find_link("node1").faults().delay, std::chrono::microseconds(5));
}

// The result has the counters of every linked port, or of one port.
TEST_F(Control, CountersOfOneOrAllPortsAreReturned)
{
	EXPECT_EQ(result({{"command", "counters"}}).size(), 6u);
	fabric::Counters::add(runtime_->fabric().find_port("node1/1")->counters().xmit_packets, 3);
	const auto one = result({{"command", "counters"}, {"port", "node1/1"}});
	EXPECT_EQ(one.size(), 1u);
	EXPECT_EQ(one["node1/1"]["xmit_packets"], 3);
	EXPECT_THAT(refusal({{"command", "counters"}, {"port", "x"}}), HasSubstr("no port"));
	EXPECT_THAT(refusal({{"command", "counters"}, {"port", 3}}), HasSubstr("port"));
	EXPECT_EQ(result({{"command", "counters"}, {"port", "node1"}}), one);
	EXPECT_THAT(refusal({{"command", "counters"}, {"port", "node"}}), HasSubstr("no port"));
	for (const char *link : {"node1/1-switch1/1", "switch1/1-node1/1"}) {
		const auto ends = result({{"command", "counters"}, {"port", link}});
		EXPECT_EQ(ends.size(), 2u) << link;
		EXPECT_EQ(ends["node1/1"]["xmit_packets"], 3);
		EXPECT_TRUE(ends.contains("switch1/1"));
	}
	const auto cards = result({{"command", "counters.cards"}});
	EXPECT_EQ(cards.size(), 2u);
	EXPECT_EQ(cards["node1"]["commands"], 0);
}

// A sample has the counters of linked ports by column, the links that are down, and the manager's
// state. Its size depends only on the lab.
TEST_F(Control, FabricSampleContainsPortCountersAndTheNamesOfDownLinks)
{
	fabric::Counters::add(runtime_->fabric().find_port("node1/1")->counters().xmit_packets, 3);
	runtime_->find_link("sm").set_plugged(false);
	const auto first = result({{"command", "fabric.sample"}});
	EXPECT_EQ(first["ports"].size(), 6u) << "three links";
	EXPECT_EQ(first["columns"].size(), first["ports"]["switch1/1"].size());
	EXPECT_EQ(first["columns"][0], "xmit_packets");
	EXPECT_EQ(first["ports"]["node1/1"][0], 3);
	EXPECT_THAT(first["down"].dump(), HasSubstr("sm/1-"));
	EXPECT_EQ(first["guests"], json::array());
	EXPECT_EQ(first["subnet_manager"]["node"], "sm");
	EXPECT_GT(result({{"command", "fabric.sample"}})["time"], first["time"]);
}

// The log is returned from a given line on, complete or for one component. A daemon without a log
// reports an error.
TEST_F(Control, LogRequestReturnsLinesAfterALineNumberOrOfOneComponent)
{
	EXPECT_THAT(refusal({{"command", "log"}}), HasSubstr("no log"));
	const auto history = std::make_shared<LogHistory>();
	history->log({"weftd", spdlog::level::info, "sm: a sweep"});
	history->log({"node1", spdlog::level::warn, "its machine is gone"});
	ControlSession session(*runtime_, [] {}, history);
	const auto ask = [&](json request) {
		request["command"] = "log";
		return json::parse(session.handle(request.dump()));
	};
	const auto all = ask(json::object())["result"];
	EXPECT_EQ(all["last"], 2);
	ASSERT_EQ(all["lines"].size(), 2u);
	EXPECT_EQ(all["lines"][1]["part"], "node1");
	EXPECT_EQ(all["lines"][1]["level"], "warning");
	EXPECT_EQ(ask({{"part", "sm"}})["result"]["lines"][0]["text"], "sm: a sweep");
	EXPECT_EQ(ask({{"after", 1}})["result"]["lines"].size(), 1u);
	EXPECT_EQ(ask({{"after", 2}})["result"]["lines"].size(), 0u);
	EXPECT_FALSE(ask({{"after", "x"}})["ok"]);
	EXPECT_FALSE(ask({{"part", 5}})["ok"]);
	EXPECT_TRUE(ask({{"part", "switch"}})["ok"]);
	EXPECT_TRUE(ask({{"part", "node2"}})["ok"]);
	EXPECT_THAT(ask({{"part", "nonsense"}})["error"].dump(), HasSubstr("no part 'nonsense'"));
}

// A capture with a size limit stops at the limit, and reports this.
TEST_F(Control, CaptureStopsAtItsSizeLimit)
{
	const auto file = directory_ / "small.pcap";
	EXPECT_EQ(refusal({{"command", "capture.start"},
			   {"link", "sm"},
			   {"file", file.string()},
			   {"most_bytes", -1}}),
		  "'most_bytes' must be a number of at most 18446744073709551615");
	result({{"command", "capture.start"},
		{"link", "sm"},
		{"file", file.string()},
		{"most_bytes", 2000}});
	const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
	do {
		result({{"command", "sm.sweep"}});
		ASSERT_LT(std::chrono::steady_clock::now(), deadline);
	} while (!result({{"command", "capture.progress"}})["full"]);
	const auto packets = result({{"command", "capture.stop"}})["packets"];
	EXPECT_GT(packets, 0);
	EXPECT_LE(std::filesystem::file_size(file), 2000u);
}

// A capture belongs to the client that started it, and stops when that client disconnects. A link
// has at most one capture at a time.
TEST_F(Control, CaptureStopsWhenItsClientDisconnects)
{
	const json start{{"command", "capture.start"},
			 {"link", "all"},
			 {"file", (directory_ / "all.pcap").string()}};
	EXPECT_EQ(result(start)["links"].size(), 3u);
	ControlSession other(*runtime_, [] {});
	EXPECT_FALSE(json::parse(other.handle(start.dump()))["ok"]);
	EXPECT_TRUE(runtime_->find_link("node1").capture());
	session_.reset();
	EXPECT_FALSE(runtime_->find_link("node1").capture());
	EXPECT_GE(std::filesystem::file_size(directory_ / "all.pcap"), 24u);
	EXPECT_TRUE(json::parse(other.handle(start.dump()))["ok"]);
	EXPECT_TRUE(json::parse(other.handle(R"({"command":"capture.stop"})"))["ok"]);
	EXPECT_FALSE(runtime_->find_link("node1").capture());
}

// A capture to a file that cannot be written is refused.
TEST_F(Control, InvalidCaptureRequestsAreRefused)
{
	const auto start = [&](const std::string &file) {
		return json{{"command", "capture.start"}, {"link", "node1"}, {"file", file}};
	};
	EXPECT_THAT(refusal(start("relative.pcap")), HasSubstr("absolute"));
	EXPECT_NE(refusal(start("/nonexistent/x.pcap")), "");
	EXPECT_FALSE(runtime_->find_link("node1").capture());
}

// The subnet manager sweeps, and can be turned off and on.
TEST_F(Control, SmCommandsReturnTheStateOfTheSmAndCardFaultCommandsReturnFaultCounts)
{
	EXPECT_EQ(result({{"command", "sm.sweep"}})["node"], "sm");
	EXPECT_EQ(result({{"command", "sm.renumber"}})["node"], "sm");
	EXPECT_EQ(result({{"command", "card.fault"},
			  {"host", "node1"},
			  {"fault", "cqe-owner"}})["cqe-owner"],
		  0);
	EXPECT_FALSE(
		ask({{"command", "card.fault"}, {"host", "node1"}, {"fault", "a-headache"}})["ok"]);
	EXPECT_FALSE(
		ask({{"command", "card.fault"}, {"host", "nobody"}, {"fault", "cqe-owner"}})["ok"]);
	EXPECT_FALSE(ask({{"command", "card.fault"},
			  {"host", "node1"},
			  {"fault", "cqe-owner"},
			  {"count", -1}})["ok"]);
	EXPECT_THAT(
		refusal({{"command", "card.fault"}, {"host", "node1"}, {"fault", "a-headache"}}),
		HasSubstr("srq-list, command-nth, catastrophic"));
	EXPECT_EQ(result({{"command", "card.fault"},
			  {"host", "node1"},
			  {"fault", "catastrophic"}})["catastrophic"],
		  1);
	EXPECT_EQ(result({{"command", "card.fault"},
			  {"host", "node1"},
			  {"fault", "catastrophic"},
			  {"count", 0}})["catastrophic"],
		  1);
	EXPECT_TRUE(ask({{"command", "card.random_faults"},
			 {"host", "node1"},
			 {"seed", 3},
			 {"one_in", 0}})["ok"]);
	EXPECT_EQ(result({{"command", "sm.corrupt-replies"},
			  {"seed", 3},
			  {"one_in", 0}})["corrupted"],
		  0);
	EXPECT_FALSE(ask({{"command", "sm.corrupt-replies"}, {"one_in", -1}})["ok"]);
	EXPECT_EQ(result({{"command", "sm.disable"}})["enabled"], false);
	EXPECT_EQ(result({{"command", "sm.enable"}})["enabled"], true);
}

// An invalid request gets an answer with a reason and the unchanged id.
TEST_F(Control, InvalidRequestGetsAnErrorWithTheIdOfTheRequest)
{
	for (const char *line : {"", "garbage", "[]", "7", "{\"command\":", "{}",
				 R"({"command":5})", R"({"command":"fly"})", "\xff\xfe"}) {
		const auto answer = json::parse(session_->handle(line));
		EXPECT_EQ(answer["ok"], false) << line;
		EXPECT_FALSE(answer["error"].get<std::string>().empty()) << line;
	}
	EXPECT_EQ(ask({{"command", "fly"}, {"id", "x7"}})["id"], "x7");
	EXPECT_EQ(json::parse(session_->handle(std::string(100000, '[')))["ok"], false);
}

// A request may have at most 8 levels of nesting. Deeper values are neither parsed nor returned.
TEST_F(Control, JsonNestingDepthIsLimited)
{
	const auto answer = [&](std::size_t levels) {
		return json::parse(session_->handle(R"({"command":"fly","id":)" +
						    std::string(levels, '[') +
						    std::string(levels, ']') + "}"));
	};
	EXPECT_TRUE(answer(8).contains("id"));
	EXPECT_FALSE(answer(9).contains("id"));
	EXPECT_THAT(answer(30000)["error"].get<std::string>(), HasSubstr("a request is"));
}

// Shutdown is passed on.
TEST_F(Control, ShutdownRequestIsPassedToTheDaemon)
{
	EXPECT_TRUE(ask({{"command", "shutdown"}})["ok"]);
	EXPECT_EQ(shutdowns_, 1);
}

// Several requests in one write to the socket are answered in order. An overlong line closes the
// connection. The socket file is removed at the end.
TEST_F(Control, PipelinedRequestsAreAnsweredInOrder)
{
	const auto path = directory_ / "control.sock";
	{
		Loop loop("control");
		ControlServer server(loop, *runtime_, path, [] {});
		const auto socket = connect_unix(path);
		const std::string lines =
			"{\"command\":\"fly\",\"id\":1}\n{\"command\":\"fly\",\"id\":2}\n";
		ASSERT_EQ(::send(socket.get(), lines.data(), lines.size(), 0),
			  static_cast<ssize_t>(lines.size()));
		std::string got;
		while (std::ranges::count(got, '\n') < 2) {
			char buffer[4096];
			const auto bytes = ::recv(socket.get(), buffer, sizeof(buffer), 0);
			ASSERT_GT(bytes, 0);
			got.append(buffer, static_cast<std::size_t>(bytes));
		}
		EXPECT_EQ(json::parse(got.substr(0, got.find('\n')))["id"], 1);

		const std::string endless(2 << 20, 'x');
		::send(socket.get(), endless.data(), endless.size(), MSG_NOSIGNAL);
		char byte;
		EXPECT_LE(::recv(socket.get(), &byte, 1, 0), 0);
	}
	EXPECT_FALSE(std::filesystem::exists(path));
}

} // namespace
} // namespace weft::weftd
