// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that connections are accepted again after a shortage of descriptors, and that the limit of
// descriptors is raised.
#include "base/acceptor.hpp"

#include <filesystem>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/descriptor_limit.hpp"
#include "base/loop.hpp"

using weft::Acceptor;
using weft::FileDescriptor;
using weft::Loop;

namespace
{

// While this object exists, the process cannot open another descriptor.
class NoDescriptors
{
public:
	NoDescriptors()
	{
		::getrlimit(RLIMIT_NOFILE, &former_);
		// The lowest free descriptor becomes the limit, because all descriptors below it
		// are in use.
		const FileDescriptor next(::open("/dev/null", O_RDONLY | O_CLOEXEC));
		rlimit none = former_;
		none.rlim_cur = static_cast<rlim_t>(next.get());
		::setrlimit(RLIMIT_NOFILE, &none);
	}
	~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &former_); }

private:
	rlimit former_{};
};

// If there is no descriptor for a connection, the connection is not lost and the loop does not
// spin.
TEST(Acceptor, PendingConnectionIsAcceptedWhenAFileDescriptorBecomesFree)
{
	const auto path = std::filesystem::temp_directory_path() /
			  ("weft-acceptor-" + std::to_string(::getpid()));
	Loop loop("test", Loop::Mode::manual);
	std::vector<FileDescriptor> connected;
	Acceptor acceptor(loop, weft::UnixListener(path),
			  [&](FileDescriptor socket) { connected.push_back(std::move(socket)); });
	const auto client = weft::connect_unix(path);
	{
		const NoDescriptors none;
		// The loop checks the listener only once; poll() would not return if it were ready
		// again and again.
		EXPECT_LE(loop.poll(), 2u);
		EXPECT_TRUE(connected.empty());
	}
	EXPECT_TRUE(loop.run_until([&] { return !connected.empty(); }));
	const auto second = weft::connect_unix(path);
	EXPECT_TRUE(loop.run_until([&] { return connected.size() == 2; }));
}

// The limit is raised to the maximum that the process may have.
TEST(DescriptorLimit, SoftLimitIsRaisedToTheHardLimit)
{
	rlimit former{};
	ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &former), 0);
	rlimit low = former;
	low.rlim_cur = 64;
	ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
	weft::raise_descriptor_limit();
	rlimit now{};
	ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &now), 0);
	EXPECT_EQ(now.rlim_cur, former.rlim_max);
	::setrlimit(RLIMIT_NOFILE, &former);
}

} // namespace
