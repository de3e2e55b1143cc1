// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that the server waits for the acknowledgement of each notification that it sends to a guest
// in virtual time.
#include "bus/vhost-user/channel.hpp"

#include <array>
#include <cerrno>
#include <functional>
#include <optional>
#include <system_error>
#include <utility>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/environment.hpp"
#include "bus/vhost-user/protocol.hpp"

namespace weft::vhost_user
{
namespace
{

struct CallMessage {
	Header header;
	VringState state;
};

struct AnswerMessage {
	Header header;
	Integer refused;
};

// An environment in which the guest acts while the channel waits for it.
class Shared final : public Environment
{
public:
	Clock::time_point now() const override { return {}; }
	std::chrono::system_clock::time_point date() const override { return {}; }
	std::uint64_t random() override { return 0; }
	int wait(int, epoll_event *, int, Clock::time_point) override { return 0; }
	bool is_shared() const override { return true; }
	bool await_readable(int) override { return on_wait(); }

	std::function<bool()> on_wait;
};

class ChannelTest : public testing::Test
{
protected:
	ChannelTest()
	{
		std::array<int, 2> ends;
		if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()))
			throw std::system_error(errno, std::generic_category(), "socketpair");
		guest_ = FileDescriptor(ends[1]);
		channel_ = Channel::take(FileDescriptor(ends[0]), environment_);
	}

	bool take_call()
	{
		return ::recv(guest_.get(), &call_, sizeof(call_), MSG_DONTWAIT) == sizeof(call_);
	}
	bool answer(std::uint32_t request)
	{
		const AnswerMessage message{{request, kVersion | kFlagReply, sizeof(Integer)}, {0}};
		return ::send(guest_.get(), &message, sizeof(message), MSG_NOSIGNAL) ==
		       sizeof(message);
	}

	Shared environment_;
	FileDescriptor guest_;
	std::optional<Channel> channel_;
	CallMessage call_{};
};

// The channel requests an acknowledgement, and returns after it has arrived.
TEST_F(ChannelTest, VringCallWaitsForTheAcknowledgementOfTheFrontend)
{
	bool answered = false;
	environment_.on_wait = [&] {
		EXPECT_TRUE(take_call());
		EXPECT_EQ(call_.header.flags, kVersion | kFlagNeedReply);
		EXPECT_EQ(call_.state.index, 1u);
		return answered = answer(call_.header.request);
	};
	ASSERT_TRUE(channel_);
	EXPECT_TRUE(channel_->call(1));
	EXPECT_TRUE(answered);
	// No unread data is left for the next call.
	environment_.on_wait = [&] { return take_call(); };
	EXPECT_FALSE(channel_->call(1));
}

TEST_F(ChannelTest, VringCallFailsWithoutAMatchingAcknowledgement)
{
	ASSERT_TRUE(channel_);
	environment_.on_wait = [] { return false; };
	EXPECT_FALSE(channel_->call(0));
	environment_.on_wait = [&] { return answer(77); };
	EXPECT_FALSE(channel_->call(0));
	guest_.reset();
	environment_.on_wait = [] { return true; };
	EXPECT_FALSE(channel_->call(0));
}

// A pipe cannot carry an answer.
TEST_F(ChannelTest, PipeIsRefusedAsAChannelBecauseItCannotCarryAcknowledgements)
{
	std::array<int, 2> ends;
	ASSERT_EQ(::pipe(ends.data()), 0);
	const FileDescriptor reading(ends[0]);
	EXPECT_FALSE(Channel::take(FileDescriptor(ends[1]), environment_));
}

} // namespace
} // namespace weft::vhost_user
