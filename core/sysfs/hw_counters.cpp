// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "hw_counters.hpp"

namespace ib_sysfs
{

namespace
{

/*
 * Parses a decimal number, which a newline may follow. Errors: EINVAL for any other text, or if the
 * number is too large.
 */
kern::Result<u32> parse(kern::ConstBytes text)
{
	size_t size = text.size();
	u32 value = 0;

	if (size && text[size - 1] == std::byte{'\n'})
		size--;
	if (!size)
		return kern::Error{-EINVAL};
	for (const std::byte digit : text.first(size)) {
		const u32 units = static_cast<u32>(digit) - '0';
		if (units > 9)
			return kern::Error{-EINVAL};
		if (__builtin_mul_overflow(value, 10u, &value) ||
		    __builtin_add_overflow(value, units, &value))
			return kern::Error{-EINVAL};
	}
	return value;
}

} // namespace

kern::Result<> HwCounters::fill()
{
	KERN_TRY(lifespan_.add("lifespan", directory_));
	files_ = KERN_TRY(kern::make_array<File>(kern::Gfp::kernel, counters_->count));
	u32 counter = 0;
	for (File &file : files_)
		KERN_TRY(file.start(*this, counter++));
	return {};
}

kern::Result<> HwCounters::show_lifespan(kern::sysfs::Output &out)
{
	const int lifespan_ms = ib_get_hw_stats_lifespan(&device_, port_);

	KERN_TRY_ERRNO(lifespan_ms < 0 ? lifespan_ms : 0);
	out.print("%d\n", lifespan_ms);
	return {};
}

kern::Result<> HwCounters::set_lifespan(kern::ConstBytes text)
{
	return kern::check(ib_set_hw_stats_lifespan(&device_, port_, KERN_TRY(parse(text))));
}

kern::Result<> HwCounters::File::start(HwCounters &of, u32 counter)
{
	of_ = &of;
	counter_ = counter;
	return file_.add(of.counters_->names[counter], of.directory_);
}

kern::Result<> HwCounters::File::show(kern::sysfs::Output &out)
{
	u64 value;

	KERN_TRY_ERRNO(ib_get_hw_stats(&of_->device_, of_->port_, counter_, 1, &value));
	out.print("%lu\n", value);
	return {};
}

} // namespace ib_sysfs
