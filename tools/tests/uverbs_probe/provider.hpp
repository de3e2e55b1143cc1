// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Builds the driver-specific data that the commands for queues need. It is the data that
 * rdma-core's provider for the card would append, in the layout of the kernel's uapi headers.
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
	/*
	 * Returns the provider for the node's card: InfiniHost if it reports one, and ConnectX
	 * otherwise.
	 */
	static const Provider &of_node();
	virtual ~Provider() = default;

	/* enum rdma_driver_id */
	virtual std::uint32_t driver() const = 0;

	/*
	 * Returns the data that follows the request. @pd is the handle of any PD. Memory that must
	 * be registered first is registered, and stays so until the program exits.
	 */
	virtual std::vector<char> new_cq(const Program &program) const = 0;
	virtual std::vector<char> resized_cq(const Program &program, std::uint64_t ring) const = 0;
	virtual std::vector<char> new_qp(const Program &program, std::uint32_t pd) const = 0;
	virtual std::vector<char> new_srq(const Program &program, std::uint32_t pd) const = 0;
};

} // namespace weft::uverbs
