// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Escapes text that a guest may have chosen (a node description, a line of its console, a name in a
// message), so that it can be shown in a terminal or written to a log.
#pragma once

#include <string>
#include <string_view>

namespace weft
{

// Returns true if printable() would return the same text.
bool is_printable(std::string_view text);

// The text with every control character, line separator, change of the writing direction and byte
// that is not UTF-8 replaced by its hexadecimal number: "\x1b" for ESC, "\x0a" for a new line. So
// it stays on one line and changes nothing in a terminal. The result is not escaped any further
// when it passes here again.
std::string printable(std::string_view text);

// Does the same for a text of several lines, and keeps the line breaks.
std::string printable_lines(std::string_view text);

} // namespace weft
