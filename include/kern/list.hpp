// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines a list that is linked through its elements. It allocates no memory; insertion and removal
// take constant time. The list does not own its elements.
//
//	struct Request { kern::ListNode node; … };
//	kern::List<Request, &Request::node> pending;
//	for (Request &request : pending) …
#pragma once
#include <cstddef>
#include <kern/assert.hpp>

namespace kern
{

/*
 * A link of an element, which is in at most one list at a time. Destroying a node that is in a list
 * is a defect, which builds with checks report.
 */
class ListNode
{
public:
	ListNode() = default;
	~ListNode() { kern_assert(!linked()); }
	ListNode(const ListNode &) = delete;
	ListNode &operator=(const ListNode &) = delete;

	bool linked() const { return next_ != nullptr; }
	/* Removes the node from its list, if it is in one. */
	void unlink()
	{
		if (!linked())
			return;
		prev_->next_ = next_;
		next_->prev_ = prev_;
		prev_ = next_ = nullptr;
	}

private:
	template<class T, ListNode T::*Member>
	friend class List;

	void insert_between(ListNode *prev, ListNode *next)
	{
		kern_assert(!linked());
		prev_ = prev;
		next_ = next;
		prev->next_ = this;
		next->prev_ = this;
	}

	ListNode *prev_ = nullptr;
	ListNode *next_ = nullptr;
};

template<class T, ListNode T::*Member>
class List
{
public:
	List() { head_.prev_ = head_.next_ = &head_; }
	~List()
	{
		kern_assert(empty());
		head_.prev_ = head_.next_ = nullptr;
	}
	List(const List &) = delete;
	List &operator=(const List &) = delete;

	bool empty() const { return head_.next_ == &head_; }
	/* Counts the elements by walking the list. */
	std::size_t size() const
	{
		std::size_t count = 0;
		for (const ListNode *node = head_.next_; node != &head_; node = node->next_)
			count++;
		return count;
	}

	/* front() and back() return nullptr if the list is empty. */
	T *front() const { return empty() ? nullptr : element(head_.next_); }
	T *back() const { return empty() ? nullptr : element(head_.prev_); }

	void push_front(T &element) { (element.*Member).insert_between(&head_, head_.next_); }
	void push_back(T &element) { (element.*Member).insert_between(head_.prev_, &head_); }
	static void insert_before(T &place, T &element)
	{
		ListNode &next = place.*Member;
		(element.*Member).insert_between(next.prev_, &next);
	}
	/* Removes the first element and returns it, or nullptr if the list is empty. */
	T *pop_front()
	{
		T *first = front();
		if (first)
			(first->*Member).unlink();
		return first;
	}
	T *pop_back()
	{
		T *last = back();
		if (last)
			(last->*Member).unlink();
		return last;
	}
	static void remove(T &element) { (element.*Member).unlink(); }
	/* Moves all elements of the other list to the end of this list. */
	void splice_back(List &other)
	{
		if (other.empty())
			return;
		ListNode *first = other.head_.next_, *last = other.head_.prev_;
		other.head_.prev_ = other.head_.next_ = &other.head_;
		first->prev_ = head_.prev_;
		head_.prev_->next_ = first;
		last->next_ = &head_;
		head_.prev_ = last;
	}

	/*
	 * The loop body may remove the current element, because the next one is looked up before.
	 * It must not remove others.
	 */
	template<bool Reverse>
	class Iterator
	{
	public:
		explicit Iterator(ListNode *at) : at_(at), next_(step(at)) {}
		T &operator*() const { return *element(at_); }
		T *operator->() const { return element(at_); }
		Iterator &operator++()
		{
			at_ = next_;
			next_ = step(at_);
			return *this;
		}
		bool operator==(const Iterator &other) const { return at_ == other.at_; }

	private:
		static ListNode *step(ListNode *node)
		{
			return Reverse ? node->prev_ : node->next_;
		}
		ListNode *at_;
		ListNode *next_;
	};
	Iterator<false> begin() const { return Iterator<false>(head_.next_); }
	Iterator<false> end() const { return Iterator<false>(&head_); }

	struct Reversed {
		const List &list;
		Iterator<true> begin() const { return Iterator<true>(list.head_.prev_); }
		Iterator<true> end() const { return Iterator<true>(&list.head_); }
	};
	Reversed reversed() const { return {*this}; }

private:
	static T *element(const ListNode *node)
	{
		// Computes the member's offset in T. There need not be an object at the address.
		T *const somewhere = reinterpret_cast<T *>(std::size_t{4096});
		const auto offset = reinterpret_cast<const char *>(&(somewhere->*Member)) -
				    reinterpret_cast<const char *>(somewhere);
		return reinterpret_cast<T *>(
			const_cast<char *>(reinterpret_cast<const char *>(node)) - offset);
	}

	mutable ListNode head_;
};

} // namespace kern
