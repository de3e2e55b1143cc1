// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Builds the Ethernet segments of a lab: switches, the attachments of guests and cards, and the
// links between them. Each segment has its own event loop, so that a flood in one segment does not
// delay the others.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/loop.hpp"
#include "base/mutex.hpp"
#include "base/reactor_pool.hpp"
#include "net/ethernet/attachment.hpp"
#include "net/ethernet/capture.hpp"
#include "net/ethernet/channel.hpp"
#include "net/ethernet/link.hpp"
#include "net/ethernet/switch.hpp"

namespace weft::ethernet
{

// A copy of a port's state.
struct PortState {
	std::string name;
	Counters counters;
};
struct LinkState {
	std::string name;
	// The attachment's end first; for a trunk, that of the place that comes first in the lab.
	PortState ends[2];
	LinkSettings settings;
	std::shared_ptr<Capture> capture;
};
struct AttachmentState {
	std::string name;
	std::string network;          // the name of its switch
	std::filesystem::path socket; // empty for a card or a trunk
	bool connected;
	bool trunk;
	LinkState link;
};
struct SwitchState {
	std::string name;
	std::size_t addresses; // number of known addresses
};
// A trunk to the part of a segment in another daemon.
struct TrunkConfig {
	std::string near, far; // names of the ports at this daemon's end and at the other end
	bool near_is_first;    // the link's name begins with the near end
	unsigned hosts;        // number of the segment's hosts at the other end
};
struct NetworkState {
	std::vector<SwitchState> switches;        // by name
	std::vector<AttachmentState> attachments; // by name
};

// Thread-safe.
class Network
{
public:
	// All random decisions depend on @seed. @reactor runs all segments. If it is null, each
	// segment has its own thread, up to kMostThreads; further segments share these threads.
	static constexpr std::size_t kMostThreads = 16;
	explicit Network(std::uint64_t seed, Reactor *reactor = nullptr);
	~Network();
	Network(const Network &) = delete;
	Network &operator=(const Network &) = delete;

	// These throw std::invalid_argument if the name already exists, or does not exist. A switch
	// can be removed only if it has no attachments.
	void add_switch(const std::string &name);
	void remove_switch(const std::string &name);
	// Adds a guest's attachment and its link to a switch. Throws std::system_error if it cannot
	// listen on @socket, or std::length_error if the switch has no free port; both without
	// effect.
	// @port is the number of the switch's port, or 0 for the first free one.
	void add_guest(const std::string &name, const std::string &network,
		       const std::filesystem::path &socket, const LinkSettings &settings,
		       unsigned port = 0);
	// Adds a card's attachment in the same way. The card has the other end of @channel.
	void add_card(const std::string &name, const std::string &network,
		      std::shared_ptr<Channel> channel, const LinkSettings &settings,
		      unsigned port = 0);
	// Adds a trunk's attachment, with the name of the far port. The trunk has the other end of
	// @channel.
	void add_trunk(const TrunkConfig &config, const std::string &network,
		       std::shared_ptr<Channel> channel, const LinkSettings &settings);
	// Disconnects the attached guest, if there is one.
	void remove_attachment(const std::string &name);
	void set_link(const std::string &attachment, const LinkSettings &settings);
	// Starts a capture; null stops the current one.
	void set_capture(const std::string &attachment, std::shared_ptr<Capture> capture);

	NetworkState state() const;
	Environment &environment() const { return environment_; }

private:
	struct AttachedLink {
		std::unique_ptr<Attachment> attachment;
		Port *facing; // the port of the switch to which it is linked
		std::unique_ptr<Link> link;
	};

	// A switch and the attachments to it.
	struct Ethernet {
		Ethernet(const std::string &name, std::shared_ptr<Reactor> driver);
		~Ethernet();
		Ethernet(const Ethernet &) = delete;
		Ethernet &operator=(const Ethernet &) = delete;

		void remove(AttachedLink &entry);

		const std::shared_ptr<Reactor> reactor;
		Loop loop;
		// Used on the loop only.
		Switch node;
		std::map<std::string, AttachedLink> attached; // keyed by name
	};

	std::shared_ptr<Ethernet> ethernet(const std::string &name) const WEFT_REQUIRES(mutex_);
	std::shared_ptr<Ethernet> ethernet_of(const std::string &attachment) const;
	// Calls @change with an attachment and its link, on the segment's loop.
	void with_attachment(const std::string &attachment,
			     const std::function<void(AttachedLink &)> &change);
	// Adds an attachment, whose members @make creates on the segment's loop.
	void add(const std::string &name, const std::string &network,
		 const std::function<AttachedLink(Ethernet &)> &make);
	// Returns @attachment with its link to a port of a host.
	AttachedLink link_host(Ethernet &lan, const std::string &name,
			       std::unique_ptr<Attachment> attachment, const LinkSettings &settings,
			       unsigned port);

	const std::uint64_t seed_;
	Reactor *const reactor_;
	Environment &environment_;
	// Must not be held while waiting for a loop.
	mutable Mutex mutex_;
	ReactorPool threads_ WEFT_GUARDED_BY(mutex_);
	std::map<std::string, std::shared_ptr<Ethernet>> ethernets_ WEFT_GUARDED_BY(mutex_);
	std::map<std::string, std::shared_ptr<Ethernet>> attachments_ WEFT_GUARDED_BY(mutex_);
};

} // namespace weft::ethernet
