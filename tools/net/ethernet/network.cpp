// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/ethernet/network.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "net/ethernet/card_attachment.hpp"
#include "net/ethernet/guest_attachment.hpp"
#include "net/ethernet/trunk_attachment.hpp"

namespace weft::ethernet
{

namespace
{

// Derives a link's seed. It depends only on the seed and the name, so that a part of a lab behaves
// the same whatever else the lab contains (FNV-1a).
std::uint64_t seed_of(std::uint64_t seed, const std::string &name)
{
	std::uint64_t mixed = 0xcbf29ce484222325 ^ seed;
	for (const char character : name)
		mixed = (mixed ^ static_cast<unsigned char>(character)) * 0x100000001b3;
	return mixed;
}

} // namespace

Network::Ethernet::Ethernet(const std::string &name, std::shared_ptr<Reactor> driver)
    : reactor(std::move(driver)), loop("ethernet", *reactor), node(loop, name)
{
}

Network::Ethernet::~Ethernet()
{
	loop.run([this] {
		for (auto &[name, entry] : attached)
			remove(entry);
		attached.clear();
	});
}

void Network::Ethernet::remove(AttachedLink &entry)
{
	entry.link.reset();
	node.remove_port(*entry.facing);
	entry.attachment.reset();
}

Network::Network(std::uint64_t seed, Reactor *reactor)
    : seed_(seed), reactor_(reactor),
      environment_(reactor ? reactor->environment() : Environment::host()),
      threads_("ethernet", kMostThreads)
{
}

Network::~Network() = default;

void Network::add_switch(const std::string &name)
{
	const MutexLock lock(mutex_);
	if (ethernets_.contains(name))
		throw std::invalid_argument("there is an Ethernet " + name + " already");
	// The caller owns its reactor.
	auto driver = reactor_ ? std::shared_ptr<Reactor>(std::shared_ptr<Reactor>(), reactor_)
			       : threads_.take();
	ethernets_.emplace(name, std::make_shared<Ethernet>(name, std::move(driver)));
}

void Network::remove_switch(const std::string &name)
{
	std::shared_ptr<Ethernet> going;
	const MutexLock lock(mutex_);
	going = ethernet(name);
	if (std::ranges::any_of(attachments_,
				[&](const auto &entry) { return entry.second == going; }))
		throw std::invalid_argument("Ethernet " + name + " has attachments");
	ethernets_.erase(name);
}

void Network::add_guest(const std::string &name, const std::string &network,
			const std::filesystem::path &socket, const LinkSettings &settings,
			unsigned port)
{
	add(name, network, [&](Ethernet &lan) {
		return link_host(lan, name,
				 std::make_unique<GuestAttachment>(lan.loop, name, socket),
				 settings, port);
	});
}

void Network::add_card(const std::string &name, const std::string &network,
		       std::shared_ptr<Channel> channel, const LinkSettings &settings,
		       unsigned port)
{
	add(name, network, [&](Ethernet &lan) {
		return link_host(
			lan, name,
			std::make_unique<CardAttachment>(lan.loop, name, std::move(channel)),
			settings, port);
	});
}

Network::AttachedLink Network::link_host(Ethernet &lan, const std::string &name,
					 std::unique_ptr<Attachment> attachment,
					 const LinkSettings &settings, unsigned port)
{
	Port &facing = port ? lan.node.add_port(port) : lan.node.add_port();
	auto link = std::make_unique<Link>(lan.loop, attachment->port(), facing, settings,
					   seed_of(seed_, name));
	return {std::move(attachment), &facing, std::move(link)};
}

void Network::add_trunk(const TrunkConfig &config, const std::string &network,
			std::shared_ptr<Channel> channel, const LinkSettings &settings)
{
	add(config.far, network, [&](Ethernet &lan) {
		Port &facing = lan.node.add_trunk_port(config.near, config.hosts);
		// The other daemon may have restarted with other hosts.
		auto attachment = std::make_unique<TrunkAttachment>(
			lan.loop, config.far, std::move(channel),
			[&lan, &facing] { lan.node.forget(facing); });
		Port &far = attachment->port();
		auto link = config.near_is_first
				    ? std::make_unique<Link>(lan.loop, facing, far, settings,
							     seed_of(seed_, config.far))
				    : std::make_unique<Link>(lan.loop, far, facing, settings,
							     seed_of(seed_, config.far));
		return AttachedLink{std::move(attachment), &facing, std::move(link)};
	});
}

void Network::add(const std::string &name, const std::string &network,
		  const std::function<AttachedLink(Ethernet &)> &make)
{
	std::shared_ptr<Ethernet> lan;
	{
		const MutexLock lock(mutex_);
		lan = ethernet(network);
		if (!attachments_.emplace(name, lan).second)
			throw std::invalid_argument("there is an attachment " + name + " already");
	}
	try {
		lan->loop.run([&] { lan->attached.emplace(name, make(*lan)); });
	} catch (...) {
		const MutexLock lock(mutex_);
		attachments_.erase(name);
		throw;
	}
}

void Network::remove_attachment(const std::string &name)
{
	const std::shared_ptr<Ethernet> lan = ethernet_of(name);
	with_attachment(name, [&](AttachedLink &entry) {
		lan->remove(entry);
		lan->attached.erase(name);
	});
	const MutexLock lock(mutex_);
	attachments_.erase(name);
}

void Network::set_link(const std::string &attachment, const LinkSettings &settings)
{
	with_attachment(attachment, [&](AttachedLink &entry) { entry.link->set(settings); });
}

void Network::set_capture(const std::string &attachment, std::shared_ptr<Capture> capture)
{
	with_attachment(attachment,
			[&](AttachedLink &entry) { entry.link->set_capture(std::move(capture)); });
}

NetworkState Network::state() const
{
	std::map<std::string, std::shared_ptr<Ethernet>> ethernets;
	{
		const MutexLock lock(mutex_);
		ethernets = ethernets_;
	}
	NetworkState result;
	for (const auto &[network, lan] : ethernets)
		lan->loop.run([&] {
			result.switches.push_back({network, lan->node.addresses()});
			for (const auto &[name, entry] : lan->attached) {
				const Link &link = *entry.link;
				LinkState state{link.name(), {}, link.settings(), link.capture()};
				for (const unsigned side : {0u, 1u})
					state.ends[side] = {link.end(side).name(),
							    link.end(side).counters};
				result.attachments.push_back(
					{name, network, entry.attachment->socket(),
					 entry.attachment->connected(),
					 entry.attachment->is_trunk(), std::move(state)});
			}
		});
	std::ranges::sort(result.attachments, {}, &AttachmentState::name);
	return result;
}

std::shared_ptr<Network::Ethernet> Network::ethernet(const std::string &name) const
{
	const auto found = ethernets_.find(name);
	if (found == ethernets_.end())
		throw std::invalid_argument("there is no Ethernet " + name);
	return found->second;
}

std::shared_ptr<Network::Ethernet> Network::ethernet_of(const std::string &attachment) const
{
	const MutexLock lock(mutex_);
	const auto found = attachments_.find(attachment);
	if (found == attachments_.end())
		throw std::invalid_argument("there is no attachment " + attachment);
	return found->second;
}

void Network::with_attachment(const std::string &attachment,
			      const std::function<void(AttachedLink &)> &change)
{
	const std::shared_ptr<Ethernet> lan = ethernet_of(attachment);
	lan->loop.run([&] {
		const auto found = lan->attached.find(attachment);
		// Another thread is adding or removing the attachment.
		if (found == lan->attached.end())
			throw std::invalid_argument("there is no attachment " + attachment);
		change(found->second);
	});
}

} // namespace weft::ethernet
