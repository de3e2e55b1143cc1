// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests lists that are linked through their elements: the order of iteration, removal during
// iteration, and moving all elements to another list.
#include <kern/kunit.hpp>
#include <kern/list.hpp>

namespace
{

struct Element {
	explicit Element(int v) : value(v) {}
	~Element() { node.unlink(); }
	int value;
	kern::ListNode node;
};
using Elements = kern::List<Element, &Element::node>;

/* Iteration returns the elements in insertion order, or in reverse. */
void list_iterates_in_insertion_order(kern::kunit::Test &test)
{
	Elements list;
	Element a(1), b(2), c(3);

	EXPECT_TRUE(list.empty());
	EXPECT_EQ(list.front(), nullptr);
	list.push_back(b);
	list.push_back(c);
	list.push_front(a);
	EXPECT_EQ(list.size(), 3u);
	int expected = 1;
	for (Element &element : list)
		EXPECT_EQ(element.value, expected++);
	for (Element &element : list.reversed())
		EXPECT_EQ(element.value, --expected);
	EXPECT_EQ(list.front(), &a);
	EXPECT_EQ(list.back(), &c);
	EXPECT_EQ(list.pop_front(), &a);
	EXPECT_EQ(list.pop_back(), &c);
	EXPECT_EQ(list.pop_back(), &b);
	EXPECT_EQ(list.pop_back(), nullptr);
}

/* The body of a loop may remove the current element. */
void list_element_can_be_removed_during_iteration(kern::kunit::Test &test)
{
	Elements list;
	Element a(1), b(2), c(3), d(4);

	for (Element *element : {&a, &b, &c, &d})
		list.push_back(*element);
	int seen = 0;
	for (Element &element : list) {
		seen++;
		if (element.value % 2 == 0)
			Elements::remove(element);
	}
	EXPECT_EQ(seen, 4);
	EXPECT_EQ(list.size(), 2u);
	EXPECT_FALSE(b.node.linked());
	EXPECT_TRUE(c.node.linked());
}

/* Splicing appends all elements of the other list, in order. */
void splice_moves_all_elements_in_order(kern::kunit::Test &test)
{
	Elements first, second;
	Element a(1), b(2), c(3);

	first.push_back(a);
	second.push_back(b);
	second.push_back(c);
	first.splice_back(second);
	EXPECT_TRUE(second.empty());
	int expected = 1;
	for (Element &element : first)
		EXPECT_EQ(element.value, expected++);
	EXPECT_EQ(expected, 4);
	first.splice_back(second);
	EXPECT_EQ(first.size(), 3u);
	Element x(0);
	Elements::insert_before(a, x);
	EXPECT_EQ(first.front(), &x);
}

} // namespace

KUNIT_SUITE(kern_list, KUNIT_CASE(list_iterates_in_insertion_order),
	    KUNIT_CASE(list_element_can_be_removed_during_iteration),
	    KUNIT_CASE(splice_moves_all_elements_in_order));
