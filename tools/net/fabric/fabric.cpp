// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/fabric/fabric.hpp"

#include <algorithm>
#include <stdexcept>

#include <spdlog/spdlog.h>

#include "net/fabric/switch.hpp"
#include "net/fabric/timeline.hpp"

namespace weft::fabric
{

namespace
{

/* Derives a number for an index from a seed (the finaliser of splitmix64). */
std::uint64_t derive(std::uint64_t seed, std::uint64_t index)
{
	std::uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

template<class Thing>
Thing *find_by_name(const std::unordered_map<std::string_view, Thing *> &things,
		    std::string_view name)
{
	const auto found = things.find(name);
	return found == things.end() ? nullptr : found->second;
}

/* Removes an object from the list that owns it. */
template<class Thing>
std::unique_ptr<Thing> take(std::vector<std::unique_ptr<Thing>> &things, const Thing &which)
{
	const auto found = std::ranges::find(things, &which, &std::unique_ptr<Thing>::get);
	if (found == things.end())
		throw std::invalid_argument(which.name() + " is not of this fabric");
	std::unique_ptr<Thing> owned = std::move(*found);
	things.erase(found);
	return owned;
}

} // namespace

Fabric::Fabric(std::uint64_t seed, Reactor *reactor)
    : seed_(seed), timeline_(std::make_unique<Timeline>(reactor))
{
	spdlog::info("fabric: seed {:#x}", seed);
}

Fabric::~Fabric()
{
	/* No scheduled task may run while links and switches are being destroyed. */
	timeline_->stop();
	/*
	 * Switches must be destroyed before the ports from which they detach, and to which queues
	 * return credits.
	 */
	switches_.clear();
	links_.clear();
	removed_links_.clear();
}

Port &Fabric::make_port(std::string name, int credits_per_vl)
{
	if (find_by_name(ports_by_name_, name))
		throw std::invalid_argument("port " + name + " exists already");
	if (auto known = removed_ports_.find(name); known != removed_ports_.end()) {
		ports_.push_back(std::move(known->second));
		removed_ports_.erase(known);
	} else {
		if (removed_ports_.size() >= kMostRemoved)
			throw std::length_error(
				"too many removed ports are kept; no new ones can be added");
		ports_.push_back(
			std::make_unique<Port>(std::move(name), *timeline_, credits_per_vl));
	}
	Port &port = *ports_.back();
	ports_by_name_.emplace(port.name(), &port);
	return port;
}

/* Keeps a removed port, which packets may still refer to. */
void Fabric::put_away(Port &port)
{
	ports_by_name_.erase(port.name());
	removed_ports_.insert_or_assign(port.name(), take(ports_, port));
}

Port &Fabric::add_port(std::string name, int credits_per_vl)
{
	const MutexLock lock(mutex_);
	end_ports_.push_back(&make_port(std::move(name), credits_per_vl));
	return *end_ports_.back();
}

Switch &Fabric::add_switch(SwitchConfig config)
{
	const MutexLock lock(mutex_);
	if (find_by_name(switches_by_name_, config.name))
		throw std::invalid_argument("switch " + config.name + " exists already");
	if (config.ports == 0 || config.ports > 254)
		throw std::invalid_argument("switch " + config.name +
					    ": a switch has 1 to 254 ports");
	if (config.guid == 0) {
		/*
		 * The GUID is locally administered, unique among the fabric's switches, and the
		 * same in each run.
		 */
		config.guid = 0x0200000000000000 | (derive(seed_, 0) & 0x0000ffffffff0000) |
			      (switches_made_ + 1);
	}
	std::vector<Port *> ports;
	try {
		for (unsigned number = 1; number <= config.ports; number++)
			ports.push_back(&make_port(config.name + "/" + std::to_string(number),
						   Port::kDefaultCredits));
	} catch (...) {
		/* If one port cannot be added, all of them are removed again. */
		for (Port *port : ports)
			put_away(*port);
		throw;
	}
	switches_made_++;
	switches_.push_back(std::make_unique<Switch>(config, std::move(ports), *timeline_));
	Switch &made = *switches_.back();
	switches_by_name_.emplace(made.name(), &made);
	return made;
}

Link &Fabric::connect(Port &a, Port &b, const LinkConfig &config, std::optional<std::size_t> number)
{
	const MutexLock lock(mutex_);
	if (&a == &b)
		throw std::invalid_argument("port " + a.name() + " cannot be linked to itself");
	for (const Port *port : {&a, &b})
		if (port->link())
			throw std::invalid_argument("port " + port->name() + " has a link already");
	std::string name = a.name() + "-" + b.name();
	if (auto known = removed_links_.find(name); known != removed_links_.end()) {
		links_.push_back(std::move(known->second));
		removed_links_.erase(known);
		links_.back()->restore(config);
		return *links_.back();
	}
	if (removed_links_.size() >= kMostRemoved)
		throw std::length_error(
			"too many removed links are kept; no new ones can be added");
	++links_made_;
	links_.push_back(std::make_unique<Link>(std::move(name), a, b, config,
						derive(seed_, number.value_or(links_made_)),
						*timeline_));
	return *links_.back();
}

void Fabric::disconnect(Link &link)
{
	/* The fabric's lock is not held, because nodes that are notified may call the fabric. */
	link.remove();
	const MutexLock lock(mutex_);
	removed_links_.insert_or_assign(link.name(), take(links_, link));
}

void Fabric::remove_port(Port &port)
{
	const MutexLock lock(mutex_);
	if (port.link())
		throw std::invalid_argument("port " + port.name() + " has a link");
	std::erase(end_ports_, &port);
	put_away(port);
}

void Fabric::remove_switch(Switch &sw)
{
	for (unsigned number = 1; number <= sw.port_count(); number++)
		if (Link *link = sw.port(number).link())
			disconnect(*link);
	std::vector<Port *> ports;
	for (unsigned number = 1; number <= sw.port_count(); number++)
		ports.push_back(&sw.port(number));
	std::unique_ptr<Switch> going;
	{
		const MutexLock lock(mutex_);
		going = take(switches_, sw);
		switches_by_name_.erase(going->name());
	}
	/* The destructor waits for other threads, so it runs without the fabric's lock. */
	going.reset();
	const MutexLock lock(mutex_);
	for (Port *port : ports)
		put_away(*port);
}

Port *Fabric::find_port(std::string_view name) const
{
	const MutexLock lock(mutex_);
	return find_by_name(ports_by_name_, name);
}

Switch *Fabric::find_switch(std::string_view name) const
{
	const MutexLock lock(mutex_);
	return find_by_name(switches_by_name_, name);
}

Link *Fabric::find_link(std::string_view name) const
{
	const MutexLock lock(mutex_);
	for (const auto &link : links_)
		if (name == link->name() || name == link->end(1).name() + "-" + link->end(0).name())
			return link.get();
	return nullptr;
}

std::vector<Link *> Fabric::links() const
{
	const MutexLock lock(mutex_);
	std::vector<Link *> all;
	for (const auto &link : links_)
		all.push_back(link.get());
	return all;
}

std::vector<Switch *> Fabric::switches() const
{
	const MutexLock lock(mutex_);
	std::vector<Switch *> all;
	for (const auto &sw : switches_)
		all.push_back(sw.get());
	return all;
}

std::vector<Port *> Fabric::end_ports() const
{
	const MutexLock lock(mutex_);
	return end_ports_;
}

} // namespace weft::fabric
