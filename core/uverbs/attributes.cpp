// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "attributes.hpp"

namespace uverbs
{

namespace
{

constexpr u64 largest_descriptor = 0x7fffffff;
constexpr u64 largest_handle = 0xffffffff;

/* Checks the value of an attribute of at most 8 bytes, which is stored in the list itself. */
kern::Result<> check_inline(const Attribute &known, u16 size, u64 &data)
{
	if (known.form == Form::constant || known.form == Form::flags) {
		if (size != sizeof(u32) && size != sizeof(u64))
			return kern::Error{-EINVAL};
	}
	/* Clear the bytes after a shorter value, which may be uninitialised. */
	if (size < sizeof(u64))
		data &= (u64{1} << size * 8) - 1;
	const bool possible = known.form == Form::constant
				      ? data <= known.bound
				      : known.form != Form::flags || !(data & ~known.bound);
	return possible ? kern::Result<>{} : kern::Error{-EINVAL};
}

} // namespace

kern::Result<> answer_in(u64 buffer, size_t buffer_size, const void *answer, size_t size)
{
	const size_t copied = buffer_size < size ? buffer_size : size;

	KERN_TRY(kern::copy_out(buffer, answer, copied));
	static constexpr u64 zeros[8] = {};
	for (size_t at = copied; at < buffer_size;) {
		const size_t step =
			buffer_size - at < sizeof(zeros) ? buffer_size - at : sizeof(zeros);
		KERN_TRY(kern::copy_out(buffer + at, zeros, step));
		at += step;
	}
	return {};
}

size_t Attributes::search(u16 id) const
{
	/* Search from the end, because the driver's attributes are last. */
	for (size_t place = known_.size(); place-- > 0;)
		if (known_[place].id == id)
			return place;
	return known_.size();
}

kern::Result<> Attributes::take_one(const abi::Attribute &attribute, u64 at)
{
	const size_t place = find(attribute.id);
	if (place == known_.size())
		return attribute.flags & abi::attribute_mandatory
			       ? kern::Result<>(kern::Error{-EPROTONOSUPPORT})
			       : kern::Result<>();
	Slot &slot = slots_[place];
	if (slot.present || attribute.reserved)
		return kern::Error{-EINVAL};
	slot = {.itself = at,
		.at = attribute.data,
		.data = attribute.data,
		.size = attribute.length,
		.flags = attribute.flags,
		.present = true};
	return check(known_[place], attribute, slot);
}

kern::Result<> Attributes::take(u64 list, size_t count)
{
	/*
	 * Several attributes are copied at a time, because a call of copy_in() takes longer than
	 * the copying.
	 */
	constexpr size_t piece = 16;
	abi::Attribute entries[piece];

	while (count > 0) {
		const size_t now = count < piece ? count : piece;
		KERN_TRY(kern::copy_in(entries, list, now * sizeof(*entries)));
		for (size_t i = 0; i < now; i++)
			KERN_TRY(take_one(entries[i], list + i * sizeof(*entries)));
		list += now * sizeof(*entries);
		count -= now;
	}
	for (size_t place = 0; place < known_.size(); place++)
		if (known_[place].mandatory && !slots_[place].present)
			return kern::Error{-EINVAL};
	return {};
}

kern::Result<> Attributes::check(const Attribute &known, const abi::Attribute &attribute,
				 Slot &slot)
{
	switch (known.form) {
	case Form::in:
	case Form::in_growing:
	case Form::in_bytes:
	case Form::constant:
	case Form::flags: {
		if (attribute.length < known.size ||
		    (known.form == Form::in && attribute.length > known.size))
			return kern::Error{-EINVAL};
		if (attribute.length <= sizeof(u64)) {
			slot.at = slot.itself + __builtin_offsetof(abi::Attribute, data);
			return check_inline(known, attribute.length, slot.data);
		}
		if (known.form == Form::constant || known.form == Form::flags)
			return kern::Error{-EINVAL};
		if (known.form != Form::in_growing || attribute.length == known.size)
			return {};
		return kern::check_zero(attribute.data + known.size, attribute.length - known.size);
	}
	case Form::out:
		return attribute.length < known.size ? kern::Error{-EINVAL} : kern::Result<>{};
	case Form::handle:
		return attribute.length || attribute.data > largest_handle ? kern::Error{-EINVAL}
									   : kern::Result<>{};
	case Form::descriptor:
		if (attribute.length)
			return kern::Error{-EINVAL};
		return attribute.data > largest_descriptor ? kern::Error{-EBADF} : kern::Result<>{};
	case Form::new_handle:
	case Form::new_descriptor:
		break;
	}
	return attribute.length ? kern::Error{-EINVAL} : kern::Result<>{};
}

kern::Result<> Attributes::write_output(const Slot &slot, const void *answer, size_t size) const
{
	if (!slot.present)
		return {};
	KERN_TRY(answer_in(slot.at, slot.size, answer, size));
	return mark(slot);
}

kern::Result<> Attributes::write_handle(u16 id, u32 number) const
{
	const u64 whole = number;

	return kern::copy_out(of(id).itself + __builtin_offsetof(abi::Attribute, data), &whole,
			      sizeof(whole));
}

kern::Result<> Attributes::mark(const Slot &slot) const
{
	if (!slot.present)
		return {};
	const u16 flags = slot.flags | abi::attribute_answered;
	return kern::copy_out(slot.itself + __builtin_offsetof(abi::Attribute, flags), &flags,
			      sizeof(flags));
}

} // namespace uverbs
