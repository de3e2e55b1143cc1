// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Allocates memory for keys and other secrets. This memory is not written to core files, and is
// overwritten when it is freed.
#pragma once

#include <cstddef>
#include <vector>

namespace weft::trunk
{

// Allocates pages that core files do not contain, because they may be copied to where others can
// read them. The pages are overwritten when they are freed. Throws std::bad_alloc.
void *allocate_secret(std::size_t bytes);
void free_secret(void *memory, std::size_t bytes) noexcept;

template<typename T>
struct SecretAllocator {
	using value_type = T;

	SecretAllocator() = default;
	template<typename Other>
	SecretAllocator(const SecretAllocator<Other> &) noexcept
	{
	}
	T *allocate(std::size_t count)
	{
		return static_cast<T *>(allocate_secret(count * sizeof(T)));
	}
	void deallocate(T *memory, std::size_t count) noexcept
	{
		free_secret(memory, count * sizeof(T));
	}
	bool operator==(const SecretAllocator &) const = default;
};

using SecretBytes = std::vector<std::byte, SecretAllocator<std::byte>>;

} // namespace weft::trunk
