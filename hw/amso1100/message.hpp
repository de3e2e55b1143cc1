// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines messages to and from the card, and converts numbers to and from its byte order.
#pragma once
#include <hw/amso1100/messages.hpp>
#include <kern/mmio.hpp>

namespace amso1100
{

namespace wire = hw::amso1100;

template<class T>
T swap_be(T value)
{
	if constexpr (sizeof(T) == 2)
		return static_cast<T>(__builtin_bswap16(value));
	else if constexpr (sizeof(T) == 4)
		return static_cast<T>(__builtin_bswap32(value));
	else
		return static_cast<T>(__builtin_bswap64(value));
}

template<class T>
void put_be(u8 *at, T value)
{
	value = swap_be(value);
	__builtin_memcpy(at, &value, sizeof(value));
}

template<class T>
T get_be(const u8 *at)
{
	T value;
	__builtin_memcpy(&value, at, sizeof(value));
	return swap_be(value);
}

/* Writes an index, or a field of a descriptor, to the card's memory. */
inline void write_be16(const kern::Mmio &window, u64 offset, u16 value)
{
	window.write16(offset, swap_be(value));
}

/*
 * A message to or from the card. Unused bytes are zero, so that no contents of the kernel's stack
 * reach the card.
 */
class Message
{
public:
	Message() = default;
	explicit Message(wire::MessageId id) { bytes_[wire::header::id] = static_cast<u8>(id); }

	u8 *bytes() { return bytes_; }
	const u8 *bytes() const { return bytes_; }
	template<class T>
	void put(size_t offset, T value)
	{
		put_be(bytes_ + offset, value);
	}
	template<class T>
	T get(size_t offset) const
	{
		return get_be<T>(bytes_ + offset);
	}
	/* Access to contexts, handles and domain numbers, which are opaque and not converted. */
	template<class T>
	void put_opaque(size_t offset, T value)
	{
		__builtin_memcpy(bytes_ + offset, &value, sizeof(value));
	}
	template<class T>
	T get_opaque(size_t offset) const
	{
		T value;
		__builtin_memcpy(&value, bytes_ + offset, sizeof(value));
		return value;
	}
	wire::Status status() const
	{
		return static_cast<wire::Status>(bytes_[wire::header::result]);
	}

private:
	alignas(8) u8 bytes_[wire::message_size] = {};
};

/* Converts a status of the card to a negative errno, or 0 for success. */
int errno_of(wire::Status status);

} // namespace amso1100
