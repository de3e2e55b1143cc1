// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mellanox_icm/event_queue.hpp"

#include <algorithm>

#include <hw/mlx4/contexts.hpp>

namespace weft::mellanox_icm
{

using hw::mlx4::Eqe;
namespace eq_state = hw::mlx4::eq_state;
namespace eq_status = hw::mlx4::eq_status;

bool EventQueue::initialise_buffer()
{
	return fill_hardware_owned(memory_, settings_.buffer, 0, size(), settings_.log_size);
}

bool EventQueue::has_room() const
{
	const std::uint32_t taken = (producer_ - consumer_) & settings_.index_mask;
	return status_ != eq_status::ok || settings_.overrun_ignore ||
	       taken + std::min(kReserve, size() / 2) < size();
}

bool EventQueue::post(Eqe entry, bool wrong_owner)
{
	if (status_ != eq_status::ok)
		return false;
	if (!settings_.overrun_ignore &&
	    ((producer_ - consumer_) & settings_.index_mask) >= size()) {
		status_ = eq_status::overflow;
		return false;
	}
	Eqe::owner.set(entry.bytes,
		       owner_bit(settings_.owner, producer_, settings_.log_size) != wrong_owner);
	if (!store_entry(memory_, settings_.buffer, producer_ & (size() - 1), entry.bytes)) {
		status_ = eq_status::write_failure;
		return false;
	}
	producer_ = (producer_ + 1) & settings_.index_mask;
	if (state_ == eq_state::armed || state_ == eq_state::always_armed)
		fire();
	return true;
}

void EventQueue::arm()
{
	if (state_ != eq_state::always_armed)
		state_ = eq_state::armed;
	if (producer_ != consumer_)
		fire();
}

void EventQueue::fire()
{
	if (state_ != eq_state::always_armed)
		state_ = eq_state::fired;
	interrupt_(settings_.vector);
}

EventQueues::EventQueues(std::function<void(unsigned)> interrupt, std::function<void()> lost,
			 Distort distort)
    : interrupt_(std::move(interrupt)), lost_(std::move(lost)), distort_(std::move(distort))
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

EventQueue &EventQueues::create(const MemoryTable &memory, std::uint32_t eqn,
				const EventQueue::Settings &settings)
{
	return queues_.insert(eqn, std::make_unique<EventQueue>(memory, interrupt_, eqn, settings));
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
	const Eqe written = distort_ ? distort_(entry, wrong_owner) : entry;
	if (queue->post(written, wrong_owner))
		return;
	if (queue->status() == eq_status::write_failure) {
		lost_();
		return;
	}
	// Report the loss by an event in another queue. If no other queue receives such events, the
	// driver finds the loss in the error buffer.
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

bool EventQueues::raise_if_room(EventType type, std::uint32_t number)
{
	const std::uint32_t route = routes_[static_cast<unsigned>(type)];
	const EventQueue *const queue = route == kNone ? nullptr : find(route);
	if (queue && !queue->has_room())
		return false;
	raise(type, number);
	return true;
}

void EventQueues::cq_error(std::uint32_t cqn, std::uint8_t syndrome)
{
	Eqe entry{};
	Eqe::type.set(entry.bytes, static_cast<std::uint32_t>(EventType::cq_error));
	Eqe::number.set(entry.bytes, cqn);
	Eqe::syndrome.set(entry.bytes, syndrome);
	raise(entry);
}

void EventQueues::raise_port_state(unsigned port, bool active)
{
	namespace subtype = hw::mlx4::port_change_subtype;
	Eqe entry{};
	Eqe::type.set(entry.bytes, static_cast<std::uint32_t>(EventType::port_change));
	Eqe::subtype.set(entry.bytes, active ? subtype::active : subtype::down);
	Eqe::port.set(entry.bytes, port);
	raise(entry);
}

void EventQueues::raise(Eqe entry)
{
	const std::uint32_t type = Eqe::type.get(entry.bytes);
	if (type < routes_.size() && routes_[type] != kNone)
		post(routes_[type], entry);
}

} // namespace weft::mellanox_icm
