// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mthca/doorbells.hpp"

#include <hw/mthca/registers.hpp>

#include "cards/mthca/core.hpp"
#include "cards/mellanox_icm/registers.hpp"

namespace weft::mthca
{

namespace uar = hw::mthca::uar;

void Doorbells::write(std::uint64_t offset, std::span<const std::byte> data)
{
	mellanox_icm::write_dwords(offset, data, [this](std::uint64_t place, std::uint32_t value) {
		write_dword(static_cast<std::uint32_t>(place / uar::page_size),
			    static_cast<std::uint32_t>(place % uar::page_size), value);
	});
}

// iPXE and 32-bit systems write the two dwords separately, the first one first.
void Doorbells::write_dword(std::uint32_t page, std::uint32_t offset, std::uint32_t value)
{
	if (core_.bring_up.stage() != mellanox_icm::Stage::initialised)
		return;
	if (offset == uar::send_doorbell || offset == uar::cq_doorbell) {
		halves_[{page, offset}] = value;
		return;
	}
	if (offset != uar::send_doorbell + 4 && offset != uar::cq_doorbell + 4)
		return;
	const auto first = halves_.find({page, offset - 4});
	if (first == halves_.end())
		return;
	const std::uint32_t half = first->second;
	halves_.erase(first);
	if (offset == uar::send_doorbell + 4)
		send(page, half, value);
	else
		arm_cq(page, half, value);
}

// A process may ring only doorbells of queues that were created with the process's UAR page.
void Doorbells::send(std::uint32_t page, std::uint32_t first, std::uint32_t second)
{
	Activity::add(core_.activity.send_doorbells);
	QueuePair *const qp = core_.context.queue_pair(uar::send_qpn.of(second));
	if (!qp || qp->uar_page != page) {
		++core_.diagnostics.bad_doorbells;
		return;
	}
	// The next doorbell covers these requests, too, because it counts from the first one.
	if (!qp->accepts_send_doorbell())
		return;
	const auto end =
		static_cast<std::uint16_t>(uar::send_index.of(first) + uar::send_count.of(first));
	// The index must not decrease or exceed the queue. A doorbell record with such a value is
	// also ignored.
	const auto ahead = static_cast<std::uint16_t>(end - qp->send_producer);
	if (ahead == 0 || ahead > qp->send_queue.size()) {
		++core_.diagnostics.bad_doorbells;
		return;
	}
	qp->send_producer = end;
	core_.transport->send_doorbell(*qp);
}

void Doorbells::arm_cq(std::uint32_t page, std::uint32_t first, std::uint32_t second)
{
	Activity::add(core_.activity.cq_doorbells);
	CompletionQueue *const cq = core_.context.completion_queue(uar::cq_cqn.of(first));
	if (!cq || cq->uar_page() != page) {
		++core_.diagnostics.bad_doorbells;
		return;
	}
	cq->arm(uar::cq_command.of(first), second);
}

void Doorbells::set_eq_consumer_index(std::uint64_t offset, std::uint32_t index)
{
	Activity::add(core_.activity.eq_doorbells);
	if (offset % hw::mthca::eq_ci_stride)
		return;
	if (EventQueue *const queue =
		    core_.events.find(static_cast<std::uint32_t>(offset / hw::mthca::eq_ci_stride)))
		queue->set_consumer_index(index);
	core_.transport->events_wanted();
}

void Doorbells::arm_eqs(std::uint32_t first, std::uint32_t mask)
{
	for (std::uint32_t bit = 0; mask; ++bit, mask >>= 1)
		if (EventQueue *const queue = mask & 1 ? core_.events.find(first + bit) : nullptr)
			queue->arm();
}

} // namespace weft::mthca
