// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Joins multicast groups: maps IP addresses to MGIDs as IPoIB does (RFC 4391, section 4), and
 * manages memberships at the SA.
 */
#include <rdma/objects.hpp>

#include "manager.hpp"

namespace rdma_cm
{
namespace
{

/* Returns true if an IPv6 address is an MGID of InfiniBand: any flags and scope, signature a01b. */
bool is_mgid(const u8 *address)
{
	return address[0] == 0xff && (address[1] & 0xf0) == 0x10 && address[2] == 0xa0 &&
	       address[3] == 0x1b;
}

/*
 * Returns true for MGIDs that IPoIB uses. These groups have IPoIB's Q_Key. If a port joined such a
 * group first with another Q_Key, it would create the group with that key and exclude all ports
 * that use IPoIB's.
 */
bool is_of_ipoib(const ib_gid &mgid)
{
	return mgid.raw[0] == 0xff && (mgid.raw[2] == 0x40 || mgid.raw[2] == 0x60) &&
	       mgid.raw[3] == 0x1b;
}

} // namespace

/* UDP groups have their own signature, so that they do not receive IPoIB's packets. */
ib_gid mgid_of(const Address &address, rdma_ucm_port_space space, const ib_gid &broadcast)
{
	ib_gid mgid{};
	if (is_any(address) || is_loopback(address))
		return mgid;
	if (address.family == RDMA_AF_IB)
		return address.ib.addr;
	if (address.family == RDMA_AF_INET6 && is_mgid(address.in6.addr)) {
		__builtin_memcpy(mgid.raw, address.in6.addr, sizeof(mgid.raw));
		return mgid;
	}
	/* The scope and the P_Key are those of the broadcast group. */
	__builtin_memcpy(mgid.raw, broadcast.raw, 6);
	const bool v6 = address.family == RDMA_AF_INET6;
	mgid.raw[2] = v6 ? 0x60 : 0x40;
	mgid.raw[3] = space == RDMA_PS_UDP ? 0x01 : 0x1b;
	if (v6) {
		__builtin_memcpy(mgid.raw + 6, address.in6.addr + 6, 10);
	} else {
		__builtin_memcpy(mgid.raw + 12, address.in.addr, 4);
		mgid.raw[12] &= 0x0f;
	}
	return mgid;
}

kern::Result<> Id::join(const Address &address, u8 join_state, void *join_context)
{
	constexpr unsigned int most = 4096;
	KERN_TRY(permit(Event::join));
	if (qp_type != IB_QPT_UD || qp || !device || !is_family(address.family) ||
	    (join_state != FULLMEMBER_JOIN && join_state != SENDONLY_FULLMEMBER_JOIN))
		return kern::Error{-EINVAL};
	if (group_count_ >= most)
		return kern::Error{-ENOSPC};
	ib_sa_mcmember_rec rec{};
	KERN_TRY_ERRNO(ib_sa_get_mcmember_rec(device, port_num, &interface.broadcast, &rec));
	if (!qkey_)
		KERN_TRY(find_qkey());

	rec.mgid = mgid_of(address, ps, interface.broadcast);
	if (ps != RDMA_PS_IPOIB && is_of_ipoib(rec.mgid))
		return kern::Error{-EINVAL};
	rec.port_gid = route.addr.sgid;
	rec.pkey = route.addr.pkey;
	rec.qkey = qkey_;
	rec.join_state = static_cast<u8>(1u << join_state);
	u64 mask = IB_SA_MCMEMBER_REC_MGID | IB_SA_MCMEMBER_REC_PORT_GID | IB_SA_MCMEMBER_REC_PKEY |
		   IB_SA_MCMEMBER_REC_JOIN_STATE | IB_SA_MCMEMBER_REC_QKEY | IB_SA_MCMEMBER_REC_SL |
		   IB_SA_MCMEMBER_REC_FLOW_LABEL | IB_SA_MCMEMBER_REC_TRAFFIC_CLASS;
	if (ps == RDMA_PS_IPOIB) {
		rec.rate_selector = rec.mtu_selector = IB_SA_EQ;
		mask |= IB_SA_MCMEMBER_REC_RATE | IB_SA_MCMEMBER_REC_RATE_SELECTOR |
			IB_SA_MCMEMBER_REC_MTU_SELECTOR | IB_SA_MCMEMBER_REC_MTU |
			IB_SA_MCMEMBER_REC_HOP_LIMIT;
	}
	auto group = KERN_TRY(kern::make<Group>(kern::Gfp::kernel, *this, address, join_context));
	group->membership = KERN_TRY(rdma::check(ib_sa_join_multicast(
		&Manager::get().sa(), device, port_num, &rec, mask,
		static_cast<unsigned int>(kern::Gfp::kernel),
		[](int status, ib_sa_multicast *multicast) {
			auto &of = *static_cast<Group *>(multicast->context);
			of.id.take_membership(of, status, multicast->rec);
			return 0;
		},
		group.get())));
	groups_.push_back(*group.release());
	group_count_++;
	return {};
}

void Id::take_membership(Group &group, int status, const ib_sa_mcmember_rec &rec)
{
	kern::Guard guard(lock_);
	if (status == 0) {
		group.rec = rec;
		if (rec.qkey != qkey_)
			status = -EINVAL;
	}
	post(group, status == 0 ? Event::joined : Event::join_failed, status);
}

void Id::fill_group(rdma_cm_event &event, Group &group)
{
	event.join_context = group.context;
	if (event.status)
		return;
	rdma_ud_param &ud = event.param.ud;
	event.status = ib_init_ah_from_mcmember(device, port_num, &group.rec, &ud.ah_attr);
	if (event.status) {
		event.event = RDMA_CM_EVENT_MULTICAST_ERROR;
		return;
	}
	ud.qp_num = IB_QPN_MASK; /* all attached QPs */
	ud.qkey = group.rec.qkey.value();
}

/* Freeing the membership waits for a running callback, so the caller must hold no lock. */
Group::~Group()
{
	if (membership)
		ib_sa_free_multicast(membership);
}

void Id::leave(const Address &address)
{
	kern::Owned<Group> left;
	{
		kern::Guard guard(lock_);
		for (Group &group : groups_) {
			if (!same(group.address, address))
				continue;
			group.group_node.unlink();
			group_count_--;
			left = kern::Owned<Group>::adopt(&group);
			break;
		}
	}
	if (!left)
		return;
	ib_sa_free_multicast(std::exchange(left->membership, nullptr));
	/* The membership has been freed, so no new result can be posted. */
	kern::Guard handling(handler_lock_);
	kern::Guard guard(lock_);
	left->node.unlink();
}

void Id::leave_all()
{
	for (;;) {
		kern::Owned<Group> group;
		{
			kern::Guard guard(lock_);
			group = kern::Owned<Group>::adopt(groups_.pop_front());
		}
		if (!group)
			return;
	}
}

} // namespace rdma_cm
