// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "hw_counters.hpp"
#include <kern/time.hpp>

namespace ib_sysfs
{

namespace
{

constexpr u64 ns_per_ms = 1'000'000;
constexpr u32 longest_lifespan_ms = 10'000;

/* Digits, and perhaps the end of the line. Errors: EINVAL for anything else, or what is more. */
kern::Result<u32> parse(kern::ConstBytes text, u32 most)
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
		value = value * 10 + units;
		if (value > most)
			return kern::Error{-EINVAL};
	}
	return value;
}

} // namespace

kern::Result<> HwCounters::fill()
{
	{
		kern::Guard guard(lock_);
		values_ = TRY(kern::make_array<u64>(kern::Gfp::kernel, counters_->count));
	}
	TRY(lifespan_.add("lifespan", directory_));
	files_ = TRY(kern::make_array<File>(kern::Gfp::kernel, counters_->count));
	u32 counter = 0;
	for (File &file : files_)
		TRY(file.start(*this, counter++));
	return {};
}

kern::Result<u64> HwCounters::value(u32 counter)
{
	kern::Guard guard(lock_);
	const u64 now = kern::now_ns();

	if (!read_at_ns_ || now - read_at_ns_ >= lifespan_ms_ * ns_per_ms) {
		TRY_ERRNO(ib_get_hw_stats(&device_, port_, values_.data()));
		read_at_ns_ = now;
	}
	return values_[counter];
}

kern::Result<> HwCounters::show_lifespan(kern::sysfs::Output &out)
{
	kern::Guard guard(lock_);

	out.print("%u\n", lifespan_ms_);
	return {};
}

kern::Result<> HwCounters::set_lifespan(kern::ConstBytes text)
{
	const u32 wanted = TRY(parse(text, longest_lifespan_ms));
	kern::Guard guard(lock_);

	lifespan_ms_ = wanted;
	return {};
}

kern::Result<> HwCounters::File::start(HwCounters &of, u32 counter)
{
	of_ = &of;
	counter_ = counter;
	return file_.add(of.counters_->names[counter], of.directory_);
}

kern::Result<> HwCounters::File::show(kern::sysfs::Output &out)
{
	out.print("%lu\n", TRY(of_->value(counter_)));
	return {};
}

} // namespace ib_sysfs
