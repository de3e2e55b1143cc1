// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The library's connections to weftd. C programs load it, so it must not need the C++ library.
// Functions return errno values, negative if they also return other values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attach/protocol.hpp"

namespace weft::attach::umad
{

// The program runs under `weft attach`.
bool is_attached();

// Opens a connection with @request, for this program's node, and receives the reply. Returns the
// connection, or an errno as a negative number. The caller must check the reply's own error.
int ask(Request &request, void *reply, std::size_t size);

// Gets the node's description. Returns 0 or an errno.
int describe(Description &description);
// The index of the port that a program means by @number, 0 and less being any; or a negative
// number.
int find_port(const Description &description, int number);
bool is_ca_name(const char *name);

// Prints a message with umad_debug(1) and more.
[[gnu::format(printf, 1, 2)]] void debug(const char *format, ...);
extern int debug_level;

} // namespace weft::attach::umad
