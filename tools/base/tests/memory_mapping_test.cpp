// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that weftd survives the loss of pages of shared memory, and that the number and size of
// mappings are limited.
#include "base/memory_mapping.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <latch>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/guest_memory.hpp"

using weft::FileDescriptor;
using weft::GuestMemory;
using weft::kSharedBytesPerMapping;
using weft::kMaxSharedMappings;
using weft::MemoryLender;
using weft::MemoryMapping;

namespace
{

constexpr std::uint64_t kPage = 4096;

FileDescriptor make_file(std::uint64_t size)
{
	FileDescriptor file(::memfd_create("test", MFD_CLOEXEC));
	if (::ftruncate(file.get(), static_cast<off_t>(size)))
		throw std::system_error(errno, std::generic_category(), "ftruncate");
	return file;
}

bool readable(int fd)
{
	pollfd state{fd, POLLIN, 0};
	return ::poll(&state, 1, 0) == 1;
}

// Returns the errno of mapping a page of @file. If it is 0, the page is mapped and kept in
// @mappings.
int error_of_mapping(const FileDescriptor &file, const std::shared_ptr<MemoryLender> &lender,
		     std::vector<std::shared_ptr<const MemoryMapping>> &mappings)
{
	try {
		mappings.push_back(MemoryMapping::map_file(file.get(), 0, kPage, true, lender));
		return 0;
	} catch (const std::system_error &error) {
		return error.code().value();
	}
}

// A mapped file shares its bytes. Mapping a file that is too short is refused, because accesses
// would fault.
TEST(MemoryMapping, MappingBeyondTheEndOfAFileIsRefused)
{
	const auto file = make_file(2 * kPage);
	const auto mapping = MemoryMapping::map_file(file.get(), kPage, kPage, true);
	mapping->data()[5] = std::byte{42};
	char seen = 0;
	ASSERT_EQ(::pread(file.get(), &seen, 1, kPage + 5), 1);
	EXPECT_EQ(seen, 42);
	EXPECT_THROW(MemoryMapping::map_file(file.get(), kPage, 2 * kPage, true),
		     std::system_error);
	EXPECT_THROW(MemoryMapping::map_file(file.get(), 0, 0, true), std::system_error);
	EXPECT_THROW(MemoryMapping::map_file(file.get(), ~0ull - kPage + 1, 2 * kPage, true),
		     std::system_error);
	EXPECT_THROW(MemoryMapping::map_file(-1, 0, kPage, true), std::system_error);
}

// An owner that truncates its file while it is in use loses the memory that it has shared, and is
// notified. The memory of other owners does not change.
TEST(MemoryMapping, MappingOfATruncatedFileBecomesPrivateMemoryAndOtherFilesAreUnaffected)
{
	const auto file = make_file(4 * kPage);
	const auto other_file = make_file(kPage);
	const auto lender = std::make_shared<MemoryLender>();
	const auto other = std::make_shared<MemoryLender>();
	GuestMemory memory;
	memory.map(0, 4 * kPage, true, true,
		   MemoryMapping::map_file(file.get(), 0, 4 * kPage, true, lender));
	memory.map(8 * kPage, kPage, true, true,
		   MemoryMapping::map_file(other_file.get(), 0, kPage, true, other));
	ASSERT_TRUE(memory.write_as<std::uint32_t>(0, 1));
	ASSERT_TRUE(memory.write_as<std::uint32_t>(8 * kPage, 2));
	EXPECT_FALSE(readable(lender->event()));

	ASSERT_EQ(::ftruncate(file.get(), 0), 0);
	EXPECT_EQ(memory.read_as<std::uint32_t>(2 * kPage), 0u);
	EXPECT_TRUE(lender->failed());
	EXPECT_TRUE(readable(lender->event()));
	// The whole mapping is now private memory of the process.
	EXPECT_EQ(memory.read_as<std::uint32_t>(0), 0u);
	EXPECT_TRUE(memory.write_as<std::uint32_t>(kPage, 7));
	EXPECT_EQ(memory.read_as<std::uint32_t>(kPage), 7u);
	EXPECT_EQ(memory.fetch_add(3 * kPage, 5), 0u);
	struct stat status;
	ASSERT_EQ(::fstat(file.get(), &status), 0);
	EXPECT_EQ(status.st_size, 0);

	EXPECT_FALSE(other->failed());
	EXPECT_FALSE(readable(other->event()));
	EXPECT_EQ(memory.read_as<std::uint32_t>(8 * kPage), 2u);
}

#ifndef WEFT_THREAD_SANITIZER
// These tests do not run with ThreadSanitizer. Its runtime executes atomic accesses itself and
// delivers no signal until they have finished, so one that faults never does. Also, the threads of
// the second test race on purpose.

// The same holds if the first access is a write or an atomic operation, or if the memory is
// read-only.
TEST(MemoryMapping, ReadsWritesAndAtomicsOnATruncatedPageDoNotKillTheProcess)
{
	const auto lost = [](bool writable, auto &&access) {
		const auto file = make_file(kPage);
		const auto lender = std::make_shared<MemoryLender>();
		GuestMemory memory;
		memory.map(0, kPage, true, writable,
			   MemoryMapping::map_file(file.get(), 0, kPage, writable, lender));
		EXPECT_EQ(::ftruncate(file.get(), 0), 0);
		access(memory);
		return lender->failed();
	};
	EXPECT_TRUE(lost(true, [](GuestMemory &memory) {
		const std::vector<std::byte> page(kPage, std::byte{1});
		EXPECT_TRUE(memory.write(0, page));
	}));
	EXPECT_TRUE(lost(true, [](GuestMemory &memory) { memory.compare_swap(8, 0, 1); }));
	EXPECT_TRUE(lost(true, [](GuestMemory &memory) { memory.store<std::uint32_t>(4, 1); }));
	EXPECT_TRUE(lost(false, [](GuestMemory &memory) { memory.load<std::uint32_t>(4); }));
}

// Two threads may access the same missing page at once: the card's, and that of a peer that reads
// from it.
TEST(MemoryMapping, ConcurrentAccessToATruncatedPageDoesNotKillTheProcess)
{
	constexpr int rounds = 200;
	constexpr int thread_count = 4;
	for (int round = 0; round < rounds; ++round) {
		const auto file = make_file(kPage);
		const auto lender = std::make_shared<MemoryLender>();
		const auto mapping = MemoryMapping::map_file(file.get(), 0, kPage, true, lender);
		ASSERT_EQ(::ftruncate(file.get(), 0), 0);
		std::latch start(thread_count);
		std::vector<std::thread> threads;
		for (int i = 0; i < thread_count; ++i)
			threads.emplace_back([&start, &mapping, i] {
				start.arrive_and_wait();
				std::memset(mapping->data(), i, kPage);
			});
		for (auto &thread : threads)
			thread.join();
		EXPECT_TRUE(lender->failed());
	}
}
#endif

// A full file system has no page for a hole that is accessed, even if the file is large enough.
TEST(MemoryMapping, WriteToAHoleOnAFullFileSystemDoesNotKillTheProcess)
{
	enum Result { kContained, kKilledOtherwise, kNotPossible };
	// Runs in a separate process, because only that one may mount a file system.
	const pid_t child = ::fork();
	if (child == 0) {
		if (::unshare(::geteuid() ? CLONE_NEWUSER | CLONE_NEWNS : CLONE_NEWNS) ||
		    ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) ||
		    ::mount("small", "/tmp", "tmpfs", 0, "size=16k"))
			::_exit(kNotPossible);
		const FileDescriptor file(::open("/tmp/memory", O_RDWR | O_CREAT, 0600));
		const auto lender = std::make_shared<MemoryLender>();
		if (!file || ::ftruncate(file.get(), 64 * kPage))
			::_exit(kNotPossible);
		const auto mapping =
			MemoryMapping::map_file(file.get(), 0, 64 * kPage, true, lender);
		std::memset(mapping->data(), 1, 64 * kPage);
		::_exit(lender->failed() ? kContained : kKilledOtherwise);
	}
	int status = 0;
	ASSERT_EQ(::waitpid(child, &status, 0), child);
	ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
	if (WEXITSTATUS(status) == kNotPossible)
		GTEST_SKIP() << "a file system cannot be mounted here";
	EXPECT_EQ(WEXITSTATUS(status), kContained);
}

// Reserves at least one huge page while it exists, if possible, as an administrator would.
class HugePages
{
public:
	HugePages() : former_(read("nr_hugepages"))
	{
		if (former_ == 0)
			write(1);
		made_ = read("nr_hugepages") != former_;
	}
	~HugePages()
	{
		if (made_)
			write(former_);
	}
	HugePages(const HugePages &) = delete;
	HugePages &operator=(const HugePages &) = delete;

	// Returns true if the pool has a fixed size, so that the kernel allocates no further huge
	// pages on demand.
	bool has_an_end() const
	{
		return read("nr_hugepages") > 0 && read("nr_overcommit_hugepages") == 0;
	}
	long size() const { return read("nr_hugepages"); }

private:
	static long read(const std::string &name)
	{
		long number = 0;
		return std::ifstream("/proc/sys/vm/" + name) >> number ? number : 0;
	}
	static void write(long number) { std::ofstream("/proc/sys/vm/nr_hugepages") << number; }

	const long former_;
	bool made_ = false;
};

// A guest whose memory consists of huge pages may release one, and another process may then use the
// last one of the pool. Then there is no page for the hole. (If a file has all its pages, the
// kernel reserves as many as are mapped.)
TEST(MemoryMapping, AccessToAFileHoleDoesNotKillTheProcessIfNoHugePageIsFree)
{
	enum Result { kContained, kKilledOtherwise, kNotPossible };
	const HugePages pool;
	if (!pool.has_an_end())
		GTEST_SKIP() << "no pool of huge pages, and none can be made here";
	// Runs in a separate process, so that the pool is unchanged however it ends.
	const pid_t child = ::fork();
	if (child == 0) {
		const FileDescriptor file(::memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB));
		const FileDescriptor rest(::memfd_create("rest", MFD_CLOEXEC | MFD_HUGETLB));
		struct statfs system;
		if (!file || !rest || ::fstatfs(file.get(), &system))
			::_exit(kNotPossible);
		const auto huge = static_cast<off_t>(system.f_bsize);
		if (::ftruncate(file.get(), huge) || ::fallocate(file.get(), 0, 0, huge) ||
		    ::ftruncate(rest.get(), (pool.size() + 1) * huge))
			::_exit(kNotPossible);
		const auto lender = std::make_shared<MemoryLender>();
		GuestMemory memory;
		// A section may cover a part of a huge page.
		const auto size = static_cast<std::uint64_t>(huge) / 2;
		memory.map(0, size, true, true,
			   MemoryMapping::map_file(file.get(), 0, size, true, lender));
		if (!memory.write_as<std::uint32_t>(kPage, 1) || lender->failed() ||
		    ::fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, huge))
			::_exit(kKilledOtherwise);
		for (off_t at = 0; ::fallocate(rest.get(), 0, at, huge) == 0; at += huge)
			;
		const bool zero = memory.read_as<std::uint32_t>(kPage) == 0u;
		const bool own = memory.write_as<std::uint32_t>(size - kPage, 7) &&
				 memory.read_as<std::uint32_t>(size - kPage) == 7u;
		::_exit(zero && own && lender->failed() ? kContained : kKilledOtherwise);
	}
	int status = 0;
	ASSERT_EQ(::waitpid(child, &status, 0), child);
	ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
	if (WEXITSTATUS(status) == kNotPossible)
		GTEST_SKIP() << "all huge pages are in use";
	EXPECT_EQ(WEXITSTATUS(status), kContained);
}

// Files whose pages are provided by another program are refused, because their readers would have
// to wait for that program. FUSE files are of this kind, and files on an overlay may be.
TEST(MemoryMapping, RejectsFilesOfNetworkFileSystems)
{
	enum Result { kRefused, kTaken, kNotPossible };
	const pid_t child = ::fork();
	if (child == 0) {
		if (::unshare(::geteuid() ? CLONE_NEWUSER | CLONE_NEWNS : CLONE_NEWNS) ||
		    ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) ||
		    ::mount("layers", "/tmp", "tmpfs", 0, nullptr) || ::mkdir("/tmp/below", 0700) ||
		    ::mkdir("/tmp/above", 0700) || ::mkdir("/tmp/work", 0700) ||
		    ::mkdir("/tmp/all", 0700) ||
		    ::mount("all", "/tmp/all", "overlay", 0,
			    "lowerdir=/tmp/below,upperdir=/tmp/above,workdir=/tmp/work"))
			::_exit(kNotPossible);
		const FileDescriptor file(::open("/tmp/all/memory", O_RDWR | O_CREAT, 0600));
		if (!file || ::ftruncate(file.get(), kPage))
			::_exit(kNotPossible);
		std::vector<std::shared_ptr<const MemoryMapping>> mappings;
		::_exit(error_of_mapping(file, std::make_shared<MemoryLender>(), mappings) ==
					EOPNOTSUPP
				? kRefused
				: kTaken);
	}
	int status = 0;
	ASSERT_EQ(::waitpid(child, &status, 0), child);
	ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
	if (WEXITSTATUS(status) == kNotPossible)
		GTEST_SKIP() << "a file system cannot be mounted here";
	EXPECT_EQ(WEXITSTATUS(status), kRefused);
}

// Memory may be a file on a disk, for guests without another choice, but it must be a regular file,
// even if other files could be mapped.
TEST(MemoryMapping, AcceptsFilesOfLocalFileSystems)
{
	const FileDescriptor file(
		::open(::testing::TempDir().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
	if (!file)
		GTEST_SKIP() << "no file without a name in " << ::testing::TempDir();
	ASSERT_EQ(::ftruncate(file.get(), kPage), 0);
	std::vector<std::shared_ptr<const MemoryMapping>> mappings;
	const auto lender = std::make_shared<MemoryLender>();
	EXPECT_EQ(error_of_mapping(file, lender, mappings), 0);
	const FileDescriptor device(::open("/dev/zero", O_RDWR | O_CLOEXEC));
	EXPECT_EQ(error_of_mapping(device, lender, mappings), EOPNOTSUPP);
}

// A fault outside the memory of a MemoryMapping kills the process, as without the handler.
TEST(MemoryMapping, SigbusOutsideAMemoryMappingKillsTheProcess)
{
	const auto file = make_file(kPage);
	const auto mapping = MemoryMapping::map_file(file.get(), 0, kPage, true);
	EXPECT_DEATH(
		{
			const auto own = make_file(kPage);
			auto *page = static_cast<volatile char *>(
				::mmap(nullptr, kPage, PROT_READ, MAP_SHARED, own.get(), 0));
			if (::ftruncate(own.get(), 0) == 0)
				static_cast<void>(*page);
		},
		"");
}

// The number of mappings of a client is limited. Another one is possible after one is removed.
TEST(MemoryMapping, NumberOfMappingsPerClientIsLimited)
{
	const auto file = make_file(kPage);
	const auto lender = std::make_shared<MemoryLender>(3);
	std::vector<std::shared_ptr<const MemoryMapping>> mappings;
	for (int i = 0; i < 3; ++i)
		EXPECT_EQ(error_of_mapping(file, lender, mappings), 0);
	EXPECT_EQ(error_of_mapping(file, lender, mappings), ENOSPC);
	EXPECT_EQ(lender->mappings(), 3u);
	mappings.pop_back();
	EXPECT_EQ(error_of_mapping(file, lender, mappings), 0);
}

// The total size of a client's mappings is limited as well, whatever their number. Memory that is
// never accessed costs a client nothing, but all clients share the address space.
TEST(MemoryMapping, NumberOfMappedBytesPerClientIsLimited)
{
	constexpr std::uint64_t most = 2 * kSharedBytesPerMapping;
	const auto file = make_file(1ull << 46);
	const auto lender = std::make_shared<MemoryLender>(2);
	EXPECT_EQ(lender->most_bytes(), most);
	EXPECT_THROW(MemoryMapping::map_file(file.get(), 0, most + kPage, true, lender),
		     std::system_error);
	EXPECT_THROW(MemoryMapping::map_file(file.get(), 0, 1ull << 46, true, lender),
		     std::system_error);
	EXPECT_EQ(lender->bytes(), 0u);
	auto large = MemoryMapping::map_file(file.get(), 0, most - kPage, true, lender);
	std::vector<std::shared_ptr<const MemoryMapping>> mappings;
	EXPECT_EQ(error_of_mapping(file, lender, mappings), 0);
	EXPECT_EQ(lender->bytes(), most);
	mappings.clear();
	large.reset();
	large = MemoryMapping::map_file(file.get(), 0, most, true, lender);
	EXPECT_EQ(error_of_mapping(file, lender, mappings), ENOSPC)
		<< "one mapping of two, and no byte left";
	EXPECT_EQ(lender->mappings(), 1u);
	large.reset();
	EXPECT_EQ(error_of_mapping(file, lender, mappings), 0);
}

// All clients together can use half of the mappings that the kernel grants a process. Each of them
// may lose its memory, including the first and the last.
TEST(MemoryMapping, NumberOfMappingsPerProcessIsLimited)
{
	const auto file = make_file(kPage);
	std::vector<std::shared_ptr<const MemoryMapping>> mappings;
	const auto lender = std::make_shared<MemoryLender>(2 * kMaxSharedMappings);
	for (std::size_t i = 0; i < kMaxSharedMappings; ++i)
		ASSERT_EQ(error_of_mapping(file, lender, mappings), 0) << i;
	EXPECT_EQ(error_of_mapping(file, lender, mappings), ENOSPC);
	EXPECT_EQ(lender->mappings(), kMaxSharedMappings);
	// The process has not reached the limit of the kernel itself.
	void *const own = ::mmap(nullptr, kPage, PROT_READ, MAP_SHARED, file.get(), 0);
	EXPECT_NE(own, MAP_FAILED);
	::munmap(own, kPage);

	mappings.pop_back();
	const auto last_file = make_file(kPage);
	const auto last = std::make_shared<MemoryLender>();
	ASSERT_EQ(error_of_mapping(last_file, last, mappings), 0);
	ASSERT_EQ(::ftruncate(last_file.get(), 0), 0);
	mappings.back()->data()[0] = std::byte{1};
	EXPECT_TRUE(last->failed());
	EXPECT_FALSE(lender->failed());
}

} // namespace
