// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements a shared receive queue that is a linked list: software links the WQEs, and the card
// consumes them in the order of the links.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "cards/hca/work_source.hpp"

namespace weft::hca
{

// Base class of a card's own SharedReceiveQueue. Own reads what the driver writes, in the format of
// its card, and reports:
//
//	std::optional<std::uint32_t> posted() const;	// the doorbell record, of which 16 bits count
//	std::optional<std::uint32_t> read_link(std::uint16_t index);	// the entry after this one
//	void report_limit();		// fewer entries than the limit are left
//	void report_broken_list();	// a link cannot be read
template<class Own>
class LinkedReceives : public SharedReceiveQueue
{
public:
	bool failed() const { return failed_; }
	std::uint32_t size() const { return std::uint32_t{1} << log_size_; }
	std::uint32_t stride() const { return std::uint32_t{1} << log_stride_; }
	// Offset of an entry in the buffer. Its first 16 bytes are the link; data segments follow.
	std::uint64_t wqe_offset(std::uint16_t index) const
	{
		return std::uint64_t{index & (size() - 1)} << log_stride_;
	}

	// Returns the number of entries that are posted and not taken.
	std::uint32_t available() const
	{
		const auto posted = static_cast<const Own *>(this)->posted();
		if (failed_ || !posted)
			return 0;
		// A number above the list's size is a driver's error. The links then form a cycle.
		return std::min<std::uint32_t>(static_cast<std::uint16_t>(*posted - taken_),
					       size());
	}
	// Takes the next entry and returns its index. Returns nothing if none is posted. Raises the
	// limit event when it is due, and the catastrophic event if the list cannot be read.
	std::optional<std::uint16_t> take()
	{
		if (available() == 0)
			return std::nullopt;
		const std::uint16_t index = head_;
		const auto next = own().read_link(index);
		if (!next) {
			failed_ = true;
			own().report_broken_list();
			return std::nullopt;
		}
		head_ = static_cast<std::uint16_t>(*next & (size() - 1));
		++taken_;
		check_limit();
		return index;
	}
	// Takes the next receive request. Also sets the fields by which the completion identifies
	// the queue. The SRQ of an XRC domain has its own completion queue.
	Taken take(ReceiveWork &work, bool xrc)
	{
		const auto index = take();
		if (!index)
			return failed_ ? Taken::broken : Taken::none;
		work.index = *index;
		work.pd = pd();
		if (xrc) {
			work.cqn = cqn();
			work.srqn = number();
		}
		return Taken::yes;
	}

	void arm_limit(std::uint16_t limit)
	{
		limit_ = limit;
		check_limit();
	}
	std::uint16_t limit() const { return limit_; }
	std::uint16_t taken() const { return taken_; }

protected:
	struct List {
		std::uint8_t log_size;
		std::uint8_t log_stride;
		std::uint16_t limit = 0;
	};
	LinkedReceives(const List &list, std::uint32_t number, std::uint32_t pd,
		       std::uint16_t xrc_domain = 0, std::uint32_t cqn = 0)
	    : SharedReceiveQueue(number, pd, xrc_domain, cqn), log_size_(list.log_size),
	      log_stride_(list.log_stride), limit_(list.limit)
	{
	}
	~LinkedReceives() = default;

	std::uint8_t log_size() const { return log_size_; }
	std::uint8_t log_stride() const { return log_stride_; }

private:
	Own &own() { return *static_cast<Own *>(this); }
	// Raises the limit event once. The limit must then be set again (IBA 10.2.9.2).
	void check_limit()
	{
		if (limit_ == 0 || available() >= limit_)
			return;
		limit_ = 0;
		own().report_limit();
	}

	const std::uint8_t log_size_;
	const std::uint8_t log_stride_;
	std::uint16_t limit_;
	std::uint16_t head_ = 0; // the entry that is taken next
	std::uint16_t taken_ = 0;
	bool failed_ = false;
};

} // namespace weft::hca
