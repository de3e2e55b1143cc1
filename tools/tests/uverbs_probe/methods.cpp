// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Checks that requests by ioctl() have the same results as requests by write(), and lists the
// requests that ioctl() must refuse.
#include <fcntl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <iterator>

#include "tests/uverbs_probe/program.hpp"
#include "tests/uverbs_probe/provider.hpp"

namespace weft::uverbs
{

namespace
{

constexpr std::uint16_t kMandatory = UVERBS_ATTR_F_MANDATORY;
constexpr std::uint32_t kExtended = IB_USER_VERBS_CMD_FLAG_EXTENDED;

/* A method with its attributes, which is called as libibverbs does. */
class Method
{
public:
	Method(std::uint16_t object, std::uint16_t method)
	{
		header().object_id = object;
		header().method_id = method;
		header().driver_id = Provider::of_node().driver();
	}

	ib_uverbs_ioctl_hdr &header() { return *reinterpret_cast<ib_uverbs_ioctl_hdr *>(list_); }
	/* Returns the location of the attribute, into which the kernel writes its results. */
	ib_uverbs_attr &add(std::uint16_t id, std::uint16_t length, std::uint64_t data,
			    std::uint16_t flags = kMandatory)
	{
		ib_uverbs_attr &attribute = header().attrs[header().num_attrs++];
		attribute.attr_id = id;
		attribute.len = length;
		attribute.flags = flags;
		attribute.data = data;
		return attribute;
	}
	ib_uverbs_attr &handle(std::uint16_t id, std::uint64_t number)
	{
		return add(id, 0, number);
	}
	ib_uverbs_attr &constant(std::uint16_t id, std::uint64_t value)
	{
		return add(id, 8, value);
	}
	ib_uverbs_attr &word(std::uint16_t id, std::uint32_t value) { return add(id, 4, value); }
	template<class T>
	ib_uverbs_attr &memory(std::uint16_t id, T &place)
	{
		return add(id, sizeof(place), reinterpret_cast<std::uintptr_t>(&place));
	}

	/* Returns 0 or an errno. */
	long call(const Program &program)
	{
		header().length = static_cast<std::uint16_t>(
			sizeof(ib_uverbs_ioctl_hdr) + header().num_attrs * sizeof(ib_uverbs_attr));
		return call_as_it_is(program);
	}
	long call_as_it_is(const Program &program)
	{
		return error_of(::ioctl(program.number(), RDMA_VERBS_IOCTL, list_));
	}

private:
	static constexpr std::size_t kMost = 32;

	alignas(ib_uverbs_ioctl_hdr) char list_[sizeof(ib_uverbs_ioctl_hdr) +
						kMost * sizeof(ib_uverbs_attr)]{};
};

/* Returns a command without its header. */
Method invoke(std::uint32_t command)
{
	Method method(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);

	method.constant(UVERBS_ATTR_WRITE_CMD, command);
	return method;
}

long port_of(const Program &program, std::uint8_t port, ib_uverbs_query_port_resp_ex &answer)
{
	Method method(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT);

	method.constant(UVERBS_ATTR_QUERY_PORT_PORT_NUM, port);
	method.memory(UVERBS_ATTR_QUERY_PORT_RESP, answer);
	return method.call(program);
}

/* A QUERY_PORT whose header has an error, and is valid otherwise. */
struct Frame {
	const char *what;
	void (*spoil)(ib_uverbs_ioctl_hdr &header);
	long expected;
};
constexpr Frame kFrames[] = {
	{"as it should be", [](ib_uverbs_ioctl_hdr &) {}, 0},
	{"a length of nothing", [](ib_uverbs_ioctl_hdr &h) { h.length = 0; }, EINVAL},
	{"a length of less", [](ib_uverbs_ioctl_hdr &h) { h.length--; }, EINVAL},
	{"a length of more", [](ib_uverbs_ioctl_hdr &h) { h.length += 16; }, EINVAL},
	{"more than a page",
	 [](ib_uverbs_ioctl_hdr &h) {
		 h.num_attrs = 260;
		 h.length = 24 + 260 * 16;
	 },
	 EINVAL},
	{"a length that wraps", [](ib_uverbs_ioctl_hdr &h) { h.num_attrs = 4096 + 2; }, EINVAL},
	{"another driver", [](ib_uverbs_ioctl_hdr &h) { h.driver_id = 3; }, EINVAL},
	{"something reserved", [](ib_uverbs_ioctl_hdr &h) { h.reserved1 = 1; }, EPROTONOSUPPORT},
	{"something else reserved", [](ib_uverbs_ioctl_hdr &h) { h.reserved2 = 1; },
	 EPROTONOSUPPORT},
	{"an object that there is not", [](ib_uverbs_ioctl_hdr &h) { h.object_id = 14; },
	 EPROTONOSUPPORT},
	{"a method that there is not", [](ib_uverbs_ioctl_hdr &h) { h.method_id = 77; },
	 EPROTONOSUPPORT},
	{"a method of a driver", [](ib_uverbs_ioctl_hdr &h) { h.method_id = 0x1000; },
	 EPROTONOSUPPORT},
	{"the attributes of another",
	 [](ib_uverbs_ioctl_hdr &h) { h.method_id = UVERBS_METHOD_QUERY_GID_ENTRY; }, EINVAL},
};

void try_frames()
{
	const Program program;

	for (const Frame &frame : kFrames) {
		ib_uverbs_query_port_resp_ex answer{};
		Method method(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT);
		method.constant(UVERBS_ATTR_QUERY_PORT_PORT_NUM, 1);
		method.memory(UVERBS_ATTR_QUERY_PORT_RESP, answer);
		method.header().length = 24 + 2 * 16;
		frame.spoil(method.header());
		expect(std::string("ioctl: ") + frame.what, method.call_as_it_is(program),
		       frame.expected);
	}
	std::uint64_t bytes[4] = {};
	expect("another ioctl", error_of(::ioctl(program.number(), 0xc0181b02, bytes)), ENOTTY);
	expect("the ioctl of nowhere", error_of(::ioctl(program.number(), RDMA_VERBS_IOCTL, 4096)),
	       EFAULT);
	ib_uverbs_query_port_resp_ex answer{};
	const Program fresh(false);
	expect("a method before the context", port_of(fresh, 1, answer), EINVAL);
	expect("port 0", port_of(program, 0, answer), EINVAL);
	expect("a port that there is not", port_of(program, 77, answer), EINVAL);

	/* Libraries send this query to find out whether commands can use ioctl(). */
	expect("INVOKE_WRITE of nothing", invoke(IB_USER_VERBS_CMD_QUERY_DEVICE).call(fresh),
	       ENOSPC);
	expect("INVOKE_WRITE of no command", invoke(77).call(program), EOPNOTSUPP);
	expect("INVOKE_WRITE of unknown bits", invoke(0x100).call(program), EINVAL);
}

/* Sends commands through ioctl() that are too short, too long, or have additional bytes. */
void try_commands()
{
	const Program program;
	std::uint64_t request[3] = {};
	char answer[512];
	std::memset(answer, -1, sizeof(answer));

	struct Case {
		const char *what;
		std::uint32_t command;
		std::uint16_t in, out;
		std::uint64_t tail;
		long expected;
	};
	static constexpr Case kCases[] = {
		{"QUERY_DEVICE", IB_USER_VERBS_CMD_QUERY_DEVICE, 8, 176, 0, 0},
		{"QUERY_DEVICE with less room", IB_USER_VERBS_CMD_QUERY_DEVICE, 8, 175, 0, ENOSPC},
		{"QUERY_DEVICE of less", IB_USER_VERBS_CMD_QUERY_DEVICE, 4, 176, 0, ENOSPC},
		{"QUERY_DEVICE with a tail of nothing", IB_USER_VERBS_CMD_QUERY_DEVICE, 24, 176, 0,
		 0},
		{"QUERY_DEVICE with a tail", IB_USER_VERBS_CMD_QUERY_DEVICE, 24, 176, 1,
		 EOPNOTSUPP},
		{"extended QUERY_DEVICE", IB_USER_VERBS_EX_CMD_QUERY_DEVICE | kExtended, 8, 304, 0,
		 0},
		{"the same with less room", IB_USER_VERBS_EX_CMD_QUERY_DEVICE | kExtended, 8, 184,
		 0, 0},
		{"the same with too little", IB_USER_VERBS_EX_CMD_QUERY_DEVICE | kExtended, 8, 183,
		 0, ENOSPC},
		{"the same with more", IB_USER_VERBS_EX_CMD_QUERY_DEVICE | kExtended, 8, 400, 0, 0},
		{"a second context", IB_USER_VERBS_CMD_GET_CONTEXT, 8, 8, 0, EINVAL},
	};
	for (const Case &one : kCases) {
		Method method = invoke(one.command);
		/*
		 * The word where a plain request has the address of its response means nothing
		 * here.
		 */
		request[0] = one.command & kExtended ? 0 : ~std::uint64_t{0};
		request[2] = one.tail;
		std::uint64_t data = request[0];
		if (one.in > 8)
			data = reinterpret_cast<std::uintptr_t>(request);
		method.add(UVERBS_ATTR_CORE_IN, one.in, data);
		const ib_uverbs_attr &room = method.add(UVERBS_ATTR_CORE_OUT, one.out,
							reinterpret_cast<std::uintptr_t>(answer));
		expect(std::string("INVOKE_WRITE: ") + one.what, method.call(program),
		       one.expected);
		expect(std::string(one.what) + ": whether it is answered",
		       room.flags & UVERBS_ATTR_F_VALID_OUTPUT,
		       one.expected ? 0 : UVERBS_ATTR_F_VALID_OUTPUT);
	}
	expect("the rest of the room is cleared", answer[399], 0);
	expect("nothing behind the room is written", answer[400], -1);
}

/* Event moderation is set by a command without a response, through write() and through ioctl(). */
void try_moderation()
{
	const Program program;
	std::uint32_t cq;
	expect("CREATE_CQ", program.create_cq(-1, cq), 0);

	struct Case {
		const char *what;
		std::uint32_t handle_beyond, mask;
		std::uint16_t count, period;
		std::uint32_t reserved;
		long expected;
	};
	static constexpr Case kCases[] = {
		{"of nothing", 0, 0, 1, 1, 0, EINVAL},
		{"of something unknown", 0, 3, 1, 1, 0, EOPNOTSUPP},
		{"with something reserved", 0, 1, 1, 1, 1, EOPNOTSUPP},
		{"of no CQ", 50, 1, 1, 1, 0, ENOENT},
		{"as much as there is", 0, 1, 0xffff, 0xffff, 0, 0},
		{"none again", 0, 1, 0, 0, 0, 0},
	};
	for (const Case &one : kCases) {
		const ib_uverbs_ex_modify_cq request = {
			.cq_handle = cq + one.handle_beyond,
			.attr_mask = one.mask,
			.attr = {.cq_count = one.count, .cq_period = one.period},
			.reserved = one.reserved};
		Method method = invoke(IB_USER_VERBS_EX_CMD_MODIFY_CQ | kExtended);
		method.add(UVERBS_ATTR_CORE_IN, sizeof(request),
			   reinterpret_cast<std::uintptr_t>(&request));
		expect(std::string("moderation ") + one.what, method.call(program), one.expected);

		struct {
			ib_uverbs_cmd_hdr header;
			ib_uverbs_ex_cmd_hdr extended_header;
			ib_uverbs_ex_modify_cq request;
		} written = {{IB_USER_VERBS_EX_CMD_MODIFY_CQ | kExtended, sizeof(request) / 8, 0},
			     {},
			     request};
		expect(std::string("moderation, written, ") + one.what,
		       program.write(&written, sizeof(written)), one.expected);
	}
}

/*
 * A program that creates all its objects by methods. Objects created by commands can be destroyed
 * by methods.
 */
class Caller
{
public:
	Caller() : program(false)
	{
		std::uint32_t vectors = 0;
		std::uint64_t support = 0;
		mlx4_ib_alloc_ucontext_resp_v3 driver{};
		Method context(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT);
		context.memory(UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, vectors);
		context.add(UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, 8,
			    reinterpret_cast<std::uintptr_t>(&support));
		context.add(UVERBS_ATTR_UHW_OUT, sizeof(driver),
			    reinterpret_cast<std::uintptr_t>(&driver));
		expect("GET_CONTEXT", context.call(program), 0);
		expect("it has vectors", vectors > 0, 1);
		expect("it says what it drops", static_cast<long>(support), 1);
		expect("it has QPs", driver.qp_tab_size != 0, 1);
		expect("a second GET_CONTEXT", context.call(program), EINVAL);
		std::uint32_t again = 0;
		Method query(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT);
		query.memory(UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, again);
		expect("QUERY_CONTEXT", query.call(program), 0);
		expect("the same vectors", again, vectors);
	}

	long alloc_events(Descriptor &made) const
	{
		Method method(UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC);
		const ib_uverbs_attr &fd =
			method.handle(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, 0);
		const long error = method.call(program);
		made = Descriptor(error ? -1 : static_cast<int>(fd.data_s64));
		return error;
	}

	Program program;
};

/* Creates a CQ of 15 entries after @spoil has changed the attributes. */
template<class Spoil>
long create_cq(const Program &program, std::uint32_t &made, Spoil spoil)
{
	Method method(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE);
	mlx4_ib_create_cq driver = {.buf_addr = Program::ring(), .db_addr = Program::doorbells()};
	mlx4_ib_create_cq_resp answer{};
	std::uint32_t cqe = 0;

	const ib_uverbs_attr &handle = method.handle(UVERBS_ATTR_CREATE_CQ_HANDLE, 0);
	method.word(UVERBS_ATTR_CREATE_CQ_CQE, 15);
	method.constant(UVERBS_ATTR_CREATE_CQ_USER_HANDLE, 7);
	method.word(UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, 0);
	method.memory(UVERBS_ATTR_CREATE_CQ_RESP_CQE, cqe);
	method.memory(UVERBS_ATTR_UHW_IN, driver);
	method.add(UVERBS_ATTR_UHW_OUT, sizeof(answer), reinterpret_cast<std::uintptr_t>(&answer));
	spoil(method);
	const long error = method.call(program);
	made = static_cast<std::uint32_t>(handle.data);
	if (!error)
		expect("entries of a CQ", cqe, 15);
	return error;
}

long create_qp(const Program &program, std::uint32_t pd, std::uint32_t cq, std::uint32_t &made,
	       std::uint64_t flags = 0, bool receives = true)
{
	Method method(UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE);
	mlx4_ib_create_qp driver{};
	driver.buf_addr = Program::ring();
	driver.db_addr = Program::doorbells() + 64;
	driver.log_sq_bb_count = 6;
	driver.log_sq_stride = 6;
	ib_uverbs_qp_cap cap = {.max_send_wr = 4,
				.max_recv_wr = 4,
				.max_send_sge = 1,
				.max_recv_sge = 1,
				.max_inline_data = 0};
	ib_uverbs_qp_cap capabilities{};
	std::uint32_t number = 0;

	const ib_uverbs_attr &handle = method.handle(UVERBS_ATTR_CREATE_QP_HANDLE, 0);
	method.handle(UVERBS_ATTR_CREATE_QP_PD_HANDLE, pd);
	method.handle(UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, cq);
	if (receives)
		method.handle(UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, cq);
	method.constant(UVERBS_ATTR_CREATE_QP_USER_HANDLE, 8);
	method.memory(UVERBS_ATTR_CREATE_QP_CAP, cap);
	method.constant(UVERBS_ATTR_CREATE_QP_TYPE, kQpTypeRc);
	if (flags)
		method.add(UVERBS_ATTR_CREATE_QP_FLAGS, 4, flags);
	method.memory(UVERBS_ATTR_CREATE_QP_RESP_CAP, capabilities);
	method.memory(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, number);
	method.memory(UVERBS_ATTR_UHW_IN, driver);
	const long error = method.call(program);
	made = static_cast<std::uint32_t>(handle.data);
	if (!error)
		expect("a QP says its number and size",
		       number != 0 && capabilities.max_recv_wr >= 4, 1);
	return error;
}

long create_srq(const Program &program, std::uint32_t pd, std::uint32_t &made,
		std::uint64_t type = 0)
{
	Method method(UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE);
	mlx4_ib_create_srq driver = {.buf_addr = Program::ring(),
				     .db_addr = Program::doorbells() + 128};
	mlx4_ib_create_srq_resp answer{};
	std::uint32_t max_wr = 0, max_sge = 0;

	const ib_uverbs_attr &handle = method.handle(UVERBS_ATTR_CREATE_SRQ_HANDLE, 0);
	method.handle(UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, pd);
	method.constant(UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, 9);
	method.word(UVERBS_ATTR_CREATE_SRQ_MAX_WR, 3);
	method.word(UVERBS_ATTR_CREATE_SRQ_MAX_SGE, 1);
	method.word(UVERBS_ATTR_CREATE_SRQ_LIMIT, 0);
	method.constant(UVERBS_ATTR_CREATE_SRQ_TYPE, type);
	method.memory(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, max_wr);
	method.memory(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, max_sge);
	method.memory(UVERBS_ATTR_UHW_IN, driver);
	method.add(UVERBS_ATTR_UHW_OUT, sizeof(answer), reinterpret_cast<std::uintptr_t>(&answer));
	const long error = method.call(program);
	made = static_cast<std::uint32_t>(handle.data);
	if (!error)
		expect("an SRQ says its size", max_wr >= 3 && max_sge >= 1, 1);
	return error;
}

/* Destroys an object whose destroy method returns this number of bytes. */
long destroy(const Program &program, std::uint16_t object, std::uint16_t method_id,
	     std::uint64_t handle, std::uint16_t answer_bytes)
{
	Method method(object, method_id);
	std::uint64_t answer = ~std::uint64_t{0};

	method.handle(0, handle);
	if (answer_bytes)
		method.add(1, answer_bytes, reinterpret_cast<std::uintptr_t>(&answer));
	const long error = method.call(program);
	if (!error && answer_bytes)
		expect("no event was read of it",
		       static_cast<long>(answer_bytes == 8 ? answer : answer & 0xffffffff), 0);
	return error;
}

constexpr auto kAsItIs = [](Method &) {};

void try_objects()
{
	const Caller caller;
	const Program &program = caller.program;
	const Program outsider;
	Descriptor events, channel;
	std::uint32_t pd, cq, other, qp, srq, mr;
	static char memory[4096] __attribute__((aligned(4096)));

	expect("ASYNC_EVENT_ALLOC", caller.alloc_events(events), 0);
	expect("a descriptor that exec closes", fcntl(events.number(), F_GETFD) & FD_CLOEXEC,
	       FD_CLOEXEC);
	expect("CREATE_COMP_CHANNEL", program.create_channel(channel), 0);
	expect("ALLOC_PD", program.alloc_pd(pd), 0);

	expect("a CQ", create_cq(program, cq, kAsItIs), 0);
	expect("a CQ with its own events, and a channel",
	       create_cq(program, other,
			 [&](Method &method) {
				 method.handle(UVERBS_ATTR_CREATE_CQ_EVENT_FD,
					       static_cast<std::uint64_t>(events.number()));
				 method.handle(UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL,
					       static_cast<std::uint64_t>(channel.number()));
			 }),
	       0);
	expect("a CQ with a PD's number",
	       destroy(program, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY, pd, 8), EINVAL);
	expect("with too little room",
	       destroy(program, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY, other, 4), EINVAL);
	expect("that CQ goes",
	       destroy(program, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY, other, 8), 0);
	expect("a CQ twice", destroy(program, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY, other, 8),
	       ENOENT);

	struct Spoilt {
		const char *what;
		void (*spoil)(Method &method, int events, int channel, int strange);
		long expected;
	};
	static constexpr Spoilt kSpoilt[] = {
		{"a channel for events",
		 [](Method &m, int, int c, int) {
			 m.handle(UVERBS_ATTR_CREATE_CQ_EVENT_FD, static_cast<std::uint64_t>(c));
		 },
		 EBADF},
		{"events for a channel",
		 [](Method &m, int e, int, int) {
			 m.handle(UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL,
				  static_cast<std::uint64_t>(e));
		 },
		 EBADF},
		{"another file's events",
		 [](Method &m, int, int, int s) {
			 m.handle(UVERBS_ATTR_CREATE_CQ_EVENT_FD, static_cast<std::uint64_t>(s));
		 },
		 EBADF},
		{"no descriptor",
		 [](Method &m, int, int, int) {
			 m.handle(UVERBS_ATTR_CREATE_CQ_EVENT_FD, ~std::uint64_t{0});
		 },
		 EBADF},
		{"time stamps",
		 [](Method &m, int, int, int) { m.word(UVERBS_ATTR_CREATE_CQ_FLAGS, 1); },
		 EOPNOTSUPP},
		{"an unknown flag",
		 [](Method &m, int, int, int) { m.word(UVERBS_ATTR_CREATE_CQ_FLAGS, 4); }, EINVAL},
		{"an attribute twice",
		 [](Method &m, int, int, int) { m.word(UVERBS_ATTR_CREATE_CQ_CQE, 15); }, EINVAL},
		{"an attribute that there is not", [](Method &m, int, int, int) { m.word(77, 1); },
		 EPROTONOSUPPORT},
		{"one that does not matter", [](Method &m, int, int, int) { m.add(77, 4, 1, 0); },
		 0},
	};
	for (const Spoilt &one : kSpoilt) {
		const long error = create_cq(program, other, [&](Method &method) {
			one.spoil(method, events.number(), channel.number(), outsider.events());
		});
		expect(std::string("a CQ with ") + one.what, error, one.expected);
		if (!error)
			expect("it goes",
			       destroy(program, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY, other,
				       8),
			       0);
	}

	expect("a QP", create_qp(program, pd, cq, qp), 0);
	expect("a QP without a receive CQ", create_qp(program, pd, cq, other, 0, false), EINVAL);
	expect("a QP of a PD that there is not", create_qp(program, 99, cq, other), ENOENT);
	expect("a QP of another's PD", create_qp(outsider, pd, cq, other), ENOENT);
	expect("a QP with an unknown flag", create_qp(program, pd, cq, other, 1 << 13), EINVAL);
	expect("a QP that signals all",
	       create_qp(program, pd, cq, other, IB_UVERBS_QP_CREATE_SQ_SIG_ALL), 0);
	ib_uverbs_query_qp_resp asked{};
	expect("QUERY_QP",
	       program.command(
		       IB_USER_VERBS_CMD_QUERY_QP,
		       ib_uverbs_query_qp{.response = 0, .qp_handle = other, .attr_mask = 0},
		       asked),
	       0);
	expect("it does", asked.sq_sig_all, 1);
	expect("it goes", destroy(program, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY, other, 4),
	       0);
	expect("an SRQ", create_srq(program, pd, srq), 0);
	expect("an SRQ of XRC without a domain", create_srq(program, pd, other, 1), EINVAL);
	expect("an SRQ of no type", create_srq(program, pd, other, 7), EINVAL);
	expect("REG_MR", program.register_memory(pd, memory, sizeof(memory), mr), 0);

	expect("a CQ that is used",
	       destroy(program, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY, cq, 8), EBUSY);
	expect("a PD that is used",
	       destroy(program, UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY, pd, 0), EBUSY);
	expect("the QP goes", destroy(program, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY, qp, 4),
	       0);
	expect("the SRQ goes",
	       destroy(program, UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_DESTROY, srq, 4), 0);
	expect("the MR goes", destroy(program, UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY, mr, 0),
	       0);
	expect("the CQ goes", destroy(program, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY, cq, 8),
	       0);
	expect("the PD goes", destroy(program, UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY, pd, 0),
	       0);
}

long gid_entry(const Program &program, std::uint64_t port, std::uint64_t index,
	       ib_uverbs_gid_entry &entry)
{
	Method method(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY);

	method.constant(UVERBS_ATTR_QUERY_GID_ENTRY_PORT, port);
	method.constant(UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, index);
	method.word(UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, 0);
	method.memory(UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, entry);
	return method.call(program);
}

template<std::size_t size>
long gid_table(const Program &program, std::uint64_t stride, char (&room)[size],
	       std::uint64_t &count)
{
	Method method(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE);

	method.constant(UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, stride);
	method.memory(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, room);
	method.add(UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, 8,
		   reinterpret_cast<std::uintptr_t>(&count));
	return method.call(program);
}

void try_gids()
{
	const Program program;
	ib_uverbs_query_port_resp_ex port{};
	ib_uverbs_gid_entry entry{};
	constexpr std::size_t most = 128;
	static char room[most * sizeof(entry)], wide[most * 2 * sizeof(entry)];
	char little[sizeof(entry) + 1];
	std::uint64_t count = 0;

	expect("QUERY_PORT", port_of(program, 1, port), 0);
	const std::uint32_t entries = port.legacy_resp.gid_tbl_len;
	const std::uint32_t all = port_of(program, 2, port) ? entries : 2 * entries;
	expect("a table that has room here", entries > 1 && all < most, 1);

	expect("the first GID", gid_entry(program, 1, 0, entry), 0);
	expect("where it is", entry.port_num == 1 && entry.gid_index == 0 && entry.gid_type == 0,
	       1);
	expect("it is somebody's", entry.gid[1] != 0, 1);
	expect("the last GID, which has at least a prefix",
	       gid_entry(program, 1, entries - 1, entry), 0);
	expect("a GID behind it", gid_entry(program, 1, entries, entry), EINVAL);
	expect("a GID far behind it", gid_entry(program, 1, 0x10000, entry), EINVAL);
	expect("a GID of no port", gid_entry(program, 0, 0, entry), EINVAL);
	expect("all GIDs", gid_table(program, sizeof(entry), room, count), 0);
	expect("how many they are", static_cast<long>(count), all);
	std::memset(wide, -1, sizeof(wide));
	expect("all GIDs, further apart", gid_table(program, 2 * sizeof(entry), wide, count), 0);
	expect("with nothing between", wide[sizeof(entry)] | wide[2 * sizeof(entry) - 1], 0);
	expect("and nothing behind", wide[all * 2 * sizeof(entry)], -1);
	expect("entries of nothing", gid_table(program, 0, room, count), EINVAL);
	expect("entries that do not fit", gid_table(program, sizeof(entry), little, count), EINVAL);
	expect("more than there is room for", gid_table(program, sizeof(little), little, count),
	       EINVAL);
}

} // namespace

void call_at_random(const Program &program, std::mt19937_64 &random, void *room)
{
	static constexpr std::uint16_t kObjects[] = {
		UVERBS_OBJECT_DEVICE, UVERBS_OBJECT_DEVICE, UVERBS_OBJECT_PD,
		UVERBS_OBJECT_CQ,     UVERBS_OBJECT_QP,     UVERBS_OBJECT_SRQ,
		UVERBS_OBJECT_MR,     UVERBS_OBJECT_XRCD,   UVERBS_OBJECT_MW,
		UVERBS_OBJECT_AH,     UVERBS_OBJECT_FLOW,   UVERBS_OBJECT_ASYNC_EVENT};
	Method method(kObjects[random() % std::size(kObjects)],
		      static_cast<std::uint16_t>(random() % 7));

	if (method.header().object_id == UVERBS_OBJECT_DEVICE &&
	    method.header().method_id == UVERBS_METHOD_INVOKE_WRITE) {
		const std::uint32_t number = random() % 60;
		method.constant(UVERBS_ATTR_WRITE_CMD, number | (random() % 4 ? 0 : kExtended));
	}
	for (std::uint64_t count = random() % 18; count > 0; count--) {
		const std::uint64_t any = random();
		const auto id = static_cast<std::uint16_t>(any % 5 ? any % 16
								   : UVERBS_ATTR_UHW_IN + any % 3);
		const std::uint64_t length = random() % 4 ? (random() % 3) * 4 : random() % 100;
		const std::uint64_t data = random() % 2   ? reinterpret_cast<std::uintptr_t>(room)
					   : random() % 4 ? random() % 8
							  : random();
		if (id != UVERBS_ATTR_WRITE_CMD ||
		    method.header().object_id != UVERBS_OBJECT_DEVICE)
			method.add(id, static_cast<std::uint16_t>(length), data, random() % 2);
	}
	method.call(program);
}

void try_methods()
{
	try_frames();
	try_commands();
	try_moderation();
	try_objects();
	try_gids();
}

} // namespace weft::uverbs
