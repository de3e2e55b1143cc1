// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "sm/lid_file.hpp"

#include <cerrno>
#include <fstream>
#include <sstream>
#include <system_error>

#include <spdlog/spdlog.h>

namespace weft::sm
{

std::vector<LidTable::Entry> LidFile::load() const
{
	std::vector<LidTable::Entry> entries;
	std::ifstream stream(path_);
	std::string line;
	unsigned wrong = 0;
	/* A subnet has no more ports than LIDs, so stop reading an endless file there. */
	for (unsigned number = 0; number <= ib::lid_unicast_last && std::getline(stream, line);
	     number++) {
		std::istringstream words(line);
		std::uint64_t guid = 0;
		unsigned base = 0, lmc = 0;
		std::string rest;
		if (words >> std::hex >> guid >> std::dec >> base >> lmc && !(words >> rest) &&
		    guid != 0 && base <= ib::lid_unicast_last && lmc <= LidTable::kLmcMax)
			entries.push_back(
				{guid, static_cast<ib::Lid>(base), static_cast<std::uint8_t>(lmc)});
		else
			wrong++;
	}
	if (wrong != 0)
		spdlog::warn("sm: {}: {} lines name no LID of a port", path_.string(), wrong);
	return entries;
}

void LidFile::store(const std::vector<LidTable::Entry> &entries)
{
	if (path_.empty())
		return;
	std::string text;
	for (const auto &entry : entries)
		text += fmt::format("{:#018x} {} {}\n", std::uint64_t{entry.guid}, entry.base,
				    entry.lmc);
	if (text == stored_)
		return;
	/* Write the file once per change, even if writing fails. */
	stored_ = text;
	const auto fresh = path_.string() + ".new";
	std::error_code error;
	{
		errno = 0;
		std::ofstream stream(fresh, std::ios::trunc);
		stream << text;
		if (!stream.flush())
			error.assign(errno ? errno : EIO, std::generic_category());
	}
	if (!error)
		std::filesystem::rename(fresh, path_, error);
	if (error)
		spdlog::warn("sm: {} cannot be written ({}): LIDs may change after a restart",
			     path_.string(), error.message());
}

} // namespace weft::sm
