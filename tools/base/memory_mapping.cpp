// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "base/memory_mapping.hpp"

#include <cerrno>
#include <system_error>

#include <linux/magic.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/lent_memory.hpp"

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

// Pages that were mapped, until they have an owner.
class Pages
{
public:
	Pages(std::size_t size, int protection, int flags, int fd, std::uint64_t offset)
	    : size_(size),
	      data_(::mmap(nullptr, size, protection, flags, fd, static_cast<off_t>(offset)))
	{
		if (data_ == MAP_FAILED)
			fail(errno, "mmap");
		// A guest's memory does not belong into a core file of this process.
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

// Of hugetlbfs only whole huge pages are mapped and unmapped; of all else, the kernel rounds up.
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

bool MemoryLender::take()
{
	if (mappings_.fetch_add(1, std::memory_order_relaxed) < most_)
		return true;
	give_back();
	return false;
}

void MemoryLender::fail() noexcept
{
	const std::uint64_t one = 1;
	failed_.store(true, std::memory_order_release);
	// A full counter is readable, too.
	[[maybe_unused]] const auto written = ::write(event_.get(), &one, sizeof(one));
}

// Place - the mapping's entry in the table of lent memory, and among its lender's.
class MemoryMapping::Place
{
public:
	Place(const Pages &pages, std::size_t size, std::shared_ptr<MemoryLender> lender)
	    : lender_(std::move(lender))
	{
		if (!lender_->take())
			fail(ENOSPC, "the client's mappings");
		number_ = lent_memory::add(reinterpret_cast<std::uintptr_t>(pages.data()), size,
					   *lender_);
		if (number_ < 0) {
			lender_->give_back();
			fail(ENOSPC, "the process's mappings");
		}
	}
	~Place()
	{
		lent_memory::remove(number_);
		lender_->give_back();
	}
	Place(const Place &) = delete;
	Place &operator=(const Place &) = delete;

private:
	const std::shared_ptr<MemoryLender> lender_;
	int number_;
};

MemoryMapping::MemoryMapping(std::byte *data, std::size_t size, std::size_t mapped,
			     std::unique_ptr<Place> place)
    : data_(data), size_(size), mapped_(mapped), place_(std::move(place))
{
}

std::shared_ptr<const MemoryMapping> MemoryMapping::map_file(int fd, std::uint64_t offset,
							     std::size_t size, bool writable,
							     std::shared_ptr<MemoryLender> lender)
{
	struct stat status;
	if (::fstat(fd, &status))
		fail(errno, "fstat");
	// It may shrink later; but a client that gives too little now is told so.
	const auto end = offset + size;
	if (!size || end < offset || end > static_cast<std::uint64_t>(status.st_size))
		fail(EINVAL, "section beyond its file");
	const std::size_t mapped = whole_pages(fd, size);
	Pages pages(mapped, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, offset);
	auto place = std::make_unique<Place>(pages, mapped, std::move(lender));
	std::unique_ptr<const MemoryMapping> mapping(
		new MemoryMapping(pages.data(), size, mapped, std::move(place)));
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
	// Before the addresses are anybody else's.
	place_.reset();
	::munmap(data_, mapped_);
}

} // namespace weft
