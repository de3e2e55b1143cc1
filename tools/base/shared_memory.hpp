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

// Enters [@begin, @begin + @size) and gives its number; negative if the table is full. From then on
// a page that is lost there is replaced, and @lender is told, until remove(). Any thread.
int add(std::uintptr_t begin, std::size_t size, MemoryLender &lender);
// The memory must not be accessed any more.
void remove(int number);

} // namespace weft::shared_memory
