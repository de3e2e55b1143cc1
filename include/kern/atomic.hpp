// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines atomic variables and memory barriers. The kernel's memory orders have their C++ names:
// READ_ONCE is load_relaxed, smp_load_acquire is load_acquire, and so on. All functions are inline.
#pragma once
#include <type_traits>

namespace kern
{

template<class T>
class Atomic
{
	static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);

public:
	constexpr Atomic() = default;
	constexpr Atomic(T value) : value_(value) {}
	Atomic(const Atomic &) = delete;
	Atomic &operator=(const Atomic &) = delete;

	T load_relaxed() const { return __atomic_load_n(&value_, __ATOMIC_RELAXED); }
	T load_acquire() const { return __atomic_load_n(&value_, __ATOMIC_ACQUIRE); }
	void store_relaxed(T value) { __atomic_store_n(&value_, value, __ATOMIC_RELAXED); }
	void store_release(T value) { __atomic_store_n(&value_, value, __ATOMIC_RELEASE); }

	/*
	 * Read-modify-write operations order all accesses before and after them, like the kernel's
	 * operations that return a value.
	 */
	T exchange(T value) { return __atomic_exchange_n(&value_, value, __ATOMIC_SEQ_CST); }
	bool compare_exchange(T &expected, T desired)
	{
		return __atomic_compare_exchange_n(&value_, &expected, desired, false,
						   __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
	}
	T fetch_add(T amount)
		requires std::is_integral_v<T>
	{
		return __atomic_fetch_add(&value_, amount, __ATOMIC_SEQ_CST);
	}
	T fetch_sub(T amount)
		requires std::is_integral_v<T>
	{
		return __atomic_fetch_sub(&value_, amount, __ATOMIC_SEQ_CST);
	}
	T fetch_or(T bits)
		requires std::is_integral_v<T>
	{
		return __atomic_fetch_or(&value_, bits, __ATOMIC_SEQ_CST);
	}
	T fetch_and(T bits)
		requires std::is_integral_v<T>
	{
		return __atomic_fetch_and(&value_, bits, __ATOMIC_SEQ_CST);
	}
	/* For counters that need no memory ordering. */
	void add_relaxed(T amount)
		requires std::is_integral_v<T>
	{
		(void)__atomic_fetch_add(&value_, amount, __ATOMIC_RELAXED);
	}

private:
	T value_{};
};

/*
 * Reads or writes an ordinary variable, which other code may change at the same time, with one
 * access.
 */
template<class T>
inline T read_once(const T &variable)
{
	return __atomic_load_n(&variable, __ATOMIC_RELAXED);
}
template<class T>
inline void write_once(T &variable, std::type_identity_t<T> value)
{
	__atomic_store_n(&variable, value, __ATOMIC_RELAXED);
}

inline void compiler_barrier()
{
	asm volatile("" ::: "memory");
}

/* Barriers between CPUs. */
inline void smp_mb()
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

#if defined(__x86_64__)
/*
 * Barriers between the CPU and a device. mb() orders all accesses. dma_rmb() and dma_wmb() order
 * accesses to coherent memory that is shared with a device; x86 keeps loads in order and stores in
 * order. wmb() also orders them against MMIO.
 */
inline void mb()
{
	asm volatile("mfence" ::: "memory");
}
inline void rmb()
{
	asm volatile("lfence" ::: "memory");
}
inline void wmb()
{
	asm volatile("sfence" ::: "memory");
}
inline void dma_rmb()
{
	compiler_barrier();
}
inline void dma_wmb()
{
	compiler_barrier();
}
inline void smp_rmb()
{
	compiler_barrier();
}
inline void smp_wmb()
{
	compiler_barrier();
}
inline void cpu_relax()
{
	asm volatile("pause" ::: "memory");
}
#else
#error "barriers of this architecture are not written yet"
#endif

} // namespace kern
