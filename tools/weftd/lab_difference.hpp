// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Computes the changes that turn a running lab into the lab that a new lab file describes.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "weftd/lab.hpp"

namespace weft::weftd
{

// If the properties of a node change, it is removed and added again with its links.
struct LabDifference {
	std::set<std::string> hosts_out, hosts_in;
	std::set<std::string> switches_out, switches_in;
	std::set<std::string> trunks_out, trunks_in;
	// Trunks of Ethernets that stay, with new settings of their links.
	std::vector<LabTrunk> trunks_set;
	std::vector<LabLink> links_out, links_in;
	// Links that stay, with new settings.
	std::vector<LabLink> links_set;
	std::set<std::string> ethernets_out, ethernets_in;
	std::vector<LabAttachment> attachments_out, attachments_in;
	// Attachments that stay, with new settings of their links.
	std::vector<LabAttachment> attachments_set;
	// True if the subnet manager starts, stops, or restarts.
	bool manager = false;
	bool standby = false; // the same of the one on standby
	// Description for users, with a line for each change; empty if nothing changes.
	std::vector<std::string> lines;

	// Hosts that exist before and after, but whose guests lose their cards in between.
	std::vector<std::string> replaced_hosts() const;
};

LabDifference difference(const Lab &now, const Lab &wanted);

} // namespace weft::weftd
