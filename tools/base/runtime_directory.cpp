// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "base/runtime_directory.hpp"

#include <cerrno>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
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

FileDescriptor open_private_directory(const std::filesystem::path &directory, bool with_group)
{
	const mode_t shared = with_group ? S_IXGRP : 0;
	// With a trailing slash, open() would follow a symbolic link.
	const auto path = directory.has_filename() ? directory : directory.parent_path();
	if (const auto parent = path.parent_path(); !parent.empty())
		std::filesystem::create_directories(parent);
	// Set the mode explicitly, because mkdir() applies the umask.
	if (::mkdir(path.c_str(), S_IRWXU) ? errno != EEXIST
					   : ::chmod(path.c_str(), S_IRWXU | shared) != 0)
		throw std::system_error(errno, std::generic_category(), path.string());
	FileDescriptor opened(
		::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
	if (!opened && (errno == ELOOP || errno == ENOTDIR))
		throw std::runtime_error(path.string() + " is no directory");
	struct stat status;
	if (!opened || ::fstat(opened.get(), &status))
		throw std::system_error(errno, std::generic_category(), path.string());
	if (status.st_uid != ::geteuid())
		throw std::runtime_error(path.string() + " belongs to another user");
	if (status.st_mode & (S_IRWXG | S_IRWXO) & ~shared)
		throw std::runtime_error(path.string() + " is open to other users: chmod " +
					 (with_group ? "710" : "700") + " it");
	if (with_group && !(status.st_mode & S_IXGRP))
		throw std::runtime_error(path.string() + " is closed to its group: chmod 710 it");
	return opened;
}

} // namespace weft
