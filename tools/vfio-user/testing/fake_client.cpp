// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "vfio-user/testing/fake_client.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include <poll.h>
#include <sys/socket.h>

namespace weft::testing
{

using namespace vfio_user;

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

std::pair<FileDescriptor, FileDescriptor> FakeClient::make_sockets()
{
	int ends[2];
	if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		throw std::system_error(errno, std::generic_category(), "socketpair");
	return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

void FakeClient::send(Command command, const Bytes &payload, const std::vector<int> &fds,
		      std::uint32_t flags)
{
	const auto size = static_cast<std::uint32_t>(sizeof(Header) + payload.size());
	const Header header{next_id_++, static_cast<std::uint16_t>(command), size, flags, 0};
	send_raw(bytes_of(header, payload), fds);
}

void FakeClient::send_raw(std::span<const std::byte> bytes, const std::vector<int> &fds)
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

bool FakeClient::wait_until(const std::function<bool()> &done, short events)
{
	if (loop_)
		return loop_->run_until(done, patience_);
	const auto deadline = Clock::now() + patience_;
	while (!done()) {
		const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
		pollfd state{socket_.get(), events, 0};
		if (left.count() <= 0 || ::poll(&state, 1, static_cast<int>(left.count())) == 0)
			return done();
	}
	return true;
}

bool FakeClient::readable()
{
	return ready(socket_, POLLIN);
}

// What the server sent before it closed is thrown away.
bool FakeClient::closed()
{
	std::array<char, 4096> bytes;
	ssize_t got;
	do
		got = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
	while (got > 0);
	return got == 0 || errno == ECONNRESET;
}

FakeClient::Reply FakeClient::receive()
{
	const auto take = [this](void *data, std::size_t size) {
		auto *to = static_cast<std::byte *>(data);
		while (size) {
			if (!wait_until([this] { return readable(); }, POLLIN))
				throw std::runtime_error("no reply in time");
			const auto got = ::recv(socket_.get(), to, size, MSG_DONTWAIT);
			if (got == 0 || (got < 0 && errno == ECONNRESET))
				throw HungUp("the server hung up");
			if (got < 0)
				throw std::system_error(errno, std::generic_category(), "recv");
			to += got;
			size -= static_cast<std::size_t>(got);
		}
	};
	Reply reply{};
	take(&reply.header, sizeof(reply.header));
	if (reply.header.size < sizeof(Header) || reply.header.size > kMaxMessage)
		throw std::runtime_error("a reply of impossible size");
	reply.payload.resize(reply.header.size - sizeof(Header));
	take(reply.payload.data(), reply.payload.size());
	const bool error = reply.header.flags & kFlagError;
	if (error != (reply.header.error != 0) || (error && !reply.payload.empty()))
		throw std::runtime_error("an error reply that is not well-formed");
	return reply;
}

FakeClient::Reply FakeClient::call(Command command, const Bytes &payload,
				   const std::vector<int> &fds)
{
	const auto id = next_id_;
	send(command, payload, fds);
	auto reply = receive();
	if (reply.header.id != id || reply.header.command != static_cast<std::uint16_t>(command) ||
	    (reply.header.flags & ~kFlagError) != kFlagTypeReply)
		throw std::runtime_error("a reply that is not to this request");
	return reply;
}

FakeClient::Reply FakeClient::greet()
{
	return call(Command::Version,
		    bytes_of(VersionHeader{0, 1},
			     R"({"capabilities": {"max_msg_fds": 8, "max_data_xfer_size": 1048576,)"
			     R"( "pgsizes": 4096, "max_dma_maps": 65535,)"
			     R"( "write_multiple": true}})"));
}

bool FakeClient::wait_closed()
{
	return wait_until([this] { return closed(); }, POLLIN);
}

bool FakeClient::quiet()
{
	if (loop_)
		loop_->poll();
	return !readable();
}

void FakeClient::must(const Reply &reply, const char *what)
{
	if (reply.error())
		throw std::system_error(static_cast<int>(reply.error()), std::generic_category(),
					what);
}

void FakeClient::map(std::uint64_t address, std::uint64_t size, int fd, std::uint64_t offset,
		     std::uint32_t flags)
{
	const DmaMap section{sizeof(DmaMap), flags, offset, address, size};
	must(call(Command::DmaMap, bytes_of(section),
		  fd < 0 ? std::vector<int>{} : std::vector<int>{fd}),
	     "DMA_MAP");
}

Bytes FakeClient::read(std::uint32_t region, std::uint64_t offset, std::uint32_t count)
{
	const RegionAccess access{offset, region, count};
	auto reply = call(Command::RegionRead, bytes_of(access));
	must(reply, "REGION_READ");
	if (reply.payload.size() != sizeof(RegionAccess) + count)
		throw std::runtime_error("a REGION_READ reply of the wrong size");
	reply.payload.erase(reply.payload.begin(), reply.payload.begin() + sizeof(RegionAccess));
	return reply.payload;
}

void FakeClient::write(std::uint32_t region, std::uint64_t offset, const Bytes &data)
{
	const RegionAccess access{offset, region, static_cast<std::uint32_t>(data.size())};
	must(call(Command::RegionWrite, bytes_of(access, data)), "REGION_WRITE");
}

} // namespace weft::testing
