// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "connectx/event_queue.hpp"

#include "connectx/faults.hpp"
#include "mellanox/queue_memory.hpp"

namespace weft::connectx
{

using hw::connectx::EqContext;
using hw::connectx::Eqe;
namespace eq_state = hw::connectx::eq_state;
namespace eq_status = hw::connectx::eq_status;

EventQueue::EventQueue(const MemoryTable &memory, std::function<void(unsigned)> interrupt,
		       std::uint32_t eqn, const EqContext &context)
    : memory_(memory), interrupt_(std::move(interrupt)), eqn_(eqn),
      log_size_(static_cast<std::uint8_t>(EqContext::log_size.get(context.bytes))),
      vector_(static_cast<std::uint16_t>(EqContext::vector.get(context.bytes))),
      overrun_ignore_(EqContext::overrun_ignore.get(context.bytes)),
      state_(EqContext::state.get(context.bytes))
{
	buffer_.mtt_offset = EqContext::mtt_offset.get(context.bytes);
	buffer_.page_shift =
		static_cast<std::uint8_t>(12 + EqContext::log_page_size.get(context.bytes));
	buffer_.page_offset = EqContext::page_offset.get(context.bytes) * 32;
}

bool EventQueue::initialise_buffer()
{
	return fill_hardware_owned(memory_, buffer_, 0, size(), log_size_);
}

bool EventQueue::post(Eqe entry, bool wrong_owner)
{
	if (status_ != eq_status::ok)
		return false;
	if (!overrun_ignore_ && ((producer_ - consumer_) & kIndexMask) >= size()) {
		status_ = eq_status::overflow;
		return false;
	}
	Eqe::owner.set(entry.bytes, (producer_ >> log_size_ & 1) ^ (wrong_owner ? 1u : 0u));
	if (!store_entry(memory_, buffer_, producer_ & (size() - 1), entry.bytes)) {
		status_ = eq_status::write_failure;
		return false;
	}
	producer_ = (producer_ + 1) & kIndexMask;
	if (state_ == eq_state::armed || state_ == eq_state::always_armed)
		fire();
	return true;
}

void EventQueue::doorbell(std::uint32_t consumer_index, bool arm)
{
	consumer_ = consumer_index & kIndexMask;
	if (!arm)
		return;
	if (state_ != eq_state::always_armed)
		state_ = eq_state::armed;
	if (producer_ != consumer_)
		fire();
}

void EventQueue::fire()
{
	if (state_ != eq_state::always_armed)
		state_ = eq_state::fired;
	interrupt_(vector_);
}

EqContext EventQueue::context() const
{
	EqContext context{};
	EqContext::status.set(context.bytes, status_);
	EqContext::overrun_ignore.set(context.bytes, overrun_ignore_);
	EqContext::state.set(context.bytes, state_);
	EqContext::page_offset.set(context.bytes, buffer_.page_offset / 32);
	EqContext::log_size.set(context.bytes, log_size_);
	EqContext::vector.set(context.bytes, vector_);
	EqContext::log_page_size.set(context.bytes, buffer_.page_shift - 12u);
	EqContext::mtt_offset.set(context.bytes, buffer_.mtt_offset);
	EqContext::consumer_index.set(context.bytes, consumer_);
	EqContext::producer_index.set(context.bytes, producer_);
	return context;
}

EventQueues::EventQueues(std::function<void(unsigned)> interrupt, std::function<void()> lost,
			 Faults *faults)
    : interrupt_(std::move(interrupt)), lost_(std::move(lost)), faults_(faults)
{
	routes_.fill(kNone);
}

void EventQueues::reset(unsigned log_eqs)
{
	queues_.resize(log_eqs);
	routes_.fill(kNone);
}

EventQueue *EventQueues::find(std::uint32_t eqn) const
{
	return eqn < queues_.size() ? queues_.find(eqn) : nullptr;
}

bool EventQueues::create(const MemoryTable &memory, std::uint32_t eqn, const EqContext &context)
{
	auto queue = std::make_unique<EventQueue>(memory, interrupt_, eqn, context);
	if (!queue->initialise_buffer())
		return false;
	queues_.insert(eqn, std::move(queue));
	return true;
}

std::unique_ptr<EventQueue> EventQueues::remove(std::uint32_t eqn)
{
	unmap(~std::uint64_t{0}, eqn);
	return eqn < queues_.size() ? queues_.remove(eqn) : nullptr;
}

void EventQueues::map(std::uint64_t mask, std::uint32_t eqn)
{
	for (unsigned type = 0; type < routes_.size(); ++type)
		if (mask >> type & 1)
			routes_[type] = eqn;
}

void EventQueues::unmap(std::uint64_t mask, std::uint32_t eqn)
{
	for (unsigned type = 0; type < routes_.size(); ++type)
		if ((mask >> type & 1) && routes_[type] == eqn)
			routes_[type] = kNone;
}

void EventQueues::post(std::uint32_t eqn, const Eqe &entry)
{
	EventQueue *queue = find(eqn);
	if (!queue)
		return;
	bool wrong_owner = false;
	const Eqe &written =
		faults_ && faults_->any() ? faults_->distorted(entry, wrong_owner) : entry;
	if (queue->post(written, wrong_owner))
		return;
	if (queue->status() == eq_status::write_failure) {
		lost_();
		return;
	}
	// Report the loss, and not to the queue that is full: where there is no other, or none that is to
	// hear of it, the driver finds it in the error buffer.
	const auto overflow = static_cast<std::uint32_t>(EventType::eq_overflow);
	if (Eqe::type.get(entry.bytes) == overflow || routes_[overflow] == eqn ||
	    routes_[overflow] == kNone) {
		lost_();
		return;
	}
	Eqe report{};
	Eqe::type.set(report.bytes, overflow);
	Eqe::number.set(report.bytes, eqn);
	raise(report);
}

void EventQueues::completion(std::uint32_t eqn, std::uint32_t cqn)
{
	Eqe entry{};
	Eqe::type.set(entry.bytes, static_cast<std::uint32_t>(EventType::completion));
	Eqe::number.set(entry.bytes, cqn);
	post(eqn, entry);
}

void EventQueues::raise(EventType type, std::uint32_t number)
{
	Eqe entry{};
	Eqe::type.set(entry.bytes, static_cast<std::uint32_t>(type));
	Eqe::number.set(entry.bytes, number);
	raise(entry);
}

void EventQueues::cq_error(std::uint32_t cqn, std::uint8_t syndrome)
{
	Eqe entry{};
	Eqe::type.set(entry.bytes, static_cast<std::uint32_t>(EventType::cq_error));
	Eqe::number.set(entry.bytes, cqn);
	Eqe::syndrome.set(entry.bytes, syndrome);
	raise(entry);
}

void EventQueues::raise(Eqe entry)
{
	const std::uint32_t type = Eqe::type.get(entry.bytes);
	if (type < routes_.size() && routes_[type] != kNone)
		post(routes_[type], entry);
}

} // namespace weft::connectx
