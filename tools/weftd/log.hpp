// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Writes the log of weftd, as lines of text or of JSON. The rate of lines is limited, and the
// latest lines are kept in memory for clients of the control socket.
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

// Returns the component of a line: the logger's name for a card; otherwise the first word of the
// text if it is a part of the fabric ("sm", "link", "switch", "fabric", "control"); and otherwise
// "weftd".
std::string_view part_of(std::string_view logger, std::string_view text);
// Returns true if @part is a component other than a card.
bool is_part(std::string_view part);

// Keeps the latest lines. Thread-safe.
class LogHistory final : public spdlog::sinks::sink
{
public:
	static constexpr std::size_t kMostLines = 1000;
	static constexpr std::size_t kLongestText = 512;

	struct Line {
		std::uint64_t number; // number of the line since the start, counted from 1
		std::chrono::system_clock::time_point time;
		spdlog::level::level_enum level;
		std::string part;
		std::string text; // truncated to kLongestText
	};

	~LogHistory() override;

	void log(const spdlog::details::log_msg &message) override;
	void flush() override {}
	void set_pattern(const std::string &) override {}
	void set_formatter(std::unique_ptr<spdlog::formatter>) override {}

	// Returns the stored lines with numbers above @number, in order. If @part is given, returns
	// only the lines of that component.
	std::vector<Line> after(std::uint64_t number, std::string_view part = {});
	// Returns the number of the latest line.
	std::uint64_t last();

private:
	Mutex mutex_;
	std::deque<Line> lines_ WEFT_GUARDED_BY(mutex_);
	std::uint64_t last_ WEFT_GUARDED_BY(mutex_) = 0;
};

// Formats a line as a JSON object: time (UTC), level, part, text.
class JsonFormatter final : public spdlog::formatter
{
public:
	void format(const spdlog::details::log_msg &message, spdlog::memory_buf_t &out) override;
	std::unique_ptr<spdlog::formatter> clone() const override;
};

// Returns a time as "2026-01-31T23:59:59.123456Z".
std::string utc_text(std::chrono::system_clock::time_point time);

enum class LogForm { text, json_lines };

// Makes the default logger write to standard error in this format, and to the returned history. The
// number of lines per second is limited for the whole daemon. Lines beyond the limit are counted,
// as in RatedSink.
constexpr unsigned kMostLogLines = 500;
std::shared_ptr<LogHistory> set_up_log(LogForm form, spdlog::level::level_enum level);

} // namespace weft::weftd
