// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements event queues: entries, arming, interrupts, and the mapping of events to queues.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>

#include <hw/mlx4/eqe.hpp>

#include "cards/mellanox_icm/memory_table.hpp"
#include "cards/mellanox_icm/queue_memory.hpp"
#include "cards/hca/sparse_table.hpp"

namespace weft
{
class Loop;
class Timer;
} // namespace weft

namespace weft::mellanox_icm
{

using hw::mlx4::EventType;

using namespace hca;

class EventQueue
{
public:
	struct Settings {
		QueueBuffer buffer;
		std::uint8_t log_size = 0;
		OwnerRule owner = OwnerRule::lap;
		std::uint32_t index_mask = kIndexMask; // mask of producer and consumer indexes
		std::uint16_t vector = 0;
		bool overrun_ignore = false;
		std::uint32_t state = 0; // a value of eq_state
	};

	// @interrupt is called with the vector when the driver must be notified.
	EventQueue(const MemoryTable &memory, std::function<void(unsigned vector)> interrupt,
		   std::uint32_t eqn, const Settings &settings)
	    : memory_(memory), interrupt_(std::move(interrupt)), eqn_(eqn), settings_(settings),
	      state_(settings.state)
	{
	}

	std::uint32_t number() const { return eqn_; }
	// Returns a value of eq_status.
	std::uint32_t status() const { return status_; }
	std::uint32_t state() const { return state_; }
	std::uint32_t producer() const { return producer_; }
	std::uint32_t consumer() const { return consumer_; }
	const Settings &settings() const { return settings_; }
	// Returns true if events that peers cause may be written. At most kReserve entries are
	// reserved for events that the driver itself and the subnet manager cause. Also returns
	// true for a queue that takes no events, or any number of events.
	bool has_room() const;
	static constexpr std::uint32_t kReserve = 64;
	// Marks all entries as owned by the card, for cards whose drivers do not do this.
	bool initialise_buffer();
	// Writes an entry and sets its owner bit. Returns false on overrun, or if the buffer is not
	// accessible. The queue then takes no more entries.
	bool post(hw::mlx4::Eqe entry, bool wrong_owner = false);
	void set_consumer_index(std::uint32_t index) { consumer_ = index & settings_.index_mask; }
	// Arms the queue: the next entry, or an existing one, causes an interrupt.
	void arm();

private:
	std::uint32_t size() const { return std::uint32_t{1} << settings_.log_size; }
	void fire();

	const MemoryTable &memory_;
	const std::function<void(unsigned)> interrupt_;
	const std::uint32_t eqn_;
	const Settings settings_;
	std::uint32_t status_ = 0;
	std::uint32_t state_;
	std::uint32_t producer_ = 0;
	std::uint32_t consumer_ = 0;
};

// EventQueues - all event queues of a card, and the map from event types to them.
class EventQueues
{
public:
	// @lost is called if an event was lost and no other event can report this, because the
	// memory of a queue cannot be written, or no other queue receives overflow events. @distort
	// changes entries if a fault is simulated, and may request a wrong owner bit.
	using Distort = std::function<hw::mlx4::Eqe(hw::mlx4::Eqe entry, bool &wrong_owner)>;
	explicit EventQueues(
		std::function<void(unsigned vector)> interrupt, std::function<void()> lost = [] {},
		Distort distort = {});

	// Posts a completion event of CQ @cqn.
	void completion(std::uint32_t eqn, std::uint32_t cqn);
	// Posts an asynchronous event of the queue pair or shared receive queue @number.
	void raise(EventType type, std::uint32_t number);
	// Posts an event that peers cause. Returns false without effect if there is no space.
	[[nodiscard]] bool raise_if_room(EventType type, std::uint32_t number);
	void cq_error(std::uint32_t cqn, std::uint8_t syndrome);
	// Posts an event that the port has become active, or is no longer active. Other changes of
	// the state have no event.
	void raise_port_state(unsigned port, bool active);
	// Posts any other asynchronous event.
	void raise(hw::mlx4::Eqe entry);

	// Commands.
	void reset(unsigned log_eqs);
	EventQueue *find(std::uint32_t eqn) const;
	EventQueue &create(const MemoryTable &memory, std::uint32_t eqn,
			   const EventQueue::Settings &settings);
	std::unique_ptr<EventQueue> remove(std::uint32_t eqn);
	// Routes the event types in @mask to @eqn, or to no queue.
	void map(std::uint64_t mask, std::uint32_t eqn);
	void unmap(std::uint64_t mask, std::uint32_t eqn);
	std::uint32_t size() const { return queues_.size(); }
	template<typename F>
	void for_each(F &&f) const
	{
		queues_.for_each(std::forward<F>(f));
	}

private:
	static constexpr std::uint32_t kNone = ~std::uint32_t{0};

	void post(std::uint32_t eqn, const hw::mlx4::Eqe &entry);

	const std::function<void(unsigned)> interrupt_;
	const std::function<void()> lost_;
	const Distort distort_;
	SparseTable<EventQueue> queues_;
	std::array<std::uint32_t, 64> routes_;
};

} // namespace weft::mellanox_icm
