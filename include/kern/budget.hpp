// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Limits the amount of a resource that several owners share. An owner holds a charge, whose
 * destructor returns the amount. All functions can be called in any context.
 */
#pragma once
#include <kern/atomic.hpp>
#include <kern/result.hpp>

namespace kern
{

class BudgetCharge;

class Budget
{
public:
	/* refusal: the error of a request that exceeds what is left. */
	constexpr Budget(u32 limit, int refusal) : limit_(limit), refusal_(refusal) {}

	/*
	 * keep: the amount that must be left after the request. Errors: the refusal. The budget
	 * must outlive its charges.
	 */
	Result<BudgetCharge> take(u32 amount = 1, u32 keep = 0);

	u32 limit() const { return limit_; }
	u32 taken() const { return taken_.load_relaxed(); }

private:
	friend class BudgetCharge;

	const u32 limit_;
	const int refusal_;
	Atomic<u32> taken_{0};
};

/* A charge against a budget, which the destructor returns. */
class BudgetCharge
{
public:
	BudgetCharge() = default;
	BudgetCharge(BudgetCharge &&other) noexcept
	    : budget_(std::exchange(other.budget_, nullptr)), amount_(other.amount_)
	{
	}
	BudgetCharge &operator=(BudgetCharge &&other) noexcept
	{
		std::swap(budget_, other.budget_);
		std::swap(amount_, other.amount_);
		return *this;
	}
	~BudgetCharge()
	{
		if (budget_)
			budget_->taken_.fetch_sub(amount_);
	}

	/* Keeps the charge forever, because the object to which it belongs has been leaked. */
	void lose() { budget_ = nullptr; }
	u32 amount() const { return budget_ ? amount_ : 0; }

private:
	friend class Budget;
	BudgetCharge(Budget &budget, u32 amount) : budget_(&budget), amount_(amount) {}

	Budget *budget_ = nullptr;
	u32 amount_ = 0;
};

inline Result<BudgetCharge> Budget::take(u32 amount, u32 keep)
{
	u32 taken = taken_.load_relaxed();

	do {
		if (u64{amount} + keep > limit_ - taken)
			return Error{refusal_};
	} while (!taken_.compare_exchange(taken, taken + amount));
	return BudgetCharge(*this, amount);
}

} // namespace kern
