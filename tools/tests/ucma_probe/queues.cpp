// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "tests/ucma_probe/queues.hpp"

#include <unistd.h>

namespace weft::ucma
{

std::uint32_t Queues::try_create()
{
	std::uint32_t handle, number;

	if (!program_) {
		/* While the card is not bound there is no node. */
		if (::access(uverbs::kNode, R_OK | W_OK))
			return 0;
		program_ = std::make_unique<uverbs::Program>(false);
		if (program_->make_context() || program_->alloc_pd(pd_) ||
		    program_->create_cq(-1, cq_)) {
			program_.reset();
			return 0;
		}
	}
	return program_->create_qp(pd_, cq_, handle, number) ? 0 : number;
}

std::uint32_t Queues::create()
{
	if (const std::uint32_t number = try_create())
		return number;
	/* The device may have been removed. Its successor needs a new context. */
	program_.reset();
	return try_create();
}

} // namespace weft::ucma
