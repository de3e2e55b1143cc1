// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/trunk/connection.hpp"

#include <cerrno>
#include <exception>
#include <system_error>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <fmt/format.h>

namespace weft::trunk
{

namespace
{

// Number of reads and writes before the loop runs other tasks.
constexpr unsigned kSlice = 8;
// Records are created until this number of bytes waits for the socket.
constexpr std::size_t kEnoughToSend = 64 << 10;

std::string text_of_error(int error)
{
	return std::generic_category().message(error);
}

} // namespace

Connection::Connection(Loop &loop, FileDescriptor socket, const Address &peer, Kind kind, Role role,
		       const std::string &name, const Key &key, Handlers handlers)
    : loop_(loop), socket_(std::move(socket)), peer_(peer.text()), network_(peer.network()),
      key_(key), handlers_(std::move(handlers)), handshake_(kind, role, name, key_),
      last_received_(loop.now()), last_sent_(loop.now()), timer_(loop, [this] { tick(); }),
      watch_(loop, socket_.get(), static_cast<Watch::Ready>(Watch::kReadable | Watch::kWritable),
	     [this](unsigned what) { ready(what); })
{
	// Packets must not wait for more data. This fails for Unix sockets, which tests use.
	const int on = 1;
	::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	append(handshake_.hello());
	timer_.arm(kHandshakeTime);
}

void Connection::ready(unsigned what)
{
	if ((what & Watch::kReadable) != 0 && !read())
		return;
	send();
}

void Connection::resume()
{
	if (paused_ && !read())
		return;
	send();
}

bool Connection::take_frames()
{
	while (const auto frame = reader_.next()) {
		if (!take(*frame))
			return false;
		paused_ = authenticated_ && handlers_.full && handlers_.full();
		if (paused_)
			return true;
	}
	if (reader_.wrong() == Reason::protocol)
		return close("a malformed frame", Reason::protocol);
	if (reader_.wrong() != Reason::none)
		return close(std::string(text_of(reader_.wrong())), reader_.wrong());
	return true;
}

bool Connection::read()
{
	if (paused_) {
		paused_ = handlers_.full();
		if (!paused_ && !take_frames())
			return false;
		if (paused_)
			return true;
	}
	for (unsigned i = 0; i < kSlice; i++) {
		const auto room = reader_.room();
		const auto got = ::recv(socket_.get(), room.data(), room.size(), MSG_DONTWAIT);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return true;
		// The connection is still being established.
		if (got < 0 && errno == ENOTCONN)
			return true;
		if (got < 0)
			return close(text_of_error(errno), Reason::none);
		if (got == 0)
			return close(!authenticated_ ? "the peer closed the connection in the "
						       "handshake"
				     : reader_.partial()
					     ? "the peer closed the connection within a "
					       "record"
					     : "the peer closed the connection",
				     Reason::none);
		last_received_ = loop_.now();
		const bool partial = static_cast<std::size_t>(got) < room.size();
		reader_.added(static_cast<std::size_t>(got));
		if (!take_frames())
			return false;
		if (paused_ || partial)
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
		return close(fmt::format("the peer reports: {}", text_of(*reason)), Reason::none);
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
	if (progress == Handshake::Progress::refused)
		return close(handshake_.why(), handshake_.reason());
	// Check before the answer is sent, so that a listener proves nothing to a client that it
	// refuses.
	const bool done = progress == Handshake::Progress::done;
	if (done)
		if (const Reason refusal = handlers_.authenticated(); refusal != Reason::none)
			return close(std::string(text_of(refusal)), refusal);
	for (const Buffer &answer : answers)
		append(answer);
	if (done) {
		authenticated_ = true;
		try {
			sealer_.emplace(handshake_.session_keys().sending);
			reader_.decrypt(handshake_.session_keys().receiving);
		} catch (const std::exception &reason) {
			// For example, the host's configuration of OpenSSL forbids the cipher.
			return close(reason.what(), Reason::none);
		}
		timer_.arm(kAlivePeriod);
	}
	return true;
}

void Connection::append(const Buffer &frame)
{
	if (sealer_) {
		std::deque<Buffer> one{frame};
		sealer_->seal(one, wire_);
	} else {
		wire_.insert(wire_.end(), frame.begin(), frame.end());
	}
}

void Connection::send()
{
	for (unsigned i = 0; i < kSlice; i++) {
		if (authenticated_ && unsent() < kMostUnsent)
			out_bytes_ += handlers_.fill(out_, kMostUnsent - unsent());
		if (unsent() == 0)
			return want(false);
		if (!flush())
			return;
		if (unsent() != 0)
			break;
	}
	want(true);
}

void Connection::want(bool writable)
{
	watch_.want((paused_ ? Watch::kNothing : Watch::kReadable) |
		    (writable ? Watch::kWritable : Watch::kNothing));
}

bool Connection::flush()
{
	if (wire_sent_ == wire_.size()) {
		wire_.clear();
		wire_sent_ = 0;
	}
	while (!out_.empty() && wire_.size() < kEnoughToSend)
		out_bytes_ -= sealer_->seal(out_, wire_);
	const auto sent = ::send(socket_.get(), wire_.data() + wire_sent_,
				 wire_.size() - wire_sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (sent < 0) {
		if (errno == EAGAIN || errno == EINTR || errno == ENOTCONN)
			return true;
		return close(text_of_error(errno), Reason::none);
	}
	sent_lately_ = true;
	wire_sent_ += static_cast<std::size_t>(sent);
	return true;
}

void Connection::tick()
{
	if (!authenticated_) {
		close("no handshake in time", Reason::silence);
		return;
	}
	// The peer is not the reason why nothing is read.
	if (paused_)
		last_received_ = loop_.now();
	if (loop_.now() - last_received_ >= kSilenceTime) {
		close(std::string(text_of(Reason::silence)), Reason::silence);
		return;
	}
	const bool sent = std::exchange(sent_lately_, false);
	if (sent || unsent() == 0)
		last_sent_ = loop_.now();
	if (loop_.now() - last_sent_ >= kSilenceTime) {
		close("the peer reads nothing", Reason::stalled);
		return;
	}
	timer_.arm(kAlivePeriod);
	if (!sent && unsent() == 0)
		append(make_frame(FrameType::alive));
	send();
}

void Connection::say_goodbye(Reason reason) noexcept
{
	try {
		append(make_frame(FrameType::bye, ByeBody{reason, {}}));
		// The reason follows a record that was partly sent.
		static_cast<void>(::send(socket_.get(), wire_.data() + wire_sent_,
					 wire_.size() - wire_sent_, MSG_NOSIGNAL | MSG_DONTWAIT));
	} catch (const std::exception &) {
		// For example, there is not enough memory. In this case, the peer only sees that
		// the connection is closed.
	}
}

bool Connection::close(const std::string &why, Reason reason)
{
	if (reason != Reason::none)
		say_goodbye(reason);
	timer_.cancel();
	watch_.want(Watch::kNothing);
	// This must be the last call, because it destroys the connection.
	handlers_.closed(why, reason == Reason::protocol || reason == Reason::record);
	return false;
}

} // namespace weft::trunk
