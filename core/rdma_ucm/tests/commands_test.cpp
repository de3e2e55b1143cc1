// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the commands of a program: valid commands call the right functions of rdma_cm with the
// right arguments, and invalid commands are rejected before a function of rdma_cm is called.
#include "fixture.hpp"

using namespace ucm_fixture;
using fake::Call;

namespace
{

/* Number of bytes after a request. */
constexpr u16 much = 1024;

struct Frame {
	const char *what;
	u32 number;
	u16 in;
	u16 out;
	std::size_t written;
	long expected;
};

constexpr std::size_t header = sizeof(abi::Header);
constexpr Frame frames[] = {
	{"nothing", abi::create_id, 0, 0, 0, -EINVAL},
	{"less than a header", abi::create_id, 0, 0, 7, -EINVAL},
	{"a header alone", abi::create_id, 0, 4, header, -EINVAL},
	{"more than is written", abi::create_id, 24, 4, header + 23, -EINVAL},
	{"less than the request", abi::create_id, 23, 4, header + 24, -EINVAL},
	{"response buffer too small", abi::create_id, 24, 3, header + 24, -ENOSPC},
	{"the number of nothing", 13, 24, 4, header + 24, -ENOSYS},
	{"beyond the last number", 23, 24, 4, header + 24, -EINVAL},
	{"the last number of all", 0xffffffff, 24, 4, header + 24, -EINVAL},
	{"a port space that there is not", abi::create_id, 24, 4, header + 24, -EINVAL},
	{"more than there is to say, of zeros", abi::destroy_id, 32, 4, header + 32, -ENOENT},
};

/* An invalid frame is rejected with the error that the interface defines, and has no effect. */
void ucm_rejects_commands_with_a_malformed_header(Test &test)
{
	static constexpr u8 zeros[64] = {};
	Bench bench;
	Program program(bench);
	ASSERT_TRUE(bench.ok() && program.ok());
	for (const Frame &frame : frames)
		if (!test.expect(
			    program.write(
				    {.command = frame.number, .in = frame.in, .out = frame.out},
				    zeros, frame.written) == frame.expected,
			    frame.what, __FILE__, __LINE__))
			break;
	EXPECT_EQ(fake::alive(), 0u);
	EXPECT_EQ(rdma_ucm::table().ids(), 0u);
}

/*
 * For each command: the minimum size of its request, the offset of the ID in it, and the minimum
 * size of its response buffer.
 */
struct Layout {
	u32 number;
	u16 least;
	u16 whole;
	s16 id;
	u16 answer;
};
constexpr s16 none = -1;
constexpr Layout layouts[] = {
	{abi::destroy_id, 16, 16, 8, 4},     {abi::bind_ip, 40, 40, 36, 0},
	{abi::resolve_ip, 64, 64, 56, 0},    {abi::resolve_route, 8, 8, 0, 0},
	{abi::query_route, 16, 16, 8, 200},  {abi::connect, 280, 288, 272, 0},
	{abi::listen, 8, 8, 0, 0},           {abi::accept, 288, 296, 280, 0},
	{abi::reject, 264, 264, 0, 0},       {abi::disconnect, 4, 4, 0, 0},
	{abi::init_qp_attr, 16, 16, 8, 144}, {abi::get_event, 8, 8, none, 324},
	{abi::set_option, 24, 24, 8, 0},     {abi::notify, 8, 8, 0, 0},
	{abi::join_ip_mcast, 48, 48, 44, 4}, {abi::leave_mcast, 16, 16, 8, 4},
	{abi::migrate_id, 16, 16, 8, 4},     {abi::query, 16, 16, 8, 8},
	{abi::bind, 136, 136, 0, 0},         {abi::resolve_addr, 272, 272, 0, 0},
	{abi::join_mcast, 152, 152, 16, 4},
};

struct Words {
	alignas(8) u8 bytes[512] = {};

	/*
	 * Contains the ID in its place. Commands that check their addresses before they look up the
	 * ID get IPv4 addresses everywhere.
	 */
	void fill(const Layout &layout, u32 id)
	{
		*this = {};
		for (std::size_t at : {8, 16, 24, 28, 144}) {
			const u16 family = RDMA_AF_INET;
			if (at + 2 <= layout.whole)
				__builtin_memcpy(bytes + at, &family, sizeof(family));
		}
		/* JOIN_MCAST has its address size here. */
		if (layout.number == abi::join_mcast) {
			const u16 size = sizeof(rdma_sockaddr_in);
			__builtin_memcpy(bytes + 20, &size, sizeof(size));
			bytes[22] = bytes[23] = 0;
		}
		if (layout.id >= 0)
			__builtin_memcpy(bytes + layout.id, &id, sizeof(id));
	}
};

/*
 * For every command: a short request, a small response buffer, a tail that is not zero, an id that
 * does not exist, no longer exists, or belongs to another program.
 */
void ucm_rejects_commands_with_invalid_sizes_or_ids(Test &test)
{
	Bench bench;
	Program program(bench), outsider(bench);
	ASSERT_TRUE(bench.ok() && program.ok() && outsider.ok());
	u32 stale, own, read;
	ASSERT_EQ(program.create(own, 1), 0);
	ASSERT_EQ(program.create(stale, 2), 0);
	ASSERT_EQ(program.destroy(stale, read), 0);
	for (const Layout &layout : layouts) {
		Words words;
		const auto write = [&](Program &by, u32 id, u16 in, u16 out, u8 tail = 0) {
			words.fill(layout, id);
			words.bytes[layout.whole] = tail;
			return by.write({.command = layout.number, .in = in, .out = out},
					words.bytes, header + in);
		};
		const u16 longer = static_cast<u16>(layout.whole + 8);
		bool all = true;
		all &= EXPECT_EQ(write(program, own, static_cast<u16>(layout.least - 1), much),
				 -EINVAL);
		all &= EXPECT_EQ(write(program, own, longer, much, 1), -EOPNOTSUPP);
		if (layout.answer)
			all &= EXPECT_EQ(write(program, own, layout.whole,
					       static_cast<u16>(layout.answer - 1)),
					 -ENOSPC);
		if (layout.id >= 0 && layout.number != abi::migrate_id) {
			all &= EXPECT_EQ(write(program, 77, layout.whole, much), -ENOENT);
			all &= EXPECT_EQ(write(program, 0xffffffff, layout.whole, much), -ENOENT);
			all &= EXPECT_EQ(write(program, stale, layout.whole, much), -ENOENT);
			/* Memberships have numbers of their own. */
			if (layout.number != abi::leave_mcast)
				all &= EXPECT_EQ(write(outsider, own, layout.whole, much), -EINVAL);
		}
		if (!test.expect(all, "all of that of the command", __FILE__,
				 static_cast<int>(layout.number)))
			return;
	}
	EXPECT_EQ(rdma_ucm::table().ids(), 1u);
	EXPECT_EQ(program.destroy(own, read), 0);
}

/*
 * If the memory of the request or of the response is invalid, the command fails and has no effect.
 */
void ucm_command_with_an_invalid_user_address_fails_without_effect(Test &test)
{
	Bench bench;
	Program program(bench);
	ASSERT_TRUE(bench.ok() && program.ok());
	u32 id, read;
	abi::Made made{};
	abi::Event event{};
	abi::Route route{};

	EXPECT_ERROR(program.file().write(nowhere, 32), -EFAULT);
	/* The request crosses the end of the mapped memory. */
	const abi::Header across = {.command = abi::create_id, .in = 24, .out = 4};
	const u64 end = bench.memory.address() + bench.memory.size();
	kern::kunit::Mapping behind(kern::page_size);
	ASSERT_OK(kern::copy_out(end - 8, &across, sizeof(across)));
	if (behind.address() != end)
		EXPECT_ERROR(program.file().write(end - 8, 32), -EFAULT);
	/* The buffer is not aligned. */
	const abi::Header odd = {.command = abi::disconnect, .in = 4, .out = 0};
	const u32 unknown_id = 5;
	ASSERT_OK(kern::copy_out(bench.requests() + 3, &odd, sizeof(odd)));
	ASSERT_OK(kern::copy_out(bench.requests() + 11, &unknown_id, sizeof(unknown_id)));
	EXPECT_ERROR(program.file().write(bench.requests() + 3, 12), -ENOENT);

	EXPECT_EQ(program.ask(abi::create_id,
			      abi::CreateId{.uid = 1,
					    .response = 0,
					    .ps = RDMA_PS_TCP,
					    .qp_type = 2,
					    .reserved = {}},
			      made, nowhere),
		  -EFAULT);
	EXPECT_EQ(fake::alive(), 0u);
	EXPECT_EQ(rdma_ucm::table().ids(), 0u);
	ASSERT_EQ(program.create(id, 1), 0);
	EXPECT_EQ(id, 0u);
	EXPECT_EQ(program.ask(abi::query_route, abi::Ask{.response = 0, .id = id, .what = 0}, route,
			      nowhere),
		  -EFAULT);
	EXPECT_EQ(program.read(event, nowhere), -EAGAIN);
	u32 membership;
	EXPECT_EQ(program.join(id, 2, 1, membership, nowhere), -EFAULT);
	EXPECT_EQ(fake::calls(Call::leave), 1u);
	EXPECT_EQ(program.join(id, 2, 1, membership), 0);
	EXPECT_EQ(membership, 0u);
	abi::SetOption option{.optval = nowhere,
			      .id = id,
			      .level = abi::option_id,
			      .optname = abi::option_tos,
			      .optlen = 1};
	EXPECT_EQ(program.command(abi::set_option, option), -EFAULT);
	EXPECT_EQ(program.destroy(id, read), 0);
	EXPECT_EQ(fake::alive(), 0u);
}

/* Addresses must have the exact size of a known family, and reserved fields must be zero. */
void ucm_rejects_malformed_addresses(Test &test)
{
	Bench bench;
	Program program(bench);
	ASSERT_TRUE(bench.ok() && program.ok());
	u32 id;
	ASSERT_EQ(program.create(id, 1), 0);
	const struct {
		u16 family, size, reserved;
		long expected;
	} cases[] = {
		{RDMA_AF_INET, 16, 0, 0},
		{RDMA_AF_INET6, 28, 0, 0},
		{RDMA_AF_IB, 48, 0, 0},
		{RDMA_AF_INET, 15, 0, -EINVAL},
		{RDMA_AF_INET, 28, 0, -EINVAL},
		{RDMA_AF_INET6, 16, 0, -EINVAL},
		{RDMA_AF_IB, 28, 0, -EINVAL},
		{RDMA_AF_IB, 128, 0, -EINVAL},
		{0, 16, 0, -EINVAL},
		{1, 16, 0, -EINVAL},
		{RDMA_AF_INET, 0, 0, -EINVAL},
		{RDMA_AF_INET, 16, 1, -EINVAL},
	};
	for (const auto &one : cases) {
		abi::Bind bind{
			.id = id, .addr_size = one.size, .reserved = one.reserved, .addr = {}};
		__builtin_memcpy(bind.addr, &one.family, sizeof(one.family));
		EXPECT_EQ(program.command(abi::bind, bind), one.expected);
		abi::ResolveAddr resolve{};
		resolve.id = id;
		resolve.dst_size = one.size;
		resolve.reserved = one.reserved;
		__builtin_memcpy(resolve.dst_addr, &one.family, sizeof(one.family));
		EXPECT_EQ(program.command(abi::resolve_addr, resolve), one.expected);
	}
	EXPECT_EQ(fake::calls(Call::bind), 3u);
	EXPECT_EQ(fake::calls(Call::resolve_addr), 3u);
	/* The older commands have no space for an AF_IB address. */
	for (u16 family : {u16{RDMA_AF_INET}, u16{RDMA_AF_INET6}, u16{RDMA_AF_IB}, u16{0}}) {
		abi::BindIp bind{.response = 0, .addr = {}, .id = id};
		__builtin_memcpy(bind.addr, &family, sizeof(family));
		EXPECT_EQ(program.command(abi::bind_ip, bind),
			  family == RDMA_AF_IB || !family ? -EINVAL : 0);
	}
}

/*
 * A program cannot connect the queue pair of another process. Datagram queue pairs are not checked,
 * because they have no connection.
 */
void rcm_16_programs_cannot_connect_queue_pairs_of_other_programs(Test &test)
{
	Bench bench;
	Program program(bench);
	ASSERT_TRUE(bench.ok() && program.ok());
	u32 id;
	fake::Cm *cm;
	ASSERT_EQ(program.create(id, 1, &cm), 0);
	cm->resolve();
	abi::Accept request{};
	request.id = id;
	request.conn_param.qp_num = 0xff123456;
	request.conn_param.valid = 1;
	const auto asks = [&] {
		abi::Connect asked{};
		asked.id = id;
		asked.conn_param = request.conn_param;
		return program.command(abi::connect, asked);
	};
	fake::set_anothers_qp(0x123456);
	EXPECT_EQ(asks(), -EPERM);
	EXPECT_EQ(program.command(abi::accept, request), -EPERM);
	EXPECT_EQ(fake::calls(Call::connect) + fake::calls(Call::accept), 0u);
	cm->qp_type = IB_QPT_UD;
	EXPECT_EQ(program.command(abi::accept, request), 0);
	cm->qp_type = IB_QPT_RC;
	fake::set_anothers_qp(0x123457);
	EXPECT_EQ(asks(), 0);
	EXPECT_EQ(program.command(abi::accept, request), 0);
}

/* A program's connection parameters reach rdma_cm. Values out of range are limited or refused. */
void ucm_passes_connection_parameters_to_rdma_cm(Test &test)
{
	Bench bench;
	Program program(bench);
	ASSERT_TRUE(bench.ok() && program.ok());
	u32 id;
	fake::Cm *cm;
	ASSERT_EQ(program.create(id, 1, &cm), 0);
	abi::Connect request{};
	request.id = id;
	EXPECT_EQ(program.command(abi::connect, request), -EINVAL);
	request.conn_param = {.qp_num = 0xff123456,
			      .qkey = 0x55,
			      .private_data = {},
			      .private_data_len = 255,
			      .srq = 1,
			      .responder_resources = 4,
			      .initiator_depth = 3,
			      .flow_control = 1,
			      .retry_count = 9,
			      .rnr_retry_count = 6,
			      .valid = 1};
	request.conn_param.private_data[0] = 0xaa;
	request.conn_param.private_data[254] = 0xbb;
	EXPECT_EQ(program.command(abi::connect, request), 0);
	EXPECT_EQ(cm->param.qp_num, 0x123456u);
	EXPECT_EQ(cm->param.qkey, 0u);
	EXPECT_EQ(cm->param.private_data_len, 255);
	EXPECT_EQ(cm->private_data[0] + cm->private_data[254], 0xaa + 0xbb);
	EXPECT_EQ(cm->param.retry_count, 7);
	EXPECT_EQ(cm->param.rnr_retry_count, 6);
	EXPECT_EQ(cm->param.initiator_depth, 3);
	/* This request lacks the fields that were added to the interface later. */
	EXPECT_EQ(program.write({.command = abi::connect, .in = abi::connect_least, .out = 0},
				&request, header + abi::connect_least),
		  0);
	EXPECT_EQ(fake::calls(Call::connect), 2u);
	fake::set_result(-ETIMEDOUT);
	EXPECT_EQ(program.command(abi::connect, request), -ETIMEDOUT);
	fake::set_result(0);

	for (const auto &[reason, expected] :
	     {std::pair<u8, long>{0, 0}, {28, 0}, {35, 0}, {1, -EINVAL}, {255, -EINVAL}}) {
		abi::Reject reject{};
		reject.id = id;
		reject.reason = reason;
		EXPECT_EQ(program.command(abi::reject, reject), expected);
	}
	EXPECT_EQ(fake::calls(Call::reject), 3u);
	abi::QpAttr attr{};
	EXPECT_EQ(program.ask(abi::init_qp_attr,
			      abi::Ask{.response = 0, .id = id, .what = IB_QPS_ERR + 1}, attr),
		  -EINVAL);
	EXPECT_EQ(program.ask(abi::init_qp_attr,
			      abi::Ask{.response = 0, .id = id, .what = IB_QPS_RTR}, attr),
		  0);
	EXPECT_EQ(attr.qp_state, u32{IB_QPS_RTR});
	EXPECT_EQ(attr.qp_attr_mask, u32{IB_QP_STATE | IB_QP_PORT});
	EXPECT_EQ(attr.ah_attr.dlid, 7);
	EXPECT_EQ(attr.dest_qp_num, 0x123u);
	EXPECT_EQ(program.command(abi::notify, abi::Notify{.id = id, .event = 0xffffffff}),
		  -EINVAL);
	EXPECT_EQ(program.command(abi::notify, abi::Notify{.id = id, .event = IB_EVENT_COMM_EST}),
		  0);
}

/*
 * Queries return the addresses of an ID in three formats, and its path. Without a device they
 * return only a part.
 */
void ucm_query_returns_the_addresses_and_the_path_of_an_id(Test &test)
{
	Bench bench;
	Program program(bench);
	ASSERT_TRUE(bench.ok() && program.ok());
	u32 id;
	fake::Cm *cm;
	ASSERT_EQ(program.create(id, 1, &cm), 0);
	abi::Addresses ends{};
	EXPECT_EQ(program.ask(abi::query,
			      abi::Ask{.response = 0, .id = id, .what = abi::query_address}, ends),
		  0);
	EXPECT_EQ(ends.node_guid.value(), 0x0123456789abcdefu);
	EXPECT_EQ(ends.port_num, 1);
	EXPECT_EQ(ends.pkey.value(), 0xffff);
	EXPECT_EQ(ends.src_size + ends.dst_size, 32);
	EXPECT_EQ(ends.dst_addr[7], 2);
	EXPECT_EQ(program.ask(abi::query, abi::Ask{.response = 0, .id = id, .what = abi::query_gid},
			      ends),
		  0);
	EXPECT_EQ(ends.src_size, 48);
	const auto &gid = reinterpret_cast<const rdma_sockaddr_ib &>(ends.dst_addr);
	EXPECT_EQ(gid.family, u16{RDMA_AF_IB});
	EXPECT_EQ(gid.addr.raw[15], 2);
	EXPECT_EQ(gid.sid.value(), u64{RDMA_PS_TCP} << 16 | 7471);
	abi::Paths paths{};
	EXPECT_EQ(program.ask(abi::query,
			      abi::Ask{.response = 0, .id = id, .what = abi::query_path}, paths),
		  0);
	EXPECT_EQ(paths.num_paths, 1u);
	EXPECT_EQ(paths.path.flags, abi::path_all);
	EXPECT_EQ(paths.path.record[41], 2);
	/* Half of a path record is too small for a path. */
	struct Half {
		u64 words[9];
	} half{};
	EXPECT_EQ(program.ask(abi::query,
			      abi::Ask{.response = 0, .id = id, .what = abi::query_path}, half),
		  0);
	EXPECT_EQ(half.words[0], 1u);
	EXPECT_EQ(program.ask(abi::query,
			      abi::Ask{.response = 0, .id = id, .what = abi::query_address}, half),
		  -ENOSPC);
	EXPECT_EQ(program.ask(abi::query, abi::Ask{.response = 0, .id = id, .what = 3}, ends),
		  -ENOSYS);
	abi::Route route{};
	EXPECT_EQ(
		program.ask(abi::query_route, abi::Ask{.response = 0, .id = id, .what = 0}, route),
		0);
	EXPECT_EQ(route.num_paths, 1u);
	EXPECT_EQ(route.path[0].dlid.value(), 2);
	EXPECT_EQ(route.path[0].mtu, u32{IB_MTU_2048});
	EXPECT_EQ(route.src_addr[7], 1);
	cm->route.num_paths = 0;
	EXPECT_EQ(
		program.ask(abi::query_route, abi::Ask{.response = 0, .id = id, .what = 0}, route),
		0);
	EXPECT_EQ(route.num_paths, 0u);
	EXPECT_EQ(route.path[0].dgid[15], 2);

	cm->device = nullptr;
	EXPECT_EQ(program.ask(abi::query,
			      abi::Ask{.response = 0, .id = id, .what = abi::query_address}, ends),
		  0);
	EXPECT_EQ(ends.node_guid.value(), 0u);
	abi::QpAttr attr{};
	EXPECT_EQ(program.ask(abi::init_qp_attr,
			      abi::Ask{.response = 0, .id = id, .what = IB_QPS_RTR}, attr),
		  -EINVAL);
	EXPECT_EQ(program.command(abi::disconnect, abi::Disconnect{.id = id}), -EINVAL);
	EXPECT_EQ(program.command(abi::resolve_route, abi::ResolveRoute{.id = id, .timeout_ms = 1}),
		  -EINVAL);
	u32 membership;
	EXPECT_EQ(program.join(id, 2, 1, membership), -EINVAL);
	EXPECT_EQ(fake::calls(Call::disconnect) + fake::calls(Call::resolve_route) +
			  fake::calls(Call::join),
		  0u);
}

/*
 * Options must have the exact size. Of several paths, the first one that is suitable for all
 * purposes becomes the route, and the event reports it.
 */
void ucm_rejects_options_of_wrong_size_and_applies_valid_options(Test &test)
{
	Bench bench;
	Program program(bench);
	ASSERT_TRUE(bench.ok() && program.ok());
	u32 id;
	fake::Cm *cm;
	ASSERT_EQ(program.create(id, 9, &cm), 0);
	const u64 value = bench.answers();
	const struct {
		u32 level, name, length;
		long expected;
	} cases[] = {
		{0, abi::option_tos, 1, 0},
		{0, abi::option_tos, 4, -EINVAL},
		{0, abi::option_reuseaddr, 4, 0},
		{0, abi::option_reuseaddr, 1, -EINVAL},
		{0, abi::option_afonly, 4, 0},
		{0, abi::option_afonly, 8, -EINVAL},
		{0, abi::option_ack_timeout, 1, 0},
		{0, abi::option_ack_timeout, 0, -EINVAL},
		{0, 4, 4, -ENOSYS},
		{2, 0, 1, -ENOSYS},
		{1, 0, 72, -ENOSYS},
		{1, abi::option_path, 0, -EINVAL},
		{1, abi::option_path, 71, -EINVAL},
		{1, abi::option_path, 9 * 72, -EINVAL},
		{1, abi::option_path, 72, -EINVAL},
	};
	for (const auto &one : cases)
		EXPECT_EQ(program.command(abi::set_option, abi::SetOption{.optval = value,
									  .id = id,
									  .level = one.level,
									  .optname = one.name,
									  .optlen = one.length}),
			  one.expected);
	EXPECT_EQ(fake::calls(Call::option), 4u);

	abi::PathData paths[2] = {};
	paths[0].flags = abi::path_primary;
	paths[1].flags = abi::path_all;
	paths[1].record[41] = 33; // DLID
	ASSERT_OK(kern::copy_out(value, paths, sizeof(paths)));
	EXPECT_EQ(program.command(abi::set_option, abi::SetOption{.optval = value,
								  .id = id,
								  .level = 1,
								  .optname = abi::option_path,
								  .optlen = sizeof(paths)}),
		  0);
	EXPECT_EQ(cm->route.path_rec.ib.dlid.value(), 33);
	abi::Event event{};
	EXPECT_EQ(program.read(event), 0);
	EXPECT_EQ(event.event, u32{RDMA_CM_EVENT_ROUTE_RESOLVED});
	EXPECT_EQ(event.uid, 9u);
}

} // namespace

KUNIT_SUITE(ucm_commands, KUNIT_CASE(ucm_rejects_commands_with_a_malformed_header),
	    KUNIT_CASE(ucm_rejects_commands_with_invalid_sizes_or_ids),
	    KUNIT_CASE(ucm_command_with_an_invalid_user_address_fails_without_effect),
	    KUNIT_CASE(ucm_rejects_malformed_addresses),
	    KUNIT_CASE(ucm_passes_connection_parameters_to_rdma_cm),
	    KUNIT_CASE(rcm_16_programs_cannot_connect_queue_pairs_of_other_programs),
	    KUNIT_CASE(ucm_query_returns_the_addresses_and_the_path_of_an_id),
	    KUNIT_CASE(ucm_rejects_options_of_wrong_size_and_applies_valid_options));
