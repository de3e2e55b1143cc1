// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Connects the replacement of libibumad to weftd. C programs load this library, so it must not need
// the C++ standard library. Functions report an error as an errno value; functions that also return
// a result return errors as negative numbers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attach/protocol.hpp"

namespace weft::attach::umad
{

// Returns true if the program was started by `weft attach`.
bool is_attached();

// Opens a connection with @request, for this program's node, and receives the reply. Returns the
// connection, or an errno as a negative number. The caller must check the reply's own error.
int ask(Request &request, void *reply, std::size_t size);

// Gets the node's description. Returns 0 or an errno.
int describe(Description &description);
// Returns the index of the port with this @number, or of any port if @number is 0 or negative.
// Returns a negative number on error.
int find_port(const Description &description, int number);
bool is_ca_name(const char *name);

// Prints a message if the level of umad_debug() is at least 1.
[[gnu::format(printf, 1, 2)]] void debug(const char *format, ...);
extern int debug_level;

} // namespace weft::attach::umad
