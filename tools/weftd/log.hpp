// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The daemon's log: lines as text or as JSON, limited in rate. The latest lines are kept in memory
// for clients.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <spdlog/common.h>
#include <spdlog/formatter.h>
#include <spdlog/sinks/sink.h>

#include "base/mutex.hpp"

namespace weft::weftd
{

// Returns the subject of a line: a card by its logger's name, else the part of the fabric that the
// text begins with ("sm", "link", "switch", "fabric", "control"), else "weftd".
std::string_view part_of(std::string_view logger, std::string_view text);
// Returns true if a line that is not about a card can be about @part.
bool is_part(std::string_view part);

// Keeps the latest lines. Any thread.
class LogHistory final : public spdlog::sinks::sink
{
public:
	static constexpr std::size_t kMostLines = 1000;
	static constexpr std::size_t kLongestText = 512;

	struct Line {
		std::uint64_t number; // of all lines since the start, from 1
		std::chrono::system_clock::time_point time;
		spdlog::level::level_enum level;
		std::string part;
		std::string text; // cut at kLongestText
	};

	~LogHistory() override;

	void log(const spdlog::details::log_msg &message) override;
	void flush() override {}
	void set_pattern(const std::string &) override {}
	void set_formatter(std::unique_ptr<spdlog::formatter>) override {}

	// The kept lines whose number is greater than @number, in order; with a @part only those
	// about it.
	std::vector<Line> after(std::uint64_t number, std::string_view part = {});
	// The number of the latest line.
	std::uint64_t last();

private:
	Mutex mutex_;
	std::deque<Line> lines_ WEFT_GUARDED_BY(mutex_);
	std::uint64_t last_ WEFT_GUARDED_BY(mutex_) = 0;
};

// A line as a JSON object: time (UTC), level, part, text.
class JsonFormatter final : public spdlog::formatter
{
public:
	void format(const spdlog::details::log_msg &message, spdlog::memory_buf_t &out) override;
	std::unique_ptr<spdlog::formatter> clone() const override;
};

// "2026-01-31T23:59:59.123456Z".
std::string utc_text(std::chrono::system_clock::time_point time);

enum class LogForm { text, json_lines };

// Has the default logger write to standard error in that form, and to the history that it returns.
// The whole daemon writes so many lines a second; those beyond are counted, as RatedSink does.
constexpr unsigned kMostLogLines = 500;
std::shared_ptr<LogHistory> set_up_log(LogForm form, spdlog::level::level_enum level);

} // namespace weft::weftd
