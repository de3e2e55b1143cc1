// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Records when weftd gives time slices to guests and when they end, and the CPU time that all
// processes of the lab have used until then. This library is preloaded into an unmodified weftd
// (LD_PRELOAD), so that weftd needs no option for a measurement. record_traces.py uses it.
//
// WEFT_SLICES_FILE names the file of records. WEFT_SLICES_CPU names a file that contains the CPU
// time in nanoseconds, such as cpuacct.usage of a control group.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <optional>
#include <string>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "virtual_time/protocol.hpp"

namespace
{

using weft::virtual_time::Message;
using weft::virtual_time::Operation;

// A message of the time server, with the times at which weftd sent or received it.
struct Record {
	std::uint32_t operation;
	std::int32_t descriptor;
	std::uint64_t time; // as in the message
	std::uint64_t real;
	std::uint64_t cpu;
};

template<typename Function>
Function *next(const char *name)
{
	return reinterpret_cast<Function *>(::dlsym(RTLD_NEXT, name));
}

class Recorder
{
public:
	Recorder()
	    : file_(open("WEFT_SLICES_FILE", O_WRONLY | O_CREAT | O_TRUNC)),
	      cpu_(open("WEFT_SLICES_CPU", O_RDONLY))
	{
	}

	~Recorder() { flush(); }

	void add(int descriptor, const Message &message)
	{
		if (file_ < 0)
			return;
		timespec real{};
		::clock_gettime(CLOCK_MONOTONIC, &real);
		records_[size_++] = {static_cast<std::uint32_t>(message.operation), descriptor,
				     message.time,
				     static_cast<std::uint64_t>(real.tv_sec) * 1'000'000'000 +
					     static_cast<std::uint64_t>(real.tv_nsec),
				     cpu()};
		if (size_ == records_.size())
			flush();
	}

private:
	static int open(const char *variable, int flags)
	{
		const char *const path = std::getenv(variable);
		return path ? ::open(path, flags | O_CLOEXEC, 0600) : -1;
	}

	std::uint64_t cpu() const
	{
		std::array<char, 32> text{};
		if (cpu_ < 0 || ::pread(cpu_, text.data(), text.size() - 1, 0) <= 0)
			return 0;
		return std::strtoull(text.data(), nullptr, 10);
	}

	void flush()
	{
		if (file_ >= 0 && size_ &&
		    ::write(file_, records_.data(), size_ * sizeof(Record)) < 0)
			file_ = -1;
		size_ = 0;
	}

	int file_;
	int cpu_;
	std::array<Record, 4096> records_;
	std::size_t size_ = 0;
};

Recorder recorder;

void look(int descriptor, const void *data, ssize_t size)
{
	if (size != sizeof(Message))
		return;
	Message message;
	std::memcpy(&message, data, sizeof(message));
	if (message.operation == Operation::run || message.operation == Operation::wait ||
	    message.operation == Operation::start)
		recorder.add(descriptor, message);
}

} // namespace

extern "C" ssize_t send(int descriptor, const void *data, size_t size, int flags)
{
	static const auto kReal = next<decltype(send)>("send");
	look(descriptor, data, static_cast<ssize_t>(size));
	return kReal(descriptor, data, size, flags);
}

extern "C" ssize_t recv(int descriptor, void *data, size_t size, int flags)
{
	static const auto kReal = next<decltype(recv)>("recv");
	const ssize_t got = kReal(descriptor, data, size, flags);
	look(descriptor, data, got);
	return got;
}
