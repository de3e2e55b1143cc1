// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The configuration of a lab, as parsed from its lab file (weft-lab.toml(5)).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <ib/types.hpp>

#include "cards/model.hpp"
#include "net/ethernet/link.hpp"
#include "net/fabric/fabric.hpp"
#include "net/trunk/trunk.hpp"
#include "sm/config.hpp"

namespace weft::weftd
{

// A lab file that cannot be followed: "FILE:LINE: reason".
class LabError : public std::runtime_error
{
public:
	using std::runtime_error::runtime_error;
};

// The node that the subnet manager runs on.
constexpr const char *kSmNode = "sm";

// The way in which a host's guest is connected to its card.
enum class LabBus {
	vfio_user,  // QEMU
	vhost_user, // User-Mode Linux
};

// Settings of a host's guest, for the program that starts it; the daemon only passes them on.
struct LabBoot {
	// A name of Debian's or a test kernel, or a path.
	std::optional<std::string> kernel;
	std::optional<std::string> stack;                  // "linux" or "weft"
	std::optional<std::string> modules, initrd, share; // paths
	std::optional<std::string> append, memory;
	std::optional<unsigned> cpus;
	bool operator==(const LabBoot &) const = default;
};

struct LabHost {
	std::string name;
	unsigned ports = 1;
	ib::Guid guid = 0;
	LabBus bus = LabBus::vfio_user;
	std::string socket;  // a file name in the socket directory
	bool trusted = true; // its machine may manage the subnet
	const cards::Model *model = nullptr;
	std::set<std::string, std::less<>> flags; // the model's own that are true
	LabBoot boot;
};

// One end of a link: a node and its port, 0 for the first that is free.
struct LabEnd {
	std::string node;
	unsigned port = 0;
	bool operator==(const LabEnd &) const = default;
};

struct LabLink {
	LabEnd ends[2];
	fabric::LinkConfig config;
	std::string where; // FILE:LINE, for errors that show later

	// The fabric's for it.
	std::string name() const;
};

// The far end of a link whose other half is in another daemon. Its own half is one of the lab's
// links, to port 1 of the trunk.
struct LabTrunk {
	std::string name;
	trunk::Role role = trunk::Role::connects;
	trunk::Address address;
	std::string key_file;
	// Of the key in the file. The runtime sets it when it reads the file.
	std::optional<trunk::Mac> key_fingerprint;
	std::string where; // FILE:LINE, for errors that show later
};

// An Ethernet: a switch, and the hosts that are on it.
struct LabEthernet {
	std::string name;
};

// A host's place on an Ethernet.
struct LabAttachment {
	std::string host;
	std::string network;
	ethernet::LinkSettings link;

	// The attachment's, and the file's of its socket.
	std::string name() const { return host + "/eth0"; }
	std::string socket() const { return host + "-eth0.sock"; }
};

struct Lab {
	std::string name; // that default GUIDs are made from
	std::uint64_t seed = fabric::Fabric::kDefaultSeed;
	LabBus bus = LabBus::vfio_user; // of hosts for which the file gives none
	std::vector<fabric::SwitchConfig> switches;
	std::vector<LabHost> hosts;
	std::vector<LabLink> links;
	std::vector<LabTrunk> trunks;
	std::vector<LabEthernet> ethernets;
	std::vector<LabAttachment> attachments;
	bool sm_enabled = true;
	std::string sm_switch; // that the subnet manager is plugged into
	sm::Config sm;
	std::vector<std::string> warnings; // "FILE:LINE: what may not be meant"
};

// A lab file's contents. Paths in it are relative to the folder.
struct LabText {
	std::string source; // names it in errors
	std::string folder;
	std::string text;
};

// Reads the file. Throws LabError.
LabText read_lab_text(const std::filesystem::path &file);
// Reads @text; @source names it in errors. @default_name is the lab's name if the file gives none:
// GUIDs that it does not give are made from the name. @running: a lab that this one is to take the
// place of: nodes of the same name keep their GUIDs and links their ports where the file gives
// none; @bus is then that of @running. Throws LabError.
Lab parse_lab(std::string_view text, const std::string &source,
	      const std::string &default_name = {}, const Lab *running = nullptr,
	      LabBus bus = LabBus::vfio_user);
// Paths in @lab are relative to @folder.
void resolve_paths(Lab &lab, const std::filesystem::path &folder);
// See parse_lab(); paths in the file are relative to its folder.
Lab load_lab(const std::filesystem::path &file, const std::string &default_name = {});
// One switch, two hosts, a subnet manager.
Lab default_lab(const std::string &name = {}, LabBus bus = LabBus::vfio_user);
// The name of a bus in lab files and options.
std::string_view text_of(LabBus bus);

} // namespace weft::weftd
