// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "kernel_image.hpp"
#include <cstdint>
#include <cstdlib>
#include <link.h>
#include <string_view>
#include <vector>

namespace explore
{

namespace
{

struct Piece {
	std::uintptr_t begin;
	std::size_t size;
	void *saved;
};

// Copies by an instruction that is not instrumented. The gaps between variables are poisoned, so an
// instrumented copy would report an error.
void copy(void *to, const void *from, std::size_t size)
{
	asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
}

/*
 * Collects the writable segments of the object, without those that the loader has made read-only.
 */
int collect(dl_phdr_info *info, std::size_t, void *context)
{
	auto &pieces = *static_cast<std::vector<Piece> *>(context);

	if (std::string_view(info->dlpi_name).find("libweft_sim") == std::string_view::npos)
		return 0;
	std::uintptr_t closed_end = 0;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (const auto &header = info->dlpi_phdr[i]; header.p_type == PT_GNU_RELRO)
			closed_end = (info->dlpi_addr + header.p_vaddr + header.p_memsz) &
				     ~std::uintptr_t{4095};
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const auto &header = info->dlpi_phdr[i];
		if (header.p_type != PT_LOAD || !(header.p_flags & PF_W))
			continue;
		std::uintptr_t begin = info->dlpi_addr + header.p_vaddr;
		const std::uintptr_t end = begin + header.p_memsz;
		if (closed_end > begin && closed_end <= end)
			begin = closed_end;
		pieces.push_back({begin, end - begin, std::malloc(end - begin)});
	}
	return 1;
}

} // namespace

void restore_kernel_image()
{
	static std::vector<Piece> pieces;

	if (pieces.empty()) {
		dl_iterate_phdr(collect, &pieces);
		if (pieces.empty())
			std::abort();
		for (const Piece &piece : pieces)
			copy(piece.saved, reinterpret_cast<void *>(piece.begin), piece.size);
		return;
	}
	for (const Piece &piece : pieces)
		copy(reinterpret_cast<void *>(piece.begin), piece.saved, piece.size);
}

} // namespace explore
