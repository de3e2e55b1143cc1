// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx5/completion_queue.hpp"

#include <algorithm>
#include <utility>

#include "cards/mellanox_icm/faults.hpp"
#include "cards/mlx5/queue_entry.hpp"

namespace weft::mlx5
{

using hw::mlx5::Cqe;
using hw::mlx5::CqContext;
using hw::mlx5::CqeOpcode;
namespace queue_status = hw::mlx5::queue_status;

namespace
{

// Applies the CQE faults that are due. A wrong QP number must also have a wrong index of the owner,
// because programs look a QP up by the index.
Cqe distorted(Faults &faults, Cqe entry, bool &wrong_owner)
{
	constexpr std::uint32_t no_such_completion = 0x9;
	if (faults.strikes(Fault::cqe_number)) {
		const std::uint32_t other = 1 + faults.below(0xffffff);
		Cqe::qpn.set(entry.bytes, Cqe::qpn.get(entry.bytes) ^ other);
		Cqe::srqn.set(entry.bytes, Cqe::srqn.get(entry.bytes) ^ other);
	}
	if (faults.strikes(Fault::cqe_index))
		Cqe::wqe_counter.set(entry.bytes, Cqe::wqe_counter.get(entry.bytes) ^
							  (1 + faults.below(0xffff)));
	if (faults.strikes(Fault::cqe_opcode))
		Cqe::opcode.set(entry.bytes, no_such_completion);
	wrong_owner = faults.strikes(Fault::cqe_owner);
	return entry;
}

} // namespace

CompletionQueue::CompletionQueue(const Services &services, std::uint32_t number,
				 const Settings &settings, PageList pages)
    : services_(services), number_(number), settings_(settings), pages_(std::move(pages)),
      session_(settings.mini_format, limits::kMostCompressed),
      notifier_(services.loop, kIndexMask, [this] {
	      notified_sequence_ = arm_sequence_;
	      services_.events.completion(settings_.eqn, number_);
      })
{
}

void CompletionQueue::read_consumer_record()
{
	const GuestMemory *const memory = services_.memory.memory();
	const auto record = memory ? memory->load<std::uint32_t>(settings_.record) : std::nullopt;
	if (record)
		consumer_ = ib::be32::from_raw(*record) & kIndexMask;
}

// Returns true if no slot is free. The driver's doorbell record is read only if the last value read
// shows a full queue. An index ahead of the producer is a driver's error and counts as full.
bool CompletionQueue::full()
{
	const auto used = [this] { return (producer_ + session_.size() - consumer_) & kIndexMask; };
	if (used() < size())
		return false;
	read_consumer_record();
	return used() >= size();
}

// Returns the address of the first byte of the slot of entry @index.
std::uint64_t CompletionQueue::slot_address(std::uint32_t index) const
{
	const std::uint64_t slot = settings_.collapsed ? 0 : index & (size() - 1);
	return pages_.bus_address(slot * (settings_.large_slots ? 2 * Cqe::size : Cqe::size));
}

bool CompletionQueue::store(std::uint32_t index, Cqe entry, std::span<const std::byte> front,
			    bool wrong_owner)
{
	Cqe::owner.set(entry.bytes, (index >> settings_.log_size & 1) ^ wrong_owner);
	const std::uint64_t slot = slot_address(index);
	GuestMemory *const memory = services_.memory.memory();
	if (!front.empty() && !(memory && memory->write(slot, front)))
		return false;
	return store_entry(memory, slot + place_in_slot(), entry.bytes);
}

// The title is written last, because its owner bit makes the mini CQEs valid.
bool CompletionQueue::store_session()
{
	using hw::mlx5::MiniCqe;
	GuestMemory *const memory = services_.memory.memory();
	for (std::uint32_t first = 0; first < session_.size(); first += MiniCqe::per_slot) {
		const auto minis = session_.minis(first);
		const std::uint32_t index = producer_ + std::max(first, 1u);
		if (!(memory && memory->write(slot_address(index) + place_in_slot(),
					      std::as_bytes(std::span(minis)))))
			return false;
	}
	return store(producer_, session_.title());
}

void CompletionQueue::fail(std::uint32_t status, std::uint32_t syndrome)
{
	status_ = status;
	services_.events.cq_error(number_, syndrome);
}

bool CompletionQueue::post(Cqe entry, bool solicited, std::span<const std::byte> front)
{
	if (failed() || (!front.empty() && !settings_.large_slots))
		return false;
	const bool holds = may_hold(entry, solicited, front);
	if (!holds || !session_.accepts(entry))
		write_held();
	if (failed())
		return false;
	if (!settings_.overrun_ignore && full()) {
		write_held();
		if (!failed())
			fail(queue_status::overflow, hw::mlx5::Eqe::cq_overrun);
		return false;
	}
	if (holds) {
		session_.add(entry);
		services_.held.add(*this);
		if (session_.full() || session_.size() == size())
			write_held();
		return !failed();
	}
	bool wrong_owner = false;
	if (services_.faults.any())
		entry = distorted(services_.faults, entry, wrong_owner);
	if (!store(producer_, entry, front, wrong_owner)) {
		fail(queue_status::write_failure, hw::mlx5::Eqe::cq_access_violation);
		return false;
	}
	producer_ = (producer_ + 1) & kIndexMask;
	notifier_.written(producer_, solicited);
	return true;
}

// A solicited completion is not held back, because a program waits for its event; and faults apply
// to single entries.
bool CompletionQueue::may_hold(const Cqe &entry, bool solicited,
			       std::span<const std::byte> front) const
{
	return settings_.compressed && !solicited && front.empty() && !services_.faults.any() &&
	       CompressedSession::may_hold(entry);
}

void CompletionQueue::write_held()
{
	const std::uint32_t count = session_.size();
	if (count == 0)
		return;
	const bool stored = failed()     ? false
			    : count == 1 ? store(producer_, session_.first())
					 : store_session();
	session_.clear();
	if (stored) {
		producer_ = (producer_ + count) & kIndexMask;
		notifier_.written(producer_, false);
	} else if (!failed()) {
		fail(queue_status::write_failure, hw::mlx5::Eqe::cq_access_violation);
	}
}

void CompletionQueue::arm(bool solicited, std::uint32_t consumer_index)
{
	if (solicited)
		notifier_.arm_solicited(consumer_index);
	else
		notifier_.arm_next(consumer_index);
}

// The word has a sequence number, which drivers increment when they receive an event. The card
// reports one event for each number. At most one event is therefore pending when the driver arms
// the queue, and the same word cannot mean a later arm: if the event was received, the number is
// another, and if it is pending, the driver will receive it. The only exception is the first arm of
// a new queue in user space, whose word is 0, as in a new record. Its doorbell may have been
// overwritten by that of another queue, so the queue counts as armed.
bool CompletionQueue::arm_by_record()
{
	namespace uar = hw::mlx5::uar;
	const GuestMemory *const memory = services_.memory.memory();
	const auto raw = memory ? memory->load<std::uint32_t>(settings_.record + 4) : std::nullopt;
	if (!raw)
		return false;
	const std::uint32_t word = ib::be32::from_raw(*raw).value();
	if (word == arm_word_ && std::exchange(armed_once_, true))
		return false;
	armed_once_ = true;
	arm_word_ = word;
	const std::uint32_t sequence = uar::cq_sequence.of(word);
	if (sequence == notified_sequence_)
		return true;
	arm_sequence_ = sequence;
	arm(uar::cq_solicited.of(word), uar::cq_consumer_index.of(word));
	return true;
}

CompletionQueue::Resized CompletionQueue::resize(PageList pages, unsigned log_size)
{
	write_held();
	read_consumer_record();
	const std::uint32_t unread = (producer_ - consumer_) & kIndexMask;
	if (failed() || unread + 1 > size() || unread + 1 > std::uint32_t{1} << log_size)
		return Resized::too_small;
	Cqe mark{};
	Cqe::opcode.set(mark.bytes, static_cast<std::uint32_t>(CqeOpcode::resize));
	if (!store(producer_, mark))
		return Resized::unreachable;
	pages_ = std::move(pages);
	settings_.log_size = static_cast<std::uint8_t>(log_size);
	producer_ = (producer_ + 1) & kIndexMask;
	notifier_.moved_up(producer_);
	return Resized::done;
}

CqContext CompletionQueue::context() const
{
	namespace state = hw::mlx5::queue_state;
	const bool armed = notifier_.armed() != CompletionNotifier::Armed::no;
	CqContext context{};
	std::uint8_t *const out = context.bytes;
	CqContext::status.set(out, status_);
	CqContext::entry_size.set(out, !settings_.large_slots ? CqContext::entry_64
				       : settings_.padded     ? CqContext::entry_128_padded
							      : CqContext::entry_128);
	CqContext::collapsed.set(out, settings_.collapsed);
	CqContext::overrun_ignore.set(out, settings_.overrun_ignore);
	CqContext::compressed.set(out, settings_.compressed);
	CqContext::mini_format.set(out, settings_.mini_format);
	CqContext::state.set(out, armed ? state::armed : notifier_.fired() ? state::fired : 0);
	CqContext::page_offset.set(out, pages_.page_offset());
	CqContext::log_size.set(out, settings_.log_size);
	CqContext::uar_page.set(out, settings_.uar_page);
	CqContext::moderation_period.set(out, moderation_period());
	CqContext::moderation_count.set(out, moderation_count());
	CqContext::eqn.set(out, settings_.eqn);
	CqContext::log_page_size.set(out, pages_.log_page_size());
	CqContext::last_notified.set(out, notifier_.notified());
	CqContext::last_solicited.set(out, notifier_.solicited_producer());
	CqContext::consumer.set(out, consumer_);
	CqContext::producer.set(out, producer_);
	CqContext::record.set(out, settings_.record);
	return context;
}

} // namespace weft::mlx5
