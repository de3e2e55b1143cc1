// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Holds the fabric of a lab: all ports, links and switches. It does not depend on a subnet manager:
 * a switch forwards by its tables, which are empty until MADs set them.
 */
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.hpp"
#include "net/fabric/link.hpp"
#include "net/fabric/port.hpp"

namespace weft
{
class Reactor;
}

namespace weft::fabric
{

class Switch;
class Timeline;

struct SwitchConfig {
	std::string name{};
	unsigned ports = 36;
	/* If 0, it is derived from the fabric's seed and the number of the switch. */
	ib::Guid guid = 0;
	ib::Mtu mtu = ib::Mtu::mtu_4096;
	/* VLCap encoding (ib::vl_count()). */
	unsigned vl_cap = 4;
	/* True if the switch accepts one SLtoVL table for all its ports in one SMP. */
	bool optimized_sl_to_vl = true;
};

/*
 * Thread-safe. Nodes attached to ports must detach before the fabric is destroyed, and all packets
 * must have been destroyed.
 */
class Fabric
{
public:
	/* All random decisions depend on @seed, which is logged. */
	/*
	 * Delayed tasks run on @reactor and use its time; if null, they run on a thread of the
	 * fabric.
	 */
	explicit Fabric(std::uint64_t seed = kDefaultSeed, Reactor *reactor = nullptr);
	Fabric(const Fabric &) = delete;
	Fabric &operator=(const Fabric &) = delete;
	~Fabric();

	static constexpr std::uint64_t kDefaultSeed = 0x77656674;
	std::uint64_t seed() const { return seed_; }

	/* Adds a port for a card, a subnet manager or a test. */
	Port &add_port(std::string name, int credits_per_vl = Port::kDefaultCredits);
	Switch &add_switch(SwitchConfig config);
	/*
	 * Throws std::invalid_argument if one of the ports already has a link, or if both are the
	 * same. The seed of the link's random choices is derived from @number; the default is the
	 * number of links made so far.
	 */
	Link &connect(Port &a, Port &b, const LinkConfig &config = {},
		      std::optional<std::size_t> number = std::nullopt);

	/*
	 * These remove parts while packets are in flight. Removed ports and links are kept, because
	 * packets may refer to them and threads may use them. They are reused for the next part
	 * with the same name, and the counters of a port continue. If kMostRemoved ports or links
	 * are kept, adding a new name throws std::length_error.
	 */
	void disconnect(Link &link);
	/* @port must be an end port without a link, whose node has detached. */
	void remove_port(Port &port);
	/* Also removes the switch's links. Must not be called on a thread of the fabric. */
	void remove_switch(Switch &sw);

	static constexpr std::size_t kMostRemoved = 16384;

	/*
	 * Return the part with that name, or null if there is none. The name of a link is
	 * "PORT-PORT", in either order.
	 */
	Port *find_port(std::string_view name) const;
	Switch *find_switch(std::string_view name) const;
	Link *find_link(std::string_view name) const;

	/* These return all parts, in the order of creation. */
	std::vector<Link *> links() const;
	std::vector<Switch *> switches() const;
	std::vector<Port *> end_ports() const;

	/* Schedules delayed packets and traps. */
	Timeline &timeline() { return *timeline_; }

private:
	Port &make_port(std::string name, int credits_per_vl) WEFT_REQUIRES(mutex_);
	void put_away(Port &port) WEFT_REQUIRES(mutex_);

	const std::uint64_t seed_;
	std::unique_ptr<Timeline> timeline_;
	mutable Mutex mutex_;
	/* Includes the ports of switches. */
	std::vector<std::unique_ptr<Port>> ports_ WEFT_GUARDED_BY(mutex_);
	std::vector<Port *> end_ports_ WEFT_GUARDED_BY(mutex_);
	std::vector<std::unique_ptr<Switch>> switches_ WEFT_GUARDED_BY(mutex_);
	/* Both are indexed by the names that the objects store. */
	std::unordered_map<std::string_view, Port *> ports_by_name_ WEFT_GUARDED_BY(mutex_);
	std::unordered_map<std::string_view, Switch *> switches_by_name_ WEFT_GUARDED_BY(mutex_);
	std::vector<std::unique_ptr<Link>> links_ WEFT_GUARDED_BY(mutex_);
	/* Removed parts, keyed by name; see disconnect(). */
	std::map<std::string, std::unique_ptr<Port>, std::less<>>
		removed_ports_ WEFT_GUARDED_BY(mutex_);
	std::map<std::string, std::unique_ptr<Link>, std::less<>>
		removed_links_ WEFT_GUARDED_BY(mutex_);
	/* Numbers of parts created so far, from which seeds and GUIDs are derived. */
	std::size_t links_made_ WEFT_GUARDED_BY(mutex_) = 0;
	std::size_t switches_made_ WEFT_GUARDED_BY(mutex_) = 0;
};

} // namespace weft::fabric
