// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the configuration of a lab, as parsed from its lab file (weft-lab.toml(5)).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <ib/types.hpp>

#include "cards/model.hpp"
#include "net/ethernet/network.hpp"
#include "net/fabric/fabric.hpp"
#include "net/trunk/trunk.hpp"
#include "sm/config.hpp"

namespace weft::weftd
{

// An error in a lab file: "FILE:LINE: reason".
class LabError : public std::runtime_error
{
public:
	using std::runtime_error::runtime_error;
};

// The name of the subnet manager's node.
constexpr const char *kSmNode = "sm";
// The name of the node of the subnet manager on standby.
constexpr const char *kStandbyNode = "sm-standby";

// The way in which a host's guest is connected to its card.
enum class LabBus {
	vfio_user,  // QEMU
	vhost_user, // User-Mode Linux
};

// Settings of a host's guest, which the daemon only passes on to the program that starts the guest.
struct LabBoot {
	// The name of one of Debian's kernels or of a test kernel, or a path.
	std::optional<std::string> kernel;
	std::optional<std::string> stack;                  // "linux" or "weft"
	std::optional<std::string> modules, initrd, share; // paths
	std::optional<std::string> append, memory;
	std::optional<unsigned> cpus;
	bool operator==(const LabBoot &) const = default;
};

struct LabHost {
	std::string name;
	// Number among the hosts that can have guests, from 1; 0 for others. A host keeps it while
	// the lab changes, and has the same one in each part of a lab.
	unsigned number = 0;
	unsigned ports = 1;
	ib::Guid guid = 0;
	LabBus bus = LabBus::vfio_user;
	std::string socket;  // a file name in the socket directory
	bool trusted = true; // its guest may manage the subnet
	const cards::Model *model = nullptr;
	std::set<std::string, std::less<>> flags; // the model's own settings that are true
	bool polled_doorbells = false;
	LabBoot boot;
};

// One end of a link: a node and its port; 0 is the first free port.
struct LabEnd {
	std::string node;
	unsigned port = 0;
	bool operator==(const LabEnd &) const = default;
};

struct LabLink {
	LabEnd ends[2];
	fabric::LinkConfig config;
	std::string where; // FILE:LINE, for errors that are detected later
	// The seed of its random choices is derived from this number. A link keeps it while the lab
	// changes, and has the same one in each part of a lab.
	std::size_t number = 0;

	// Its name in the fabric.
	std::string name() const;
};

// The end of a trunk between the parts of an Ethernet in two places. Its ports have the names
// NETWORK@PLACE/PLACE: port PLACE of the part of the Ethernet that is at a place.
struct LabEthernetEnd {
	std::string network;
	ethernet::TrunkConfig config;
	ethernet::LinkSettings link; // of the half at this place
};

// A link whose other half is in another daemon. The local half is one of the lab's links, to the
// trunk's end, or a link of an Ethernet.
struct LabTrunk {
	std::string name;
	// The port that represents the port of the other daemon: port 1 of a node with the trunk's
	// name, or in a part of a lab the port that the link has in the whole lab. Not used if the
	// trunk belongs to an Ethernet.
	LabEnd end;
	std::optional<LabEthernetEnd> ethernet;
	trunk::Role role = trunk::Role::connects;
	trunk::Address address;
	std::string key_file;
	// In virtual time: the index of the trunk in the lab, and its delay. The trunk then has no
	// address and no key.
	struct Timed {
		std::uint32_t index = 0;
		std::chrono::nanoseconds delay{0};
	};
	std::optional<Timed> timed;
	// Fingerprint of the key in the file; set by the runtime when it reads the file.
	std::optional<trunk::Mac> key_fingerprint;
	std::string where; // FILE:LINE, for errors that are detected later
};

// An Ethernet: a switch, and the hosts that are attached to it.
struct LabEthernet {
	std::string name;
};

// The attachment of a host to an Ethernet.
struct LabAttachment {
	std::string host;
	std::string network;
	ethernet::LinkSettings link;
	// The number of the Ethernet's port. The attachment keeps it while the lab changes, and has
	// the same one in each part of a lab.
	unsigned port = 0;

	// The names of the attachment and of its socket's file.
	std::string name() const { return host + "/eth0"; }
	std::string socket() const { return host + "-eth0.sock"; }
};

// A place: a daemon, usually of another host, that runs a part of the lab.
struct LabPlace {
	std::string name;
	// The address at which it listens for its first trunk; the others have the following ports.
	// The port is 0 if the file has none.
	std::optional<trunk::Address> address;
	std::string where; // FILE:LINE, for errors that are detected later
};

// What a lab file specifies about the places of nodes.
struct LabPlaces {
	struct Node {
		std::string place; // empty if the file does not specify it
		std::string where; // FILE:LINE
	};
	std::vector<LabPlace> places;
	// Switches, hosts and Ethernets by name.
	std::map<std::string, Node, std::less<>> nodes;
	Node manager;
	std::string where; // FILE:LINE of the lab
};

struct LabPart;

struct Lab {
	std::string name; // default GUIDs are derived from it
	std::uint64_t seed = fabric::Fabric::kDefaultSeed;
	LabBus bus = LabBus::vfio_user; // default for hosts without a bus in the file
	bool polled_doorbells = false;  // default for hosts whose model can poll doorbells
	std::vector<fabric::SwitchConfig> switches;
	std::vector<LabHost> hosts;
	std::vector<LabLink> links;
	std::vector<LabTrunk> trunks;
	std::vector<LabEthernet> ethernets;
	std::vector<LabAttachment> attachments;
	std::size_t links_numbered = 0; // the highest number of a link so far
	std::shared_ptr<const LabPlaces> places;
	std::string trunk_key_file; // for trunks between places; empty if there is none
	// If this is a part of a lab: the whole lab, and which part. Null otherwise.
	std::shared_ptr<const LabPart> part;
	bool sm_enabled = true;
	std::string sm_switch; // the switch to which the subnet manager is connected
	sm::Config sm;
	// The switch of a second subnet manager, which is on standby; empty if there is none.
	std::string sm_standby;
	// Returns the second manager's configuration.
	sm::Config standby() const;
	// The end ports in the order in which the subnet manager discovers them.
	std::vector<sm::ExpectedPort> expected_ports;
	std::vector<std::string> warnings; // "FILE:LINE: setting that is probably a mistake"
};

// Settings of hosts whose section in the file has none.
struct LabDefaults {
	LabBus bus = LabBus::vfio_user;
	bool polled_doorbells = false;
};

// The contents of a lab file. Paths in it are relative to the folder.
struct LabText {
	std::string source; // name for error messages
	std::string folder;
	std::string text;
};

// Reads the file. Throws LabError.
LabText read_lab_text(const std::filesystem::path &file);
// Parses @text; @source is its name in errors. @default_name is the lab's name if the file has
// none; default GUIDs are derived from the name. @running is a lab that this one will replace:
// nodes with the same name keep their GUIDs, and links their ports, if the file does not specify
// them; @defaults are then those of @running. Throws LabError.
Lab parse_lab(std::string_view text, const std::string &source,
	      const std::string &default_name = {}, const Lab *running = nullptr,
	      const LabDefaults &defaults = {});
// Makes paths in @lab, which are relative to @folder, absolute.
void resolve_paths(Lab &lab, const std::filesystem::path &folder);
// See parse_lab(); paths in the file are relative to its folder.
Lab load_lab(const std::filesystem::path &file, const std::string &default_name = {});
// Returns a lab with one switch, two hosts and a subnet manager.
Lab default_lab(const std::string &name = {}, const LabDefaults &defaults = {});
// The name of a bus in lab files and options.
std::string_view text_of(LabBus bus);

} // namespace weft::weftd
