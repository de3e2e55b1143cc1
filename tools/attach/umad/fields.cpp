// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the functions of libibumad that read, set and print fields of a MAD's header.
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "attach/umad/abi.hpp"
#include "attach/umad/client.hpp"

namespace
{

ib_user_mad &mad_of(void *umad)
{
	return *static_cast<ib_user_mad *>(umad);
}

int set_grh(void *umad, void *address, bool network_order)
{
	ib_mad_addr_t &to = mad_of(umad).addr;
	to.grh_present = address != nullptr;
	if (!address)
		return 0;
	const auto &from = *static_cast<const ib_mad_addr_t *>(address);
	std::memcpy(to.gid, from.gid, sizeof(to.gid));
	to.flow_label = network_order ? from.flow_label : htobe32(from.flow_label);
	to.hop_limit = from.hop_limit;
	to.traffic_class = from.traffic_class;
	return 0;
}

} // namespace

extern "C" {

void *umad_get_mad(void *umad)
{
	return mad_of(umad).data;
}

size_t umad_size()
{
	return sizeof(ib_user_mad);
}

int umad_status(void *umad)
{
	return static_cast<int>(mad_of(umad).status);
}

ib_mad_addr_t *umad_get_mad_addr(void *umad)
{
	return &mad_of(umad).addr;
}

int umad_set_grh_net(void *umad, void *mad_addr)
{
	return set_grh(umad, mad_addr, true);
}

int umad_set_grh(void *umad, void *mad_addr)
{
	return set_grh(umad, mad_addr, false);
}

int umad_set_addr_net(void *umad, __be16 dlid, __be32 dqp, int sl, __be32 qkey)
{
	ib_mad_addr_t &to = mad_of(umad).addr;
	to.lid = dlid;
	to.qpn = dqp;
	to.sl = static_cast<uint8_t>(sl);
	to.qkey = qkey;
	return 0;
}

int umad_set_addr(void *umad, int dlid, int dqp, int sl, int qkey)
{
	return umad_set_addr_net(umad, htobe16(static_cast<uint16_t>(dlid)),
				 htobe32(static_cast<uint32_t>(dqp)), sl,
				 htobe32(static_cast<uint32_t>(qkey)));
}

int umad_set_pkey(void *umad, int pkey_index)
{
	mad_of(umad).addr.pkey_index = static_cast<uint16_t>(pkey_index);
	return 0;
}

int umad_get_pkey(void *umad)
{
	return mad_of(umad).addr.pkey_index;
}

int umad_debug(int level)
{
	if (level >= 0)
		weft::attach::umad::debug_level = level;
	return weft::attach::umad::debug_level;
}

void umad_addr_dump(ib_mad_addr_t *addr)
{
	std::fprintf(stderr, "qpn %u qkey 0x%x lid 0x%x sl %u path_bits 0x%x pkey_index %u\n",
		     be32toh(addr->qpn), be32toh(addr->qkey), be16toh(addr->lid), addr->sl,
		     addr->path_bits, addr->pkey_index);
	if (!addr->grh_present)
		return;
	std::fprintf(
		stderr, "grh: gid_index %u hop_limit %u traffic_class %u flow_label 0x%x gid 0x",
		addr->gid_index, addr->hop_limit, addr->traffic_class, be32toh(addr->flow_label));
	for (const uint8_t byte : addr->gid)
		std::fprintf(stderr, "%02x", byte);
	std::fputc('\n', stderr);
}

void umad_dump(void *umad)
{
	ib_user_mad &mad = mad_of(umad);
	std::fprintf(stderr, "agent %u status 0x%x timeout %u ms retries %u length %u\n",
		     mad.agent_id, mad.status, mad.timeout_ms, mad.retries, mad.length);
	umad_addr_dump(&mad.addr);
}

} // extern "C"
