// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "virtual_time/round_member.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <poll.h>
#include <sys/socket.h>

#include "base/unix_listener.hpp"

namespace weft::virtual_time
{

namespace
{

// The server may start later than the place.
FileDescriptor connect(const std::filesystem::path &socket)
{
	FileDescriptor connected;
	std::string why;
	Loop real_time("connect", Loop::Mode::manual);
	const auto attempt = [&] {
		try {
			connected = connect_unix(socket);
			return true;
		} catch (const std::system_error &error) {
			if (error.code() != std::errc::no_such_file_or_directory &&
			    error.code() != std::errc::connection_refused)
				throw;
			why = error.what();
			return false;
		}
	};
	if (!real_time.run_until(attempt, RoundMember::kConnectTime))
		throw std::runtime_error("the weftd of the lab's first place does not run: " + why);
	return connected;
}

Clock::time_point point(std::uint64_t time)
{
	return time >= kNoTime
		       ? Clock::time_point::max()
		       : SharedTime::at(std::chrono::nanoseconds(static_cast<std::int64_t>(time)));
}

} // namespace

RoundMember::RoundMember(Loop &loop, SharedTime &time, std::uint16_t place, std::uint64_t lab,
			 const std::filesystem::path &socket, Handlers handlers)
    : time_(time), handlers_(std::move(handlers)), socket_(connect(socket))
{
	RoundBuffer hello;
	append_hello(hello, place, lab);
	flush(std::move(hello));
	watch_.emplace(loop, socket_.get(), Watch::kReadable, [this](unsigned) { read(); });
	time_.set_round(this);
}

RoundMember::~RoundMember()
{
	time_.set_round(nullptr);
}

std::uint64_t RoundMember::now() const
{
	return static_cast<std::uint64_t>(time_.passed().count());
}

void RoundMember::send(std::uint32_t trunk, std::chrono::nanoseconds delay,
		       std::span<const std::byte> frame)
{
	leaving_.push_back({trunk,
			    now() + static_cast<std::uint64_t>(delay.count()),
			    numbers_[trunk]++,
			    {frame.begin(), frame.end()}});
}

void RoundMember::end(const RoundEnd &end)
{
	if (std::exchange(ended_, true))
		return;
	RoundBuffer frames;
	append_end(frames, end);
	flush(std::move(frames));
}

Clock::time_point RoundMember::limit() const
{
	return point(limit_);
}

Clock::time_point RoundMember::first_arrival() const
{
	return arriving_.empty() ? Clock::time_point::max()
				 : point(std::get<0>(arriving_.begin()->first));
}

void RoundMember::deliver()
{
	while (!ended_ && !arriving_.empty() && first_arrival() <= time_.now()) {
		const auto first = arriving_.extract(arriving_.begin());
		const std::uint32_t trunk = std::get<1>(first.key());
		if (const char *wrong = handlers_.arrive(trunk, first.mapped()))
			fail("trunk " + std::to_string(trunk) + " delivers " + wrong);
	}
}

// Called repeatedly while the clock waits for the next round.
void RoundMember::complete(Clock::time_point next)
{
	if (ended_ || std::exchange(reported_, true))
		return;
	RoundBuffer frames;
	for (RoundPacket &packet : leaving_) {
		// A request from outside may have caused it while the clock waited, that is, before
		// this round.
		packet.arrival = std::max(packet.arrival, limit_);
		append_packet(frames, packet);
	}
	leaving_.clear();
	const auto passed = next - SharedTime::at({});
	append_report(frames, round_,
		      next == Clock::time_point::max()
			      ? kNoTime
			      : std::min(static_cast<std::uint64_t>(passed.count()), kNoTime),
		      handlers_.finished());
	flush(std::move(frames));
}

void RoundMember::flush(RoundBuffer frames)
{
	std::size_t sent = 0;
	while (sent < frames.size()) {
		const auto count = ::send(socket_.get(), frames.data() + sent, frames.size() - sent,
					  MSG_NOSIGNAL);
		if (count >= 0) {
			sent += static_cast<std::size_t>(count);
		} else if (errno == EAGAIN) {
			pollfd writable{socket_.get(), POLLOUT, 0};
			::poll(&writable, 1, -1);
		} else if (errno != EINTR) {
			return; // read() notices that the server has disconnected
		}
	}
}

void RoundMember::read()
{
	std::array<std::byte, 64 << 10> input;
	const auto got = ::recv(socket_.get(), input.data(), input.size(), MSG_DONTWAIT);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		watch_->want(Watch::kNothing);
		return finish({true, "the server of the rounds has disconnected at " +
					     seconds_text(now()) + " s"});
	}
	reader_.add(std::span(input).first(static_cast<std::size_t>(got)));
	while (const auto frame = reader_.next()) {
		if (ended_)
			return;
		if (const char *wrong = take(*frame))
			return fail(std::string("the server of the rounds sends ") + wrong);
	}
	if (reader_.malformed())
		fail("the server of the rounds sends a malformed frame");
}

const char *RoundMember::take(const RoundFrame &frame)
{
	if (frame.type == RoundFrameType::end) {
		const auto end = read_end(frame.body);
		if (!end)
			return "a malformed end";
		finish(*end);
		return nullptr;
	}
	if (!reported_)
		return "a frame before the report";
	if (frame.type == RoundFrameType::packet) {
		auto packet = read_round_packet(frame.body);
		if (!packet)
			return "a malformed packet";
		if (packet->arrival < limit_)
			return "a packet that arrives in the past";
		const bool added =
			arriving_
				.emplace(Order{packet->arrival, packet->trunk, packet->number},
					 std::move(packet->frame))
				.second;
		return added ? nullptr : "a packet twice";
	}
	const auto grant =
		frame.type == RoundFrameType::grant ? read_grant(frame.body) : std::nullopt;
	if (!grant)
		return "a malformed or unexpected frame";
	if (grant->round != round_ + 1 || grant->limit <= limit_)
		return "a round that does not follow the last one";
	round_ = grant->round;
	limit_ = grant->limit;
	reported_ = false;
	return nullptr;
}

void RoundMember::fail(const std::string &reason)
{
	if (ended_)
		return;
	const RoundEnd failure{true, reason};
	end(failure);
	handlers_.ended(failure);
}

void RoundMember::finish(const RoundEnd &end)
{
	if (!std::exchange(ended_, true))
		handlers_.ended(end);
}

} // namespace weft::virtual_time
