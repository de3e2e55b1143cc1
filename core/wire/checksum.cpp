// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "checksum.hpp"

namespace packet
{

ib::Icrc icrc_over_headers(const std::uint8_t *headers, unsigned size)
{
	std::uint8_t masked[ib::headers_max];
	if (size > sizeof(masked))
		size = sizeof(masked);
	__builtin_memcpy(masked, headers, size);

	/* Fields that switches or routers may change count as ones (IBA 7.8.1). */
	auto &lrh = *reinterpret_cast<ib::Lrh *>(masked);
	unsigned bth_at = sizeof(ib::Lrh);
	if (lrh.lnh() == ib::Lnh::global) {
		bth_at += sizeof(ib::Grh);
		__builtin_memset(masked, 0xff, sizeof(ib::Lrh));
		auto &grh = *reinterpret_cast<ib::Grh *>(masked + sizeof(ib::Lrh));
		grh.set_traffic_class(0xff);
		grh.set_flow_label(0xfffff);
		grh.hop_limit = 0xff;
	} else {
		lrh.set_vl(0xf);
	}
	/* The byte before the destination QP, which contains FECN, BECN and reserved bits. */
	masked[bth_at + offsetof(ib::Bth, dest_qp_word)] = 0xff;

	ib::Icrc crc;
	crc.update(masked, size);
	return crc;
}

std::uint32_t icrc_of(const std::uint8_t *packet, unsigned header_bytes, unsigned size)
{
	ib::Icrc crc = icrc_over_headers(packet, header_bytes);
	crc.update(packet + header_bytes, size - header_bytes);
	return crc.value();
}

std::uint16_t vcrc_of(const std::uint8_t *packet, unsigned size)
{
	ib::Vcrc crc;
	crc.update(packet, size);
	return crc.value();
}

} // namespace packet
