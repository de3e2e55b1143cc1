// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "base/closing.hpp"

#include <atomic>
#include <set>
#include <thread>

#include <sys/socket.h>
#include <unistd.h>

#include "base/mutex.hpp"
#include "base/descriptor_kind.hpp"

namespace weft
{

namespace
{

Mutex mutex;
std::set<int> to_be_waited_for WEFT_GUARDED_BY(mutex);
std::atomic<std::size_t> noted{0}; // number of the descriptors
std::atomic<std::size_t> under_way{0};

// Returns true for AF_UNIX sockets, whose close() never lingers. io_uring files count as sockets,
// but have no domain.
bool is_local_socket(int fd)
{
	int domain = -1;
	socklen_t size = sizeof(domain);
	return !::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) && domain == AF_UNIX;
}

bool may_wait(int fd)
{
	switch (kind_of(fd)) {
	case DescriptorKind::event:
	case DescriptorKind::pipe:
		return false;
	case DescriptorKind::socket:
		return !is_local_socket(fd);
	case DescriptorKind::other:
		break;
	}
	return !is_of_the_kernel(fd);
}

bool forget(int fd)
{
	if (!noted.load(std::memory_order_acquire))
		return false;
	const MutexLock lock(mutex);
	if (!to_be_waited_for.erase(fd))
		return false;
	noted.fetch_sub(1, std::memory_order_release);
	return true;
}

} // namespace

void note_sent(int fd)
{
	if (!may_wait(fd))
		return;
	const MutexLock lock(mutex);
	if (to_be_waited_for.insert(fd).second)
		noted.fetch_add(1, std::memory_order_release);
}

void close_descriptor(int fd) noexcept
{
	if (!forget(fd)) {
		::close(fd);
		return;
	}
	under_way.fetch_add(1);
	const auto close = [fd] {
		::close(fd);
		under_way.fetch_sub(1);
	};
	try {
		// close() may never return, so the process does not wait for this thread when it
		// exits.
		std::thread(close).detach();
	} catch (...) {
		close();
	}
}

std::size_t closing()
{
	return under_way.load();
}

} // namespace weft
