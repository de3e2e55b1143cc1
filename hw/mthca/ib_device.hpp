// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the types and constants that the driver's table of verbs methods uses.
#pragma once
#include "../mellanox_icm/ib_device.hpp"
#include "hca.hpp"

namespace mthca
{

class Ah;
class Mr;
class UserContext;

struct Verbs {
	using Hca = mthca::Hca;
	using Ah = mthca::Ah;
	using Cq = mthca::Cq;
	using Mr = mthca::Mr;
	using Qp = mthca::Qp;
	using Srq = mthca::Srq;
	using UserContext = mthca::UserContext;
	static constexpr const char *device_name = "mthca%d";
	static const ib_device_ops operations;
	static u32 local_dma_lkey(const Hca &) { return 0; }
};

using IbDevice = mellanox_icm::IbDevice<Verbs>;

} // namespace mthca
