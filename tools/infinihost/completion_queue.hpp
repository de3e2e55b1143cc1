// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// A completion queue: what is this card's own of it, its context and how it is given another
// buffer.
#pragma once

#include <hw/infinihost/contexts.hpp>
#include <hw/infinihost/cqe.hpp>

#include "infinihost/names.hpp"
#include "mellanox/completion_queue.hpp"
#include "mellanox/faults.hpp"

namespace weft::infinihost
{

class CompletionQueue final : public mellanox::CompletionQueue
{
public:
	// @record: of its consumer index. @faults outlives it.
	CompletionQueue(const Services &services, std::uint32_t cqn,
			const hw::infinihost::CqContext &context, RecordPlace record,
			Faults &faults);

	[[nodiscard]] bool post(const hw::infinihost::Cqe &entry, bool solicited);

	// From the next entry on in another buffer, at the index modulo its size; software moves
	// what it has not polled. False: that would not fit.
	bool resize(std::uint32_t lkey, std::uint64_t start, unsigned log_size);
	hw::infinihost::CqContext context() const;

private:
	const hw::infinihost::CqContext given_;
	Faults &faults_;
};

} // namespace weft::infinihost
