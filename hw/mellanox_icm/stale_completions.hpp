// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Completions that outlive their QP (MGMT-09).
#pragma once
#include <kern/list.hpp>
#include <kern/memory.hpp>
#include <kern/time.hpp>
#include <rdma/driver.hpp>

namespace mellanox_icm
{

/*
 * Completions that a destroyed QP has left in a CQ, in order. The first replace as many entries of
 * the ring, which refer to them by their number instead of the QP's; those that a card that has
 * failed did not flush follow.
 */
struct StaleCompletions {
	u32 number = 0;
	u32 next = 0;
	u32 count = 0;
	kern::OwnedArray<ib_wc> completions;
	kern::ListNode node;

	bool push(const ib_wc &wc)
	{
		if (count == completions.size())
			return false;
		completions[count++] = wc;
		return true;
	}
	bool full() const { return count == completions.size(); }

	/* Room for so many. A QP's end is never refused: it waits for the memory. May sleep. */
	static kern::Owned<StaleCompletions> create(u32 count)
	{
		for (;; kern::sleep_ms(1)) {
			auto remains = kern::make<StaleCompletions>(kern::Gfp::kernel);
			auto completions = kern::make_array<ib_wc>(kern::Gfp::kernel, count);
			if (!remains || !completions)
				continue;
			remains.value()->completions = completions.take();
			return remains.take();
		}
	}
};

/* All that a CQ has of them. Under the CQ's lock, but for its end. */
class StaleCompletionList
{
public:
	using List = kern::List<StaleCompletions, &StaleCompletions::node>;

	~StaleCompletionList()
	{
		free(remains_);
		free(spent_);
	}

	/* A number for what is about to be kept. */
	u32 number() { return ++last_; }
	/* Keeps it, until it is given or, if it is empty, until it is freed where one may sleep. */
	void keep(StaleCompletions &remains)
	{
		(remains.count ? remains_ : spent_).push_back(remains);
	}
	/* The next completion of one; false if there is none. */
	bool take(u32 number, ib_wc &wc)
	{
		for (StaleCompletions &remains : remains_)
			if (remains.number == number)
				return take(remains, wc);
		return false;
	}
	/* Those that no entries stand for any more. */
	int take_all(int count, ib_wc *wc)
	{
		int got = 0;
		for (StaleCompletions &remains : remains_)
			while (got < count && remains.node.linked() && take(remains, wc[got]))
				got++;
		return got;
	}
	/* Moves completions that were polled, for free() without the lock. */
	void move_spent(List &to) { to.splice_back(spent_); }
	void move_all(List &to)
	{
		to.splice_back(remains_);
		to.splice_back(spent_);
	}
	static void free(List &list)
	{
		while (StaleCompletions *remains = list.pop_front())
			kern::destroy(remains);
	}

private:
	bool take(StaleCompletions &remains, ib_wc &wc)
	{
		if (remains.next == remains.count)
			return false;
		wc = remains.completions[remains.next++];
		if (remains.next == remains.count) {
			remains.node.unlink();
			spent_.push_back(remains);
		}
		return true;
	}

	List remains_, spent_;
	u32 last_ = 0;
};

} // namespace mellanox_icm
