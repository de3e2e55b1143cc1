// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Computes the changes that turn a running lab into that of a new lab file.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "weftd/lab.hpp"

namespace weft::weftd
{

// A node whose own properties change is removed and added, and so are its links.
struct LabDifference {
	std::set<std::string> hosts_out, hosts_in;
	std::set<std::string> switches_out, switches_in;
	std::set<std::string> trunks_out, trunks_in;
	std::vector<LabLink> links_out, links_in;
	// These links stay, with new settings.
	std::vector<LabLink> links_set;
	std::set<std::string> ethernets_out, ethernets_in;
	std::vector<LabAttachment> attachments_out, attachments_in;
	// These attachments stay, with new settings of their links.
	std::vector<LabAttachment> attachments_set;
	// The subnet manager starts, stops, or restarts.
	bool manager = false;
	// The same for people, a line for each change; nothing changes if there is none.
	std::vector<std::string> lines;

	// Hosts that are there before and after, and whose machines lose their card in between.
	std::vector<std::string> replaced_hosts() const;
};

LabDifference difference(const Lab &now, const Lab &wanted);

} // namespace weft::weftd
