// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Finds objects by an identifier of the peer: a number that the peer chose, together with the
 * peer's GUID. The table grows with its contents, so a lookup takes constant time. The peer chooses
 * the keys, so the hash has a secret seed: a peer cannot make many keys collide.
 */
#pragma once

#include <kern/memory.hpp>
#include <kern/time.hpp>

namespace cm
{

/* The caller provides the locking. The table does not own its entries. */
template<class T>
class PairTable
{
public:
	/* The link of an object in one table; a member of the object. */
	class Link
	{
	public:
		explicit Link(T &owner) : owner_(owner) {}
		~Link() { kern_assert(!linked_); }
		Link(const Link &) = delete;
		Link &operator=(const Link &) = delete;

	private:
		friend PairTable;
		T &owner_;
		u64 guid_ = 0;
		Link *next_ = nullptr;
		u32 number_ = 0;
		bool linked_ = false;
	};

	PairTable() : secrets_{kern::random_u64(), kern::random_u64()} {}
	~PairTable() { kern_assert(count_ == 0); }
	PairTable(const PairTable &) = delete;
	PairTable &operator=(const PairTable &) = delete;

	/* Errors: ENOMEM, only for the first entry. Context: process. */
	kern::Result<> insert(Link &link, u32 number, u64 guid)
	{
		kern_assert(!link.linked_);
		if (buckets_.empty())
			buckets_ = KERN_TRY(
				kern::make_array<Link *>(kern::Gfp::kernel, least_buckets));
		else if (count_ >= buckets_.size())
			grow();
		link.number_ = number;
		link.guid_ = guid;
		push(link);
		link.linked_ = true;
		count_++;
		return {};
	}
	/* Has no effect on an object that is not in a table. */
	void erase(Link &link)
	{
		if (!link.linked_)
			return;
		Link **at = &bucket(link.number_, link.guid_);
		while (*at != &link)
			at = &(*at)->next_;
		*at = link.next_;
		link.linked_ = false;
		count_--;
	}
	/* Returns nullptr if there is none. */
	T *find(u32 number, u64 guid)
	{
		if (buckets_.empty())
			return nullptr;
		for (Link *link = bucket(number, guid); link; link = link->next_)
			if (link->number_ == number && link->guid_ == guid)
				return &link->owner_;
		return nullptr;
	}
	/* Returns the number of entries in the longest bucket. For tests. */
	std::size_t longest() const
	{
		std::size_t longest = 0;
		for (const Link *link : buckets_) {
			std::size_t length = 0;
			for (; link; link = link->next_)
				length++;
			longest = length > longest ? length : longest;
		}
		return longest;
	}

private:
	static constexpr std::size_t least_buckets = 16;

	Link *&bucket(u32 number, u64 guid)
	{
		u64 hash = (guid ^ secrets_[0]) * 0x9e3779b97f4a7c15;
		hash ^= hash >> 32;
		hash = (hash ^ number ^ secrets_[1]) * 0xbf58476d1ce4e5b9;
		hash ^= hash >> 29;
		hash *= 0x94d049bb133111eb;
		hash ^= hash >> 32;
		return buckets_[hash & (buckets_.size() - 1)];
	}
	void push(Link &link)
	{
		Link *&first = bucket(link.number_, link.guid_);
		link.next_ = first;
		first = &link;
	}
	/*
	 * Doubles the number of buckets. If there is no memory, the buckets get longer until a
	 * later attempt succeeds.
	 */
	void grow()
	{
		auto made = kern::make_array<Link *>(kern::Gfp::kernel | kern::Gfp::no_warn,
						     2 * buckets_.size());
		if (!made.ok())
			return;
		auto old = std::move(buckets_);
		buckets_ = made.take();
		for (Link *link : old)
			while (link) {
				Link *next = link->next_;
				push(*link);
				link = next;
			}
	}

	const u64 secrets_[2];
	kern::OwnedArray<Link *> buckets_;
	std::size_t count_ = 0;
};

} // namespace cm
