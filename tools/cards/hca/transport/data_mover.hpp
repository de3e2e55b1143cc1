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

/* Heap memory that payloads share. */
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
	 * refer() - create a payload that refers to the memory of a request
	 * @qp: the QP that sends it; the payload is valid until a right of the QP to the memory
	 * ends
	 * @request: the request with the data; inline data of the WQE is copied
	 * @offset, @length: the part of the data, within request.length
	 *
	 * Returns the error of the first key that fails.
	 */
	MemoryError refer(Qp &qp, const SendRequest &request, std::uint64_t offset,
			  std::uint32_t length, fabric::Payload &out);
	/* Creates a payload that refers to memory of a key. */
	MemoryError refer(Qp &qp, const KeyUse &use, std::uint64_t address, std::uint32_t length,
			  fabric::Payload &out);

	/*
	 * Copies out.size() bytes of a request's data from @offset on, which must be within its
	 * length.
	 */
	MemoryError gather(const SendRequest &request, std::uint64_t offset, const KeyUse &user,
			   std::span<std::byte> out);

	/**
	 * scatter() - write a payload over a scatter list
	 * @offset: number of bytes of the list to skip
	 *
	 * Ignores data that does not fit, because callers have compared the sizes. After an error,
	 * nothing was written; MemoryError::taken_back means that the payload itself failed.
	 */
	MemoryError scatter(const std::vector<Piece> &pieces, std::uint64_t offset,
			    const fabric::Payload &payload, const KeyUse &user);
	MemoryError scatter(const std::vector<Piece> &pieces, std::uint64_t offset,
			    std::span<const std::byte> bytes, const KeyUse &user);

	/* Writes a payload, from its byte @skip on, to memory of a key. */
	MemoryError write(const KeyUse &use, std::uint64_t address, const fabric::Payload &payload,
			  std::uint32_t skip = 0);

	/*
	 * Checks the first and last byte of a range that is used in parts later. Pages in between
	 * are checked when they are used.
	 */
	MemoryError probe(const KeyUse &use, std::uint64_t address, std::uint64_t length);
	/* Returns the bus address of an aligned 64-bit word in a key's memory. */
	std::optional<std::uint64_t> word_address(const KeyUse &use, std::uint64_t address);

private:
	MemoryError locate(const std::vector<Piece> &pieces, std::uint64_t offset,
			   std::uint64_t length, const KeyUse &user);

	Memory &memory_;
	Leases &leases_;
	/* Members, so that their memory is reused. */
	std::vector<MemorySegment> segments_;
	std::vector<BusRange> ranges_;
};

} // namespace weft::hca::transport
