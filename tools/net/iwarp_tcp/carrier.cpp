// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/iwarp_tcp/carrier.hpp"

#include <algorithm>
#include <utility>

namespace weft::iwarp
{

namespace
{

// Length field and CRC of an FPDU. The total is padded to a multiple of four.
constexpr std::size_t kFpduOverhead = 6;
// Minimum that a stream supports. If a TCP segment is smaller, an FPDU spans several segments.
constexpr std::size_t kLeastUlpdu = 64;

} // namespace

Carrier::Carrier(Loop &loop, const StreamConfig &config, Host &owner, std::function<void()> over)
    : config_(config), owner_(&owner), notify_closed_(std::move(over)),
      timer_(loop, [this] { time_is_over(); }), wakeup_(loop, [this] { run(); })
{
}

Carrier::~Carrier()
{
	if (!connection_ || over_)
		return;
	connection_->set_user(nullptr);
	connection_->abort();
}

bool Carrier::connect(tcp::Stack &stack, const tcp::Endpoint &remote)
{
	config_.initiator = true;
	connection_ = stack.connect(remote, *this);
	if (!connection_)
		return false;
	timer_.arm(kConnecting);
	return true;
}

void Carrier::adopt(tcp::ConnectionPtr connection)
{
	config_.initiator = false;
	connection_ = std::move(connection);
	connection_->set_user(this);
	begin();
}

// Creates the stream, because the maximum segment size is known now.
void Carrier::begin()
{
	const std::size_t mss = connection_->mss();
	config_.most_ulpdu = std::max(kLeastUlpdu, mss - mss % 4 - kFpduOverhead);
	stream_.emplace(config_, static_cast<Host &>(*this));
	timer_.arm(kStarting);
	pump();
}

void Carrier::connected()
{
	begin();
}

void Carrier::accept(const Bytes &private_data, std::size_t ird, std::size_t ord)
{
	if (!stream_)
		return;
	stream_->set_reads(ird, ord);
	stream_->accept(private_data);
	wakeup_.signal();
}

void Carrier::reject(const Bytes &private_data)
{
	if (!stream_)
		return;
	stream_->reject(private_data);
	wakeup_.signal();
}

void Carrier::post(Request request)
{
	if (!stream_ || aborting_)
		return;
	stream_->post(std::move(request));
	wakeup_.signal();
}

void Carrier::close()
{
	closing_ = true;
	timer_.arm(kClosing);
	wakeup_.signal();
}

void Carrier::abort()
{
	aborting_ = true;
	wakeup_.signal();
}

void Carrier::run()
{
	if (over_ || !connection_)
		return;
	if (aborting_)
		connection_->abort();
	else
		pump();
}

void Carrier::pump()
{
	if (!stream_ || over_ || aborting_)
		return;
	// Limit the time in which the rest of an ended stream's output must be sent.
	if (stream_->ended() && !timer_.armed())
		timer_.arm(kLingering);
	for (;;) {
		if (pending_.empty()) {
			pending_.resize(connection_->mss());
			pending_.resize(stream_->take(pending_));
			// The owner may have aborted when it was notified of a completion.
			if (aborting_)
				return;
		}
		if (pending_.empty())
			break;
		if (!connection_->write(pending_))
			return;
		pending_.clear();
		if (closing_ && !closed_)
			timer_.arm(kClosing);
	}
	if (closed_ || !(stream_->finished() || (closing_ && stream_->quiet())))
		return;
	closed_ = true;
	timer_.arm(stream_->ended() ? kLingering : kClosing);
	connection_->close();
}

void Carrier::received(tcp::View bytes)
{
	if (aborting_)
		return;
	stream_->feed(bytes);
	pump();
}

// Closes the stream. RDMA streams cannot be half-closed, so outstanding requests are lost.
void Carrier::peer_closed()
{
	stream_->closed(true);
	pump();
}

void Carrier::ended(tcp::End how)
{
	if (!tcp_end_)
		tcp_end_ = how;
	over_ = true;
	timer_.cancel();
	if (stream_)
		stream_->closed(false);
	else if (owner_)
		std::exchange(owner_, nullptr)->ended({End::Kind::lost, errors::kConnectionLost});
	notify_closed_();
}

// Handles the expiry of a time limit: the peer has not answered, or has not closed the connection,
// in time.
void Carrier::time_is_over()
{
	const bool started = closing_ || closed_;
	tcp_end_ = started ? tcp::End::aborted : tcp::End::timed_out;
	connection_->abort();
}

void Carrier::requested(const StartFrame &request)
{
	timer_.cancel();
	if (owner_)
		owner_->requested(request);
}

void Carrier::established(const StartFrame &reply)
{
	timer_.cancel();
	if (owner_)
		owner_->established(reply);
}

void Carrier::refused(const StartFrame &reply)
{
	if (owner_)
		owner_->refused(reply);
}

Access Carrier::place(Stag stag, std::uint64_t offset, View payload)
{
	return owner_ ? owner_->place(stag, offset, payload) : Access::refused;
}

Access Carrier::fetch(Stag stag, std::uint64_t offset, std::span<std::uint8_t> into)
{
	return owner_ ? owner_->fetch(stag, offset, into) : Access::refused;
}

Access Carrier::invalidate(Stag stag)
{
	return owner_ ? owner_->invalidate(stag) : Access::refused;
}

Access Carrier::place_response(Stag stag, std::uint64_t offset, View payload)
{
	return owner_ ? owner_->place_response(stag, offset, payload) : Access::refused;
}

std::optional<std::uint64_t> Carrier::next_receive()
{
	return owner_ ? owner_->next_receive() : std::nullopt;
}

bool Carrier::place_message(std::uint64_t offset, View payload)
{
	return owner_ && owner_->place_message(offset, payload);
}

void Carrier::received(std::uint64_t length, bool solicited, std::optional<Stag> invalidated)
{
	if (owner_)
		owner_->received(length, solicited, invalidated);
}

void Carrier::completed(std::uint64_t id)
{
	if (owner_)
		owner_->completed(id);
}

void Carrier::ended(const End &end)
{
	if (Host *const owner = std::exchange(owner_, nullptr))
		owner->ended(end);
}

} // namespace weft::iwarp
