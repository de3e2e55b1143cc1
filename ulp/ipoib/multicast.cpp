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
constexpr u64 never = ~u64{0};
/* After a join that failed: one second, doubling to sixteen. */
constexpr u64 first_retry_ms = 1'000;
constexpr unsigned doublings = 4;
constexpr u64 resubscribe_ms = 16'000;
/* A multicast group is no more (IBA 13.4.8.2): 16 bytes of MGID in its details. */
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
	if (!broadcast_.node.linked()) {
		groups_.push_front(broadcast_);
		broadcast_.retry_at = 0;
		broadcast_.failures = 0;
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
		Group *group;
		{
			kern::Guard guard(lock_);
			group = groups_.pop_front();
		}
		if (!group)
			return;
		end_membership(*group);
		if (group != &broadcast_)
			kern::destroy(group);
	}
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
		if (!group && running_ && senders_locked() < send_only_max)
			group = add_locked(address, Group::Use::send,
					   kern::Gfp::atomic | kern::Gfp::no_warn);
		if (!group || !running_) {
			refused = true;
		} else {
			if (group->use == Group::Use::none)
				group->use = Group::Use::send;
			/*
			 * Joined already: what is missing is its destination, which a joined group
			 * gets again.
			 */
			if (group->state == Group::State::joined && !group->has_outcome) {
				group->has_outcome = true;
				group->outcome = 0;
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
	 * Who sends makes the destination first, and asks for the group after that: either is seen
	 * here.
	 */
	for (Group &group : groups_) {
		if (group.use != Group::Use::send || interface_.sends_to(group.address))
			continue;
		group.use = Group::Use::none;
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

Group *Multicast::find_locked(const HardwareAddress &address)
{
	for (Group &group : groups_)
		if (group.address.same_peer(address))
			return &group;
	return nullptr;
}

Group *Multicast::add_locked(const HardwareAddress &address, Group::Use use, kern::Gfp gfp)
{
	auto made = kern::make<Group>(gfp, *this, address, use);
	if (!made.ok())
		return nullptr;
	Group *group = made.take().release();
	groups_.push_back(*group);
	return group;
}

unsigned Multicast::senders_locked() const
{
	unsigned count = 0;
	for (const Group &group : groups_)
		count += group.use == Group::Use::send;
	return count;
}

/* Context: work queue. */
void Multicast::run()
{
	next_run_ = never;
	collect_listened();
	settle_outcomes();
	leave_unwanted();
	hear_of_deletions();
	join_due();
	if (next_run_ == never)
		return;
	const u64 now = kern::now_ns();
	/* Not put off, if somebody has asked for it to be sooner. */
	work_.queue(next_run_ > now ? static_cast<unsigned>((next_run_ - now) / ns_per_ms) + 1 : 0);
}

/*
 * With umcast: a group that this interface is not in, and a program on the port is, hears its
 * packets itself.
 */
bool Multicast::is_users(const HardwareAddress &address)
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

/* Brings the groups into line with the stack's list. */
void Multicast::collect_listened()
{
	{
		kern::Guard guard(lock_);
		if (!list_changed_)
			return;
		list_changed_ = false;
		for (Group &group : groups_)
			group.in_list = &group == &broadcast_;
	}
	kern_netdev_for_each_multicast(
		interface_.netdev(),
		[](void *context, const u8 *bytes) {
			auto &self = *static_cast<Multicast *>(context);
			const auto &address = *reinterpret_cast<const HardwareAddress *>(bytes);
			/*
			 * The stack may have addresses of another partition or scope, made for
			 * another interface.
			 */
			if (!is_group_of(address, self.interface_.broadcast()) ||
			    self.is_users(address))
				return;
			kern::Guard guard(self.lock_);
			Group *group = self.find_locked(address);
			if (!group)
				group = self.add_locked(address, Group::Use::listen,
							kern::Gfp::atomic);
			if (group)
				group->in_list = true;
			else
				self.list_changed_ = true;
		},
		this);
	kern::Guard guard(lock_);
	for (Group &group : groups_) {
		if (group.in_list)
			group.use = Group::Use::listen;
		else if (group.use == Group::Use::listen)
			group.use = Group::Use::none;
	}
	/* There was no memory for some. */
	if (list_changed_)
		wake_at(kern::now_ns() + first_retry_ms * ns_per_ms);
}

/* Ends memberships that nobody needs, or not of this kind: who sent and now listens joins again. */
void Multicast::leave_unwanted()
{
	for (;;) {
		Group *found = nullptr;
		bool gone = false;
		{
			kern::Guard guard(lock_);
			for (Group &group : groups_) {
				gone = group.use == Group::Use::none;
				if (!gone && (group.state == Group::State::idle ||
					      group.joined_for == group.use))
					continue;
				if (gone)
					group.node.unlink();
				group.failures = 0;
				group.retry_at = 0;
				found = &group;
				break;
			}
		}
		if (!found)
			return;
		end_membership(*found);
		if (!gone)
			continue;
		/*
		 * Of one that could not be joined the destination stays, and with it the time
		 * before which nobody asks again.
		 */
		if (found->was_joined)
			interface_.forget(found->address);
		kern::destroy(found);
	}
}

/*
 * Who only sends does not keep a group alive. When it has ended, its LID may become another
 * group's: we must not send there any more.
 * Context: run().
 */
void Multicast::hear_of_deletions()
{
	{
		kern::Guard guard(lock_);
		if (deletions_ || !running_ || broadcast_.state != Group::State::joined ||
		    !senders_locked() || kern::now_ns() < subscribe_at_)
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

/* Context: process, of the SA client. */
int Multicast::on_deletion(int status, ib_inform_info *info, ib_sa_notice *notice)
{
	auto &self = *static_cast<Multicast *>(info->context);
	kern::Guard guard(self.lock_);
	if (status)
		self.subscribe_at_ = kern::now_ns() + resubscribe_ms * ns_per_ms;
	if (status && self.deletions_ != info) {
		/* hear_of_deletions() or stop() has it, and ends it. */
		self.refused_ = info;
		return 0;
	}
	/* While a subscription was lost any of them may have ended. An SA that grants none must not cost a join a packet: there they stay until
	 * nobody sends any more. */
	const bool lost = status == -ENETRESET;
	for (Group &group : self.groups_) {
		const bool ended =
			lost || (notice && __builtin_memcmp(notice->data_details + trap_mgid_offset,
							    group.address.gid.raw,
							    sizeof(group.address.gid.raw)) == 0);
		if (ended && group.use == Group::Use::send)
			group.use = Group::Use::none;
	}
	if (status)
		self.deletions_ = nullptr;
	if (self.running_ && (lost || notice))
		self.work_.reschedule(0);
	return status;
}

/* Context: run() or stop(). */
void Multicast::end_membership(Group &group)
{
	if (group.attached) {
		ib_detach_mcast(interface_.qp(), &group.record.mgid, group.record.mlid.value());
		group.attached = false;
	}
	/* After this the callback does not run any more. */
	if (group.membership)
		ib_sa_free_multicast(group.membership);
	group.membership = nullptr;
	kern::Guard guard(lock_);
	group.state = Group::State::idle;
	group.has_outcome = false;
}

/* Context: process, of the SA client. */
int Multicast::on_join(int status, ib_sa_multicast *multicast)
{
	auto &group = *static_cast<Group *>(multicast->context);
	auto &self = group.multicast;
	kern::Guard guard(self.lock_);
	group.has_outcome = true;
	group.outcome = status;
	if (status == 0)
		group.record = multicast->rec;
	if (self.running_)
		self.work_.reschedule(0);
	return 0;
}

void Multicast::settle_outcomes()
{
	for (;;) {
		Group *due = nullptr;
		int outcome = 0;
		{
			kern::Guard guard(lock_);
			for (Group &group : groups_) {
				if (!group.has_outcome)
					continue;
				group.has_outcome = false;
				outcome = group.outcome;
				due = &group;
				break;
			}
		}
		if (!due)
			return;
		settle(*due, outcome);
	}
}

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

/* A membership is lost, or was not to be had. Context: run(). */
void Multicast::fail(Group &group)
{
	end_membership(group);
	bool asks_again = true;
	{
		kern::Guard guard(lock_);
		/*
		 * There is no such group, for nobody listens. The next packet asks for it, no
		 * sooner than its destination allows.
		 */
		if (group.use == Group::Use::send) {
			group.use = Group::Use::none;
			asks_again = false;
			wake_at(0);
		} else {
			put_off_locked(group);
		}
	}
	/* A full member keeps the destination that it had. */
	if (!asks_again && group.was_joined)
		interface_.forget(group.address);
	else
		interface_.resolved(group.address, {});
	group.was_joined = false;
}

void Multicast::put_off_locked(Group &group)
{
	const unsigned steps = group.failures < doublings ? group.failures : doublings;
	group.retry_at = kern::now_ns() + (first_retry_ms << steps) * ns_per_ms;
	group.failures++;
	if (group.failures == 1)
		kern_info_limited("%s: multicast group %pI6 not joined, trying again\n",
				  kern_netdev_name(interface_.netdev()), group.address.gid.raw);
}

/* Begins the joins whose time has come: the broadcast group's alone as long as it is missing. */
void Multicast::join_due()
{
	for (;;) {
		Group *due = nullptr;
		const u64 now = kern::now_ns();
		{
			kern::Guard guard(lock_);
			if (!running_)
				return;
			const bool all = broadcast_.state == Group::State::joined;
			for (Group &group : groups_) {
				if (group.state != Group::State::idle ||
				    group.use == Group::Use::none ||
				    !(all || &group == &broadcast_))
					continue;
				if (group.retry_at <= now) {
					due = &group;
					group.state = Group::State::joining;
					group.joined_for = group.use;
					break;
				}
				wake_at(group.retry_at);
			}
		}
		if (!due)
			return;
		if (!begin_join(*due))
			fail(*due);
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
		 * The first member makes the group in the image of the broadcast group, RFC 4391
		 * section 5.
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
