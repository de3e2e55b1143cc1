// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the capabilities that QUERY_HCA_CAP reports, and applies those that SET_HCA_CAP changes.
#pragma once

#include <cstdint>
#include <span>

#include "cards/mlx5/names.hpp"

namespace weft::mlx5
{

class Capabilities
{
public:
	Capabilities(unsigned ports, bool enhanced_ipoib)
	    : ports_(ports), enhanced_ipoib_(enhanced_ipoib)
	{
		reset();
	}
	void reset();

	// Writes the page of capabilities of a kind; @page has HcaCap::size bytes. @current selects
	// the present values, otherwise the maximum values. Returns false if there is no such kind.
	bool query(std::uint32_t kind, bool current, std::span<std::uint8_t> page) const;
	// Makes a page of general capabilities inconsistent, if that fault is due.
	static void distort(Faults &faults, std::uint32_t kind, std::span<std::uint8_t> page);
	// Sets the fields that a driver may choose, and ignores the rest of the page, because Linux
	// sends pages that are zero except for its changes. Returns false if there is no such kind
	// or a value is out of range.
	bool set(std::uint32_t kind, std::span<const std::uint8_t> page);

private:
	const unsigned ports_;
	const bool enhanced_ipoib_;
	std::uint32_t log_qps_;
	std::uint32_t pkey_table_code_;
	std::uint32_t atomic_endianness_; // 1: results are in the host's byte order
};

} // namespace weft::mlx5
