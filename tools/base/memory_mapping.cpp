// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "base/memory_mapping.hpp"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/descriptor_kind.hpp"
#include "base/shared_memory.hpp"

namespace weft
{

namespace
{

[[noreturn]] void fail(int error, const char *what)
{
	throw std::system_error(error, std::generic_category(), what);
}

FileDescriptor make_event()
{
	FileDescriptor event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (!event)
		fail(errno, "eventfd");
	return event;
}

// Mapped pages that have no owner yet.
class Pages
{
public:
	Pages(std::size_t size, int protection, int flags, int fd, std::uint64_t offset)
	    : size_(size),
	      data_(::mmap(nullptr, size, protection, flags, fd, static_cast<off_t>(offset)))
	{
		if (data_ == MAP_FAILED)
			fail(errno, "mmap");
		// Core files of this process must not contain a guest's memory.
		::madvise(data_, size, MADV_DONTDUMP);
	}
	~Pages()
	{
		if (data_ != MAP_FAILED)
			::munmap(data_, size_);
	}
	Pages(const Pages &) = delete;
	Pages &operator=(const Pages &) = delete;

	std::byte *data() const { return static_cast<std::byte *>(data_); }
	void release() { data_ = MAP_FAILED; }

private:
	const std::size_t size_;
	void *data_;
};

// Rounds up to whole huge pages for hugetlbfs, which maps nothing smaller. For other files, the
// kernel rounds up.
std::size_t whole_pages(int fd, std::size_t size)
{
	struct statfs system;
	if (::fstatfs(fd, &system) || system.f_type != HUGETLBFS_MAGIC)
		return size;
	const auto page = static_cast<std::size_t>(system.f_bsize);
	return (size + page - 1) / page * page;
}

} // namespace

MemoryLender::MemoryLender(std::size_t most_mappings) : most_(most_mappings), event_(make_event())
{
}

bool MemoryLender::take(std::uint64_t size)
{
	if (size > most_bytes())
		return false;
	const bool one_more = mappings_.fetch_add(1, std::memory_order_relaxed) < most_;
	const bool so_large =
		bytes_.fetch_add(size, std::memory_order_relaxed) <= most_bytes() - size;
	if (one_more && so_large)
		return true;
	release(size);
	return false;
}

void MemoryLender::release(std::uint64_t size)
{
	mappings_.fetch_sub(1, std::memory_order_relaxed);
	bytes_.fetch_sub(size, std::memory_order_relaxed);
}

void MemoryLender::fail() noexcept
{
	const std::uint64_t one = 1;
	failed_.store(true, std::memory_order_release);
	// A full counter is readable, too.
	[[maybe_unused]] const auto written = ::write(event_.get(), &one, sizeof(one));
}

// Loan - counts a mapping among those of its lender. It is created before the addresses are mapped,
// so that the limit is never exceeded.
class MemoryMapping::Loan
{
public:
	Loan(std::shared_ptr<MemoryLender> lender, std::size_t size)
	    : lender_(std::move(lender)), size_(size)
	{
		if (!lender_->take(size_))
			fail(ENOSPC, "the client's mappings");
	}
	~Loan()
	{
		// The slot is used from the allocation of the addresses until they are released.
		if (number_ >= 0)
			shared_memory::remove(number_);
		lender_->release(size_);
	}
	Loan(const Loan &) = delete;
	Loan &operator=(const Loan &) = delete;

	// Adds the addresses to the table of shared memory.
	void place(const Pages &pages)
	{
		number_ = shared_memory::add(reinterpret_cast<std::uintptr_t>(pages.data()), size_,
					     *lender_);
		if (number_ < 0)
			fail(ENOSPC, "the process's mappings");
	}

private:
	const std::shared_ptr<MemoryLender> lender_;
	const std::size_t size_;
	int number_ = -1;
};

MemoryMapping::MemoryMapping(std::byte *data, std::size_t size, std::size_t mapped,
			     std::unique_ptr<Loan> loan)
    : data_(data), size_(size), mapped_(mapped), loan_(std::move(loan))
{
}

std::shared_ptr<const MemoryMapping> MemoryMapping::map_file(int fd, std::uint64_t offset,
							     std::size_t size, bool writable,
							     std::shared_ptr<MemoryLender> lender)
{
	if (!is_of_the_kernel(fd))
		fail(EOPNOTSUPP, "a file of a foreign file system");
	struct stat status;
	if (::fstat(fd, &status))
		fail(errno, "fstat");
	// The file may be truncated later (see the SIGBUS handler), but a client whose file is too
	// short from the beginning gets an error.
	const auto end = offset + size;
	if (!size || end < offset || end > static_cast<std::uint64_t>(status.st_size))
		fail(EINVAL, "section beyond its file");
	const std::size_t mapped = whole_pages(fd, size);
	auto loan = std::make_unique<Loan>(std::move(lender), mapped);
	Pages pages(mapped, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, offset);
	loan->place(pages);
	std::unique_ptr<const MemoryMapping> mapping(
		new MemoryMapping(pages.data(), size, mapped, std::move(loan)));
	pages.release();
	return mapping;
}

std::shared_ptr<const MemoryMapping> MemoryMapping::allocate(std::size_t size)
{
	Pages pages(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	std::unique_ptr<const MemoryMapping> mapping(
		new MemoryMapping(pages.data(), size, size, nullptr));
	pages.release();
	return mapping;
}

MemoryMapping::~MemoryMapping()
{
	// The slot must be released before the addresses.
	loan_.reset();
	::munmap(data_, mapped_);
}

} // namespace weft
