// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// What the card's verbs are made of.
#pragma once
#include "../mellanox/ib_device.hpp"
#include "hca.hpp"

namespace infinihost
{

class Ah;
class Mr;
class UserContext;

struct Verbs {
	using Hca = infinihost::Hca;
	using Ah = infinihost::Ah;
	using Cq = infinihost::Cq;
	using Mr = infinihost::Mr;
	using Qp = infinihost::Qp;
	using Srq = infinihost::Srq;
	using UserContext = infinihost::UserContext;
	static constexpr const char *device_name = "mthca%d";
	static const ib_device_ops operations;
	static u32 local_dma_lkey(const Hca &) { return 0; }
};

using IbDevice = mellanox::IbDevice<Verbs>;

} // namespace infinihost
