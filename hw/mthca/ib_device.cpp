// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the table of verbs methods, and implements those that differ from the common ones of
// hw/mellanox_icm. Methods that the card does not support are omitted: memory windows, fast
// registration, XRC, CQ moderation, reregistration.
#include "ib_device.hpp"
#include <ib/smp.hpp>
#include <kern/log.hpp>
#include "ah.hpp"
#include "cq.hpp"
#include "mr.hpp"
#include "qp.hpp"
#include "srq.hpp"
#include "user_abi.hpp"
#include "user_context.hpp"

namespace mthca
{

namespace
{

using Methods = CommonMethods<Verbs>;

constexpr auto &hca_of = Methods::hca_of;

int query_device(ib_device *device, ib_device_attr *attr, ib_udata *udata)
{
	// The attributes do not change after registration, and the user library needs no others.
	if (udata)
		return 0;
	Hca &hca = hca_of(device);
	const Capabilities &cap = hca.capabilities();
	if (const int error = Methods::query_device(hca, *attr))
		return error;
	attr->max_qp_wr = 1 << cap.log_max_qp_size;
	attr->max_sge_rd = attr->max_send_sge;
	attr->max_srq_sge = static_cast<int>(cap.max_rq_sge);
	attr->atomic_cap = cap.has(wire::dev_lim_flag::atomics) ? IB_ATOMIC_HCA : IB_ATOMIC_NONE;

	const auto offer = [&](bool has, u64 flag) { attr->device_cap_flags |= has ? flag : 0; };
	offer(cap.has(wire::dev_lim_flag::bad_pkey_counter), IB_DEVICE_BAD_PKEY_CNTR);
	offer(cap.has(wire::dev_lim_flag::bad_qkey_counter), IB_DEVICE_BAD_QKEY_CNTR);
	offer(cap.has(wire::dev_lim_flag::av_port_check), IB_DEVICE_UD_AV_PORT_ENFORCE);
	return 0;
}

/*
 * Sets the node description. The card has its own description and no command to change it, so
 * process_mad() inserts the node's description into responses.
 */
int modify_device(ib_device *device, int mask, ib_device_modify *change)
{
	if (mask & ~IB_DEVICE_MODIFY_NODE_DESC)
		return -EOPNOTSUPP;
	__builtin_memcpy(device->node_desc, change->node_desc, sizeof(device->node_desc));
	return 0;
}

/* Returns true for attributes from which the tables of a port are read. */
bool is_of_port(u16 attribute)
{
	return attribute == ib::attr_port_info || attribute == ib::attr_guid_info ||
	       attribute == ib::attr_pkey_table || attribute == ib::attr_sl_to_vl;
}

/*
 * The card reports when a port goes up or down, but no other changes by the subnet manager. The
 * driver detects those from the SMPs that pass through this function. It updates the tables before
 * any consumer is notified; the midlayer itself detects changes of the port's attributes.
 */
int process_mad(ib_device *device, int flags, u32 port_num, const ib_wc *wc, const ib_grh *grh,
		const ib_mad *in, ib_mad *out, size_t *, u16 *)
{
	Hca &hca = hca_of(device);
	const int result =
		mellanox_icm::process_mad(hca.commands(), port_num, flags, wc, grh, *in, *out);
	const auto &request = *reinterpret_cast<const ib::Smp *>(in);
	auto &answer = *reinterpret_cast<ib::Smp *>(out);
	if (!(result & IB_MAD_RESULT_REPLY) || !request.header.is_smp())
		return result;
	const bool refused = answer.header.status.value() & ~ib::mad_status_direction;
	if (!refused && request.header.attr_id == ib::attr_node_description)
		__builtin_memcpy(answer.data, device->node_desc, IB_DEVICE_NODE_DESC_MAX);
	if (refused || !request.header.is_method(ib::MadMethod::set) ||
	    !is_of_port(request.header.attr_id))
		return result;
	Port &port = hca.port(port_num);
	if (const auto read = port.read_tables(); !read && !hca.failed())
		kern_warning_limited("port %u: its tables cannot be read again (%d)\n", port_num,
				     read.error());
	if (request.header.attr_id == ib::attr_port_info &&
	    ib::smp_attribute<ib::PortInfo>(request).client_reregister())
		port.changed(1u << IB_EVENT_CLIENT_REREGISTER);
	return result;
}

constexpr ib_device_ops make_operations()
{
	ib_device_ops own = Methods::table;
	own.query_device = query_device;
	own.modify_device = modify_device;
	own.process_mad = process_mad;

	own.alloc_pd = Methods::alloc_pd<user_abi::Number>;
	own.attach_mcast = [](ib_qp *qp, const ib_gid *gid, u16, ib_mcast_owner owner) {
		return hca_of(qp->device)
			.multicast()
			.attach(*gid, Qp::of(qp).number(), false, owner)
			.error();
	};
	own.driver_id = RDMA_DRIVER_MTHCA;
	own.uverbs_abi_ver = user_abi::version;
	return own;
}

} // namespace

constinit const ib_device_ops Verbs::operations = make_operations();

} // namespace mthca
