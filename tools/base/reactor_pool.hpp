// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Threads for many loops that are mostly idle. Each loop gets a new thread, up to a maximum;
// further loops share these threads.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/reactor.hpp"

namespace weft
{

// ReactorPool - used by one thread at a time. The reactors that it has given may outlive it.
class ReactorPool
{
public:
	// @name: of the threads, with a number.
	ReactorPool(std::string name, std::size_t most);

	// Returns the reactor with the fewest users at this moment. A caller is a user as long as
	// it keeps the pointer.
	std::shared_ptr<Reactor> take();

private:
	const std::string name_;
	const std::size_t most_;
	std::vector<std::shared_ptr<Reactor>> reactors_;
};

} // namespace weft
