// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Holds the objects of one type, and the handles by which the driver refers to them. A handle is an
// index and a generation, so that a stale handle does not soon refer to another object.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

namespace weft::amso1100
{

// T's constructor gets the handle and the index (0 to Most - 1), followed by the arguments of
// make().
template<typename T, std::size_t Most>
class Handles
{
	static_assert(Most < 0xffff);

public:
	Handles()
	{
		for (std::size_t i = 0; i < Most; ++i)
			free_.push_back(static_cast<std::uint16_t>(i));
	}

	// Creates an object. Returns null if there are already Most objects.
	template<typename... Arguments>
	T *make(Arguments &&...arguments)
	{
		if (free_.empty())
			return nullptr;
		const std::uint16_t place = free_.front();
		Slot &slot = slots_[place];
		const std::uint32_t handle =
			static_cast<std::uint32_t>(++slot.generation) << 16 | (place + 1u);
		slot.object =
			std::make_unique<T>(handle, place, std::forward<Arguments>(arguments)...);
		// Remove the index from the list only after the construction has succeeded.
		free_.pop_front();
		slot.handle = handle;
		return slot.object.get();
	}
	// Returns the object with this handle, or null.
	T *find(std::uint32_t handle) const
	{
		const std::uint32_t place = (handle & 0xffff) - 1;
		return place < Most && slots_[place].handle == handle ? slots_[place].object.get()
								      : nullptr;
	}
	T *at(std::size_t place) const
	{
		return place < Most ? slots_[place].object.get() : nullptr;
	}
	// Destroys the object with @handle, which must exist.
	void erase(std::uint32_t handle)
	{
		const auto place = static_cast<std::uint16_t>((handle & 0xffff) - 1);
		slots_[place].object.reset();
		slots_[place].handle = 0;
		free_.push_back(place);
	}
	std::size_t size() const { return Most - free_.size(); }
	template<typename F>
	void for_each(F &&visit) const
	{
		for (const Slot &slot : slots_)
			if (slot.object)
				visit(*slot.object);
	}

private:
	struct Slot {
		std::unique_ptr<T> object;
		std::uint32_t handle = 0;
		std::uint16_t generation = 0;
	};

	std::array<Slot, Most> slots_;
	std::deque<std::uint16_t> free_; // least recently used first
};

} // namespace weft::amso1100
