// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Data that depends on the node's card: the card's library appends it to the commands that create
 * queues, laid out as in the kernel's own headers.
 */
#pragma once
#include <cstdint>
#include <vector>

namespace weft::uverbs
{

class Program;

class Provider
{
public:
	/* Provider of the node's card: an InfiniHost if it reports one, else a ConnectX. */
	static const Provider &of_node();
	virtual ~Provider() = default;

	/* enum rdma_driver_id */
	virtual std::uint32_t driver() const = 0;

	/*
	 * Data that follows the request. pd: a handle, of anything. Memory that must be registered
	 * first is registered, and stays so until the program ends.
	 */
	virtual std::vector<char> new_cq(const Program &program) const = 0;
	virtual std::vector<char> resized_cq(const Program &program, std::uint64_t ring) const = 0;
	virtual std::vector<char> new_qp(const Program &program, std::uint32_t pd) const = 0;
	virtual std::vector<char> new_srq(const Program &program, std::uint32_t pd) const = 0;
};

} // namespace weft::uverbs
