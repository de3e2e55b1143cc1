// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Maps the card's error codes of failed requests to work completion statuses.
#pragma once
#include <hw/mellanox_icm/cqe.hpp>
#include <rdma/ib_verbs.h>

namespace mellanox_icm
{

inline ib_wc_status status_of(u8 syndrome)
{
	switch (static_cast<hw::mellanox_icm::CqeSyndrome>(syndrome)) {
	case hw::mellanox_icm::CqeSyndrome::local_length:
		return IB_WC_LOC_LEN_ERR;
	case hw::mellanox_icm::CqeSyndrome::local_qp_operation:
		return IB_WC_LOC_QP_OP_ERR;
	case hw::mellanox_icm::CqeSyndrome::local_protection:
		return IB_WC_LOC_PROT_ERR;
	case hw::mellanox_icm::CqeSyndrome::flushed:
		return IB_WC_WR_FLUSH_ERR;
	case hw::mellanox_icm::CqeSyndrome::window_bind:
		return IB_WC_MW_BIND_ERR;
	case hw::mellanox_icm::CqeSyndrome::bad_response:
		return IB_WC_BAD_RESP_ERR;
	case hw::mellanox_icm::CqeSyndrome::local_access:
		return IB_WC_LOC_ACCESS_ERR;
	case hw::mellanox_icm::CqeSyndrome::remote_invalid_request:
		return IB_WC_REM_INV_REQ_ERR;
	case hw::mellanox_icm::CqeSyndrome::remote_access:
		return IB_WC_REM_ACCESS_ERR;
	case hw::mellanox_icm::CqeSyndrome::remote_operation:
		return IB_WC_REM_OP_ERR;
	case hw::mellanox_icm::CqeSyndrome::retry_exceeded:
		return IB_WC_RETRY_EXC_ERR;
	case hw::mellanox_icm::CqeSyndrome::rnr_retry_exceeded:
		return IB_WC_RNR_RETRY_EXC_ERR;
	case hw::mellanox_icm::CqeSyndrome::remote_aborted:
		return IB_WC_REM_ABORT_ERR;
	case hw::mellanox_icm::CqeSyndrome::none:
		break;
	}
	return IB_WC_GENERAL_ERR;
}

} // namespace mellanox_icm
