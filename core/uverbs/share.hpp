// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * What one user may have of one device, by all the files that he has open: at most a quarter of
 * what there is, so that others find the rest (Documentation/user-verbs.rst, "Bounds"). Who asks
 * for more gets EDQUOT.
 */
#pragma once
#include <kern/list.hpp>
#include <kern/lock.hpp>
#include <kern/shares.hpp>
#include <rdma/ib_verbs.h>
#include "object.hpp"

namespace uverbs
{

/*
 * The places that a user's QPs have in multicast groups. A group has room for so many QPs of all
 * users, the kernel's among them: one user gets a quarter of that, so that nobody shuts others out
 * of a group. Context: process. Lock order: innermost.
 */
class GroupPlaces
{
public:
	class Place
	{
	public:
		Place() = default;
		~Place()
		{
			if (places_)
				places_->leave(*this);
		}
		Place(const Place &) = delete;
		Place &operator=(const Place &) = delete;

	private:
		friend class GroupPlaces;
		GroupPlaces *places_ = nullptr;
		ib_gid gid_;
		kern::ListNode node_;
	};

	/* Until the place ends. group_size: QPs of all users. Errors: EDQUOT. */
	kern::Result<> take(Place &place, const ib_gid &gid, u32 group_size);

private:
	void leave(Place &place);

	kern::Mutex lock_{KERN_LOCK_CLASS("uverbs.group_places")};
	kern::List<Place, &Place::node_> taken_ GUARDED_BY(lock_);
};

class Share : public kern::UserShare
{
public:
	explicit Share(u32 its_user) : UserShare(its_user) {}

	/* What an object of a kind is counted in. */
	kern::Budget &of(Kind kind);
	/* He has nothing: nobody has to remember it. */
	bool idle() const;

	kern::Budget contexts{256, -EDQUOT};
	kern::Budget pds{4096, -EDQUOT};
	/* They take nothing of the device: what bounds them is the kernel's memory. */
	kern::Budget ahs{4096, -EDQUOT};
	/* Memory regions and windows. */
	kern::Budget keys{32768, -EDQUOT};
	/*
	 * Completion queues and XRC domains: the card wants a CQ of its own for a domain's target
	 * QPs, with as much room for events.
	 */
	kern::Budget cqs{1024, -EDQUOT};
	kern::Budget srqs{512, -EDQUOT};
	kern::Budget qps{1024, -EDQUOT};
	/*
	 * Channels, and files of asynchronous events: all of a file's are told of its end under one
	 * lock.
	 */
	kern::Budget event_files{2048, -EDQUOT};
	/* Of a QP to a multicast group. */
	kern::Budget attachments{1024, -EDQUOT};
	GroupPlaces groups;
};

/* The shares of a device. */
class Shares : public kern::Shares<Share>
{
public:
	Shares() : kern::Shares<Share>(KERN_LOCK_CLASS("uverbs.shares")) {}
};

} // namespace uverbs
