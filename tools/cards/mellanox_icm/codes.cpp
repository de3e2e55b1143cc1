// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mellanox_icm/codes.hpp"

namespace weft::mellanox_icm
{

using hca::Event;
using hca::SendOpcode;
using hca::ServiceType;
using hca::Syndrome;
using hw::mlx4::CqeSyndrome;
using hw::mlx4::WqeOpcode;

WqeOpcode wqe_opcode(SendOpcode opcode)
{
	switch (opcode) {
	case SendOpcode::nop:
		return WqeOpcode::nop;
	case SendOpcode::send:
		return WqeOpcode::send;
	case SendOpcode::send_imm:
		return WqeOpcode::send_imm;
	case SendOpcode::send_invalidate:
		return WqeOpcode::send_invalidate;
	case SendOpcode::lso:
		return WqeOpcode::lso;
	case SendOpcode::rdma_write:
		return WqeOpcode::rdma_write;
	case SendOpcode::rdma_write_imm:
		return WqeOpcode::rdma_write_imm;
	case SendOpcode::rdma_read:
		return WqeOpcode::rdma_read;
	case SendOpcode::compare_swap:
		return WqeOpcode::compare_swap;
	case SendOpcode::fetch_add:
		return WqeOpcode::fetch_add;
	case SendOpcode::masked_compare_swap:
		return WqeOpcode::masked_compare_swap;
	case SendOpcode::masked_fetch_add:
		return WqeOpcode::masked_fetch_add;
	case SendOpcode::bind_window:
		return WqeOpcode::bind_window;
	case SendOpcode::fast_register:
		return WqeOpcode::fast_register;
	case SendOpcode::local_invalidate:
		return WqeOpcode::local_invalidate;
	case SendOpcode::update_key:
		break; // only later cards support it
	}
	return WqeOpcode::nop;
}

std::optional<SendOpcode> send_opcode(WqeOpcode code)
{
	switch (code) {
	case WqeOpcode::nop:
		return SendOpcode::nop;
	case WqeOpcode::send_invalidate:
		return SendOpcode::send_invalidate;
	case WqeOpcode::rdma_write:
		return SendOpcode::rdma_write;
	case WqeOpcode::rdma_write_imm:
		return SendOpcode::rdma_write_imm;
	case WqeOpcode::send:
		return SendOpcode::send;
	case WqeOpcode::send_imm:
		return SendOpcode::send_imm;
	case WqeOpcode::lso:
		return SendOpcode::lso;
	case WqeOpcode::rdma_read:
		return SendOpcode::rdma_read;
	case WqeOpcode::compare_swap:
		return SendOpcode::compare_swap;
	case WqeOpcode::fetch_add:
		return SendOpcode::fetch_add;
	case WqeOpcode::masked_compare_swap:
		return SendOpcode::masked_compare_swap;
	case WqeOpcode::masked_fetch_add:
		return SendOpcode::masked_fetch_add;
	case WqeOpcode::bind_window:
		return SendOpcode::bind_window;
	case WqeOpcode::fast_register:
		return SendOpcode::fast_register;
	case WqeOpcode::local_invalidate:
		return SendOpcode::local_invalidate;
	case WqeOpcode::config:
		break;
	}
	return std::nullopt;
}

CqeSyndrome cqe_syndrome(Syndrome syndrome)
{
	switch (syndrome) {
	case Syndrome::none:
		return CqeSyndrome::none;
	case Syndrome::local_length:
		return CqeSyndrome::local_length;
	case Syndrome::local_qp_operation:
		return CqeSyndrome::local_qp_operation;
	case Syndrome::local_protection:
		return CqeSyndrome::local_protection;
	case Syndrome::flushed:
		return CqeSyndrome::flushed;
	case Syndrome::window_bind:
		return CqeSyndrome::window_bind;
	case Syndrome::bad_response:
		return CqeSyndrome::bad_response;
	case Syndrome::local_access:
		return CqeSyndrome::local_access;
	case Syndrome::remote_invalid_request:
		return CqeSyndrome::remote_invalid_request;
	case Syndrome::remote_access:
		return CqeSyndrome::remote_access;
	case Syndrome::remote_operation:
		return CqeSyndrome::remote_operation;
	case Syndrome::retry_exceeded:
		return CqeSyndrome::retry_exceeded;
	case Syndrome::rnr_retry_exceeded:
		return CqeSyndrome::rnr_retry_exceeded;
	}
	return CqeSyndrome::none;
}

EventType event_type(Event event)
{
	switch (event) {
	case Event::communication_established:
		return EventType::communication_established;
	case Event::sq_drained:
		return EventType::sq_drained;
	case Event::wq_catastrophic:
		break;
	case Event::wq_invalid_request:
		return EventType::wq_invalid_request;
	case Event::wq_access_violation:
		return EventType::wq_access_violation;
	case Event::last_wqe_reached:
		return EventType::srq_last_wqe;
	}
	return EventType::wq_catastrophic;
}

std::optional<ServiceType> service_type(hw::mlx4::ServiceType type)
{
	switch (type) {
	case hw::mlx4::ServiceType::rc:
		return ServiceType::rc;
	case hw::mlx4::ServiceType::uc:
		return ServiceType::uc;
	case hw::mlx4::ServiceType::ud:
		return ServiceType::ud;
	case hw::mlx4::ServiceType::xrc:
		return ServiceType::xrc;
	case hw::mlx4::ServiceType::mlx:
		return ServiceType::whole_packet;
	case hw::mlx4::ServiceType::rd:
		break;
	}
	return std::nullopt;
}

hw::mlx4::ServiceType service_code(ServiceType type)
{
	switch (type) {
	case ServiceType::rc:
		break;
	case ServiceType::uc:
		return hw::mlx4::ServiceType::uc;
	case ServiceType::ud:
		return hw::mlx4::ServiceType::ud;
	case ServiceType::xrc:
		return hw::mlx4::ServiceType::xrc;
	case ServiceType::whole_packet:
		return hw::mlx4::ServiceType::mlx;
	}
	return hw::mlx4::ServiceType::rc;
}

} // namespace weft::mellanox_icm
