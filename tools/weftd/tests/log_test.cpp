// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that each log line names its component. In JSON format each line is a valid object,
// whatever characters the message contains. The number of lines that are kept in memory is limited.
#include "weftd/log.hpp"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <nlohmann/json.hpp>
#include <spdlog/logger.h>
#include <spdlog/spdlog.h>

#include "base/environment.hpp"
#include "base/file_descriptor.hpp"
#include "base/rated_sink.hpp"

namespace weft::weftd
{
namespace
{

TEST(Log, LogComponentIsTheCardNameOrAKnownFirstWordOfTheMessageOrElseWeftd)
{
	EXPECT_EQ(part_of("node1", "sm: said by a card"), "node1");
	EXPECT_EQ(part_of("weftd", "sm: sweep of 3 nodes"), "sm");
	EXPECT_EQ(part_of("weftd", "link a/1-b/1: up"), "link");
	EXPECT_EQ(part_of("weftd", "ends on Terminated"), "weftd");
	EXPECT_EQ(part_of("weftd", "smoke: none of ours"), "weftd");
	EXPECT_EQ(part_of("weftd", ""), "weftd");
}

TEST(Log, EachLogLineIsAJsonObject)
{
	const std::chrono::system_clock::time_point time{
		std::chrono::microseconds(1'700'000'000'000'042)};
	const std::string text = "link \"a\"\n\xff/1: up";
	spdlog::memory_buf_t out;
	JsonFormatter().clone()->format({time, {}, "weftd", spdlog::level::warn, text}, out);
	const std::string line(out.data(), out.size());
	EXPECT_EQ(line.find('\n'), line.size() - 1) << "one line";
	const auto object = nlohmann::json::parse(line);
	EXPECT_EQ(object["time"], "2023-11-14T22:13:20.000042Z");
	EXPECT_EQ(object["level"], "warning");
	EXPECT_EQ(object["part"], "link");
	EXPECT_EQ(object["text"], "link \"a\"\n\xef\xbf\xbd/1: up");
}

TEST(Log, LogHistoryHasTheLatestLinesAndTruncatesLongLines)
{
	LogHistory history;
	const std::string lengthy(10'000, 'x');
	for (std::size_t i = 0; i < LogHistory::kMostLines + 5; ++i)
		history.log({"weftd", spdlog::level::info, i % 2 ? "sm: odd" : lengthy});
	EXPECT_EQ(history.last(), LogHistory::kMostLines + 5);
	const auto lines = history.after(0);
	ASSERT_EQ(lines.size(), LogHistory::kMostLines);
	EXPECT_EQ(lines.front().number, 6u);
	EXPECT_EQ(lines.back().number, history.last());
	EXPECT_EQ(lines.back().text.size(), LogHistory::kLongestText);
	EXPECT_EQ(history.after(0, "sm").size(), LogHistory::kMostLines / 2);
	EXPECT_EQ(history.after(history.last() - 1).size(), 1u);
	EXPECT_TRUE(history.after(history.last()).empty());
	EXPECT_TRUE(history.after(~std::uint64_t{0}).empty());
}

// A guest can choose the text, for example of a node description.
TEST(Log, ControlCharactersInAMessageAreEscaped)
{
	VirtualEnvironment time;
	const auto history = std::make_shared<LogHistory>();
	spdlog::logger log("weftd", std::make_shared<RatedSink>(
					    time, "weftd", std::vector<spdlog::sink_ptr>{history}));
	log.info("sm: {} is active", "\x1b[2Jnode1\n12:00:00 error weftd: forged");
	ASSERT_EQ(history->after(0).size(), 1u);
	EXPECT_EQ(history->after(0)[0].text,
		  "sm: \\x1b[2Jnode1\\x0a12:00:00 error weftd: forged is active");
}

// The number of lines per second is limited for the daemon as for a guest. Omitted lines are
// counted.
TEST(Log, NumberOfLogLinesPerSecondIsLimited)
{
	VirtualEnvironment time;
	const auto history = std::make_shared<LogHistory>();
	spdlog::logger log("weftd",
			   std::make_shared<RatedSink>(time, "weftd",
						       std::vector<spdlog::sink_ptr>{history}, 10));
	for (unsigned i = 0; i < 1000; ++i)
		log.info("again");
	EXPECT_EQ(history->last(), 10u);
	log.warn("as much as any other");
	EXPECT_EQ(history->last(), 10u);
	const FileDescriptor nothing(::epoll_create1(EPOLL_CLOEXEC));
	epoll_event event{};
	time.wait(nothing.get(), &event, 1, time.now() + std::chrono::seconds(1));
	log.info("the next second");
	EXPECT_EQ(history->last(), 12u);
	bool counted = false;
	for (const auto &line : history->after(0))
		counted |= line.text.find("lines more") != std::string::npos;
	EXPECT_TRUE(counted);
}

} // namespace
} // namespace weft::weftd
