// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides objects without a device, whose destruction a test can make fail.
#pragma once
#include <kern/kunit.hpp>
#include "../share.hpp"

namespace uverbs::test
{

constexpr kern_user root = {.id = 0, .privileged = true};
constexpr kern_user somebody = {.id = 1000, .privileged = false};

/* A user of a device that states no limits. */
struct Owner {
	explicit Owner(const kern_user &user = root) : share(user, pools) {}

	Pools pools{ib_device_attr{}};
	Share share;
};

/*
 * Record of a device's objects: the order in which they were destroyed, and how many still exist.
 */
struct Account {
	static constexpr u32 most = 64;

	u32 ended[most] = {};
	u32 count = 0;
	u32 alive = 0;
	/*
	 * The device refuses to destroy these objects (a bit for each name below 64), and does so
	 * this many times in total.
	 */
	u64 refused = 0;
	u32 refusals = 0;
};

template<Kind its_kind>
class Thing : public Object
{
public:
	static constexpr Kind kind = its_kind;

	Thing(Account &account, u32 name) : Object(its_kind), account_(account), name_(name)
	{
		account_.alive++;
	}
	/* Creates it as a child of another object, on which it holds a reference. */
	template<class Parent>
	Thing(Account &account, u32 name, Hold<Parent> parent) : Thing(account, name)
	{
		static_assert(std::is_same_v<Parent, Thing<Kind::pd>>);
		parent_ = std::move(parent);
	}
	~Thing() override { account_.alive--; }

	kern::Result<> end(Reason) override
	{
		if (ended_)
			return {};
		if (account_.refused >> name_ % 64 & 1 && account_.refusals) {
			account_.refusals--;
			return kern::Error{-EBUSY};
		}
		ended_ = true;
		if (account_.count < Account::most)
			account_.ended[account_.count++] = name_;
		return {};
	}
	bool ended() const override { return ended_; }
	u32 name() const { return name_; }

private:
	Account &account_;
	const u32 name_;
	bool ended_ = false;
	Hold<Thing<Kind::pd>> parent_;
};

using Pd = Thing<Kind::pd>;
using Ah = Thing<Kind::ah>;
using Mr = Thing<Kind::mr>;
using Mw = Thing<Kind::mw>;
using Cq = Thing<Kind::cq>;
using Srq = Thing<Kind::srq>;
using Qp = Thing<Kind::qp>;

/* Creates and commits an object, and returns its handle. */
template<class T, class... Args>
kern::Result<u32> make(ObjectTable &table, Account &account, u32 name, Args &&...args)
{
	auto allocation =
		KERN_TRY(Allocation<T>::create(table, account, name, std::forward<Args>(args)...));
	const u32 handle = allocation->handle();

	allocation.finish();
	return handle;
}

/* Destroys an object as a command does. */
template<class T>
kern::Result<> destroy(ObjectTable &table, u32 handle)
{
	T *object = KERN_TRY(table.claim<T>(handle));

	if (const kern::Result<> ended = object->end(Reason::command); !ended) {
		table.leave(*object);
		return ended;
	}
	table.remove(*object);
	return {};
}

} // namespace uverbs::test
