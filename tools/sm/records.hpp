// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Lists SA records, and compares records by component mask (IBA 15.4.4). */
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include <ib/sa.hpp>

namespace weft::sm
{

/* Position of a component in its record, in bits from the start. */
struct Field {
	std::uint8_t component;
	std::uint16_t bit;
	std::uint16_t bits;
};

/*
 * Returns true if `candidate` equals `wanted` in all listed components whose bits are set in the
 * mask.
 */
bool fields_match(std::span<const Field> fields, std::uint64_t mask, const void *wanted,
		  const void *candidate);

/* An answer: records of one size, and a status that is not 0 after an error. */
class RecordSet
{
public:
	static RecordSet failure(std::uint16_t status)
	{
		RecordSet set;
		set.status_ = status;
		return set;
	}

	template<class Record>
	void add(const Record &record)
	{
		static_assert(sizeof(Record) <= ib::sa_data_bytes);
		/* Records start at multiples of eight bytes, IBA 15.2.1.1. */
		stride_ = (sizeof(Record) + 7) / 8 * 8;
		std::size_t at = bytes_.size();
		bytes_.resize(at + stride_);
		std::memcpy(bytes_.data() + at, &record, sizeof(record));
		count_++;
	}

	std::uint16_t status() const { return status_; }
	std::size_t count() const { return count_; }
	std::size_t stride() const { return stride_; }
	std::span<const std::uint8_t> bytes() const { return bytes_; }

private:
	std::uint16_t status_ = 0;
	std::size_t stride_ = 0;
	std::size_t count_ = 0;
	std::vector<std::uint8_t> bytes_;
};

/* Returns the record in a request. */
template<class Record>
const Record &record_of(const ib::SaMad &mad)
{
	static_assert(sizeof(Record) <= ib::sa_data_bytes && alignof(Record) == 1);
	return *reinterpret_cast<const Record *>(mad.data);
}

inline bool has_component(const ib::SaMad &mad, unsigned number)
{
	return (mad.component_mask & ib::component(number)) != 0;
}

/*
 * Returns true if an encoded value meets a request's selector. @order maps an encoding to its rank.
 */
template<class Order>
bool selector_allows(std::uint8_t byte, bool has_selector, unsigned actual, Order &&order)
{
	unsigned wanted = ib::selected_value(byte);
	/* Without a selector, the value must match exactly. */
	switch (has_selector ? ib::selector_of(byte) : ib::Selector::exactly) {
	case ib::Selector::greater:
		return order(actual) > order(wanted);
	case ib::Selector::less:
		return order(actual) < order(wanted);
	case ib::Selector::exactly:
		return actual == wanted;
	case ib::Selector::largest:
		return true;
	}
	return false;
}

} // namespace weft::sm
