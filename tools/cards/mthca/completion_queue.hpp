// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the InfiniHost III's part of a completion queue: its context, and how it is resized to
// another buffer.
#pragma once

#include <hw/mthca/contexts.hpp>
#include <hw/mthca/cqe.hpp>

#include "cards/mthca/names.hpp"
#include "cards/mellanox_icm/completion_queue.hpp"
#include "cards/mellanox_icm/faults.hpp"

namespace weft::mthca
{

class CompletionQueue final : public mellanox_icm::CompletionQueue
{
public:
	// @record is the location of the doorbell record with the consumer index. @faults must
	// outlive the queue.
	CompletionQueue(const Services &services, std::uint32_t cqn,
			const hw::mthca::CqContext &context, RecordPlace record, Faults &faults);

	[[nodiscard]] bool post(const hw::mthca::Cqe &entry, bool solicited);

	// Writes entries to another buffer from the next entry on, at the index modulo the buffer's
	// size. Software moves unpolled entries. Returns false if they would not fit.
	bool resize(std::uint32_t lkey, std::uint64_t start, unsigned log_size);
	hw::mthca::CqContext context() const;

private:
	const hw::mthca::CqContext given_;
	Faults &faults_;
};

} // namespace weft::mthca
