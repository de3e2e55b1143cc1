// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "hca/transport/leases.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace weft::hca::transport
{

std::shared_ptr<fabric::Lease> Leases::get(Qp &qp, std::uint32_t key,
					   const std::shared_ptr<const MemoryMapping> &mapping)
{
	Qp::Lent *free = nullptr;
	for (Qp::Lent &lent : qp.lent) {
		/* While the lease is there so is its mapping: no other has the same address. */
		if (lent.key == key && lent.mapping == mapping.get())
			if (auto lease = lent.lease.lock())
				return lease;
		if (lent.lease.expired())
			free = &lent;
	}
	if (!free) {
		if (qp.lent.size() >= qp_max)
			return nullptr;
		free = &qp.lent.emplace_back();
	}
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
	const bool used = std::ranges::any_of(
		qp.lent, [&](const Qp::Lent &lent) { return slot(lent.key) == slot(key); });
	if (!used)
		by_key_.erase({slot(key), &qp});
}

void Leases::end(Qp &qp)
{
	for (const Qp::Lent &lent : qp.lent) {
		if (auto lease = lent.lease.lock())
			lease->end();
		by_key_.erase({slot(lent.key), &qp});
	}
	qp.lent.clear();
}

void Leases::end_key(std::uint32_t index)
{
	const std::uint32_t place = memory_.slot(index);
	auto at = by_key_.lower_bound({place, nullptr});
	while (at != by_key_.end() && at->first == place) {
		std::erase_if(at->second->lent, [&](const Qp::Lent &lent) {
			if (slot(lent.key) != place)
				return false;
			if (auto lease = lent.lease.lock())
				lease->end();
			return true;
		});
		at = by_key_.erase(at);
	}
}

void Leases::end_keys_unless(const std::function<bool(std::uint32_t)> &holds)
{
	std::vector<std::uint32_t> gone;
	for (const auto &[place, qp] : by_key_)
		for (const Qp::Lent &lent : qp->lent)
			if (slot(lent.key) == place && !lent.lease.expired() && !holds(lent.key))
				gone.push_back(place);
	for (const std::uint32_t index : gone)
		end_key(index);
}

} // namespace weft::hca::transport
