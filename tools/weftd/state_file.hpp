// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The state with which a new weftd continues the lab of one that has exited: the lab file
// as it was at the start, and the requests since then that still have an effect.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "weftd/lab.hpp"

namespace weft::weftd
{

// Used by one thread at a time.
class StateFile
{
public:
	// Applied lab files that are kept. If there were more, the oldest are forgotten: nodes to
	// which the last file gives no GUID may then have other GUIDs.
	static constexpr std::size_t kMostApplied = 64;

	// Reads @path if it is there. Throws std::runtime_error if it is no such file.
	explicit StateFile(std::filesystem::path path);

	// Returns true if the file was there: its lab is to be continued.
	bool continues() const { return continues_; }
	// The lab at the start; nothing if it was the default lab.
	const std::optional<LabText> &lab() const { return lab_; }
	// Requests to the control socket that restore the lab, in this order.
	std::vector<std::string> requests() const;

	// Writes the file for a lab that starts now.
	void begin(std::optional<LabText> lab);
	// Writes the file if the request changed something that is to be restored. The file is
	// replaced as a whole, so that a process that is killed leaves a valid one.
	void record(const nlohmann::json &request, const nlohmann::json &result);

private:
	void keep(std::string key, nlohmann::json request);
	void write();

	const std::filesystem::path path_;
	bool continues_ = false;
	bool failed_ = false; // to write it, which is logged once
	std::optional<LabText> lab_;
	// The key is the setting: a later request for the same setting replaces the earlier one.
	std::vector<std::pair<std::string, nlohmann::json>> requests_;
};

} // namespace weft::weftd
