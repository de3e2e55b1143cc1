// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the verbs for address handles (IBA 11.2.2).
#include "checks.hpp"
#include "device.hpp"

using namespace verbs;

namespace
{

/*
 * The interface ID of the well-known SA GID. No port has this GID in its table, so a request that
 * was sent to it is answered from the port's first GID.
 */
constexpr u64 sa_well_known_guid = u64{1} << 57 | 2;

constexpr u8 grh_ip_version = 6;
constexpr u8 grh_next_header_iba = 0x1b;

} // namespace

int verbs::check_address(ib_device &device, rdma_ah_attr &attr)
{
	if (!rdma_is_port_valid(&device, attr.port_num) || attr.sl > 15)
		return -EINVAL;
	const rdma_ah_attr_type type = traits_of(device, attr.port_num).address;
	if (attr.type == RDMA_AH_ATTR_TYPE_UNDEFINED)
		attr.type = type;
	/*
	 * Only address vectors of InfiniBand are supported yet. A port whose protocol has no
	 * address vectors rejects all of them.
	 */
	if (attr.type != type || type != RDMA_AH_ATTR_TYPE_IB || (attr.ah_flags & ~IB_AH_GRH))
		return -EINVAL;
	if (attr.static_rate != IB_RATE_PORT_CURRENT &&
	    ib_rate_to_mult(static_cast<ib_rate>(attr.static_rate)) < 0)
		return -EINVAL;

	if (attr.ah_flags & IB_AH_GRH) {
		if (attr.grh.sgid_index >= device.port_immutable[attr.port_num].gid_tbl_len ||
		    attr.grh.flow_label & ~static_cast<u32>(IB_GRH_FLOWLABEL_MASK))
			return -EINVAL;
	} else if (rdma_is_grh_required(&device, attr.port_num) ||
		   (attr.ib.dlid >= IB_MULTICAST_LID_BASE_HOST &&
		    attr.ib.dlid != IB_LID_PERMISSIVE_HOST)) {
		/* Packets to a multicast LID must have a GRH (IBA 9.8.2.1). */
		return -EINVAL;
	}
	return attr.ib.dlid == 0 ? -EINVAL : 0;
}

extern "C" {

struct ib_ah *__rdma_create_ah(struct ib_pd *pd, struct rdma_ah_attr *ah_attr, u32 flags,
			       struct ib_udata *udata, const char *caller)
{
	if (!is_object(pd))
		return rdma::err_ptr<ib_ah>(-EINVAL);
	ib_device *device = pd->device;
	const bool sleepable = flags & RDMA_CREATE_AH_SLEEPABLE;

	if (sleepable)
		may_sleep(device, "rdma_create_ah");
	if (!device->ops.create_ah)
		return rdma::err_ptr<ib_ah>(-EOPNOTSUPP);
	if (flags & ~RDMA_CREATE_AH_SLEEPABLE)
		return rdma::err_ptr<ib_ah>(-EINVAL);
	rdma_ah_attr attr = *ah_attr;
	if (int error = check_address(*device, attr))
		return rdma::err_ptr<ib_ah>(error);

	Allocation<ib_ah> ah(device->ops.size_ib_ah,
			     sleepable ? memory_for(udata) : kern::Gfp::atomic);
	if (!ah)
		return rdma::err_ptr<ib_ah>(-ENOMEM);
	ah.belongs_to(device, udata);
	ah->pd = pd;
	ah->type = attr.type;

	rdma_ah_init_attr init = {.ah_attr = &attr, .flags = flags};
	int error;
	if (sleepable) {
		error = VERBS_CALL(device, create_ah, ah.get(), &init, udata);
	} else {
		AtomicMethod section(device, "create_ah");
		error = device->ops.create_ah(ah.get(), &init, nullptr);
	}
	if (error)
		return rdma::err_ptr<ib_ah>(error);
	use(pd);
	list(ah.get(), caller);
	return ah.release();
}

int rdma_modify_ah(struct ib_ah *ah, struct rdma_ah_attr *ah_attr)
{
	if (!ah->device->ops.modify_ah)
		return -EOPNOTSUPP;
	rdma_ah_attr attr = *ah_attr;
	if (int error = check_address(*ah->device, attr))
		return error;
	AtomicMethod section(ah->device, "modify_ah");
	return ah->device->ops.modify_ah(ah, &attr);
}

int rdma_query_ah(struct ib_ah *ah, struct rdma_ah_attr *ah_attr)
{
	if (!ah->device->ops.query_ah)
		return -EOPNOTSUPP;
	AtomicMethod section(ah->device, "query_ah");
	return ah->device->ops.query_ah(ah, ah_attr);
}

void rdma_destroy_ah(struct ib_ah *ah, u32 flags)
{
	ib_device *device = ah->device;
	int error = 0;

	if (flags & RDMA_DESTROY_AH_SLEEPABLE) {
		may_sleep(device, "rdma_destroy_ah");
		if (device->ops.destroy_ah)
			error = VERBS_CALL(device, destroy_ah, ah, flags);
	} else if (device->ops.destroy_ah) {
		AtomicMethod section(device, "destroy_ah");
		error = device->ops.destroy_ah(ah, flags);
	}
	if (KERN_WARN_ON(error))
		return;
	device->verbs->address_handles.remove(ah->res);
	unuse(ah->pd);
	kern_free(ah);
}

int ib_init_ah_attr_from_wc(struct ib_device *device, u32 port_num, const struct ib_wc *wc,
			    const struct ib_grh *grh, struct rdma_ah_attr *ah_attr)
{
	if (!rdma_is_port_valid(device, port_num))
		return -EINVAL;
	/* The response is sent to the source LID, so that must be a unicast LID. */
	if (wc->slid >= IB_MULTICAST_LID_BASE_HOST && wc->slid != IB_LID_PERMISSIVE_HOST)
		return -EPROTO;

	*ah_attr = {};
	ah_attr->type = RDMA_AH_ATTR_TYPE_IB;
	ah_attr->port_num = port_num;
	ah_attr->sl = wc->sl;
	rdma_ah_set_dlid(ah_attr, wc->slid);
	rdma_ah_set_path_bits(ah_attr, wc->dlid_path_bits);
	if (!(wc->wc_flags & IB_WC_GRH))
		return 0;

	const u32 word = grh->version_tclass_flow;
	if (word >> 28 != grh_ip_version || grh->next_hdr != grh_next_header_iba ||
	    rdma_is_multicast_gid(&grh->sgid))
		return -EPROTO;
	/*
	 * The source of the response is the GID that received the request. A request to a multicast
	 * group is answered from the port's first GID.
	 */
	u16 index = 0;
	if (!rdma_is_multicast_gid(&grh->dgid) &&
	    grh->dgid.global.interface_id != sa_well_known_guid)
		if (int error = ib_find_cached_gid_by_port(device, &grh->dgid, port_num, &index))
			return error;
	rdma_ah_set_grh(ah_attr, &grh->sgid, word & IB_GRH_FLOWLABEL_MASK, static_cast<u8>(index),
			0xff, static_cast<u8>(word >> 20));
	return 0;
}

struct ib_ah *__ib_create_ah_from_wc(struct ib_pd *pd, const struct ib_wc *wc,
				     const struct ib_grh *grh, u32 port_num, const char *caller)
{
	rdma_ah_attr attr;

	if (!is_object(pd))
		return rdma::err_ptr<ib_ah>(-EINVAL);
	if (int error = ib_init_ah_attr_from_wc(pd->device, port_num, wc, grh, &attr))
		return rdma::err_ptr<ib_ah>(error);
	return __rdma_create_ah(pd, &attr, 0, nullptr, caller);
}
}
