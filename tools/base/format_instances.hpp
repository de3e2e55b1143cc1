// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/**
 * @file Instantiates fmt's formatter once for all sources. Each call of fmt::format_to() and of a
 * log function needs this template, and compiling it takes five seconds. CMake includes this header
 * in every source that uses fmt or spdlog.
 */
#pragma once

#include <fmt/format.h>

// In fmt 11, this is not a template but a function of libfmt.
#if FMT_VERSION < 110000
extern template void
fmt::detail::vformat_to<char>(fmt::detail::buffer<char> &, fmt::basic_string_view<char>,
			      fmt::basic_format_args<fmt::buffer_context<char>>,
			      fmt::detail::locale_ref);
#endif
