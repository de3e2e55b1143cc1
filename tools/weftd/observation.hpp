// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Samples the state of a running lab that `weft top` and `weft web` poll. A sample covers all
// ports. To take it, weftd takes no lock that forwarding a packet takes. Clients compute rates from
// two samples.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cards/card.hpp"
#include "net/fabric/counters.hpp"
#include "weftd/ethernet_control.hpp"

namespace weft::fabric
{
class Link;
class Port;
}

namespace weft::sm
{
class SubnetManager;
}

namespace weft::weftd
{

class LabRuntime;

// Returns @value as text. A part that is not UTF-8, for example in a client's text, is replaced.
std::string json_text(const nlohmann::json &value);

// Returns counters by their names on the control socket.
nlohmann::json counters_of(const fabric::Port &port);
// Returns all ports of switches and of end nodes.
std::vector<fabric::Port *> all_ports(LabRuntime &runtime);
// Returns the state of the active subnet manager, or null if the lab has none.
nlohmann::json state_of_manager(const LabRuntime &runtime);
// Returns the states of all.
nlohmann::json states_of_managers(const LabRuntime &runtime);

// Returns the counters of a card by their names.
nlohmann::json counts_of(const std::vector<cards::Count> &counts);

// Answers "fabric.sample"; weftd(1) documents the contents. Each answer has a generation. A client
// that names the generation of its last answer gets only what has changed since then, so that an
// idle lab is cheap to observe. To this end, a sampler stores the latest values, and the generation
// in which each has changed. The memory for this depends on the lab, and not on the number of
// clients.
class Sampler
{
public:
	explicit Sampler(LabRuntime &runtime);

	// Samples the lab. The answer is complete if @since is not the generation of an earlier
	// answer of this object, or if ports or hosts have been added or removed since. @with_cards
	// adds the counters of cards, which must also have been in that earlier answer.
	nlohmann::json sample(std::uint64_t since, bool with_cards);

private:
	static constexpr std::size_t kColumns = 19;

	struct PortSample {
		// Identifies the port also after changes of the lab, because a fabric never frees
		// a port.
		const fabric::Port *port;
		std::array<std::uint64_t, kColumns> values;
		std::uint64_t changed; // generation
	};
	struct CardSample {
		std::string host;
		std::vector<cards::Count> counts;
		std::uint64_t changed; // generation
	};

	void sample_ports();
	void sample_links();
	void sample_hosts();

	LabRuntime &runtime_;
	// The numbers begin at the time of day in microseconds, so that a weftd that was started
	// again does not use those of the former one.
	std::uint64_t generation_;
	// The first generation with these ports and hosts.
	std::uint64_t oldest_;
	std::vector<PortSample> ports_;
	std::vector<CardSample> cards_;
	std::vector<const fabric::Link *> down_;
	std::vector<std::string> guests_;
	std::uint64_t down_changed_ = 0, guests_changed_ = 0;
	EthernetSampler ethernet_;
};

} // namespace weft::weftd
