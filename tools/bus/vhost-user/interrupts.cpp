// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "bus/vhost-user/interrupts.hpp"

#include <algorithm>

namespace weft::vhost_user
{

Interrupts::Interrupts(unsigned vectors) : table_(vectors), pending_(vectors) {}

void Interrupts::disconnect(const MessagePort &port)
{
	// The port of the next guest may be connected already.
	if (port_ == &port)
		port_ = nullptr;
}

bool Interrupts::try_to_send(unsigned vector)
{
	const Entry &entry = table_[vector];
	return port_ && !masked_ && !(entry.control & Entry::kMasked) &&
	       port_->send_message(entry.address, entry.data);
}

void Interrupts::raise_msix(unsigned vector)
{
	if (vector < table_.size())
		pending_[vector] = !try_to_send(vector);
}

void Interrupts::flush()
{
	for (unsigned vector = 0; vector < table_.size(); ++vector)
		if (pending_[vector])
			pending_[vector] = !try_to_send(vector);
}

bool Interrupts::pending(std::size_t vector) const
{
	return vector < pending_.size() && pending_[vector];
}

void Interrupts::set_msix_masked(bool masked)
{
	masked_ = masked;
	flush();
}

void Interrupts::clear_pending()
{
	pending_.assign(pending_.size(), false);
}

void Interrupts::read_table(std::uint64_t offset, std::span<std::byte> data) const
{
	std::ranges::copy(std::as_bytes(std::span(table_)).subspan(offset, data.size()),
			  data.begin());
}

void Interrupts::write_table(std::uint64_t offset, std::span<const std::byte> data)
{
	std::ranges::copy(data, std::as_writable_bytes(std::span(table_)).subspan(offset).begin());
	flush();
}

void Interrupts::reset()
{
	std::ranges::fill(table_, Entry{});
	clear_pending();
	masked_ = false;
}

void Interrupts::release()
{
	port_ = nullptr;
	reset();
}

} // namespace weft::vhost_user
