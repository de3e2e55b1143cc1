// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "multicast.hpp"

#include "port.hpp"
#include "query.hpp"

namespace mad::sa
{
namespace
{

/*
 * Returns true if the P_Keys differ at most in the membership bit: full and limited members are in
 * the same groups.
 */
bool same_partition(const ib_sa_mcmember_rec &a, const ib_sa_mcmember_rec &b)
{
	return ib::pkey_base(a.pkey.value()) == ib::pkey_base(b.pkey.value());
}

/* Returns true if a joined group satisfies a consumer's request. */
bool satisfies(const ib_sa_mcmember_rec &have, const ib_sa_mcmember_rec &want, u64 mask)
{
	const auto asks = [mask](unsigned component) {
		return (mask & ib::component(component)) != 0;
	};
	using R = ib::McMemberRecord;

	return (!asks(R::c_qkey) || have.qkey == want.qkey) &&
	       (!asks(R::c_mlid) || have.mlid == want.mlid) &&
	       (!asks(R::c_pkey) || same_partition(have, want)) &&
	       (!asks(R::c_sl) || have.sl == want.sl) &&
	       (!asks(R::c_traffic_class) || have.traffic_class == want.traffic_class) &&
	       (!asks(R::c_flow_label) || have.flow_label == want.flow_label) &&
	       (!asks(R::c_hop_limit) || have.hop_limit == want.hop_limit) &&
	       (!asks(R::c_scope) || have.scope == want.scope) &&
	       (!(asks(R::c_mtu_selector) && asks(R::c_mtu)) ||
		ib::selector_allows(static_cast<ib::Selector>(want.mtu_selector), have.mtu,
				    want.mtu)) &&
	       (!(asks(R::c_rate_selector) && asks(R::c_rate)) ||
		ib::selector_allows(static_cast<ib::Selector>(want.rate_selector), have.rate,
				    want.rate));
}

/* Returns true if the attributes that must not change while a group has members are equal. */
bool same_group(const ib_sa_mcmember_rec &a, const ib_sa_mcmember_rec &b)
{
	return a.mlid == b.mlid && a.qkey == b.qkey && same_partition(a, b) && a.mtu == b.mtu &&
	       a.sl == b.sl && a.flow_label == b.flow_label && a.hop_limit == b.hop_limit &&
	       a.traffic_class == b.traffic_class;
}

} // namespace

/* Next action for a group: ask the SA to join or to leave, or nothing. */
struct Groups::Step {
	enum class Kind : std::uint8_t { nothing, join, leave };
	Kind kind = Kind::nothing;
	ib_sa_mcmember_rec rec{};
	u64 component_mask = 0;
	u8 states = 0;
	RetryPolicy retry_policy{};
};

/* A pending query that joins or leaves a group; holds a reference to the group. */
class GroupQuery final : public Query
{
public:
	GroupQuery(Groups &groups, Group &group, bool joining, u8 states)
	    : groups_(groups), group_(kern::Ref<Group>::share(group)), joining_(joining),
	      states_(states)
	{
	}

private:
	void answered(int status, const std::uint8_t *record) override
	{
		ib_sa_mcmember_rec rec{};
		if (status == 0)
			unpack(*reinterpret_cast<const ib::McMemberRecord *>(record), rec);
		groups_.on_answer(*group_, joining_, states_, status, rec);
	}

	Groups &groups_;
	const kern::Ref<Group> group_;
	const bool joining_;
	const u8 states_;
};

void Group::count(const Member &member, bool counts)
{
	for (unsigned bit = 0; bit < 4; bit++)
		if (member.rec.join_state & 1u << bit)
			wanted[bit] += counts ? 1u : -1u;
}

Groups::~Groups()
{
	work_.cancel();
	while (Group *group = all_.pop_front()) {
		table_.remove(*group);
		group->due_node.unlink();
		kern::Ref<Group>::adopt(group).reset();
	}
}

void Groups::close()
{
	kern::Guard guard(lock_);
	closing_ = true;
}

u64 Groups::hash_of(const ib_gid &mgid) const
{
	u64 words[2];
	static_assert(sizeof(words) == sizeof(mgid.raw));
	__builtin_memcpy(words, mgid.raw, sizeof(words));
	return hash_(words[0], words[1]);
}

Group *Groups::find_locked(const ib_gid &mgid)
{
	return table_.find(hash_of(mgid), [&](const Group &group) { return group.mgid == mgid; });
}

std::size_t Groups::longest()
{
	kern::Guard guard(lock_);
	return table_.longest();
}

/* Queues the group for run(). */
void Groups::queue_locked(Group &group)
{
	group.due_node.unlink();
	due_.push_back(group);
	work_.queue();
}

kern::Result<Member *> Groups::join(const ib_sa_mcmember_rec &rec, u64 component_mask,
				    RetryPolicy retry_policy,
				    int (*callback)(int, ib_sa_multicast *), void *context)
{
	using R = ib::McMemberRecord;
	constexpr u64 needed = ib::component(R::c_mgid) | ib::component(R::c_port_gid) |
			       ib::component(R::c_join_state);
	if ((component_mask & needed) != needed || (rec.join_state & 0xf) == 0 ||
	    !rdma_is_multicast_gid(&rec.mgid))
		return kern::Error{-EINVAL};

	auto member = KERN_TRY(kern::make<Member>(kern::Gfp::kernel));
	auto fresh = KERN_TRY(kern::make_ref<Group>(kern::Gfp::kernel, rec.mgid));
	member->owner = this;
	member->rec = rec;
	member->comp_mask = component_mask;
	member->retry_policy = retry_policy;
	member->callback = callback;
	member->context = context;

	kern::Guard guard(lock_);
	if (closing_)
		return kern::Error{-ENODEV};
	Group *group = find_locked(rec.mgid);
	if (members_ >= members_max || (!group && table_.count() >= groups_max))
		return kern::Error{-ENOBUFS};
	if (!group) {
		group = fresh.release();
		group->rejoins = rejoins_;
		table_.insert(*group, hash_of(rec.mgid));
		all_.push_back(*group);
	}
	group->retry_policy = retry_policy;
	member->group = kern::Ref<Group>::share(*group);
	group->fresh.push_back(*member);
	group->count(*member, true);
	members_++;
	queue_locked(*group);
	return member.release();
}

void Groups::leave(Member &member)
{
	bool wait;
	{
		kern::Guard guard(lock_);
		if (member.counts())
			member.group->count(member, false);
		member.state = Member::State::ended;
		member.node.unlink();
		member.notify_node.unlink();
		members_--;
		wait = member.callback_guard.leave_locked();
		queue_locked(*member.group);
	}
	if (wait)
		member.callback_guard.wait();
	kern::destroy(&member);
}

kern::Result<ib_sa_mcmember_rec> Groups::find(const ib_gid &mgid)
{
	kern::Guard guard(lock_);
	const Group *group = find_locked(mgid);
	if (!group || !group->joined)
		return kern::Error{-EADDRNOTAVAIL};
	return group->rec;
}

void Groups::rejoin()
{
	kern::Guard guard(lock_);
	rejoins_++;
	work_.queue();
}

/*
 * Marks a batch of groups that must be joined again, because the SA may have lost them. All groups
 * may be too many for one section with interrupts disabled. Returns true if there are more. Called
 * by run() only.
 */
bool Groups::mark_rejoins()
{
	constexpr unsigned batch = 64;

	kern::Guard guard(lock_);
	for (unsigned count = 0; count < batch; count++) {
		Group *group = all_.front();
		if (!group || group->rejoins == rejoins_)
			return false;
		group->all_node.unlink();
		all_.push_back(*group);
		group->rejoins = rejoins_;
		group->rejoin = group->joined != 0;
		queue_locked(*group);
	}
	return true;
}

/* Ends the member's wait with this state and outcome. Its callback is then due. */
void Groups::decide_locked(Group &group, Member &member, Member::State state, int outcome)
{
	if (member.counts() && state == Member::State::ended)
		group.count(member, false);
	member.state = state;
	member.outcome = outcome;
	member.node.unlink();
	group.members.push_back(member);
	if (!member.notify_node.linked())
		group.to_notify.push_back(member);
}

/*
 * Completes members whose requests are satisfied by what the SA has already granted, and moves the
 * others to the waiting list. Each member is checked when it is added and after each response of
 * the SA.
 */
void Groups::settle_fresh_locked(Group &group)
{
	while (Member *member = group.fresh.pop_front()) {
		const u8 states = member->rec.join_state & 0xf;
		if ((group.joined & states) != states) {
			group.waiting.push_back(*member);
		} else if (satisfies(group.rec, member->rec, member->comp_mask)) {
			decide_locked(group, *member, Member::State::joined, 0);
			member->rec = group.rec;
			member->rec.join_state = states;
		} else {
			decide_locked(group, *member, Member::State::ended, -EINVAL);
		}
	}
}

Groups::Step Groups::next_step_locked(Group &group)
{
	using R = ib::McMemberRecord;
	constexpr u64 identity = ib::component(R::c_mgid) | ib::component(R::c_port_gid) |
				 ib::component(R::c_join_state);
	const u8 wanted = group.wanted_states();

	if (group.rejoin) {
		group.rejoin = false;
		if (const u8 states = group.joined & wanted) {
			/*
			 * With these components, an SA that does not have the group can create it
			 * with the same attributes.
			 */
			constexpr u64 properties =
				ib::component(R::c_qkey) | ib::component(R::c_pkey) |
				ib::component(R::c_traffic_class) | ib::component(R::c_sl) |
				ib::component(R::c_flow_label);
			return {Step::Kind::join, group.rec, identity | properties, states,
				group.retry_policy};
		}
		group.joined = 0;
	}
	/*
	 * settle_fresh_locked() leaves only members in the waiting list that need join states which
	 * have not been granted yet. Join with the request of the first one.
	 */
	if (const Member *member = group.waiting.front())
		return {Step::Kind::join, member->rec, member->comp_mask,
			static_cast<u8>(member->rec.join_state & 0xf), member->retry_policy};
	if (const u8 unwanted = group.joined & static_cast<u8>(~wanted)) {
		/*
		 * The group is being left, so a new member must wait for a new join. If the leave
		 * is refused or not answered, the states count as left anyway: the SA removes ports
		 * that no longer respond.
		 */
		group.joined = static_cast<u8>(group.joined & ~unwanted);
		return {Step::Kind::leave, group.rec, identity, unwanted, group.retry_policy};
	}
	return {};
}

/*
 * Returns the next group to examine: one with a change, or one that was held back and may send its
 * query now. Empty if there is none.
 */
kern::Ref<Group> Groups::next_group()
{
	kern::Guard guard(lock_);
	Group *group = due_.pop_front();
	if (!group && asking_ < asking_max)
		group = held_.pop_front();
	return group ? kern::Ref<Group>::share(*group) : kern::Ref<Group>{};
}

/* Context: work queue; never runs in parallel with itself. */
void Groups::run()
{
	while (mark_rejoins())
		;
	while (auto group = next_group())
		serve(*group);
}

void Groups::serve(Group &group)
{
	Step step;
	bool is_held = false;
	__atomic_store_n(&served_, served_ + 1, __ATOMIC_RELAXED);
	{
		kern::Guard guard(lock_);
		settle_fresh_locked(group);
		if (!group.asking && !closing_) {
			is_held = asking_ >= asking_max;
			if (!is_held)
				step = next_step_locked(group);
			else if (!group.due_node.linked())
				held_.push_back(group);
		}
		if (step.kind != Step::Kind::nothing) {
			group.asking = true;
			asking_++;
		}
	}
	notify(group);
	if (step.kind != Step::Kind::nothing) {
		ask(group, step);
		return;
	}
	kern::Ref<Group> last;
	{
		kern::Guard guard(lock_);
		if (is_held || group.asking || !group.is_unused() || group.joined ||
		    !table_.contains(group))
			return;
		table_.remove(group);
		group.all_node.unlink();
		group.due_node.unlink();
		last = kern::Ref<Group>::adopt(&group);
	}
}

/* Calls the callbacks of the group's members that are due. */
void Groups::notify(Group &group)
{
	for (;;) {
		Member *due = nullptr;
		{
			kern::Guard guard(lock_);
			due = group.to_notify.pop_front();
			if (!due)
				return;
			due->callback_guard.begin_locked();
		}
		const bool refused = due->callback(due->outcome, due) != 0;
		{
			kern::Guard guard(lock_);
			/*
			 * If the consumer leaves during the callback, it waits and then frees the
			 * member.
			 */
			if (due->callback_guard.end_locked() || !refused)
				continue;
			if (due->counts())
				group.count(*due, false);
			due->node.unlink();
			due->notify_node.unlink();
			members_--;
			queue_locked(group);
		}
		kern::destroy(due);
	}
}

/* Sends the query of a step. Context: run(). */
void Groups::ask(Group &group, const Step &step)
{
	if (!port_.sm_address())
		port_.finish_refresh();
	const bool joining = step.kind == Step::Kind::join;
	ib_sa_mcmember_rec rec = step.rec;
	rec.join_state = step.states;
	ib::McMemberRecord wire;
	pack(rec, wire);
	const Request request{
		.method = static_cast<u8>(joining ? ib::MadMethod::set : ib::MadMethod::remove),
		.attribute = ib::attr_mc_member_record,
		.component_mask = step.component_mask,
		.retry_policy = step.retry_policy,
		.gfp = kern::Gfp::kernel,
	};
	int status;
	if (auto query = kern::make_ref<GroupQuery>(kern::Gfp::kernel, *this, group, joining,
						    step.states);
	    query.ok())
		status = query.value()->start(port_, nullptr, request, &wire, sizeof(wire)).error();
	else
		status = query.error();
	if (status < 0)
		on_answer(group, joining, step.states, status, {});
}

void Groups::on_answer(Group &group, bool joining, u8 states, int status,
		       const ib_sa_mcmember_rec &rec)
{
	kern::Guard guard(lock_);

	group.asking = false;
	asking_--;
	if (joining && (status || !(rec.mgid == group.mgid))) {
		group.joined &= static_cast<u8>(~states);
		end_members_locked(group, states, status ? status : -EIO);
	} else if (joining) {
		if (group.joined && !same_group(group.rec, rec)) {
			end_members_locked(group, group.joined, -ENETRESET);
			group.joined = 0;
		}
		group.rec = rec;
		group.joined |= states;
		group.fresh.splice_back(group.waiting);
	}
	queue_locked(group);
}

/*
 * Ends the memberships with these join states. Waiting members get `outcome`. Joined members get
 * -ENETRESET, because they have lost their membership.
 */
void Groups::end_members_locked(Group &group, u8 states, int outcome)
{
	const auto end = [&](auto &list, bool joined) KERN_REQUIRES(lock_) {
		for (Member &member : list)
			if (member.counts() && (member.rec.join_state & states) &&
			    (member.state == Member::State::joined) == joined)
				decide_locked(group, member, Member::State::ended,
					      joined ? -ENETRESET : outcome);
	};
	/*
	 * The joined members must be processed first, because decide_locked() moves waiting members
	 * to the same list.
	 */
	end(group.members, true);
	end(group.waiting, false);
	end(group.fresh, false);
}

} // namespace mad::sa
