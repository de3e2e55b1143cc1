// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Moves data between a guest and packets: gather lists to payloads, payloads to scatter lists.
 */
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cards/hca/memory.hpp"
#include "cards/hca/transport/leases.hpp"
#include "cards/hca/transport/qp.hpp"
#include "cards/hca/requests.hpp"
#include "net/fabric/packet.hpp"

namespace weft::hca::transport
{

/* Bytes on the heap that a payload shares. */
struct OwnedBytes {
	std::shared_ptr<std::byte[]> data;
	std::size_t size = 0;

	static OwnedBytes allocate(std::size_t size)
	{
		return {std::make_shared_for_overwrite<std::byte[]>(size), size};
	}
	std::span<std::byte> span() const { return {data.get(), size}; }
	fabric::Payload payload() const;
};

class DataMover
{
public:
	DataMover(Memory &memory, Leases &leases) : memory_(memory), leases_(leases) {}

	/**
	 * refer() - a payload that refers to the memory of a request
	 * @qp: that sends it; it lends the memory, until one of its rights to it ends
	 * @request: whose data; bytes that lay in the WQE itself are copied
	 * @offset, @length: which part of it; not beyond request.length
	 *
	 * Errors are those of the first key that fails.
	 */
	MemoryError refer(Qp &qp, const SendRequest &request, std::uint64_t offset,
			  std::uint32_t length, fabric::Payload &out);
	/* A payload that refers to memory behind a key. */
	MemoryError refer(Qp &qp, const KeyUse &use, std::uint64_t address, std::uint32_t length,
			  fabric::Payload &out);

	/*
	 * Copy out.size() bytes of the data of a request, from @offset on; not beyond its length.
	 */
	MemoryError gather(const SendRequest &request, std::uint64_t offset, const KeyUse &user,
			   std::span<std::byte> out);

	/**
	 * scatter() - write a payload over a scatter list
	 * @offset: bytes of the list to be passed over
	 *
	 * Leaves out data that does not fit: callers have compared the sizes. On an error nothing
	 * was written; MemoryError::taken_back means that the payload itself failed.
	 */
	MemoryError scatter(const std::vector<Piece> &pieces, std::uint64_t offset,
			    const fabric::Payload &payload, const KeyUse &user);
	MemoryError scatter(const std::vector<Piece> &pieces, std::uint64_t offset,
			    std::span<const std::byte> bytes, const KeyUse &user);

	/* Write a payload, from its byte @skip on, to memory behind a key. */
	MemoryError write(const KeyUse &use, std::uint64_t address, const fabric::Payload &payload,
			  std::uint32_t skip = 0);

	/*
	 * Check a range that is used piece by piece later: its ends. That what lies between is
	 * there is found out when it is used.
	 */
	MemoryError probe(const KeyUse &use, std::uint64_t address, std::uint64_t length);
	/* The bus address of an aligned 64-bit word behind a key. */
	std::optional<std::uint64_t> word_address(const KeyUse &use, std::uint64_t address);

private:
	MemoryError locate(const std::vector<Piece> &pieces, std::uint64_t offset,
			   std::uint64_t length, const KeyUse &user);

	Memory &memory_;
	Leases &leases_;
	/* Kept to spare allocations. */
	std::vector<MemorySegment> segments_;
	std::vector<BusRange> ranges_;
};

} // namespace weft::hca::transport
