// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "bus/pci/testing/client_socket.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include <poll.h>
#include <sys/socket.h>

namespace weft::testing
{

void append_raw(Bytes &bytes, const void *data, std::size_t size)
{
	const auto *begin = static_cast<const std::byte *>(data);
	bytes.insert(bytes.end(), begin, begin + size);
}

namespace
{

bool ready(const FileDescriptor &socket, short events)
{
	pollfd state{socket.get(), events, 0};
	return ::poll(&state, 1, 0) > 0;
}

} // namespace

std::pair<FileDescriptor, FileDescriptor> ClientSocket::make_sockets()
{
	int ends[2];
	if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		throw std::system_error(errno, std::generic_category(), "socketpair");
	return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

void ClientSocket::send_raw(std::span<const std::byte> bytes, const std::vector<int> &fds)
{
	Bytes control(fds.empty() ? 0 : CMSG_SPACE(fds.size() * sizeof(int)));
	while (!bytes.empty()) {
		iovec data{const_cast<std::byte *>(bytes.data()), bytes.size()};
		msghdr header{};
		header.msg_iov = &data;
		header.msg_iovlen = 1;
		if (!control.empty()) {
			header.msg_control = control.data();
			header.msg_controllen = control.size();
			auto *part = CMSG_FIRSTHDR(&header);
			part->cmsg_level = SOL_SOCKET;
			part->cmsg_type = SCM_RIGHTS;
			part->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
			std::memcpy(CMSG_DATA(part), fds.data(), fds.size() * sizeof(int));
		}
		const auto sent = ::sendmsg(socket_.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent < 0 && errno == EAGAIN) {
			if (!wait_until([this] { return ready(socket_, POLLOUT); }, POLLOUT))
				throw std::runtime_error("the server reads nothing");
			continue;
		}
		if (sent < 0 && (errno == EPIPE || errno == ECONNRESET))
			throw HungUp("the server hung up");
		if (sent < 0)
			throw std::system_error(errno, std::generic_category(), "sendmsg");
		bytes = bytes.subspan(static_cast<std::size_t>(sent));
		control.clear();
	}
}

bool ClientSocket::wait_until(const std::function<bool()> &done, short events)
{
	if (loop_)
		return loop_->run_until(done, time_limit_);
	const auto deadline = Environment::host().now() + time_limit_;
	while (!done()) {
		const auto left = std::chrono::ceil<std::chrono::milliseconds>(
			deadline - Environment::host().now());
		pollfd state{socket_.get(), events, 0};
		if (left.count() <= 0 || ::poll(&state, 1, static_cast<int>(left.count())) == 0)
			return done();
	}
	return true;
}

bool ClientSocket::readable()
{
	return ready(socket_, POLLIN);
}

// Discards data that the server sent before it closed the connection.
bool ClientSocket::closed()
{
	std::array<char, 4096> bytes;
	ssize_t got;
	do
		got = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
	while (got > 0);
	return got == 0 || errno == ECONNRESET;
}

void ClientSocket::receive_raw(std::span<std::byte> data)
{
	while (!data.empty()) {
		if (!wait_until([this] { return readable(); }, POLLIN))
			throw std::runtime_error("no reply in time");
		iovec part{data.data(), data.size()};
		alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
		msghdr header{};
		header.msg_iov = &part;
		header.msg_iovlen = 1;
		header.msg_control = control;
		header.msg_controllen = sizeof(control);
		const auto got = ::recvmsg(socket_.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		if (const cmsghdr *carried = got > 0 ? CMSG_FIRSTHDR(&header) : nullptr;
		    carried && carried->cmsg_type == SCM_RIGHTS) {
			int fd;
			std::memcpy(&fd, CMSG_DATA(carried), sizeof(fd));
			received_.emplace_back(fd);
		}
		if (got == 0 || (got < 0 && errno == ECONNRESET))
			throw HungUp("the server hung up");
		if (got < 0)
			throw std::system_error(errno, std::generic_category(), "recv");
		data = data.subspan(static_cast<std::size_t>(got));
	}
}

bool ClientSocket::wait_closed()
{
	return wait_until([this] { return closed(); }, POLLIN);
}

bool ClientSocket::quiet()
{
	if (loop_)
		loop_->poll();
	return !readable();
}

} // namespace weft::testing
