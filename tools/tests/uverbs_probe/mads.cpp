// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Checks MADs through /dev/infiniband/umad0 and issm0: refused requests, limits on received MADs,
// and the lifetimes of agents.
#include <fcntl.h>
#include <poll.h>
#include <rdma/ib_user_mad.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>

#include "ib/mad.hpp"
#include "ib/sa.hpp"
#include "ib/smp.hpp"
#include "tests/uverbs_probe/program.hpp"

namespace weft::uverbs
{

namespace
{

constexpr const char *kIssmNode = "/dev/infiniband/issm0";
/* Limits that Documentation/user-verbs.rst promises. */
constexpr unsigned kAgentsMax = 32, kMadsMax = 8192;
constexpr std::size_t kRmppHeaders = 36, kSaHeaders = 56, kMadHeader = sizeof(ib::MadHeader);
/* A LID that no port has. */
constexpr std::uint16_t kNobody = 0xbff0;
constexpr std::uint8_t kDirected = 0x81, kSa = 0x03, kPerf = 0x04, kVendor = 0x32;
constexpr std::uint8_t kGet = 0x01, kSend = 0x03, kGetTable = 0x12, kGetResponse = 0x81;

/* Reads a value from a port's file in sysfs. */
unsigned long port_value(const char *name)
{
	std::ifstream file(std::string("/sys/class/infiniband/mlx4_0/ports/1/") + name);
	std::string text;
	file >> text;
	return std::stoul(text, nullptr, 0);
}

/* A record of read() and write(). */
struct Record {
	ib_user_mad_hdr header{};
	union {
		ib::Mad mad{};
		std::uint8_t bytes[4096];
	};
	ib::RmppHeader &rmpp() { return *reinterpret_cast<ib::RmppHeader *>(mad.data); }
};
static_assert(offsetof(Record, mad) == sizeof(ib_user_mad_hdr));

/* Registration of an agent; with a class of 0 it only sends requests. */
ib_user_mad_reg_req registration(std::uint8_t qpn, std::uint8_t mgmt_class = 0,
				 std::uint8_t version = 0, std::uint8_t rmpp = 0)
{
	ib_user_mad_reg_req request{};
	request.qpn = qpn;
	request.mgmt_class = mgmt_class;
	request.mgmt_class_version = version;
	request.rmpp_version = rmpp;
	return request;
}

class Mads
{
public:
	explicit Mads(int flags = O_NONBLOCK, bool with_pkey = true)
	    : file_(open(kUmadNode, O_RDWR | flags))
	{
		expect("open of umad0", file_.number() < 0, 0);
		if (with_pkey)
			expect("ENABLE_PKEY", error_of(ioctl(number(), IB_USER_MAD_ENABLE_PKEY)),
			       0);
	}
	int number() const { return file_.number(); }
	void close() { file_.reset(); }

	long add(ib_user_mad_reg_req &request) const
	{
		return error_of(ioctl(number(), IB_USER_MAD_REGISTER_AGENT, &request));
	}
	long add(ib_user_mad_reg_req2 &request) const
	{
		return error_of(ioctl(number(), IB_USER_MAD_REGISTER_AGENT2, &request));
	}
	std::uint32_t add(std::uint8_t qpn, std::uint8_t mgmt_class = 0,
			  std::uint8_t rmpp = 0) const
	{
		ib_user_mad_reg_req request =
			registration(qpn, mgmt_class, mgmt_class == kSa ? 2 : 1, rmpp);
		expect("REGISTER_AGENT", add(request), 0);
		return request.id;
	}
	long remove(std::uint32_t id) const
	{
		return error_of(ioctl(number(), IB_USER_MAD_UNREGISTER_AGENT, &id));
	}
	/* Returns 0 or an errno; EPROTO if another number of bytes was written. */
	long write(const Record &record, std::size_t size = sizeof(ib::Mad)) const
	{
		const std::size_t count = sizeof(record.header) + size;
		const ssize_t written = ::write(number(), &record, count);
		return written < 0                                  ? errno
		       : static_cast<std::size_t>(written) == count ? 0
								    : EPROTO;
	}
	/* Returns the number of bytes, or a negative errno. */
	long read(Record &record, std::size_t room = sizeof(Record)) const
	{
		const ssize_t got = ::read(number(), &record, room);
		return got < 0 ? -errno : got;
	}
	short events(int wait_ms = 0) const
	{
		pollfd waiting = {.fd = number(), .events = POLLIN | POLLOUT, .revents = 0};
		::poll(&waiting, 1, wait_ms);
		return waiting.revents;
	}
	void wait_readable() const
	{
		pollfd waiting = {.fd = number(), .events = POLLIN, .revents = 0};
		expect("something to read", ::poll(&waiting, 1, 20000), 1);
	}

private:
	Descriptor file_;
};

/* Returns a request from the port to itself. */
Record local_question(std::uint32_t agent, std::uint64_t tid)
{
	Record record;
	record.header.id = agent;
	record.header.lid = 0xffff;
	record.header.timeout_ms = 5000;
	record.mad.header.base_version = 1;
	record.mad.header.mgmt_class = kDirected;
	record.mad.header.class_version = 1;
	record.mad.header.method = kGet;
	record.mad.header.attr_id = ib::attr_node_info;
	record.mad.header.tid = tid;
	/* With permissive DrSLID and DrDLID, the whole route is directed. */
	auto &smp = *reinterpret_cast<ib::Smp *>(&record.mad);
	smp.dr_slid = 0xffff;
	smp.dr_dlid = 0xffff;
	return record;
}

Record question(std::uint32_t agent, std::uint64_t tid, std::uint8_t mgmt_class,
		std::uint8_t method, std::uint16_t lid, std::uint32_t timeout_ms)
{
	Record record;
	record.header.id = agent;
	record.header.qpn = __builtin_bswap32(1);
	record.header.lid = __builtin_bswap16(lid);
	record.header.timeout_ms = timeout_ms;
	record.mad.header.base_version = 1;
	record.mad.header.mgmt_class = mgmt_class;
	record.mad.header.class_version = mgmt_class == kSa ? 2 : 1;
	record.mad.header.method = method;
	record.mad.header.tid = tid;
	return record;
}

void try_agents()
{
	const Mads file;
	ib_user_mad_reg_req request;

	expect("an unknown command", error_of(ioctl(file.number(), 0x1b77)), ENOTTY);
	expect("a registration of no memory",
	       error_of(ioctl(file.number(), IB_USER_MAD_REGISTER_AGENT, 4096)), EFAULT);
	const struct {
		const char *what;
		std::uint8_t qpn, mgmt_class, version, rmpp;
	} refused[] = {
		{"QP2", 2, 0, 0, 0},
		{"SMPs on QP1", 1, 0x01, 1, 0},
		{"SA on QP0", 0, kSa, 2, 0},
		{"class 0x50", 1, 0x50, 1, 0},
		{"version 0x83", 1, kPerf, 0x83, 0},
		{"a vendor without a name", 1, kVendor, 1, 0},
		{"RMPP 2", 1, kSa, 2, 2},
		{"RMPP without segments", 1, kPerf, 1, 1},
	};
	for (const auto &wrong : refused) {
		request = registration(wrong.qpn, wrong.mgmt_class, wrong.version, wrong.rmpp);
		expect(wrong.what, file.add(request), EINVAL);
	}
	ib_user_mad_reg_req2 second{};
	second.qpn = 1;
	second.flags = 0x10;
	expect("unknown flags", file.add(second), EINVAL);
	expect("the flags that there are", second.flags, IB_USER_MAD_USER_RMPP);
	second.flags = 0;
	second.oui = 1 << 24;
	expect("a name of 25 bits", file.add(second), EINVAL);
	expect("ENABLE_PKEY twice", error_of(ioctl(file.number(), IB_USER_MAD_ENABLE_PKEY)), 0);

	for (unsigned id = 0; id < kAgentsMax; id++)
		expect("the lowest free number", file.add(1), id);
	request = registration(1);
	expect("one agent too many", file.add(request), ENOMEM);
	expect("UNREGISTER_AGENT", file.remove(7), 0);
	expect("an agent twice", file.remove(7), EINVAL);
	expect("no agent's number", file.remove(kAgentsMax), EINVAL);
	expect("the number is free again", file.add(1), 7);
	expect("ENABLE_PKEY after an agent",
	       error_of(ioctl(file.number(), IB_USER_MAD_ENABLE_PKEY)), EINVAL);

	/*
	 * Only one agent can register a method of a class. The two classes of SMPs are separate,
	 * and OpenSM registers both.
	 */
	const Mads one, other;
	for (const std::uint8_t mgmt_class : {std::uint8_t{0x81}, std::uint8_t{0x01}}) {
		request = registration(0, mgmt_class, 1);
		request.method_mask[0] = 1u << kSend;
		expect("a method", one.add(request), 0);
		expect("another's method", other.add(request), EINVAL);
	}
}

void try_writes()
{
	const Mads file;
	const std::uint32_t agent = file.add(1, kSa, 1);
	Record record = question(agent, 1, kPerf, kGet, kNobody, 0);

	expect("less than an RMPP header", file.write(record, kRmppHeaders - 1), EINVAL);
	expect("nothing", error_of(::write(file.number(), &record, 0)), EINVAL);
	expect("more than a MAD", file.write(record, sizeof(ib::Mad) + 1), EINVAL);
	const std::vector<char> huge(65 + (16 << 20));
	expect("more than any message", error_of(::write(file.number(), huge.data(), huge.size())),
	       EINVAL);
	expect("memory that is not there",
	       error_of(::write(file.number(), reinterpret_cast<void *>(4096), 320)), EFAULT);
	record.header.id = kAgentsMax;
	expect("no agent's number", file.write(record), EINVAL);
	record.header.id = 5;
	expect("an agent that there is not", file.write(record), EIO);
	/*
	 * A response that was not requested, with the transaction ID of another agent's request, is
	 * sent.
	 */
	record = question(agent, 0x1234567800000001, kPerf, kGetResponse, kNobody, 0);
	expect("an answer", file.write(record), 0);
	record = question(agent, 1, 0x01, kGet, kNobody, 0);
	expect("an SMP on QP1", file.write(record), EINVAL);
	expect("SA's headers in part",
	       file.write(question(agent, 1, kSa, kGet, kNobody, 0), kSaHeaders - 1), EINVAL);

	record = question(agent, 2, kPerf, kSend, kNobody, 60000);
	expect("a question", file.write(record), 0);
	expect("the same again", file.write(record), EINVAL);
}

void try_reads()
{
	const Mads file;
	const std::uint32_t agent = file.add(0);
	Record record;

	expect("nothing to read", file.read(record), -EAGAIN);
	expect("poll of nothing", file.events(), POLLOUT);
	expect("lseek", error_of(lseek(file.number(), 0, SEEK_SET)), ESPIPE);
	expect("a question to itself", file.write(local_question(agent, 0xaaaaaaaa00000007)), 0);
	file.wait_readable();
	expect("poll", file.events(), POLLIN | POLLOUT);
	expect("less than a header", file.read(record, 63), -EINVAL);
	expect("less than a MAD", file.read(record, 64 + 255), -EINVAL);
	expect("a MAD", file.read(record), 64 + 256);
	expect("its status", record.header.status, 0);
	expect("its length", record.header.length, 64 + 256);
	expect("its agent", record.header.id, agent);
	expect("its method", record.mad.header.method, kGetResponse);
	expect("the program's half of its id", record.mad.header.tid.value() & 0xffffffff, 7);
	expect("the agent's half", record.mad.header.tid.value() >> 32 != 0xaaaaaaaa, 1);
	expect("it is read once", file.read(record), -EAGAIN);

	/* This file uses the old format without P_Keys. */
	const Mads old(O_NONBLOCK, false);
	const std::uint32_t elder = old.add(0);
	Record asked = local_question(elder, 9);
	char shifted[56 + 256];
	std::memcpy(shifted, &asked, 56);
	std::memcpy(shifted + 56, &asked.mad, 256);
	expect("a question with a short header", ::write(old.number(), shifted, sizeof(shifted)),
	       sizeof(shifted));
	old.wait_readable();
	expect("an answer with a short header", old.read(record), 56 + 256);
	expect("its length", record.header.length, 56 + 256);

	/* There is no response from this LID. */
	const std::uint32_t asking = file.add(1);
	asked = question(asking, 8, kPerf, kSend, kNobody, 20);
	asked.header.retries = 1;
	expect("a question to nobody", file.write(asked), 0);
	file.wait_readable();
	expect("it comes back", file.read(record), 64 + kMadHeader);
	expect("as not answered", record.header.status, ETIMEDOUT);
	expect("as it was", record.header.lid, asked.header.lid);
	expect("with its id", record.mad.header.tid.value() & 0xffffffff, 8);
}

/*
 * Requests an SA table with several segments, which are reassembled once by the kernel and once by
 * the program.
 */
void try_rmpp()
{
	const auto manager = static_cast<std::uint16_t>(port_value("sm_lid"));
	const Mads file;
	const std::uint32_t agent = file.add(1, kSa, 1);
	Record whole, asked = question(agent, 3, kSa, kGetTable, manager, 5000);

	asked.mad.header.attr_id = ib::attr_node_record;
	expect("a question for a table", file.write(asked), 0);
	file.wait_readable();
	expect("a table read as one MAD", file.read(whole, 64 + 256), -ENOSPC);
	const std::size_t length = whole.header.length;
	expect("it says how long it is", length > 64 + 256 && length < sizeof(Record), 1);
	expect("the first segment is there", whole.mad.header.method, 0x92);
	expect("a little too short", file.read(whole, length - 1), -ENOSPC);
	expect("the table", file.read(whole), static_cast<long>(length));
	expect("in whole records", (length - 64 - kSaHeaders) % 112, 0);

	ib_user_mad_reg_req2 request{};
	request.qpn = request.rmpp_version = 1;
	request.mgmt_class = kSa;
	request.mgmt_class_version = 2;
	request.flags = IB_USER_MAD_USER_RMPP;
	const Mads own;
	expect("REGISTER_AGENT2", own.add(request), 0);
	asked.header.id = request.id;
	expect("the same question", own.write(asked), 0);
	for (std::uint32_t segment = 1, flags = 0; !(flags & ib::RmppHeader::last) && !failures();
	     segment++) {
		Record part;
		own.wait_readable();
		expect("a segment", own.read(part), 64 + 256);
		expect("its number", part.rmpp().segment.value(), segment);
		flags = part.rmpp().flags();
		const std::size_t before = 64 + kSaHeaders + (segment - 1) * 200,
				  data = length - before < 200 ? length - before : 200;
		expect("what is in it",
		       std::memcmp(part.bytes + kSaHeaders, whole.bytes + (before - 64), data), 0);
		part.header.timeout_ms = part.header.retries = 0;
		part.mad.header.method = kGetTable;
		part.rmpp().type = ib::RmppHeader::ack;
		part.rmpp().length_or_window = segment + 64;
		expect("an acknowledgement", own.write(part), 0);
	}
}

/*
 * A request counts until it has completed, shortly after its response has arrived. So the last of
 * many requests may be refused once and accepted at once afterwards.
 */
long write_in_time(const Mads &file, const Record &record)
{
	const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
	long error;

	while ((error = file.write(record)) == ENOBUFS && std::chrono::steady_clock::now() < end)
		::poll(nullptr, 0, 1);
	return error;
}

void try_bounds()
{
	/* Each message has this number of segments, of which the first is never acknowledged. */
	constexpr unsigned segments = 256;
	static struct {
		ib_user_mad_hdr header;
		std::uint8_t bytes[kSaHeaders + segments * 200];
	} message;
	const Mads sender;
	const std::uint32_t agent = sender.add(1, kSa, 1);
	for (unsigned i = 0; i <= kMadsMax / segments; i++) {
		Record record = question(agent, i, kSa, kSend, kNobody, 60000);
		record.rmpp().version = 1;
		record.rmpp().type = ib::RmppHeader::data;
		record.rmpp().time_flags = ib::RmppHeader::active;
		std::memcpy(&message, &record, 64 + 256);
		expect("a long message",
		       error_of(::write(sender.number(), &message, sizeof(message))),
		       i < kMadsMax / segments ? 0 : ENOBUFS);
	}
	expect("UNREGISTER_AGENT", sender.remove(agent), 0);
	expect("room again", sender.write(question(sender.add(1), 1, kPerf, kSend, kNobody, 60000)),
	       0);

	const Mads hoarder, last;
	const std::uint32_t many = hoarder.add(0);
	for (unsigned i = 0; i < kMadsMax; i++)
		expect("a question", write_in_time(hoarder, local_question(many, i)), 0);
	expect("a question too many", hoarder.write(local_question(many, kMadsMax)), ENOBUFS);
	/* Responses arrive in order, so after this one all have arrived. */
	expect("a last question", last.write(local_question(last.add(0), 1)), 0);
	last.wait_readable();
	Record record;
	unsigned kept = 0;
	while (hoarder.read(record) > 0)
		kept++;
	expect("what is kept unread", kept, kMadsMax);
	expect("room again", hoarder.write(local_question(many, kMadsMax)), 0);
}

void try_close()
{
	for (unsigned round = 0; round < 8; round++) {
		Mads file(round & 1 ? O_NONBLOCK : 0);
		const std::uint32_t agent = file.add(1), local = file.add(0);
		for (unsigned i = 0; i < 16; i++) {
			expect("a question to nobody",
			       file.write(question(agent, i, kPerf, kSend, kNobody, 3600000)), 0);
			expect("a question to itself", file.write(local_question(local, i)), 0);
		}
		if (round & 2)
			expect("UNREGISTER_AGENT", file.remove(agent), 0);
		file.close();
	}
}

bool is_manager()
{
	return port_value("cap_mask") & 2;
}

void try_issm()
{
	expect("no manager", is_manager(), false);
	Descriptor file(open(kIssmNode, O_RDWR | O_NONBLOCK));
	expect("open of issm0", file.number() < 0, 0);
	expect("a manager", is_manager(), true);
	expect("a second manager", error_of(open(kIssmNode, O_RDWR | O_NONBLOCK)), EAGAIN);
	char byte;
	expect("read of issm0", error_of(::read(file.number(), &byte, 1)), EINVAL);

	const pid_t successor = fork();
	if (successor == 0) {
		file.reset();
		const Descriptor own(open(kIssmNode, O_RDWR));
		_exit(own.number() >= 0 && is_manager() ? 0 : 1);
	}
	file.reset();
	int status;
	waitpid(successor, &status, 0);
	expect("who waits becomes the manager", status, 0);
	expect("no manager any more", is_manager(), false);
}

} // namespace

void try_mads()
{
	try_agents();
	try_writes();
	try_reads();
	try_rmpp();
	try_bounds();
	try_close();
	try_issm();
}

void outlive_port()
{
	const Mads file(0);
	const std::uint32_t agent = file.add(1);
	const Descriptor manager(open(kIssmNode, O_RDWR));
	Record record;
	int status;

	expect("a question to nobody",
	       file.write(question(agent, 1, kPerf, kSend, kNobody, 3600000)), 0);
	const pid_t reader = fork();
	if (reader == 0)
		_exit(file.read(record) == -EIO ? 0 : 1);
	const pid_t poller = fork();
	if (poller == 0) {
		pollfd waiting = {.fd = file.number(), .events = POLLIN, .revents = 0};
		_exit(::poll(&waiting, 1, -1) == 1 && waiting.revents == POLLERR ? 0 : 1);
	}
	const pid_t successor = fork();
	if (successor == 0)
		_exit(error_of(open(kIssmNode, O_RDWR)) == ENXIO ? 0 : 1);
	/* Wait until all three processes sleep. */
	for (const pid_t child : {reader, poller, successor})
		for (std::string state; state != "S";) {
			std::ifstream stat("/proc/" + std::to_string(child) + "/stat");
			stat >> state >> state >> state;
		}
	std::puts("ready");
	std::fflush(stdout);
	char line[16];
	if (!std::fgets(line, sizeof(line), stdin))
		expect("a line to go on", 0, 1);

	waitpid(reader, &status, 0);
	expect("a reader is told", status, 0);
	waitpid(poller, &status, 0);
	expect("poll is told", status, 0);
	waitpid(successor, &status, 0);
	expect("who waits for issm0 is told", status, 0);
	expect("poll after the port", file.events(), POLLERR);
	expect("read after the port", file.read(record), -EIO);
	expect("write after the port", file.write(question(agent, 2, kPerf, kSend, kNobody, 0)),
	       EIO);
	ib_user_mad_reg_req request{};
	expect("an agent after the port", file.add(request), EPIPE);
	expect("UNREGISTER_AGENT after the port", file.remove(agent), EINVAL);
	expect("opened again", error_of(open(kUmadNode, O_RDWR)), ENOENT);
	const std::string again = "/proc/self/fd/" + std::to_string(file.number());
	expect("opened again by its descriptor", error_of(open(again.c_str(), O_RDWR)), ENXIO);
}

} // namespace weft::uverbs
