// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "failure.hpp"
#include <cstdlib>
#include <cstring>
#include <sanitizer/common_interface_defs.h>

namespace sim
{

namespace
{

std::function<void(const std::string &, const std::string &)> reporter;

} // namespace

void on_failure(std::function<void(const std::string &title, const std::string &detail)> handler)
{
	reporter = std::move(handler);
}

void fail(const std::string &title, const std::string &detail)
{
	if (reporter)
		reporter(title, detail);
	std::abort();
}

std::string where(const void *address)
{
	char text[4096] = {};

	if (!address)
		return "the beginning";
	/* Look up the call instruction, not the instruction after it. */
	__sanitizer_symbolize_pc(const_cast<char *>(static_cast<const char *>(address)) - 1,
				 "%f %s:%l", text, sizeof(text) - 1);
	/* Contains the text of each inlined frame, innermost first. */
	std::string found = text;
	for (const char *frame = text; frame < text + sizeof(text) && *frame;
	     frame += std::strlen(frame) + 1) {
		found = frame;
		if (found.find("/include/kern/") == std::string::npos)
			break;
	}
	for (const char *directory : {"/core/", "/include/", "/hw/", "/ulp/", "/tools/"})
		if (const auto at = found.rfind(directory), space = found.rfind(" /");
		    at != std::string::npos && space != std::string::npos && at > space)
			return found.substr(0, space + 1) + found.substr(at + 1);
	return found;
}

std::string describe(const Place &place)
{
	return place.caller ? std::string(place.call) + " in " + where(place.caller) : place.call;
}

} // namespace sim
