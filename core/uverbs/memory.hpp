// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Manages a program's protection domains, memory regions and windows.
#pragma once
#include <rdma/ib_verbs.h>
#include "object.hpp"

namespace uverbs
{

/*
 * An object that owns an object of the verbs. @End: the function that destroys the verbs' object;
 * returns 0 or a negative errno.
 */
template<class Verbs, Kind its_kind, auto End>
class Owning : public Object
{
public:
	static constexpr Kind kind = its_kind;

	Owning() : Object(its_kind) {}

	/*
	 * Stores the object that the midlayer has created, or returns the error of its error
	 * pointer. Must be called once.
	 */
	kern::Result<> take(Verbs *made)
	{
		if (rdma::is_err(made))
			return kern::Error{rdma::ptr_err(made)};
		ib_ = made;
		return {};
	}
	/* Returns nullptr before the verbs' object is created and after it was destroyed. */
	Verbs *ib() const { return ib_; }

	/* Passes the verbs' object to the caller, which must destroy it. */
	Verbs *give_up() { return std::exchange(ib_, nullptr); }

	kern::Result<> end(Reason) override
	{
		if (ib_) {
			KERN_TRY_ERRNO(End(ib_));
			ib_ = nullptr;
		}
		return {};
	}
	bool ended() const override { return !ib_; }

private:
	Verbs *ib_ = nullptr;
};

class Pd : public Owning<ib_pd, Kind::pd, ib_dealloc_pd_user>
{
};

class Mr : public Owning<ib_mr, Kind::mr, ib_dereg_mr>
{
public:
	explicit Mr(Hold<Pd> pd) : pd_(std::move(pd)) {}
	/* Called after the midlayer has moved the region to another PD. */
	void move_to(Hold<Pd> pd) { pd_ = std::move(pd); }

private:
	Hold<Pd> pd_;
};

class Mw : public Owning<ib_mw, Kind::mw, ib_dealloc_mw>
{
public:
	explicit Mw(Hold<Pd> pd) : pd_(std::move(pd)) {}

private:
	Hold<Pd> pd_;
};

} // namespace uverbs
