// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "pci/connection.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <poll.h>
#include <sys/socket.h>

#include <asio/io_context.hpp>
#include <fmt/format.h>

#include "base/loop.hpp"

namespace weft::pci
{

namespace
{

// What messages may cost before other work of the loop gets its turn.
constexpr unsigned kSlice = 64;

// Unsent replies beyond which a client is taken for dead: so many of the largest.
constexpr std::size_t kMostUnsent = 4;

} // namespace

Connection::Connection(Loop &loop, FileDescriptor socket, const Framing &framing,
		       Callbacks callbacks)
    : loop_(loop), socket_(loop.io(), socket.get()), callbacks_(std::move(callbacks)),
      reader_(framing), most_unsent_(kMostUnsent * framing.most_size)
{
	socket.release();
	socket_.native_non_blocking(true);
}

void Connection::start()
{
	wait_readable();
}

void Connection::close()
{
	std::error_code ignored;
	socket_.close(ignored);
}

void Connection::drop(const std::string &reason)
{
	if (!socket_.is_open())
		return;
	close();
	// The callback may release the owner's reference on this.
	const auto self = shared_from_this();
	callbacks_.closed(reason);
}

bool Connection::hung_up()
{
	pollfd state{socket_.native_handle(), POLLRDHUP, 0};
	return ::poll(&state, 1, 0) > 0 && state.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

void Connection::wait_readable()
{
	socket_.async_wait(asio::posix::stream_descriptor::wait_read,
			   [self = shared_from_this()](std::error_code error) {
				   if (!error && self->socket_.is_open())
					   self->read_slice();
			   });
}

void Connection::wait_writable()
{
	socket_.async_wait(asio::posix::stream_descriptor::wait_write,
			   [self = shared_from_this()](std::error_code error) {
				   if (!error && self->socket_.is_open())
					   self->flush();
			   });
}

void Connection::read_slice()
{
	unsigned budget = kSlice;
	for (;;) {
		// What was read before goes first: it may be the rest of the slice before.
		if (!handle_messages(budget))
			return;
		if (!budget) {
			loop_.post([self = shared_from_this()] {
				if (self->socket_.is_open())
					self->read_slice();
			});
			return;
		}
		switch (receive()) {
		case Received::Data:
			break;
		case Received::Nothing:
			return wait_readable();
		case Received::End:
			return;
		}
	}
}

// Handles the whole messages that the reader has, as far as @budget goes. False if the connection closed.
bool Connection::handle_messages(unsigned &budget)
{
	while (budget) {
		auto message = reader_.next();
		if (!message)
			break;
		const auto reply = callbacks_.message(*message);
		budget -= std::min(budget, message->cost);
		if (!socket_.is_open())
			return false;
		if (!reply.empty())
			send(reply);
		if (!socket_.is_open())
			return false;
	}
	if (reader_.failed()) {
		drop(fmt::format("it sent {}", reader_.reason()));
		return false;
	}
	return true;
}

Connection::Received Connection::receive()
{
	const auto space = reader_.space();
	iovec data{space.data(), space.size()};
	alignas(cmsghdr) char control[CMSG_SPACE(kMaxMessageFds * sizeof(int))];
	msghdr header{};
	header.msg_iov = &data;
	header.msg_iovlen = 1;
	header.msg_control = control;
	header.msg_controllen = sizeof(control);
	const auto size =
		::recvmsg(socket_.native_handle(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (size < 0 && (errno == EAGAIN || errno == EINTR))
		return Received::Nothing;
	if (size <= 0) {
		drop(size ? std::strerror(errno) : "it closed the connection");
		return Received::End;
	}

	std::vector<FileDescriptor> fds;
	for (auto *part = CMSG_FIRSTHDR(&header); part; part = CMSG_NXTHDR(&header, part)) {
		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
			continue;
		for (std::size_t i = 0; i < (part->cmsg_len - CMSG_LEN(0)) / sizeof(int); ++i) {
			int fd;
			std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(fd), sizeof(fd));
			fds.emplace_back(fd);
		}
	}
	if (header.msg_flags & MSG_CTRUNC) {
		// Where there was room for more, the kernel had none to give.
		drop(fds.size() < kMaxMessageFds
			     ? "this process has no descriptor left for those that it sent"
			     : fmt::format("it sent more than {} descriptors at once",
					   kMaxMessageFds));
		return Received::End;
	}
	reader_.filled(static_cast<std::size_t>(size), std::move(fds));
	return Received::Data;
}

std::size_t Connection::try_send(std::span<const std::byte> message)
{
	const auto sent = ::send(socket_.native_handle(), message.data(), message.size(),
				 MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent >= 0)
		return static_cast<std::size_t>(sent);
	if (errno != EAGAIN && errno != EINTR)
		drop(std::strerror(errno));
	return 0;
}

void Connection::send(std::span<const std::byte> message)
{
	std::size_t sent = 0;
	if (unsent_.empty()) {
		sent = try_send(message);
		if (sent == message.size() || !socket_.is_open())
			return;
		first_sent_ = sent;
		wait_writable();
	}
	unsent_.emplace_back(message.begin(), message.end());
	unsent_bytes_ += message.size();
	if (unsent_bytes_ > most_unsent_)
		drop(fmt::format("it leaves {} bytes of replies unread", unsent_bytes_));
}

void Connection::flush()
{
	while (!unsent_.empty()) {
		const auto rest = std::span(std::as_const(unsent_.front())).subspan(first_sent_);
		const auto sent = try_send(rest);
		if (!socket_.is_open())
			return;
		if (sent < rest.size()) {
			first_sent_ += sent;
			return wait_writable();
		}
		unsent_bytes_ -= unsent_.front().size();
		unsent_.pop_front();
		first_sent_ = 0;
	}
}

} // namespace weft::pci
