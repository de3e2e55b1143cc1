// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements doorbells that do not cause an exit of the guest. The guest maps UAR pages from a
// file, so that a doorbell is a store to memory, and the card polls.
//
// A doorbell is only a sign that a queue of its page has work; the work itself is in the doorbell
// records in the guest's memory, which drivers write first. The card clears a doorbell register
// when it has seen it, and then reads the records of all queues of the page, because a later
// doorbell of another queue may have overwritten the first. So no doorbell is lost, and a wrong
// value in the page has no effect.
//
// Event queues have no record, only registers. The first page that a driver allocates is therefore
// not mapped. Linux's driver uses it for its event queues and for most queues of the kernel.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>

#include "base/file_descriptor.hpp"
#include "base/loop.hpp"
#include "base/memory_mapping.hpp"
#include "bus/pci/device.hpp"
#include "cards/mlx5/limits.hpp"

namespace weft::mlx5
{

class Core;
class CompletionQueue;
struct QueuePair;

// Counters of a card, readable on any thread.
struct PollCounts {
	std::atomic<std::uint64_t> polls{0};     // passes over the pages
	std::atomic<std::uint64_t> doorbells{0}; // doorbells that the passes have found
};

class PolledDoorbells
{
public:
	// If not @on, no page is mapped and nothing is polled.
	PolledDoorbells(Core &core, bool on, PollCounts &counts);

	bool on() const { return on_; }
	// True if doorbells of @page are polled.
	bool polls(std::uint32_t page) const
	{
		return on_ && page >= limits::kFirstPolledUar && page < limits::kUarPages;
	}
	// Returns the part of BAR 0 that a guest may map, from a new file if the previous guest has
	// one.
	PciMapping mapping();
	// The guest has disconnected. It may keep the file, so the next guest gets another.
	void drop_file();

	// Clears @page, so that its next owner cannot read the doorbells of the previous one.
	void clear(std::uint32_t page);
	void add(const QueuePair &qp);
	void remove(const QueuePair &qp);
	void add(const CompletionQueue &cq);
	void remove(const CompletionQueue &cq);
	// All queues are gone.
	void reset();

private:
	// Numbers of the queues of one page. A pass may leave some of them to the next one.
	struct Queues {
		std::set<std::uint32_t> numbers;
		std::uint32_t next = 0; // the number at which the next pass continues
		std::size_t left = 0;   // queues whose records must be read
	};
	struct Page {
		Queues sends;
		Queues arms;
		bool empty() const { return sends.numbers.empty() && arms.numbers.empty(); }
	};

	void start();
	static void insert(Queues &queues, std::uint32_t number);
	void drop(std::uint32_t page);
	void pass();
	void start_round();
	bool read(bool &more);
	bool look_at(std::uint32_t number, Page &page);
	// Returns the value of a register and clears it.
	std::uint64_t take(std::uint32_t page, std::uint32_t offset) const;
	bool has_file() const { return memory_ && !lender_->failed(); }
	template<typename Read>
	bool read_records(Queues &queues, unsigned &budget, Read &&read);
	bool read_send(std::uint32_t qpn, bool rung);
	bool read_arm(std::uint32_t cqn);

	Core &core_;
	const bool on_;
	PollCounts &counts_;
	FileDescriptor file_;
	std::shared_ptr<MemoryLender> lender_;
	std::shared_ptr<const MemoryMapping> memory_;
	std::map<std::uint32_t, Page> pages_; // those with queues
	std::uint32_t next_page_ = 0;         // the page at which the next pass begins
	std::size_t round_left_ = 0;          // pages that the round has not read
	bool unfinished_ = false;             // the round has left records of a page
	bool scan_ = false;                   // the round reads the records of all queues
	Clock::time_point scan_began_{};
	Clock::time_point last_active_{};
	Wakeup again_; // the next pass, if there is no pause before it
	Timer pause_;
	bool polling_ = false;
};

} // namespace weft::mlx5
