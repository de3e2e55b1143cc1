// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the table of verbs methods, and implements those that differ from the common ones of
// hw/mellanox_icm.
#include "ib_device.hpp"
#include "ah.hpp"
#include "cq.hpp"
#include "diagnostics.hpp"
#include "family.hpp"
#include "mr.hpp"
#include "qp.hpp"
#include "srq.hpp"
#include "user_abi.hpp"
#include "user_context.hpp"
#include "xrc_domain.hpp"

namespace mlx4
{

namespace
{

using Methods = CommonMethods<Verbs>;

constexpr auto &hca_of = Methods::hca_of;

/*
 * Reports to the user library that the device has only the standard attributes. The response is
 * truncated to the library's buffer.
 */
int answer_query(ib_udata &udata)
{
	user_abi::QueryDeviceResponse response{};
	const size_t length = udata.outlen < sizeof(response) ? udata.outlen : sizeof(response);
	response.response_length = static_cast<u32>(length);
	return ib_copy_to_udata(&udata, &response, length);
}

int query_device(ib_device *device, ib_device_attr *attr, ib_udata *udata)
{
	// The attributes do not change after registration.
	if (udata)
		return answer_query(*udata);
	Hca &hca = hca_of(device);
	const Capabilities &cap = hca.capabilities();
	if (const int error = Methods::query_device(hca, *attr))
		return error;
	// The user library adds one entry, and 2048 bytes for the card's prefetch, to a program's
	// request, and then rounds the number up to a power of two.
	attr->max_qp_wr = (1 << cap.log_max_qp_size) - 33;
	attr->max_sge_rd = 30;
	attr->max_mw = attr->max_mr;
	attr->max_srq_sge = static_cast<int>(cap.max_rq_sge) - 1;
	attr->max_fast_reg_page_list_len = cap.fast_registration() ? max_fast_pages : 0;
	attr->atomic_cap = cap.has(wire::dev_cap_flag::atomics) ? IB_ATOMIC_HCA : IB_ATOMIC_NONE;
	attr->masked_atomic_cap = attr->atomic_cap;
	attr->cq_caps.max_cq_moderation_count = 0xffff;
	attr->cq_caps.max_cq_moderation_period = 0xffff;

	const auto offer = [&](bool has, u64 flag) { attr->device_cap_flags |= has ? flag : 0; };
	offer(cap.has(wire::dev_cap_flag::bad_pkey_counter), IB_DEVICE_BAD_PKEY_CNTR);
	offer(cap.has(wire::dev_cap_flag::bad_qkey_counter), IB_DEVICE_BAD_QKEY_CNTR);
	offer(cap.has(wire::dev_cap_flag::apm), IB_DEVICE_AUTO_PATH_MIG);
	offer(cap.has(wire::dev_cap_flag::ud_av_port_check), IB_DEVICE_UD_AV_PORT_ENFORCE);
	offer(cap.has(wire::dev_cap_flag::ipoib_checksum), IB_DEVICE_UD_IP_CSUM);
	offer(cap.has(wire::dev_cap_flag::xrc), IB_DEVICE_XRC);
	offer(cap.fast_registration(), IB_DEVICE_MEM_MGT_EXTENSIONS);
	offer(cap.has(wire::dev_cap_flag::memory_windows), IB_DEVICE_MEM_WINDOW);
	offer(cap.has_bmme(wire::bmme_flag::type2_windows),
	      cap.has_bmme(wire::bmme_flag::type2b_windows) ? IB_DEVICE_MEM_WINDOW_TYPE_2B
							    : IB_DEVICE_MEM_WINDOW_TYPE_2A);
	attr->kernel_cap_flags = IBK_BLOCK_MULTICAST_LOOPBACK;
	if (cap.has_bmme(wire::bmme_flag::reserved_lkey))
		attr->kernel_cap_flags |= IBK_LOCAL_DMA_LKEY;
	if (cap.log_max_lso && cap.has(wire::dev_cap_flag::big_lso_headers))
		attr->kernel_cap_flags |= IBK_UD_TSO;
	return 0;
}

int modify_device(ib_device *device, int mask, ib_device_modify *change)
{
	if (mask & ~IB_DEVICE_MODIFY_NODE_DESC)
		return -EOPNOTSUPP;
	Hca &hca = hca_of(device);
	__builtin_memcpy(device->node_desc, change->node_desc, sizeof(device->node_desc));
	auto mailbox = hca.commands().mailbox();
	if (!mailbox)
		return mailbox.error();
	__builtin_memcpy(mailbox.value().bytes(), change->node_desc, IB_DEVICE_NODE_DESC_MAX);
	// Firmware without this command keeps its own description. The midlayer still has the new
	// one.
	kern::ignore(hca.commands().execute_in({.opcode = wire::Opcode::set_node, .in_modifier = 1},
					       mailbox.value()));
	return 0;
}

int alloc_xrcd(ib_xrcd *xrcd, ib_udata *)
{
	Hca &hca = hca_of(xrcd->device);
	if (!hca.capabilities().has(wire::dev_cap_flag::xrc))
		return -EOPNOTSUPP;
	return Methods::create<XrcDomain::Object>(xrcd, [](XrcDomain &own) { return own.start(); });
}

int attach_mcast(ib_qp *qp, const ib_gid *gid, u16, ib_mcast_owner owner)
{
	const Qp &own = Qp::of(qp);
	return hca_of(qp->device)
		.multicast()
		.attach(*gid, own.number(), own.blocks_loopback(), owner)
		.error();
}

constexpr ib_device_ops make_operations()
{
	ib_device_ops own = Methods::table;
	own.map_mr_sg = [](ib_mr *mr, const ib_dma_segment *segments, int count,
			   unsigned int *offset) {
		return Mr::of(mr).map(segments, count, offset);
	};

	own.query_device = query_device;
	own.modify_device = modify_device;
	own.process_mad = [](ib_device *device, int flags, u32 port, const ib_wc *wc,
			     const ib_grh *grh, const ib_mad *in, ib_mad *out, size_t *, u16 *) {
		return process_mad(hca_of(device).commands(), port, flags, wc, grh, *in, *out);
	};

	own.hw_counters = [](ib_device *device, u32 port) {
		return counters_of(hca_of(device), port);
	};
	own.get_hw_stats = [](ib_device *device, u32 port, u64 *values) {
		Hca &hca = hca_of(device);
		return read_counters(hca, *counters_of(hca, port), values).error();
	};

	own.alloc_pd = Methods::alloc_pd<user_abi::Pd>;
	own.alloc_xrcd = alloc_xrcd;
	own.dealloc_xrcd = [](ib_xrcd *xrcd, ib_udata *) {
		XrcDomain::Object::destruct(xrcd);
		return 0;
	};

	own.modify_cq = [](ib_cq *cq, u16 count, u16 period) {
		return Cq::of(cq).moderate(count, period).error();
	};
	own.attach_mcast = attach_mcast;

	own.alloc_mr = [](ib_mr *mr, ib_mr_type type, u32 pages) -> int {
		if (type != IB_MR_TYPE_MEM_REG ||
		    !hca_of(mr->device).capabilities().fast_registration())
			return -EOPNOTSUPP;
		return Methods::create<Mr::Object>(
			mr, [&](Mr &made) { return made.start_fast(pages); });
	};
	own.rereg_user_mr = [](ib_mr *mr, int flags, u64 start, u64 length, u64 iova, int access,
			       ib_pd *pd, ib_udata *) {
		return Mr::of(mr).change_user(flags, start, length, iova, access, pd).error();
	};
	own.alloc_mw = [](ib_mw *mw, ib_udata *) -> int {
		const Capabilities &cap = hca_of(mw->device).capabilities();
		if (mw->type == IB_MW_TYPE_1 ? !cap.has(wire::dev_cap_flag::memory_windows)
					     : !cap.has_bmme(wire::bmme_flag::type2_windows))
			return -EOPNOTSUPP;
		return Methods::create<Mw::Object>(mw, [](Mw &made) { return made.start(); });
	};
	own.dealloc_mw = [](ib_mw *mw) {
		const auto stopped = Mw::of(mw).stop();
		if (stopped)
			Mw::Object::destruct(mw);
		return stopped.error();
	};

	own.driver_id = RDMA_DRIVER_MLX4;
	own.uverbs_abi_ver = user_abi::version;

	own.size_ib_mw = sizeof(Mw::Object);
	own.size_ib_xrcd = sizeof(XrcDomain::Object);
	return own;
}

} // namespace

constinit const ib_device_ops Verbs::operations = make_operations();

} // namespace mlx4
