// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the uverbs commands that open a context, and that query the device and its ports.
#include <rdma/ib_cache.h>
#include "commands.hpp"
#include "methods.hpp"

namespace uverbs
{

namespace
{

/* The device capabilities that are reported to programs. */
constexpr u64 user_capabilities =
	IB_DEVICE_RESIZE_MAX_WR | IB_DEVICE_BAD_PKEY_CNTR | IB_DEVICE_BAD_QKEY_CNTR |
	IB_DEVICE_RAW_MULTI | IB_DEVICE_AUTO_PATH_MIG | IB_DEVICE_CHANGE_PHY_PORT |
	IB_DEVICE_UD_AV_PORT_ENFORCE | IB_DEVICE_CURR_QP_STATE_MOD | IB_DEVICE_SHUTDOWN_PORT |
	IB_DEVICE_PORT_ACTIVE_EVENT | IB_DEVICE_SYS_IMAGE_GUID | IB_DEVICE_RC_RNR_NAK_GEN |
	IB_DEVICE_SRQ_RESIZE | IB_DEVICE_N_NOTIFY_CQ | IB_DEVICE_MEM_WINDOW | IB_DEVICE_XRC |
	IB_DEVICE_UD_IP_CSUM | IB_DEVICE_MEM_MGT_EXTENSIONS | IB_DEVICE_MEM_WINDOW_TYPE_2A |
	IB_DEVICE_MEM_WINDOW_TYPE_2B | IB_DEVICE_RC_IP_CSUM | IB_DEVICE_RAW_IP_CSUM;

/*
 * The bit of PortInfo that programs interpret as "GIDs contain IP addresses", which is not true of
 * InfiniBand's GIDs.
 */
constexpr u32 port_cap_ip_based_gids = 1u << 26;

u32 count(int value)
{
	return static_cast<u32>(value);
}

abi::DeviceAttributes describe(const ib_device &device, const ib_device_attr &attr)
{
	return {
		.fw_ver = attr.fw_ver,
		.node_guid = device.node_guid,
		.sys_image_guid = attr.sys_image_guid,
		.max_mr_size = attr.max_mr_size,
		.page_size_cap = attr.page_size_cap,
		.vendor_id = attr.vendor_id,
		.vendor_part_id = attr.vendor_part_id,
		.hw_ver = attr.hw_ver,
		.max_qp = count(attr.max_qp),
		.max_qp_wr = count(attr.max_qp_wr),
		.device_cap_flags = static_cast<u32>(attr.device_cap_flags & user_capabilities),
		.max_sge = count(attr.max_send_sge < attr.max_recv_sge ? attr.max_send_sge
								       : attr.max_recv_sge),
		.max_sge_rd = count(attr.max_sge_rd),
		.max_cq = count(attr.max_cq),
		.max_cqe = count(attr.max_cqe),
		.max_mr = count(attr.max_mr),
		.max_pd = count(attr.max_pd),
		.max_qp_rd_atom = count(attr.max_qp_rd_atom),
		.max_res_rd_atom = count(attr.max_res_rd_atom),
		.max_qp_init_rd_atom = count(attr.max_qp_init_rd_atom),
		.atomic_cap = attr.atomic_cap,
		.max_mw = count(attr.max_mw),
		.max_mcast_grp = count(attr.max_mcast_grp),
		.max_mcast_qp_attach = count(attr.max_mcast_qp_attach),
		.max_total_mcast_qp_attach = count(attr.max_total_mcast_qp_attach),
		.max_ah = count(attr.max_ah),
		.max_srq = count(attr.max_srq),
		.max_srq_wr = count(attr.max_srq_wr),
		.max_srq_sge = count(attr.max_srq_sge),
		.max_pkeys = attr.max_pkeys,
		.local_ca_ack_delay = attr.local_ca_ack_delay,
		.phys_port_cnt = static_cast<u8>(device.phys_port_cnt),
	};
}

abi::PortAttributes describe(ib_device &device, u32 port_num, const ib_port_attr &attr)
{
	return {
		.port_cap_flags = attr.port_cap_flags & ~port_cap_ip_based_gids,
		.max_msg_sz = attr.max_msg_sz,
		.bad_pkey_cntr = attr.bad_pkey_cntr,
		.qkey_viol_cntr = attr.qkey_viol_cntr,
		.gid_tbl_len = count(attr.gid_tbl_len),
		.pkey_tbl_len = attr.pkey_tbl_len,
		.lid = static_cast<u16>(attr.lid),
		.sm_lid = static_cast<u16>(attr.sm_lid),
		.state = static_cast<u8>(attr.state),
		.max_mtu = static_cast<u8>(attr.max_mtu),
		.active_mtu = static_cast<u8>(attr.active_mtu),
		.lmc = attr.lmc,
		.max_vl_num = attr.max_vl_num,
		.sm_sl = attr.sm_sl,
		.subnet_timeout = attr.subnet_timeout,
		.init_type_reply = attr.init_type_reply,
		.active_width = attr.active_width,
		.active_speed = static_cast<u8>(attr.active_speed),
		.phys_state = attr.phys_state,
		.link_layer = static_cast<u8>(rdma_port_get_link_layer(&device, port_num)),
		.flags = static_cast<u8>(rdma_is_grh_required(&device, port_num) ? 1 : 0),
	};
}

Result<> write_context(Call &call, const Attributes &attributes)
{
	using namespace abi::context_method;

	KERN_TRY(attributes.write_output(num_comp_vectors,
					 static_cast<u32>(call.file.device().num_comp_vectors)));
	return attributes.write_output(core_support, core_drops_optional_access);
}

/* Errors: EINVAL if the port or the entry does not exist. */
Result<abi::GidEntry> read_gid(ib_device &device, u32 port_num, u32 index)
{
	abi::GidEntry entry = {
		.gid = {}, .index = index, .port = port_num, .type = abi::gid_type_ib, .netdev = 0};
	ib_gid gid;

	if (index > 0xffff)
		return kern::Error{-EINVAL};
	KERN_TRY_ERRNO(rdma_query_gid(&device, port_num, static_cast<int>(index), &gid));
	__builtin_memcpy(entry.gid, gid.raw, sizeof(entry.gid));
	return entry;
}

bool is_used(const abi::GidEntry &entry)
{
	for (const u8 byte : entry.gid)
		if (byte)
			return true;
	return false;
}

} // namespace

Result<> get_context(Call &call, const abi::ResponseOnly &)
{
	File &file = call.file;
	auto created = KERN_TRY(EventFile::create_asynchronous(file));

	KERN_TRY(file.make_context(call.udata, [&]() -> Result<> {
		KERN_TRY(call.respond(abi::ContextResponse{
			.async_fd = static_cast<u32>(created.file.descriptor()),
			.num_comp_vectors = static_cast<u32>(file.device().num_comp_vectors),
		}));
		file.use_for_events(created.events);
		return {};
	}));
	created.file.install();
	return {};
}

/* Creates the context without an event file: the library requests that by another method. */
Result<> methods::get_context(Call &call, const Attributes &attributes)
{
	return call.file.make_context(call.udata, [&] { return write_context(call, attributes); });
}

Result<> methods::query_context(Call &call, const Attributes &attributes)
{
	return write_context(call, attributes);
}

Result<> methods::alloc_async_event(Call &call, const Attributes &attributes)
{
	auto created = KERN_TRY(EventFile::create_asynchronous(call.file));

	KERN_TRY(attributes.write_handle(abi::alloc_async_event::fd,
					 static_cast<u32>(created.file.descriptor())));
	call.file.use_for_events(created.events);
	created.file.install();
	return {};
}

Result<> query_device(Call &call, const abi::ResponseOnly &)
{
	ib_device &device = call.file.device();
	ib_device_attr attr;

	KERN_TRY_ERRNO(ib_query_device_user(&device, &attr, nullptr));
	return call.respond(describe(device, attr));
}

Result<> query_device_extended(Call &call, const abi::QueryDeviceExtended &request)
{
	ib_device &device = call.file.device();
	ib_device_attr attr;

	if (request.comp_mask || request.reserved)
		return kern::Error{-EINVAL};
	KERN_TRY_ERRNO(ib_query_device_user(&device, &attr, &call.udata));
	return call.respond(abi::DeviceAttributesExtended{
		.base = describe(device, attr),
		.response_length = call.response_length<abi::DeviceAttributesExtended>(),
		.device_cap_flags = attr.device_cap_flags & user_capabilities,
		.max_cq_moderation_count = attr.cq_caps.max_cq_moderation_count,
		.max_cq_moderation_period = attr.cq_caps.max_cq_moderation_period,
	});
}

Result<> query_port(Call &call, const abi::QueryPort &request)
{
	ib_device &device = call.file.device();
	ib_port_attr attr;

	KERN_TRY_ERRNO(ib_query_port(&device, request.port_num, &attr));
	return call.respond(describe(device, request.port_num, attr));
}

Result<> methods::query_port(Call &call, const Attributes &attributes)
{
	using namespace abi::query_port_method;
	ib_device &device = call.file.device();
	const u32 port = static_cast<u32>(attributes.number(port_num));
	ib_port_attr attr;

	KERN_TRY_ERRNO(ib_query_port(&device, port, &attr));
	return attributes.write_output(
		response, abi::PortAttributesExtended{.base = describe(device, port, attr),
						      .port_cap_flags2 = attr.port_cap_flags2});
}

Result<> methods::query_gid_table(Call &call, const Attributes &attributes)
{
	using namespace abi::query_gid_table;
	ib_device &device = call.file.device();
	const u64 stride = attributes.number(entry_size);
	const Attributes::Place buffer = attributes.place(entries);
	u64 found = 0;

	if (!stride || buffer.size % stride)
		return kern::Error{-EINVAL};
	for (u32 port = 1; port <= device.phys_port_cnt; port++) {
		ib_port_attr attr;
		KERN_TRY_ERRNO(ib_query_port(&device, port, &attr));
		for (u32 index = 0; index < count(attr.gid_tbl_len); index++) {
			const abi::GidEntry entry = KERN_TRY(read_gid(device, port, index));
			if (!is_used(entry))
				continue;
			if (found == buffer.size / stride)
				return kern::Error{-EINVAL};
			KERN_TRY(answer_in(buffer.address + found++ * stride, stride, &entry,
					   sizeof(entry)));
		}
	}
	KERN_TRY(attributes.write_output(used, found));
	return attributes.answered(entries);
}

Result<> methods::query_gid_entry(Call &call, const Attributes &attributes)
{
	using namespace abi::query_gid_entry;
	const abi::GidEntry found =
		KERN_TRY(read_gid(call.file.device(), static_cast<u32>(attributes.number(port)),
				  static_cast<u32>(attributes.number(index))));

	return is_used(found) ? attributes.write_output(entry, found) : kern::Error{-ENODATA};
}

} // namespace uverbs
