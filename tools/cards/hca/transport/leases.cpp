// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/hca/transport/leases.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace weft::hca::transport
{

std::shared_ptr<fabric::Lease> Leases::get(Qp &qp, std::uint32_t key,
					   const std::shared_ptr<const MemoryMapping> &mapping)
{
	Qp::LeasedMemory *free = nullptr;
	for (Qp::LeasedMemory &leased : qp.leased) {
		/*
		 * The lease keeps its mapping alive, so no other mapping can have the same address.
		 */
		if (leased.key == key && leased.mapping == mapping.get())
			if (auto lease = leased.lease.lock())
				return lease;
		if (leased.lease.expired())
			free = &leased;
	}
	if (!free) {
		if (qp.leased.size() >= kQpMax)
			return nullptr;
		free = &qp.leased.emplace_back();
	}
	lenders_.insert(&qp);
	const std::uint32_t before = std::exchange(free->key, key);
	drop_if_unused(qp, before);
	by_key_.emplace(slot(key), &qp);
	auto lease = std::make_shared<fabric::Lease>(mapping);
	free->mapping = mapping.get();
	free->lease = lease;
	return lease;
}

void Leases::drop_if_unused(Qp &qp, std::uint32_t key)
{
	const bool used = std::ranges::any_of(qp.leased, [&](const Qp::LeasedMemory &leased) {
		return slot(leased.key) == slot(key);
	});
	if (!used)
		by_key_.erase({slot(key), &qp});
}

void Leases::end(Qp &qp)
{
	for (const Qp::LeasedMemory &leased : qp.leased) {
		if (auto lease = leased.lease.lock())
			lease->end();
		by_key_.erase({slot(leased.key), &qp});
	}
	qp.leased.clear();
	lenders_.erase(&qp);
}

void Leases::end_key(std::uint32_t index)
{
	const std::uint32_t place = memory_.slot(index);
	auto at = by_key_.lower_bound({place, nullptr});
	while (at != by_key_.end() && at->first == place) {
		std::erase_if(at->second->leased, [&](const Qp::LeasedMemory &leased) {
			if (slot(leased.key) != place)
				return false;
			if (auto lease = leased.lease.lock())
				lease->end();
			return true;
		});
		at = by_key_.erase(at);
	}
}

/*
 * Checks each entry once. Drops entries whose packets have arrived, so that the time of the next
 * call is proportional to the data in flight.
 */
void Leases::end_keys_unless(const std::function<bool(std::uint32_t)> &holds)
{
	for (auto at = lenders_.begin(); at != lenders_.end();) {
		Qp &qp = **at;
		end_keys_of(qp, holds);
		at = qp.leased.empty() ? lenders_.erase(at) : std::next(at);
	}
}

void Leases::end_keys_of(Qp &qp, const std::function<bool(std::uint32_t)> &holds)
{
	for (const Qp::LeasedMemory &leased : qp.leased)
		by_key_.erase({slot(leased.key), &qp});
	std::erase_if(qp.leased, [&](const Qp::LeasedMemory &leased) {
		const auto lease = leased.lease.lock();
		if (lease && holds(leased.key))
			return false;
		if (lease)
			lease->end();
		return true;
	});
	for (const Qp::LeasedMemory &leased : qp.leased)
		by_key_.emplace(slot(leased.key), &qp);
}

} // namespace weft::hca::transport
