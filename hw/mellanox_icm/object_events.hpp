// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Reports a card's asynchronous events of QPs, CQs and SRQs to their consumers.
#pragma once
#include <hw/mellanox_icm/eqe.hpp>
#include <kern/log.hpp>
#include <rdma/driver.hpp>

namespace mellanox_icm
{

// Returns the bit of an event type in the parameter of MAP_EQ.
constexpr u64 event_bit(hw::mellanox_icm::EventType type)
{
	return u64{1} << static_cast<unsigned int>(type);
}

/* The driver subscribes to these events on all cards. */
constexpr u64 async_events = [] {
	using enum hw::mellanox_icm::EventType;
	return event_bit(eq_overflow) | event_bit(path_migrated) |
	       event_bit(communication_established) | event_bit(sq_drained) | event_bit(cq_error) |
	       event_bit(wq_catastrophic) | event_bit(path_migration_failed) |
	       event_bit(local_catastrophic) | event_bit(port_change) | event_bit(command) |
	       event_bit(wq_invalid_request) | event_bit(wq_access_violation) |
	       event_bit(srq_catastrophic) | event_bit(srq_last_wqe) | event_bit(srq_limit);
}();

/*
 * Reports an event of a QP, CQ or SRQ to its consumer. If the object does not exist, the event was
 * raised before the object was destroyed. Context: hard interrupt.
 */
template<class Hca>
void object_event(Hca &hca, hw::mellanox_icm::EventType type, u32 number)
{
	using hw::mellanox_icm::EventType;
	const auto report = [](auto *object, ib_event_type event) {
		if (object && object->verbs().event_handler)
			rdma::dispatch(event, &object->verbs());
	};
	const auto qp_event = [&](ib_event_type event) {
		auto *qp = hca.find_qp(number);
		if (qp && qp->number() == number)
			report(qp, event);
	};
	switch (type) {
	case EventType::path_migrated:
		return qp_event(IB_EVENT_PATH_MIG);
	case EventType::communication_established:
		return qp_event(IB_EVENT_COMM_EST);
	case EventType::sq_drained:
		return qp_event(IB_EVENT_SQ_DRAINED);
	case EventType::wq_catastrophic:
		return qp_event(IB_EVENT_QP_FATAL);
	case EventType::path_migration_failed:
		return qp_event(IB_EVENT_PATH_MIG_ERR);
	case EventType::wq_invalid_request:
		return qp_event(IB_EVENT_QP_REQ_ERR);
	case EventType::wq_access_violation:
		return qp_event(IB_EVENT_QP_ACCESS_ERR);
	case EventType::srq_last_wqe:
		return qp_event(IB_EVENT_QP_LAST_WQE_REACHED);
	case EventType::srq_catastrophic:
		return report(hca.find_srq(number), IB_EVENT_SRQ_ERR);
	case EventType::srq_limit:
		return report(hca.find_srq(number), IB_EVENT_SRQ_LIMIT_REACHED);
	case EventType::cq_error:
		return report(hca.find_cq(number), IB_EVENT_CQ_ERR);
	default:
		kern_dev_warning_limited(hca.dma_device(), "event of unknown type %#x\n",
					 static_cast<u32>(type));
	}
}

} // namespace mellanox_icm
