// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Stores LIDs by port GUID in a file, so that they survive a restart: a line for each port, "GUID
 * LID LMC". The file is replaced as a whole. Lines that cannot be parsed are ignored, and the
 * manager also works without the file.
 */
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sm/lid_table.hpp"

namespace weft::sm
{

class LidFile
{
public:
	/* Uses no file if @path is empty. */
	explicit LidFile(std::filesystem::path path) : path_(std::move(path)) {}

	/* Returns the entries of the file; none if it does not exist. */
	std::vector<LidTable::Entry> load() const;
	/* Writes the file if the contents have changed. */
	void store(const std::vector<LidTable::Entry> &entries);

private:
	const std::filesystem::path path_;
	std::string stored_;
};

} // namespace weft::sm
