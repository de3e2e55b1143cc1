// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Threads for many loops that are mostly idle. Each loop gets a new thread, up to a maximum; more
// loops share these threads.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/reactor.hpp"

namespace weft
{

// ReactorPool - may be used by one thread at a time. Reactors that take() has returned may outlive
// it.
class ReactorPool
{
public:
	// @name is the threads' name, to which a number is appended.
	ReactorPool(std::string name, std::size_t most);

	// Returns the reactor that has the fewest users at the moment. A caller is a user as long
	// as it keeps the pointer.
	std::shared_ptr<Reactor> take();

private:
	const std::string name_;
	const std::size_t most_;
	std::vector<std::shared_ptr<Reactor>> reactors_;
};

} // namespace weft
