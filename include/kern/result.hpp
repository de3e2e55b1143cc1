// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the result of a function that may fail. The compiler warns if it is ignored.
//
//	kern::Result<kern::Ref<Queue>> Queue::create(u32 entries)
//	{
//		if (entries == 0)
//			return kern::Error{-EINVAL};
//		auto buffer = KERN_TRY(kern::DmaBuffer::create(...));	// passes its error on
//		...
//	}
//
// A Result holds either a value or an error, which is a negative errno. The value is available by
// KERN_TRY, or by value() after a check of ok(): value() of an error is a bug, which debug builds
// report.
#pragma once
#include <new>
#include <type_traits>
#include <utility>
#include <kern/assert.hpp>
#include <kern/errno.h>

namespace kern
{

struct Error {
	int code; // negative errno
};

template<class T = void>
class [[nodiscard]] Result
{
	static_assert(!std::is_reference_v<T>,
		      "return a pointer, or std::reference_wrapper's equal");

public:
	using Value = T;

	constexpr Result(Error error) : error_(error.code) { kern_assert(error.code < 0); }
	template<class U>
		requires(std::is_constructible_v<T, U &&> &&
			 !std::is_same_v<std::remove_cvref_t<U>, Error> &&
			 !std::is_same_v<std::remove_cvref_t<U>, Result>)
	constexpr Result(U &&value) : error_(0), value_(std::forward<U>(value))
	{
	}

	constexpr Result(const Result &)
		requires std::is_trivially_copy_constructible_v<T>
	= default;
	constexpr Result(Result &&)
		requires std::is_trivially_move_constructible_v<T>
	= default;
	constexpr Result(Result &&other) noexcept
		requires(!std::is_trivially_move_constructible_v<T>)
	    : error_(other.error_)
	{
		if (ok())
			new (&value_) T(std::move(other.value_));
	}
	Result &operator=(const Result &) = delete;
	Result &operator=(Result &&) = delete;

	~Result()
		requires std::is_trivially_destructible_v<T>
	= default;
	~Result()
		requires(!std::is_trivially_destructible_v<T>)
	{
		if (ok())
			value_.~T();
	}

	constexpr bool ok() const { return error_ == 0; }
	constexpr explicit operator bool() const { return ok(); }

	/* Returns 0 or a negative errno. */
	constexpr int error() const { return error_; }

	constexpr T &value() &
	{
		kern_assert(ok());
		return value_;
	}
	constexpr const T &value() const &
	{
		kern_assert(ok());
		return value_;
	}
	/* Moves the value out of the Result. */
	constexpr T take()
	{
		kern_assert(ok());
		return std::move(value_);
	}
	constexpr T value_or(T other) { return ok() ? take() : std::move(other); }

private:
	int error_;
	union {
		T value_; // NOLINT(readability-identifier-naming): private, as its union is
	};
};

template<>
class [[nodiscard]] Result<void>
{
public:
	using Value = void;

	constexpr Result() = default;
	constexpr Result(Error error) : error_(error.code) { kern_assert(error.code < 0); }

	constexpr bool ok() const { return error_ == 0; }
	constexpr explicit operator bool() const { return ok(); }
	constexpr int error() const { return error_; }
	constexpr void take() const { kern_assert(ok()); }

private:
	int error_ = 0;
};

/*
 * Converts the return value of verbs, 0 or a negative errno, to a Result. Result::error() converts
 * it back.
 */
constexpr Result<> check(int status)
{
	if (status < 0) [[unlikely]]
		return Error{status};
	return {};
}

/* Ignores an error explicitly. The caller's comment must explain why. */
template<class T>
constexpr void ignore(const Result<T> &)
{
}

} // namespace kern

/*
 * Evaluates to the value of a Result. If it is an error, returns it from the enclosing function,
 * which must return a Result, too.
 */
#define KERN_TRY(expression)                                                                       \
	({                                                                                         \
		auto kern_try_result = (expression);                                               \
		if (!kern_try_result.ok()) [[unlikely]]                                            \
			return ::kern::Error{kern_try_result.error()};                             \
		kern_try_result.take();                                                            \
	})

/* Like KERN_TRY, for an int that is 0 or a negative errno. */
#define KERN_TRY_ERRNO(expression)                                                                 \
	do {                                                                                       \
		if (int kern_try_status = (expression); kern_try_status < 0) [[unlikely]]          \
			return ::kern::Error{kern_try_status};                                     \
	} while (0)
