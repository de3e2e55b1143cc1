// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Queues the events of a CM ID, in order, until they are passed to its handler. The slots are part
 * of the object, so that queuing an event cannot fail. Received messages may not use all slots:
 * some are reserved for the events that occur without a message (an error, the end of timewait, the
 * removal of the device), one for each that can be pending.
 */
#pragma once

#include <array>

#include "port.hpp"

namespace cm
{

/* An event that has not been passed to the handler yet. */
struct Delivery {
	ib_cm_event_type type;
	Received received; /* the message; empty for an event that no message caused */
};

class Deliveries
{
public:
	bool empty() const { return count_ == 0; }
	bool has_space_for_message() const { return messages_ < messages_max; }
	/* Returns false if there is no space for an event of this type. */
	bool push(ib_cm_event_type type, Received received)
	{
		const bool message = !has_no_message(type);
		if (message ? !has_space_for_message() : count_ - messages_ == own_max)
			return false;
		types_[(first_ + count_++) % types_.size()] = static_cast<u8>(type);
		if (message)
			received_[(first_message_ + messages_++) % messages_max] =
				std::move(received);
		return true;
	}
	/* Removes and returns the oldest event. The queue must not be empty. */
	Delivery pop()
	{
		Delivery oldest{static_cast<ib_cm_event_type>(types_[first_]), {}};
		first_ = (first_ + 1u) % types_.size();
		count_--;
		if (!has_no_message(oldest.type)) {
			oldest.received = std::move(received_[first_message_]);
			first_message_ = (first_message_ + 1u) % messages_max;
			messages_--;
		}
		return oldest;
	}

private:
	static constexpr std::size_t messages_max = 4, own_max = 4;

	static bool has_no_message(ib_cm_event_type type)
	{
		return type == IB_CM_REQ_ERROR || type == IB_CM_REP_ERROR ||
		       type == IB_CM_USER_ESTABLISHED || type == IB_CM_DREQ_ERROR ||
		       type == IB_CM_TIMEWAIT_EXIT || type == IB_CM_LAP_ERROR ||
		       type == IB_CM_SIDR_REQ_ERROR || type == IB_CM_DEVICE_REMOVAL;
	}

	/*
	 * Two ring buffers: one with the types of all events, and one with the messages of those
	 * events that have one.
	 */
	std::array<u8, messages_max + own_max> types_{};
	u8 first_ = 0, count_ = 0;
	u8 first_message_ = 0, messages_ = 0;
	std::array<Received, messages_max> received_{};
};

} // namespace cm
