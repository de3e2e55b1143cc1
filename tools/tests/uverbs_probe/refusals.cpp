// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Lists requests that must be refused, as tables: each row has one invalid field and the expected
// errno.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/uverbs_probe/program.hpp"

namespace weft::uverbs
{

namespace
{

constexpr std::uint32_t kExtended = IB_USER_VERBS_CMD_FLAG_EXTENDED;

struct Answer {
	std::uint32_t words[128];
};

/*
 * A plain command in words: the header, then the request. "response" stands for the address of a
 * response buffer.
 */
struct Frame {
	const char *what;
	std::uint32_t command;
	/* Sizes in the header, and the number of bytes written. */
	std::uint16_t in_words, out_words;
	std::size_t size;
	long expected;
};

constexpr Frame kPlainFrames[] = {
	{"less than a header", IB_USER_VERBS_CMD_ALLOC_PD, 1, 1, 4, EINVAL},
	{"nothing", IB_USER_VERBS_CMD_ALLOC_PD, 0, 0, 0, EINVAL},
	{"unknown bits", IB_USER_VERBS_CMD_ALLOC_PD | 0x100, 4, 1, 16, EINVAL},
	{"unknown command", 77, 4, 1, 16, EOPNOTSUPP},
	{"last number of all", 0xff, 4, 1, 16, EOPNOTSUPP},
	{"number without a command", IB_USER_VERBS_CMD_BIND_MW, 4, 1, 16, EOPNOTSUPP},
	{"header says more than is written", IB_USER_VERBS_CMD_ALLOC_PD, 5, 1, 16, EINVAL},
	{"header says less than is written", IB_USER_VERBS_CMD_ALLOC_PD, 3, 1, 16, EINVAL},
	{"request too short", IB_USER_VERBS_CMD_ALLOC_PD, 3, 1, 12, ENOSPC},
	{"no request", IB_USER_VERBS_CMD_ALLOC_PD, 2, 1, 8, ENOSPC},
	{"no room for the answer", IB_USER_VERBS_CMD_QUERY_DEVICE, 4, 43, 16, ENOSPC},
	{"a second context", IB_USER_VERBS_CMD_GET_CONTEXT, 4, 6, 16, EINVAL},
	{"port 0", IB_USER_VERBS_CMD_QUERY_PORT, 6, 10, 24, EINVAL},
};

/* Writes a frame whose request begins with the address of room for an answer. */
long write_frame(const Program &program, const Frame &frame)
{
	static Answer answer;
	struct __attribute__((packed)) {
		ib_uverbs_cmd_hdr header;
		std::uint64_t response;
		std::uint64_t rest[16];
	} bytes{};

	bytes.header = {frame.command, frame.in_words, frame.out_words};
	bytes.response = reinterpret_cast<std::uintptr_t>(&answer);
	return program.write(&bytes, frame.size);
}

/* An extended QUERY_DEVICE: request of 8 bytes, of which the tail may be longer. */
struct ExtendedFrame {
	const char *what;
	std::uint16_t in_words, out_words, driver_in, driver_out;
	std::uint32_t reserved;
	bool response;
	std::uint64_t tail;
	std::size_t size;
	long expected;
};

constexpr std::uint16_t kWholeAnswer = sizeof(ib_uverbs_ex_query_device_resp) / 8;
constexpr ExtendedFrame kExtendedFrames[] = {
	{"as it should be", 1, kWholeAnswer, 0, 0, 0, true, 0, 32, 0},
	{"less than the headers", 0, kWholeAnswer, 0, 0, 0, true, 0, 20, EINVAL},
	{"lengths that do not agree", 2, kWholeAnswer, 0, 0, 0, true, 0, 32, EINVAL},
	{"a driver's part that is not there", 1, kWholeAnswer, 1, 0, 0, true, 0, 32, EINVAL},
	{"request too short", 0, kWholeAnswer, 0, 0, 0, true, 0, 24, ENOSPC},
	{"reserved word", 1, kWholeAnswer, 0, 0, 1, true, 0, 32, EINVAL},
	{"an answer without room", 1, 0, 0, 0, 0, true, 0, 32, EINVAL},
	{"too little room", 1, 22, 0, 0, 0, true, 0, 32, ENOSPC},
	{"room without an address", 1, kWholeAnswer, 0, 0, 0, false, 0, 32, EINVAL},
	{"neither", 1, 0, 0, 0, 0, false, 0, 32, 0},
	{"a tail of zeros", 2, kWholeAnswer, 0, 0, 0, true, 0, 40, 0},
	{"a tail that is not zero", 2, kWholeAnswer, 0, 0, 0, true, 1, 40, EOPNOTSUPP},
	{"more room than there is to say", 1, kWholeAnswer + 4, 0, 0, 0, true, 0, 32, 0},
};

long write_frame(const Program &program, const ExtendedFrame &frame, Answer &answer)
{
	struct __attribute__((packed)) {
		ib_uverbs_cmd_hdr header;
		ib_uverbs_ex_cmd_hdr extended;
		std::uint64_t request;
		std::uint64_t tail;
	} bytes{};

	bytes.header = {IB_USER_VERBS_EX_CMD_QUERY_DEVICE | kExtended, frame.in_words,
			frame.out_words};
	bytes.extended.response = frame.response ? reinterpret_cast<std::uintptr_t>(&answer) : 0;
	bytes.extended.provider_in_words = frame.driver_in;
	bytes.extended.provider_out_words = frame.driver_out;
	bytes.extended.cmd_hdr_reserved = frame.reserved;
	bytes.tail = frame.tail;
	return program.write(&bytes, frame.size);
}

void try_frames()
{
	const Program program;
	Answer answer;

	for (const Frame &frame : kPlainFrames)
		expect(frame.what, write_frame(program, frame), frame.expected);
	for (const ExtendedFrame &frame : kExtendedFrames) {
		std::memset(&answer, 0xff, sizeof(answer));
		expect(std::string("extended: ") + frame.what, write_frame(program, frame, answer),
		       frame.expected);
	}
	/* The last buffer was too large: its rest is cleared, and nothing behind it is written. */
	const std::uint32_t *behind = answer.words + kWholeAnswer * 2;
	expect("the rest of the room is cleared", behind[0] | behind[7], 0);
	expect("nothing behind the room is written", behind[8] == 0xffffffff, 1);

	const Program fresh(false);
	std::uint32_t handle;
	expect("a command before the context", fresh.alloc_pd(handle), EINVAL);
	expect("mmap before the context",
	       mmap(nullptr, 4096, PROT_WRITE, MAP_SHARED, fresh.number(), 0) == MAP_FAILED ? errno
											    : 0,
	       EINVAL);
}

void try_handles()
{
	const Program program, outsider;
	ib_uverbs_destroy_cq_resp read;
	std::uint32_t pd, cq, qp, other, again;
	static char memory[8192] __attribute__((aligned(4096)));

	expect("ALLOC_PD", program.alloc_pd(pd), 0);
	expect("handles begin at 0", pd, 0);
	expect("CREATE_CQ", program.create_cq(-1, cq), 0);
	expect("CREATE_QP", program.create_qp(pd, cq, qp), 0);
	expect("a PD that is used", program.dealloc_pd(pd), EBUSY);
	expect("a CQ that is used", program.destroy_cq(cq, read), EBUSY);
	expect("a CQ for a PD", program.dealloc_pd(cq), EINVAL);
	expect("a QP for a CQ", program.destroy_cq(qp, read), EINVAL);
	expect("a CQ for the PD of a QP", program.create_qp(cq, cq, other), EINVAL);
	expect("a PD for the CQ of a QP", program.create_qp(pd, pd, other), EINVAL);
	expect("a number of nothing", program.dealloc_pd(77), ENOENT);
	expect("the largest number", program.dealloc_pd(0xffffffff), ENOENT);
	expect("another file's PD", outsider.dealloc_pd(pd), ENOENT);
	expect("another file's QP", outsider.destroy_qp(qp), ENOENT);

	expect("memory that is not there",
	       program.register_memory(pd, reinterpret_cast<void *>(4096), 4096, other), EFAULT);
	expect("memory that wraps",
	       program.register_memory(pd, memory, ~std::size_t{0} - 4096, other), EINVAL);
	expect("no memory at all", program.register_memory(pd, memory, 0, other), EINVAL);
	expect("memory by another's PD", outsider.register_memory(pd, memory, 4096, other), ENOENT);

	/*
	 * If the response cannot be written, the object is destroyed and its handle is free again.
	 */
	const struct ib_uverbs_alloc_pd unanswered = {.response = 4096};
	expect("an answer to nowhere",
	       program.plain(IB_USER_VERBS_CMD_ALLOC_PD, &unanswered, sizeof(unanswered), 12),
	       EFAULT);
	expect("ALLOC_PD", program.alloc_pd(other), 0);
	expect("the number of what was not answered is free", other, qp + 1);
	expect("DEALLOC_PD", program.dealloc_pd(other), 0);

	expect("DESTROY_QP", program.destroy_qp(qp), 0);
	expect("a QP twice", program.destroy_qp(qp), ENOENT);
	expect("DESTROY_CQ", program.destroy_cq(cq, read), 0);
	expect("events of it", read.comp_events_reported | read.async_events_reported, 0);
	expect("ALLOC_PD", program.alloc_pd(again), 0);
	expect("the lowest free number", again, cq);
	expect("DEALLOC_PD", program.dealloc_pd(again), 0);
	expect("DEALLOC_PD", program.dealloc_pd(pd), 0);
}

/* Creates address handles for LID 1 through port 1, with one error in each. */
void try_address_handles()
{
	struct Wrong {
		const char *what;
		void (*make)(ib_uverbs_create_ah &request);
		long expected;
	};
	constexpr Wrong wrong[] = {
		{"a PD that there is not", [](auto &request) { request.pd_handle = 99; }, ENOENT},
		{"port 0", [](auto &request) { request.attr.port_num = 0; }, EINVAL},
		{"a port that there is not", [](auto &request) { request.attr.port_num = 3; },
		 EINVAL},
		{"LID 0", [](auto &request) { request.attr.dlid = 0; }, EINVAL},
		{"a multicast LID without a GRH", [](auto &request) { request.attr.dlid = 0xc000; },
		 EINVAL},
		{"a service level", [](auto &request) { request.attr.sl = 16; }, EINVAL},
		{"a rate", [](auto &request) { request.attr.static_rate = 99; }, EINVAL},
		{"a GID of ours",
		 [](auto &request) {
			 request.attr.is_global = 1;
			 request.attr.grh.sgid_index = 255;
		 },
		 EINVAL},
		{"a flow label",
		 [](auto &request) {
			 request.attr.is_global = 1;
			 request.attr.grh.flow_label = 1 << 20;
		 },
		 EINVAL},
	};
	const Program program, outsider;
	ib_uverbs_create_ah_resp made;
	ib_uverbs_create_ah right{};
	std::uint32_t pd;
	const auto create = [](const Program &by, const ib_uverbs_create_ah &request,
			       ib_uverbs_create_ah_resp &answer) {
		return by.command(IB_USER_VERBS_CMD_CREATE_AH, request, answer);
	};
	const auto destroy = [](const Program &by, std::uint32_t handle) {
		return by.command(IB_USER_VERBS_CMD_DESTROY_AH, ib_uverbs_destroy_ah{handle});
	};

	expect("ALLOC_PD", program.alloc_pd(pd), 0);
	right.pd_handle = pd;
	right.attr.dlid = 1;
	right.attr.port_num = 1;
	for (const Wrong &one : wrong) {
		ib_uverbs_create_ah request = right;
		one.make(request);
		expect(std::string("an address handle with ") + one.what,
		       create(program, request, made), one.expected);
	}
	expect("CREATE_AH", create(program, right, made), 0);
	expect("what was refused has no number", made.ah_handle, pd + 1);
	expect("a PD that is used", program.dealloc_pd(pd), EBUSY);
	expect("another file's address handle", destroy(outsider, made.ah_handle), ENOENT);
	expect("a PD for an address handle", destroy(program, pd), EINVAL);
	expect("an address handle for a PD", program.dealloc_pd(made.ah_handle), EINVAL);
	expect("DESTROY_AH", destroy(program, made.ah_handle), 0);
	expect("an address handle twice", destroy(program, made.ah_handle), ENOENT);
	expect("DEALLOC_PD", program.dealloc_pd(pd), 0);

	/* The kernel does not implement commands that the library executes itself. */
	const std::uint64_t nothing[8] = {};
	for (const unsigned command : {IB_USER_VERBS_CMD_POST_SEND, IB_USER_VERBS_CMD_POST_RECV,
				       IB_USER_VERBS_CMD_POST_SRQ_RECV, IB_USER_VERBS_CMD_POLL_CQ,
				       IB_USER_VERBS_CMD_REQ_NOTIFY_CQ})
		expect("command " + std::to_string(command),
		       program.plain(command, nothing, sizeof(nothing), 64), EOPNOTSUPP);

	/* This address handle and its PD are not destroyed. */
	expect("ALLOC_PD", program.alloc_pd(right.pd_handle), 0);
	expect("CREATE_AH", create(program, right, made), 0);
}

void try_registering_again()
{
	constexpr std::uint32_t address = 1, domain = 2, access = 4;
	const Program program;
	std::uint32_t first, second, mr, last;
	static char memory[8192] __attribute__((aligned(4096)));

	expect("ALLOC_PD", program.alloc_pd(first), 0);
	expect("REG_MR", program.register_memory(first, memory, 4096, mr), 0);
	expect("ALLOC_PD", program.alloc_pd(second), 0);
	expect("nothing to change", program.register_again(mr, 0, first, memory, 4096), EINVAL);
	expect("something unknown", program.register_again(mr, 8, first, memory, 4096), EOPNOTSUPP);
	expect("a region that there is not",
	       program.register_again(99, access, first, memory, 4096), ENOENT);
	expect("a PD for a region", program.register_again(first, access, first, memory, 4096),
	       EINVAL);
	expect("into a PD that there is not", program.register_again(mr, domain, 99, memory, 4096),
	       ENOENT);
	expect("into another PD", program.register_again(mr, domain, second, memory, 4096), 0);
	expect("the PD that it was in", program.dealloc_pd(first), 0);
	expect("the PD that it is in", program.dealloc_pd(second), EBUSY);
	expect("other memory, and rights",
	       program.register_again(mr, address | access, second, memory, sizeof(memory)), 0);
	/*
	 * The state of the region after the error depends on the card; tests of the drivers check
	 * it.
	 */
	expect("memory that is not there",
	       program.register_again(mr, address, second, reinterpret_cast<void *>(4096), 4096),
	       EFAULT);
	expect("DEREG_MR", program.deregister_memory(mr), 0);
	expect("the PD that it was in", program.dealloc_pd(second), 0);

	/* The region is older than its current PD when the file is closed. */
	expect("ALLOC_PD", program.alloc_pd(first), 0);
	expect("REG_MR", program.register_memory(first, memory, 4096, mr), 0);
	expect("ALLOC_PD", program.alloc_pd(last), 0);
	expect("into a younger PD", program.register_again(mr, domain, last, memory, 4096), 0);
}

/* The subnet manager may still be configuring a port. Reads events until none comes for 100 ms. */
void consume_port_events(int events)
{
	ib_uverbs_async_event_desc event;
	pollfd waiting = {.fd = events, .events = POLLIN, .revents = 0};

	for (int i = 0; i < 1000 && ::poll(&waiting, 1, 100) > 0; i++)
		expect("an event", ::read(events, &event, sizeof(event)), sizeof(event));
}

void try_files()
{
	const Program program, outsider;
	Descriptor channel, foreign;
	std::uint32_t cq;
	char bytes[16];

	expect("read of the node", error_of(::read(program.number(), bytes, sizeof(bytes))),
	       EINVAL);
	expect("lseek of the node", error_of(lseek(program.number(), 0, SEEK_SET)), ESPIPE);

	expect("CREATE_COMP_CHANNEL", program.create_channel(channel), 0);
	expect("CREATE_COMP_CHANNEL", outsider.create_channel(foreign), 0);
	expect("closed by exec", fcntl(channel.number(), F_GETFD), FD_CLOEXEC);
	expect("a CQ on another file's channel", program.create_cq(foreign.number(), cq), EBADF);
	expect("a CQ on the asynchronous events", program.create_cq(program.events(), cq), EBADF);
	expect("a CQ on the node", program.create_cq(program.number(), cq), EBADF);
	expect("a CQ on what is closed", program.create_cq(1000, cq), EBADF);
	expect("a CQ on its channel", program.create_cq(channel.number(), cq), 0);

	for (const int file : {channel.number(), program.events()}) {
		fcntl(file, F_SETFL, fcntl(file, F_GETFL) | O_NONBLOCK);
		expect("an event read into too little", error_of(::read(file, bytes, 7)), EINVAL);
		expect("write to events", error_of(::write(file, bytes, sizeof(bytes))), EBADF);
		if (file == program.events())
			consume_port_events(file);
		expect("no event", error_of(::read(file, bytes, sizeof(bytes))), EAGAIN);
		pollfd waiting = {.fd = file, .events = POLLIN, .revents = 0};
		expect("poll of no event", ::poll(&waiting, 1, 0), 0);
	}

	const auto map = [&](int protection, int flags, long page, std::size_t length) -> long {
		void *mapped =
			mmap(nullptr, length, protection, flags, program.number(), page * 4096);
		if (mapped == MAP_FAILED)
			return errno;
		munmap(mapped, length);
		return 0;
	};
	expect("the UAR", map(PROT_WRITE, MAP_SHARED, 0, 4096), 0);
	expect("a private UAR", map(PROT_WRITE, MAP_PRIVATE, 0, 4096), EINVAL);
	expect("a UAR to execute", map(PROT_WRITE | PROT_EXEC, MAP_SHARED, 0, 4096), EINVAL);
	expect("two pages", map(PROT_WRITE, MAP_SHARED, 0, 8192), EINVAL);
	expect("a page that there is not", map(PROT_WRITE, MAP_SHARED, 1000, 4096), EINVAL);
}

/* Attributes of a QP (enum ib_qp_attr_mask), and states. */
namespace attribute
{
constexpr std::uint32_t kState = 1, kAccess = 8, kPkey = 16, kPort = 32, kPath = 128, kMtu = 256,
			kTimeout = 512, kRetries = 1024, kRnrRetries = 2048, kReceivePsn = 4096,
			kReads = 8192, kRnrTimer = 32768, kSendPsn = 65536, kReadsAnswered = 131072,
			kPeer = 1 << 20;
} // namespace attribute
constexpr std::uint8_t kStateInit = 1, kStateRtr = 2, kStateRts = 3, kStateSqd = 4;

long query(const Program &program, std::uint32_t qp, ib_uverbs_query_qp_resp &answer)
{
	return program.command(IB_USER_VERBS_CMD_QUERY_QP,
			       ib_uverbs_query_qp{.response = 0, .qp_handle = qp, .attr_mask = 0},
			       answer);
}

/* Returns a request that moves a QP to SQD on port 1. */
ib_uverbs_modify_qp stopped(const Program &program, std::uint32_t pd, std::uint32_t cq,
			    std::uint8_t type)
{
	using namespace attribute;
	const bool reliable = type == kQpTypeRc;
	ib_uverbs_modify_qp change{};
	const auto to = [&](std::uint8_t next, std::uint32_t mask) {
		change.qp_state = next;
		change.attr_mask = kState | mask;
		expect("a QP to state " + std::to_string(next), program.modify_qp(change), 0);
	};

	expect("CREATE_QP", program.create_qp(pd, cq, change.qp_handle, type), 0);
	change.port_num = change.dest.port_num = 1;
	change.dest.dlid = 1;
	change.path_mtu = 1;
	to(kStateInit, kPkey | kPort | kAccess);
	to(kStateRtr,
	   kPath | kMtu | kPeer | kReceivePsn | (reliable ? kReadsAnswered | kRnrTimer : 0));
	to(kStateRts, kSendPsn | (reliable ? kTimeout | kRetries | kRnrRetries | kReads : 0));
	to(kStateSqd, 0);
	/* The card accepts changes only when outstanding requests have completed. */
	ib_uverbs_query_qp_resp asked{};
	for (int i = 0; i < 1000 && (i == 0 || asked.sq_draining); i++) {
		usleep(i ? 1000 : 0);
		expect("QUERY_QP", query(program, change.qp_handle, asked), 0);
	}
	expect("a QP that drains", asked.sq_draining, 0);
	return change;
}

/* Tests which port a QP uses, on a card with two ports. */
void try_paths()
{
	const Program program;
	std::uint32_t pd, cq;
	ib_uverbs_query_qp_resp asked{};

	expect("ALLOC_PD", program.alloc_pd(pd), 0);
	expect("CREATE_CQ", program.create_cq(-1, cq), 0);
	ib_uverbs_modify_qp change = stopped(program, pd, cq, kQpTypeRc);
	change.attr_mask = attribute::kPath;
	change.dest.port_num = 3;
	expect("a path by a port that there is not", program.modify_qp(change), EINVAL);
	change.dest.port_num = 2;
	expect("a path by the other port", program.modify_qp(change), 0);
	expect("QUERY_QP", query(program, change.qp_handle, asked), 0);
	expect("the port", asked.port_num, 2);
	expect("the path's", asked.dest.port_num, 2);
	change.attr_mask = attribute::kPath | attribute::kPort;
	expect("a port, and a path by another", program.modify_qp(change), EINVAL);
	change.dest.port_num = 1;
	expect("both", program.modify_qp(change), 0);

	change = stopped(program, pd, cq, kQpTypeUc);
	change.attr_mask = attribute::kPath;
	change.dest.port_num = 2;
	expect("a QP of UC keeps its port", program.modify_qp(change), EINVAL);
	change.dest.port_num = 1;
	expect("and may have another path", program.modify_qp(change), 0);
}

/* A child that has changed its user must not write to an inherited descriptor. */
void try_credentials()
{
	const Program program;
	const pid_t child = fork();

	if (child == 0) {
		std::uint32_t handle;
		const bool refused = setuid(65534) == 0 && program.alloc_pd(handle) == EACCES;
		_exit(refused ? 0 : 1);
	}
	int status;
	waitpid(child, &status, 0);
	expect("a child of another user is refused", status, 0);
}

} // namespace

void try_refusals()
{
	try_frames();
	try_handles();
	try_address_handles();
	try_registering_again();
	try_files();
	try_paths();
	try_credentials();
}

} // namespace weft::uverbs
