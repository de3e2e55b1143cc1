// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements event queues: entries in the guest's memory, arming, and the mapping of events to
// queues.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include <hw/mlx5/queues.hpp>

#include "cards/hca/sparse_table.hpp"
#include "cards/mlx5/names.hpp"
#include "cards/mlx5/number_pool.hpp"
#include "cards/mlx5/page_list.hpp"
#include "cards/hca/memory.hpp"

namespace weft::mlx5
{

using hw::mlx5::Eqe;
using hw::mlx5::EventType;

class EventQueue
{
public:
	struct Settings {
		std::uint8_t log_size = 0;
		std::uint16_t vector = 0;
		std::uint32_t uar_page = 0;
		bool overrun_ignore = false;
	};

	// @interrupt is called with the vector when the driver must be notified.
	EventQueue(const Memory &memory, std::function<void(unsigned vector)> interrupt,
		   std::uint32_t number, const Settings &settings, PageList pages)
	    : memory_(memory), interrupt_(std::move(interrupt)), number_(number),
	      settings_(settings), pages_(std::move(pages))
	{
	}

	std::uint32_t number() const { return number_; }
	std::uint32_t uar_page() const { return settings_.uar_page; }
	// A value of hw::mlx5::queue_status: ok, overflow, or buffer not accessible. After an error
	// it takes no more entries.
	std::uint32_t status() const { return status_; }
	// Returns true if events that peers cause may be written: kReserve entries at most are
	// reserved for events that the driver itself and the subnet manager cause.
	bool has_room() const;
	bool all_consumed() const { return unread() == 0; }
	static constexpr std::uint32_t kReserve = 64;

	// Writes an entry and sets its owner bit, to the wrong value if @wrong_owner. Returns false
	// on error; see status().
	bool post(Eqe entry, bool wrong_owner);
	// Handle the doorbells with the driver's consumer index. After arm(), the next entry, or
	// one that already exists, causes an interrupt.
	void set_consumer(std::uint32_t index) { consumer_ = index & kIndexMask; }
	void arm();

	hw::mlx5::EqContext context() const;

private:
	static constexpr std::uint32_t kIndexMask = 0xffffff;
	std::uint32_t size() const { return std::uint32_t{1} << settings_.log_size; }
	std::uint32_t unread() const { return (producer_ - consumer_) & kIndexMask; }

	const Memory &memory_;
	const std::function<void(unsigned)> interrupt_;
	const std::uint32_t number_;
	const Settings settings_;
	const PageList pages_;
	std::uint32_t status_ = hw::mlx5::queue_status::ok;
	bool armed_ = false;
	std::uint32_t producer_ = 0;
	std::uint32_t consumer_ = 0;
};

class EventQueues
{
public:
	// @interrupt sends a vector. @lost is called when a queue has overflowed (or, if the
	// argument is true, is not accessible), because its owner cannot be notified by an event.
	EventQueues(const Memory &memory, Faults &faults,
		    std::function<void(unsigned vector)> interrupt,
		    std::function<void(bool unreachable)> lost);

	// Posts a completion event of CQ @cqn.
	void completion(std::uint32_t eqn, std::uint32_t cqn);
	// Posts an asynchronous event of the object @number of a kind.
	enum class Kind : std::uint8_t { queue_pair = 0, receive_queue = 1 };
	void raise(EventType type, std::uint32_t number, Kind kind = Kind::queue_pair);
	// Posts an event that peers cause. Returns false, without effect, if there is no space.
	[[nodiscard]] bool raise_if_room(EventType type, std::uint32_t number);
	void cq_error(std::uint32_t cqn, std::uint32_t syndrome);
	void port_change(unsigned port, std::uint32_t subtype);
	// Returns true if the driver has consumed all entries of the queue to which the type is
	// routed.
	bool all_consumed(EventType type) const;
	// Posts an event to queue @eqn: the commands of the bits in @slots have completed.
	void commands_done(std::uint32_t eqn, std::uint32_t slots);

	// For commands. create() returns the number, or nothing if all are in use; @events has a
	// bit for each type that is routed to the queue from now on.
	std::optional<std::uint32_t> create(const EventQueue::Settings &settings, PageList pages,
					    std::uint64_t events);
	bool remove(std::uint32_t number);
	EventQueue *find(std::uint32_t number) const;
	// Returns the queue to which an event type is routed; nothing if there is none.
	std::optional<std::uint32_t> route(EventType type) const;
	void reset();

private:
	void post(std::uint32_t eqn, const Eqe &entry);
	void raise(const Eqe &entry);

	const Memory &memory_;
	Faults &faults_;
	const std::function<void(unsigned)> interrupt_;
	const std::function<void(bool)> lost_;
	SparseTable<EventQueue> queues_;
	NumberPool numbers_;
	std::array<std::optional<std::uint32_t>, 64> routes_;
};

} // namespace weft::mlx5
