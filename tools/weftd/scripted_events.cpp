// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "weftd/scripted_events.hpp"

#include <cmath>
#include <fstream>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace weft::weftd
{

using nlohmann::json;

namespace
{

// Limit of one year, so that the time in nanoseconds fits into 64 bits.
constexpr double kLatest = 365 * 86400.0;

} // namespace

std::vector<ScriptedEvent> load_events(const std::filesystem::path &file)
{
	std::ifstream lines(file);
	if (!lines)
		throw std::runtime_error(fmt::format("{}: cannot be read", file.string()));
	std::vector<ScriptedEvent> events;
	std::string line;
	for (unsigned number = 1; std::getline(lines, line); ++number) {
		if (line.empty())
			continue;
		const json event = json::parse(line, nullptr, false);
		const auto at = event.is_object() ? event.find("at") : event.end();
		if (!event.is_object() || at == event.end() || !at->is_number() ||
		    at->get<double>() < 0 || at->get<double>() > kLatest)
			throw std::runtime_error(
				fmt::format("{}: line {} is not an object with a time 'at', "
					    "in seconds",
					    file.string(), number));
		events.push_back(
			{std::chrono::nanoseconds(std::llround(at->get<double>() * 1e9)), line});
	}
	return events;
}

ScriptedEvents::ScriptedEvents(Loop &loop, LabRuntime &runtime, std::vector<ScriptedEvent> events,
			       Ended ended)
    : loop_(loop), ended_(std::move(ended)), events_(std::move(events))
{
	loop_.run([&] {
		session_.emplace(runtime, [this] {
			ended_(End::requested, "a scheduled event requests it");
		});
		for (const ScriptedEvent &event : events_)
			timers_.emplace_back(loop_, [this, &event] { perform(event); })
				.arm(event.at);
	});
}

ScriptedEvents::~ScriptedEvents()
{
	loop_.run([this] {
		timers_.clear();
		session_.reset();
	});
}

void ScriptedEvents::perform(const ScriptedEvent &event)
{
	const json answer = json::parse(session_->handle(event.request));
	if (answer.at("ok").get<bool>())
		return;
	timers_.clear();
	ended_(End::failed, fmt::format("a scheduled event was refused: {}: {}", event.request,
					answer.at("error").get<std::string>()));
}

} // namespace weft::weftd
