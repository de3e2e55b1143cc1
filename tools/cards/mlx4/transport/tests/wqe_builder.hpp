// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Builds send WQEs for tests, segment by segment.
 */
#pragma once

#include <cstring>
#include <span>
#include <vector>

#include <hw/mlx4/wqe.hpp>

namespace weft::mlx4::transport
{

using namespace hw::mlx4;

/* Appends segments to a WQE and fills in its size. */
class WqeBuilder
{
public:
	explicit WqeBuilder(WqeOpcode opcode, std::uint32_t flags = WqeControl::completion)
	{
		WqeControl control{};
		control.set(opcode, false, 0, flags);
		add(control);
	}
	template<class Segment>
	WqeBuilder &add(const Segment &segment)
	{
		bytes_.resize(bytes_.size() + sizeof(segment));
		std::memcpy(bytes_.data() + bytes_.size() - sizeof(segment), &segment,
			    sizeof(segment));
		return *this;
	}
	WqeBuilder &inline_bytes(std::size_t count)
	{
		add(WqeInline{WqeData::inline_bit | static_cast<std::uint32_t>(count)});
		for (std::size_t i = 0; i < count; i++)
			bytes_.push_back(static_cast<std::byte>(next_++));
		bytes_.resize((bytes_.size() + wqe_unit - 1) / wqe_unit * wqe_unit);
		return *this;
	}
	/* Appends an inline segment with these bytes. */
	WqeBuilder &add_inline(std::span<const std::byte> content)
	{
		add(WqeInline{WqeData::inline_bit | static_cast<std::uint32_t>(content.size())});
		return raw(content);
	}
	/* Appends bytes unchanged, padded to a unit. */
	WqeBuilder &raw(std::span<const std::byte> content)
	{
		std::size_t at = bytes_.size();
		bytes_.resize((at + content.size() + wqe_unit - 1) / wqe_unit * wqe_unit);
		std::memcpy(bytes_.data() + at, content.data(), content.size());
		return *this;
	}
	std::vector<std::byte> done()
	{
		WqeControl control;
		std::memcpy(&control, bytes_.data(), sizeof(control));
		control.size_word =
			control.size_word | static_cast<std::uint32_t>(bytes_.size() / wqe_unit);
		std::memcpy(bytes_.data(), &control, sizeof(control));
		return bytes_;
	}

private:
	std::vector<std::byte> bytes_;
	unsigned next_ = 0;
};

} // namespace weft::mlx4::transport
