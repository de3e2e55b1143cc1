// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// What each user may have of something that all users share, by all the files that he has open.
//
//	class Share : public kern::UserShare {		// one user's
//		explicit Share(u32 its_user) : UserShare(its_user) {}
//		bool idle() const;			// he has nothing: nobody has to remember it
//		kern::Budget pds{4096, -EDQUOT};
//	};
//	kern::Shares<Share> shares{KERN_LOCK_CLASS("connectx.shares")};
//	auto member = TRY(shares.enter(kern_file_user(&native)));	// as long as the file
//	kern::Portion portion = TRY(member->pds.take());
#pragma once
#include <kern/budget.hpp>
#include <kern/list.hpp>
#include <kern/lock.hpp>
#include <kern/memory.hpp>

namespace kern
{

class UserShare
{
public:
	const u32 user;

protected:
	explicit UserShare(u32 its_user) : user(its_user) {}
	~UserShare() = default;

private:
	template<class Share>
	friend class Shares;
	/* His opened files. */
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

	/* A file's part in its user's share. */
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

	/* Context: process. Errors: ENOMEM. */
	Result<Member> enter(u32 user)
	{
		Guard guard(lock_);
		UserShare *own = nullptr;

		for (UserShare &share : shares_)
			if (share.user == user)
				own = &share;
		if (!own) {
			own = TRY(make<Share>(Gfp::kernel, user)).release();
			shares_.push_back(*own);
		}
		own->files_++;
		return Member(*this, static_cast<Share &>(*own));
	}

private:
	/* What he has lost there, he still has when he comes again. */
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
	List<UserShare, &UserShare::node_> shares_ GUARDED_BY(lock_);
};

} // namespace kern
