// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "weftd/keeper_socket.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <spdlog/spdlog.h>

#include "weftd/lab_runtime.hpp"

namespace weft::weftd
{

namespace
{

// Maximum length of a record. A record consists of a line with a verb and the card's name, followed
// by a message or the ID of a connection. The largest message is the one with the client's version.
constexpr std::size_t kLongestRecord = 16 << 10;
// Number of characters of an invalid record that are logged.
constexpr std::size_t kMostLogged = 64;
constexpr std::string_view kConnected = "connected", kReceived = "received", kGone = "gone",
			   kRestore = "restore", kAdopt = "adopt";

} // namespace

KeeperSocket::KeeperSocket(int fd) : socket_(fd)
{
	int type = 0;
	socklen_t size = sizeof(type);
	if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size))
		throw std::system_error(errno, std::generic_category(), "--keeper");
	if (type != SOCK_SEQPACKET)
		throw std::system_error(EPROTOTYPE, std::generic_category(), "--keeper");
	::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

KeeperSocket::~KeeperSocket() = default;

void KeeperSocket::connected(const std::string &name, const std::string &id, int socket)
{
	send(kConnected, name, {std::as_bytes(std::span(id))}, {socket});
}

void KeeperSocket::received(const std::string &name, const pci::Message &message)
{
	std::vector<int> fds;
	for (const FileDescriptor &fd : message.fds)
		fds.push_back(fd.get());
	send(kReceived, name, {message.head, message.payload}, fds);
}

void KeeperSocket::gone(const std::string &name, const std::string &id)
{
	send(kGone, name, {std::as_bytes(std::span(id))}, {});
}

// Sends a record. Waits if the program is slow, because the program must have the message before
// the client gets a reply.
void KeeperSocket::send(std::string_view what, const std::string &name,
			const std::vector<std::span<const std::byte>> &parts,
			const std::vector<int> &fds)
{
	std::string line = fmt::format("{} {}\n", what, name);
	std::vector<iovec> data{{line.data(), line.size()}};
	for (const auto part : parts)
		data.push_back({const_cast<std::byte *>(part.data()), part.size()});
	alignas(cmsghdr) char control[CMSG_SPACE(pci::kMaxMessageFds * sizeof(int))] = {};
	msghdr header{};
	header.msg_iov = data.data();
	header.msg_iovlen = data.size();
	if (!fds.empty() && fds.size() <= pci::kMaxMessageFds) {
		header.msg_control = control;
		header.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
		cmsghdr *const part = CMSG_FIRSTHDR(&header);
		part->cmsg_level = SOL_SOCKET;
		part->cmsg_type = SCM_RIGHTS;
		part->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
		std::memcpy(CMSG_DATA(part), fds.data(), fds.size() * sizeof(int));
	}
	while (::sendmsg(socket_.get(), &header, MSG_NOSIGNAL) < 0)
		if (errno != EINTR) {
			spdlog::warn("keeper: {} of {} could not be passed on ({})", what, name,
				     std::strerror(errno));
			break;
		}
}

void KeeperSocket::begin(Loop &loop, LabRuntime &runtime)
{
	loop_ = &loop;
	loop.run([&] {
		watch_ = std::make_unique<Watch>(loop, socket_.get(), Watch::kReadable,
						 [this, &runtime](unsigned) { receive(runtime); });
	});
}

void KeeperSocket::end()
{
	if (loop_)
		loop_->run([this] { watch_.reset(); });
	loop_ = nullptr;
}

void KeeperSocket::receive(LabRuntime &runtime)
{
	std::array<char, kLongestRecord> record;
	iovec data{record.data(), record.size()};
	alignas(cmsghdr) char control[CMSG_SPACE(pci::kMaxMessageFds * sizeof(int))];
	msghdr header{};
	header.msg_iov = &data;
	header.msg_iovlen = 1;
	header.msg_control = control;
	header.msg_controllen = sizeof(control);
	const auto size = ::recvmsg(socket_.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (size < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (size <= 0) {
		spdlog::info("keeper: it has ended");
		watch_->want(Watch::kNothing);
		return;
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
	take(runtime, std::string_view(record.data(), static_cast<std::size_t>(size)),
	     std::move(fds), header.msg_flags & (MSG_TRUNC | MSG_CTRUNC));
}

// Handles a record. A client is adopted with all its messages or not at all: if only a part of its
// memory were mapped, the guest would get inexplicable errors.
void KeeperSocket::take(LabRuntime &runtime, std::string_view record,
			std::vector<FileDescriptor> fds, bool cut)
{
	const auto line = record.substr(0, record.find('\n'));
	const auto rest = record.substr(std::min(line.size() + 1, record.size()));
	const auto verb = line.substr(0, line.find(' '));
	const std::string name(line.substr(std::min(verb.size() + 1, line.size())));
	const auto host = std::ranges::find(runtime.hosts(), name,
					    [](const auto &each) { return each->name; });
	const bool served = host != runtime.hosts().end() && (*host)->server;
	if (verb == kAdopt) {
		auto kept = setup_.extract(name);
		// A record that is too long was truncated, so its ID is not valid.
		const std::string id(cut ? std::string_view() : rest);
		if (!served)
			spdlog::warn("keeper: '{}' is the name of no card",
				     std::string_view(name).substr(0, kMostLogged));
		else if (cut || fds.size() != 1)
			spdlog::warn("keeper: {} was not passed on with one descriptor", name);
		else if (kept.empty())
			return (*host)->server->adopt(std::move(fds.front()), {}, id);
		else if (!kept.mapped().refused)
			return (*host)->server->adopt(std::move(fds.front()),
						      std::move(kept.mapped().messages), id);
		// Otherwise the program would keep the connection open, and the client would wait
		// for replies.
		gone(name, id);
	} else if (!served) {
		spdlog::warn("keeper: it sent an invalid record, '{}'",
			     line.substr(0, kMostLogged));
	} else if (cut) {
		refuse(name, "a record is too long");
	} else if (verb != kRestore) {
		refuse(name, "a record is invalid");
	} else {
		keep(name, rest, std::move(fds));
	}
}

void KeeperSocket::keep(const std::string &name, std::string_view message,
			std::vector<FileDescriptor> fds)
{
	Setup &setup = setup_[name];
	if (setup.refused)
		return;
	if (setup.messages.size() == kMostRestored)
		return refuse(name, fmt::format("there are more than {} messages", kMostRestored));
	const auto bytes = std::as_bytes(std::span(message));
	setup.messages.push_back({{bytes.begin(), bytes.end()}, std::move(fds)});
}

void KeeperSocket::refuse(const std::string &name, std::string_view reason)
{
	spdlog::warn("keeper: the connection of {} will be refused: {}", name, reason);
	Setup &setup = setup_[name];
	setup.messages.clear();
	setup.refused = true;
}

} // namespace weft::weftd
