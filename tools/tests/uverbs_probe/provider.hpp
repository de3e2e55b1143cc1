// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * What depends on the card that the node is of: what the card's library says behind the commands
 * that make queues, as the kernel's own headers lay it out.
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
	/* Of the node's card: an InfiniHost if it says so, else a ConnectX. */
	static const Provider &of_node();
	virtual ~Provider() = default;

	/* enum rdma_driver_id */
	virtual std::uint32_t driver() const = 0;

	/*
	 * What stands behind the request. pd: a handle, of anything. Memory that has to be
	 * registered first is, and stays so until the program ends.
	 */
	virtual std::vector<char> new_cq(const Program &program) const = 0;
	virtual std::vector<char> resized_cq(const Program &program, std::uint64_t ring) const = 0;
	virtual std::vector<char> new_qp(const Program &program, std::uint32_t pd) const = 0;
	virtual std::vector<char> new_srq(const Program &program, std::uint32_t pd) const = 0;
};

} // namespace weft::uverbs
