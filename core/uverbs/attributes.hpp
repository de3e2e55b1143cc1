// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Attributes of a method: a program's input, and addresses for the output.
 *
 * A method declares its attributes in a table (method_table.cpp). Common rules are checked once,
 * before it runs: that each attribute has a known number, occurs once, has the right size, a zero
 * tail and a valid value, and that no mandatory one is missing. So a method can rely on what it has
 * declared. It looks up the handles of objects and the file descriptors itself, which validates
 * them as well.
 */
#pragma once
#include <span>
#include <kern/nospec.hpp>
#include <kern/user.hpp>
#include "ioctl_abi.hpp"

namespace uverbs
{

enum class Form : u8 {
	/*
	 * Input: exactly the declared number of bytes (in), or more of which the rest is zero
	 * (in_growing), or any number (in_bytes).
	 */
	in,
	in_growing,
	in_bytes,
	/*
	 * One of several values, in four or eight bytes; or a set of flags.
	 */
	constant,
	flags,
	/* A buffer for output of at least the declared size. */
	out,
	/*
	 * The handle of an object, or a file descriptor of the program; and the same for a new
	 * object or file, which is returned in its place.
	 */
	handle,
	new_handle,
	descriptor,
	new_descriptor,
};

/* An attribute that a method accepts. */
struct Attribute {
	u16 id;
	Form form;
	bool mandatory;
	/* Size of in and out, in bytes. */
	u16 size;
	/* The largest value of a constant, or the mask of all flags. */
	u64 bound;
};

class Attributes
{
public:
	/* No method has as many attributes. */
	static constexpr size_t most = 20;

	explicit Attributes(std::span<const Attribute> known) : known_(known)
	{
		kern_assert(known.size() <= most);
	}

	/*
	 * Must be called once: reads `count` attributes from the program's list. Context: process,
	 * the program's. Errors: EPROTONOSUPPORT for an unknown one, unless it is optional;
	 * EOPNOTSUPP for a tail that is not zero; EBADF for an invalid descriptor; EINVAL for
	 * anything else that is wrong or missing; EFAULT.
	 */
	kern::Result<> take(u64 list, size_t count);

	/* The following functions accept only attributes that the method accepts. */
	bool has(u16 id) const { return of(id).present; }
	/*
	 * Returns input of at most 8 bytes: a number or a handle; 0 if there is none.
	 */
	u64 number(u16 id) const { return of(id).data; }
	u32 handle(u16 id) const { return static_cast<u32>(number(id)); }
	/* Returns a descriptor; -1 if there is none. */
	s32 descriptor(u16 id) const { return has(id) ? static_cast<s32>(number(id)) : -1; }
	/* Copies in longer input. Errors: EFAULT. */
	template<class T>
	kern::Result<> read(u16 id, T &said) const
	{
		static_assert(sizeof(T) > sizeof(u64));
		return kern::copy_in(&said, of(id).data, sizeof(said));
	}

	/*
	 * Returns address and size, in the program's memory, of the input or of the buffer for the
	 * output; zero if there is none. Accepts any number.
	 */
	struct Place {
		u64 address = 0;
		size_t size = 0;
	};
	Place place(u16 id) const
	{
		const size_t place = find(id);
		return place < known_.size() ? Place{slots_[place].at, slots_[place].size}
					     : Place{};
	}

	/*
	 * Writes output, if the program requests it; a larger buffer is filled with zeroes.
	 * Context: process, the program's. Errors: EFAULT.
	 */
	template<class T>
	kern::Result<> write_output(u16 id, const T &answer) const
	{
		return write_output(of(id), &answer, sizeof(answer));
	}
	/* Writes the handle of a new object. */
	kern::Result<> write_handle(u16 id, u32 number) const;
	/* Marks output that has already been written. */
	kern::Result<> answered(u16 id) const { return mark(of(id)); }

private:
	struct Slot {
		/* Addresses of the attribute in the program's list, and of its data. */
		u64 itself = 0;
		u64 at = 0;
		u64 data = 0;
		u16 size = 0;
		u16 flags = 0;
		bool present = false;
	};
	/* Returns its index in known_, or the size of known_ for an unknown one. */
	size_t find(u16 id) const
	{
		/* Most attributes have their number as index. */
		if (id < known_.size()) {
			const size_t place = kern::index_nospec(id, known_.size());
			if (known_[place].id == id)
				return place;
		}
		return search(id);
	}
	size_t search(u16 id) const;
	kern::Result<> take_one(const abi::Attribute &said, u64 at);
	const Slot &of(u16 id) const
	{
		const size_t place = find(id);
		kern_assert(place < known_.size());
		return slots_[place];
	}
	static kern::Result<> check(const Attribute &known, const abi::Attribute &said, Slot &slot);
	kern::Result<> write_output(const Slot &slot, const void *answer, size_t size) const;
	kern::Result<> mark(const Slot &slot) const;

	const std::span<const Attribute> known_;
	/* Indexed like known_. */
	Slot slots_[most];
};

/*
 * Writes `size` bytes to a buffer of that size or more in the program's memory, the rest of which
 * becomes zero. Errors: EFAULT.
 */
kern::Result<> answer_in(u64 room, size_t room_size, const void *answer, size_t size);

} // namespace uverbs
