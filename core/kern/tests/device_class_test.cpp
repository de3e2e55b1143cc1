// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests kern::DeviceClass and kern::MiscNode: a write to a sysfs file of a device calls the store
// method of the C++ object that provides the file, and names of classes, of the devices in them,
// and of device nodes can be reused after removal.
#include <kern/device_class.hpp>
#include <kern/errno.h>
#include <kern/file.hpp>
#include <kern/kunit.hpp>

namespace
{

struct Value {
	kern::Result<> show(kern::sysfs::Output &out)
	{
		out.print("%u\n", value);
		return {};
	}
	kern::Result<> store(kern::ConstBytes text)
	{
		if (text.size() != 1)
			return kern::Error{-EINVAL};
		value = static_cast<unsigned int>(text[0]);
		return {};
	}
	unsigned int value = 0;
};

/*
 * A class and its devices are removed with their owners. Afterwards their names can be used again.
 */
void device_class_name_can_be_reused_after_removal(kern::kunit::Test &test)
{
	kern::kunit::FakeDevice parent("weft-kern-test-class");
	ASSERT_TRUE(parent.native() != nullptr);
	for (int round = 0; round < 2; round++) {
		auto made = kern::DeviceClass::create(
			"weft_kern_test",
			{.abi_version = "6", .node_mode = 0, .reports_name = true});
		ASSERT_OK(made);
		const kern::DeviceClass kind = made.take();
		Value value;
		kern::sysfs::File file(kern::method<&Value::show>, kern::method<&Value::store>,
				       &value);
		const kern_class_file files[] = {{"value", &file.native()}};
		auto first = kern::ClassDevice::create(kind, parent.native(), "first0", files);
		ASSERT_OK(first);
		first.value().announce();
		auto alone = kern::ClassDevice::create(kind, nullptr, "second0", {});
		EXPECT_OK(alone);
		{
			// A class device can have a directory, like any other device.
			auto below =
				kern::sysfs::Directory::create("below", first.value().native());
			EXPECT_OK(below);
		}
	}
}

/* Written data are passed to the object, and its error is returned to the writer. */
void device_class_attribute_write_calls_the_store_method(kern::kunit::Test &test)
{
	Value value;
	kern::sysfs::File file(kern::method<&Value::show>, kern::method<&Value::store>, &value);
	EXPECT_EQ(file.native().store(&file.native(), "A", 1), 0);
	EXPECT_EQ(value.value, 65u);
	EXPECT_EQ(file.native().store(&file.native(), "AB", 2), -EINVAL);
	EXPECT_EQ(value.value, 65u);
}

struct Opened {
	void release() {}
};

/* Opens a node; never called here. */
struct Opener {
	kern::Result<Opened *> open(kern_file &) { return kern::Error{-ENXIO}; }
};

/* The name of a node without a device is in use until the node is removed. */
void misc_device_name_can_be_reused_only_after_removal(kern::kunit::Test &test)
{
	kern::FileKind<Opened> kind, other;
	Opener opener;
	ASSERT_OK(kind.create(nullptr));
	ASSERT_OK(other.create(nullptr));
	for (int round = 0; round < 2; round++) {
		auto node = kern::MiscNode::create("weft_kern_test", "4", kind, &opener);
		EXPECT_OK(node);
		auto same = kern::MiscNode::create("weft_kern_test", "4", other, &opener);
		EXPECT_ERROR(same, -EEXIST);
	}
	other.destroy();
	kind.destroy();
}

} // namespace

KUNIT_SUITE(kern_device_class, KUNIT_CASE(misc_device_name_can_be_reused_only_after_removal),
	    KUNIT_CASE(device_class_name_can_be_reused_after_removal),
	    KUNIT_CASE(device_class_attribute_write_calls_the_store_method));
