// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Builds the headers of packets on QP0 and QP1, for which the driver writes the whole packet,
// beginning with the LRH.
#pragma once
#include <ib/packet.hpp>
#include <rdma/driver.hpp>
#include "port.hpp"

namespace mellanox_icm
{

/* Attributes of the sending QP. */
struct SpecialSender {
	bool smi;
	u32 qpn; // number on the wire: 0 or 1
	u32 qkey;
	u32 psn;
};

class SpecialPacket
{
public:
	/* Space for the ICRC behind the data and the padding; the card calculates it. */
	static constexpr u32 icrc_bytes = 4;

	/*
	 * Builds the headers of a request to an address. Context: any. Errors: EINVAL for more data
	 * than a MAD, or for an index that is not in the port's tables.
	 */
	kern::Result<> build(const SpecialSender &sender, Port &port, const ib_ud_wr &wr,
			     const rdma_ah_attr &to);

	const u8 *headers() const { return headers_; }
	u32 header_bytes() const { return header_bytes_; }
	/* Bytes of zero padding behind the data. */
	u32 pad() const { return pad_; }
	/*
	 * Returns true for a directed-route packet to the neighbour, which has permissive
	 * addresses.
	 */
	bool permissive() const { return permissive_; }

private:
	u8 headers_[ib::headers_max];
	unsigned header_bytes_ = 0;
	u32 pad_ = 0;
	bool permissive_ = false;
};

} // namespace mellanox_icm
