// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "base/rated_sink.hpp"

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <spdlog/details/log_msg.h>

#include "base/printable.hpp"

namespace weft
{

RatedSink::~RatedSink() = default;

void RatedSink::log(const spdlog::details::log_msg &message)
{
	if (message.level < spdlog::level::info)
		return pass(message);
	const MutexLock lock(mutex_);
	const auto now = environment_.now();
	if (now - second_ >= std::chrono::seconds(1)) {
		second_ = now;
		passed_ = 0;
		log_withheld();
	}
	if (passed_ == most_lines_) {
		++withheld_;
		return;
	}
	++passed_;
	pass(message);
}

void RatedSink::flush()
{
	for (const auto &each : sinks_)
		each->flush();
}

// Control characters and line feeds are escaped, because guests choose some of the logged names and
// texts. These must not control the operator's terminal or look like another log line.
void RatedSink::pass(const spdlog::details::log_msg &message)
{
	const std::string_view text(message.payload.data(), message.payload.size());
	if (!is_printable(text)) {
		const std::string shown = printable(text);
		spdlog::details::log_msg copy = message;
		copy.payload = shown;
		return pass(copy);
	}
	for (const auto &each : sinks_)
		if (each->should_log(message.level))
			each->log(message);
}

void RatedSink::log_withheld()
{
	if (!withheld_)
		return;
	const auto text = fmt::format("... and {} lines more", std::exchange(withheld_, 0));
	pass(spdlog::details::log_msg(name_, spdlog::level::warn, text));
}

} // namespace weft
