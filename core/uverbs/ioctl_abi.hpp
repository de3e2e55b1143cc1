// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the ioctl() interface, in which a method of an object is called with a list of
 * attributes, each with a number. This file has the numbers and layouts. Each namespace contains
 * the attributes of the method with the same name.
 */
#pragma once
#include "abi.hpp"

namespace uverbs::abi
{

/* The only ioctl() command: _IOWR(0x1b, 1, 24 bytes). */
inline constexpr unsigned int verbs_ioctl = 0xc0181b01;

struct MethodHeader {
	/* Size of this header and the attributes after it, in bytes. */
	u16 length;
	u16 object;
	u16 method;
	u16 attributes;
	u64 reserved;
	u32 driver;
	u32 reserved2;
};
static_assert(sizeof(MethodHeader) == 24);
inline constexpr u16 longest_method = 4096;

struct Attribute {
	u16 id;
	/* Size of the data in bytes; 0 for handles and descriptors. */
	u16 length;
	u16 flags;
	u16 reserved;
	/*
	 * The input, if it has at most 8 bytes; otherwise its address, or the address of the output
	 * buffer.
	 */
	u64 data;
};
static_assert(sizeof(Attribute) == 16);
inline constexpr u16 attribute_mandatory = 1 << 0;
/* Set by the kernel in the program's list: the output of this attribute has been written. */
inline constexpr u16 attribute_answered = 1 << 1;

enum Objects : u16 {
	object_device = 0,
	object_pd = 1,
	object_cq = 3,
	object_qp = 4,
	object_srq = 5,
	object_ah = 6,
	object_mr = 7,
	object_mw = 8,
	object_xrcd = 10,
	object_async_event = 16,
};

enum DeviceMethods : u16 {
	device_invoke_write = 0,
	device_query_port = 2,
	device_get_context = 3,
	device_query_context = 4,
	device_query_gid_table = 5,
	device_query_gid_entry = 6,
};
/*
 * Methods of objects that can be created and destroyed. An object that only a command can create
 * has only one method, which destroys it.
 */
enum ObjectMethods : u16 {
	object_create = 0,
	object_destroy = 1,
	object_only_destroy = 0,
	async_event_alloc = 0,
};

/* Data that the driver and its library exchange, in any method. */
inline constexpr u16 driver_in = 0x1000;
inline constexpr u16 driver_out = 0x1001;

namespace invoke_write
{
enum : u16 { core_in, core_out, command };
}
namespace query_port_method
{
enum : u16 { port_num, response };
}
namespace context_method
{
enum : u16 { num_comp_vectors, core_support };
/* Optional access rights of a region are dropped if the device does not support them. */
inline constexpr u64 core_drops_optional_access = 1 << 0;
}
namespace query_gid_table
{
enum : u16 { entry_size, flags, entries, used };
}
namespace query_gid_entry
{
enum : u16 { port, index, flags, entry };
}
namespace create_cq_method
{
enum : u16 { handle, cqe, user_handle, comp_channel, comp_vector, flags, response_cqe, event_fd };
}
namespace create_qp_method
{
enum : u16 {
	handle,
	xrcd,
	pd,
	srq,
	send_cq,
	recv_cq,
	ind_table,
	user_handle,
	cap,
	type,
	flags,
	source_qpn,
	event_fd,
	response_cap,
	response_qp_num,
};
/* Additional to the flags of the command. */
inline constexpr u32 flag_sq_sig_all = 1 << 12;
}
namespace create_srq_method
{
enum : u16 {
	handle,
	pd,
	xrcd,
	cq,
	user_handle,
	max_wr,
	max_sge,
	limit,
	max_num_tags,
	type,
	event_fd,
	response_max_wr,
	response_max_sge,
	response_srq_num,
};
}
/* Attributes of the destroy method, which all objects have. */
namespace destroy_method
{
enum : u16 { handle, response };
}
namespace alloc_async_event
{
enum : u16 { fd };
}

struct PortAttributesExtended {
	PortAttributes base;
	u16 port_cap_flags2;
	u8 reserved[6];
};
static_assert(sizeof(PortAttributesExtended) == 48);

struct GidEntry {
	u8 gid[16];
	u32 index;
	u32 port;
	u32 type;
	u32 netdev;
};
static_assert(sizeof(GidEntry) == 32);
inline constexpr u32 gid_type_ib = 0;

} // namespace uverbs::abi
