// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Notifies a guest of used buffers in a virtqueue by VHOST_USER_BACKEND_VRING_CALL messages on the
// socket or pipe that the guest has passed for requests of the server.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "base/notifier.hpp"
#include "base/file_descriptor.hpp"

namespace weft
{
class Environment;
}

namespace weft::vhost_user
{

class Channel
{
public:
	// Takes ownership of @fd. Returns nothing if the descriptor is not usable as a channel.
	// Throws std::system_error if the process lacks a resource. @environment outlives it.
	static std::optional<Channel> take(FileDescriptor fd, Environment &environment);

	// Notifies the guest of @queue. In virtual time, the guest has handled the call when this
	// returns; false means that it does not answer. In real time, this does not wait. If the
	// guest has not read its calls and there is no space for another, the unread ones notify
	// it.
	bool call(std::uint32_t queue) const;

private:
	// A channel on which the guest acknowledges calls.
	struct Answering {
		FileDescriptor socket;
		Environment *environment;
	};

	explicit Channel(std::variant<Notifier, Answering> target) : target_(std::move(target)) {}

	std::variant<Notifier, Answering> target_;
};

} // namespace weft::vhost_user
