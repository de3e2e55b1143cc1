// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "base/reactor_pool.hpp"

#include <algorithm>
#include <utility>

#include <unistd.h>

namespace weft
{

std::size_t cpu_count()
{
	return static_cast<std::size_t>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 0L));
}

ReactorPool::ReactorPool(std::string name, std::size_t most)
    : name_(std::move(name)), most_(std::max<std::size_t>(most, 1))
{
}

std::shared_ptr<Reactor> ReactorPool::take()
{
	const auto least =
		std::ranges::min_element(reactors_, {}, &std::shared_ptr<Reactor>::use_count);
	// only the pool has a reference
	const bool free = least != reactors_.end() && least->use_count() == 1;
	if (free || reactors_.size() == most_)
		return *least;
	return reactors_.emplace_back(std::make_shared<Reactor>(
		name_ + std::to_string(reactors_.size() + 1), Reactor::Drive::thread));
}

} // namespace weft
