// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements objects that count their references.
//
//	class Queue : public kern::RefCounted<Queue> { … };
//	kern::Ref<Queue> queue = KERN_TRY(kern::make_ref<Queue>(kern::Gfp::kernel, args...));
//
// Dropping the last reference destroys the object, in the same context.
#pragma once
#include <kern/atomic.hpp>
#include <kern/memory.hpp>

namespace kern
{

/*
 * A reference count that starts at one and fails safely: if it is misused, it warns, saturates, and
 * leaks the object rather than freeing it twice. Taking a reference orders no memory accesses.
 * Dropping the last one is ordered after all accesses of the other owners.
 */
class RefCount
{
public:
	void get()
	{
		if (__atomic_fetch_add(&count_, 1, __ATOMIC_RELAXED) <= 0) [[unlikely]]
			misused();
	}
	/* Returns false if the object is being destroyed. */
	[[nodiscard]] bool get_unless_zero()
	{
		int count = __atomic_load_n(&count_, __ATOMIC_RELAXED);
		do {
			if (count == 0)
				return false;
		} while (!__atomic_compare_exchange_n(&count_, &count, count + 1, true,
						      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
		if (count < 0) [[unlikely]]
			misused();
		return true;
	}
	/* Returns true if this was the last reference. */
	[[nodiscard]] bool put()
	{
		const int old = __atomic_fetch_sub(&count_, 1, __ATOMIC_RELEASE);
		if (old == 1) {
			__atomic_thread_fence(__ATOMIC_ACQUIRE);
			return true;
		}
		if (old <= 0) [[unlikely]]
			misused();
		return false;
	}
	int load() const { return __atomic_load_n(&count_, __ATOMIC_RELAXED); }

private:
	[[gnu::cold, gnu::noinline]] void misused()
	{
		__atomic_store_n(&count_, saturated, __ATOMIC_RELAXED);
		KERN_WARN_ON("reference count misused");
	}

	static constexpr int saturated = -(1 << 30);
	int count_ = 1;
};

template<class T>
class Ref;

/* Base class of objects that Ref counts. */
template<class T>
class RefCounted
{
public:
	RefCounted(const RefCounted &) = delete;
	RefCounted &operator=(const RefCounted &) = delete;
	int ref_count() const { return count_.load(); }

protected:
	RefCounted() = default;
	~RefCounted() = default;

private:
	template<class U>
	friend class Ref;

	void ref_get() const { count_.get(); }
	bool ref_get_unless_zero() const { return count_.get_unless_zero(); }
	void ref_put() const
	{
		if (count_.put())
			destroy(const_cast<T *>(static_cast<const T *>(this)));
	}

	mutable RefCount count_;
};

template<class T>
class Ref
{
public:
	constexpr Ref() = default;
	constexpr Ref(std::nullptr_t) {}
	/* Takes over a reference of the caller. */
	static Ref adopt(T *object) { return Ref(object); }
	/* Takes another reference to an object. The caller must know that the object has one. */
	static Ref share(T &object)
	{
		object.ref_get();
		return Ref(&object);
	}
	/*
	 * Takes another reference, if the object has any. The memory must be valid during the call
	 * (by a lock or RCU).
	 */
	static Ref try_share(T &object)
	{
		return object.ref_get_unless_zero() ? Ref(&object) : Ref();
	}

	Ref(const Ref &other) : object_(other.object_)
	{
		if (object_)
			object_->ref_get();
	}
	Ref(Ref &&other) noexcept : object_(other.release()) {}
	template<class U>
		requires(std::is_convertible_v<U *, T *> && !std::is_same_v<T, U>)
	Ref(Ref<U> other) noexcept : object_(other.release())
	{
	}
	Ref &operator=(Ref other) noexcept
	{
		std::swap(object_, other.object_);
		return *this;
	}
	~Ref()
	{
		if (object_)
			object_->ref_put();
	}

	T *get() const { return object_; }
	T *operator->() const { return object_; }
	T &operator*() const { return *object_; }
	explicit operator bool() const { return object_ != nullptr; }
	bool operator==(const Ref &other) const { return object_ == other.object_; }

	/* Passes the reference to the caller. */
	[[nodiscard]] T *release() { return std::exchange(object_, nullptr); }
	void reset() { *this = Ref(); }

private:
	constexpr explicit Ref(T *object) : object_(object) {}

	T *object_ = nullptr;
};

/*
 * Returns the first reference to the result of new (Gfp), or ENOMEM if that is nullptr; see
 * adopt().
 */
template<class T>
Result<Ref<T>> adopt_ref(T *object)
{
	if (!object) [[unlikely]]
		return Error{-ENOMEM};
	return Ref<T>::adopt(object);
}

/* Creates an object and returns the first reference. Errors: ENOMEM. */
template<class T, class... Args>
Result<Ref<T>> make_ref(Gfp flags, Args &&...args)
{
	return adopt_ref(new (flags) T(std::forward<Args>(args)...));
}

} // namespace kern
