// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines a callable that can be moved but not copied, because tasks that are posted to a loop may
// own packets and buffers.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace weft
{

// Task - owns a callable of type void(). Callables of up to kInline bytes need no allocation.
class Task
{
public:
	static constexpr std::size_t kInline = 48;

	Task() noexcept = default;

	template<typename F>
		requires(!std::is_same_v<std::remove_cvref_t<F>, Task> && std::is_invocable_v<F &>)
	Task(F &&callable)
	{
		using Callable = std::remove_cvref_t<F>;
		if constexpr (fits<Callable>()) {
			new (storage_) Callable(std::forward<F>(callable));
			ops_ = &kInlineOps<Callable>;
		} else {
			new (storage_) Callable *(new Callable(std::forward<F>(callable)));
			ops_ = &kHeapOps<Callable>;
		}
	}

	Task(Task &&other) noexcept { take(other); }
	Task &operator=(Task &&other) noexcept
	{
		if (this != &other) {
			reset();
			take(other);
		}
		return *this;
	}
	Task(const Task &) = delete;
	Task &operator=(const Task &) = delete;
	~Task() { reset(); }

	explicit operator bool() const noexcept { return ops_ != nullptr; }

	// Calls the callable. Calling an empty Task is a programming error.
	void operator()() { ops_->call(storage_); }

	void reset() noexcept
	{
		if (ops_)
			ops_->destroy(storage_);
		ops_ = nullptr;
	}

private:
	struct Ops {
		void (*call)(void *self);
		void (*move)(void *to, void *from) noexcept;
		void (*destroy)(void *self) noexcept;
	};

	template<typename F>
	static constexpr bool fits()
	{
		return sizeof(F) <= kInline && alignof(F) <= alignof(std::max_align_t) &&
		       std::is_nothrow_move_constructible_v<F>;
	}

	template<typename F>
	static constexpr Ops kInlineOps = {
		[](void *self) { (*static_cast<F *>(self))(); },
		[](void *to, void *from) noexcept {
			new (to) F(std::move(*static_cast<F *>(from)));
			static_cast<F *>(from)->~F();
		},
		[](void *self) noexcept { static_cast<F *>(self)->~F(); },
	};
	template<typename F>
	static constexpr Ops kHeapOps = {
		[](void *self) { (**static_cast<F **>(self))(); },
		[](void *to, void *from) noexcept { new (to) F *(*static_cast<F **>(from)); },
		[](void *self) noexcept { delete *static_cast<F **>(self); },
	};

	void take(Task &other) noexcept
	{
		ops_ = std::exchange(other.ops_, nullptr);
		if (ops_)
			ops_->move(storage_, other.storage_);
	}

	alignas(std::max_align_t) std::byte storage_[kInline];
	const Ops *ops_ = nullptr;
};

} // namespace weft
