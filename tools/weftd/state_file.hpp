// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Stores the state with which a new weftd continues the lab of a weftd that has exited: the lab
// file as it was at the start, and the requests since then that still have an effect.
#pragma once

#include <cstdint>
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

// A fault of a card that is armed for its next @count opportunities (cards::Card::armed()).
struct ArmedFault {
	std::string host;
	std::string fault;
	std::uint64_t count;

	bool operator==(const ArmedFault &) const = default;
};

// Used by one thread at a time.
class StateFile
{
public:
	// Maximum number of applied lab files that are kept. Beyond it, the oldest are dropped.
	// Nodes without a GUID in the last file may then get other GUIDs.
	static constexpr std::size_t kMostApplied = 64;
	// Maximum number of restarts that restore the same armed faults.
	static constexpr unsigned kMostRestored = 5;

	// Reads @path if it exists. Throws std::runtime_error if it is not a state file.
	explicit StateFile(std::filesystem::path path);

	// Returns true if the file existed, so that its lab is continued.
	bool continues() const { return continues_; }
	// Must be called before the requests are repeated. A restored fault may crash weftd again,
	// before the file is replaced. The armed faults are therefore dropped, with a warning, if
	// they have been restored kMostRestored times since a fault was armed or weftd exited
	// normally.
	void count_restart();
	// Returns the lab file at the start, or nothing if the lab was the default lab.
	const std::optional<LabText> &lab() const { return lab_; }
	// Returns the requests to the control socket that restore the lab, in order.
	std::vector<std::string> requests() const;

	// Writes the file for a new lab.
	void begin(std::optional<LabText> lab);
	// Writes the file if the request has made a change that must be restored. The file is
	// replaced as a whole, so that it is valid even if the process is killed.
	void record(const nlohmann::json &request, const nlohmann::json &result);
	// Writes the file if @armed, which contains all armed faults of the lab, differs from the
	// faults in the file.
	void record_armed(std::vector<ArmedFault> armed);
	// Records that weftd exits normally, so that the armed faults have not crashed it.
	void record_exit();
	// Returns true if there are armed faults.
	bool has_armed() const { return !armed_.empty(); }

private:
	void keep(std::string key, nlohmann::json request);
	void write();

	const std::filesystem::path path_;
	bool continues_ = false;
	bool failed_ = false; // true if a write has failed, which is logged once
	std::optional<LabText> lab_;
	// Keyed by setting, because a later request for the same setting replaces the earlier one.
	std::vector<std::pair<std::string, nlohmann::json>> requests_;
	// Restored after all requests, when the hosts exist.
	std::vector<ArmedFault> armed_;
	unsigned restored_ = 0; // number of times that these faults were restored
};

} // namespace weft::weftd
