// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * LIDs by port GUID in a file, so that they last over a restart: a line for each port, "GUID LID
 * LMC". It is replaced as a whole, and what cannot be read in it is left out: a manager works
 * without it.
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
	/* No file if @path is empty. */
	explicit LidFile(std::filesystem::path path) : path_(std::move(path)) {}

	/* Returns the file's entries; none if there is no file. */
	std::vector<LidTable::Entry> load() const;
	/* Write the file if it says other things. */
	void store(const std::vector<LidTable::Entry> &entries);

private:
	const std::filesystem::path path_;
	std::string stored_;
};

} // namespace weft::sm
