// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx5/event_queue.hpp"

#include <algorithm>

#include "cards/mellanox_icm/faults.hpp"
#include "cards/mlx5/limits.hpp"
#include "cards/mlx5/queue_entry.hpp"

namespace weft::mlx5
{

using hw::mlx5::EqContext;
namespace queue_status = hw::mlx5::queue_status;

namespace
{

// Numbers have eight bits, and 0 means that there is no queue.
constexpr std::uint32_t kFirstEq = 1;
constexpr unsigned kLogNumbers = 8;

Eqe entry_of(EventType type)
{
	Eqe entry{};
	Eqe::type.set(entry.bytes, static_cast<std::uint32_t>(type));
	return entry;
}

// Applies the EQE faults that are due.
Eqe distorted(Faults &faults, Eqe entry, bool &wrong_owner)
{
	constexpr std::uint32_t no_such_event = 0xee;
	if (faults.strikes(Fault::eqe_number)) {
		const auto type = static_cast<EventType>(Eqe::type.get(entry.bytes));
		const hw::mlx5::Field &number = type == EventType::command_done ? Eqe::commands
						: type == EventType::cq_error ? Eqe::cq_error_number
						: type == EventType::port_change ? Eqe::port
										 : Eqe::number;
		number.set(entry.bytes, number.get(entry.bytes) ^ (1 + faults.below(number.max())));
	}
	if (faults.strikes(Fault::eqe_type))
		Eqe::type.set(entry.bytes, no_such_event);
	wrong_owner = faults.strikes(Fault::eqe_owner);
	return entry;
}

} // namespace

bool EventQueue::has_room() const
{
	return status_ != queue_status::ok || settings_.overrun_ignore ||
	       unread() + std::min(kReserve, size() / 2) < size();
}

bool EventQueue::post(Eqe entry, bool wrong_owner)
{
	if (status_ != queue_status::ok)
		return false;
	if (!settings_.overrun_ignore && unread() >= size()) {
		status_ = queue_status::overflow;
		return false;
	}
	Eqe::owner.set(entry.bytes, (producer_ >> settings_.log_size & 1) ^ wrong_owner);
	const std::uint64_t offset = std::uint64_t{producer_ & (size() - 1)} * Eqe::size;
	if (!store_entry(memory_.memory(), pages_.bus_address(offset), entry.bytes)) {
		status_ = queue_status::write_failure;
		return false;
	}
	producer_ = (producer_ + 1) & kIndexMask;
	if (std::exchange(armed_, false))
		interrupt_(settings_.vector);
	return true;
}

void EventQueue::arm()
{
	armed_ = unread() == 0;
	if (!armed_)
		interrupt_(settings_.vector);
}

EqContext EventQueue::context() const
{
	namespace state = hw::mlx5::queue_state;
	EqContext context{};
	EqContext::status.set(context.bytes, status_);
	EqContext::overrun_ignore.set(context.bytes, settings_.overrun_ignore);
	EqContext::state.set(context.bytes, armed_ ? state::armed : state::fired);
	EqContext::page_offset.set(context.bytes, pages_.page_offset());
	EqContext::log_size.set(context.bytes, settings_.log_size);
	EqContext::uar_page.set(context.bytes, settings_.uar_page);
	EqContext::vector.set(context.bytes, settings_.vector);
	EqContext::log_page_size.set(context.bytes, pages_.log_page_size());
	EqContext::consumer.set(context.bytes, consumer_);
	EqContext::producer.set(context.bytes, producer_);
	return context;
}

EventQueues::EventQueues(const Memory &memory, Faults &faults,
			 std::function<void(unsigned)> interrupt, std::function<void(bool)> lost)
    : memory_(memory), faults_(faults), interrupt_(std::move(interrupt)), lost_(std::move(lost)),
      queues_(kLogNumbers), numbers_(kFirstEq, kFirstEq + limits::kEqs)
{
}

void EventQueues::reset()
{
	queues_.resize(kLogNumbers);
	numbers_.reset();
	routes_.fill(std::nullopt);
}

std::optional<std::uint32_t> EventQueues::create(const EventQueue::Settings &settings,
						 PageList pages, std::uint64_t events)
{
	const auto number = numbers_.take();
	if (!number)
		return std::nullopt;
	queues_.insert(*number, std::make_unique<EventQueue>(memory_, interrupt_, *number, settings,
							     std::move(pages)));
	for (unsigned type = 0; type < routes_.size(); ++type)
		if (events >> type & 1)
			routes_[type] = *number;
	return number;
}

bool EventQueues::remove(std::uint32_t number)
{
	if (!queues_.remove(number))
		return false;
	for (auto &route : routes_)
		if (route == number)
			route.reset();
	numbers_.give(number);
	return true;
}

EventQueue *EventQueues::find(std::uint32_t number) const
{
	return number < queues_.size() ? queues_.find(number) : nullptr;
}

std::optional<std::uint32_t> EventQueues::route(EventType type) const
{
	return routes_[static_cast<unsigned>(type)];
}

void EventQueues::post(std::uint32_t eqn, const Eqe &entry)
{
	EventQueue *const queue = find(eqn);
	if (!queue)
		return;
	const bool well = queue->status() == queue_status::ok;
	bool wrong_owner = false;
	const Eqe written = faults_.any() ? distorted(faults_, entry, wrong_owner) : entry;
	if (!queue->post(written, wrong_owner) && well)
		lost_(queue->status() == queue_status::write_failure);
}

void EventQueues::raise(const Eqe &entry)
{
	if (const auto eqn = routes_[Eqe::type.get(entry.bytes)])
		post(*eqn, entry);
}

void EventQueues::completion(std::uint32_t eqn, std::uint32_t cqn)
{
	Eqe entry = entry_of(EventType::completion);
	Eqe::number.set(entry.bytes, cqn);
	post(eqn, entry);
}

void EventQueues::raise(EventType type, std::uint32_t number, Kind kind)
{
	Eqe entry = entry_of(type);
	Eqe::number.set(entry.bytes, number);
	Eqe::kind.set(entry.bytes, static_cast<std::uint32_t>(kind));
	raise(entry);
}

bool EventQueues::raise_if_room(EventType type, std::uint32_t number)
{
	const auto eqn = route(type);
	const EventQueue *const queue = eqn ? find(*eqn) : nullptr;
	if (queue && !queue->has_room())
		return false;
	raise(type, number);
	return true;
}

bool EventQueues::all_consumed(EventType type) const
{
	const auto eqn = route(type);
	const EventQueue *const queue = eqn ? find(*eqn) : nullptr;
	return queue && queue->all_consumed();
}

void EventQueues::cq_error(std::uint32_t cqn, std::uint32_t syndrome)
{
	Eqe entry = entry_of(EventType::cq_error);
	Eqe::cq_error_number.set(entry.bytes, cqn);
	Eqe::cq_error_syndrome.set(entry.bytes, syndrome);
	raise(entry);
}

void EventQueues::port_change(unsigned port, std::uint32_t subtype)
{
	Eqe entry = entry_of(EventType::port_change);
	Eqe::subtype.set(entry.bytes, subtype);
	Eqe::port.set(entry.bytes, port);
	raise(entry);
}

void EventQueues::commands_done(std::uint32_t eqn, std::uint32_t slots)
{
	Eqe entry = entry_of(EventType::command_done);
	Eqe::commands.set(entry.bytes, slots);
	post(eqn, entry);
}

} // namespace weft::mlx5
