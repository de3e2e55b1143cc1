// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/trunk/connection.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <fmt/format.h>

namespace weft::trunk
{

namespace
{

// Reads and writes before the loop does something else.
constexpr unsigned kSlice = 8;
constexpr std::size_t kMostPieces = 64;

Nonce make_nonce(const Loop &loop)
{
	Nonce nonce;
	for (std::size_t at = 0; at < nonce.size(); at += sizeof(std::uint64_t)) {
		const std::uint64_t word = loop.random();
		std::memcpy(nonce.data() + at, &word, sizeof(word));
	}
	return nonce;
}

std::string text_of_error(int error)
{
	return std::generic_category().message(error);
}

} // namespace

Connection::Connection(Loop &loop, FileDescriptor socket, std::string peer, Role role,
		       const std::string &name, const Key &key, Handlers handlers)
    : loop_(loop), socket_(std::move(socket)), peer_(std::move(peer)), key_(key),
      handlers_(std::move(handlers)), handshake_(role, name, key_, make_nonce(loop)),
      last_received_(loop.now()), last_sent_(loop.now()), timer_(loop, [this] { tick(); }),
      watch_(loop, socket_.get(), static_cast<Watch::Ready>(Watch::kReadable | Watch::kWritable),
	     [this](unsigned what) { ready(what); })
{
	// Packets must not wait for more data. This fails for Unix sockets, which tests use.
	const int on = 1;
	::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	out_.push_back(handshake_.hello());
	unsent_ = out_.back().size();
	timer_.arm(kHandshakeTime);
}

void Connection::ready(unsigned what)
{
	if ((what & Watch::kReadable) != 0 && !read())
		return;
	send();
}

bool Connection::read()
{
	for (unsigned i = 0; i < kSlice; i++) {
		const auto room = reader_.room();
		const auto got = ::recv(socket_.get(), room.data(), room.size(), MSG_DONTWAIT);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return true;
		// It is still connecting.
		if (got < 0 && errno == ENOTCONN)
			return true;
		if (got < 0)
			return close(text_of_error(errno), Reason::none);
		if (got == 0)
			return close(authenticated_ ? "the peer closed the connection"
						    : "the peer closed the connection in the "
						      "handshake",
				     Reason::none);
		last_received_ = loop_.now();
		const bool partial = static_cast<std::size_t>(got) < room.size();
		reader_.added(static_cast<std::size_t>(got));
		while (const auto frame = reader_.next())
			if (!take(*frame))
				return false;
		if (reader_.malformed())
			return close("a malformed frame", Reason::protocol);
		if (partial)
			return true;
	}
	return true;
}

bool Connection::take(const Frame &frame)
{
	if (frame.type == FrameType::bye) {
		const auto reason = read_bye(frame.body);
		if (!reason)
			return close("a malformed goodbye", Reason::protocol);
		return close(fmt::format("the peer says: {}", text_of(*reason)), Reason::none);
	}
	if (!authenticated_)
		return greet(frame);
	if (const char *wrong = handlers_.frame(frame))
		return close(wrong, Reason::protocol);
	return true;
}

bool Connection::greet(const Frame &frame)
{
	std::vector<Buffer> answers;
	const auto progress = handshake_.take(frame, answers);
	for (Buffer &answer : answers) {
		unsent_ += answer.size();
		out_.push_back(std::move(answer));
	}
	switch (progress) {
	case Handshake::Progress::goes_on:
		break;
	case Handshake::Progress::refused:
		return close(std::string(text_of(handshake_.reason())), handshake_.reason());
	case Handshake::Progress::done:
		if (const Reason refusal = handlers_.authenticated(); refusal != Reason::none)
			return close(std::string(text_of(refusal)), refusal);
		authenticated_ = true;
		reader_.admit(kMostBody);
		timer_.arm(kAlivePeriod);
		break;
	}
	return true;
}

void Connection::send()
{
	for (unsigned i = 0; i < kSlice; i++) {
		if (authenticated_ && unsent_ < kMostUnsent)
			unsent_ += handlers_.fill(out_, kMostUnsent - unsent_);
		if (unsent_ == 0)
			return watch_.want(Watch::kReadable);
		if (!flush())
			return;
		if (unsent_ != 0)
			break;
	}
	watch_.want(Watch::kReadable | Watch::kWritable);
}

bool Connection::flush()
{
	std::array<iovec, kMostPieces> pieces{};
	std::size_t count = 0;
	for (Buffer &frame : out_) {
		const std::size_t skipped = count == 0 ? first_sent_ : 0;
		pieces[count++] = {frame.data() + skipped, frame.size() - skipped};
		if (count == pieces.size())
			break;
	}
	msghdr message{};
	message.msg_iov = pieces.data();
	message.msg_iovlen = count;
	const auto sent = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (sent < 0) {
		if (errno == EAGAIN || errno == EINTR || errno == ENOTCONN)
			return true;
		return close(text_of_error(errno), Reason::none);
	}
	sent_lately_ = true;
	unsent_ -= static_cast<std::size_t>(sent);
	std::size_t left = static_cast<std::size_t>(sent) + first_sent_;
	while (!out_.empty() && left >= out_.front().size()) {
		left -= out_.front().size();
		out_.pop_front();
	}
	first_sent_ = left;
	return true;
}

void Connection::tick()
{
	if (!authenticated_) {
		close("no handshake in time", Reason::silence);
		return;
	}
	if (loop_.now() - last_received_ >= kSilenceTime) {
		close(std::string(text_of(Reason::silence)), Reason::silence);
		return;
	}
	const bool sent = std::exchange(sent_lately_, false);
	if (sent || unsent_ == 0)
		last_sent_ = loop_.now();
	if (loop_.now() - last_sent_ >= kSilenceTime) {
		close("the peer reads nothing", Reason::stalled);
		return;
	}
	timer_.arm(kAlivePeriod);
	if (!sent && unsent_ == 0) {
		out_.push_back(make_frame(FrameType::alive));
		unsent_ += out_.back().size();
	}
	send();
}

void Connection::say_goodbye(Reason reason) noexcept
{
	// In the middle of a frame the peer would take it for a part of that.
	if (first_sent_ != 0)
		return;
	try {
		const Buffer frame = make_frame(FrameType::bye, ByeBody{reason, {}});
		static_cast<void>(::send(socket_.get(), frame.data(), frame.size(),
					 MSG_NOSIGNAL | MSG_DONTWAIT));
	} catch (const std::bad_alloc &) {
		// The peer only sees that the connection is closed.
	}
}

bool Connection::close(const std::string &why, Reason reason)
{
	if (reason != Reason::none)
		say_goodbye(reason);
	timer_.cancel();
	watch_.want(Watch::kNothing);
	// This comes last, because it destroys the connection.
	handlers_.closed(why, reason == Reason::protocol);
	return false;
}

} // namespace weft::trunk
