// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the verbs for the multicast groups of a QP (IBA 11.3). The driver is called only for
// the first attachment to a GID and for the last detachment, because a card may identify a group by
// its GID only and ignore the LID.
#include "checks.hpp"
#include "qp.hpp"

using namespace verbs;

namespace
{

struct Group {
	ib_list_head links;
	ib_gid gid;
	u16 lid;
	unsigned int attachments;
};

bool is_group(const ib_qp &qp, const ib_gid &gid, u16 lid)
{
	return qp.qp_type == IB_QPT_UD && rdma_is_multicast_gid(&gid) &&
	       lid >= IB_MULTICAST_LID_BASE_HOST && lid != IB_LID_PERMISSIVE_HOST;
}

Group *find_locked(ib_qp_core &core, const ib_gid &gid, u16 lid)
{
	Group *found = nullptr;

	core.groups_lock.assert_held();
	ring_any_of<Group, &Group::links>(core.groups, [&](Group &group) {
		if (group.lid != lid || !(group.gid == gid))
			return false;
		found = &group;
		return true;
	});
	return found;
}

/* Returns true if the QP is attached to the same GID with a different LID. */
bool has_other_locked(ib_qp_core &core, const ib_gid &gid, u16 lid)
{
	core.groups_lock.assert_held();
	return ring_any_of<Group, &Group::links>(
		core.groups, [&](Group &group) { return group.lid != lid && group.gid == gid; });
}

int attach(ib_qp *qp, const ib_gid *gid, u16 lid, ib_mcast_owner owner)
{
	may_sleep(qp->device, "ib_attach_mcast");
	if (!qp->device->ops.attach_mcast)
		return -EOPNOTSUPP;
	if (!is_group(*qp, *gid, lid))
		return -EINVAL;

	kern::Guard guard(qp->core->groups_lock);
	if (Group *group = find_locked(*qp->core, *gid, lid)) {
		group->attachments++;
		return 0;
	}
	auto group = kern::make<Group>(
		kern::Gfp::kernel, Group{.links = {}, .gid = *gid, .lid = lid, .attachments = 1});
	if (!group)
		return group.error();
	if (!has_other_locked(*qp->core, *gid, lid))
		if (int error = VERBS_CALL(qp->device, attach_mcast, qp, gid, lid, owner))
			return error;
	/* The ring owns the group from now on. */
	ring_push(qp->core->groups, group.take().release()->links);
	use(qp);
	return 0;
}

} // namespace

extern "C" {

int ib_attach_mcast(struct ib_qp *qp, const union ib_gid *gid, u16 lid)
{
	return attach(qp, gid, lid, qp->res.user ? IB_MCAST_USER : IB_MCAST_KERNEL);
}

int ib_attach_mcast_for_user(struct ib_qp *qp, const union ib_gid *gid, u16 lid)
{
	return attach(qp, gid, lid, IB_MCAST_USER);
}

int ib_detach_mcast(struct ib_qp *qp, const union ib_gid *gid, u16 lid)
{
	may_sleep(qp->device, "ib_detach_mcast");
	if (!qp->device->ops.detach_mcast)
		return -EOPNOTSUPP;
	if (!is_group(*qp, *gid, lid))
		return -EINVAL;

	kern::Guard guard(qp->core->groups_lock);
	Group *group = find_locked(*qp->core, *gid, lid);
	if (!group)
		return -EINVAL;
	if (group->attachments > 1) {
		group->attachments--;
		return 0;
	}
	if (!has_other_locked(*qp->core, *gid, lid))
		if (int error = VERBS_CALL(qp->device, detach_mcast, qp, gid, lid))
			return error;
	ring_remove(group->links);
	kern::destroy(group);
	unuse(qp);
	return 0;
}
}
