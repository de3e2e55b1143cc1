// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "base/runtime_directory.hpp"

#include <cstdlib>
#include <string>

#include <unistd.h>

namespace weft
{

std::filesystem::path default_socket_directory()
{
	const char *runtime = std::getenv("XDG_RUNTIME_DIR");
	if (runtime && *runtime)
		return std::filesystem::path(runtime) / "weft";
	return std::filesystem::temp_directory_path() / ("weft-" + std::to_string(::getuid()));
}

} // namespace weft
