// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the protocol between weftd and the library that replaces libibumad in an attached
// program. They exchange messages over Unix sockets of type SOCK_SEQPACKET, in the host's byte
// order unless a type says otherwise.
//
// A connection begins with one Request from the library and its reply. The kind of the request
// determines what follows:
//   - describe, add_agent, remove_agent: Nothing follows. The server closes the connection.
//   - open: The connection represents an opened port until the program closes it. Each further
//     message, in either direction, is a UserMad followed by a MAD or an RMPP message. When the
//     connection is closed, the program's agents, sends and receives on this port end.
//   - become_sm: The port's IsSM bit (PortInfo) is set until the program closes the connection.
//
// In a message of more than kMostInline bytes, only the UserMad is sent inline. The remaining bytes
// are in a memfd, whose descriptor is sent with the message.
#pragma once

#include <cstddef>
#include <cstdint>

#include <ib/endian.hpp>

namespace weft::attach
{

constexpr std::uint32_t kVersion = 1;
constexpr char kSocketName[] = "attach.sock";
// Environment variables of an attached program: the path of the socket, and the node.
constexpr char kSocketVariable[] = "WEFT_ATTACH_SOCKET";
constexpr char kNodeVariable[] = "WEFT_ATTACH_NODE";
constexpr char kCaName[] = "weft0";

constexpr std::size_t kMostNodeName = 128; // including the terminating zero
constexpr unsigned kMostPorts = 2;
constexpr unsigned kMostPkeys = 128;
// Limit of agents of one opened port, as in umad.
constexpr unsigned kMostAgents = 32;
// The size of a message without its UserMad is at most 16 MiB, as in the kernel's stack, and at
// most kMostInline if it is sent without a file.
constexpr std::size_t kMostBytes = std::size_t{16} << 20;
constexpr std::size_t kMostInline = std::size_t{32} << 10;

enum class Kind : std::uint32_t { describe = 1, open, add_agent, remove_agent, become_sm };

struct AgentRequest {
	std::uint32_t id; // the agent of remove_agent
	std::uint8_t qpn;
	std::uint8_t mgmt_class;
	std::uint8_t mgmt_class_version;
	std::uint8_t rmpp_version;
	std::uint32_t oui;
	std::uint32_t flags; // UMAD_USER_RMPP
	std::uint64_t method_mask[2];
};
constexpr std::uint32_t kUserRmpp = 1;

struct Request {
	std::uint32_t version; // kVersion
	Kind kind;
	char node[kMostNodeName];
	std::uint32_t port;
	std::uint32_t reserved;
	std::uint64_t token; // token of the opened port, for add_agent and remove_agent
	AgentRequest agent;
};
static_assert(sizeof(AgentRequest) == 32 && sizeof(Request) == 184);

// The reply to all requests except describe.
struct Reply {
	std::int32_t error; // 0 or an errno
	std::uint32_t agent;
	std::uint64_t token;
};
static_assert(sizeof(Reply) == 16);

struct PortDescription {
	std::uint32_t number;
	std::uint32_t lid, lmc, sm_lid, sm_sl, state, phys_state;
	std::uint32_t rate; // Gb/s
	std::uint32_t capability_mask;
	std::uint32_t pkeys; // entries of the table
	std::uint64_t gid_prefix, port_guid;
	std::uint16_t pkey[kMostPkeys];
};

struct Description {
	std::int32_t error;
	std::uint32_t node_type;
	std::uint32_t ports;
	std::uint32_t device_id, revision;
	std::uint32_t reserved;
	std::uint64_t node_guid, system_guid;
	PortDescription port[kMostPorts];
};
static_assert(sizeof(PortDescription) == 312 && sizeof(Description) == 664);

// The header that umad has before each MAD (struct ib_user_mad).
struct UserMad {
	std::uint32_t agent;
	std::uint32_t status; // 0, or the errno with which a send is returned
	std::uint32_t timeout_ms;
	std::uint32_t retries;
	std::uint32_t length; // length of this header and the data after it
	ib::be32 qpn;
	ib::be32 qkey;
	ib::be16 lid;
	std::uint8_t sl;
	std::uint8_t path_bits;
	std::uint8_t grh_present;
	std::uint8_t gid_index;
	std::uint8_t hop_limit;
	std::uint8_t traffic_class;
	std::uint8_t gid[16];
	ib::be32 flow_label;
	std::uint16_t pkey_index;
	std::uint8_t reserved[6];
};
static_assert(sizeof(UserMad) == 64 && offsetof(UserMad, pkey_index) == 56);

} // namespace weft::attach
