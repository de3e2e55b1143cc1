// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "vfio-user/message_reader.hpp"

#include <algorithm>
#include <cstring>

namespace weft::vfio_user
{

namespace
{

// What a reader holds when nothing large is on its way.
constexpr std::size_t kUsualBuffer = 64 << 10;

// Descriptors that may wait for the rest of their message.
constexpr std::size_t kMaxCarried = 4 * kMaxMessageFds;

} // namespace

const char *MessageReader::check(const Header &header)
{
	if (header.size < sizeof(Header))
		return "a message shorter than its header";
	if (header.size > kMaxMessage)
		return "a message longer than the negotiated transfer size allows";
	if ((header.flags & kFlagTypeMask) == kFlagTypeReply)
		return "a reply to a request that was never made";
	if ((header.flags & kFlagTypeMask) != kFlagTypeCommand)
		return "a message of unknown type";
	return nullptr;
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
	std::size_t needed = sizeof(Header);
	if (end_ - begin_ >= sizeof(Header)) {
		Header header;
		std::memcpy(&header, buffer_.data() + begin_, sizeof(header));
		needed = std::clamp<std::size_t>(header.size, sizeof(Header), kMaxMessage);
	}
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
	if (failed() || end_ - begin_ < sizeof(Header))
		return std::nullopt;
	Message message{};
	std::memcpy(&message.header, buffer_.data() + begin_, sizeof(Header));
	reason_ = check(message.header);
	if (failed() || end_ - begin_ < message.header.size)
		return std::nullopt;
	message.payload = std::span(buffer_).subspan(begin_ + sizeof(Header),
						     message.header.size - sizeof(Header));
	begin_ += message.header.size;
	consumed_ += message.header.size;
	while (!carried_.empty() && carried_.front().last_byte < consumed_) {
		std::ranges::move(carried_.front().fds, std::back_inserter(message.fds));
		carried_.erase(carried_.begin());
	}
	return message;
}

} // namespace weft::vfio_user
