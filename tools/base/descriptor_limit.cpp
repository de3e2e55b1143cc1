// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "base/descriptor_limit.hpp"

#include <sys/resource.h>

namespace weft
{

void raise_descriptor_limit()
{
	rlimit limit{};
	if (::getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	::setrlimit(RLIMIT_NOFILE, &limit);
}

} // namespace weft
