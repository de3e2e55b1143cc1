// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "tools/base/format_instances.hpp"

#if FMT_VERSION < 110000
template void fmt::detail::vformat_to<char>(fmt::detail::buffer<char> &,
					    fmt::basic_string_view<char>,
					    fmt::basic_format_args<fmt::buffer_context<char>>,
					    fmt::detail::locale_ref);
#endif
