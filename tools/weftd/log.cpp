// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "weftd/log.hpp"

#include <algorithm>
#include <array>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "base/environment.hpp"
#include "base/printable.hpp"
#include "base/rated_sink.hpp"

namespace weft::weftd
{

namespace
{

constexpr const char *kDaemon = "weftd";
constexpr std::array<std::string_view, 6> kParts{"sm",     "link",   "trunk",
						 "switch", "fabric", "control"};

std::string_view view(spdlog::string_view_t text)
{
	return {text.data(), text.size()};
}

} // namespace

std::string_view part_of(std::string_view logger, std::string_view text)
{
	if (logger != kDaemon)
		return logger;
	const auto word = text.substr(0, text.find_first_of(": "));
	const bool known = std::ranges::find(kParts, word) != kParts.end() &&
			   text.find(": ") != std::string_view::npos;
	return known ? word : logger;
}

bool is_part(std::string_view part)
{
	return part == kDaemon || std::ranges::find(kParts, part) != kParts.end();
}

LogHistory::~LogHistory() = default;

std::vector<LogHistory::Line> LogHistory::after(std::uint64_t number, std::string_view part)
{
	const MutexLock lock(mutex_);
	std::vector<Line> result;
	for (const Line &line : lines_)
		if (line.number > number && (part.empty() || line.part == part))
			result.push_back(line);
	return result;
}

std::uint64_t LogHistory::last()
{
	const MutexLock lock(mutex_);
	return last_;
}

void LogHistory::log(const spdlog::details::log_msg &message)
{
	const MutexLock lock(mutex_);
	if (lines_.size() == kMostLines)
		lines_.pop_front();
	const auto text = view(message.payload);
	lines_.push_back({++last_, message.time, message.level,
			  std::string(part_of(view(message.logger_name), text)),
			  printable(text.substr(0, kLongestText))});
}

std::string utc_text(std::chrono::system_clock::time_point time)
{
	const auto whole = std::chrono::floor<std::chrono::seconds>(time);
	const auto rest = std::chrono::duration_cast<std::chrono::microseconds>(time - whole);
	return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z",
			   fmt::gmtime(std::chrono::system_clock::to_time_t(whole)), rest.count());
}

void JsonFormatter::format(const spdlog::details::log_msg &message, spdlog::memory_buf_t &out)
{
	const auto text = view(message.payload);
	const auto level = spdlog::level::to_string_view(message.level);
	const nlohmann::ordered_json line{{"time", utc_text(message.time)},
					  {"level", std::string(level.data(), level.size())},
					  {"part", part_of(view(message.logger_name), text)},
					  {"text", text}};
	// Names come from lab files and may not be valid UTF-8.
	const auto written =
		line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
	out.append(written.data(), written.data() + written.size());
}

std::unique_ptr<spdlog::formatter> JsonFormatter::clone() const
{
	return std::make_unique<JsonFormatter>();
}

std::shared_ptr<LogHistory> set_up_log(LogForm form, spdlog::level::level_enum level)
{
	const auto out = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
	if (form == LogForm::json_lines)
		out->set_formatter(std::make_unique<JsonFormatter>());
	else
		out->set_pattern("%H:%M:%S.%e %^%-7l%$ %n: %v");
	const auto history = std::make_shared<LogHistory>();
	const auto rated = std::make_shared<RatedSink>(Environment::host(), kDaemon,
						       std::vector<spdlog::sink_ptr>{out, history},
						       kMostLogLines);
	spdlog::set_default_logger(std::make_shared<spdlog::logger>(kDaemon, rated));
	spdlog::set_level(level);
	return history;
}

} // namespace weft::weftd
