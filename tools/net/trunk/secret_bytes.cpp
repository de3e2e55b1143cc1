// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/trunk/secret_bytes.hpp"

#include <new>

#include <sys/mman.h>

#include <sodium.h>

namespace weft::trunk
{

void *allocate_secret(std::size_t bytes)
{
	void *const memory =
		::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		throw std::bad_alloc();
	if (::madvise(memory, bytes, MADV_DONTDUMP) != 0) {
		::munmap(memory, bytes);
		throw std::bad_alloc();
	}
	return memory;
}

void free_secret(void *memory, std::size_t bytes) noexcept
{
	sodium_memzero(memory, bytes);
	::munmap(memory, bytes);
}

} // namespace weft::trunk
