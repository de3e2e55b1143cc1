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

// Returns the text with the following replaced by hexadecimal numbers: control characters, line
// separators, changes of the writing direction, and bytes that are not UTF-8. ESC becomes "\x1b"
// and a line feed "\x0a". The result therefore stays on one line and cannot control a terminal.
// Another call does not change it.
std::string printable(std::string_view text);

// Does the same for a text of several lines, and keeps the line breaks.
std::string printable_lines(std::string_view text);

} // namespace weft
