// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Divides a limited resource among users, and records the amount that each user has taken.
//
//	kern::Pool qps{attr.max_qp};			// of a device
//	kern::Quota own{qps, user, -EDQUOT};		// of one user, or of one user namespace
//	kern::Charge charge = KERN_TRY(own.take());		// until it is destroyed
#pragma once
#include <kern/atomic.hpp>
#include <kern/result.hpp>
#include <kern/types.h>
#include <utility>
#include <kern/abi/user.h>

namespace kern
{

class Quota;

/*
 * A pool limits users so that neither one unprivileged user nor all of them together can take
 * everything: a sixteenth is reserved for root and the kernel, and a user must leave at least as
 * much for other users as the user has taken. So the first user gets at most a half, the second a
 * quarter, and so on; a user who has nothing can always get one unit. Privileged users are limited
 * only by the device. Context: any.
 */
class Pool
{
public:
	explicit constexpr Pool(u32 limit) : limit_(limit) {}

	u32 limit() const { return limit_; }
	/* Returns the limit of all unprivileged users together. */
	u32 open() const { return limit_ - limit_ / 16; }
	u32 taken() const { return taken_.load_relaxed(); }

	/*
	 * Returns true if a user who has taken @own may take @amount more, when all users have
	 * taken @taken of @open. For callers that do their own accounting.
	 */
	static bool permits(u32 open, u32 taken, u32 own, u32 amount)
	{
		if (taken > open || amount > open - taken)
			return false;
		return u64{own} + amount <= u64{open - taken - amount} + 1;
	}

private:
	friend class Quota;
	friend class Charge;

	const u32 limit_;
	Atomic<u32> taken_{0};
};

/* An amount that a user has taken from a pool. The destructor returns it. */
class Charge
{
public:
	Charge() = default;
	Charge(Charge &&other) noexcept
	    : quota_(std::exchange(other.quota_, nullptr)), amount_(other.amount_)
	{
	}
	Charge &operator=(Charge &&other) noexcept
	{
		std::swap(quota_, other.quota_);
		std::swap(amount_, other.amount_);
		return *this;
	}
	inline ~Charge();

	/* Keeps the charge forever, because the object to which it belongs has been leaked. */
	void lose() { quota_ = nullptr; }

private:
	friend class Quota;
	Charge(Quota &quota, u32 amount) : quota_(&quota), amount_(amount) {}

	Quota *quota_ = nullptr;
	u32 amount_ = 0;
};

class Quota
{
public:
	/* The pool and this object must outlive all charges. @refusal: the error of take(). */
	constexpr Quota(Pool &pool, const kern_user &user, int refusal)
	    : pool_(pool), privileged_(user.privileged), refusal_(refusal)
	{
	}

	/* Errors: the refusal. */
	Result<Charge> take(u32 amount = 1)
	{
		/*
		 * Two tasks of one user may both be refused although there is space for one of
		 * them, but they never take too much together.
		 */
		const u32 own = taken_.fetch_add(amount);
		u32 taken = pool_.taken_.load_relaxed();

		do {
			if (!privileged_ && !Pool::permits(pool_.open(), taken, own, amount)) {
				taken_.fetch_sub(amount);
				return Error{refusal_};
			}
		} while (!pool_.taken_.compare_exchange(taken, taken + amount));
		return Charge(*this, amount);
	}

	u32 taken() const { return taken_.load_relaxed(); }

private:
	friend class Charge;

	Pool &pool_;
	const bool privileged_;
	const int refusal_;
	Atomic<u32> taken_{0};
};

inline Charge::~Charge()
{
	if (!quota_)
		return;
	quota_->taken_.fetch_sub(amount_);
	quota_->pool_.taken_.fetch_sub(amount_);
}

} // namespace kern
