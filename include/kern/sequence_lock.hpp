// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Protects a value that readers copy without a lock while writers may change it. If a writer has
// interfered, the reader copies again.
//
//	kern::SequenceLock lock_{KERN_LOCK_CLASS("driver.address")};
//	kern::SharedCopy<Address> address_;
//
//	lock_.write([&] { address_.store(fresh); });
//	lock_.read([&] { address_.load(copy); });
#pragma once
#include <type_traits>
#include <kern/atomic.hpp>
#include <kern/lock.hpp>
#include <kern/types.h>

namespace kern
{

class SequenceLock
{
public:
	explicit SequenceLock(LockClass &lock_class) : lock_(lock_class) {}

	/*
	 * Calls @body, which must only load from SharedCopy. If a writer has interfered, calls it
	 * again with writers excluded. Context: any.
	 */
	template<class Body>
	void read(Body &&body) const
	{
		const u32 before = __atomic_load_n(&sequence_, __ATOMIC_ACQUIRE);
		if (!(before & 1)) [[likely]] {
			body();
			__atomic_thread_fence(__ATOMIC_ACQUIRE);
			if (read_once(sequence_) == before) [[likely]]
				return;
		}
		Guard guard(lock_);
		body();
	}

	/*
	 * Calls @body, which must only store to SharedCopy, while no other writer runs. Context:
	 * any.
	 */
	template<class Body>
	void write(Body &&body)
	{
		Guard guard(lock_);
		const u32 before = sequence_;
		write_once(sequence_, before + 1);
		__atomic_thread_fence(__ATOMIC_RELEASE);
		body();
		__atomic_store_n(&sequence_, before + 2, __ATOMIC_RELEASE);
	}

private:
	mutable IrqSpinLock lock_;
	u32 sequence_ = 0; // odd while a writer runs
};

/* Data that a SequenceLock protects. It is copied word by word, with atomic accesses. */
template<class T>
class SharedCopy
{
	static_assert(std::is_trivially_copyable_v<T>);

public:
	SharedCopy() = default;
	explicit SharedCopy(const T &value) { store(value); }
	SharedCopy(const SharedCopy &) = delete;
	SharedCopy &operator=(const SharedCopy &) = delete;

	void load(T &to) const
	{
		auto *bytes = reinterpret_cast<char *>(&to);
		for (size_t i = 0; i < words; i++) {
			const u64 word = read_once(words_[i]);
			__builtin_memcpy(bytes + i * sizeof(u64), &word, bytes_at(i));
		}
	}
	void store(const T &from)
	{
		const auto *bytes = reinterpret_cast<const char *>(&from);
		for (size_t i = 0; i < words; i++) {
			u64 word = 0;
			__builtin_memcpy(&word, bytes + i * sizeof(u64), bytes_at(i));
			write_once(words_[i], word);
		}
	}

private:
	static constexpr size_t words = (sizeof(T) + sizeof(u64) - 1) / sizeof(u64);
	static constexpr size_t bytes_at(size_t word)
	{
		const size_t left = sizeof(T) - word * sizeof(u64);
		return left < sizeof(u64) ? left : sizeof(u64);
	}

	u64 words_[words] = {};
};

} // namespace kern
