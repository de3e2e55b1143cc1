// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx5/doorbells.hpp"

#include <hw/mlx5/registers.hpp>

#include "cards/mlx5/core.hpp"

namespace weft::mlx5
{

namespace uar = hw::mlx5::uar;

void Doorbells::write(std::uint32_t page, std::uint32_t offset, std::uint32_t value)
{
	if (core_.stage != Stage::initialised || !core_.health.well())
		return;
	if (offset == uar::cq_doorbell) {
		halves_[page] = value;
	} else if (offset == uar::cq_doorbell + 4) {
		const auto first = halves_.find(page);
		if (first == halves_.end())
			return;
		const std::uint32_t command = first->second;
		halves_.erase(first);
		arm_cq(page, command, value);
	} else if (offset == uar::eq_doorbell_arm || offset == uar::eq_doorbell) {
		event_queue(page, value, offset == uar::eq_doorbell_arm);
	} else if (offset >= uar::blue_flame && offset % uar::blue_flame_half == 4) {
		send(page, value);
	}
}

// A process may ring only doorbells of queues that were created with its own UAR page.
void Doorbells::send(std::uint32_t page, std::uint32_t value)
{
	Activity::add(core_.activity.send_doorbells);
	QueuePair *const qp = core_.context.queue_pair(uar::send_qpn.of(value));
	if (!qp || qp->uar_page != page) {
		++core_.diagnostics.bad_doorbells;
		return;
	}
	core_.transport->send_doorbell(*qp);
}

void Doorbells::arm_cq(std::uint32_t page, std::uint32_t first, std::uint32_t second)
{
	Activity::add(core_.activity.cq_doorbells);
	CompletionQueue *const cq = core_.context.completion_queue(uar::cq_number.of(second));
	if (!cq || cq->uar_page() != page) {
		++core_.diagnostics.bad_doorbells;
		return;
	}
	// The guest has not mapped the page.
	if (core_.polled.polls(page)) {
		cq->arm_by_record();
		return;
	}
	cq->arm(uar::cq_solicited.of(first), uar::cq_consumer_index.of(first));
}

void Doorbells::event_queue(std::uint32_t page, std::uint32_t value, bool arm)
{
	Activity::add(core_.activity.eq_doorbells);
	EventQueue *const queue = core_.events.find(uar::eq_number.of(value));
	if (!queue || queue->uar_page() != page) {
		++core_.diagnostics.bad_doorbells;
		return;
	}
	queue->set_consumer(uar::eq_consumer_index.of(value));
	core_.transport->events_wanted();
	if (arm)
		queue->arm();
}

} // namespace weft::mlx5
