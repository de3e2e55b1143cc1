// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines a hash table that is linked through its elements. It allocates no memory, and a user
// cannot choose keys such that many elements are in one bucket. The table does not own its
// elements; the caller's lock protects it.
//
//	struct Group { kern::ListNode hash_node; … };
//	kern::HashTable<Group, &Group::hash_node, 512> groups;
//	Group *found = groups.find(hash(words[0], words[1]), [&](const Group &group) { … });
#pragma once
#include <kern/abi/debug.h>
#include <kern/list.hpp>
#include <kern/time.hpp>
#include <kern/types.h>

namespace kern
{

/*
 * A hash of two words that a user may choose. Each word is mixed with a secret before it is
 * combined with the other, so that neither can cancel the other.
 */
class SecretHash
{
public:
	SecretHash() : first_(random_u64()), second_(random_u64()) {}
	u64 operator()(u64 first, u64 second) const
	{
		__extension__ using Wide = unsigned __int128;
		const Wide product = Wide{first ^ first_} * (second ^ second_);
		return static_cast<u64>(product ^ product >> 64);
	}

private:
	const u64 first_, second_;
};

template<class T, ListNode T::*Node, std::size_t Buckets>
class HashTable
{
public:
	/*
	 * @hash must be computed by SecretHash, and must not change while the element is in the
	 * table.
	 */
	void insert(T &element, u64 hash)
	{
		buckets_[hash % Buckets].push_back(element);
		count_++;
	}
	void remove(T &element)
	{
		(element.*Node).unlink();
		count_--;
	}
	static bool contains(const T &element) { return (element.*Node).linked(); }
	std::size_t count() const { return count_; }
	/* Returns the element with this hash for which matches() is true, or nullptr. */
	template<class Matches>
	T *find(u64 hash, Matches matches) const
	{
		for (T &element : buckets_[hash % Buckets])
			if (matches(element))
				return &element;
		return nullptr;
	}
	/* Returns the number of elements in the longest bucket. For tests. */
	std::size_t longest() const
	{
		std::size_t longest = 0;
		for (const auto &bucket : buckets_)
			if (const std::size_t size = bucket.size(); size > longest)
				longest = size;
		return longest;
	}

private:
	List<T, Node> buckets_[Buckets];
	std::size_t count_ = 0;
};

} // namespace kern
