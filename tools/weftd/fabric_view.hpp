// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Describes the whole lab for the request fabric.show, in steps of bounded work, so that the
// control server can answer other clients in between.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace weft::fabric
{
class Link;
}

namespace weft::weftd
{

class LabRuntime;

nlohmann::json describe(const fabric::Link &link);

// FabricView - is used by the thread that uses the runtime. Each part of the lab is described as it
// is at the time of its step. If the lab is changed (LabRuntime::apply()) between two steps, the
// view begins again; after kMostBegins times, it describes all parts in one step, so that a client
// that changes the lab without a pause does not delay the answer for ever.
class FabricView
{
public:
	// Number of hosts, switches, links and trunks that a step describes.
	static constexpr std::size_t kItemsPerStep = 32;
	static constexpr unsigned kMostBegins = 4;

	// @runtime must outlive the view. @with_lids: include the LIDs of all ports of the subnet.
	FabricView(LabRuntime &runtime, bool with_lids);

	// Returns the description, a JSON object, or nothing if there are more steps.
	std::optional<std::string> step();

private:
	struct Section {
		const char *name;
		std::size_t items;
		std::function<nlohmann::json(std::size_t item)> describe;
	};

	void begin();

	LabRuntime &runtime_;
	const bool with_lids_;
	std::uint64_t changes_ = 0; // LabRuntime::changes() at begin()
	unsigned begins_ = 0;
	std::string text_;
	// The sections that are described item by item, and the next item.
	std::vector<Section> sections_;
	std::size_t section_ = 0, item_ = 0;
	nlohmann::json rest_; // the other members
};

} // namespace weft::weftd
