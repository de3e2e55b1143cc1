// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Event queues: entries, arming, interrupts, and which event goes where.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>

#include <hw/connectx/contexts.hpp>
#include <hw/connectx/eqe.hpp>

#include "connectx/names.hpp"
#include "mellanox/memory_table.hpp"
#include "hca/sparse_table.hpp"

namespace weft
{
class Loop;
class Timer;
} // namespace weft

namespace weft::connectx
{

using hw::connectx::EventType;

class Faults;

class EventQueue
{
public:
	// @interrupt is called with the vector when the queue's owner must be woken.
	EventQueue(const MemoryTable &memory, std::function<void(unsigned vector)> interrupt,
		   std::uint32_t eqn, const hw::connectx::EqContext &context);

	std::uint32_t number() const { return eqn_; }
	// One of eq_status.
	std::uint32_t status() const { return status_; }
	bool initialise_buffer();
	// Writes an entry, the owner bit supplied here. False on overrun, or if the buffer cannot
	// be reached: the queue then takes no more.
	bool post(hw::connectx::Eqe entry, bool wrong_owner = false);
	// The doorbell: sets the consumer index, and arms.
	void doorbell(std::uint32_t consumer_index, bool arm);
	hw::connectx::EqContext context() const;

private:
	std::uint32_t size() const { return std::uint32_t{1} << log_size_; }
	void fire();

	const MemoryTable &memory_;
	const std::function<void(unsigned)> interrupt_;
	const std::uint32_t eqn_;
	QueueBuffer buffer_;
	std::uint8_t log_size_;
	std::uint16_t vector_;
	bool overrun_ignore_;
	std::uint32_t status_ = 0;
	std::uint32_t state_;
	std::uint32_t producer_ = 0; // 24 bits
	std::uint32_t consumer_ = 0;
};

// EventQueues - all event queues of a card, and the map from event types to them.
class EventQueues
{
public:
	// @lost is called when the memory of a queue cannot be written: its owner cannot be told.
	// @faults: of a card that is broken on purpose.
	explicit EventQueues(
		std::function<void(unsigned vector)> interrupt, std::function<void()> lost = [] {},
		Faults *faults = nullptr);

	// A completion event of queue @cqn.
	void completion(std::uint32_t eqn, std::uint32_t cqn);
	// An asynchronous event of the queue pair or shared receive queue @number.
	void raise(EventType type, std::uint32_t number);
	void cq_error(std::uint32_t cqn, std::uint8_t syndrome);
	// Any other asynchronous event.
	void raise(hw::connectx::Eqe entry);

	// Commands.
	void reset(unsigned log_eqs);
	EventQueue *find(std::uint32_t eqn) const;
	bool create(const MemoryTable &memory, std::uint32_t eqn,
		    const hw::connectx::EqContext &context);
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

	void post(std::uint32_t eqn, const hw::connectx::Eqe &entry);

	const std::function<void(unsigned)> interrupt_;
	const std::function<void()> lost_;
	Faults *const faults_;
	SparseTable<EventQueue> queues_;
	std::array<std::uint32_t, 64> routes_;
};

} // namespace weft::connectx
