// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements the transmit path from the network stack to the transmit queue, including the
 * resolution of a packet's destination.
 */
#include "interface.hpp"

#include <kern/time.hpp>

namespace ipoib
{
namespace
{

constexpr unsigned long path_timeout_ms = 1'000;
constexpr int path_retries = 2;

} // namespace

/*
 * The start_xmit method of datagram mode. The packet begins with the address that header_create()
 * has stored. Context: softirq, one call at a time for each queue.
 */
int Interface::start_xmit(sk_buff *skb)
{
	const auto &to = *reinterpret_cast<const HardwareAddress *>(kern::skb_data(skb));
	kern::rcu::ReadGuard reading;
	Destination *destination = destinations_.find(to);
	ib_ah *ah = destination ? destination->ah() : nullptr;

	if (!ah || DestinationTable::is_stale(*destination)) [[unlikely]] {
		send_unresolved(skb, to);
		return KERN_XMIT_OK;
	}
	destination->touch();
	send_resolved(queues_.transmit(skb), skb, *destination, ah);
	return KERN_XMIT_OK;
}

/*
 * Removes the address, and queues the packet. IPOIB-09: packet sockets provide the complete header,
 * but XDP programs, XDP sockets and tc redirections may pass packets that are too short for it.
 */
void Interface::send_resolved(TransmitQueue &queue, sk_buff *skb, const Destination &destination,
			      ib_ah *ah)
{
	if (!kern_skb_pull(skb, address_bytes, sizeof(Header))) [[unlikely]] {
		count(tx_dropped_);
		kern_skb_drop(skb);
		queue.flush_unless_more();
		return;
	}
	queue.send(skb, ah, destination.qpn());
}

/* Sends a packet whose address is unresolved or stale. */
void Interface::send_unresolved(sk_buff *skb, const HardwareAddress &to)
{
	TransmitQueue &queue = queues_.transmit(skb);
	kern::Ref<Destination> destination;

	/* A packet that does not come from the stack's neighbour tables may have any address. */
	if (to.is_multicast() && !is_group_of(to, broadcast_)) {
		count(tx_dropped_);
		kern_skb_drop(skb);
		queue.flush_unless_more();
		return;
	}
	const HardwareAddress address = to;
	switch (destinations_.wait(address, skb, destination)) {
	case DestinationTable::Action::send:
		/*
		 * The destination was resolved just now, or its path is stale. A packet that was
		 * created in connected mode may be too long for a datagram, whatever the current
		 * mode is.
		 */
		if (!fits_datagram(skb)) {
			count(tx_dropped_);
			kern_skb_drop(skb);
			break;
		}
		refresh_path(*destination);
		send_resolved(queue, skb, *destination, destination->ah());
		return;
	case DestinationTable::Action::wait:
		break;
	case DestinationTable::Action::drop_and_resolve:
		count(tx_dropped_);
		kern_skb_drop(skb);
		[[fallthrough]];
	case DestinationTable::Action::resolve:
		if (address.is_multicast())
			multicast_.want_to_send(address);
		else
			begin_path_query(std::move(destination));
		break;
	case DestinationTable::Action::drop:
		count(tx_dropped_);
		kern_skb_drop(skb);
		break;
	}
	queue.flush_unless_more();
}

/*
 * Starts another query for a stale path, unless a query is in progress or was too recent. The
 * current path stays in use until the query ends. Context: any but hard interrupt.
 */
void Interface::refresh_path(Destination &destination)
{
	if (destinations_.begin_refresh(destination) && !destination.address().is_multicast())
		begin_path_query(kern::Ref<Destination>::share(destination));
}

/*
 * Queries the SA for the path to a peer. The caller has marked the destination as being resolved.
 * Context: any but hard interrupt.
 */
void Interface::begin_path_query(kern::Ref<Destination> destination)
{
	sa_path_rec path{};
	__builtin_memcpy(path.dgid.raw, destination->address().gid.raw, sizeof(path.dgid.raw));
	path.sgid = port_gid_;
	path.pkey = pkey_;
	path.numb_path = 1;
	path.reversible = 1;
	constexpr u64 mask = IB_SA_PATH_REC_DGID | IB_SA_PATH_REC_SGID | IB_SA_PATH_REC_NUMB_PATH |
			     IB_SA_PATH_REC_PKEY | IB_SA_PATH_REC_REVERSIBLE;

	Destination &target = *destination;
	auto made = kern::make_ref<PathQuery>(kern::Gfp::atomic | kern::Gfp::no_warn, *this,
					      std::move(destination));
	if (!made.ok()) {
		finish(target, {});
		return;
	}
	kern::Ref<PathQuery> query = made.take();
	{
		kern::Guard guard(queries_lock_);
		queries_.push_back(*query);
	}
	count(path_queries_);
	ib_sa_query *handle;
	PathQuery *const reference = kern::Ref<PathQuery>(query).release();
	const int id = ib_sa_path_rec_get(
		sa_client(), device_, port_num_, &path, mask, path_timeout_ms, path_retries,
		static_cast<unsigned>(kern::Gfp::atomic | kern::Gfp::no_warn),
		[](int status, sa_path_rec *answer, void *context) {
			auto ended = kern::Ref<PathQuery>::adopt(static_cast<PathQuery *>(context));
			ended->interface.path_answered(*ended, status, answer);
		},
		reference, &handle);
	if (id < 0) {
		const auto ended = kern::Ref<PathQuery>::adopt(reference);
		path_answered(*ended, id, nullptr);
		return;
	}
	kern::Guard guard(queries_lock_);
	query->id = id;
	query->handle = handle;
}

/*
 * Handles the result of a path query. Context: process, called by the SA client; or the context of
 * begin_path_query() if the query could not be sent.
 */
void Interface::path_answered(PathQuery &query, int status, sa_path_rec *path)
{
	kern::Owned<Handle> handle;
	kern::Owned<sa_path_rec> kept;
	rdma_ah_attr where;
	/* If memory allocation fails, no connection is created. */
	if (status == 0 && mode() == Mode::connected)
		if (auto copy = kern::make<sa_path_rec>(kern::Gfp::kernel, *path); copy.ok())
			kept = copy.take();
	if (status == 0 && ib_init_ah_attr_from_path(device_, port_num_, path, &where) == 0)
		handle = Handle::create(pd_, where);
	finish(*query.destination, std::move(handle), std::move(kept));
	/*
	 * The table may have removed the destination in the meantime. If this is the last
	 * reference, the destination's handle must be retired before the interface is destroyed.
	 */
	query.destination.reset();
	kern::Guard guard(queries_lock_);
	query.node.unlink();
	if (queries_.empty())
		queries_done_.complete();
}

/*
 * Cancels all path queries, and waits for the last callback. No packets are sent meanwhile, so no
 * query is added. Context: rtnl lock.
 */
void Interface::cancel_queries()
{
	for (;;) {
		int id = 0;
		ib_sa_query *handle = nullptr;
		{
			kern::Guard guard(queries_lock_);
			for (PathQuery &query : queries_) {
				id = std::exchange(query.id, 0);
				handle = query.handle;
				if (id)
					break;
			}
		}
		if (!id)
			break;
		ib_sa_cancel_query(id, handle);
	}
	{
		kern::Guard guard(queries_lock_);
		queries_done_.reinit();
		if (queries_.empty())
			return;
	}
	queries_done_.wait();
	/* Waits until the task that ended the last query has released the lock. */
	kern::Guard guard(queries_lock_);
}

void Interface::resolved(const HardwareAddress &address, kern::Owned<Handle> handle)
{
	if (auto destination = destinations_.get(address))
		finish(*destination, std::move(handle));
}

/*
 * Stores the result of a resolution. Passes the packets that waited to start_xmit again if it was
 * successful, and otherwise drops them.
 */
void Interface::finish(Destination &destination, kern::Owned<Handle> handle,
		       kern::Owned<sa_path_rec> path)
{
	const bool found = static_cast<bool>(handle);
	kern_skb_queue waiting =
		destinations_.resolved(destination, std::move(handle), std::move(path));
	while (sk_buff *skb = kern_skb_dequeue(&waiting)) {
		/* In datagram mode, packets that were created in connected mode may be too long. */
		if (found && (mode() == Mode::connected || fits_datagram(skb))) {
			kern_skb_requeue(skb, dev_);
		} else {
			count(tx_dropped_);
			kern_skb_drop(skb);
		}
	}
}

void Interface::remove_destination(const HardwareAddress &address)
{
	__atomic_fetch_add(&tx_dropped_, destinations_.remove(address), __ATOMIC_RELAXED);
}

} // namespace ipoib
