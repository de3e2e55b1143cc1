// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "bus/vhost-user/channel.hpp"

#include <span>
#include <utility>

#include <sys/socket.h>

#include "base/descriptor_kind.hpp"
#include "base/environment.hpp"
#include "bus/vhost-user/protocol.hpp"

namespace weft::vhost_user
{

namespace
{

struct Call {
	Header header;
	VringState state;
};
static_assert(sizeof(Call) == sizeof(Header) + sizeof(VringState));

struct Answer {
	Header header;
	Integer refused;
};
static_assert(sizeof(Answer) == sizeof(Header) + sizeof(Integer));

constexpr Call make_call(std::uint32_t queue, std::uint32_t flags)
{
	return {{static_cast<std::uint32_t>(BackendRequest::vring_call), kVersion | flags,
		 sizeof(VringState)},
		{queue, 0}};
}

} // namespace

std::optional<Channel> Channel::take(FileDescriptor fd, Environment &environment)
{
	if (environment.is_shared()) {
		if (kind_of(fd.get()) != DescriptorKind::socket)
			return std::nullopt;
		return Channel(Answering{std::move(fd), &environment});
	}
	auto notifier = Notifier::take(std::move(fd), Notifier::Kind::channel);
	if (!notifier)
		return std::nullopt;
	return Channel(std::move(*notifier));
}

bool Channel::call(std::uint32_t queue) const
{
	if (const auto *notifier = std::get_if<Notifier>(&target_)) {
		const Call call = make_call(queue, 0);
		notifier->ring(std::as_bytes(std::span(&call, 1)));
		return true;
	}
	const auto &[socket, environment] = std::get<Answering>(target_);
	const Call call = make_call(queue, kFlagNeedReply);
	Answer answer;
	return ::send(socket.get(), &call, sizeof(call), MSG_DONTWAIT | MSG_NOSIGNAL) ==
		       sizeof(call) &&
	       environment->await_readable(socket.get()) &&
	       ::recv(socket.get(), &answer, sizeof(answer), MSG_DONTWAIT) == sizeof(answer) &&
	       answer.header.request == call.header.request;
}

} // namespace weft::vhost_user
