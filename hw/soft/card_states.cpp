// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the QP state transitions that the software device allows, as a card does (IBA 10.3.1). A
// transition is checked against the actual state of the QP, not against the state that the driver
// assumes. This list is not derived from the midlayer's table, because it is used to find errors in
// that table.
#include "device.hpp"

namespace soft
{

bool card_allows(ib_qp_state from, ib_qp_state to)
{
	switch (to) {
	case IB_QPS_RESET:
		return true;
	case IB_QPS_ERR:
		return from != IB_QPS_RESET;
	case IB_QPS_INIT:
		return from == IB_QPS_RESET || from == IB_QPS_INIT;
	case IB_QPS_RTR:
		return from == IB_QPS_INIT;
	case IB_QPS_RTS:
		return from == IB_QPS_RTR || from == IB_QPS_RTS || from == IB_QPS_SQD ||
		       from == IB_QPS_SQE;
	case IB_QPS_SQD:
		return from == IB_QPS_RTS || from == IB_QPS_SQD;
	case IB_QPS_SQE:
		break;
	}
	return false;
}

} // namespace soft
