// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Limits the rate of log lines that a guest can cause. Suppressed lines are counted, and the count
// is logged before the next line. All cards share one log. Without the limit, a guest could fill
// the disk, and make the other guests' cards wait for the log's lock.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <spdlog/sinks/sink.h>

#include "base/mutex.hpp"
#include "base/environment.hpp"

namespace weft
{

class RatedSink final : public spdlog::sinks::sink
{
public:
	static constexpr unsigned kMostLines = 20; // per second and guest

	// Writes to @sinks with the logger name @name. Does not change the patterns of @sinks.
	RatedSink(Environment &environment, std::string name, std::vector<spdlog::sink_ptr> sinks,
		  unsigned most_lines = kMostLines)
	    : environment_(environment), name_(std::move(name)), sinks_(std::move(sinks)),
	      most_lines_(most_lines)
	{
	}
	~RatedSink() override;

	// Debug messages are not limited, because the user has requested them.
	void log(const spdlog::details::log_msg &message) override;
	void flush() override;
	void set_pattern(const std::string &) override {}
	void set_formatter(std::unique_ptr<spdlog::formatter>) override {}

private:
	void pass(const spdlog::details::log_msg &message);
	void log_withheld() WEFT_REQUIRES(mutex_);

	Environment &environment_; // provides the time for the rate
	const std::string name_;
	const std::vector<spdlog::sink_ptr> sinks_;
	const unsigned most_lines_;
	Mutex mutex_;
	Clock::time_point second_ WEFT_GUARDED_BY(mutex_) = {};
	unsigned passed_ WEFT_GUARDED_BY(mutex_) = 0; // since then
	std::size_t withheld_ WEFT_GUARDED_BY(mutex_) = 0;
};

} // namespace weft
