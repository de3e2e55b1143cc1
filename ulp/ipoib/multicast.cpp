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
/* After a join that failed: one second, doubling to sixteen. */
constexpr u64 first_retry_ms = 1'000;
constexpr unsigned doublings = 4;
/* Groups beyond the stack's own that are joined because someone sends to them. */
constexpr std::size_t groups_max = 4096;

} // namespace

void Multicast::start()
{
	{
		kern::Guard guard(lock_);
		running_ = true;
		list_changed_ = true;
		if (!broadcast_) {
			broadcast_ = add_locked(interface_.broadcast(), kern::Gfp::atomic);
			if (!broadcast_)
				return;
			broadcast_->listened = true;
		}
	}
	work_.reschedule(0);
}

void Multicast::stop()
{
	{
		kern::Guard guard(lock_);
		running_ = false;
	}
	work_.cancel();
	for (;;) {
		Group *group;
		{
			kern::Guard guard(lock_);
			group = groups_.pop_front();
			if (group == broadcast_)
				broadcast_ = nullptr;
		}
		if (!group)
			return;
		end_membership(*group);
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
		if (!group && groups_.size() < groups_max && running_)
			group = add_locked(address, kern::Gfp::atomic | kern::Gfp::no_warn);
		if (!group || !running_) {
			refused = true;
		} else {
			group->sent_to = true;
			/* Joined already: what is missing is its destination, which a joined group gets again. */
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

bool Multicast::broadcast_record(ib_sa_mcmember_rec &record)
{
	kern::Guard guard(lock_);
	if (!broadcast_ || broadcast_->state != Group::State::joined)
		return false;
	record = broadcast_->record;
	return true;
}

Group *Multicast::find_locked(const HardwareAddress &address)
{
	for (Group &group : groups_)
		if (group.address.same_peer(address))
			return &group;
	return nullptr;
}

Group *Multicast::add_locked(const HardwareAddress &address, kern::Gfp gfp)
{
	auto made = kern::make<Group>(gfp, *this, address);
	if (!made.ok())
		return nullptr;
	Group *group = made.take().release();
	groups_.push_back(*group);
	return group;
}

/* Context: work queue. */
void Multicast::run()
{
	collect_listened();
	leave_unwanted();
	settle_outcomes();
	join_due();
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
			group.listened = &group == broadcast_;
	}
	kern_netdev_for_each_multicast(
		interface_.netdev(),
		[](void *context, const u8 *bytes) {
			auto &self = *static_cast<Multicast *>(context);
			const auto &address = *reinterpret_cast<const HardwareAddress *>(bytes);
			/* The stack may have addresses of another partition or scope, made for another interface. */
			if (!is_group_of(address, self.interface_.broadcast()))
				return;
			kern::Guard guard(self.lock_);
			Group *group = self.find_locked(address);
			if (!group)
				group = self.add_locked(address, kern::Gfp::atomic);
			if (group)
				group->listened = true;
		},
		this);
}

void Multicast::leave_unwanted()
{
	for (;;) {
		Group *unwanted = nullptr;
		{
			kern::Guard guard(lock_);
			for (Group &group : groups_) {
				if (!group.wanted()) {
					unwanted = &group;
					group.node.unlink();
					break;
				}
			}
		}
		if (!unwanted)
			return;
		end_membership(*unwanted);
		interface_.forget(unwanted->address);
		kern::destroy(unwanted);
	}
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
	bool is_broadcast;
	if (outcome) {
		end_membership(group);
		kern::Guard guard(lock_);
		is_broadcast = &group == broadcast_;
		fail_locked(group);
	} else {
		kern::Guard guard(lock_);
		is_broadcast = &group == broadcast_;
		group.state = Group::State::joined;
		group.failures = 0;
	}
	if (outcome)
		interface_.resolved(group.address, nullptr);
	else
		interface_.resolved_group(group);
	if (is_broadcast)
		interface_.domain_changed();
}

void Multicast::fail_locked(Group &group)
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
	u64 earliest = ~u64{0};
	for (;;) {
		Group *due = nullptr;
		const u64 now = kern::now_ns();
		{
			kern::Guard guard(lock_);
			if (!running_ || !broadcast_)
				return;
			const bool all = broadcast_->state == Group::State::joined;
			earliest = ~u64{0};
			for (Group &group : groups_) {
				if (group.state != Group::State::idle || !(all || &group == broadcast_))
					continue;
				if (group.retry_at <= now) {
					due = &group;
					group.state = Group::State::joining;
					break;
				}
				if (group.retry_at < earliest)
					earliest = group.retry_at;
			}
		}
		if (!due) {
			if (earliest != ~u64{0})
				work_.reschedule(static_cast<unsigned>((earliest - now) / ns_per_ms) + 1);
			return;
		}
		if (!begin_join(*due)) {
			kern::Guard guard(lock_);
			due->state = Group::State::idle;
			fail_locked(*due);
		}
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
	/* Those that are only sent to are joined in full too: a send-only membership needs an SM that knows the kind, and would not
	 * make a group that nobody listens to yet. */
	wanted.join_state = 1u << FULLMEMBER_JOIN;
	if (broadcast_record(domain)) {
		/* The first member makes the group in the image of the broadcast group, RFC 4391 section 5. */
		mask |= IB_SA_MCMEMBER_REC_QKEY | IB_SA_MCMEMBER_REC_MTU_SELECTOR | IB_SA_MCMEMBER_REC_MTU |
			IB_SA_MCMEMBER_REC_TRAFFIC_CLASS | IB_SA_MCMEMBER_REC_RATE_SELECTOR |
			IB_SA_MCMEMBER_REC_RATE | IB_SA_MCMEMBER_REC_SL | IB_SA_MCMEMBER_REC_FLOW_LABEL |
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
	ib_sa_multicast *membership =
		ib_sa_join_multicast(interface_.sa_client(), interface_.device(), interface_.port_num(), &wanted,
				     mask, static_cast<unsigned>(kern::Gfp::kernel), on_join, &group);
	if (rdma::is_err(membership))
		return false;
	group.membership = membership;
	return true;
}

} // namespace ipoib
