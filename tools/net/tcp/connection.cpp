// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/tcp/connection.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace weft::tcp
{

namespace
{

// Comparisons of sequence numbers modulo 2^32.
bool before(std::uint32_t a, std::uint32_t b)
{
	return static_cast<std::int32_t>(a - b) < 0;
}
bool within(std::uint32_t value, std::uint32_t first, std::uint32_t length)
{
	return value - first < length;
}

// MSS of a peer that sends no option (RFC 9293 section 3.7.1), and the lower limit for one that a
// peer requests.
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
	enter(syn ? State::syn_received : State::syn_sent);
	send_synchronise();
}

// Changes the state, which is done nowhere else.
void Connection::enter(State state)
{
	state_ = state;
	switch (state) {
	case State::fin_wait2:
		timer_.arm(kFinWait);
		break;
	case State::time_wait:
		ack_timer_.cancel();
		timer_.arm(kTimeWait);
		break;
	case State::closed:
		timer_.cancel();
		ack_timer_.cancel();
		written_.clear();
		early_.clear();
		queued_ = early_bytes_ = 0;
		break;
	default:
		break;
	}
}

void Connection::end(End how)
{
	if (state_ == State::closed)
		return;
	enter(State::closed);
	User *const user = std::exchange(user_, nullptr);
	// Release the entry first, because the user may destroy everything in the call, including
	// this object.
	setup_.over();
	if (user)
		user->ended(how);
}

// Reports that both sides have closed. Only the port number is still reserved.
void Connection::report_closed()
{
	if (User *const user = std::exchange(user_, nullptr))
		user->ended(End::closed);
}

void Connection::fail(End how)
{
	end(how);
}

void Connection::abort()
{
	if (state_ != State::closed && state_ != State::syn_sent && state_ != State::time_wait)
		send(kRst | kAck, acceptable_sequence());
	end(End::aborted);
}

void Connection::close()
{
	switch (state_) {
	case State::syn_sent:
	case State::syn_received:
		return abort();
	case State::established:
		enter(State::fin_wait1);
		break;
	case State::close_wait:
		enter(State::last_ack);
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

// Returns a sequence number that the peer accepts for a segment without data. The number follows
// all sent data but is within the peer's window, because the peer may have dropped a probe beyond
// the window. next_ is not such a number while data is being retransmitted.
std::uint32_t Connection::acceptable_sequence() const
{
	if (opening())
		return highest_;
	const std::uint32_t end = first_ + peer_window_;
	return before(end, highest_) ? end : highest_;
}

void Connection::acknowledge_now()
{
	send(kAck, acceptable_sequence());
}

// Answers an invalid segment, at a limited rate, because the peer may consider the answer invalid,
// too. Segments that would end the connection have a separate limit, so that forged segments of
// other kinds do not suppress the challenge of the peer's RST.
void Connection::challenge(const Segment &segment)
{
	auto &last = segment.flags & (kRst | kSyn) ? asked_back_ : challenged_;
	const auto now = loop_.now();
	if (last && now - *last < kChallenge)
		return;
	last = now;
	acknowledge_now();
}

void Connection::send_synchronise()
{
	send(state_ == State::syn_sent ? +kSyn : kSyn | kAck, setup_.first_sequence);
	next_ = highest_ = setup_.first_sequence + 1;
	if (!tries_)
		timed_.emplace(next_, loop_.now());
	timer_.arm(retransmission_timeout());
}

// Returns the rest of the written segment that contains @sequence.
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
	if (opening() || state_ == State::closed || state_ == State::time_wait)
		return;
	const std::uint32_t allowed = std::min(congestion_.window(), peer_window_);
	for (View rest; !(rest = written_at(next_)).empty();) {
		if (in_flight() >= allowed)
			break;
		// Do not split a segment if acknowledgements will make space for it.
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

// Retransmits the oldest data as one segment.
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
	if (waiting())
		return;
	if (in_flight() || queued_ || closing_)
		timer_.arm(retransmission_timeout());
	else
		timer_.cancel();
}

// Randomises the timeout of retransmissions. Otherwise all of them might meet the same fault,
// because doubled timeouts stay in phase with a fault whose period is a fraction of the first
// timeout.
Clock::duration Connection::retransmission_timeout()
{
	const auto timeout = round_trip_.timeout();
	if (!tries_)
		return timeout;
	return timeout + timeout / 1024 * static_cast<std::int64_t>(loop_.random() % 128);
}

void Connection::timer_fired()
{
	if (state_ == State::time_wait)
		return end(End::closed);
	if (state_ == State::fin_wait2) {
		send(kRst | kAck, acceptable_sequence());
		return end(End::timed_out);
	}
	// A peer that reports a closed window is alive, and its report has reset this counter.
	if (++tries_ > (opening() ? kMostOpeningTries : kMostTries))
		return end(End::timed_out);
	round_trip_.back_off();
	timed_.reset();
	if (opening())
		return send_synchronise();
	const bool probing = !peer_window_;
	if (!probing) {
		congestion_.timed_out(in_flight(), tries_ > 1);
		recover_ = highest_;
	}
	// Retransmit all data that the window permits. One byte, or the FIN, probes a closed
	// window.
	next_ = first_;
	if (probing) {
		resend_first();
		if (!queued_)
			++next_;
		if (before(highest_, first_ + 1))
			highest_ = first_ + 1;
		return timer_.arm(retransmission_timeout());
	}
	timer_.cancel();
	send_available();
}

void Connection::take(const Segment &segment)
{
	if (state_ == State::closed)
		return;
	if (state_ == State::syn_sent)
		return take_syn_sent(segment);
	if (!acceptable(segment)) {
		if (segment.flags & kRst)
			return;
		if (state_ == State::time_wait && (segment.flags & kFin))
			timer_.arm(kTimeWait);
		// A peer that retransmits data has missed an acknowledgement.
		return segment.length() && !(segment.flags & kSyn) ? acknowledge_now()
								   : challenge(segment);
	}
	// Only the exact next sequence number resets the connection. Other sequence numbers get a
	// challenge ACK (RFC 5961 section 3), as does a SYN (section 4).
	if (segment.flags & kRst) {
		if (segment.sequence == expected_)
			return end(End::reset);
		return challenge(segment);
	}
	if (segment.flags & kSyn)
		return challenge(segment);
	if (!(segment.flags & kAck) || !take_acknowledgement(segment))
		return;
	take_data(segment);
	if (state_ != State::closed)
		send_available();
}

void Connection::take_syn_sent(const Segment &segment)
{
	const bool acknowledges = segment.flags & kAck;
	// The peer still has an earlier connection. The reset ends it, so the peer accepts the next
	// SYN.
	if (acknowledges && segment.acknowledgement != next_) {
		if (!(segment.flags & kRst))
			send(kRst, segment.acknowledgement);
		return;
	}
	if (segment.flags & kRst)
		return acknowledges ? end(End::reset) : void();
	// A simultaneous open by the peer is ignored.
	if (!(segment.flags & kSyn) || !acknowledges)
		return;
	expected_ = segment.sequence + 1;
	mss_ = mss_with(segment, setup_.mss);
	congestion_ = Congestion(mss_);
	peer_window_ = segment.window;
	window_sequence_ = segment.sequence;
	window_acknowledgement_ = segment.acknowledgement;
	acknowledged(segment.acknowledgement);
	enter(State::established);
	acknowledge_now();
	if (user_)
		user_->connected();
	if (state_ != State::closed)
		send_available();
}

// Returns true if a part of the segment is in the window.
bool Connection::acceptable(const Segment &segment) const
{
	const std::uint32_t length = segment.length();
	if (!length)
		return within(segment.sequence, expected_, kWindow);
	return within(segment.sequence, expected_, kWindow) ||
	       within(segment.sequence + length - 1, expected_, kWindow);
}

// Handles the acknowledgement of a segment. Returns false if the segment needs no other handling.
bool Connection::take_acknowledgement(const Segment &segment)
{
	const std::uint32_t upto = segment.acknowledgement;
	if (state_ == State::syn_received && upto != next_) {
		send(kRst, upto);
		return false;
	}
	// A segment is also refused if it acknowledges data that is too old (RFC 5961 section 5).
	if (before(highest_, upto) || before(upto, first_ - kWindow)) {
		segment.payload.empty() ? challenge(segment) : acknowledge_now();
		return false;
	}
	if (state_ == State::syn_received) {
		acknowledged(upto);
		enter(State::established);
		// established() may set a user, which is then also notified.
		setup_.established();
		if (user_)
			user_->connected();
		if (state_ == State::closed)
			return false;
	}
	const std::uint32_t window = peer_window_;
	if (before(window_sequence_, segment.sequence) ||
	    (window_sequence_ == segment.sequence && !before(upto, window_acknowledgement_))) {
		peer_window_ = segment.window;
		window_sequence_ = segment.sequence;
		window_acknowledgement_ = upto;
	}
	if (!peer_window_ || !window)
		tries_ = 0;
	// Data that waits for the window to open is not counted as lost.
	if (peer_window_ && !window && !waiting()) {
		round_trip_.forget_back_off();
		timer_.cancel();
	}
	if (before(first_, upto))
		acknowledged(upto);
	// Duplicate acknowledgements of data that was sent twice do not count (RFC 6582 section
	// 3.2, step 1).
	else if (upto == first_ && in_flight() && !segment.length() && peer_window_ == window &&
		 window && (congestion_.recovering() || before(recover_, upto)))
		duplicate();
	return state_ != State::closed;
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
	// Data that was to be retransmitted has been acknowledged after all.
	if (before(next_, first_))
		next_ = first_;
	if (timed_ && !before(upto, timed_->first)) {
		round_trip_.sample(loop_.now() - timed_->second);
		timed_.reset();
	}
	if (opening() && tries_)
		round_trip_.opened_late();
	tries_ = 0;
	if (!congestion_.recovering()) {
		if (before(recover_, upto))
			recover_ = upto - 1;
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

// Called when the FIN of this side was acknowledged.
void Connection::finished_sending()
{
	closing_ = false;
	switch (state_) {
	case State::fin_wait1:
		return enter(State::fin_wait2);
	case State::closing:
		enter(State::time_wait);
		return report_closed();
	case State::last_ack:
		return end(End::closed);
	default:
		return;
	}
}

void Connection::take_data(const Segment &segment)
{
	const bool open = state_ == State::established || state_ == State::fin_wait1 ||
			  state_ == State::fin_wait2;
	if (!segment.length())
		return;
	if (!open)
		return acknowledge_now();
	// deliver() cuts off duplicate data; cut off data beyond the window here.
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
	else
		keep_early(offset, bytes);
	if (state_ == State::closed)
		return;
	const bool filled = in_order && !early_.empty();
	deliver_early();
	if (state_ == State::closed)
		return;
	if (fin_at_ && *fin_at_ == received_)
		return take_fin();
	// Acknowledge at once if there is a gap, so that the sender detects it, and if a gap was
	// filled.
	if (!in_order || filled || ++unacknowledged_ >= 2)
		acknowledge_now();
	else if (unacknowledged_ && !ack_timer_.armed())
		ack_timer_.arm(kDelayedAck);
}

// Passes the part of @bytes that is new to the user. @offset must be at most received_.
void Connection::deliver(std::uint64_t offset, View bytes)
{
	const std::uint64_t known = received_ - offset;
	if (known >= bytes.size())
		return;
	const View fresh = bytes.subspan(known);
	received_ += fresh.size();
	expected_ += static_cast<std::uint32_t>(fresh.size());
	if (state_ == State::fin_wait2)
		timer_.arm(kFinWait);
	if (user_)
		user_->received(fresh);
}

void Connection::deliver_early()
{
	while (!early_.empty() && early_.begin()->first <= received_) {
		const auto next = early_.extract(early_.begin());
		early_bytes_ -= next.mapped().size();
		deliver(next.key(), next.mapped());
		if (state_ == State::closed)
			return;
	}
}

// Stores the bytes that are not stored yet. Stored pieces that are within @bytes are replaced.
void Connection::keep_early(std::uint64_t offset, View bytes)
{
	auto next = early_.upper_bound(offset);
	if (next != early_.begin()) {
		const auto &[start, kept] = *std::prev(next);
		const std::uint64_t end = start + kept.size();
		if (end > offset) {
			bytes = bytes.subspan(std::min<std::uint64_t>(end - offset, bytes.size()));
			offset = end;
		}
	}
	if (bytes.empty() || early_bytes_ + bytes.size() > setup_.share())
		return;
	while (next != early_.end() && next->first + next->second.size() <= offset + bytes.size()) {
		early_bytes_ -= next->second.size();
		next = early_.erase(next);
	}
	if (next != early_.end() && next->first < offset + bytes.size())
		bytes = bytes.first(next->first - offset);
	if (early_.size() >= kMostEarly)
		return;
	early_.emplace_hint(next, offset, Bytes(bytes.begin(), bytes.end()));
	early_bytes_ += bytes.size();
}

void Connection::take_fin()
{
	fin_at_.reset();
	++expected_;
	acknowledge_now();
	switch (state_) {
	case State::established:
		enter(State::close_wait);
		break;
	case State::fin_wait1:
		enter(State::closing);
		break;
	case State::fin_wait2:
		enter(State::time_wait);
		break;
	default:
		break;
	}
	if (user_)
		user_->peer_closed();
	if (state_ == State::time_wait)
		report_closed();
}

} // namespace weft::tcp
