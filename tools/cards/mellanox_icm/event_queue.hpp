// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Event queues: entries, arming, interrupts, and the mapping of events to queues.
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
		std::uint32_t index_mask = kIndexMask; // of producer and consumer index
		std::uint16_t vector = 0;
		bool overrun_ignore = false;
		std::uint32_t state = 0; // one of eq_state
	};

	// @interrupt is called with the vector when the queue's owner must be woken.
	EventQueue(const MemoryTable &memory, std::function<void(unsigned vector)> interrupt,
		   std::uint32_t eqn, const Settings &settings)
	    : memory_(memory), interrupt_(std::move(interrupt)), eqn_(eqn), settings_(settings),
	      state_(settings.state)
	{
	}

	std::uint32_t number() const { return eqn_; }
	// One of eq_status.
	std::uint32_t status() const { return status_; }
	std::uint32_t state() const { return state_; }
	std::uint32_t producer() const { return producer_; }
	std::uint32_t consumer() const { return consumer_; }
	const Settings &settings() const { return settings_; }
	// Returns true if entries that others than its owner cause may be written: a part of it, at
	// most kReserve, is reserved for those that the owner itself and the fabric's manager
	// cause. A queue that takes no entries at all, or any number, has room.
	bool has_room() const;
	static constexpr std::uint32_t kReserve = 64;
	// Marks all entries as the card's; where software does not.
	bool initialise_buffer();
	// Writes an entry, the owner bit supplied here. False on overrun, or if the buffer cannot
	// be reached: the queue then takes no more.
	bool post(hw::mlx4::Eqe entry, bool wrong_owner = false);
	void set_consumer_index(std::uint32_t index) { consumer_ = index & settings_.index_mask; }
	// The next entry interrupts: at once, if there is one.
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
	// @lost is called when the memory of a queue cannot be written: its owner cannot be told.
	// @distort: how entries come out of a card that is broken on purpose; the owner bit is
	// wrong, too, if it says so.
	using Distort = std::function<hw::mlx4::Eqe(hw::mlx4::Eqe entry, bool &wrong_owner)>;
	explicit EventQueues(
		std::function<void(unsigned vector)> interrupt, std::function<void()> lost = [] {},
		Distort distort = {});

	// A completion event of queue @cqn.
	void completion(std::uint32_t eqn, std::uint32_t cqn);
	// An asynchronous event of the queue pair or shared receive queue @number.
	void raise(EventType type, std::uint32_t number);
	// The same, of what peers cause; false, and nothing happens, where there is no room for it.
	[[nodiscard]] bool raise_if_room(EventType type, std::uint32_t number);
	void cq_error(std::uint32_t cqn, std::uint8_t syndrome);
	// The port became active, or is no longer. No other change of state has an event.
	void raise_port_state(unsigned port, bool active);
	// Any other asynchronous event.
	void raise(hw::mlx4::Eqe entry);

	// Commands.
	void reset(unsigned log_eqs);
	EventQueue *find(std::uint32_t eqn) const;
	EventQueue &create(const MemoryTable &memory, std::uint32_t eqn,
			   const EventQueue::Settings &settings);
	std::unique_ptr<EventQueue> remove(std::uint32_t eqn);
	// Routes the event types of the bits of @mask to @eqn, or to none.
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
