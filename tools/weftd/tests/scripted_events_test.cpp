// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that scheduled events run at their times, in virtual and in real time.
#include "weftd/scripted_events.hpp"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/reactor.hpp"
#include "weftd/lab_runtime.hpp"

namespace weft::weftd
{
namespace
{

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

// A lab in virtual time, unless a test has its own loop.
class ScriptedEventsTest : public ::testing::Test
{
protected:
	ScriptedEventsTest()
	    : directory_(std::filesystem::temp_directory_path() /
			 ("weft-events-" + std::to_string(::getpid())))
	{
		std::filesystem::remove_all(directory_);
		std::filesystem::create_directory(directory_);
	}
	~ScriptedEventsTest() override { std::filesystem::remove_all(directory_); }

	std::vector<ScriptedEvent> load(const std::string &text)
	{
		std::ofstream(directory_ / "events") << text;
		return load_events(directory_ / "events");
	}
	std::string trouble(const std::string &text)
	{
		try {
			load(text);
		} catch (const std::runtime_error &error) {
			return error.what();
		}
		return "";
	}
	void pass(Clock::duration time)
	{
		const auto until = environment_.now() + time;
		while (environment_.now() < until)
			reactor_.turn(until);
	}

	const std::filesystem::path directory_;
	VirtualEnvironment environment_;
	Reactor reactor_{"test", Reactor::Drive::manual, environment_};
	Loop loop_{"test", reactor_};
	std::vector<std::pair<ScriptedEvents::End, std::string>> ends_;
};

TEST_F(ScriptedEventsTest, ScheduledEventsRunAtTheirTimesInVirtualTime)
{
	LabRuntime runtime(default_lab(), directory_, &reactor_);
	ScriptedEvents events(
		loop_, runtime,
		load("{\"at\": 2.5, \"command\": \"link.down\", \"link\": \"sm\"}\n\n{\"at\": 1, \"command\": \"fabric.show\"}\n"
		     "{\"at\": 3.5, \"command\": \"link.up\", \"link\": \"sm\"}\n{\"at\": 4, \"command\": \"shutdown\"}\n"),
		[this](ScriptedEvents::End how, const std::string &reason) {
			ends_.emplace_back(how, reason);
		});
	const fabric::Link &link = runtime.find_link("sm");
	pass(2400ms);
	EXPECT_TRUE(link.plugged());
	pass(200ms);
	EXPECT_FALSE(link.plugged());
	pass(1s);
	EXPECT_TRUE(link.plugged());
	EXPECT_THAT(ends_, IsEmpty());
	pass(1s);
	EXPECT_THAT(ends_, ElementsAre(Pair(ScriptedEvents::End::requested,
					    "a scheduled event requests it")));
}

// After an event that fails, no further event runs.
TEST_F(ScriptedEventsTest, FirstFailedEventStopsTheScript)
{
	LabRuntime runtime(default_lab(), directory_, &reactor_);
	ScriptedEvents events(
		loop_, runtime,
		load("{\"at\": 1, \"command\": \"link.down\", \"link\": \"nowhere\"}\n{\"at\": 2, \"command\": \"link.down\", \"link\": \"sm\"}\n"),
		[this](ScriptedEvents::End how, const std::string &reason) {
			ends_.emplace_back(how, reason);
		});
	pass(3s);
	EXPECT_THAT(ends_,
		    ElementsAre(Pair(ScriptedEvents::End::failed,
				     HasSubstr("there is no link, port or node 'nowhere'"))));
	EXPECT_TRUE(runtime.find_link("sm").plugged());
}

// The events run on the thread of the control loop, and the object is created and destroyed on
// another one.
TEST_F(ScriptedEventsTest, ScheduledEventsRunAtTheirTimesWithoutVirtualTime)
{
	LabRuntime runtime(default_lab(), directory_);
	Loop control("control");
	const auto plugged = [&] {
		bool result = false;
		control.run([&] { result = runtime.find_link("sm").plugged(); });
		return result;
	};
	std::promise<std::string> ended;
	const auto begin = control.now();
	ScriptedEvents events(control, runtime,
			      load("{\"at\": 0.2, \"command\": \"link.down\", \"link\": \"sm\"}\n"
				   "{\"at\": 0.3, \"command\": \"shutdown\"}\n"
				   "{\"at\": 3600, \"command\": \"link.up\", \"link\": \"sm\"}\n"),
			      [&](ScriptedEvents::End, const std::string &reason) {
				      EXPECT_TRUE(control.in_loop());
				      ended.set_value(reason);
			      });
	EXPECT_EQ(ended.get_future().get(), "a scheduled event requests it");
	EXPECT_GE(control.now() - begin, 300ms);
	EXPECT_FALSE(plugged());
}

TEST_F(ScriptedEventsTest, EventsWithoutAValidTimeAreRefused)
{
	for (const char *line : {"no JSON", "[1]", "{\"command\": \"sm.sweep\"}", "{\"at\": -1}",
				 "{\"at\": 1e30}", "{\"at\": \"1\"}", "{"})
		EXPECT_THAT(trouble(std::string("{\"at\": 0}\n") + line + "\n"),
			    HasSubstr("line 2 is not an object with a time 'at'"))
			<< line;
	EXPECT_THROW(load_events(directory_ / "missing"), std::runtime_error);
}

} // namespace
} // namespace weft::weftd
