// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Issues random rdma_cm commands from several threads on the same open file. The test passes if the
// kernel's log contains no report.
#include <poll.h>
#include <unistd.h>

#include <array>
#include <memory>

#include "tests/ucma_probe/node.hpp"
#include "tests/uverbs_probe/callers.hpp"

namespace weft::ucma
{

namespace
{

using Random = std::mt19937_64;

constexpr unsigned kCallsOfARound = 100;
constexpr unsigned kNumbers = RDMA_USER_CM_CMD_JOIN_MCAST + 2;
/* Numbers of IDs, which are the lowest free ones of the whole system. */
constexpr unsigned kIds = 24;
constexpr std::size_t kMostBytes = 512;
constexpr std::uint16_t kPort = 7400;
/* Address families as in the kernel's headers; libc's do not have the second. */
constexpr std::uint16_t kAfIb = 27;

std::uint32_t small_or_any(Random &random, std::uint32_t small)
{
	return static_cast<std::uint32_t>(random() % 16 ? random() % small : random());
}

std::uint32_t some_id(Random &random)
{
	return small_or_any(random, kIds);
}

std::uint16_t some_port(Random &random)
{
	return static_cast<std::uint16_t>(random() % 4   ? kPort + random() % 4
					  : random() % 2 ? 0
							 : random());
}

/* Returns an address of a host of the lab, of a child interface, or another one. */
sockaddr_in6 some_address(Random &random)
{
	constexpr std::uint32_t addresses[] = {0x0a010001, 0x0a010002, 0x0a010001, 0x0a010002,
					       0x0a030001, 0x0a030002, 0x0a010009, 0x7f000001,
					       0,          0xe0010203};
	sockaddr_in6 result =
		ipv4_address(addresses[random() % std::size(addresses)], some_port(random));

	if (random() % 8 == 0) {
		result.sin6_family = AF_INET6;
		std::memset(&result.sin6_addr, 0, sizeof(result.sin6_addr));
		result.sin6_addr.s6_addr[0] = 0xfe;
		result.sin6_addr.s6_addr[1] = 0x80;
		result.sin6_addr.s6_addr[15] = static_cast<std::uint8_t>(random() % 3);
		result.sin6_scope_id = static_cast<std::uint32_t>(random() % 4);
	} else if (random() % 32 == 0) {
		result.sin6_family = static_cast<std::uint16_t>(random() % 48);
	}
	return result;
}

/* Stores an address in a field of a command; returns its size. */
std::uint16_t store(const sockaddr_in6 &address, __kernel_sockaddr_storage &field)
{
	std::memcpy(&field, &address, sizeof(address));
	return address.sin6_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

/* Stores an address of the family AF_IB: a GID that may be a port's, and a service ID. */
std::uint16_t store_ib(Random &random, __kernel_sockaddr_storage &field)
{
	std::array<std::uint8_t, 48> bytes{};

	std::memcpy(bytes.data(), &kAfIb, sizeof(kAfIb));
	bytes[2] = 0xff;
	bytes[3] = 0xff;
	if (random() % 2) {
		bytes[8] = 0xfe;
		bytes[9] = 0x80;
		bytes[23] = static_cast<std::uint8_t>(random() % 4);
	}
	bytes[29] = 1;
	bytes[30] = 6;
	bytes[31] = static_cast<std::uint8_t>(random());
	if (random() % 2)
		std::memset(bytes.data() + 32, 0xff, 8);
	std::memcpy(&field, bytes.data(), bytes.size());
	return sizeof(bytes);
}

std::uint16_t some_storage(Random &random, __kernel_sockaddr_storage &field)
{
	const std::uint16_t size =
		random() % 8 ? store(some_address(random), field) : store_ib(random, field);

	return random() % 32 ? size : static_cast<std::uint16_t>(random() % 160);
}

rdma_ucm_conn_param some_parameters(Random &random)
{
	rdma_ucm_conn_param result{};

	result.qp_num = small_or_any(random, 1 << 24);
	result.qkey = static_cast<std::uint32_t>(random());
	result.private_data_len =
		static_cast<std::uint8_t>(random() % 4 ? random() % 60 : random());
	result.responder_resources = static_cast<std::uint8_t>(random() % 4);
	result.initiator_depth = static_cast<std::uint8_t>(random() % 4);
	result.retry_count = static_cast<std::uint8_t>(random() % 9);
	result.rnr_retry_count = static_cast<std::uint8_t>(random() % 9);
	result.valid = random() % 8 != 0;
	return result;
}

void set_option(const Node &node, Random &random)
{
	std::array<std::uint64_t, 64> value{};
	rdma_ucm_set_option request{};

	for (std::uint64_t &word : value)
		word = random() % 4 ? random() % 3 : random();
	request.optval = reinterpret_cast<std::uintptr_t>(value.data());
	request.id = some_id(random);
	request.level = static_cast<std::uint32_t>(random() % 3);
	request.optname = static_cast<std::uint32_t>(random() % 5);
	constexpr std::uint32_t lengths[] = {1, 4, 72, 144, 0};
	request.optlen = lengths[random() % std::size(lengths)];
	if (request.level == RDMA_OPTION_IB && random() % 2) {
		/* GMP, PRIMARY and BIDIRECTIONAL, with which a path becomes the route. */
		const std::uint32_t flags = 43;
		std::memcpy(value.data(), &flags, sizeof(flags));
		request.optlen = 72;
	}
	node.command(RDMA_USER_CM_CMD_SET_OPTION, request);
}

/* A command whose fields are mostly valid. */
void call_rightly(const Node &node, Random &random, unsigned number)
{
	/* The longest response is that of QUERY for paths. */
	std::array<std::uint64_t, 80> response;
	std::uint32_t id;

	switch (number) {
	case RDMA_USER_CM_CMD_CREATE_ID: {
		constexpr rdma_ucm_port_space spaces[] = {RDMA_PS_TCP, RDMA_PS_TCP, RDMA_PS_UDP,
							  RDMA_PS_IPOIB, RDMA_PS_IB};
		node.create_id(1 + random() % 64, spaces[random() % std::size(spaces)], id);
		break;
	}
	case RDMA_USER_CM_CMD_DESTROY_ID:
		node.destroy_id(some_id(random));
		break;
	case RDMA_USER_CM_CMD_BIND_IP: {
		rdma_ucm_bind_ip request{};
		request.addr = some_address(random);
		request.id = some_id(random);
		node.command(number, request);
		break;
	}
	case RDMA_USER_CM_CMD_RESOLVE_IP: {
		rdma_ucm_resolve_ip request{};
		if (random() % 4 == 0)
			request.src_addr = some_address(random);
		request.dst_addr = some_address(random);
		request.id = some_id(random);
		request.timeout_ms = small_or_any(random, 3000);
		node.command(number, request);
		break;
	}
	case RDMA_USER_CM_CMD_RESOLVE_ROUTE:
		node.command(number,
			     rdma_ucm_resolve_route{some_id(random), small_or_any(random, 3000)});
		break;
	case RDMA_USER_CM_CMD_QUERY_ROUTE:
	case RDMA_USER_CM_CMD_QUERY: {
		rdma_ucm_query request{};
		request.id = some_id(random);
		request.option = static_cast<std::uint32_t>(random() % 4);
		node.command(number, request, response);
		break;
	}
	case RDMA_USER_CM_CMD_CONNECT: {
		rdma_ucm_connect request{};
		request.conn_param = some_parameters(random);
		request.id = some_id(random);
		node.command(number, request);
		break;
	}
	case RDMA_USER_CM_CMD_LISTEN:
		node.command(number, rdma_ucm_listen{some_id(random), small_or_any(random, 4)});
		break;
	case RDMA_USER_CM_CMD_ACCEPT: {
		rdma_ucm_accept request{};
		request.uid = random() % 64;
		request.conn_param = some_parameters(random);
		request.id = some_id(random);
		node.command(number, request);
		break;
	}
	case RDMA_USER_CM_CMD_REJECT: {
		rdma_ucm_reject request{};
		request.id = some_id(random);
		request.private_data_len = static_cast<std::uint8_t>(random());
		constexpr std::uint8_t reasons[] = {0, 28, 35, 1};
		request.reason = reasons[random() % std::size(reasons)];
		node.command(number, request);
		break;
	}
	case RDMA_USER_CM_CMD_DISCONNECT:
		node.command(number, rdma_ucm_disconnect{some_id(random)});
		break;
	case RDMA_USER_CM_CMD_INIT_QP_ATTR: {
		rdma_ucm_init_qp_attr request{};
		request.id = some_id(random);
		request.qp_state = static_cast<std::uint32_t>(random() % 8);
		node.command(number, request, response);
		break;
	}
	case RDMA_USER_CM_CMD_GET_EVENT: {
		rdma_ucm_event_resp event;
		node.get_event(event);
		break;
	}
	case RDMA_USER_CM_CMD_SET_OPTION:
		set_option(node, random);
		break;
	case RDMA_USER_CM_CMD_NOTIFY:
		node.command(number, rdma_ucm_notify{some_id(random), small_or_any(random, 16)});
		break;
	case RDMA_USER_CM_CMD_JOIN_IP_MCAST: {
		rdma_ucm_join_ip_mcast request{};
		request.uid = random() % 64;
		request.addr =
			ipv4_address(0xe0010200 + static_cast<std::uint32_t>(random() % 4), 0);
		request.id = some_id(random);
		rdma_ucm_create_id_resp joined;
		node.command(number, request, joined);
		break;
	}
	case RDMA_USER_CM_CMD_LEAVE_MCAST: {
		rdma_ucm_destroy_id request{};
		rdma_ucm_destroy_id_resp left;
		request.id = some_id(random);
		node.command(number, request, left);
		break;
	}
	case RDMA_USER_CM_CMD_MIGRATE_ID: {
		rdma_ucm_migrate_id request{};
		rdma_ucm_migrate_resp migrated;
		request.id = some_id(random);
		request.fd = random() % 4 ? static_cast<std::uint32_t>(node.number())
					  : small_or_any(random, 8);
		node.command(number, request, migrated);
		break;
	}
	case RDMA_USER_CM_CMD_BIND: {
		rdma_ucm_bind request{};
		request.id = some_id(random);
		request.addr_size = some_storage(random, request.addr);
		node.command(number, request);
		break;
	}
	case RDMA_USER_CM_CMD_RESOLVE_ADDR: {
		rdma_ucm_resolve_addr request{};
		request.id = some_id(random);
		request.timeout_ms = small_or_any(random, 3000);
		if (random() % 4 == 0)
			request.src_size = some_storage(random, request.src_addr);
		request.dst_size = some_storage(random, request.dst_addr);
		node.command(number, request);
		break;
	}
	case RDMA_USER_CM_CMD_JOIN_MCAST: {
		rdma_ucm_join_mcast request{};
		rdma_ucm_create_id_resp joined;
		request.uid = random() % 64;
		request.id = some_id(random);
		request.addr_size = store(
			ipv4_address(0xe0010200 + static_cast<std::uint32_t>(random() % 4), 0),
			request.addr);
		request.join_flags = static_cast<std::uint16_t>(random() % 3);
		node.command(number, request, joined);
		break;
	}
	default:
		break;
	}
}

/* A command with random bytes and lengths. Its response, if it has one, goes nowhere. */
void call_wrongly(const Node &node, Random &random)
{
	std::array<std::uint8_t, kMostBytes> bytes;

	for (std::uint8_t &byte : bytes)
		byte = random() % 4 ? 0 : static_cast<std::uint8_t>(random());
	const std::size_t size = random() % bytes.size();
	node.write(small_or_any(random, kNumbers), bytes.data(), size,
		   static_cast<std::uint16_t>(random() % 4 ? size : random()),
		   static_cast<std::uint16_t>(random()));
}

void call(const Node &node, Random &random)
{
	/* Commands that other commands require, more often than all others. */
	constexpr unsigned often[] = {RDMA_USER_CM_CMD_CREATE_ID,     RDMA_USER_CM_CMD_BIND_IP,
				      RDMA_USER_CM_CMD_RESOLVE_IP,    RDMA_USER_CM_CMD_RESOLVE_IP,
				      RDMA_USER_CM_CMD_RESOLVE_ROUTE, RDMA_USER_CM_CMD_CONNECT,
				      RDMA_USER_CM_CMD_GET_EVENT,     RDMA_USER_CM_CMD_LISTEN,
				      RDMA_USER_CM_CMD_ACCEPT};

	if (random() % 16 == 0)
		call_wrongly(node, random);
	else if (random() % 2)
		call_rightly(node, random, often[random() % std::size(often)]);
	else
		call_rightly(node, random, static_cast<unsigned>(random() % kNumbers));
	/* In virtual time, other hosts make progress only while this program waits. */
	if (random() % 8 == 0)
		::usleep(static_cast<useconds_t>(random() % 2000));
}

} // namespace

void try_random(std::uint64_t seed, unsigned long count)
{
	std::unique_ptr<Node> node;

	uverbs::call_from_threads(
		seed, count / (uverbs::kCallers * kCallsOfARound), kCallsOfARound,
		[&] { node = std::make_unique<Node>(); },
		[&](Random &random) { call(*node, random); }, [&] { node.reset(); });
}

} // namespace weft::ucma
