// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements lists of QPs with insertion, removal and lookup in constant time and without
 * allocation. A card may have 65536 QPs, and one command can remove all of them.
 */
#pragma once

#include <cassert>
#include <utility>

namespace weft::hca::transport
{

struct Qp;

/* Membership of a QP in a list. A QP has one link for each list that it may be in. */
class QpLink
{
public:
	QpLink() = default;
	QpLink(const QpLink &) = delete;
	QpLink &operator=(const QpLink &) = delete;
	~QpLink() { leave(); }

	bool linked() const { return next_ != this; }
	/* Leaves the list, if the QP is in one. */
	void leave()
	{
		previous_->next_ = next_;
		next_->previous_ = previous_;
		previous_ = next_ = this;
	}

private:
	friend class QpList;

	QpLink *previous_ = this;
	QpLink *next_ = this;
	Qp *owner_ = nullptr;
};

class QpList
{
public:
	bool empty() const { return !ends_.linked(); }
	Qp &front() const
	{
		assert(!empty());
		return *ends_.next_->owner_;
	}
	/* @link is a link of @qp that is in no list. */
	void push_back(Qp &qp, QpLink &link)
	{
		assert(!link.linked());
		link.owner_ = &qp;
		link.previous_ = std::exchange(ends_.previous_, &link);
		link.next_ = &ends_;
		link.previous_->next_ = &link;
	}
	/* Moves all elements of @other to the end of this list. */
	void append(QpList &other)
	{
		if (other.empty())
			return;
		QpLink *const first = other.ends_.next_;
		QpLink *const last = other.ends_.previous_;
		other.ends_.next_ = other.ends_.previous_ = &other.ends_;
		first->previous_ = ends_.previous_;
		ends_.previous_->next_ = first;
		last->next_ = &ends_;
		ends_.previous_ = last;
	}
	Qp &take_front()
	{
		Qp &first = front();
		ends_.next_->leave();
		return first;
	}

private:
	QpLink ends_;
};

} // namespace weft::hca::transport
