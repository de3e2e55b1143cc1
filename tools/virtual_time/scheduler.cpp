// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "virtual_time/scheduler.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include "base/acceptor.hpp"
#include "base/environment.hpp"
#include "base/loop.hpp"
#include "virtual_time/member.hpp"
#include "virtual_time/shared_time.hpp"

namespace weft::virtual_time
{

namespace
{

std::uint64_t count(std::chrono::nanoseconds time)
{
	return static_cast<std::uint64_t>(time.count());
}

std::string text(std::chrono::nanoseconds time)
{
	const auto fraction = std::to_string(count(time % std::chrono::seconds(1)));
	return std::to_string(time / std::chrono::seconds(1)) + "." +
	       std::string(9 - fraction.size(), '0') + fraction;
}

} // namespace

class Scheduler::Impl final : private SharedTime::Outside
{
public:
	Impl(Loop &loop, SharedTime &time, std::vector<std::string> names,
	     const std::filesystem::path &socket, std::function<void(const std::string &)> ended,
	     AnswerLimits limits)
	    : loop_(loop), time_(time), names_(std::move(names)), ended_(std::move(ended)),
	      limits_(limits), members_(names_.size())
	{
		acceptor_.emplace(loop_, UnixListener(socket),
				  [this](FileDescriptor fd) { welcome(std::move(fd)); });
		time_.set_outside(this);
	}

	~Impl() { time_.set_outside(nullptr); }

	std::uint64_t time_slices() const { return time_slices_; }

	std::string awaited() const
	{
		std::string missing;
		for (std::size_t i = 0; i < members_.size(); ++i) {
			if (!members_[i])
				missing += (missing.empty() ? "" : ", ") + names_[i];
			else if (members_[i]->member.state() == Member::State::running)
				return names_[i] + ", whose time slice began at " +
				       // time does not advance meanwhile
				       text(time_.passed()) + " s";
		}
		return missing.empty() ? missing : missing + ", not yet on the time server";
	}

private:
	struct Peer {
		explicit Peer(FileDescriptor fd) : socket(std::move(fd)) {}

		const FileDescriptor socket;
		std::optional<Watch> watch; // destroyed before the socket is closed
		Member member;
		std::array<std::byte, sizeof(Message)> input;
		std::size_t filled = 0;
	};

	bool runs() const override
	{
		return std::ranges::any_of(members_, [](const auto &peer) {
			return peer && peer->member.state() == Member::State::running;
		});
	}

	std::optional<Clock::time_point> due() const override
	{
		if (std::ranges::any_of(members_, [](const auto &peer) { return !peer; }))
			return std::nullopt;
		const Peer *const first = next();
		return first ? SharedTime::at(std::chrono::nanoseconds(*first->member.due()))
			     : Clock::time_point::max();
	}

	void run() override
	{
		Peer *const first = next();
		++time_slices_;
		send(*first, first->member.run(now()));
	}

	// Waits for a member's answer. There are few members, and only the one that was called has
	// anything to send. The wait ends if that member sends more messages than an answer needs.
	// One limit covers the whole wait, because nothing else is done meanwhile.
	bool await_readable(int fd) override
	{
		const auto end = Environment::host().now() + limits_.time;
		unsigned messages = 0;
		while (!members_.empty()) {
			std::vector<pollfd> all{{fd, POLLIN, 0}};
			for (const auto &peer : members_)
				all.push_back({peer ? peer->socket.get() : -1, POLLIN, 0});
			const auto left = std::chrono::ceil<std::chrono::milliseconds>(
				end - Environment::host().now());
			if (left.count() <= 0)
				return false;
			const int ready =
				::poll(all.data(), all.size(), static_cast<int>(left.count()));
			if (ready < 0 && errno != EINTR)
				throw std::system_error(errno, std::generic_category(), "poll");
			if (ready <= 0)
				continue;
			// The member's last message may be an answer, even if it has disconnected.
			if (all.front().revents)
				return true;
			const auto asks =
				std::find_if(all.begin() + 1, all.end(),
					     [](const pollfd &each) { return each.revents; });
			Peer &peer = *members_[static_cast<std::size_t>(asks - all.begin()) - 1];
			if (++messages > limits_.messages)
				leave(peer, "sends many messages, but not the one that is awaited");
			else
				read(peer);
		}
		return false;
	}

	std::uint64_t now() const { return count(time_.passed()); }

	Peer *next() const
	{
		Peer *first = nullptr;
		for (const auto &peer : members_)
			if (peer->member.due() &&
			    (!first || *peer->member.due() < *first->member.due()))
				first = peer.get();
		return first;
	}

	void welcome(FileDescriptor fd)
	{
		if (unidentified_.size() >= kMostUnidentified)
			return;
		Peer &peer = *unidentified_.emplace_back(std::make_unique<Peer>(std::move(fd)));
		peer.watch.emplace(loop_, peer.socket.get(), Watch::kReadable,
				   [this, &peer](unsigned) { read(peer); });
	}

	// Reads one message, or the available part of it, so that a member that sends many messages
	// does not delay the others.
	void read(Peer &peer)
	{
		const auto rest = std::span(peer.input).subspan(peer.filled);
		const auto size = ::recv(peer.socket.get(), rest.data(), rest.size(), MSG_DONTWAIT);
		if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR))
			return leave(peer, "has left the time server");
		peer.filled += static_cast<std::size_t>(std::max<ssize_t>(size, 0));
		if (peer.filled < peer.input.size())
			return;
		Message message;
		std::memcpy(&message, peer.input.data(), sizeof(message));
		peer.filled = 0;
		const bool unidentified = peer.member.state() == Member::State::unidentified;
		const auto outcome =
			peer.member.take(message, now(), count(SharedTime::kDate) + now());
		if (outcome.trouble)
			return leave(peer, std::string("does not keep to the time server (") +
						   outcome.trouble + ")");
		if (outcome.answer)
			send(peer, *outcome.answer);
		if (unidentified)
			admit(peer);
	}

	// Disconnects an unidentified peer, or makes it a member.
	void admit(Peer &peer)
	{
		const auto at = std::ranges::find_if(
			unidentified_, [&peer](const auto &each) { return each.get() == &peer; });
		std::unique_ptr<Peer> taken = std::move(*at);
		unidentified_.erase(at);
		// a member number of 0 gives an index beyond all members
		const auto index = peer.member.number() - 1;
		if (index < members_.size() && !members_[index])
			members_[index] = std::move(taken);
		else if (peer.member.state() != Member::State::unidentified &&
			 logged_++ < kMostLogged)
			spdlog::warn("time server: refused a guest with the number "
				     "{} of {}, which {}",
				     peer.member.number(), members_.size(),
				     index < members_.size() ? "is already in use"
							     : "does not exist");
	}

	void send(Peer &peer, const Message &message)
	{
		// A member whose socket has no space for one message is not reading.
		if (::send(peer.socket.get(), &message, sizeof(message),
			   MSG_DONTWAIT | MSG_NOSIGNAL) != sizeof(message))
			leave(peer, "does not read the messages of the time server");
	}

	// Disconnects an unidentified peer; if the peer is a member, ends the time server.
	void leave(Peer &peer, const std::string &how)
	{
		if (std::erase_if(unidentified_,
				  [&peer](const auto &each) { return each.get() == &peer; }))
			return;
		const auto reason = names_[peer.member.number() - 1] + " " + how + " at " +
				    text(time_.passed()) + " s";
		time_.set_outside(nullptr);
		acceptor_.reset();
		unidentified_.clear();
		members_.clear();
		if (const auto ended = std::exchange(ended_, nullptr))
			ended(reason);
	}

	Loop &loop_;
	SharedTime &time_;
	const std::vector<std::string> names_;
	std::function<void(const std::string &)> ended_; // null after it was called
	const AnswerLimits limits_;
	std::optional<Acceptor> acceptor_;
	// indexed by number; null before the member has joined; empty after the end
	std::vector<std::unique_ptr<Peer>> members_;
	std::vector<std::unique_ptr<Peer>> unidentified_;
	std::uint64_t time_slices_ = 0;
	unsigned logged_ = 0;
};

Scheduler::Scheduler(Loop &loop, SharedTime &time, std::vector<std::string> names,
		     const std::filesystem::path &socket,
		     std::function<void(const std::string &reason)> ended, AnswerLimits limits)
    : impl_(std::make_unique<Impl>(loop, time, std::move(names), socket, std::move(ended), limits))
{
}

Scheduler::~Scheduler() = default;

std::string Scheduler::awaited() const
{
	return impl_->awaited();
}

std::uint64_t Scheduler::time_slices() const
{
	return impl_->time_slices();
}

} // namespace weft::virtual_time
