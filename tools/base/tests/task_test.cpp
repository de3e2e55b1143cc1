// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that tasks run once and destroy the objects that they have captured.
#include "base/task.hpp"

#include <array>
#include <memory>

#include <gtest/gtest.h>

namespace
{

// A small callable and one that is too large for the inline storage are both called, and their
// captures are destroyed.
TEST(Task, CallableRunsAndItsCapturesAreDestroyed)
{
	auto witness = std::make_shared<int>(0);
	std::array<char, 2 * weft::Task::kInline> ballast{};
	ballast[3] = 7;
	weft::Task small([witness] { ++*witness; });
	weft::Task large([witness, ballast] { *witness += ballast[3]; });
	EXPECT_EQ(witness.use_count(), 3);
	small();
	large();
	EXPECT_EQ(*witness, 8);
	small.reset();
	large.reset();
	EXPECT_EQ(witness.use_count(), 1);
}

// Moving a task transfers the callable and leaves the source empty. A callable that is overwritten
// is destroyed.
TEST(Task, MoveTransfersTheCallable)
{
	auto first = std::make_shared<int>(0);
	auto second = std::make_shared<int>(0);
	weft::Task a([first] { ++*first; });
	weft::Task b([owner = std::make_unique<int>(5), second] { *second = *owner; });
	a = std::move(b);
	EXPECT_EQ(first.use_count(), 1);
	EXPECT_FALSE(b);
	ASSERT_TRUE(a);
	a();
	EXPECT_EQ(*second, 5);
}

} // namespace
