// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/fabric/timeline.hpp"

#include <algorithm>
#include <cstdint>

#include "base/reactor_pool.hpp"

namespace weft::fabric
{

Timeline::Timeline(Reactor *reactor, std::size_t threads)
{
	const std::size_t count = reactor ? 1 : std::max<std::size_t>(threads, 1);
	for (std::size_t i = 0; i < count; i++)
		queues_.push_back(std::make_unique<TaskQueue>(reactor));
}

std::size_t Timeline::default_threads()
{
	return std::clamp<std::size_t>(cpu_count(), 1, 32);
}

/*
 * Chooses the queue by the owner's address, multiplied by 2^64 divided by the golden ratio: the
 * upper half of the product differs between objects that are allocated one after the other.
 */
TaskQueue &Timeline::queue_of(const void *owner)
{
	const std::uint64_t mixed = reinterpret_cast<std::uintptr_t>(owner) * 0x9e3779b97f4a7c15;
	return *queues_[(mixed >> 32) * queues_.size() >> 32];
}

std::size_t Timeline::planned()
{
	std::size_t sum = 0;
	for (const auto &queue : queues_)
		sum += queue->planned();
	return sum;
}

void Timeline::stop()
{
	for (const auto &queue : queues_)
		queue->stop();
}

} // namespace weft::fabric
