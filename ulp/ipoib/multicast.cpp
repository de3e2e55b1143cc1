// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "multicast.hpp"

#include "interface.hpp"

#include <kern/log.hpp>
#include <kern/time.hpp>

namespace ipoib
{
namespace
{

constexpr u64 ns_per_ms = 1'000'000;
constexpr u64 first_retry_ms = 1'000;
constexpr u64 resubscribe_ms = 16'000;
/*
 * The trap for a deleted multicast group (IBA 13.4.8.2), and the offset of the MGID in its details.
 */
constexpr u16 trap_group_deleted = 67;
constexpr unsigned trap_mgid_offset = 6;

} // namespace

Multicast::Multicast(Interface &interface)
    : interface_(interface), broadcast_(*this, interface.broadcast(), Group::Use::listen)
{
}

void Multicast::start()
{
	kern::Guard guard(lock_);
	running_ = true;
	list_changed_ = true;
	if (!table_.contains(broadcast_)) {
		table_.insert(broadcast_, hash_of(broadcast_.address.gid));
		broadcast_.retry_at = 0;
		broadcast_.failures = 0;
		queue_locked(broadcast_);
	}
	work_.reschedule(0);
}

void Multicast::stop()
{
	ib_inform_info *deletions;
	{
		kern::Guard guard(lock_);
		running_ = false;
	}
	work_.cancel();
	{
		kern::Guard guard(lock_);
		deletions = std::exchange(deletions_, nullptr);
	}
	if (deletions)
		ib_sa_unregister_inform_info(deletions);
	for (;;) {
		Group *group = nullptr;
		{
			kern::Guard guard(lock_);
			/* A group without a use must be left. */
			group = listened_.front();
			if (!group)
				group = senders_.front();
			if (!group)
				group = due_.front();
			if (!group && table_.contains(broadcast_))
				group = &broadcast_;
			if (!group)
				return;
			if (group != &broadcast_)
				set_use_locked(*group, Group::Use::none);
			table_.remove(*group);
		}
		end(*group);
	}
}

/*
 * Ends the membership of a group that was removed from the table, and frees the group. Context:
 * run() or stop().
 */
void Multicast::end(Group &group)
{
	end_membership(group);
	{
		/* The callback of the membership may have queued the group again. */
		kern::Guard guard(lock_);
		group.due_node.unlink();
	}
	if (&group != &broadcast_)
		kern::destroy(&group);
}

void Multicast::list_changed()
{
	kern::Guard guard(lock_);
	list_changed_ = true;
	if (running_)
		work_.reschedule(0);
}

void Multicast::want_to_send(const HardwareAddress &address)
{
	bool refused = false;
	{
		kern::Guard guard(lock_);
		Group *group = find_locked(address);
		if (!group && running_ && sender_count_ < send_only_max) {
			auto made = kern::make<Group>(kern::Gfp::atomic | kern::Gfp::no_warn, *this,
						      address, Group::Use::none);
			if (made.ok()) {
				group = made.take().release();
				add_locked(*group);
			}
		}
		if (!group || !running_) {
			refused = true;
		} else {
			if (group->use == Group::Use::none)
				set_use_locked(*group, Group::Use::send);
			/*
			 * The group is joined, but has no destination. Store its result again, so
			 * that run() creates one.
			 */
			if (group->state == Group::State::joined && !group->has_outcome) {
				group->has_outcome = true;
				group->outcome = 0;
				queue_locked(*group);
			}
			work_.reschedule(0);
		}
	}
	if (refused)
		interface_.resolved(address, nullptr);
}

void Multicast::leave_unused()
{
	kern::Guard guard(lock_);
	bool any = false;
	/*
	 * The function that sends creates the destination before it requests the group, so
	 * sends_to() returns true for every group that was requested and is still in use.
	 */
	for (Group &group : senders_) {
		if (interface_.sends_to(group.address))
			continue;
		set_use_locked(group, Group::Use::none);
		any = true;
	}
	if (any && running_)
		work_.reschedule(0);
}

bool Multicast::broadcast_record(ib_sa_mcmember_rec &record)
{
	kern::Guard guard(lock_);
	if (broadcast_.state != Group::State::joined)
		return false;
	record = broadcast_.record;
	return true;
}

std::size_t Multicast::groups()
{
	kern::Guard guard(lock_);
	return table_.count();
}

std::size_t Multicast::longest()
{
	kern::Guard guard(lock_);
	return table_.longest();
}

u64 Multicast::hash_of(const ib::Gid &gid) const
{
	u64 words[2];
	static_assert(sizeof(words) == sizeof(gid.raw));
	__builtin_memcpy(words, gid.raw, sizeof(words));
	return hash_(words[0], words[1]);
}

Group *Multicast::find_locked(const HardwareAddress &address)
{
	return table_.find(hash_of(address.gid),
			   [&](const Group &group) { return group.address.same_peer(address); });
}

Group *Multicast::find_locked(const ib::Gid &gid)
{
	return table_.find(hash_of(gid),
			   [&](const Group &group) { return group.address.gid == gid; });
}

void Multicast::add_locked(Group &group)
{
	table_.insert(group, hash_of(group.address.gid));
}

/* Changes the use of a group, and queues the group for run(). No other function changes the use. */
void Multicast::set_use_locked(Group &group, Group::Use use)
{
	if (group.use == Group::Use::send)
		sender_count_--;
	group.use_node.unlink();
	group.use = use;
	if (use == Group::Use::send) {
		sender_count_++;
		senders_.push_back(group);
	} else if (use == Group::Use::listen) {
		listened_.push_back(group);
	}
	queue_locked(group);
}

/* Queues the group for run(); the caller must schedule run(). */
void Multicast::queue_locked(Group &group)
{
	group.due_node.unlink();
	due_.push_back(group);
}

/* Brings all memberships in line with the uses of the groups. Context: work queue. */
void Multicast::run()
{
	collect_listened();
	while (Group *group = next_due())
		serve(*group);
	watch_deletions();
	schedule_next_run();
}

/*
 * Returns the next group to handle, or nullptr. Context: run(), which is the only function that
 * destroys groups.
 */
Group *Multicast::next_due()
{
	kern::Guard guard(lock_);
	const u64 now = kern::now_ns();
	for (auto &retries : retries_)
		if (Group *group = retries.front(); group && group->retry_at <= now)
			queue_locked(*group);
	Group *group = due_.pop_front();
	if (!group && broadcast_.state == Group::State::joined)
		group = held_.pop_front();
	return group;
}

/*
 * Handles the result of the group's last join, if any. Then leaves the group if it is not needed,
 * or joins it if that is due. Context: run().
 */
void Multicast::serve(Group &group)
{
	bool has_outcome;
	int outcome;
	__atomic_store_n(&served_, served_ + 1, __ATOMIC_RELAXED);
	{
		kern::Guard guard(lock_);
		has_outcome = std::exchange(group.has_outcome, false);
		outcome = group.outcome;
	}
	if (has_outcome)
		settle(group, outcome);
	if (!leave_unwanted(group))
		join_if_due(group);
}

/*
 * Schedules run() for the next retry, unless an earlier run is already scheduled. Context: run().
 */
void Multicast::schedule_next_run()
{
	u64 next = ~u64{0};
	{
		kern::Guard guard(lock_);
		for (const auto &retries : retries_)
			if (const Group *group = retries.front(); group && group->retry_at < next)
				next = group->retry_at;
		/* A group could not be added because memory allocation failed. */
		const u64 again = kern::now_ns() + first_retry_ms * ns_per_ms;
		if (list_changed_ && again < next)
			next = again;
	}
	if (next == ~u64{0})
		return;
	const u64 now = kern::now_ns();
	work_.queue(next > now ? static_cast<unsigned>((next - now) / ns_per_ms) + 1 : 0);
}

/*
 * Returns true if, with umcast set, a program receives the packets of this group through its own
 * membership. This is assumed if the port has joined the group and this interface has not.
 */
bool Multicast::is_received_by_program(const HardwareAddress &address)
{
	if (!interface_.ignores_users_groups())
		return false;
	{
		kern::Guard guard(lock_);
		if (find_locked(address))
			return false;
	}
	ib_gid mgid;
	ib_sa_mcmember_rec record;
	__builtin_memcpy(mgid.raw, address.gid.raw, sizeof(mgid.raw));
	return ib_sa_get_mcmember_rec(interface_.device(), interface_.port_num(), &mgid, &record) ==
	       0;
}

struct Multicast::Collection {
	const HardwareAddress &broadcast;
	kern::OwnedArray<HardwareAddress> addresses;
	u32 count = 0;
	bool is_cut = false; /* there are more addresses than fit */
};

/*
 * Updates the groups to match the stack's list. The list may be long, and is read with a lock held
 * and soft interrupts disabled, so it is copied first.
 */
void Multicast::collect_listened()
{
	{
		kern::Guard guard(lock_);
		if (!list_changed_)
			return;
		list_changed_ = false;
	}
	Collection collection{interface_.broadcast(), {}};
	bool is_complete = copy_list(collection);
	if (is_complete) {
		collections_++;
		for (u32 i = 0; i < collection.count; i++)
			is_complete = listen_to(collection.addresses[i]) && is_complete;
		leave_unlisted();
	}
	if (collection.is_cut)
		kern_warning_limited(
			"%s: more than %u multicast groups: the others are not received\n",
			kern_netdev_name(interface_.netdev()), listened_max);
	kern::Guard guard(lock_);
	list_changed_ |= !is_complete;
}

/* Copies the stack's list. Returns false if memory allocation fails. */
bool Multicast::copy_list(Collection &collection)
{
	net_device *dev = interface_.netdev();
	/* If the list changes in the meantime, run() is called again. */
	const u32 length = kern_netdev_multicast_count(dev);
	auto made = kern::make_array<HardwareAddress>(
		kern::Gfp::kernel, length < listened_max ? length : listened_max);
	if (!made.ok())
		return false;
	collection.addresses = made.take();
	kern_netdev_for_each_multicast(
		dev,
		[](void *context, const u8 *bytes) {
			auto &self = *static_cast<Collection *>(context);
			const auto &address = *reinterpret_cast<const HardwareAddress *>(bytes);
			/* The list may contain addresses of other partitions or scopes. */
			if (!is_group_of(address, self.broadcast))
				return true;
			if (self.count == self.addresses.size()) {
				self.is_cut = self.count == listened_max;
				return false;
			}
			self.addresses[self.count++] = address;
			return true;
		},
		&collection);
	return true;
}

/* Records that a group is in the stack's list. Returns false if memory allocation fails. */
bool Multicast::listen_to(const HardwareAddress &address)
{
	if (is_received_by_program(address))
		return true;
	kern::Owned<Group> fresh;
	for (;;) {
		{
			kern::Guard guard(lock_);
			Group *group = find_locked(address);
			if (!group && fresh) {
				group = fresh.release();
				add_locked(*group);
			}
			if (group == &broadcast_)
				return true;
			if (group) {
				group->collected = collections_;
				if (group->use != Group::Use::listen) {
					set_use_locked(*group, Group::Use::listen);
				} else {
					group->use_node.unlink();
					listened_.push_back(*group);
				}
				return true;
			}
		}
		auto made = kern::make<Group>(kern::Gfp::kernel, *this, address, Group::Use::none);
		if (!made.ok())
			return false;
		fresh = made.take();
	}
}

/* Leaves the groups that are not in the stack's list any more. */
void Multicast::leave_unlisted()
{
	for (;;) {
		kern::Guard guard(lock_);
		Group *group = listened_.front();
		if (!group || group->collected == collections_)
			return;
		set_use_locked(*group, Group::Use::none);
	}
}

/*
 * Ends a membership that is not needed any more or is of the wrong kind: to receive in addition to
 * sending, the interface must join again. Returns true if the group was removed.
 */
bool Multicast::leave_unwanted(Group &group)
{
	bool is_over;
	{
		kern::Guard guard(lock_);
		is_over = group.use == Group::Use::none;
		if (!is_over &&
		    (group.state == Group::State::idle || group.joined_for == group.use))
			return false;
		if (is_over)
			table_.remove(group);
		group.failures = 0;
		group.retry_at = 0;
	}
	if (!is_over) {
		end_membership(group);
		return false;
	}
	/*
	 * If the group was never joined, its destination remains, because it stores the time before
	 * which no packet causes another join.
	 */
	const HardwareAddress address = group.address;
	const bool was_joined = group.was_joined;
	end(group);
	if (was_joined)
		interface_.remove_destination(address);
	return true;
}

/*
 * Subscribes to the traps about deleted groups. A send-only member does not keep a group alive.
 * When the group has ended, its LID may be assigned to another group, so the interface must not
 * send to it any more.
 * Context: run().
 */
void Multicast::watch_deletions()
{
	{
		kern::Guard guard(lock_);
		if (deletions_ || !running_ || broadcast_.state != Group::State::joined ||
		    !sender_count_ || kern::now_ns() < subscribe_at_)
			return;
		refused_ = nullptr;
	}
	ib_inform_info *info = ib_sa_register_inform_info(
		interface_.sa_client(), interface_.device(), interface_.port_num(),
		trap_group_deleted, on_deletion, this);
	if (rdma::is_err(info))
		return;
	{
		kern::Guard guard(lock_);
		if (refused_ != info) {
			deletions_ = info;
			return;
		}
	}
	ib_sa_unregister_inform_info(info);
}

/*
 * Handles a trap about a deleted group, or the end of the subscription. Context: process, called by
 * the SA client.
 */
int Multicast::on_deletion(int status, ib_inform_info *info, ib_sa_notice *notice)
{
	auto &self = *static_cast<Multicast *>(info->context);
	kern::Guard guard(self.lock_);
	if (status)
		self.subscribe_at_ = kern::now_ns() + resubscribe_ms * ns_per_ms;
	if (status && self.deletions_ != info) {
		/* watch_deletions() or stop() unregisters it. */
		self.refused_ = info;
		return 0;
	}
	/*
	 * If the subscription was lost, any of the groups may have ended, so all send-only groups
	 * are left and joined again when they are needed. If the SA refuses a subscription,
	 * memberships last until they are not used any more; otherwise each packet would need a
	 * join.
	 */
	const bool lost = status == -ENETRESET;
	if (lost) {
		while (Group *group = self.senders_.front())
			self.set_use_locked(*group, Group::Use::none);
	} else if (notice) {
		ib::Gid gid;
		__builtin_memcpy(gid.raw, notice->data_details + trap_mgid_offset, sizeof(gid.raw));
		Group *group = self.find_locked(gid);
		if (group && group->use == Group::Use::send)
			self.set_use_locked(*group, Group::Use::none);
	}
	if (status)
		self.deletions_ = nullptr;
	if (self.running_ && (lost || notice))
		self.work_.reschedule(0);
	return status;
}

/* Detaches the QP and leaves the group. Context: run() or stop(). */
void Multicast::end_membership(Group &group)
{
	if (group.attached) {
		/*
		 * A device that has failed returns an error, and has no attached groups any more.
		 */
		(void)ib_detach_mcast(interface_.qp(), &group.record.mgid,
				      group.record.mlid.value());
		group.attached = false;
	}
	/* The callback of the membership does not run any more after this call. */
	if (group.membership)
		ib_sa_free_multicast(group.membership);
	group.membership = nullptr;
	kern::Guard guard(lock_);
	group.state = Group::State::idle;
	group.has_outcome = false;
}

/*
 * Stores the result of a join, or the loss of a membership, for run(). Context: process, called by
 * the SA client.
 */
int Multicast::on_join(int status, ib_sa_multicast *multicast)
{
	auto &group = *static_cast<Group *>(multicast->context);
	auto &self = group.multicast;
	kern::Guard guard(self.lock_);
	group.has_outcome = true;
	group.outcome = status;
	if (status == 0)
		group.record = multicast->rec;
	self.queue_locked(group);
	if (self.running_)
		self.work_.reschedule(0);
	return 0;
}

/* Applies the result of a join, or the loss of a membership. Context: run(). */
void Multicast::settle(Group &group, int outcome)
{
	if (outcome == 0)
		outcome = interface_.enter_group(group);
	if (outcome) {
		fail(group);
	} else {
		{
			kern::Guard guard(lock_);
			group.state = Group::State::joined;
			group.failures = 0;
		}
		group.was_joined = true;
		interface_.resolved_group(group);
	}
	if (&group == &broadcast_)
		interface_.domain_changed();
}

/* Handles a membership that was lost or could not be acquired. Context: run(). */
void Multicast::fail(Group &group)
{
	end_membership(group);
	bool retries = true;
	{
		kern::Guard guard(lock_);
		/*
		 * The group does not exist, because it has no receivers. The next packet requests
		 * it again, but no sooner than the destination permits.
		 */
		if (group.use == Group::Use::send) {
			set_use_locked(group, Group::Use::none);
			retries = false;
		} else {
			put_off_locked(group);
		}
	}
	/* A full member keeps its existing destination until the next join. */
	if (!retries && group.was_joined)
		interface_.remove_destination(group.address);
	else
		interface_.resolved(group.address, {});
	group.was_joined = false;
}

/* Schedules the next attempt to join a group. */
void Multicast::put_off_locked(Group &group)
{
	group.retry_step = group.failures < retry_steps ? group.failures : retry_steps - 1;
	group.retry_at = kern::now_ns() + (first_retry_ms << group.retry_step) * ns_per_ms;
	group.failures++;
	if (group.failures == 1)
		kern_info_limited("%s: multicast group %pI6 not joined, trying again\n",
				  kern_netdev_name(interface_.netdev()), group.address.gid.raw);
}

/*
 * Starts the join of a group whose time has come. Otherwise queues the group until its retry time,
 * or until the broadcast group is joined. Context: run().
 */
void Multicast::join_if_due(Group &group)
{
	{
		kern::Guard guard(lock_);
		/* Events that happened in the meantime are handled in the next run. */
		if (!running_ || group.due_node.linked() || group.state != Group::State::idle ||
		    group.use == Group::Use::none)
			return;
		if (&group != &broadcast_ && broadcast_.state != Group::State::joined) {
			held_.push_back(group);
			return;
		}
		if (group.retry_at > kern::now_ns()) {
			retries_[group.retry_step].push_back(group);
			return;
		}
		group.state = Group::State::joining;
		group.joined_for = group.use;
	}
	if (!begin_join(group)) {
		fail(group);
		join_if_due(group);
	}
}

bool Multicast::begin_join(Group &group)
{
	ib_sa_mcmember_rec wanted{}, domain;
	u64 mask = IB_SA_MCMEMBER_REC_MGID | IB_SA_MCMEMBER_REC_PORT_GID | IB_SA_MCMEMBER_REC_PKEY |
		   IB_SA_MCMEMBER_REC_JOIN_STATE;

	__builtin_memcpy(wanted.mgid.raw, group.address.gid.raw, sizeof(wanted.mgid.raw));
	wanted.port_gid = interface_.port_gid();
	wanted.pkey = interface_.pkey();
	const bool full = group.joined_for == Group::Use::listen;
	wanted.join_state = 1u << (full ? FULLMEMBER_JOIN : SENDONLY_NONMEBER_JOIN);
	if (full && broadcast_record(domain)) {
		/*
		 * The first member creates the group with the parameters of the broadcast group
		 * (RFC 4391 section 5).
		 */
		mask |= IB_SA_MCMEMBER_REC_QKEY | IB_SA_MCMEMBER_REC_MTU_SELECTOR |
			IB_SA_MCMEMBER_REC_MTU | IB_SA_MCMEMBER_REC_TRAFFIC_CLASS |
			IB_SA_MCMEMBER_REC_RATE_SELECTOR | IB_SA_MCMEMBER_REC_RATE |
			IB_SA_MCMEMBER_REC_SL | IB_SA_MCMEMBER_REC_FLOW_LABEL |
			IB_SA_MCMEMBER_REC_HOP_LIMIT;
		wanted.qkey = domain.qkey;
		wanted.mtu_selector = IB_SA_EQ;
		wanted.mtu = domain.mtu;
		wanted.traffic_class = domain.traffic_class;
		wanted.rate_selector = IB_SA_EQ;
		wanted.rate = domain.rate;
		wanted.sl = domain.sl;
		wanted.flow_label = domain.flow_label;
		wanted.hop_limit = domain.hop_limit;
	}
	ib_sa_multicast *membership = ib_sa_join_multicast(
		interface_.sa_client(), interface_.device(), interface_.port_num(), &wanted, mask,
		static_cast<unsigned>(kern::Gfp::kernel), on_join, &group);
	if (rdma::is_err(membership))
		return false;
	group.membership = membership;
	return true;
}

} // namespace ipoib
