// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Pins the memory of a process, so that a device can access it.
#pragma once
#include <span>
#include <utility>
#include <kern/abi/user_memory.h>
#include <kern/memory.hpp>

namespace kern
{

/*
 * Memory in the form in which a device's page table describes it. The derived class has start(),
 * length() and for_each(), like UserMemory.
 */
template<class Memory>
class DescribedByPages
{
public:
	/*
	 * Returns log2 of the largest page size with which a page table of the device can describe
	 * the memory, if the byte at `start` gets the address `iova`. All pieces except the first
	 * begin, and all pieces except the last end, at a multiple of this size, and addresses are
	 * congruent to iova modulo it. The result is between page_shift and `most`.
	 */
	unsigned int page_shift_for(u64 iova, unsigned int most) const
	{
		u64 at = iova - self().start() % page_size; // address of the first page
		u64 bits = 0, last = 0;
		bool first = true;
		self().for_each([&](u64 address, u64 size) {
			bits |= address ^ at;
			if (!first)
				bits |= last | address;
			first = false;
			last = address + size;
			at += size;
			/* For pieces with arbitrary addresses, the loop ends early. */
			return !(bits >> page_shift & 1);
		});
		/*
		 * The page is not larger than necessary for describing the memory with one entry.
		 */
		unsigned int shift = page_shift;
		while (shift < most && !(bits >> shift & 1) &&
		       (iova >> shift) != (iova + self().length() - 1) >> shift)
			shift++;
		return shift;
	}

	/*
	 * Calls body(address) for each such page in order. The memory may end within the last page.
	 */
	template<class Body>
	void for_each_page(u64 iova, unsigned int shift, Body body) const
	{
		const u64 size_of_page = u64{1} << shift;
		u64 skipped = (iova - self().start() % page_size) & (size_of_page - 1);
		self().for_each([&](u64 address, u64 size) {
			/* The first page may begin before the memory. */
			address -= skipped;
			size += std::exchange(skipped, 0);
			for (u64 done = 0; done < size; done += size_of_page)
				body(address + done);
			return true;
		});
	}

private:
	const Memory &self() const { return static_cast<const Memory &>(*this); }
};

/*
 * Pinned pages of a process, which a device reads and, if the process may write them, also writes.
 * They are marked as written. fork() copies them for the child.
 */
class UserMemory : public DescribedByPages<UserMemory>
{
public:
	UserMemory() = default;
	/*
	 * Pins the pages of the calling process that contain `length` bytes from `start` (for zero
	 * bytes, the page that contains `start`). They are accounted to the process until they are
	 * released, even if that happens in another task or after the process has exited. Context:
	 * process; may take as long as reading all of it from a disk; is interrupted when the
	 * process is killed.
	 * Errors: EINVAL for zero bytes at a page boundary, or a range that wraps around; EPERM for
	 * a process that may not lock memory; ENOMEM, also beyond RLIMIT_MEMLOCK without
	 * CAP_IPC_LOCK; EFAULT if nothing is mapped, for a read-only mapping if must_write is set
	 * and, before Linux 6.2, for a shared read-only mapping in any case; EINTR; EOPNOTSUPP for
	 * files whose pages cannot be pinned for long.
	 */
	static Result<UserMemory> create(device *device, u64 start, u64 length, bool must_write)
	{
		kern_user_memory *native = kern_user_memory_pin(device, start, length, must_write);
		const auto value = reinterpret_cast<long>(native);
		if (value < 0 && value >= -4095)
			return Error{static_cast<int>(value)};
		return UserMemory(native, start, length);
	}
	UserMemory(UserMemory &&other) noexcept
	    : native_(std::exchange(other.native_, nullptr)), start_(other.start_),
	      length_(other.length_)
	{
	}
	UserMemory &operator=(UserMemory &&other) noexcept
	{
		std::swap(native_, other.native_);
		std::swap(start_, other.start_);
		std::swap(length_, other.length_);
		return *this;
	}
	/* The device must not access the memory any more. May sleep. */
	~UserMemory()
	{
		if (native_)
			kern_user_memory_release(native_);
	}

	explicit operator bool() const { return native_ != nullptr; }
	/* Returns true if the device may write to the memory, as far as the process itself may. */
	bool writable() const { return kern_user_memory_writable(native_); }
	/* Returns true if the memory belongs to the calling process. */
	bool of_caller() const { return kern_user_memory_of_caller(native_); }
	u64 start() const { return start_; }
	u64 length() const { return length_; }
	std::size_t pages() const
	{
		return (start_ % page_size + length_ + page_size - 1) >> page_shift;
	}

	/*
	 * Calls body(address, size) for each piece that is contiguous for the device, until body
	 * returns false. Pieces consist of whole pages, beginning with the page that contains
	 * `start`.
	 */
	template<class Body>
	void for_each(Body body) const
	{
		/*
		 * One call fetches several pieces, because otherwise the calls would take most of
		 * the time.
		 */
		kern_user_piece pieces[32];
		kern_user_cursor cursor{};
		for (;;) {
			const unsigned int count = kern_user_memory_pieces(native_, &cursor, pieces,
									   std::size(pieces));
			for (unsigned int i = 0; i < count; i++)
				if (!body(pieces[i].address, pieces[i].size))
					return;
			if (count < std::size(pieces))
				return;
		}
	}

private:
	UserMemory(kern_user_memory *native, u64 start, u64 length)
	    : native_(native), start_(start), length_(length)
	{
	}

	kern_user_memory *native_ = nullptr;
	u64 start_ = 0;
	u64 length_ = 0;
};

} // namespace kern
