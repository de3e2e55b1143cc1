// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// What the card's verbs are made of.
#pragma once
#include "../mellanox/ib_device.hpp"
#include "hca.hpp"

namespace connectx
{

class Ah;
class Mr;
class UserContext;

struct Verbs {
	using Hca = connectx::Hca;
	using Ah = connectx::Ah;
	using Cq = connectx::Cq;
	using Mr = connectx::Mr;
	using Qp = connectx::Qp;
	using Srq = connectx::Srq;
	using UserContext = connectx::UserContext;
	static constexpr const char *device_name = "mlx4_%d";
	static const ib_device_ops operations;
	static u32 local_dma_lkey(const Hca &hca) { return hca.capabilities().reserved_lkey; }
};

using IbDevice = mellanox::IbDevice<Verbs>;

} // namespace connectx
