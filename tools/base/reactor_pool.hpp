// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides threads for many loops that are mostly idle. Each loop gets a new thread, up to a
// maximum; more loops share these threads. A loop stays on the thread that it was given.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/reactor.hpp"

namespace weft
{

// Returns the number of CPUs of this host, or 0 if it is not known.
std::size_t cpu_count();

// Returns the maximum number of threads for loops that guests can keep busy, on a host with this
// number of CPUs, or 0 if it is not known. There are more threads than a small host has CPUs, so
// that a busy loop delays few others.
constexpr std::size_t most_threads(std::size_t cpus)
{
	return std::max<std::size_t>(cpus, 32);
}

// ReactorPool - may be used by one thread at a time. Reactors that take() has returned may outlive
// it.
class ReactorPool
{
public:
	// @name is the threads' name, to which a number is appended. @environment must outlive the
	// reactors.
	ReactorPool(std::string name, std::size_t most,
		    Environment &environment = Environment::host());

	// Returns a reactor without users, or a new one, if possible. Otherwise returns the one for
	// which the sum of its load at the moment and of a tenth for each user is least, so that
	// many new loops, which have no load yet, do not all get the same reactor. Loads are
	// rounded to tenths, so that a small difference does not count. A caller is a user as long
	// as it keeps the pointer.
	std::shared_ptr<Reactor> take();

private:
	const std::string name_;
	const std::size_t most_;
	Environment &environment_;
	std::vector<std::shared_ptr<Reactor>> reactors_;
};

} // namespace weft
