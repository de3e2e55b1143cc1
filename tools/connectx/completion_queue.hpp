// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// A completion queue: what is this card's own of it, its context and how it is given another
// buffer.
#pragma once

#include <cstdint>

#include <hw/connectx/contexts.hpp>
#include <hw/connectx/cqe.hpp>

#include "connectx/names.hpp"
#include "mellanox/completion_queue.hpp"
#include "mellanox/faults.hpp"

namespace weft::connectx
{

class CompletionQueue final : public mellanox::CompletionQueue
{
public:
	// @faults: of a card that is broken on purpose.
	CompletionQueue(const Services &services, std::uint32_t cqn,
			const hw::connectx::CqContext &context, Faults *faults = nullptr);

	// An entry that is an error, or for which @solicited is set (a receive whose sender asked
	// for it), satisfies a solicited arm. False: the queue has failed.
	[[nodiscard]] bool post(const hw::connectx::Cqe &entry, bool solicited);

	// Commands. Fills the buffer with entries owned by the card.
	bool initialise_buffer();
	enum class ResizeResult { done, too_small, no_memory };
	ResizeResult resize(const QueueBuffer &buffer, unsigned log_size);
	hw::connectx::CqContext context() const;

private:
	Faults *const faults_;
};

} // namespace weft::connectx
