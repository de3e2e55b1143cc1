/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Links the segments of a received RMPP message, in order, into the list in struct ib_mad_recv_wc.
 */
#pragma once

#include <rdma/types.h>

namespace mad
{

inline void links_init(ib_list_head &head)
{
	head.next = head.prev = &head;
}

inline void links_push_back(ib_list_head &head, ib_list_head &item)
{
	item.prev = head.prev;
	item.next = &head;
	head.prev->next = &item;
	head.prev = &item;
}

} // namespace mad
