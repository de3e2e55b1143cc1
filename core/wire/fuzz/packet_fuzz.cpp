// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Fuzzes parse(): it never reads outside its input, and build() reproduces every packet that it
// accepts.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "core/wire/checksum.hpp"
#include "core/wire/headers.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	if (size > 8192)
		return 0;
	auto bytes = static_cast<unsigned>(size);
	packet::Headers headers;
	packet::Layout layout;
	if (packet::parse(data, bytes, bytes, headers, layout) != packet::Error::none)
		return 0;
	if (layout.header_bytes + layout.payload_bytes + layout.pad_bytes + ib::icrc_bytes != bytes)
		std::abort();
	packet::icrc_of(data, layout.header_bytes, bytes - ib::icrc_bytes);
	// parse() accepts a pad that the payload does not need, but build() does not generate one.
	if (layout.pad_bytes != (-layout.payload_bytes & 3))
		return 0;
	std::uint8_t again[ib::headers_max];
	unsigned written = 0;
	if (packet::build(headers, layout.payload_bytes, again, sizeof(again), &written) !=
		    packet::Error::none ||
	    written != layout.header_bytes || std::memcmp(again, data, written) != 0)
		std::abort();
	return 0;
}
