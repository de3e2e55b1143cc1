// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx4/doorbells.hpp"

#include <hw/mlx4/registers.hpp>

#include "cards/mlx4/core.hpp"
#include "cards/mellanox_icm/registers.hpp"

namespace weft::mlx4
{

namespace uar = hw::mlx4::uar;

void Doorbells::write(std::uint64_t offset, std::span<const std::byte> data)
{
	write_dwords(offset, data, [this](std::uint64_t place, std::uint32_t value) {
		write_dword(static_cast<std::uint32_t>(place / uar::page_size),
			    static_cast<std::uint32_t>(place % uar::page_size), value);
	});
}

void Doorbells::write_dword(std::uint32_t page, std::uint32_t offset, std::uint32_t value)
{
	constexpr std::uint32_t eq_end =
		uar::eq_doorbell + uar::eq_doorbell_stride * uar::eqs_per_page;
	if (core_.bring_up.stage() != mellanox_icm::Stage::initialised)
		return;
	if (offset == uar::send_doorbell) {
		send(page, value);
	} else if (offset == uar::cq_doorbell) {
		halves_[page] = value;
	} else if (offset == uar::cq_doorbell + 4) {
		const auto first = halves_.find(page);
		if (first == halves_.end())
			return;
		const std::uint32_t command = first->second;
		halves_.erase(first);
		arm_cq(page, command, value);
	} else if (offset >= uar::eq_doorbell && offset < eq_end &&
		   offset % uar::eq_doorbell_stride == 0) {
		event_queue(page * uar::eqs_per_page +
				    (offset - uar::eq_doorbell) / uar::eq_doorbell_stride,
			    value);
	}
}

// A process may ring only doorbells of queues that were created with the process's UAR page.
void Doorbells::send(std::uint32_t page, std::uint32_t value)
{
	Activity::add(core_.activity.send_doorbells);
	QueuePair *qp = core_.context.queue_pair(uar::send_doorbell_qpn.of(value));
	if (!qp || qp->uar_page != page) {
		++core_.diagnostics.bad_doorbells;
		return;
	}
	core_.transport->send_doorbell(*qp);
}

void Doorbells::arm_cq(std::uint32_t page, std::uint32_t first, std::uint32_t second)
{
	Activity::add(core_.activity.cq_doorbells);
	CompletionQueue *cq = core_.context.completion_queue(uar::cq_doorbell_cqn.of(first));
	if (!cq || cq->uar_page() != page) {
		++core_.diagnostics.bad_doorbells;
		return;
	}
	cq->arm(uar::cq_doorbell_command.of(first), uar::cq_doorbell_consumer_index.of(second));
}

void Doorbells::event_queue(std::uint32_t eqn, std::uint32_t value)
{
	Activity::add(core_.activity.eq_doorbells);
	EventQueue *queue = core_.events.find(eqn);
	if (!queue) {
		++core_.diagnostics.bad_doorbells;
		return;
	}
	queue->set_consumer_index(uar::eq_doorbell_consumer_index.of(value));
	core_.transport->events_wanted();
	if (uar::eq_doorbell_arm.of(value))
		queue->arm();
}

} // namespace weft::mlx4
