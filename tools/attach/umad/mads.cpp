// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the functions of libibumad that open ports, register agents, and send and receive
// MADs. The port ID that umad_open_port() returns is the descriptor of a connection to weftd; in
// the original libibumad it is the descriptor of the umad device.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "attach/umad/abi.hpp"
#include "attach/umad/client.hpp"

namespace
{

using namespace weft::attach;
using weft::attach::umad::ask;
using weft::attach::umad::debug;

static_assert(sizeof(ib_user_mad) == sizeof(UserMad));
static_assert(offsetof(ib_user_mad, addr.pkey_index) == offsetof(UserMad, pkey_index));
static_assert(offsetof(ib_user_mad, addr.gid) == offsetof(UserMad, gid));

constexpr std::size_t kMadBytes = 256;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

struct Opened {
	int socket;
	std::uint64_t token;
	std::uint32_t agents; // a bit for each registered agent
	Opened *next;
};
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
Opened *opened_ports;

// The child of fork() has only the calling thread, so no other thread may hold the mutex at that
// time.
[[gnu::constructor]] void prepare_for_fork()
{
	::pthread_atfork([] { ::pthread_mutex_lock(&mutex); },
			 [] { ::pthread_mutex_unlock(&mutex); },
			 [] { ::pthread_mutex_unlock(&mutex); });
}

class Lock
{
public:
	Lock() { ::pthread_mutex_lock(&mutex); }
	~Lock() { ::pthread_mutex_unlock(&mutex); }
	Lock(const Lock &) = delete;
	Lock &operator=(const Lock &) = delete;
};

// Must be called with the lock held.
Opened *find(int port)
{
	Opened *each = opened_ports;
	while (each && each->socket != port)
		each = each->next;
	return each;
}

bool token_of(int port, std::uint64_t &token)
{
	const Lock lock;
	const Opened *const opened = find(port);
	if (opened)
		token = opened->token;
	return opened != nullptr;
}

// Returns the errno for a failed receive: EAGAIN if there is no message, and EIO otherwise. If
// weftd has closed the connection, errno can have other values, which umad does not define.
int reason()
{
	return errno == EAGAIN ? EAGAIN : EIO;
}

// Returns true if weftd has closed the connection and all its data has been received.
bool has_ended(int port)
{
	char byte;
	return ::recv(port, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT) == 0;
}

// Reads the header of the first message without removing it. Returns 0 or an errno.
int look(int port, UserMad &header)
{
	ssize_t bytes;
	do
		bytes = ::recv(port, &header, sizeof(header), MSG_PEEK | MSG_DONTWAIT);
	while (bytes < 0 && errno == EINTR);
	if (bytes < 0)
		return reason();
	return bytes == static_cast<ssize_t>(sizeof(header)) ? 0 : EIO;
}

bool read_file(int file, char *bytes, std::size_t size)
{
	for (std::size_t at = 0; at < size;) {
		const auto got = ::pread(file, bytes + at, size - at, static_cast<off_t>(at));
		if (got <= 0)
			return false;
		at += static_cast<std::size_t>(got);
	}
	return true;
}

union Control {
	cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int))];
};

// Receives the first message into @mad, which has space for it. Returns 0 or an errno.
int receive(int port, ib_user_mad &mad, std::size_t data)
{
	iovec parts[] = {{&mad, sizeof(UserMad)}, {mad.data, data}};
	msghdr message{};
	Control control{};
	message.msg_iov = parts;
	message.msg_iovlen = 2;
	message.msg_control = control.bytes;
	message.msg_controllen = sizeof(control.bytes);
	ssize_t bytes;
	do
		bytes = ::recvmsg(port, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (bytes < 0 && errno == EINTR);
	if (bytes < static_cast<ssize_t>(sizeof(UserMad)))
		return bytes < 0 ? reason() : EIO;
	// The message is in a memfd, and the program has no descriptor left to receive it, so the
	// message is lost. umad_recv() has no other errno for that.
	if ((message.msg_flags & MSG_CTRUNC) != 0)
		return EIO;
	const cmsghdr *const part = CMSG_FIRSTHDR(&message);
	if (!part)
		return 0;
	if (part->cmsg_type != SCM_RIGHTS || part->cmsg_len != CMSG_LEN(sizeof(int)))
		return EIO;
	int file;
	std::memcpy(&file, CMSG_DATA(part), sizeof(file));
	const bool whole = read_file(file, reinterpret_cast<char *>(mad.data), data);
	::close(file);
	return whole ? 0 : EIO;
}

// Returns a memfd with @size bytes, or a negative number, with errno set.
int file_of(const void *bytes, std::size_t size)
{
	const int file = ::memfd_create("weft-mad", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (file < 0)
		return -1;
	for (std::size_t at = 0; at < size;) {
		const auto written =
			::write(file, static_cast<const char *>(bytes) + at, size - at);
		if (written <= 0) {
			const int error = written < 0 ? errno : ENOSPC;
			::close(file);
			errno = error;
			return -1;
		}
		at += static_cast<std::size_t>(written);
	}
	if (::fcntl(file, F_ADD_SEALS, kSeals)) {
		::close(file);
		return -1;
	}
	return file;
}

// Sends a message and waits for space if necessary. Returns 0 or an errno.
int send(int port, ib_user_mad &mad, std::size_t data)
{
	iovec parts[] = {{&mad, sizeof(UserMad)}, {mad.data, data}};
	msghdr message{};
	Control control{};
	message.msg_iov = parts;
	message.msg_iovlen = 2;
	int file = -1;
	if (data > kMostInline) {
		file = file_of(mad.data, data);
		if (file < 0)
			return errno;
		message.msg_iovlen = 1;
		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
		cmsghdr *const part = CMSG_FIRSTHDR(&message);
		part->cmsg_level = SOL_SOCKET;
		part->cmsg_type = SCM_RIGHTS;
		part->cmsg_len = CMSG_LEN(sizeof(int));
		std::memcpy(CMSG_DATA(part), &file, sizeof(file));
	}
	int error = 0;
	while (::sendmsg(port, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		// The same errno as umad reports for a device that was removed.
		error = errno == EPIPE || errno == ECONNRESET ? EIO : errno;
		if (error == EAGAIN) {
			pollfd room{port, POLLOUT, 0};
			::poll(&room, 1, -1);
		} else if (error != EINTR) {
			break;
		}
		error = 0;
	}
	if (file >= 0)
		::close(file);
	return error;
}

std::int64_t milliseconds()
{
	timespec now;
	::clock_gettime(CLOCK_MONOTONIC, &now);
	return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

// Waits until something can be received. Returns 0 or a negative errno.
int wait(int port, int timeout_ms)
{
	const std::int64_t end = milliseconds() + timeout_ms;
	for (;;) {
		pollfd ready{port, POLLIN, 0};
		const int count = ::poll(&ready, 1, timeout_ms);
		if (count > 0)
			return (ready.revents & POLLIN) != 0 &&
					       ((ready.revents & POLLHUP) == 0 || !has_ended(port))
				       ? 0
				       : -EIO;
		if (count == 0)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return -EIO;
		if (timeout_ms >= 0) {
			const std::int64_t left = end - milliseconds();
			timeout_ms = left > 0 ? static_cast<int>(left) : 0;
		}
	}
}

// Returns the agent, or the errno as a negative number.
int add_agent(int port, const AgentRequest &agent)
{
	Request request{};
	request.kind = Kind::add_agent;
	request.agent = agent;
	if (!token_of(port, request.token))
		return -EBADF;
	Reply reply{};
	const int socket = ask(request, &reply, sizeof(reply));
	if (socket < 0)
		return -EIO;
	::close(socket);
	if (reply.error)
		return -reply.error;
	const Lock lock;
	if (Opened *const opened = find(port))
		opened->agents |= 1u << reply.agent;
	return static_cast<int>(reply.agent);
}

// libibumad reports the same errno for all causes.
int registered(int agent)
{
	if (agent >= 0)
		return agent;
	errno = -agent;
	debug("registration: %s", std::strerror(errno));
	return agent == -EBADF ? -EINVAL : -EPERM;
}

void set_methods(AgentRequest &agent, const long *methods)
{
	if (methods)
		std::memcpy(agent.method_mask, methods, sizeof(agent.method_mask));
}

} // namespace

extern "C" {

int umad_open_port(const char *ca_name, int portnum)
{
	Description description{};
	if (!weft::attach::umad::is_ca_name(ca_name) || weft::attach::umad::describe(description))
		return -ENODEV;
	const int index = weft::attach::umad::find_port(description, portnum);
	if (index < 0)
		return -EINVAL;
	auto *const opened = static_cast<Opened *>(std::calloc(1, sizeof(Opened)));
	if (!opened)
		return -ENOMEM;
	Request request{};
	request.kind = Kind::open;
	request.port = description.port[index].number;
	Reply reply{};
	const int socket = ask(request, &reply, sizeof(reply));
	if (socket < 0 || reply.error) {
		debug("port %u: %s", request.port,
		      std::strerror(socket < 0 ? -socket : reply.error));
		if (socket >= 0)
			::close(socket);
		std::free(opened);
		return -EIO;
	}
	// Descriptors of libibumad are non-blocking, too.
	::fcntl(socket, F_SETFL, O_NONBLOCK);
	opened->socket = socket;
	opened->token = reply.token;
	const Lock lock;
	opened->next = opened_ports;
	opened_ports = opened;
	return socket;
}

int umad_close_port(int portid)
{
	{
		const Lock lock;
		Opened **place = &opened_ports;
		while (*place && (*place)->socket != portid)
			place = &(*place)->next;
		Opened *const opened = *place;
		if (!opened)
			return -EINVAL;
		*place = opened->next;
		std::free(opened);
	}
	::close(portid);
	return 0;
}

int umad_get_fd(int portid)
{
	return portid;
}

int umad_register(int portid, int mgmt_class, int mgmt_version, uint8_t rmpp_version,
		  long method_mask[16 / sizeof(long)])
{
	AgentRequest agent{};
	agent.mgmt_class = static_cast<std::uint8_t>(mgmt_class);
	agent.mgmt_class_version = static_cast<std::uint8_t>(mgmt_version);
	agent.qpn = agent.mgmt_class == 0x01 || agent.mgmt_class == 0x81 ? 0 : 1;
	agent.rmpp_version = rmpp_version;
	agent.oui = UMAD_OPENIB_OUI; // for a class in the vendor range
	set_methods(agent, method_mask);
	return registered(add_agent(portid, agent));
}

int umad_register_oui(int portid, int mgmt_class, uint8_t rmpp_version, uint8_t oui[3],
		      long method_mask[16 / sizeof(long)])
{
	if (mgmt_class < 0x30 || mgmt_class > 0x4f)
		return -EINVAL;
	AgentRequest agent{};
	agent.mgmt_class = static_cast<std::uint8_t>(mgmt_class);
	agent.mgmt_class_version = 1;
	agent.qpn = 1;
	agent.rmpp_version = rmpp_version;
	agent.oui = static_cast<std::uint32_t>(oui[0] << 16 | oui[1] << 8 | oui[2]);
	set_methods(agent, method_mask);
	return registered(add_agent(portid, agent));
}

int umad_register2(int port_fd, umad_reg_attr *attr, uint32_t *agent_id)
{
	if (!attr || !agent_id)
		return EINVAL;
	if ((attr->flags & ~std::uint32_t{UMAD_USER_RMPP}) != 0) {
		attr->flags = UMAD_USER_RMPP; // all flags that exist
		return EINVAL;
	}
	AgentRequest agent{};
	agent.mgmt_class = attr->mgmt_class;
	agent.mgmt_class_version = attr->mgmt_class_version;
	agent.qpn = agent.mgmt_class == 0x01 || agent.mgmt_class == 0x81 ? 0 : 1;
	agent.rmpp_version = attr->rmpp_version;
	agent.flags = attr->flags;
	agent.oui = attr->oui;
	std::memcpy(agent.method_mask, attr->method_mask, sizeof(agent.method_mask));
	const int id = add_agent(port_fd, agent);
	if (id < 0)
		return -id;
	*agent_id = static_cast<std::uint32_t>(id);
	return 0;
}

int umad_unregister(int portid, int agentid)
{
	Request request{};
	request.kind = Kind::remove_agent;
	request.agent.id = static_cast<std::uint32_t>(agentid);
	if (!token_of(portid, request.token))
		return -EINVAL;
	Reply reply{};
	const int socket = ask(request, &reply, sizeof(reply));
	if (socket < 0)
		return -EIO;
	::close(socket);
	if (reply.error)
		return -reply.error;
	const Lock lock;
	if (Opened *const opened = find(portid))
		opened->agents &= ~(1u << agentid);
	return 0;
}

int umad_send(int portid, int agentid, void *umad, int length, int timeout_ms, int retries)
{
	auto &mad = *static_cast<ib_user_mad *>(umad);
	errno = 0;
	mad.timeout_ms = static_cast<std::uint32_t>(timeout_ms);
	mad.retries = static_cast<std::uint32_t>(retries);
	mad.agent_id = static_cast<std::uint32_t>(agentid);
	// Check this here, because weftd does not answer sends. All other errors are returned by
	// umad_recv().
	bool known;
	{
		const Lock lock;
		const Opened *const opened = find(portid);
		known = opened && agentid >= 0 && agentid < static_cast<int>(kMostAgents) &&
			(opened->agents >> agentid & 1) != 0;
	}
	if (!known || length < 36 || static_cast<std::size_t>(length) > kMostBytes) {
		errno = EINVAL;
		return -EIO;
	}
	const auto size = static_cast<std::size_t>(length);
	mad.length = static_cast<std::uint32_t>(sizeof(UserMad) + size);
	if (const int error = send(portid, mad, size)) {
		debug("send: %s", std::strerror(error));
		errno = error;
		return -EIO;
	}
	return 0;
}

int umad_recv(int portid, void *umad, int *length, int timeout_ms)
{
	if (!umad || !length || *length < static_cast<int>(kMadBytes)) {
		errno = EINVAL;
		return -EINVAL;
	}
	auto &mad = *static_cast<ib_user_mad *>(umad);
	for (;;) {
		errno = 0;
		if (timeout_ms)
			if (const int error = wait(portid, timeout_ms)) {
				if (!errno)
					errno = -error;
				return error;
			}
		// Another thread may have received the message for which this thread has waited.
		const Lock lock;
		UserMad header;
		int error = look(portid, header);
		if (error == EAGAIN && timeout_ms)
			continue;
		const std::size_t data = header.length - sizeof(UserMad);
		if (!error && data > static_cast<std::size_t>(*length)) {
			std::memcpy(&mad, &header, sizeof(header));
			*length = static_cast<int>(data);
			error = ENOSPC;
		} else if (!error) {
			error = receive(portid, mad, data);
		}
		if (error) {
			errno = error;
			return -error;
		}
		mad.length = static_cast<std::uint32_t>(data);
		*length = static_cast<int>(data);
		return static_cast<int>(mad.agent_id);
	}
}

int umad_poll(int portid, int timeout_ms)
{
	const int error = wait(portid, timeout_ms);
	if (error && !errno)
		errno = -error;
	return error;
}

} // extern "C"
