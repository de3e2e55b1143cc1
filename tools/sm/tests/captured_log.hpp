// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Captures the log output during its lifetime, for tests.
#pragma once

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>

#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

namespace weft::sm::testing
{

class CapturedLog
{
public:
	CapturedLog()
	{
		spdlog::set_default_logger(std::make_shared<spdlog::logger>(
			"captured", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)));
	}
	~CapturedLog() { spdlog::set_default_logger(former_); }
	CapturedLog(const CapturedLog &) = delete;
	CapturedLog &operator=(const CapturedLog &) = delete;

	std::string text() const { return text_.str(); }
	std::size_t lines() const
	{
		return static_cast<std::size_t>(std::ranges::count(text(), '\n'));
	}

private:
	std::ostringstream text_;
	const std::shared_ptr<spdlog::logger> former_ = spdlog::default_logger();
};

} // namespace weft::sm::testing
