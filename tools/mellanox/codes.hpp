// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The numbers by which the cards of this family call what every channel adapter has.
#pragma once

#include <optional>

#include <hw/connectx/contexts.hpp>
#include <hw/connectx/cqe.hpp>
#include <hw/connectx/eqe.hpp>
#include <hw/connectx/wqe.hpp>

#include "hca/types.hpp"

namespace weft::mellanox
{

using hw::connectx::EventType;

hw::connectx::WqeOpcode wqe_opcode(hca::SendOpcode opcode);
hw::connectx::CqeSyndrome cqe_syndrome(hca::Syndrome syndrome);
EventType event_type(hca::Event event);
hw::connectx::ServiceType service_code(hca::ServiceType type);
// Nothing: not on offer.
std::optional<hca::ServiceType> service_type(hw::connectx::ServiceType code);

// States have the numbers of the family.
template<hca::QpState neutral, hw::connectx::QpState own>
constexpr bool same_state = static_cast<unsigned>(neutral) == static_cast<unsigned>(own);
static_assert(same_state<hca::QpState::reset, hw::connectx::QpState::reset> &&
	      same_state<hca::QpState::init, hw::connectx::QpState::init>);
static_assert(same_state<hca::QpState::rtr, hw::connectx::QpState::rtr> &&
	      same_state<hca::QpState::rts, hw::connectx::QpState::rts>);
static_assert(same_state<hca::QpState::sqer, hw::connectx::QpState::sqer> &&
	      same_state<hca::QpState::sqd, hw::connectx::QpState::sqd>);
static_assert(same_state<hca::QpState::err, hw::connectx::QpState::err>);
static_assert(same_state<hca::QpState::sq_draining, hw::connectx::QpState::sq_draining>);

} // namespace weft::mellanox
