// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Table of shared mappings, where the SIGBUS handler looks up a mapping whose file was truncated.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft
{
class MemoryLender;
}

namespace weft::shared_memory
{

// Adds [@begin, @begin + @size) to the table and returns its number, which is negative if the table
// is full. Until remove(), a page that is lost in the range is replaced, and @lender is notified.
// Any thread.
int add(std::uintptr_t begin, std::size_t size, MemoryLender &lender);
// The memory must not be accessed any more.
void remove(int number);

} // namespace weft::shared_memory
