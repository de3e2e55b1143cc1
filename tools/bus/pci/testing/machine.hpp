// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the interface through which a test driver accesses the registers of its device, and the
// memory of its guest.
#pragma once

#include <cstdint>
#include <span>

namespace weft::testing
{

class Machine
{
public:
	virtual ~Machine() = default;

	virtual void read_register(unsigned bar, std::uint64_t offset,
				   std::span<std::byte> data) = 0;
	virtual void write_register(unsigned bar, std::uint64_t offset,
				    std::span<const std::byte> data) = 0;
	// The guest's own view of its memory. Throws std::out_of_range for other addresses.
	virtual std::span<std::byte> memory(std::uint64_t address, std::size_t size) = 0;

	// Register access as a driver does it: little-endian integers.
	template<typename T>
	T read(unsigned bar, std::uint64_t offset)
	{
		T value{};
		read_register(bar, offset, std::as_writable_bytes(std::span(&value, 1)));
		return value;
	}
	template<typename T>
	void write(unsigned bar, std::uint64_t offset, T value)
	{
		write_register(bar, offset, std::as_bytes(std::span(&value, 1)));
	}
	template<typename T>
	T &object(std::uint64_t address)
	{
		return *reinterpret_cast<T *>(memory(address, sizeof(T)).data());
	}
};

} // namespace weft::testing
