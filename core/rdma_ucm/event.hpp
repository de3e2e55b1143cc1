// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Defines the events that a program has not read yet, and the objects to which they belong. */
#pragma once
#include <kern/budget.hpp>
#include <kern/list.hpp>
#include <kern/quota.hpp>
#include <kern/ref.hpp>
#include <rdma/rdma_cm.h>
#include "abi.hpp"

namespace rdma_ucm
{

class Id;

/*
 * An object that a program refers to by a number, and whose events it reads: an ID, or its
 * membership in a group. All members except the number are protected by the table's lock.
 *
 * Events that a program has requested are always delivered, because it may wait for them without a
 * limit. But a program could send requests without reading events, and each would allocate an
 * event. So a program with requested_max unread events of an object cannot make more requests for
 * it. The remaining space, up to unread_max, is for the few unsolicited events.
 */
class Source
{
public:
	static constexpr u32 requested_max = 8, unread_max = 16;

	u32 number() const { return number_; }

protected:
	Source() = default;
	explicit Source(u64 uid) : uid_(uid) {}

private:
	friend class Table;
	/* The charge against the limit of all programs; held while the object has a number. */
	kern::BudgetCharge of_all_;
	/* The charge against the user's limit; held in state `known`. */
	kern::Charge of_user_;

	/* The state changes only in this order. */
	enum class State : u8 {
		made,  // not visible
		known, // visible to the program
		ended, // destroyed, or owned by the task that destroys it
	};

	State state_ = State::made;
	/*
	 * Value that identifies the object to the program in each event. 0 means that it is not set
	 * yet, and no events are delivered.
	 */
	u64 uid_ = 0;
	u32 number_ = 0;
	u32 unread_ = 0;
	/*
	 * Number of events of an ID and its memberships that have been read. librdmacm waits until
	 * the program has acknowledged this number of events before it frees its own ID.
	 */
	u32 read_ = 0;
};

/* A membership in a multicast group. */
class Membership : public Source, public kern::RefCounted<Membership>
{
public:
	Membership(u64 uid, kern::Ref<Id> owner, const rdma_sockaddr &group)
	    : Source(uid), id(std::move(owner)), address(group)
	{
	}

	const kern::Ref<Id> id;
	const rdma_sockaddr address;
	/* In the list of the ID. */
	kern::ListNode node;
};

struct Event {
	/* All fields of the event except uid and number, which pop() fills in. */
	abi::Event record{};
	kern::Ref<Id> id;
	/* Set only for the event of a membership. */
	kern::Ref<Membership> membership;
	/*
	 * The ID that was created for a request. If the event is not read, the ID is destroyed with
	 * it.
	 */
	kern::Ref<Id> fresh;
	/* In the list of the file, and in the list of the ID. */
	kern::ListNode in_file;
	kern::ListNode in_id;
};

} // namespace rdma_ucm
