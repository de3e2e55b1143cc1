// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "bus/pci/message_reader.hpp"

#include <algorithm>
#include <cstring>

namespace weft::pci
{

namespace
{

// Size of a reader's buffer while no large message is being received.
constexpr std::size_t kUsualBuffer = 64 << 10;

// Descriptors that may wait for the rest of their message.
constexpr std::size_t kMaxCarried = 4 * kMaxMessageFds;

} // namespace

std::span<const std::byte> MessageReader::head() const
{
	return std::span(buffer_).subspan(begin_, framing_.header_size);
}

void MessageReader::compact()
{
	std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
	end_ -= begin_;
	begin_ = 0;
}

std::span<std::byte> MessageReader::space()
{
	if (begin_ == end_) {
		begin_ = end_ = 0;
		if (buffer_.size() != kUsualBuffer) {
			buffer_.resize(kUsualBuffer);
			buffer_.shrink_to_fit();
		}
	}
	std::size_t needed = framing_.header_size;
	if (end_ - begin_ >= framing_.header_size)
		needed = std::clamp(framing_.measure(head()).size, framing_.header_size,
				    framing_.most_size);
	if (begin_ + needed > buffer_.size() || end_ == buffer_.size())
		compact();
	if (needed > buffer_.size())
		buffer_.resize(needed);
	if (end_ == buffer_.size())
		buffer_.resize(buffer_.size() + kUsualBuffer);
	return std::span(buffer_).subspan(end_);
}

void MessageReader::filled(std::size_t size, std::vector<FileDescriptor> &&fds)
{
	end_ += size;
	if (fds.empty() || !size)
		return;
	carried_.push_back({consumed_ + (end_ - begin_) - 1, std::move(fds)});
	std::size_t waiting = 0;
	for (const Carried &carried : carried_)
		waiting += carried.fds.size();
	if (waiting > kMaxCarried)
		reason_ = "more descriptors than its messages have use for";
}

std::optional<Message> MessageReader::next()
{
	if (failed() || end_ - begin_ < framing_.header_size)
		return std::nullopt;
	const auto [size, trouble] = framing_.measure(head());
	reason_ = trouble;
	if (failed() || end_ - begin_ < size)
		return std::nullopt;
	Message message{};
	message.head = head();
	message.payload = std::span(buffer_).subspan(begin_ + framing_.header_size,
						     size - framing_.header_size);
	begin_ += size;
	consumed_ += size;
	while (!carried_.empty() && carried_.front().last_byte < consumed_) {
		std::ranges::move(carried_.front().fds, std::back_inserter(message.fds));
		carried_.erase(carried_.begin());
	}
	return message;
}

} // namespace weft::pci
