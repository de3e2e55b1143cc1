// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mellanox_icm/completion_queue.hpp"

#include <hw/mlx4/contexts.hpp>
#include <hw/mlx4/eqe.hpp>
#include <hw/mlx4/registers.hpp>

namespace weft::mellanox_icm
{

namespace cq_state = hw::mlx4::cq_state;
namespace cq_status = hw::mlx4::cq_status;
namespace cq_error_syndrome = hw::mlx4::cq_error_syndrome;
namespace uar = hw::mlx4::uar;
using Armed = CompletionNotifier::Armed;

CompletionQueue::CompletionQueue(const Services &services, std::uint32_t cqn,
				 const Settings &settings)
    : services_(services), cqn_(cqn), owner_(settings.owner), index_mask_(settings.index_mask),
      uar_page_(settings.uar_page), eqn_(settings.eqn), buffer_(settings.buffer),
      log_size_(settings.log_size), overrun_ignore_(settings.overrun_ignore),
      record_(settings.record), notifier_(services.loop, settings.index_mask,
					  [this] { services_.events.completion(eqn_, cqn_); })
{
	notifier_.set_moderation(settings.moderation_count, settings.moderation_period);
	const bool solicited = settings.state == cq_state::armed_solicited;
	notifier_.begin(settings.state == cq_state::armed ? Armed::next
			: solicited                       ? Armed::solicited
							  : Armed::no,
			settings.state == cq_state::fired);
}

std::uint32_t CompletionQueue::state() const
{
	if (notifier_.armed() == Armed::next)
		return cq_state::armed;
	if (notifier_.armed() == Armed::solicited)
		return cq_state::armed_solicited;
	return notifier_.fired() ? cq_state::fired : cq_state::idle;
}

void CompletionQueue::read_consumer_record()
{
	if (const auto record = services_.memory.load_record(record_))
		consumer_ = *record & index_mask_;
}

// Returns true if no slot is free. Reads the driver's doorbell record only if the queue is full
// according to the last index that was read. An index ahead of the producer is a driver's error and
// counts as full.
bool CompletionQueue::full()
{
	if (((producer_ - consumer_) & index_mask_) < size())
		return false;
	read_consumer_record();
	return ((producer_ - consumer_) & index_mask_) >= size();
}

bool CompletionQueue::store(std::uint32_t index, QueueEntry entry, bool wrong_owner)
{
	constexpr std::uint8_t owner = 0x80;
	const bool bit = owner_bit(owner_, index, log_size_) != wrong_owner;
	std::uint8_t &last = entry.back();
	last = static_cast<std::uint8_t>((last & ~owner) | (bit ? owner : 0));
	return store_entry(services_.memory, buffer_, index & (size() - 1), entry);
}

bool CompletionQueue::put(QueueEntry entry, bool solicited, bool wrong_owner)
{
	if (failed())
		return false;
	if (!overrun_ignore_ && full()) {
		fail(cq_status::overflow, cq_error_syndrome::overrun);
		return false;
	}
	if (!store(producer_, entry, wrong_owner)) {
		fail_write();
		return false;
	}
	producer_ = (producer_ + 1) & index_mask_;
	notifier_.written(producer_, solicited);
	return true;
}

void CompletionQueue::arm(std::uint32_t command, std::uint32_t consumer_index)
{
	if (command == uar::cq_arm_next)
		notifier_.arm_next(consumer_index);
	else if (command == uar::cq_arm_solicited)
		notifier_.arm_solicited(consumer_index);
}

void CompletionQueue::fail_write()
{
	fail(cq_status::write_failure, cq_error_syndrome::access_violation);
}

void CompletionQueue::fail(std::uint32_t status, std::uint8_t syndrome)
{
	status_ = status;
	services_.events.cq_error(cqn_, syndrome);
}

} // namespace weft::mellanox_icm
