// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * What one user may have of one device, by all the files that he has open: at most a quarter of what there is, so that others find the rest
 * (Documentation/user-verbs.rst, "Bounds"). Who asks for more gets EDQUOT.
 */
#pragma once
#include <kern/budget.hpp>
#include <kern/list.hpp>
#include <kern/lock.hpp>
#include "object.hpp"

namespace uverbs
{

class Share {
public:
	explicit Share(u32 its_user) : user(its_user) {}

	/* What an object of a kind is counted in. */
	kern::Budget &of(Kind kind);
	/* He has nothing: nobody has to remember it. */
	bool idle() const;

	const u32 user;
	kern::Budget contexts{256, -EDQUOT};
	kern::Budget pds{4096, -EDQUOT};
	/* Memory regions and windows. */
	kern::Budget keys{32768, -EDQUOT};
	kern::Budget cqs{1024, -EDQUOT};
	kern::Budget srqs{512, -EDQUOT};
	kern::Budget qps{1024, -EDQUOT};
	kern::Budget xrcds{1024, -EDQUOT};
	/* Channels, and files of asynchronous events: all of a file's are told of its end under one lock. */
	kern::Budget event_files{2048, -EDQUOT};
	/* Of a QP to a multicast group. */
	kern::Budget attachments{1024, -EDQUOT};

private:
	friend class Shares;
	/* His opened files. */
	u32 files_ = 0;
	kern::ListNode node_;
};

/* The shares of a device. */
class Shares {
public:
	Shares() = default;
	~Shares();

	/* A file's part in its user's share. */
	class Member {
	public:
		Member() = default;
		Member(Member &&other) noexcept : shares_(other.shares_), share_(std::exchange(other.share_, nullptr)) {}
		Member &operator=(Member &&) = delete;
		~Member()
		{
			if (share_)
				shares_->leave(*share_);
		}
		Share &operator*() const { return *share_; }
		Share *operator->() const { return share_; }

	private:
		friend class Shares;
		Member(Shares &shares, Share &share) : shares_(&shares), share_(&share) {}

		Shares *shares_ = nullptr;
		Share *share_ = nullptr;
	};

	/* Context: process. Errors: ENOMEM. */
	kern::Result<Member> enter(u32 user);

private:
	/* What he has lost there, he still has when he comes again. */
	void leave(Share &share);

	kern::Mutex lock_{KERN_LOCK_CLASS("uverbs.shares")};
	kern::List<Share, &Share::node_> shares_ GUARDED_BY(lock_);
};

} // namespace uverbs
