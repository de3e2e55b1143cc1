// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "ethernet/network.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "ethernet/card_place.hpp"
#include "ethernet/station.hpp"

namespace weft::ethernet
{

namespace
{

// The same for the same name whatever else the lab has (FNV-1a, and the seed mixed in).
std::uint64_t seed_of(std::uint64_t seed, const std::string &name)
{
	std::uint64_t mixed = 0xcbf29ce484222325 ^ seed;
	for (const char character : name)
		mixed = (mixed ^ static_cast<unsigned char>(character)) * 0x100000001b3;
	return mixed;
}

} // namespace

Network::Network(std::uint64_t seed, Reactor *reactor)
    : seed_(seed), loop_(reactor ? std::make_unique<Loop>("ethernet", *reactor)
				 : std::make_unique<Loop>("ethernet"))
{
}

Network::~Network()
{
	loop_->run([this] {
		for (auto &[name, place] : places_)
			remove(place);
		places_.clear();
		switches_.clear();
	});
}

void Network::add_switch(const std::string &name)
{
	loop_->run([&] {
		if (switches_.contains(name))
			throw std::invalid_argument("there is an Ethernet " + name + " already");
		switches_.emplace(name, std::make_unique<Switch>(*loop_, name));
	});
}

void Network::remove_switch(const std::string &name)
{
	loop_->run([&] {
		const Switch &going = switch_of(name);
		if (std::ranges::any_of(places_, [&](const auto &entry) {
			    return entry.second.network == &going;
		    }))
			throw std::invalid_argument("Ethernet " + name + " has stations");
		switches_.erase(name);
	});
}

void Network::add_station(const std::string &name, const std::string &network,
			  const std::filesystem::path &socket, const LinkSettings &settings)
{
	add(name, network, settings,
	    [&] { return std::make_unique<Station>(*loop_, name, socket); });
}

void Network::add_card(const std::string &name, const std::string &network,
		       std::shared_ptr<Channel> channel, const LinkSettings &settings)
{
	add(name, network, settings,
	    [&] { return std::make_unique<CardPlace>(*loop_, name, std::move(channel)); });
}

void Network::add(const std::string &name, const std::string &network, const LinkSettings &settings,
		  const std::function<std::unique_ptr<Attachment>()> &make)
{
	loop_->run([&] {
		if (places_.contains(name))
			throw std::invalid_argument("there is a station " + name + " already");
		Place place{&switch_of(network), make(), nullptr, nullptr};
		place.facing = &place.network->add_port();
		place.link = std::make_unique<Link>(*loop_, place.station->port(), *place.facing,
						    settings, seed_of(seed_, name));
		places_.emplace(name, std::move(place));
	});
}

void Network::remove_station(const std::string &name)
{
	loop_->run([&] {
		remove(place_of(name));
		places_.erase(name);
	});
}

void Network::remove(Place &place)
{
	place.link.reset();
	place.network->remove_port(*place.facing);
	place.station.reset();
}

void Network::set_link(const std::string &station, const LinkSettings &settings)
{
	loop_->run([&] { place_of(station).link->set(settings); });
}

void Network::set_capture(const std::string &station, std::shared_ptr<Capture> capture)
{
	loop_->run([&] { place_of(station).link->set_capture(std::move(capture)); });
}

NetworkState Network::state() const
{
	NetworkState result;
	loop_->run([&] {
		for (const auto &[name, node] : switches_)
			result.switches.push_back({name, node->addresses()});
		for (const auto &[name, place] : places_) {
			const Link &link = *place.link;
			LinkState state{link.name(), {}, link.settings(), link.capture()};
			for (const unsigned side : {0u, 1u})
				state.ends[side] = {link.end(side).name(), link.end(side).counters};
			result.stations.push_back({name, place.network->name(),
						   place.station->socket(),
						   place.station->connected(), std::move(state)});
		}
	});
	return result;
}

Switch &Network::switch_of(const std::string &name)
{
	const auto found = switches_.find(name);
	if (found == switches_.end())
		throw std::invalid_argument("there is no Ethernet " + name);
	return *found->second;
}

Network::Place &Network::place_of(const std::string &name)
{
	const auto found = places_.find(name);
	if (found == places_.end())
		throw std::invalid_argument("there is no station " + name);
	return found->second;
}

} // namespace weft::ethernet
