// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "weft/signals.hpp"

#include <csignal>

#include <sys/signalfd.h>

namespace weft::cli
{

FileDescriptor signal_descriptor(std::initializer_list<int> numbers)
{
	sigset_t set;
	sigemptyset(&set);
	for (int number : numbers)
		sigaddset(&set, number);
	sigprocmask(SIG_BLOCK, &set, nullptr);
	return FileDescriptor(::signalfd(-1, &set, SFD_CLOEXEC));
}

} // namespace weft::cli
