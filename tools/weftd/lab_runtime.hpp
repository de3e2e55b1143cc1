// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Runs a lab: owns the emulated fabric, the cards with the servers to which guests connect, and the
// subnet manager, and changes them on request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/loop.hpp"
#include "attach/server.hpp"
#include "base/reactor_pool.hpp"
#include "cards/card.hpp"
#include "net/ethernet/network.hpp"
#include "net/fabric/fabric.hpp"
#include "net/trunk/timed_trunk.hpp"
#include "net/trunk/trunk.hpp"
#include "bus/pci/server.hpp"
#include "weftd/lab.hpp"
#include "weftd/lab_difference.hpp"

namespace weft::sm
{
class SubnetManager;
}

namespace weft::weftd
{

// A host in the fabric: one card, which may or may not be plugged into a guest, or which no guest
// can have.
struct Host {
	Host(const LabHost &config, std::filesystem::path socket_path,
	     std::vector<fabric::Port *> fabric_ports, std::shared_ptr<Reactor> thread,
	     std::size_t mappings, pci::Keeper *keeper);

	// Returns true if a guest has its card.
	bool has_guest() const { return server && server->connected(); }

	const std::string name;
	const unsigned number; // see LabHost
	const ib::Guid guid;
	const std::string_view model;
	const LabBus bus;
	const std::filesystem::path socket; // empty if no guest can have it
	const std::size_t most_mappings;
	LabBoot boot; // changed by LabRuntime only
	const std::vector<fabric::Port *> ports;
	// the card's channel, if the card is attached to an Ethernet
	const std::shared_ptr<ethernet::Channel> ethernet;
	// Reactor of the card; null, like the server, if no guest can have it.
	const std::shared_ptr<Reactor> reactor;
	const std::unique_ptr<Loop> loop;
	const std::unique_ptr<cards::Card> card;
	const std::unique_ptr<pci::Server> server;
};

// A trunk. That of a link has a thread of its own, on which its packets enter the fabric.
struct RunningTrunk {
	RunningTrunk(const LabTrunk &config, fabric::Port &port, trunk::Key key);
	// A trunk of an Ethernet, on a shared thread.
	RunningTrunk(const LabTrunk &config, std::shared_ptr<ethernet::Channel> channel,
		     std::shared_ptr<Reactor> thread, trunk::Key key);

	const std::string name;
	const std::string network; // the Ethernet; empty for a link
	const std::string end;     // name of the port that represents the other daemon
	const std::shared_ptr<Reactor> reactor;
	Loop loop;
	trunk::Trunk trunk;
};

// Carries the frames of trunks in virtual time to other places.
class TimedTransport
{
public:
	// Sends a frame of the trunk with this index, which arrives after @delay.
	virtual void send(const LabTrunk::Timed &trunk, std::span<const std::byte> frame) = 0;

protected:
	~TimedTransport() = default;
};

/*
 * Used by one thread at a time, which is that of the control loop once it exists. References to its
 * parts are valid until the next apply().
 */
class LabRuntime
{
public:
	// Builds @lab and listens for guests in @socket_directory. Throws LabError for errors that
	// are only detected here, and std::system_error for sockets. @reactor runs everything and
	// provides the time; if null, cards have threads of their own and use real time. @keeper is
	// notified of the cards' clients; it may be null. @transport is needed for a part of a lab
	// in virtual time.
	LabRuntime(const Lab &lab, const std::filesystem::path &socket_directory,
		   Reactor *reactor = nullptr, pci::Keeper *keeper = nullptr,
		   TimedTransport *transport = nullptr);
	~LabRuntime();
	LabRuntime(const LabRuntime &) = delete;
	LabRuntime &operator=(const LabRuntime &) = delete;

	// Returns the present lab: as built or applied last, with later changes of its links.
	Lab lab() const;
	// Returns the changes that apply() would make. Throws LabError if it would refuse.
	LabDifference compare(const Lab &wanted) const;
	// Changes the lab to @wanted. Cards that do not change stay in their guests. Throws
	// LabError; the lab is then unchanged, except that cards that were to be replaced have been
	// removed from their guests.
	LabDifference apply(const Lab &wanted);

	// Returns a number that each apply() that may invalidate references increases.
	std::uint64_t changes() const { return changes_; }

	// Environment that provides the lab's time.
	Environment &environment() const;
	fabric::Fabric &fabric() { return fabric_; }
	const std::vector<std::unique_ptr<Host>> &hosts() const { return hosts_; }
	const std::vector<std::unique_ptr<RunningTrunk>> &trunks() const { return trunks_; }
	// A subnet manager, and the name of its node.
	struct Manager {
		sm::SubnetManager *manager;
		const char *node;
	};
	// Handles a frame that arrives on a trunk in virtual time, which has this index. Returns
	// what is wrong, or null.
	const char *arrive(std::uint32_t trunk, std::span<const std::byte> frame);
	// Returns true if the link is a trunk in virtual time, whose delay is constant.
	bool is_timed(const fabric::Link &link) const;
	// Returns the subnet managers: that of the lab, and the one on standby.
	std::vector<Manager> subnet_managers() const;
	// Returns the one that is master, or else the first. Returns null if there is none.
	sm::SubnetManager *subnet_manager() const { return active_manager().manager; }
	Manager active_manager() const;

	// Finds a link by its own name ("node1/1-switch1/1"), by a port ("node1/1"), or by a node
	// that has one link. Throws std::invalid_argument with the reason.
	fabric::Link &find_link(std::string_view name) const;

	ethernet::Network &ethernet() { return ethernet_; }
	// Finds an attachment by the name of its link ("node1/eth0-lan/1") or of either port.
	// Returns nothing if there is none.
	std::optional<ethernet::AttachmentState> find_attachment(std::string_view name) const;

private:
	// Returns @wanted with the fingerprints of its trunks' keys. Throws LabError if this lab
	// cannot be changed to it at all, or if the key file of a new or changed trunk is
	// unsuitable.
	Lab complete(Lab wanted) const;
	// See compare(). @wanted: from complete().
	LabDifference compare_complete(const Lab &wanted) const;
	void change(const LabDifference &changes, const Lab &wanted);
	void remove_hosts(const std::set<std::string> &names);
	void add_hosts(const LabDifference &changes, const Lab &wanted);
	void remove_trunks(const std::set<std::string> &names);
	void add_trunks(const LabDifference &changes, const Lab &wanted);
	std::unique_ptr<RunningTrunk> start_trunk(const LabTrunk &config, trunk::Key key);
	void remove_link(const LabLink &link);
	void add_link(const LabLink &link);
	void start_managers();
	std::unique_ptr<sm::SubnetManager> make_manager(sm::Config config, const char *node);
	// Adds or removes the port of a subnet manager's node.
	void set_manager_port(const char *node, bool before, bool after);
	// Allow programs to attach to the node, or forbid it.
	void allow_attaching(const std::string &node, std::vector<fabric::LocalAccess *> ports,
			     std::uint32_t first_number, bool trusted);
	void end_attached(const std::string &node);
	void remove_ethernets(const LabDifference &changes);
	void add_ethernets(const LabDifference &changes);
	// Returns the number of mappings of guest memory that each added host may have. Throws
	// LabError if few are left.
	std::size_t share_of_mappings(const LabDifference &changes, const Lab &wanted) const;
	// Makes the switch of an untrusted host restrict the host's management packets, or stops
	// this.
	void restrict(const LabLink &link, bool restricted);
	fabric::Port &port_of(const LabEnd &end, const std::string &where);
	std::shared_ptr<Reactor> thread_for_card();

	std::uint64_t changes_ = 0;
	const std::filesystem::path socket_directory_;
	Reactor *const reactor_;
	pci::Keeper *const keeper_;
	TimedTransport *const transport_;
	// Threads of the cards; if there are few cards, each card has its own.
	ReactorPool threads_;
	// Threads of the trunks of Ethernets, of which each place can have many.
	static constexpr std::size_t kMostTrunkThreads = 16;
	ReactorPool trunk_threads_{"trunks", kMostTrunkThreads};
	// The present lab, updated in each step of a change. A host that could not be created may
	// be in it and not in hosts_.
	Lab lab_;
	// The hosts of lab_ that are not trusted, by name.
	std::set<std::string, std::less<>> untrusted_;
	fabric::Fabric fabric_;
	ethernet::Network ethernet_;
	std::vector<std::unique_ptr<Host>> hosts_;
	std::vector<std::unique_ptr<RunningTrunk>> trunks_;
	// Trunks in virtual time by their indices, and their loop, which is null in real time.
	const std::unique_ptr<Loop> timed_loop_;
	std::map<std::uint32_t, std::unique_ptr<trunk::TimedTrunk>> timed_trunks_;
	std::unique_ptr<sm::SubnetManager> subnet_manager_, standby_manager_;
	// The server for attached programs has a thread of its own; null in virtual time.
	std::unique_ptr<Loop> attach_loop_;
	std::unique_ptr<attach::Server> attach_;
	// The M_Key of every subnet manager, also after a restart of the manager, if the lab
	// specifies none. See choose_mkey().
	const std::uint64_t mkey_;
};

} // namespace weft::weftd
