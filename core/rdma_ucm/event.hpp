// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* What waits to be read, and what it is of. */
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
 * What a program knows by a number, and reads events of: an id, or its membership of a group. All
 * but the number is under the table's lock.
 *
 * A program is told what it has asked for, as it may wait for that without limit; but it does not
 * read what it asks for again and again, each time the kernel has to keep one more event. So with
 * asks_max unread it may not ask for more. What comes by itself, of which an id has but few, has
 * room beyond.
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
	/* Of the table's limit, from its number on. */
	kern::Portion of_all_;
	/* To its user, as long as it is known. */
	kern::Charge of_user_;

	/* Each comes after those before it. */
	enum class State : u8 {
		made,  // nobody can find it
		known, // to the program
		ended, // or about to: it is whose who found it known
	};

	State state_ = State::made;
	/* What the program reads. 0: it has not said, and is told nothing. */
	u64 uid_ = 0;
	u32 number_ = 0;
	u32 unread_ = 0;
	/*
	 * Of an id with those of its memberships, as librdmacm counts what it has acknowledged:
	 * what it waits for before it frees its own.
	 */
	u32 read_ = 0;
};

/* In a group. */
class Membership : public Source, public kern::RefCounted<Membership>
{
public:
	Membership(u64 uid, kern::Ref<Id> owner, const rdma_sockaddr &group)
	    : Source(uid), id(std::move(owner)), address(group)
	{
	}

	const kern::Ref<Id> id;
	const rdma_sockaddr address;
	/* In its id's list. */
	kern::ListNode node;
};

struct Event {
	/* All but uid and number. */
	abi::Event record{};
	kern::Ref<Id> id;
	/* Of a membership's event. */
	kern::Ref<Membership> membership;
	/* What a request has made. Unread, it ends with the event. */
	kern::Ref<Id> fresh;
	/* In the queue of its file, and in the list of its id. */
	kern::ListNode in_file;
	kern::ListNode in_id;
};

} // namespace rdma_ucm
