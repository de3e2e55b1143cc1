// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "bus/pci/connection.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include "base/closing.hpp"
#include "base/descriptor_kind.hpp"
#include "base/loop.hpp"

namespace weft::pci
{

namespace
{

// Budget for messages in one slice, after which the loop does other work.
constexpr unsigned kSlice = 64;

// Limit of unsent replies, in units of the largest reply. A client above the limit is assumed to be
// dead.
constexpr std::size_t kMostUnsent = 4;

} // namespace

Connection::Connection(Loop &loop, FileDescriptor socket, const Framing &framing,
		       Callbacks callbacks)
    : loop_(loop), socket_(std::move(socket)), callbacks_(std::move(callbacks)), reader_(framing),
      most_unsent_(kMostUnsent * framing.most_size)
{
}

void Connection::start()
{
	watch_.emplace(loop_, socket_.get(), Watch::kReadable, [this](unsigned ready) {
		// Keep a reference, because each of these calls may release the owner's reference.
		const auto self = shared_from_this();
		if (ready & Watch::kWritable)
			flush();
		if (ready & Watch::kReadable && socket_)
			read_slice();
	});
}

void Connection::hang_up()
{
	watch_.reset();
	socket_ = FileDescriptor();
}

void Connection::close()
{
	hang_up();
	callbacks_.closed = nullptr;
}

void Connection::drop(const std::string &reason)
{
	if (!socket_)
		return;
	hang_up();
	// Keep a reference, because the callback may release the owner's reference.
	const auto self = shared_from_this();
	if (!loop_.environment().stands())
		return callbacks_.closed(reason);
	loop_.post([self, reason] {
		if (self->callbacks_.closed)
			self->callbacks_.closed(reason);
	});
}

bool Connection::hung_up()
{
	pollfd state{socket_.get(), POLLRDHUP, 0};
	return ::poll(&state, 1, 0) > 0 && state.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

// Leaves messages beyond the budget to the next slice, and does not read the socket until then.
void Connection::read_slice()
{
	// In virtual time, the rest would wait until the end of the client's time slice, which may
	// in turn wait for the rest.
	unsigned budget = loop_.environment().stands() ? UINT_MAX : kSlice;
	Received received = Received::more;
	for (;;) {
		// Handle buffered messages first, which may be left over from the previous slice.
		if (!handle_messages(budget))
			return;
		if (!budget)
			break;
		// If less data arrived than was requested, the socket is empty.
		if (received == Received::all)
			return want(Watch::kReadable);
		received = receive();
		if (received == Received::end)
			return;
	}
	want(Watch::kNothing);
	loop_.post([self = shared_from_this()] {
		if (self->socket_)
			self->read_slice();
	});
}

void Connection::want(Watch::Ready reading)
{
	reading_ = reading;
	watch_->want(reading |
		     (unsent_.empty() ? unsigned{Watch::kNothing} : unsigned{Watch::kWritable}));
}

// Handles the complete messages that the reader has, up to @budget. Returns false if the connection
// was closed.
bool Connection::handle_messages(unsigned &budget)
{
	while (budget) {
		auto message = reader_.next();
		if (!message)
			break;
		const auto reply = callbacks_.message(*message);
		budget -= std::min(budget, message->cost);
		if (!socket_)
			return false;
		if (!reply.bytes.empty())
			send(reply);
		if (!socket_)
			return false;
	}
	if (reader_.failed()) {
		drop(fmt::format("it sent {}", reader_.reason()));
		return false;
	}
	return true;
}

// Returns whether the descriptors may be kept. If this process held the client's own end of the
// connection, or a socket in whose queue that end is, it would never see the connection close when
// the client exits. This matters from the first byte of a message on. Receiving is therefore shut
// down on each socket. A socket where this fails is refused, and so is the other end of this
// connection, to which nothing can be sent any more. In virtual time sockets are not shut down,
// because the clients are the lab's own guests, which reply over the sockets that they pass.
bool Connection::may_be_kept(const std::vector<FileDescriptor> &fds)
{
	bool any = false;
	for (const FileDescriptor &fd : fds) {
		if (kind_of(fd.get()) != DescriptorKind::socket)
			continue;
		if (!reader_.framing().takes_sockets ||
		    (!loop_.environment().is_shared() && !make_send_only(fd.get())))
			return false;
		any = true;
	}
	return !any || ::send(socket_.get(), nullptr, 0, MSG_DONTWAIT | MSG_NOSIGNAL) == 0;
}

Connection::Received Connection::receive()
{
	const auto space = reader_.space();
	iovec data{space.data(), space.size()};
	alignas(cmsghdr) char control[CMSG_SPACE(kMaxMessageFds * sizeof(int))];
	msghdr header{};
	header.msg_iov = &data;
	header.msg_iovlen = 1;
	const bool takes_descriptors = closing() < kMostClosing;
	if (takes_descriptors) {
		header.msg_control = control;
		header.msg_controllen = sizeof(control);
	}
	const auto size = ::recvmsg(socket_.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (size < 0 && (errno == EAGAIN || errno == EINTR))
		return Received::all;
	if (size <= 0) {
		drop(size ? std::strerror(errno) : "it closed the connection");
		return Received::end;
	}

	std::vector<FileDescriptor> fds;
	for (auto *part = CMSG_FIRSTHDR(&header); part; part = CMSG_NXTHDR(&header, part)) {
		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
			continue;
		for (std::size_t i = 0; i < (part->cmsg_len - CMSG_LEN(0)) / sizeof(int); ++i) {
			int fd;
			std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(fd), sizeof(fd));
			note_sent(fds.emplace_back(fd).get());
		}
	}
	if (!may_be_kept(fds)) {
		drop("it sent a socket that would outlive it");
		return Received::end;
	}
	if (header.msg_flags & MSG_CTRUNC) {
		// There was space for more descriptors, so the kernel could not allocate them.
		drop(!takes_descriptors ? "too many received descriptors have not been closed yet"
		     : fds.size() < kMaxMessageFds
			     ? "this process has no descriptor left for those that it sent"
			     : fmt::format("it sent more than {} descriptors at once",
					   kMaxMessageFds));
		return Received::end;
	}
	reader_.filled(static_cast<std::size_t>(size), std::move(fds));
	return static_cast<std::size_t>(size) < space.size() ? Received::all : Received::more;
}

std::size_t Connection::try_send(std::span<const std::byte> message, int fd)
{
	iovec data{const_cast<std::byte *>(message.data()), message.size()};
	alignas(cmsghdr) char control[CMSG_SPACE(sizeof(fd))]{};
	msghdr header{};
	header.msg_iov = &data;
	header.msg_iovlen = 1;
	if (fd >= 0) {
		header.msg_control = control;
		header.msg_controllen = sizeof(control);
		cmsghdr *const part = CMSG_FIRSTHDR(&header);
		part->cmsg_level = SOL_SOCKET;
		part->cmsg_type = SCM_RIGHTS;
		part->cmsg_len = CMSG_LEN(sizeof(fd));
		std::memcpy(CMSG_DATA(part), &fd, sizeof(fd));
	}
	const auto sent = ::sendmsg(socket_.get(), &header, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent >= 0)
		return static_cast<std::size_t>(sent);
	if (errno != EAGAIN && errno != EINTR)
		drop(std::strerror(errno));
	return 0;
}

void Connection::send(const Reply &reply)
{
	const std::span<const std::byte> message = reply.bytes;
	std::size_t sent = 0;
	if (unsent_.empty()) {
		sent = try_send(message, reply.fd);
		if (sent == message.size() || !socket_)
			return;
		first_sent_ = sent;
	}
	FileDescriptor fd;
	if (reply.fd >= 0 && sent == 0) {
		fd = FileDescriptor(::fcntl(reply.fd, F_DUPFD_CLOEXEC, 0));
		if (!fd)
			return drop(std::strerror(errno));
	}
	unsent_.push_back({{message.begin(), message.end()}, std::move(fd)});
	unsent_bytes_ += message.size();
	if (unsent_bytes_ > most_unsent_)
		drop(fmt::format("it leaves {} bytes of replies unread", unsent_bytes_));
}

void Connection::flush()
{
	while (!unsent_.empty()) {
		const Unsent &first = unsent_.front();
		const auto rest = std::span(first.bytes).subspan(first_sent_);
		const auto sent = try_send(rest, first_sent_ ? -1 : first.fd.get());
		if (!socket_)
			return;
		if (sent < rest.size()) {
			first_sent_ += sent;
			return;
		}
		unsent_bytes_ -= first.bytes.size();
		unsent_.pop_front();
		first_sent_ = 0;
	}
	want(reading_);
}

} // namespace weft::pci
