// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "tests/ucma_probe/node.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace weft::ucma
{

namespace
{
constexpr const char *kNode = "/dev/infiniband/rdma_cm";
} // namespace

sockaddr_in6 ipv4_address(std::uint32_t address, std::uint16_t port)
{
	sockaddr_in ipv4{};
	ipv4.sin_family = AF_INET;
	ipv4.sin_port = htons(port);
	ipv4.sin_addr.s_addr = htonl(address);
	sockaddr_in6 result{};
	std::memcpy(&result, &ipv4, sizeof(ipv4));
	return result;
}

Node::Node() : file_(::open(kNode, O_RDWR | O_CLOEXEC | O_NONBLOCK))
{
	if (file_ >= 0)
		return;
	std::perror(kNode);
	std::exit(2);
}

Node::~Node()
{
	::close(file_);
}

long Node::write(std::uint32_t command, const void *request, std::size_t size,
		 std::uint16_t in_bytes, std::uint16_t out_bytes) const
{
	const rdma_ucm_cmd_hdr header = {.cmd = command, .in = in_bytes, .out = out_bytes};
	std::vector<char> bytes(sizeof(header) + size);

	std::memcpy(bytes.data(), &header, sizeof(header));
	std::memcpy(bytes.data() + sizeof(header), request, size);
	const ssize_t written = ::write(file_, bytes.data(), bytes.size());
	if (written < 0)
		return errno;
	return static_cast<std::size_t>(written) == bytes.size() ? 0 : EPROTO;
}

long Node::create_id(std::uint64_t uid, rdma_ucm_port_space space, std::uint32_t &id) const
{
	rdma_ucm_create_id request{};
	rdma_ucm_create_id_resp response{};

	request.uid = uid;
	request.ps = static_cast<std::uint16_t>(space);
	request.qp_type = space == RDMA_PS_UDP ? kQpTypeUd : kQpTypeRc;
	const long error = command(RDMA_USER_CM_CMD_CREATE_ID, request, response);
	id = response.id;
	return error;
}

long Node::destroy_id(std::uint32_t id) const
{
	rdma_ucm_destroy_id_resp response{};

	return command(RDMA_USER_CM_CMD_DESTROY_ID,
		       rdma_ucm_destroy_id{.response = 0, .id = id, .reserved = 0}, response);
}

long Node::get_event(rdma_ucm_event_resp &event) const
{
	return command(RDMA_USER_CM_CMD_GET_EVENT, rdma_ucm_get_event{}, event);
}

} // namespace weft::ucma
