// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that text of guests is escaped for terminals and logs.
#include "base/printable.hpp"

#include <string>

#include <gtest/gtest.h>

namespace
{

using weft::is_printable;
using weft::printable;
using namespace std::string_literals;

TEST(Printable, OrdinaryTextIsUnchanged)
{
	for (const std::string text :
	     {"", "node1 HCA-1", "Zürich – 東京 😀", "a\\x1bb", "~ \"<&>"}) {
		EXPECT_EQ(printable(text), text);
		EXPECT_TRUE(is_printable(text)) << text;
	}
}

TEST(Printable, ControlCharactersAreReplaced)
{
	EXPECT_EQ(printable("\x1b]0;owned\x07\x1b[2J"), "\\x1b]0;owned\\x07\\x1b[2J");
	EXPECT_EQ(printable("node1\n12:00:00 error weftd: forged\r\t\0"s),
		  "node1\\x0a12:00:00 error weftd: forged\\x0d\\x09\\x00");
	EXPECT_EQ(printable("\x7f"), "\\x7f");
	EXPECT_FALSE(is_printable("a\nb"));
}

// Terminals interpret U+009B as ESC [ , and other characters change the position of the following
// text.
TEST(Printable, InvisibleUnicodeCharactersAreReplaced)
{
	EXPECT_EQ(printable("\xc2\x9b"
			    "2J"),
		  "\\xc2\\x9b2J");
	EXPECT_EQ(printable("\xe2\x80\xa8"), "\\xe2\\x80\\xa8");
	EXPECT_EQ(printable("\xe2\x80\xae"), "\\xe2\\x80\\xae");
	EXPECT_EQ(printable("\xe2\x81\xa6"), "\\xe2\\x81\\xa6");
}

TEST(Printable, InvalidUtf8BytesAreReplaced)
{
	EXPECT_EQ(printable("\xff\x80z"), "\\xff\\x80z");
	EXPECT_EQ(printable("\xc3"), "\\xc3");
	EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82");
	// Overlong encodings, surrogates, and code points beyond Unicode.
	EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b");
	EXPECT_EQ(printable("\xe0\x80\x9b"), "\\xe0\\x80\\x9b");
	EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");
	EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
}

TEST(Printable, LineBreaksAreNotReplaced)
{
	EXPECT_EQ(weft::printable_lines("one\x1b\n\ntwo\r\n"), "one\\x1b\n\ntwo\\x0d\n");
	EXPECT_EQ(weft::printable_lines(""), "");
}

TEST(Printable, EscapingTwiceEqualsEscapingOnce)
{
	std::string all;
	for (unsigned first = 0; first < 256; ++first)
		all += {static_cast<char>(first), static_cast<char>(255 - first)};
	EXPECT_TRUE(is_printable(printable(all)));
	EXPECT_EQ(printable(printable(all)), printable(all));
}

} // namespace
