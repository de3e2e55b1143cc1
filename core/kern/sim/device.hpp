// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the simulated device for which memory is mapped. A DMA address is a CPU address: the
// address of the memory itself, or of its copy in the device's arena.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <kern/abi/dma.h>
#include "arena.hpp"

struct device {
	struct Copy {
		std::byte *original;
		std::size_t size;
		kern_dma_direction direction;
	};

	std::string name;
	// The addresses of mapped memory, and the code that mapped it.
	std::multimap<std::uint64_t, const void *> mapped = {};
	// If there is no arena, the device can access all memory.
	std::unique_ptr<sim::Arena> arena = {};
	std::map<std::uint64_t, Copy> copies = {};
};
