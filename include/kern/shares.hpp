// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Records each user's share of common resources, which is the total over all files that the user
// has open.
//
//	class Share : public kern::UserShare {		// of one user
//		Share(const kern_user &user, Pools &pools)
//		    : UserShare(user), pds(pools.pds, user, -EDQUOT) {}
//		bool idle() const;			// nothing is taken: it need not be kept
//		kern::Quota pds;
//	};
//	kern::Shares<Share> shares{KERN_LOCK_CLASS("mlx4.shares")};
//	auto member = KERN_TRY(shares.enter(kern_current_user(), pools));	// as long as the file
//	kern::Charge charge = KERN_TRY(member->pds.take());
#pragma once
#include <kern/list.hpp>
#include <kern/lock.hpp>
#include <kern/memory.hpp>
#include <kern/quota.hpp>

namespace kern
{

class UserShare
{
public:
	const kern_user user;

protected:
	explicit UserShare(const kern_user &its_user) : user(its_user) {}
	~UserShare() = default;

private:
	template<class Share>
	friend class Shares;
	/* Number of files that the user has open. */
	u32 files_ = 0;
	ListNode node_;
};

template<class Share>
class Shares
{
public:
	explicit Shares(LockClass &lock_class) : lock_(lock_class) {}
	~Shares()
	{
		Guard guard(lock_);
		while (UserShare *share = shares_.pop_front())
			destroy(static_cast<Share *>(share));
	}

	/* A file's reference to the share of its user. */
	class Member
	{
	public:
		Member() = default;
		Member(Member &&other) noexcept
		    : shares_(other.shares_), share_(std::exchange(other.share_, nullptr))
		{
		}
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

	/*
	 * arguments: passed to the constructor of a new share, after the user. Files that a user
	 * has opened with and without privileges have different shares. Context: process. Errors:
	 * ENOMEM.
	 */
	template<class... Arguments>
	Result<Member> enter(const kern_user &user, Arguments &&...arguments)
	{
		Guard guard(lock_);
		UserShare *own = nullptr;

		for (UserShare &share : shares_)
			if (share.user.id == user.id && share.user.privileged == user.privileged)
				own = &share;
		if (!own) {
			own = KERN_TRY(make<Share>(Gfp::kernel, user,
						   std::forward<Arguments>(arguments)...))
				      .release();
			shares_.push_back(*own);
		}
		own->files_++;
		return Member(*this, static_cast<Share &>(*own));
	}

private:
	/*
	 * A share with leaked objects is kept, and is found again when its user opens another file.
	 */
	void leave(Share &share)
	{
		Guard guard(lock_);
		UserShare &left = share;

		if (--left.files_ || !share.idle())
			return;
		left.node_.unlink();
		destroy(&share);
	}

	Mutex lock_;
	List<UserShare, &UserShare::node_> shares_ KERN_GUARDED_BY(lock_);
};

/*
 * A pool with the quotas of its users, for resources that are charged to a user rather than to an
 * opened file.
 */
class SharedPool
{
public:
	SharedPool(u32 limit, int refusal, LockClass &lock_class)
	    : pool_(limit), refusal_(refusal), users_(lock_class)
	{
	}

	/* The pool must outlive the charge. Context: process. Errors: the refusal; ENOMEM. */
	Result<Charge> take(const kern_user &user, u32 amount)
	{
		/* The user's share exists as long as something is charged to it. */
		auto member = KERN_TRY(users_.enter(user, pool_, refusal_));
		return member->quota.take(amount);
	}
	u32 limit() const { return pool_.limit(); }
	u32 taken() const { return pool_.taken(); }

private:
	struct Share : UserShare {
		Share(const kern_user &its_user, Pool &pool, int refusal)
		    : UserShare(its_user), quota(pool, its_user, refusal)
		{
		}
		bool idle() const { return quota.taken() == 0; }

		Quota quota;
	};

	Pool pool_;
	const int refusal_;
	Shares<Share> users_;
};

} // namespace kern
