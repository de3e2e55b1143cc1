// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "eq.hpp"
#include <hw/mlx4/contexts.hpp>

namespace mlx4
{

Eq::Eq(const EqResources &resources, u32 eqn, u32 vector, u32 log_entries)
    : log_entries_(log_entries), sink_(resources.sink), uar_(resources.uar),
      doorbell_(wire::uar::eq_doorbell_offset(eqn)), commands_(resources.commands), eqn_(eqn),
      vector_(vector), budget_(1u << log_entries, -ENOMEM)
{
}

kern::Result<kern::Owned<Eq>> Eq::create(const EqResources &resources, u32 eqn, u32 vector,
					 u32 log_entries)
{
	using Context = wire::EqContext;

	auto eq = KERN_TRY(
		kern::adopt(new (kern::Gfp::kernel) Eq(resources, eqn, vector, log_entries)));
	eq->buffer_ = KERN_TRY(QueueBuffer::create(resources.dma_device, resources.mtts,
						   sizeof(wire::Eqe) << log_entries));
	eq->entries_ = eq->buffer_.address();
	// In the first pass through the ring, entries that the card has written have a clear owner
	// bit. So set all bits: software must not own an entry that the card has not written.
	for (u32 i = 0; i < 1u << log_entries; i++)
		wire::Eqe::owner.set(eq->entries_ + i * sizeof(wire::Eqe), 1);
	eq->protection_ = KERN_TRY(IcmHold::create(resources.protection, eqn));
	eq->context_ = KERN_TRY(IcmHold::create(resources.contexts, eqn));

	auto mailbox = KERN_TRY(resources.commands.mailbox());
	u8 *context = mailbox.bytes();
	Context::state.set(context, wire::eq_state::armed);
	Context::log_size.set(context, log_entries);
	Context::vector.set(context, vector);
	Context::log_page_size.set(context, eq->buffer_.log_page_size());
	Context::mtt_offset.set(context, eq->buffer_.mtt_offset());
	KERN_TRY(resources.commands.execute_in(
		{.opcode = wire::Opcode::sw2hw_eq, .in_modifier = eqn}, mailbox));
	eq->live_ = true;
	return eq;
}

Eq::~Eq()
{
	if (live_)
		kern::ignore(commands_.execute_closing(
			{.opcode = wire::Opcode::hw2sw_eq, .in_modifier = eqn_, .op_modifier = 1}));
}

bool Eq::interrupt()
{
	using wire::Eqe;

	const u32 log_entries = log_entries_;
	const u32 mask = (1u << log_entries) - 1;
	const u32 first = consumer_;
	u32 consumer = first;
	// Handle at most one ring of entries, so that a faulty card cannot keep the CPU in this
	// function.
	const u32 limit = consumer + (1u << log_entries);

	interrupts_++;
	while (consumer != limit) {
		const u8 *entry = entries_ + (consumer & mask) * sizeof(Eqe);
		const u8 last = kern::read_once(entry[sizeof(Eqe) - 1]);
		if ((last >> 7 ^ consumer >> log_entries) & 1)
			break;
		// Read the rest of the entry only after its owner bit.
		kern::dma_rmb();
		const u8 type = entry[1];
		if (type == static_cast<u8>(wire::EventType::completion)) [[likely]]
			sink_.completion_event(Eqe::number.get(entry));
		else
			sink_.async_event(entry);
		consumer++;
		if (consumer % report_interval == 0) [[unlikely]] {
			consumer_ = consumer;
			ring(false);
		}
	}
	consumer_ = consumer;
	ring(true);
	return consumer != first;
}

} // namespace mlx4
