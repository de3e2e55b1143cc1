// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Creates the queue pairs of weft-ucma-probe. Linux's rdma_ucm accepts any QP number. weft's
 * rdma_ucm accepts only numbers of the program's own QPs, so the program needs a QP for each
 * connection.
 */
#pragma once
#include <cstdint>
#include <memory>

#include "tests/uverbs_probe/program.hpp"

namespace weft::ucma
{

class Queues
{
public:
	/*
	 * Creates a QP, which exists until the program exits or the device is removed. Returns its
	 * number, or 0 if there is no device or no memory.
	 */
	std::uint32_t create();

private:
	std::uint32_t try_create();

	std::unique_ptr<uverbs::Program> program_;
	std::uint32_t pd_ = 0, cq_ = 0;
};

/*
 * Executes a command with a QP number, by execute(number): first with a number that belongs to no
 * QP, and again with that of a new QP if only the program's own QPs are permitted. Returns 0 or an
 * errno.
 */
template<class Execute>
long with_qp(Queues &queues, std::uint32_t no_qp, Execute execute)
{
	const long error = execute(no_qp);

	return error == EPERM ? execute(queues.create()) : error;
}

} // namespace weft::ucma
