/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Implements a state machine with ordered levels. Each level owns everything that the levels below
 * it own, and one more resource. A transition passes through all levels in between, one step at a
 * time, so nothing is started or stopped twice. The owner implements both kinds of steps.
 *
 *	class Door {
 *		enum class State : u8 { shut, unlocked, open };
 *		kern::Result<> step_up(State to);	// enters the next level
 *		State step_down(State from);		// leaves a level, or undoes a step_up() that failed
 *		BringUp<Door, State> bring_up_{*this};
 *	};
 *
 * The owner provides the context and the locks.
 */
#pragma once

#include <type_traits>
#include <kern/result.hpp>

namespace ipoib
{

template<class Owner, class State>
class BringUp
{
public:
	/* Starts at the lowest level. */
	explicit BringUp(Owner &owner) : owner_(owner) {}
	BringUp(const BringUp &) = delete;
	BringUp &operator=(const BringUp &) = delete;

	State state() const
	{
		return static_cast<State>(__atomic_load_n(&state_, __ATOMIC_RELAXED));
	}

	/*
	 * Moves to the state `wanted`, one level at a time; nothing else changes the state. If a
	 * step up fails, that step is undone, the state remains at the level below, and the error
	 * is returned. A step down cannot fail.
	 */
	kern::Result<> to(State wanted)
	{
		while (state() < wanted) {
			const auto next = static_cast<State>(static_cast<u8>(state()) + 1);
			if (auto climbed = owner_.step_up(next); !climbed.ok()) {
				set(owner_.step_down(next));
				return climbed;
			}
			set(next);
		}
		while (state() > wanted)
			set(owner_.step_down(state()));
		return {};
	}

private:
	void set(State state)
	{
		__atomic_store_n(&state_, static_cast<Number>(state), __ATOMIC_RELAXED);
	}

	Owner &owner_;
	/* An integer, because clang has no atomic built-ins for scoped enumerations. */
	using Number = std::underlying_type_t<State>;
	Number state_{};
};

} // namespace ipoib
