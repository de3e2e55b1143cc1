// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Fuzzes the private data of a CM request with arbitrary input. The fields that are parsed from it,
// the header of Annex A11 and that of IPoIB connected mode, must have the properties that the code
// relies on.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "core/rdma_cm/address.hpp"
#include "ulp/ipoib/connection_data.hpp"

namespace
{

void require(bool holds)
{
	if (!holds)
		std::abort();
}

/*
 * IBA A11.4.3: a header with an unknown version is not accepted. An accepted IP header is the same
 * when it is encoded again from its decoded values.
 */
void look_into_header(const u8 (&bytes)[IB_CM_REQ_PRIVATE_DATA_SIZE])
{
	constexpr u16 port = 7174;
	const auto read = rdma_cm::read_header(bytes, RDMA_PS_TCP, port);
	const bool v4 = bytes[1] >> 4 == 4, v6 = bytes[1] >> 4 == 6;
	require(read.ok() == ((!v4 && !v6) || bytes[0] == 0));
	if (!read.ok())
		return;
	const rdma_cm::Ends &ends = read.value();
	require(ends.header == (v4 || v6 ? RDMA_CM_IP_HEADER_SIZE : 0));
	require(ends.local.family == (v4   ? RDMA_AF_INET
				      : v6 ? RDMA_AF_INET6
					   : 0) &&
		ends.peer.family == ends.local.family);
	if (!v4 && !v6)
		return;
	require(rdma_cm::port_of(ends.local) == port);
	require(rdma_cm::is_any(ends.peer) + rdma_cm::is_loopback(ends.peer) +
			rdma_cm::is_group_or_broadcast(ends.peer) <=
		1);
	const rdma_cm::IpHeader again = rdma_cm::make_header(ends.peer, ends.local);
	const std::size_t begin = v4 ? 12 : 0;
	require(std::memcmp(&again.source_port, bytes + offsetof(rdma_cm::IpHeader, source_port),
			    2) == 0);
	require(std::memcmp(again.source + begin,
			    bytes + offsetof(rdma_cm::IpHeader, source) + begin, 16 - begin) == 0);
	require(std::memcmp(again.destination + begin,
			    bytes + offsetof(rdma_cm::IpHeader, destination) + begin,
			    16 - begin) == 0);
}

/*
 * RFC 4755, section 3.5: an accepted QP number is valid, and the receive size holds the smallest IP
 * packet.
 */
void look_into_connection(const std::uint8_t *data, std::size_t size)
{
	ib_cm_event event{};
	event.private_data = data;
	event.private_data_len = static_cast<u8>(
		size < IB_CM_REQ_PRIVATE_DATA_SIZE ? size : IB_CM_REQ_PRIVATE_DATA_SIZE);
	const auto peer = ipoib::peer_data(event);
	if (!peer.ok())
		return;
	const std::uint32_t qpn =
		std::uint32_t{data[1]} << 16 | std::uint32_t{data[2]} << 8 | data[3];
	const std::uint32_t room = std::uint32_t{data[4]} << 24 | std::uint32_t{data[5]} << 16 |
				   std::uint32_t{data[6]} << 8 | data[7];
	require(size >= 8 && qpn > 1 && qpn != 0xffffff && peer.value().receive_bytes == room &&
		room >= 72);
	/* A peer that has not sent the complete word has not agreed to omit checksums. */
	require(!peer.value().leaves_checksums || size >= sizeof(ipoib::ConnectionData));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	u8 bytes[IB_CM_REQ_PRIVATE_DATA_SIZE]{};
	std::memcpy(bytes, data, size < sizeof(bytes) ? size : sizeof(bytes));
	look_into_header(bytes);
	look_into_connection(data, size);
	return 0;
}
