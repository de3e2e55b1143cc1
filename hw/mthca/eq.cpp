// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "eq.hpp"
#include <hw/mthca/contexts.hpp>

namespace mthca
{

using hw::mellanox_icm::Eqe;

namespace
{

/*
 * The bit in the last byte of an entry that is set while the card owns the entry. The card clears
 * it when it has written the entry, and software sets it again.
 */
constexpr u8 owner_bit = 0x80;

} // namespace

Eq::Eq(const EqResources &resources, u32 eqn, u32 vector, u32 log_entries)
    : mask_((1u << log_entries) - 1), sink_(resources.sink),
      index_register_(resources.bar0.view(
	      resources.firmware.eq_ci_offset + eqn * wire::eq_ci_stride, sizeof(u32))),
      // The bits of EQs from 32 on are in the first of the two words.
      arm_register_(resources.bar0.view(resources.firmware.eq_arm_offset + (eqn < 32 ? 4 : 0),
					sizeof(u32))),
      arm_value_(__builtin_bswap32(1u << eqn % 32)), commands_(resources.commands), eqn_(eqn),
      vector_(vector), budget_(1u << log_entries, -ENOMEM)
{
}

kern::Result<kern::Owned<Eq>> Eq::create(const EqResources &resources, u32 eqn, u32 vector,
					 bool by_pin, u32 log_entries)
{
	using Context = wire::EqContext;

	auto eq = KERN_TRY(
		kern::adopt(new (kern::Gfp::kernel) Eq(resources, eqn, vector, log_entries)));
	eq->buffer_ =
		KERN_TRY(kern::DmaBuffer::create(resources.dma_device, sizeof(Eqe) << log_entries,
						 kern::Gfp::kernel | kern::Gfp::no_warn));
	eq->entries_ = eq->buffer_.as<u8>();
	for (u32 i = 0; i < 1u << log_entries; i++)
		eq->entries_[i * sizeof(Eqe) + sizeof(Eqe) - 1] = owner_bit;
	eq->context_ = KERN_TRY(IcmHold::create(resources.contexts, eqn));

	auto mailbox = KERN_TRY(resources.commands.mailbox());
	u8 *context = mailbox.bytes();
	Context::state.set(context, wire::eq_state::armed);
	Context::start.set(context, eq->buffer_.address());
	Context::log_size.set(context, log_entries);
	Context::by_message.set(context, !by_pin);
	Context::vector.set(context, vector);
	Context::pd.set(context, resources.memory.pd);
	Context::lkey.set(context, resources.memory.lkey);
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
	const u32 mask = mask_;
	const u32 first = consumer_;
	// Handle at most one ring of entries, so that a faulty card cannot keep the CPU in this
	// function.
	const u32 limit = first + mask + 1;

	interrupts_++;
	u32 at = first;
	while (at != limit) {
		u8 *const entry = entries_ + (at & mask) * sizeof(Eqe);
		if (kern::read_once(entry[sizeof(Eqe) - 1]) & owner_bit)
			break;
		// Read the rest of the entry only after its owner bit.
		kern::dma_rmb();
		if (entry[1] == static_cast<u8>(hw::mellanox_icm::EventType::completion)) [[likely]]
			sink_.completion_event(Eqe::number.get(entry));
		else
			sink_.async_event(entry);
		// The entry is returned to the card when the index is written.
		kern::write_once(entry[sizeof(Eqe) - 1], owner_bit);
		at++;
		if (at % report_interval == 0) [[unlikely]] {
			consumer_ = at;
			report();
		}
	}
	consumer_ = at;
	report();
	arm();
	return at != first;
}

} // namespace mthca
