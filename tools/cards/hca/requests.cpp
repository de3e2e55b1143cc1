// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/hca/requests.hpp"

namespace weft::hca
{

bool opcode_allowed(SendOpcode opcode, ServiceType service)
{
	const bool connected = service == ServiceType::rc || service == ServiceType::xrc;
	const bool with_writes = connected || service == ServiceType::uc;
	switch (opcode) {
	case SendOpcode::nop:
	case SendOpcode::send:
		return true;
	case SendOpcode::send_imm:
		return service != ServiceType::whole_packet;
	case SendOpcode::lso:
		return service == ServiceType::ud;
	case SendOpcode::rdma_write:
	case SendOpcode::rdma_write_imm:
	case SendOpcode::bind_window:
	case SendOpcode::fast_register:
	case SendOpcode::local_invalidate:
	case SendOpcode::update_key:
		return with_writes;
	case SendOpcode::send_invalidate:
	case SendOpcode::rdma_read:
	case SendOpcode::compare_swap:
	case SendOpcode::fetch_add:
	case SendOpcode::masked_compare_swap:
	case SendOpcode::masked_fetch_add:
		return connected;
	}
	return false;
}

Syndrome check_data(const SendRequest &request)
{
	if (request.is_read_or_atomic() && request.has_inline())
		return Syndrome::local_qp_operation;
	if (request.is_atomic() && request.length != 8)
		return Syndrome::local_length;
	return Syndrome::none;
}

} // namespace weft::hca
