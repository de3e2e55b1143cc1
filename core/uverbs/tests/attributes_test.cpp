// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests which attributes a method accepts, the errors for those that it rejects, and where output
// is written.
#include <kern/kunit_process.hpp>
#include <kern/memory.hpp>
#include "../attributes.hpp"

using namespace uverbs;

namespace
{

using kern::kunit::Mapping;
using kern::kunit::Test;

struct Capacity {
	u32 word[3];
};

enum : u16 { fixed, growing, bytes, choice, bits, answer, object, made, descriptor };

constexpr Attribute known[] = {
	{.id = fixed, .form = Form::in, .mandatory = true, .size = 4, .bound = 0},
	{.id = growing,
	 .form = Form::in_growing,
	 .mandatory = false,
	 .size = sizeof(Capacity),
	 .bound = 0},
	{.id = bytes, .form = Form::in_bytes, .mandatory = false, .size = 0, .bound = 0},
	{.id = choice, .form = Form::constant, .mandatory = false, .size = 0, .bound = 10},
	{.id = bits, .form = Form::flags, .mandatory = false, .size = 0, .bound = 0x1002},
	{.id = answer, .form = Form::out, .mandatory = false, .size = 8, .bound = 0},
	{.id = object, .form = Form::handle, .mandatory = false, .size = 0, .bound = 0},
	{.id = made, .form = Form::new_handle, .mandatory = false, .size = 0, .bound = 0},
	{.id = descriptor, .form = Form::descriptor, .mandatory = false, .size = 0, .bound = 0},
};

/* A program with a list of attributes at the beginning of its memory, and data behind. */
struct Program {
	kern::kunit::Process process;
	Mapping memory{2 * kern::page_size};
	size_t count = 0;

	u64 data() const { return memory.address() + kern::page_size; }
	bool ok() const { return process && memory.address(); }
	bool say(const abi::Attribute &attribute)
	{
		return kern::copy_out(memory.address() + count++ * sizeof(attribute), &attribute,
				      sizeof(attribute))
			.ok();
	}
	abi::Attribute look(size_t place) const
	{
		abi::Attribute attribute = {};
		kern::ignore(kern::copy_in(&attribute, memory.address() + place * sizeof(attribute),
					   sizeof(attribute)));
		return attribute;
	}
	kern::Result<> take(Attributes &attributes) const
	{
		return attributes.take(memory.address(), count);
	}
};

constexpr abi::Attribute well = {.id = fixed,
				 .length = 4,
				 .flags = abi::attribute_mandatory,
				 .reserved = 0,
				 .data = 0xffffffff00000007};

/*
 * A wrong attribute, in addition to the mandatory one. Data longer than a word follows the
 * attributes; "address" means its address.
 */
constexpr u64 address = 0xadd;
struct Case {
	const char *what;
	abi::Attribute attribute;
	int error;
};
constexpr u16 must = abi::attribute_mandatory;
constexpr Case cases[] = {
	{"unknown, and the program insists", {77, 0, must, 0, 0}, -EPROTONOSUPPORT},
	{"unknown, and it does not", {77, 0, 0, 0, 0}, 0},
	{"once more", {fixed, 4, must, 0, 0}, -EINVAL},
	{"something in what is reserved", {bytes, 4, must, 1, 0}, -EINVAL},
	{"what may grow, in full", {growing, 12, must, 0, address}, 0},
	{"too short", {growing, 11, must, 0, address}, -EINVAL},
	{"too short to have an address", {growing, 8, must, 0, 0}, -EINVAL},
	{"longer, of nothing", {growing, 16, must, 0, address}, 0},
	{"longer, of something", {growing, 17, must, 0, address}, -EOPNOTSUPP},
	{"nowhere", {growing, 16, must, 0, 0}, -EFAULT},
	{"any length", {bytes, 0xffff, must, 0, 0}, 0},
	{"none", {bytes, 0, must, 0, 0}, 0},
	{"the last choice", {choice, 8, must, 0, 10}, 0},
	{"the same in four bytes", {choice, 4, must, 0, 0xffffffff0000000a}, 0},
	{"no choice", {choice, 8, must, 0, 11}, -EINVAL},
	{"no choice in the upper half", {choice, 8, must, 0, 0x10000000a}, -EINVAL},
	{"a choice of two bytes", {choice, 2, must, 0, 1}, -EINVAL},
	{"a choice of more than a word", {choice, 12, must, 0, address}, -EINVAL},
	{"all flags", {bits, 4, must, 0, 0x1002}, 0},
	{"a flag that there is not", {bits, 8, must, 0, 0x1003}, -EINVAL},
	{"flags of no size", {bits, 0, must, 0, 0}, -EINVAL},
	{"buffer large enough", {answer, 8, must, 0, address}, 0},
	{"buffer too small", {answer, 7, must, 0, address}, -EINVAL},
	{"a handle", {object, 0, must, 0, 0xffffffff}, 0},
	{"a handle beyond", {object, 0, must, 0, 0x100000000}, -EINVAL},
	{"a handle with a size", {object, 4, must, 0, 1}, -EINVAL},
	{"new handle with a size", {made, 4, must, 0, 0}, -EINVAL},
	{"a descriptor", {descriptor, 0, must, 0, 0x7fffffff}, 0},
	{"a negative one", {descriptor, 0, must, 0, ~u64{}}, -EBADF},
	{"one with a size", {descriptor, 4, must, 0, 1}, -EINVAL},
};

void invalid_ioctl_attributes_are_rejected(Test &test)
{
	for (const Case &wrong : cases) {
		Program program;
		Attributes attributes(known);
		abi::Attribute attribute = wrong.attribute;
		const u8 something = 1;
		ASSERT_TRUE(program.ok());
		ASSERT_OK(kern::copy_out(program.data() + 16, &something, 1));
		if (attribute.data == address)
			attribute.data = program.data();
		ASSERT_TRUE(program.say(well) && program.say(attribute));
		const int error = program.take(attributes).error();
		if (!EXPECT_EQ(error, wrong.error))
			kern_kunit_note(test.native(), "%s", wrong.what);
	}
}

/* Missing mandatory attributes and unreadable attributes are rejected. */
void missing_mandatory_ioctl_attributes_are_rejected(Test &test)
{
	Program program;
	ASSERT_TRUE(program.ok());
	/* In separate blocks, to limit the use of the stack. */
	{
		Attributes attributes(known);
		EXPECT_ERROR(program.take(attributes), -EINVAL);
	}
	Attributes attributes(known);
	EXPECT_ERROR(attributes.take(16, 1), -EFAULT);
}

/* Input is read as written, whatever follows it. Missing input reads as zero. */
void input_ioctl_attributes_have_the_values_that_the_program_wrote(Test &test)
{
	Program program;
	Attributes attributes(known);
	const Capacity capacity = {{1, 2, 3}};
	ASSERT_TRUE(program.ok());
	ASSERT_OK(kern::copy_out(program.data(), &capacity, sizeof(capacity)));
	ASSERT_TRUE(program.say(well) &&
		    program.say({growing, sizeof(capacity), must, 0, program.data()}) &&
		    program.say({bytes, 3, must, 0, 0x030201}) &&
		    program.say({descriptor, 0, must, 0, 5}));
	ASSERT_OK(program.take(attributes));

	EXPECT_EQ(attributes.number(fixed), 7u);
	Capacity read = {};
	ASSERT_OK(attributes.read(growing, read));
	EXPECT_EQ(read.word[2], 3u);
	u8 inline_bytes[3] = {};
	EXPECT_EQ(attributes.place(bytes).size, 3u);
	ASSERT_OK(
		kern::copy_in(inline_bytes, attributes.place(bytes).address, sizeof(inline_bytes)));
	EXPECT_EQ(inline_bytes[2], 3);
	EXPECT_EQ(attributes.descriptor(descriptor), 5);
	EXPECT_FALSE(attributes.has(object));
	EXPECT_EQ(attributes.number(choice), 0u);
	EXPECT_EQ(attributes.place(answer).size, 0u);
	EXPECT_EQ(attributes.place(999).size, 0u);
	EXPECT_OK(attributes.write_output(answer, u64{1})); // the program has not asked for it
}

/*
 * Output is written to its buffer and not beyond, and the program's list has its length. The number
 * of a new object is in the list.
 */
void output_ioctl_attributes_are_not_written_beyond_their_buffer(Test &test)
{
	Program program;
	Attributes attributes(known);
	u8 output[12];
	__builtin_memset(output, 0xff, sizeof(output));
	ASSERT_TRUE(program.ok());
	ASSERT_OK(kern::copy_out(program.data(), output, sizeof(output)));
	ASSERT_TRUE(program.say(well) && program.say({answer, 11, must, 0, program.data()}) &&
		    program.say({made, 0, must, 0, 99}));
	ASSERT_OK(program.take(attributes));
	EXPECT_OK(attributes.write_output(answer, u64{0x0807060504030201}));
	EXPECT_OK(attributes.write_handle(made, 42));

	ASSERT_OK(kern::copy_in(output, program.data(), sizeof(output)));
	EXPECT_EQ(output[0], 1);
	EXPECT_EQ(output[7], 8);
	EXPECT_EQ(output[8] | output[10], 0);
	EXPECT_EQ(output[11], 0xff);
	EXPECT_EQ(program.look(1).flags, abi::attribute_mandatory | abi::attribute_answered);
	EXPECT_EQ(program.look(2).data, 42u);
	EXPECT_EQ(program.look(0).flags, abi::attribute_mandatory);
}

} // namespace

KUNIT_SUITE(uverbs_attributes, KUNIT_CASE(invalid_ioctl_attributes_are_rejected),
	    KUNIT_CASE(missing_mandatory_ioctl_attributes_are_rejected),
	    KUNIT_CASE(input_ioctl_attributes_have_the_values_that_the_program_wrote),
	    KUNIT_CASE(output_ioctl_attributes_are_not_written_beyond_their_buffer));
