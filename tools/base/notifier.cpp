// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "base/notifier.hpp"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <system_error>

#include <fcntl.h>
#include <linux/aio_abi.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

namespace weft
{

namespace
{

[[noreturn]] void fail(const char *what)
{
	throw std::system_error(errno, std::generic_category(), what);
}

/*
 * Increments eventfds in the way the kernel does, which never waits. write(2) would wait if the
 * counter is full and the file has no O_NONBLOCK flag, which other processes can clear. A request
 * of asynchronous I/O names an eventfd that the kernel signals on completion (IOCB_FLAG_RESFD).
 * Reading zero bytes of an empty file completes before io_submit(2) returns.
 *
 * The size of a context counts against the host's limit (fs.aio-max-nr, 65536 by default). It is
 * small, because a daemon has a thread for each of its cards. The kernel allocates at least a page
 * of results, whatever the requested size.
 */
class EventSignals
{
public:
	// Returns the instance of the calling thread.
	static EventSignals &own()
	{
		thread_local EventSignals signals;
		return signals;
	}

	void add_one(int event)
	{
		iocb request{};
		request.aio_lio_opcode = IOCB_CMD_PREAD;
		request.aio_fildes = static_cast<std::uint32_t>(nothing().get());
		request.aio_flags = IOCB_FLAG_RESFD;
		request.aio_resfd = static_cast<std::uint32_t>(event);
		iocb *const requests = &request;
		// If there is no space for another result, remove the results of earlier requests.
		while (::syscall(SYS_io_submit, context_, 1, &requests) < 0 && errno == EAGAIN &&
		       forget_results())
			;
	}

private:
	static constexpr unsigned kDepth = 1;

	EventSignals()
	{
		nothing(); // fails now rather than in add_one() if the process lacks a resource
		if (::syscall(SYS_io_setup, kDepth, &context_))
			fail("io_setup");
	}
	~EventSignals() { ::syscall(SYS_io_destroy, context_); }

	// Returns an empty file, which all threads read.
	static const FileDescriptor &nothing()
	{
		static const FileDescriptor kFile = [] {
			FileDescriptor made(::memfd_create("nothing", MFD_CLOEXEC));
			if (!made)
				fail("memfd_create");
			return made;
		}();
		return kFile;
	}

	bool forget_results()
	{
		std::array<io_event, 128> results;
		timespec now{};
		return ::syscall(SYS_io_getevents, context_, 0, results.size(), results.data(),
				 &now) > 0;
	}

	aio_context_t context_ = 0;
};

// Opens the file again, because the flags of the received open file are shared with the sender.
FileDescriptor reopen_for_writing(int fd)
{
	std::array<char, 32> link;
	std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", fd);
	FileDescriptor own(::open(link.data(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
	if (!own)
		fail("a pipe of a client's");
	return own;
}

bool writable(int fd)
{
	const int flags = ::fcntl(fd, F_GETFL);
	return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

} // namespace

std::optional<Notifier> Notifier::take(FileDescriptor fd, Kind kind)
{
	const DescriptorKind found = kind_of(fd.get());
	switch (found) {
	case DescriptorKind::event:
		if (kind != Kind::event)
			break;
		// fails now rather than in ring() if the process lacks a resource
		EventSignals::own();
		return Notifier(std::move(fd), found);
	case DescriptorKind::pipe:
		if (kind != Kind::channel || !writable(fd.get()))
			break;
		return Notifier(reopen_for_writing(fd.get()), found);
	case DescriptorKind::socket:
		if (kind != Kind::channel || !make_send_only(fd.get()))
			break;
		return Notifier(std::move(fd), found);
	case DescriptorKind::other:
		break;
	}
	return std::nullopt;
}

void Notifier::ring(std::span<const std::byte> message) const
{
	if (kind_ == DescriptorKind::event)
		return EventSignals::own().add_one(fd_.get());
	// A local stream socket sends such a short message completely or not at all.
	[[maybe_unused]] const auto written =
		kind_ == DescriptorKind::pipe ? ::write(fd_.get(), message.data(), message.size())
					      : ::send(fd_.get(), message.data(), message.size(),
						       MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool take_count(int event)
{
	std::uint64_t count;
	const iovec place{&count, sizeof(count)};
	return ::preadv2(event, &place, 1, -1, RWF_NOWAIT) == sizeof(count);
}

} // namespace weft
