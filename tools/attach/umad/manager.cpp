// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Sets the IsSM bit of a port for a program. A program sets the bit by opening the file that
// umad_get_issm_path() returns, and clears it by closing the file. That file does not exist. The
// preloaded library, of which this code is a part, replaces open() for the path of that file.
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/umad/abi.hpp"
#include "attach/umad/client.hpp"

namespace
{

using namespace weft::attach;

constexpr char kPrefix[] = "/dev/infiniband/issm";
constexpr int kNonBlocking = 04000;   // O_NONBLOCK; <fcntl.h> declares open() itself
constexpr int kCreate = 0100;         // O_CREAT
constexpr int kTemporary = 020200000; // O_TMPFILE
constexpr int kLargeFile = 0100000;   // O_LARGEFILE

int become_manager(const char *number, int flags)
{
	char *end;
	const long port = std::strtol(number, &end, 10);
	if (end == number || *end || port < 0 || port > UMAD_CA_MAX_PORTS) {
		errno = ENOENT;
		return -1;
	}
	Request request{};
	request.kind = Kind::become_sm;
	request.port = static_cast<std::uint32_t>(port);
	request.reserved = (flags & kNonBlocking) == 0;
	Reply reply{};
	const int socket = umad::ask(request, &reply, sizeof(reply));
	if (socket < 0 || reply.error) {
		if (socket >= 0)
			::close(socket);
		errno = socket < 0 ? -socket : reply.error;
		return -1;
	}
	return socket;
}

int open_any(const char *path, int flags, unsigned mode)
{
	if (path && umad::is_attached() && std::strncmp(path, kPrefix, sizeof(kPrefix) - 1) == 0)
		return become_manager(path + sizeof(kPrefix) - 1, flags);
	using Open = int (*)(const char *, int, ...);
	static Open next; // all threads find the same function, so a race is harmless
	Open found = __atomic_load_n(&next, __ATOMIC_RELAXED);
	if (!found) {
		found = reinterpret_cast<Open>(::dlsym(RTLD_NEXT, "open"));
		__atomic_store_n(&next, found, __ATOMIC_RELAXED);
	}
	return found(path, flags, mode);
}

bool has_mode(int flags)
{
	return (flags & kCreate) != 0 || (flags & kTemporary) == kTemporary;
}

} // namespace

extern "C" {

int umad_get_issm_path(const char *ca_name, int portnum, char path[], int max)
{
	Description description{};
	if (!umad::is_ca_name(ca_name) || umad::describe(description))
		return -ENODEV;
	const int index = umad::find_port(description, portnum);
	if (index < 0)
		return -EINVAL;
	std::snprintf(path, static_cast<size_t>(max), "%s%u", kPrefix,
		      description.port[index].number);
	return 0;
}

// The names in the C library of calls with and without large files, and with _FORTIFY_SOURCE.
#pragma GCC visibility push(default)
int weft_open(const char *path, int flags, ...) __asm__("open");
int weft_open64(const char *path, int flags, ...) __asm__("open64");
int weft_open_2(const char *path, int flags) __asm__("__open_2");
int weft_open64_2(const char *path, int flags) __asm__("__open64_2");
#pragma GCC visibility pop

int weft_open(const char *path, int flags, ...)
{
	va_list arguments;
	va_start(arguments, flags);
	const unsigned mode = has_mode(flags) ? va_arg(arguments, unsigned) : 0;
	va_end(arguments);
	return open_any(path, flags, mode);
}

int weft_open64(const char *path, int flags, ...)
{
	va_list arguments;
	va_start(arguments, flags);
	const unsigned mode = has_mode(flags) ? va_arg(arguments, unsigned) : 0;
	va_end(arguments);
	return open_any(path, flags | kLargeFile, mode);
}

int weft_open_2(const char *path, int flags)
{
	return open_any(path, flags, 0);
}

int weft_open64_2(const char *path, int flags)
{
	return open_any(path, flags | kLargeFile, 0);
}

} // extern "C"
