// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The headers of packets sent on QP0 and QP1: the driver writes the whole packet, from the LRH on.
#pragma once
#include <ib/packet.hpp>
#include <rdma/driver.hpp>
#include "port.hpp"

namespace mellanox_icm
{

/* The sender of a packet. */
struct SpecialSender {
	bool smi;
	u32 qpn; // number on the wire: 0 or 1
	u32 qkey;
	u32 psn;
};

class SpecialPacket
{
public:
	/* The card puts the ICRC here, behind the data and their pad. */
	static constexpr u32 icrc_bytes = 4;

	/*
	 * The headers for a request to an address. Any context. Errors: EINVAL for more than a MAD,
	 * or what the port does not have.
	 */
	kern::Result<> build(const SpecialSender &sender, Port &port, const ib_ud_wr &wr,
			     const rdma_ah_attr &to);

	const u8 *headers() const { return headers_; }
	u32 header_bytes() const { return header_bytes_; }
	/* Bytes of zero padding behind the data. */
	u32 pad() const { return pad_; }
	/* A directed-route packet to the neighbour has permissive addresses. */
	bool permissive() const { return permissive_; }

private:
	u8 headers_[ib::headers_max];
	unsigned header_bytes_ = 0;
	u32 pad_ = 0;
	bool permissive_ = false;
};

} // namespace mellanox_icm
