// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Parses and checks the attributes of a method: a program's input, and addresses for the output.
 *
 * A method declares its attributes in a table (method_table.cpp). Common rules are checked before
 * the method runs: each attribute has a known number, occurs once, and has the right size and a
 * valid value, bytes beyond the known members are zero, and all mandatory attributes are present.
 * So the method need not check these again. The method itself looks up object handles and file
 * descriptors, which validates them.
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
	 * Input: exactly the declared number of bytes (in); at least as many, with the rest zero
	 * (in_growing); or at least as many with any contents (in_bytes).
	 */
	in,
	in_growing,
	in_bytes,
	/* One of several values (constant) or a set of flags (flags), in 4 or 8 bytes. */
	constant,
	flags,
	/* A buffer for output of at least the declared size. */
	out,
	/*
	 * The handle of an object (handle), a file descriptor (descriptor), or a new object or
	 * file, whose handle or descriptor is returned in the attribute.
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
	/* Minimum size in bytes of input and output; for `in` the exact size. */
	u16 size;
	/* The largest value of a constant, or the mask of all flags. */
	u64 bound;
};

class Attributes
{
public:
	/* Maximum number of attributes of a method. */
	static constexpr size_t most = 20;

	explicit Attributes(std::span<const Attribute> known) : known_(known)
	{
		kern_assert(known.size() <= most);
	}

	/*
	 * Must be called once: reads `count` attributes from the program's list. Context: process,
	 * the program's. Errors: EPROTONOSUPPORT for an unknown attribute that is marked as
	 * mandatory; EOPNOTSUPP for a tail that is not zero; EBADF for an invalid descriptor;
	 * EINVAL for other invalid or missing attributes; EFAULT.
	 */
	kern::Result<> take(u64 list, size_t count);

	/*
	 * The following functions may be called only for attributes that the method has declared,
	 * except where noted.
	 */
	bool has(u16 id) const { return of(id).present; }
	/*
	 * Returns input of at most 8 bytes, such as a number or a handle; 0 if the attribute is
	 * absent.
	 */
	u64 number(u16 id) const { return of(id).data; }
	u32 handle(u16 id) const { return static_cast<u32>(number(id)); }
	/* Returns a descriptor; -1 if the attribute is absent. */
	s32 descriptor(u16 id) const { return has(id) ? static_cast<s32>(number(id)) : -1; }
	/* Copies input of more than 8 bytes. Errors: EFAULT. */
	template<class T>
	kern::Result<> read(u16 id, T &value) const
	{
		static_assert(sizeof(T) > sizeof(u64));
		return kern::copy_in(&value, of(id).data, sizeof(value));
	}

	/*
	 * Returns the address and the size, in the program's memory, of the input or of the output
	 * buffer; zeroes if the attribute is absent. @id may be any number.
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
	 * Writes output, if the program has requested it; the rest of a larger buffer is filled
	 * with zeroes. Context: process, the program's. Errors: EFAULT.
	 */
	template<class T>
	kern::Result<> write_output(u16 id, const T &answer) const
	{
		return write_output(of(id), &answer, sizeof(answer));
	}
	/* Writes the handle of a new object. */
	kern::Result<> write_handle(u16 id, u32 number) const;
	/* Marks an output attribute whose buffer has been written directly. */
	kern::Result<> answered(u16 id) const { return mark(of(id)); }

private:
	struct Slot {
		/*
		 * Addresses of the attribute in the program's list, and of its data in the
		 * program's memory.
		 */
		u64 itself = 0;
		u64 at = 0;
		u64 data = 0;
		u16 size = 0;
		u16 flags = 0;
		bool present = false;
	};
	/* Returns the attribute's index in known_, or the size of known_ if it is unknown. */
	size_t find(u16 id) const
	{
		/* For most attributes, the number is also the index. */
		if (id < known_.size()) {
			const size_t place = kern::index_nospec(id, known_.size());
			if (known_[place].id == id)
				return place;
		}
		return search(id);
	}
	size_t search(u16 id) const;
	kern::Result<> take_one(const abi::Attribute &attribute, u64 at);
	const Slot &of(u16 id) const
	{
		const size_t place = find(id);
		kern_assert(place < known_.size());
		return slots_[place];
	}
	static kern::Result<> check(const Attribute &known, const abi::Attribute &attribute,
				    Slot &slot);
	kern::Result<> write_output(const Slot &slot, const void *answer, size_t size) const;
	kern::Result<> mark(const Slot &slot) const;

	const std::span<const Attribute> known_;
	/* Indexed like known_. */
	Slot slots_[most];
};

/*
 * Writes `size` bytes to a buffer in the program's memory. If the buffer is smaller, the output is
 * truncated; if it is larger, the rest becomes zero. Errors: EFAULT.
 */
kern::Result<> answer_in(u64 buffer, size_t buffer_size, const void *answer, size_t size);

} // namespace uverbs
