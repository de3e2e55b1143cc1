// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Converts opcodes, transport services, syndromes and event types between the encodings of mlx4 and
// mthca cards and the transport engine's types (cards/hca/types.hpp).
#pragma once

#include <optional>

#include <hw/mlx4/contexts.hpp>
#include <hw/mlx4/cqe.hpp>
#include <hw/mlx4/eqe.hpp>
#include <hw/mlx4/wqe.hpp>

#include "cards/hca/types.hpp"

namespace weft::mellanox_icm
{

using hw::mlx4::EventType;

hw::mlx4::WqeOpcode wqe_opcode(hca::SendOpcode opcode);
// Returns the opcode of a request, or nothing if no request has this code.
std::optional<hca::SendOpcode> send_opcode(hw::mlx4::WqeOpcode code);
hw::mlx4::CqeSyndrome cqe_syndrome(hca::Syndrome syndrome);
EventType event_type(hca::Event event);
hw::mlx4::ServiceType service_code(hca::ServiceType type);
// Returns the service, or nothing if it is not supported.
std::optional<hca::ServiceType> service_type(hw::mlx4::ServiceType code);

// States have the same encoding as in the commands of the family.
template<hca::QpState neutral, hw::mlx4::QpState own>
constexpr bool kSameState = static_cast<unsigned>(neutral) == static_cast<unsigned>(own);
static_assert(kSameState<hca::QpState::reset, hw::mlx4::QpState::reset> &&
	      kSameState<hca::QpState::init, hw::mlx4::QpState::init>);
static_assert(kSameState<hca::QpState::rtr, hw::mlx4::QpState::rtr> &&
	      kSameState<hca::QpState::rts, hw::mlx4::QpState::rts>);
static_assert(kSameState<hca::QpState::sqer, hw::mlx4::QpState::sqer> &&
	      kSameState<hca::QpState::sqd, hw::mlx4::QpState::sqd>);
static_assert(kSameState<hca::QpState::err, hw::mlx4::QpState::err>);
static_assert(kSameState<hca::QpState::sq_draining, hw::mlx4::QpState::sq_draining>);

} // namespace weft::mellanox_icm
