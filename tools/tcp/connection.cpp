// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "tcp/connection.hpp"

#include <algorithm>
#include <utility>

namespace weft::tcp
{

namespace
{

// Of numbers that go round.
bool before(std::uint32_t a, std::uint32_t b)
{
	return static_cast<std::int32_t>(a - b) < 0;
}
bool within(std::uint32_t value, std::uint32_t first, std::uint32_t length)
{
	return value - first < length;
}

// What a peer that says nothing of it receives (RFC 9293 section 3.7.1); what is asked for below 64
// is no segment.
constexpr std::uint16_t kDefaultMss = 536;
constexpr std::uint16_t kLeastMss = 64;

std::uint32_t mss_with(const Segment &syn, std::uint16_t own)
{
	return std::min(own, std::max(syn.mss.value_or(kDefaultMss), kLeastMss));
}

} // namespace

Connection::Connection(Loop &loop, Setup setup, const Segment *syn)
    : loop_(loop), setup_(std::move(setup)), mss_(syn ? mss_with(*syn, setup_.mss) : setup_.mss),
      first_(setup_.first_sequence), next_(first_), highest_(first_), congestion_(mss_),
      recover_(first_), timer_(loop, [this] { timer_fired(); }),
      ack_timer_(loop, [this] { acknowledge_now(); })
{
	if (syn) {
		expected_ = syn->sequence + 1;
		peer_window_ = syn->window;
		window_sequence_ = syn->sequence;
	}
	enter(syn ? State::SynReceived : State::SynSent);
	send_synchronise();
}

// The only place where the state changes.
void Connection::enter(State state)
{
	state_ = state;
	switch (state) {
	case State::TimeWait:
		ack_timer_.cancel();
		timer_.arm(kTimeWait);
		break;
	case State::Closed:
		timer_.cancel();
		ack_timer_.cancel();
		written_.clear();
		early_.clear();
		queued_ = 0;
		break;
	default:
		break;
	}
}

void Connection::end(End how)
{
	if (state_ == State::Closed)
		return;
	enter(State::Closed);
	if (User *const user = std::exchange(user_, nullptr))
		user->ended(how);
	setup_.over();
}

void Connection::fail(End how)
{
	end(how);
}

void Connection::abort()
{
	if (state_ != State::Closed && state_ != State::SynSent && state_ != State::TimeWait)
		send(kRst | kAck, next_);
	end(End::Aborted);
}

void Connection::close()
{
	switch (state_) {
	case State::SynSent:
	case State::SynReceived:
		return abort();
	case State::Established:
		enter(State::FinWait1);
		break;
	case State::CloseWait:
		enter(State::LastAck);
		break;
	default:
		return;
	}
	closing_ = true;
	send_available();
}

bool Connection::write(View bytes)
{
	if (!may_send())
		return false;
	if (bytes.size() > room()) {
		blocked_ = true;
		return false;
	}
	for (std::size_t done = 0; done < bytes.size(); done += mss_) {
		const View part =
			bytes.subspan(done, std::min<std::size_t>(mss_, bytes.size() - done));
		written_.emplace_back(part.begin(), part.end());
	}
	queued_ += bytes.size();
	send_available();
	return true;
}

void Connection::send(std::uint8_t flags, std::uint32_t sequence, View payload)
{
	Segment segment;
	segment.source = setup_.pair.local.port;
	segment.destination = setup_.pair.remote.port;
	segment.sequence = sequence;
	segment.flags = flags;
	segment.window = kWindow;
	segment.payload = payload;
	if (flags & kAck)
		segment.acknowledgement = expected_;
	if (flags & kSyn)
		segment.mss = setup_.mss;
	if (flags & kAck) {
		unacknowledged_ = 0;
		ack_timer_.cancel();
	}
	setup_.send(segment);
}

void Connection::acknowledge_now()
{
	send(kAck, next_);
}

void Connection::send_synchronise()
{
	send(state_ == State::SynSent ? +kSyn : kSyn | kAck, setup_.first_sequence);
	next_ = highest_ = setup_.first_sequence + 1;
	if (!tries_)
		timed_.emplace(next_, loop_.now());
	timer_.arm(round_trip_.timeout());
}

// The rest of the segment that holds @sequence.
View Connection::written_at(std::uint32_t sequence) const
{
	std::size_t offset = sequence - first_;
	for (const Bytes &each : written_) {
		if (offset < each.size())
			return View(each).subspan(offset);
		offset -= each.size();
	}
	return {};
}

void Connection::send_available()
{
	if (state_ == State::SynSent || state_ == State::SynReceived || state_ == State::Closed ||
	    state_ == State::TimeWait)
		return;
	const std::uint32_t allowed = std::min(congestion_.window(), peer_window_);
	for (View rest; !(rest = written_at(next_)).empty();) {
		if (in_flight() >= allowed)
			break;
		// A segment is not cut while others may make room for it.
		const auto size = std::min<std::size_t>(rest.size(), allowed - in_flight());
		if (size < rest.size() && in_flight())
			break;
		if (!timed_ && next_ == highest_)
			timed_.emplace(next_ + static_cast<std::uint32_t>(size), loop_.now());
		send(kAck | kPsh, next_, rest.first(size));
		next_ += static_cast<std::uint32_t>(size);
		if (before(highest_, next_))
			highest_ = next_;
	}
	if (closing_ && in_flight() == queued_) {
		send(kAck | kFin, next_++);
		if (before(highest_, next_))
			highest_ = next_;
	}
	if (!timer_.armed())
		arm();
}

// Again from the oldest, as one segment.
void Connection::resend_first()
{
	timed_.reset();
	if (const View rest = written_at(first_); !rest.empty())
		send(kAck | kPsh, first_,
		     rest.first(std::min<std::size_t>(rest.size(), std::max(peer_window_, 1u))));
	else if (closing_)
		send(kAck | kFin, first_);
}

void Connection::arm()
{
	if (in_flight() || queued_ ||
	    (closing_ && state_ != State::FinWait2 && state_ != State::TimeWait))
		timer_.arm(round_trip_.timeout());
	else
		timer_.cancel();
}

void Connection::timer_fired()
{
	if (state_ == State::TimeWait)
		return end(End::Closed);
	// A peer whose window is shut and who says so is alive.
	const bool probing =
		!peer_window_ && state_ != State::SynSent && state_ != State::SynReceived;
	if (++tries_ > kMostTries && !probing)
		return end(End::TimedOut);
	round_trip_.back_off();
	timed_.reset();
	if (state_ == State::SynSent || state_ == State::SynReceived)
		return send_synchronise();
	if (!probing)
		congestion_.timed_out(in_flight());
	// All of it is sent again, as far as the window goes. One byte probes a window that is
	// shut.
	next_ = first_;
	if (probing) {
		resend_first();
		if (before(highest_, ++next_))
			highest_ = next_;
		return timer_.arm(round_trip_.timeout());
	}
	timer_.cancel();
	send_available();
}

void Connection::take(const Segment &segment)
{
	if (state_ == State::Closed)
		return;
	if (state_ == State::SynSent)
		return take_syn_sent(segment);
	if (!acceptable(segment)) {
		if (!(segment.flags & kRst))
			acknowledge_now();
		return;
	}
	// Only the number that is expected resets; another is asked about (RFC 5961 section 3), as
	// a SYN is (section 4).
	if (segment.flags & kRst) {
		if (segment.sequence == expected_)
			return end(End::Reset);
		return acknowledge_now();
	}
	if (segment.flags & kSyn)
		return acknowledge_now();
	if (!(segment.flags & kAck) || !take_acknowledgement(segment))
		return;
	take_data(segment);
	if (state_ != State::Closed)
		send_available();
}

void Connection::take_syn_sent(const Segment &segment)
{
	const bool acknowledges = segment.flags & kAck;
	if (acknowledges && segment.acknowledgement != next_)
		return;
	if (segment.flags & kRst)
		return acknowledges ? end(End::Reset) : void();
	// Who opens at the same time from the other side is not waited for.
	if (!(segment.flags & kSyn) || !acknowledges)
		return;
	expected_ = segment.sequence + 1;
	mss_ = mss_with(segment, setup_.mss);
	congestion_ = Congestion(mss_);
	peer_window_ = segment.window;
	window_sequence_ = segment.sequence;
	window_acknowledgement_ = segment.acknowledgement;
	acknowledged(segment.acknowledgement);
	enter(State::Established);
	acknowledge_now();
	if (user_)
		user_->connected();
	if (state_ != State::Closed)
		send_available();
}

// Whether a part of it is in the window.
bool Connection::acceptable(const Segment &segment) const
{
	const std::uint32_t length = segment.length();
	if (!length)
		return within(segment.sequence, expected_, kWindow);
	return within(segment.sequence, expected_, kWindow) ||
	       within(segment.sequence + length - 1, expected_, kWindow);
}

// False: there is nothing more to look at.
bool Connection::take_acknowledgement(const Segment &segment)
{
	const std::uint32_t upto = segment.acknowledgement;
	if (before(highest_, upto)) {
		acknowledge_now();
		return false;
	}
	if (state_ == State::SynReceived) {
		if (upto != next_) {
			send(kRst, upto);
			return false;
		}
		acknowledged(upto);
		enter(State::Established);
		// Who has it from now on is told by the same.
		setup_.established();
		if (user_)
			user_->connected();
		if (state_ == State::Closed)
			return false;
	}
	const std::uint32_t window = peer_window_;
	if (before(window_sequence_, segment.sequence) ||
	    (window_sequence_ == segment.sequence && !before(upto, window_acknowledgement_))) {
		peer_window_ = segment.window;
		window_sequence_ = segment.sequence;
		window_acknowledgement_ = upto;
	}
	if (before(first_, upto))
		acknowledged(upto);
	else if (upto == first_ && in_flight() && !segment.length() && peer_window_ == window &&
		 window)
		duplicate();
	return state_ != State::Closed;
}

void Connection::acknowledged(std::uint32_t upto)
{
	const std::uint32_t acked = upto - first_;
	std::size_t bytes = std::min<std::size_t>(acked, queued_);
	const bool fin = closing_ && acked > queued_;
	queued_ -= bytes;
	while (bytes) {
		Bytes &front = written_.front();
		const std::size_t part = std::min(bytes, front.size());
		if (part == front.size())
			written_.pop_front();
		else
			front.erase(front.begin(),
				    front.begin() + static_cast<std::ptrdiff_t>(part));
		bytes -= part;
	}
	first_ = upto;
	// What was to be sent again has arrived after all.
	if (before(next_, first_))
		next_ = first_;
	if (timed_ && !before(upto, timed_->first)) {
		round_trip_.sample(loop_.now() - timed_->second);
		timed_.reset();
	}
	tries_ = 0;
	if (!congestion_.recovering()) {
		congestion_.acknowledged(acked);
	} else if (!before(upto, recover_)) {
		congestion_.recovered(in_flight());
	} else {
		congestion_.partial(acked);
		resend_first();
	}
	timer_.cancel();
	arm();
	if (fin)
		finished_sending();
	if (std::exchange(blocked_, false) && user_ && may_send())
		user_->writable();
}

void Connection::duplicate()
{
	if (congestion_.duplicate(in_flight())) {
		recover_ = highest_;
		resend_first();
	}
}

// One's own FIN has arrived.
void Connection::finished_sending()
{
	closing_ = false;
	switch (state_) {
	case State::FinWait1:
		return enter(State::FinWait2);
	case State::Closing:
		return enter(State::TimeWait);
	case State::LastAck:
		return end(End::Closed);
	default:
		return;
	}
}

void Connection::take_data(const Segment &segment)
{
	const bool open = state_ == State::Established || state_ == State::FinWait1 ||
			  state_ == State::FinWait2;
	if (!segment.length())
		return;
	if (!open)
		return acknowledge_now();
	// What was there before is cut off by deliver(), what is behind the window here.
	const auto ahead = static_cast<std::int32_t>(segment.sequence - expected_);
	const std::uint64_t offset = received_ + static_cast<std::uint64_t>(std::int64_t{ahead});
	View bytes = segment.payload;
	if (ahead > 0)
		bytes = bytes.first(std::min<std::size_t>(
			bytes.size(), kWindow - static_cast<std::uint32_t>(ahead)));
	if ((segment.flags & kFin) && bytes.size() == segment.payload.size())
		fin_at_ = offset + bytes.size();
	const bool in_order = ahead <= 0;
	if (in_order)
		deliver(offset, bytes);
	else if (!bytes.empty() && early_.size() < kMostEarly)
		early_.try_emplace(offset, bytes.begin(), bytes.end());
	if (state_ == State::Closed)
		return;
	const bool filled = in_order && !early_.empty();
	deliver_early();
	if (state_ == State::Closed)
		return;
	if (fin_at_ && *fin_at_ == received_)
		return take_fin();
	// A gap is reported at once, so that the sender sees it; so is its end.
	if (!in_order || filled || ++unacknowledged_ >= 2)
		acknowledge_now();
	else if (unacknowledged_ && !ack_timer_.armed())
		ack_timer_.arm(kDelayedAck);
}

// @offset is at received_ or before it.
void Connection::deliver(std::uint64_t offset, View bytes)
{
	const std::uint64_t known = received_ - offset;
	if (known >= bytes.size())
		return;
	const View fresh = bytes.subspan(known);
	received_ += fresh.size();
	expected_ += static_cast<std::uint32_t>(fresh.size());
	if (user_)
		user_->received(fresh);
}

void Connection::deliver_early()
{
	while (!early_.empty() && early_.begin()->first <= received_) {
		const auto next = early_.extract(early_.begin());
		deliver(next.key(), next.mapped());
		if (state_ == State::Closed)
			return;
	}
}

void Connection::take_fin()
{
	fin_at_.reset();
	++expected_;
	acknowledge_now();
	switch (state_) {
	case State::Established:
		enter(State::CloseWait);
		break;
	case State::FinWait1:
		enter(State::Closing);
		break;
	case State::FinWait2:
		enter(State::TimeWait);
		break;
	default:
		break;
	}
	if (user_)
		user_->peer_closed();
}

} // namespace weft::tcp
