// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Allocates memory. An allocation is always explicit: the caller's context is an argument, and the
// result must be checked.
//
//	auto queue = KERN_TRY(kern::make<Queue>(kern::Gfp::kernel, args...));	// Owned<Queue>
//	auto ring = KERN_TRY(kern::make_array<Entry>(kern::Gfp::kernel, count));	// OwnedArray<Entry>, value-initialised
#pragma once
#include <cstddef>
#include <new>
#include <span>
#include <type_traits>
#include <utility>
#include <kern/abi/memory.h>
#include <kern/result.hpp>

namespace kern
{

inline constexpr std::size_t page_shift = KERN_PAGE_SHIFT;
inline constexpr std::size_t page_size = std::size_t{1} << page_shift;
inline constexpr std::size_t cache_line = KERN_CACHE_LINE;

/*
 * `kernel` allocations may sleep; `atomic` ones must not, and may use the reserves; `nowait` ones
 * must not sleep and use no reserves.
 */
enum class Gfp : unsigned int {
	kernel = KERN_GFP_KERNEL,
	/* Like `kernel`, but charged to the memory control group of the calling process. */
	kernel_account = KERN_GFP_KERNEL_ACCOUNT,
	atomic = KERN_GFP_ATOMIC,
	nowait = KERN_GFP_NOWAIT,
	zero = KERN_GFP_ZERO,
	no_warn = KERN_GFP_NOWARN,
};
constexpr Gfp operator|(Gfp a, Gfp b)
{
	return static_cast<Gfp>(static_cast<unsigned int>(a) | static_cast<unsigned int>(b));
}
constexpr bool may_sleep(Gfp flags)
{
	return static_cast<unsigned int>(flags) & KERN_GFP_DIRECT_RECLAIM;
}

} // namespace kern

/*
 * new (kern::Gfp::kernel) T(…) returns nullptr if there is no memory. It is used with kern::adopt()
 * and kern::adopt_ref(). There is no other operator new.
 */
inline void *operator new(std::size_t size, kern::Gfp flags) noexcept
{
	return kern_alloc(size, static_cast<unsigned int>(flags));
}

namespace kern
{

/* Destroys an object that was created by new (Gfp), make() or make_ref(). nullptr has no effect. */
template<class T>
void destroy(T *object)
{
	if (!object)
		return;
	if constexpr (std::has_virtual_destructor_v<T>) {
		// The object's dynamic type may have another address than its static type. The
		// deleting destructor knows it.
		delete object;
	} else {
		object->~T();
		kern_free(object);
	}
}

/* The only owner of an object. It cannot be copied, and is empty after a move. */
template<class T>
class Owned
{
public:
	constexpr Owned() = default;
	constexpr Owned(std::nullptr_t) {}
	/* Takes ownership of an object from new (Gfp) or release(). */
	static Owned adopt(T *object) { return Owned(object); }

	Owned(Owned &&other) noexcept : object_(other.release()) {}
	template<class U>
		requires(std::is_convertible_v<U *, T *> && !std::is_same_v<T, U>)
	Owned(Owned<U> &&other) noexcept : object_(other.release())
	{
		static_assert(std::has_virtual_destructor_v<T>,
			      "destroyed through a base without a virtual destructor");
	}
	Owned &operator=(Owned &&other) noexcept
	{
		if (this != &other)
			reset(other.release());
		return *this;
	}
	~Owned() { destroy(object_); }

	T *get() const { return object_; }
	T *operator->() const { return object_; }
	T &operator*() const { return *object_; }
	explicit operator bool() const { return object_ != nullptr; }

	/* Passes the ownership to the caller. */
	[[nodiscard]] T *release() { return std::exchange(object_, nullptr); }
	void reset(T *object = nullptr) { destroy(std::exchange(object_, object)); }

private:
	constexpr explicit Owned(T *object) : object_(object) {}

	T *object_ = nullptr;
};

/*
 * Returns the owner of the result of new (Gfp), or ENOMEM if that is nullptr. Used in the create()
 * of a class with a private constructor:
 *
 *	return kern::adopt(new (kern::Gfp::kernel) Queue(…));
 */
template<class T>
Result<Owned<T>> adopt(T *object)
{
	static_assert(alignof(T) <= 8 || (sizeof(T) & (sizeof(T) - 1)) == 0,
		      "an over-aligned type has to have a power-of-two size");
	if (!object) [[unlikely]]
		return Error{-ENOMEM};
	return Owned<T>::adopt(object);
}

/* Allocates and constructs a T. Errors: ENOMEM. Context: any that `flags` permits. */
template<class T, class... Args>
Result<Owned<T>> make(Gfp flags, Args &&...args)
{
	return adopt(new (flags) T(std::forward<Args>(args)...));
}

/* The owner of an array of objects, which are destroyed in reverse order. */
template<class T>
class OwnedArray
{
public:
	constexpr OwnedArray() = default;
	OwnedArray(OwnedArray &&other) noexcept
	    : first_(std::exchange(other.first_, nullptr)), count_(std::exchange(other.count_, 0))
	{
	}
	OwnedArray &operator=(OwnedArray &&other) noexcept
	{
		if (this != &other) {
			clear();
			first_ = std::exchange(other.first_, nullptr);
			count_ = std::exchange(other.count_, 0);
		}
		return *this;
	}
	~OwnedArray() { clear(); }

	T *data() const { return first_; }
	std::size_t size() const { return count_; }
	bool empty() const { return count_ == 0; }
	T &operator[](std::size_t index) const
	{
		kern_assert(index < count_);
		return first_[index];
	}
	T *begin() const { return first_; }
	T *end() const { return first_ + count_; }
	std::span<T> span() const { return {first_, count_}; }
	operator std::span<T>() const { return span(); }

private:
	template<class U>
	friend Result<OwnedArray<U>> make_array(Gfp flags, std::size_t count);

	OwnedArray(T *first, std::size_t count) : first_(first), count_(count) {}
	void clear()
	{
		if constexpr (!std::is_trivially_destructible_v<T>)
			for (std::size_t i = count_; i-- > 0;)
				first_[i].~T();
		kern_free_large(first_);
	}

	T *first_ = nullptr;
	std::size_t count_ = 0;
};

/*
 * Allocates `count` value-initialised objects. Large arrays need not be contiguous in physical
 * memory if `flags` may sleep. Errors: ENOMEM, also for a size that overflows.
 */
template<class T>
Result<OwnedArray<T>> make_array(Gfp flags, std::size_t count)
{
	static_assert(alignof(T) <= 8);
	const auto bits = static_cast<unsigned int>(flags);
	void *memory = may_sleep(flags) ? kern_alloc_large(count, sizeof(T), bits)
					: kern_alloc_array(count, sizeof(T), bits);
	if (!memory) [[unlikely]]
		return Error{-ENOMEM};
	T *first = static_cast<T *>(memory);
	for (std::size_t i = 0; i < count; i++)
		new (first + i) T();
	return OwnedArray<T>(first, count);
}

/* A block of 2^order contiguous pages. Code that passes pages on can use their reference counts. */
class Pages
{
public:
	Pages() = default;
	/* node: the NUMA node; -1 for the nearest one. Errors: ENOMEM. */
	static Result<Pages> create(unsigned int order, Gfp flags, int node = -1)
	{
		page *first = kern_alloc_pages(order, node < 0 ? kern_node_id() : node,
					       static_cast<unsigned int>(flags));
		if (!first) [[unlikely]]
			return Error{-ENOMEM};
		return Pages(first, order);
	}
	Pages(Pages &&other) noexcept : first_(other.release()), order_(other.order_) {}
	Pages &operator=(Pages &&other) noexcept
	{
		if (this != &other) {
			free();
			first_ = other.release();
			order_ = other.order_;
		}
		return *this;
	}
	~Pages() { free(); }

	page *get() const { return first_; }
	void *address() const { return kern_page_address(first_); }
	std::size_t size() const { return page_size << order_; }
	unsigned int order() const { return order_; }
	explicit operator bool() const { return first_ != nullptr; }
	[[nodiscard]] page *release() { return std::exchange(first_, nullptr); }

private:
	Pages(page *first, unsigned int order) : first_(first), order_(order) {}
	void free()
	{
		if (first_)
			kern_free_pages(first_, order_);
	}

	page *first_ = nullptr;
	unsigned int order_ = 0;
};

/*
 * A global object that a module's init function creates and its exit function destroys, because
 * dynamic initialisers are not run.
 */
template<class T>
class Static
{
public:
	constexpr Static() = default;
	template<class... Args>
	T &construct(Args &&...args)
	{
		return *new (storage_) T(std::forward<Args>(args)...);
	}
	void destruct() { get().~T(); }
	T &get() { return *std::launder(reinterpret_cast<T *>(storage_)); }
	T *operator->() { return &get(); }
	T &operator*() { return get(); }

private:
	alignas(T) unsigned char storage_[sizeof(T)] = {};
};

} // namespace kern
