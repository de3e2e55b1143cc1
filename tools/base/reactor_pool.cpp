// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "base/reactor_pool.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <unistd.h>

namespace weft
{

std::size_t cpu_count()
{
	return static_cast<std::size_t>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 0L));
}

ReactorPool::ReactorPool(std::string name, std::size_t most, Environment &environment)
    : name_(std::move(name)), most_(std::max<std::size_t>(most, 1)), environment_(environment)
{
}

std::shared_ptr<Reactor> ReactorPool::take()
{
	// Only the pool has a reference to an unused one.
	const auto unused = std::ranges::find(reactors_, 1, &std::shared_ptr<Reactor>::use_count);
	if (unused != reactors_.end())
		return *unused;
	if (reactors_.size() < most_)
		return reactors_.emplace_back(
			std::make_shared<Reactor>(name_ + std::to_string(reactors_.size() + 1),
						  Reactor::Drive::thread, environment_));
	std::vector<long> ranks;
	for (const auto &reactor : reactors_)
		ranks.push_back(std::lround(reactor->load() * 10) + reactor.use_count());
	return reactors_[static_cast<std::size_t>(std::ranges::min_element(ranks) - ranks.begin())];
}

} // namespace weft
