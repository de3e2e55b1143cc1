// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "pci/rated_sink.hpp"

#include <utility>

#include <fmt/format.h>
#include <spdlog/details/log_msg.h>

namespace weft::pci
{

RatedSink::~RatedSink() = default;

void RatedSink::log(const spdlog::details::log_msg &message)
{
	if (message.level < spdlog::level::info)
		return pass(message);
	std::lock_guard lock(mutex_);
	const auto now = environment_.now();
	if (now - second_ >= std::chrono::seconds(1)) {
		second_ = now;
		passed_ = 0;
		tell_withheld();
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

void RatedSink::pass(const spdlog::details::log_msg &message)
{
	for (const auto &each : sinks_)
		if (each->should_log(message.level))
			each->log(message);
}

void RatedSink::tell_withheld()
{
	if (!withheld_)
		return;
	const auto text = fmt::format("... and {} lines more", std::exchange(withheld_, 0));
	pass(spdlog::details::log_msg(name_, spdlog::level::warn, text));
}

} // namespace weft::pci
