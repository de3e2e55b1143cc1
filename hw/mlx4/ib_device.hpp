// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the types and constants that the driver's table of verbs methods uses.
#pragma once
#include "../mellanox_icm/ib_device.hpp"
#include "hca.hpp"

namespace mlx4
{

class Ah;
class Mr;
class UserContext;

struct Verbs {
	using Hca = mlx4::Hca;
	using Ah = mlx4::Ah;
	using Cq = mlx4::Cq;
	using Mr = mlx4::Mr;
	using Qp = mlx4::Qp;
	using Srq = mlx4::Srq;
	using UserContext = mlx4::UserContext;
	static constexpr const char *device_name = "mlx4_%d";
	static const ib_device_ops operations;
	static u32 local_dma_lkey(const Hca &hca) { return hca.capabilities().reserved_lkey; }
};

using IbDevice = mellanox_icm::IbDevice<Verbs>;

} // namespace mlx4
