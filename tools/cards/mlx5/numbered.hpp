// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Holds the objects of one type by number. The pool of the numbers (number_pool.hpp) limits how
// many exist.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace weft::mlx5
{

template<typename T>
class Numbered
{
public:
	std::size_t size() const { return objects_.size(); }
	void insert(std::uint32_t number, T object)
	{
		objects_.insert_or_assign(number, std::move(object));
	}
	T *find(std::uint32_t number)
	{
		const auto found = objects_.find(number);
		return found == objects_.end() ? nullptr : &found->second;
	}
	const T *find(std::uint32_t number) const
	{
		const auto found = objects_.find(number);
		return found == objects_.end() ? nullptr : &found->second;
	}
	bool remove(std::uint32_t number) { return objects_.erase(number) != 0; }
	void clear() { objects_.clear(); }

private:
	std::map<std::uint32_t, T> objects_;
};

} // namespace weft::mlx5
