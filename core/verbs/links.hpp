// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements circular lists through struct ib_list_head, which public structures contain. For C
// code its two pointers are opaque; only these functions use them.
#pragma once
#include <kern/assert.hpp>
#include <rdma/types.h>

namespace verbs
{

inline void ring_init(ib_list_head &head)
{
	head = {&head, &head};
}

inline bool ring_empty(const ib_list_head &head)
{
	return head.next == &head;
}

inline void ring_push(ib_list_head &head, ib_list_head &links)
{
	kern_assert(!links.next);
	ib_list_head *const last = head.prev;
	links = {&head, last};
	last->next = &links;
	head.prev = &links;
}

/* Has no effect on an element that is not in a ring. */
inline void ring_remove(ib_list_head &links)
{
	ib_list_head *const next = links.next;
	if (!next)
		return;
	ib_list_head *const prev = links.prev;
	prev->next = next;
	next->prev = prev;
	links = {};
}

/* Returns the structure whose member `Member` is @part: whole_of<ib_qp, &ib_qp::links>(links). */
template<class T, auto Member, class Part>
T &whole_of(Part &part)
{
	constexpr T *origin = nullptr;
	const auto offset = reinterpret_cast<unsigned long>(&(origin->*Member));

	return *reinterpret_cast<T *>(reinterpret_cast<char *>(&part) - offset);
}

/*
 * Calls body(element) for each element until body returns true. Returns whether it did. body may
 * remove its element.
 */
template<class T, auto Member, class Body>
bool ring_any_of(ib_list_head &head, Body body)
{
	for (ib_list_head *links = head.next, *next; links != &head; links = next) {
		next = links->next;
		if (body(whole_of<T, Member>(*links)))
			return true;
	}
	return false;
}

} // namespace verbs
