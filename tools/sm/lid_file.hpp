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
	/* No file if @path is empty. */
	explicit LidFile(std::filesystem::path path) : path_(std::move(path)) {}

	/* Returns the file's entries; none if there is no file. */
	std::vector<LidTable::Entry> load() const;
	/* Write the file if the contents differ. */
	void store(const std::vector<LidTable::Entry> &entries);

private:
	const std::filesystem::path path_;
	std::string stored_;
};

} // namespace weft::sm
