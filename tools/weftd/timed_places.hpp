// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Runs one or more places of a lab in virtual time. Each place has a clock, a fabric and a time
// server of its own, on a thread of its own, so its behaviour does not depend on the places that
// the same process runs.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/file_descriptor.hpp"
#include "weftd/lab.hpp"
#include "weftd/lab_plan.hpp"

namespace weft::weftd
{

class LogHistory;

struct TimedPlaces {
	std::vector<std::string> places; // those of this process
	PlanOptions plan;
	// Each place uses the subdirectory with its name, and rounds.sock is in the directory.
	std::filesystem::path directory;
	std::filesystem::path events;        // empty if there are none
	std::filesystem::path finished_file; // empty if the lab does not end with the scripts
};

// Runs the places until the lab ends, and returns the exit status. The process that has the first
// place of the lab serves the rounds. @lab is the whole lab; @locks are held until the end. Throws
// LabError and std::invalid_argument.
int run_timed_places(const Lab &lab, const TimedPlaces &config, std::vector<FileDescriptor> locks,
		     const FileDescriptor &signals, const std::shared_ptr<LogHistory> &log);

} // namespace weft::weftd
