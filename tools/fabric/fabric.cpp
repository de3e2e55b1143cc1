// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "fabric/fabric.hpp"

#include <algorithm>
#include <stdexcept>

#include <spdlog/spdlog.h>

#include "fabric/switch.hpp"
#include "fabric/timeline.hpp"

namespace weft::fabric
{

namespace
{

/* A well mixed number for each index of a seed (the finaliser of splitmix64). */
std::uint64_t derive(std::uint64_t seed, std::uint64_t index)
{
	std::uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

template<class Thing>
Thing *find_by_name(const std::vector<std::unique_ptr<Thing>> &things, std::string_view name)
{
	for (const auto &thing : things)
		if (thing->name() == name)
			return thing.get();
	return nullptr;
}

} // namespace

Fabric::Fabric(std::uint64_t seed) : seed_(seed), timeline_(std::make_unique<Timeline>())
{
	spdlog::info("fabric: seed {:#x}", seed);
}

Fabric::~Fabric()
{
	/* Nothing that was planned may find links or switches half gone. */
	timeline_->stop();
	/* Switches detach from ports that are still there; queues give credits back to them. */
	switches_.clear();
	links_.clear();
}

Port &Fabric::add_port(std::string name, int credits_per_vl)
{
	std::lock_guard lock(mutex_);
	if (find_by_name(ports_, name))
		throw std::invalid_argument("port " + name + " exists already");
	end_ports_.push_back(
		ports_.emplace_back(std::make_unique<Port>(std::move(name), credits_per_vl)).get());
	return *end_ports_.back();
}

Switch &Fabric::add_switch(SwitchConfig config)
{
	std::lock_guard lock(mutex_);
	if (find_by_name(switches_, config.name))
		throw std::invalid_argument("switch " + config.name + " exists already");
	if (config.ports == 0 || config.ports > 254)
		throw std::invalid_argument("switch " + config.name +
					    ": a switch has 1 to 254 ports");
	if (config.guid == 0) {
		/* Locally administered, unique among the fabric's switches, the same each time. */
		config.guid = 0x0200000000000000 | (derive(seed_, 0) & 0x0000ffffffff0000) |
			      (switches_.size() + 1);
	}
	std::vector<Port *> ports;
	for (unsigned number = 1; number <= config.ports; number++)
		ports.push_back(ports_.emplace_back(std::make_unique<Port>(config.name + "/" +
									   std::to_string(number)))
					.get());
	switches_.push_back(std::make_unique<Switch>(config, std::move(ports), *timeline_));
	return *switches_.back();
}

Link &Fabric::connect(Port &a, Port &b, const LinkConfig &config)
{
	std::lock_guard lock(mutex_);
	if (&a == &b)
		throw std::invalid_argument("port " + a.name() + " cannot be linked to itself");
	for (const Port *port : {&a, &b})
		if (port->link())
			throw std::invalid_argument("port " + port->name() + " has a link already");
	links_.push_back(std::make_unique<Link>(a.name() + "-" + b.name(), a, b, config,
						derive(seed_, links_.size() + 1), *timeline_));
	return *links_.back();
}

Port *Fabric::find_port(std::string_view name) const
{
	std::lock_guard lock(mutex_);
	return find_by_name(ports_, name);
}

Switch *Fabric::find_switch(std::string_view name) const
{
	std::lock_guard lock(mutex_);
	return find_by_name(switches_, name);
}

Link *Fabric::find_link(std::string_view name) const
{
	std::lock_guard lock(mutex_);
	for (const auto &link : links_)
		if (name == link->name() || name == link->end(1).name() + "-" + link->end(0).name())
			return link.get();
	return nullptr;
}

std::vector<Link *> Fabric::links() const
{
	std::lock_guard lock(mutex_);
	std::vector<Link *> all;
	for (const auto &link : links_)
		all.push_back(link.get());
	return all;
}

std::vector<Switch *> Fabric::switches() const
{
	std::lock_guard lock(mutex_);
	std::vector<Switch *> all;
	for (const auto &sw : switches_)
		all.push_back(sw.get());
	return all;
}

std::vector<Port *> Fabric::end_ports() const
{
	std::lock_guard lock(mutex_);
	return end_ports_;
}

} // namespace weft::fabric
