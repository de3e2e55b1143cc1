// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests owned objects and arrays, page blocks and spans.
#include <kern/kunit.hpp>
#include <kern/memory.hpp>
#include <kern/span.hpp>

namespace
{

struct Base {
	virtual ~Base() = default;
	virtual int number() const { return 1; }
};
struct Other {
	virtual ~Other() = default;
	long padding = 0;
};
struct Derived : Other, Base {
	explicit Derived(int &d) : destroyed(&d) {}
	~Derived() override { ++*destroyed; }
	int number() const override { return 2; }
	int *destroyed;
};

/*
 * An Owned destroys its object once, also through a base that does not begin where the object does.
 */
void object_of_an_owning_pointer_is_destroyed_once(kern::kunit::Test &test)
{
	int destroyed = 0;
	{
		auto made = kern::make<Derived>(kern::Gfp::kernel, destroyed);
		ASSERT_OK(made);
		kern::Owned<Base> base = made.take();
		EXPECT_EQ(base->number(), 2);
		kern::Owned<Base> other = std::move(base);
		EXPECT_FALSE(static_cast<bool>(base));
		EXPECT_EQ(destroyed, 0);
		other = kern::Owned<Base>();
		EXPECT_EQ(destroyed, 1);
	}
	EXPECT_EQ(destroyed, 1);
}

/*
 * If the size overflows or is not available, the allocation fails with ENOMEM. It does not return a
 * smaller array.
 */
void oversized_array_allocation_returns_enomem(kern::kunit::Test &test)
{
	const volatile std::size_t count = ~std::size_t{0} / 4;
	EXPECT_ERROR(kern::make_array<u64>(kern::Gfp::atomic | kern::Gfp::no_warn, count), -ENOMEM);
	EXPECT_ERROR(kern::make_array<u64>(kern::Gfp::kernel | kern::Gfp::no_warn, count), -ENOMEM);
}

/* The elements of an array are initialised to zero, and destroyed in reverse order. */
void new_array_is_zeroed_and_its_elements_are_destroyed_in_reverse_order(kern::kunit::Test &test)
{
	static int order;
	struct Element {
		~Element()
		{
			if (mark)
				*mark = ++order;
		}
		int *mark = nullptr;
	};
	int marks[3] = {};
	order = 0;
	{
		auto made = kern::make_array<Element>(kern::Gfp::kernel, 3);
		ASSERT_OK(made);
		auto array = made.take();
		EXPECT_EQ(array.size(), 3u);
		for (int i = 0; i < 3; i++) {
			EXPECT_EQ(array[i].mark, nullptr);
			array[i].mark = &marks[i];
		}
	}
	EXPECT_EQ(marks[0], 3);
	EXPECT_EQ(marks[1], 2);
	EXPECT_EQ(marks[2], 1);

	auto large = kern::make_array<u32>(kern::Gfp::kernel, 1 << 20);
	ASSERT_OK(large);
	u32 any = 0;
	for (u32 word : large.value())
		any |= word;
	EXPECT_EQ(any, 0u);
}

/* A block of pages has the size of its order and is aligned to a page. */
void page_block_is_aligned_and_has_the_size_of_its_order(kern::kunit::Test &test)
{
	auto made = kern::Pages::create(3, kern::Gfp::kernel | kern::Gfp::zero);
	ASSERT_OK(made);
	auto pages = made.take();
	EXPECT_EQ(pages.size(), 8 * kern::page_size);
	EXPECT_EQ(reinterpret_cast<u64>(pages.address()) % kern::page_size, 0u);
	auto *bytes = static_cast<std::byte *>(pages.address());
	EXPECT_TRUE(bytes[pages.size() - 1] == std::byte{0});
	kern::Pages moved = std::move(pages);
	EXPECT_FALSE(static_cast<bool>(pages));
	EXPECT_TRUE(moved.get() != nullptr);
}

/* Two spans are equal only if they have the same length and the same bytes. */
void byte_spans_are_equal_only_if_length_and_bytes_match(kern::kunit::Test &test)
{
	u32 from = 0x01020304, to = 0;
	kern::copy(kern::writable_bytes_of(to), kern::bytes_of(from));
	EXPECT_EQ(to, from);
	EXPECT_TRUE(kern::equal(kern::bytes_of(to), kern::bytes_of(from)));
	EXPECT_FALSE(kern::equal(kern::bytes_of(to).first(3), kern::bytes_of(from)));
	kern::fill(kern::writable_bytes_of(to), 0xff);
	EXPECT_EQ(to, ~0u);
	EXPECT_FALSE(kern::equal(kern::bytes_of(to), kern::bytes_of(from)));
}

/* A Static lives from construct() to destruct(). */
void static_object_exists_only_from_construct_to_destruct(kern::kunit::Test &test)
{
	static constinit kern::Static<Derived> object;
	int destroyed = 0;
	object.construct(destroyed);
	EXPECT_EQ(object->number(), 2);
	object.destruct();
	EXPECT_EQ(destroyed, 1);
}

} // namespace

KUNIT_SUITE(kern_memory, KUNIT_CASE(object_of_an_owning_pointer_is_destroyed_once),
	    KUNIT_CASE(oversized_array_allocation_returns_enomem),
	    KUNIT_CASE(new_array_is_zeroed_and_its_elements_are_destroyed_in_reverse_order),
	    KUNIT_CASE(page_block_is_aligned_and_has_the_size_of_its_order),
	    KUNIT_CASE(byte_spans_are_equal_only_if_length_and_bytes_match),
	    KUNIT_CASE(static_object_exists_only_from_construct_to_destruct));
