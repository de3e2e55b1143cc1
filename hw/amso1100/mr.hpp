// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements memory regions: registers local and remote access rights with the card.
#pragma once
#include <rdma/driver.hpp>
#include "rnic.hpp"

namespace amso1100
{

class Mr
{
public:
	using Object = rdma::DriverObject<ib_mr, Mr>;
	static Mr &of(ib_mr *mr) { return Object::state(mr); }

	Mr(Rnic &rnic, ib_mr &verbs) : rnic_(rnic), verbs_(verbs) {}
	/*
	 * Creates a region of all DMA addresses, as far as the card supports that: the driver can
	 * access all of them, and a peer the first 4 GiB minus one byte. Errors: those of requests.
	 * May sleep.
	 */
	kern::Result<> start_dma(int access);
	kern::Result<> stop();

private:
	Rnic &rnic_;
	ib_mr &verbs_;
	u32 stag_ = 0; /* 0: not registered with the card */
};

} // namespace amso1100
