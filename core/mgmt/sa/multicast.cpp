// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "multicast.hpp"

#include "port.hpp"
#include "query.hpp"

namespace mgmt::sa
{
namespace
{

/* Whether a group that is joined already is what a consumer asked for. */
bool satisfies(const ib_sa_mcmember_rec &have, const ib_sa_mcmember_rec &want, u64 mask)
{
	const auto asks = [mask](unsigned component) {
		return (mask & ib::component(component)) != 0;
	};
	using R = ib::McMemberRecord;

	return (!asks(R::c_qkey) || have.qkey == want.qkey) &&
	       (!asks(R::c_mlid) || have.mlid == want.mlid) &&
	       (!asks(R::c_pkey) || have.pkey == want.pkey) &&
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

/* What a member sees of a group must not change under it. */
bool same_group(const ib_sa_mcmember_rec &a, const ib_sa_mcmember_rec &b)
{
	return a.mlid == b.mlid && a.qkey == b.qkey && a.pkey == b.pkey && a.mtu == b.mtu &&
	       a.sl == b.sl && a.flow_label == b.flow_label && a.hop_limit == b.hop_limit &&
	       a.traffic_class == b.traffic_class;
}

} // namespace

/* What is to be done next for a group: ask the SA to join or to leave, or nothing. */
struct Groups::Step {
	enum class Kind : std::uint8_t { nothing, join, leave };
	Kind kind = Kind::nothing;
	ib_sa_mcmember_rec rec{};
	u64 component_mask = 0;
	u8 states = 0;
	Patience patience{};
};

/* A join or leave under way; holds its group. */
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

Groups::~Groups()
{
	work_.cancel();
	while (Group *group = list_.pop_front())
		kern::Ref<Group>::adopt(group).reset();
}

void Groups::close()
{
	kern::Guard guard(lock_);
	closing_ = true;
}

Group *Groups::find_locked(const ib_gid &mgid)
{
	for (Group &group : list_)
		if (group.mgid == mgid)
			return &group;
	return nullptr;
}

void Groups::kick_locked(Group &group)
{
	group.attention = true;
	work_.queue();
}

kern::Result<Member *> Groups::join(const ib_sa_mcmember_rec &rec, u64 component_mask,
				    Patience patience, int (*callback)(int, ib_sa_multicast *),
				    void *context)
{
	using R = ib::McMemberRecord;
	constexpr u64 needed = ib::component(R::c_mgid) | ib::component(R::c_port_gid) |
			       ib::component(R::c_join_state);
	if ((component_mask & needed) != needed || (rec.join_state & 0xf) == 0 ||
	    !rdma_is_multicast_gid(&rec.mgid))
		return kern::Error{-EINVAL};

	auto member = TRY(kern::make<Member>(kern::Gfp::kernel));
	auto fresh = TRY(kern::make_ref<Group>(kern::Gfp::kernel, rec.mgid));
	member->owner = this;
	member->rec = rec;
	member->comp_mask = component_mask;
	member->patience = patience;
	member->callback = callback;
	member->context = context;

	kern::Guard guard(lock_);
	if (closing_)
		return kern::Error{-ENODEV};
	Group *group = find_locked(rec.mgid);
	if (!group) {
		group = fresh.release();
		list_.push_back(*group);
	}
	group->patience = patience;
	member->group = kern::Ref<Group>::share(*group);
	group->members.push_back(*member);
	kick_locked(*group);
	return member.release();
}

void Groups::leave(Member &member)
{
	bool wait;
	{
		kern::Guard guard(lock_);
		member.state = Member::State::ended;
		member.node.unlink();
		wait = member.told.leave_locked();
		kick_locked(*member.group);
	}
	if (wait)
		member.told.wait();
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
	for (Group &group : list_) {
		group.rejoin = group.joined != 0;
		kick_locked(group);
	}
}

/* Gives those that wait for no more than the SA knows already what they wait for. */
void Groups::settle_waiting_locked(Group &group)
{
	for (Member &member : group.members) {
		const u8 states = member.rec.join_state & 0xf;
		if (member.state != Member::State::waiting || (group.joined & states) != states)
			continue;
		if (satisfies(group.rec, member.rec, member.comp_mask)) {
			member.state = Member::State::joined;
			member.outcome = 0;
			member.rec = group.rec;
			member.rec.join_state = states;
		} else {
			member.state = Member::State::ended;
			member.outcome = -EINVAL;
		}
		member.to_tell = true;
	}
}

Groups::Step Groups::next_step_locked(Group &group)
{
	using R = ib::McMemberRecord;
	constexpr u64 identity = ib::component(R::c_mgid) | ib::component(R::c_port_gid) |
				 ib::component(R::c_join_state);
	u8 wanted = 0;
	for (const Member &member : group.members)
		if (member.counts())
			wanted |= member.rec.join_state & 0xf;

	if (group.rejoin) {
		group.rejoin = false;
		if (const u8 states = group.joined & wanted) {
			/* An SA that knows nothing of the group creates it as it was. */
			constexpr u64 properties =
				ib::component(R::c_qkey) | ib::component(R::c_pkey) |
				ib::component(R::c_traffic_class) | ib::component(R::c_sl) |
				ib::component(R::c_flow_label);
			return {Step::Kind::join, group.rec, identity | properties, states,
				group.patience};
		}
		group.joined = 0;
	}
	for (const Member &member : group.members)
		if (member.state == Member::State::waiting &&
		    (member.rec.join_state & 0xf & ~group.joined))
			return {Step::Kind::join, member.rec, member.comp_mask,
				static_cast<u8>(member.rec.join_state & 0xf), member.patience};
	if (const u8 unwanted = group.joined & static_cast<u8>(~wanted)) {
		/* Left from now on: who joins meanwhile must wait for a join of his own. Refused or unheard it is left all the same, for the
		 * SA drops a port that is gone by itself. */
		group.joined = static_cast<u8>(group.joined & ~unwanted);
		return {Step::Kind::leave, group.rec, identity, unwanted, group.patience};
	}
	return {};
}

/* A group that something has happened to; empty if none is left. */
kern::Ref<Group> Groups::next_group()
{
	kern::Guard guard(lock_);
	for (Group &group : list_) {
		if (!group.attention)
			continue;
		group.attention = false;
		return kern::Ref<Group>::share(group);
	}
	return {};
}

/* Context: work queue, once at a time. */
void Groups::run()
{
	while (auto group = next_group())
		serve(*group);
}

void Groups::serve(Group &group)
{
	Step step;
	{
		kern::Guard guard(lock_);
		settle_waiting_locked(group);
		if (!group.asking && !closing_)
			step = next_step_locked(group);
		group.asking |= step.kind != Step::Kind::nothing;
	}
	tell(group);
	if (step.kind != Step::Kind::nothing) {
		ask(group, step);
		return;
	}
	kern::Ref<Group> last;
	{
		kern::Guard guard(lock_);
		if (group.asking || !group.members.empty() || group.joined || !group.node.linked())
			return;
		group.node.unlink();
		last = kern::Ref<Group>::adopt(&group);
	}
}

/* Calls the callbacks that are due. */
void Groups::tell(Group &group)
{
	for (;;) {
		Member *due = nullptr;
		{
			kern::Guard guard(lock_);
			for (Member &member : group.members) {
				if (!member.to_tell)
					continue;
				member.to_tell = false;
				member.told.begin_locked();
				due = &member;
				break;
			}
		}
		if (!due)
			return;
		const bool refused = due->callback(due->outcome, due) != 0;
		{
			kern::Guard guard(lock_);
			/* Who leaves waits, and destroys it. */
			if (due->told.end_locked() || !refused)
				continue;
			due->node.unlink();
			kick_locked(group);
		}
		kern::destroy(due);
	}
}

void Groups::ask(Group &group, const Step &step)
{
	const bool joining = step.kind == Step::Kind::join;
	ib_sa_mcmember_rec rec = step.rec;
	rec.join_state = step.states;
	ib::McMemberRecord wire;
	pack(rec, wire);
	const Request request{
		.method = static_cast<u8>(joining ? ib::MadMethod::set : ib::MadMethod::remove),
		.attribute = ib::attr_mc_member_record,
		.component_mask = step.component_mask,
		.patience = step.patience,
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
	}
	kick_locked(group);
}

/*
 * Ends the memberships that rest on these join states: those that wait hear `outcome`, those that
 * had joined that it is lost.
 */
void Groups::end_members_locked(Group &group, u8 states, int outcome)
{
	for (Member &member : group.members) {
		if (!member.counts() || !(member.rec.join_state & states))
			continue;
		member.outcome = member.state == Member::State::joined ? -ENETRESET : outcome;
		member.state = Member::State::ended;
		member.to_tell = true;
	}
}

} // namespace mgmt::sa
