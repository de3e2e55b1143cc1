// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Events that wait until the program reads them, and the objects that raise them. */
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
 * An object that a program knows by a number, and reads events of: an id, or its membership of a
 * group. All but the number is under the table's lock.
 *
 * Events that a program requested are always delivered, as it may wait for them without limit; but
 * a program could request again and again without reading, and the kernel would keep one more event
 * each time. So with asks_max unread it may not request more. The few unsolicited events of an id
 * have space beyond that.
 */
class Source
{
public:
	static constexpr u32 asks_max = 8, unread_max = 16;

	u32 number() const { return number_; }

protected:
	Source() = default;
	explicit Source(u64 uid) : uid_(uid) {}

private:
	friend class Table;
	/* Its charge against the table's limit; held as soon as it has a number. */
	kern::BudgetCharge of_all_;
	/* Its charge against its user's limit; held while it is in state `known`. */
	kern::Charge of_user_;

	/* The states only change in this order. */
	enum class State : u8 {
		made,  // not visible
		known, // visible to the program
		ended, // ended, or owned by the task that ends it
	};

	State state_ = State::made;
	/* Returned to the program in events. 0: not set yet, and no events are delivered. */
	u64 uid_ = 0;
	u32 number_ = 0;
	u32 unread_ = 0;
	/*
	 * Number of events of an ID and its memberships that were read. librdmacm waits until it
	 * has acknowledged this number before it frees its own ID.
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
	/* In the list of its ID. */
	kern::ListNode node;
};

struct Event {
	/* All fields except uid and number. */
	abi::Event record{};
	kern::Ref<Id> id;
	/* Set for an event of a membership. */
	kern::Ref<Membership> membership;
	/*
	 * The ID that a request has created. If the event is not read, the ID is destroyed with it.
	 */
	kern::Ref<Id> fresh;
	/* In the queue of its file, and in the list of its id. */
	kern::ListNode in_file;
	kern::ListNode in_id;
};

} // namespace rdma_ucm
