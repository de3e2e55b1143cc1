// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "weftd/state_file.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace weft::weftd
{

using nlohmann::json;

namespace
{

constexpr int kVersion = 1;
constexpr std::string_view kApply = "lab.apply", kLink = "link ";

std::optional<LabText> lab_of(const json &state)
{
	const json &lab = state.at("lab");
	if (lab.is_null())
		return std::nullopt;
	return LabText{lab.at("source").get<std::string>(), lab.at("folder").get<std::string>(),
		       lab.at("text").get<std::string>()};
}

json describe(const std::optional<LabText> &lab)
{
	if (!lab)
		return {};
	return {{"source", lab->source}, {"folder", lab->folder}, {"text", lab->text}};
}

json request_of(const ArmedFault &armed)
{
	return {{"command", "card.fault"},
		{"host", armed.host},
		{"fault", armed.fault},
		{"count", armed.count}};
}

} // namespace

StateFile::StateFile(std::filesystem::path path) : path_(std::move(path))
{
	std::ifstream stream(path_);
	if (!stream)
		return;
	try {
		const json state = json::parse(stream);
		if (state.at("version").get<int>() != kVersion)
			throw std::runtime_error("it was written by another version of weftd");
		lab_ = lab_of(state);
		for (const json &each : state.at("requests"))
			requests_.emplace_back(each.at("sets").get<std::string>(),
					       each.at("request"));
		for (const json &each : state.value("armed", json::array()))
			armed_.push_back({each.at("host").get<std::string>(),
					  each.at("fault").get<std::string>(),
					  each.at("count").get<std::uint64_t>()});
		restored_ = state.value("restored", 0u);
	} catch (const std::exception &reason) {
		throw std::runtime_error(fmt::format("{} is not the state of a lab: {}",
						     path_.string(), reason.what()));
	}
	continues_ = true;
}

std::vector<std::string> StateFile::requests() const
{
	std::vector<std::string> lines;
	for (const auto &[key, request] : requests_)
		lines.push_back(request.dump(-1, ' ', false, json::error_handler_t::replace));
	for (const ArmedFault &armed : armed_)
		lines.push_back(request_of(armed).dump());
	return lines;
}

void StateFile::count_restart()
{
	if (armed_.empty())
		return;
	if (++restored_ > kMostRestored) {
		spdlog::warn("state: the armed faults are dropped, because weftd has crashed {} "
			     "times since they were armed: a fault may be the cause",
			     kMostRestored + 1);
		armed_.clear();
		restored_ = 0;
	}
	write();
}

void StateFile::begin(std::optional<LabText> lab)
{
	lab_ = std::move(lab);
	requests_.clear();
	armed_.clear();
	restored_ = 0;
	write();
}

void StateFile::record(const json &request, const json &result)
{
	const auto command = request.at("command").get<std::string>();
	if (command == "link.set" || command == "link.up" || command == "link.down") {
		// Store all settings of the link, not only those that the request has changed.
		const auto name = result.at("name").get<std::string>();
		keep(fmt::format("{}{}", kLink, name), {{"command", "link.set"},
							{"link", name},
							{"settings", result.at("settings")}});
	} else if (command == "card.random_faults") {
		keep(fmt::format("{} {}", command, request.at("host").get<std::string>()), request);
	} else if (command == "sm.corrupt-replies") {
		keep(command, request);
	} else if (command == "sm.enable" || command == "sm.disable") {
		keep("sm", request);
	} else if (command == kApply) {
		if (!result.at("applied").get<bool>() || result.at("changes").empty())
			return;
		// The file has set all links, so earlier settings of links are dropped. Earlier
		// files are kept, because they determine the GUIDs of nodes without a GUID in the
		// file.
		std::erase_if(requests_,
			      [](const auto &each) { return each.first.starts_with(kLink); });
		const auto is_applied = [](const auto &each) { return each.first == kApply; };
		if (std::ranges::count_if(requests_, is_applied) >=
		    static_cast<std::ptrdiff_t>(kMostApplied)) {
			requests_.erase(std::ranges::find_if(requests_, is_applied));
			spdlog::warn("state: more than {} applied lab files; GUIDs that are "
				     "not in them may change after a restart",
				     kMostApplied);
		}
		requests_.emplace_back(kApply, request);
	} else {
		return;
	}
	write();
}

void StateFile::record_armed(std::vector<ArmedFault> armed)
{
	if (armed == armed_ && !failed_)
		return;
	// A fault that occurs only lowers its count. A new fault or a higher count comes from a
	// request.
	if (std::ranges::any_of(armed, [this](const ArmedFault &fault) {
		    const auto former = std::ranges::find_if(armed_, [&](const ArmedFault &each) {
			    return each.host == fault.host && each.fault == fault.fault;
		    });
		    return former == armed_.end() || fault.count > former->count;
	    }))
		restored_ = 0;
	armed_ = std::move(armed);
	write();
}

void StateFile::record_exit()
{
	if (restored_ == 0)
		return;
	restored_ = 0;
	write();
}

void StateFile::keep(std::string key, json request)
{
	std::erase_if(requests_, [&](const auto &each) { return each.first == key; });
	requests_.emplace_back(std::move(key), std::move(request));
}

void StateFile::write()
{
	json state{{"version", kVersion}, {"lab", describe(lab_)}, {"requests", json::array()}};
	for (const auto &[key, request] : requests_)
		state["requests"].push_back({{"sets", key}, {"request", request}});
	// This member is separate from the requests, because a weftd that does not update the
	// counts ignores it.
	for (const ArmedFault &armed : armed_)
		state["armed"].push_back(
			{{"host", armed.host}, {"fault", armed.fault}, {"count", armed.count}});
	if (restored_ != 0)
		state["restored"] = restored_;
	const auto fresh = path_.string() + ".new";
	std::error_code error;
	{
		errno = 0;
		std::ofstream stream(fresh, std::ios::trunc);
		stream << state.dump(-1, ' ', false, json::error_handler_t::replace) << '\n';
		if (!stream.flush())
			error.assign(errno ? errno : EIO, std::generic_category());
	}
	if (!error)
		std::filesystem::rename(fresh, path_, error);
	if (error && !failed_)
		spdlog::warn("state: {} cannot be written ({}): a restarted weftd would not "
			     "restore this change",
			     path_.string(), error.message());
	failed_ = bool(error);
}

} // namespace weft::weftd
