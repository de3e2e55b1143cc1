// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Issues commands to /dev/infiniband/rdma_cm without a library, in the layout of the kernel's own
 * headers. The code that makes a connection supplies the QP number (queues.hpp).
 */
#pragma once
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <netinet/in.h>

#include <rdma/rdma_user_cm.h>

namespace weft::ucma
{

/* Numbers that are in no header of the kernel's uapi: enum rdma_cm_event_type of librdmacm. */
enum class Event : std::uint32_t {
	addr_resolved = 0,
	addr_error = 1,
	route_resolved = 2,
	route_error = 3,
	connect_request = 4,
	connect_response = 5,
	connect_error = 6,
	unreachable = 7,
	rejected = 8,
	established = 9,
	disconnected = 10,
	device_removal = 11,
	multicast_join = 12,
	multicast_error = 13,
	addr_change = 14,
	timewait_exit = 15,
};

inline constexpr std::uint8_t kQpTypeRc = 2, kQpTypeUd = 4;
/* States of a QP and an event, which are defined by libibverbs. */
inline constexpr std::uint32_t kQpStateInit = 1, kQpStateRtr = 2, kQpStateRts = 3;
inline constexpr std::uint32_t kCommunicationEstablished = 4;

/*
 * Returns 10.`network`.0.`host` as the kernel's commands contain it, in place of an IPv6 address.
 */
sockaddr_in6 ipv4_address(std::uint32_t address, std::uint16_t port);

/* An open node. All functions return 0 or an errno. */
class Node
{
public:
	/* Exits with status 2 if the node cannot be opened. */
	Node();
	Node(const Node &) = delete;
	Node &operator=(const Node &) = delete;
	~Node();

	int number() const { return file_; }
	/* Writes a command with these lengths in its header. */
	long write(std::uint32_t command, const void *request, std::size_t size,
		   std::uint16_t in_bytes, std::uint16_t out_bytes) const;
	template<class Request>
	long command(std::uint32_t number, const Request &request) const
	{
		return write(number, &request, sizeof(request), sizeof(request), 0);
	}
	/* Fills in the address of the response. */
	template<class Request, class Response>
	long command(std::uint32_t number, Request request, Response &response) const
	{
		request.response = reinterpret_cast<std::uintptr_t>(&response);
		return write(number, &request, sizeof(request), sizeof(request), sizeof(response));
	}

	long create_id(std::uint64_t uid, rdma_ucm_port_space space, std::uint32_t &id) const;
	long destroy_id(std::uint32_t id) const;
	long get_event(rdma_ucm_event_resp &event) const;

private:
	int file_;
};

/* Random commands from several threads. */
void try_random(std::uint64_t seed, unsigned long count);
/*
 * Listens on a TCP port and a UDP port, and answers requests until it is killed. With seed 0 it
 * accepts all; otherwise it rejects or ignores some.
 */
[[noreturn]] void serve(std::uint16_t port, std::uint64_t seed);
/*
 * Connects to a port that serve() listens on. With seed 0, all connections are established and
 * disconnected; otherwise some are abandoned in each state. Returns the number of connections that
 * were established.
 */
unsigned long connect_to(std::uint32_t address, std::uint16_t port, std::uint64_t seed,
			 unsigned long count);

} // namespace weft::ucma
