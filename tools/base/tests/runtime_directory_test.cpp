// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that the directory for sockets is created with the right mode, and that directories of
// other users are refused.
#include "base/runtime_directory.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/unix_listener.hpp"

namespace
{

class RuntimeDirectory : public ::testing::Test
{
protected:
	RuntimeDirectory()
	{
		std::string pattern = std::filesystem::temp_directory_path() / "weft-test-XXXXXX";
		root_ = ::mkdtemp(pattern.data());
	}
	~RuntimeDirectory() override { std::filesystem::remove_all(root_); }

	static bool opens(const std::filesystem::path &path)
	{
		try {
			return static_cast<bool>(weft::open_private_directory(path));
		} catch (const std::runtime_error &) {
			return false;
		}
	}

	std::filesystem::path root_;
};

// A missing directory is created for the own user only, and opened again the next time.
TEST_F(RuntimeDirectory, MissingDirectoryIsCreatedWithMode0700)
{
	const auto path = root_ / "run" / "weft";
	EXPECT_TRUE(opens(path));
	struct stat status;
	ASSERT_EQ(::lstat(path.c_str(), &status), 0);
	EXPECT_EQ(status.st_mode & 07777, 0700u);
	EXPECT_TRUE(opens(path));
}

// Anything that another user may have put there is refused: a symlink, a file, a directory that
// others can read or write, another user's directory.
TEST_F(RuntimeDirectory, DirectoriesOfOtherUsersAreRefused)
{
	const auto own = root_ / "own";
	ASSERT_TRUE(opens(own));
	const auto link = root_ / "link";
	std::filesystem::create_directory_symlink(own, link);
	EXPECT_FALSE(opens(link));
	EXPECT_FALSE(opens(link / ""));
	std::ofstream(root_ / "file") << "x";
	EXPECT_FALSE(opens(root_ / "file"));
	for (const mode_t mode : {0777, 01777, 0755, 0710, 0701}) {
		ASSERT_EQ(::chmod(own.c_str(), mode), 0);
		EXPECT_FALSE(opens(own)) << std::oct << mode;
	}
	ASSERT_EQ(::chmod(own.c_str(), 0700), 0);
	EXPECT_TRUE(opens(own));
	// Only root can change the owner of a directory. Other users test with root's home
	// directory.
	const bool root = ::geteuid() == 0;
	ASSERT_EQ(root ? ::chown(own.c_str(), 12345, static_cast<gid_t>(-1)) : 0, 0);
	EXPECT_FALSE(opens(root ? own : std::filesystem::path("/root")));
}

TEST_F(RuntimeDirectory, DirectoryWithMode0710IsAcceptedOnlyIfGroupAccessIsRequested)
{
	const auto path = root_ / "weft";
	ASSERT_TRUE(weft::open_private_directory(path, true));
	struct stat status;
	ASSERT_EQ(::lstat(path.c_str(), &status), 0);
	EXPECT_EQ(status.st_mode & 07777, 0710u);
	EXPECT_TRUE(weft::open_private_directory(path, true));
	EXPECT_FALSE(opens(path)) << "not asked for";
	for (const mode_t mode : {0700, 0750, 0770, 0711, 0714}) {
		ASSERT_EQ(::chmod(path.c_str(), mode), 0);
		EXPECT_THROW(weft::open_private_directory(path, true), std::runtime_error)
			<< std::oct << mode;
	}
}

TEST_F(RuntimeDirectory, SocketIsGroupAccessibleOnlyIfRequestedAndIfItsDirectoryIsGroupAccessible)
{
	using Access = weft::UnixListener::Access;
	const auto mode_of = [&](Access access) {
		const weft::UnixListener listener(root_ / "card.sock", access);
		struct stat status;
		return ::lstat((root_ / "card.sock").c_str(), &status) ? 0 : status.st_mode & 07777;
	};
	EXPECT_EQ(mode_of(Access::owner), 0600u);
	EXPECT_EQ(mode_of(Access::directory_group), 0600u);
	ASSERT_EQ(::chmod(root_.c_str(), 0710), 0);
	EXPECT_EQ(mode_of(Access::owner), 0600u);
	EXPECT_EQ(mode_of(Access::directory_group), 0660u);
}

} // namespace
