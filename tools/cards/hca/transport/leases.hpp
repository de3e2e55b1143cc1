// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Manages the leases on guest memory that a card has granted to packets in flight. When access to
 * memory is revoked, the leases on it end before the guest is notified: if a QP is reset or fails,
 * or if a key is invalidated or deregistered.
 *
 * A QP has one lease for each key and mapping to which a packet refers. All functions are called on
 * the card's loop.
 */
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <unordered_set>
#include <utility>

#include "base/guest_memory.hpp"
#include "cards/hca/memory.hpp"
#include "cards/hca/transport/qp.hpp"
#include "net/fabric/lease.hpp"

namespace weft::hca::transport
{

class Leases
{
public:
	explicit Leases(const Memory &memory) : memory_(memory) {}

	/* Maximum number of leases of a QP, one per key and mapping. Beyond it, data is copied. */
	static constexpr std::size_t kQpMax = 64;

	/*
	 * Returns a lease for data that @qp sends from a key's memory, or null if the QP has too
	 * many.
	 */
	std::shared_ptr<fabric::Lease> get(Qp &qp, std::uint32_t key,
					   const std::shared_ptr<const MemoryMapping> &mapping);

	/*
	 * End all leases of a QP, of a key (by its index), or of each key that is no longer valid.
	 */
	void end(Qp &qp);
	void end_key(std::uint32_t index);
	void end_keys_unless(const std::function<bool(std::uint32_t key)> &holds);

private:
	std::uint32_t slot(std::uint32_t key) const { return memory_.slot(key >> 8); }
	void drop_if_unused(Qp &qp, std::uint32_t key);
	void end_keys_of(Qp &qp, const std::function<bool(std::uint32_t key)> &holds);

	const Memory &memory_;
	/* QPs that have entries for keys. */
	std::unordered_set<Qp *> lenders_;
	/* QPs that have an entry for a key, ordered by the key's position in the table. */
	std::set<std::pair<std::uint32_t, Qp *>> by_key_;
};

} // namespace weft::hca::transport
