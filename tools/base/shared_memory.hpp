// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Holds the table of shared mappings, in which the SIGBUS handler looks up the mapping of a page
// that cannot be read.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft
{
class MemoryLender;
}

namespace weft::shared_memory
{

// Adds [@begin, @begin + @size) to the table. Returns its number, or a negative value if the table
// is full. Until remove(), a page that is lost in the range is replaced, and @lender is marked as
// failed. Thread-safe.
int add(std::uintptr_t begin, std::size_t size, MemoryLender &lender);
// Removes an entry. The memory must not be accessed any more.
void remove(int number);

} // namespace weft::shared_memory
