// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/trunk/trunk_port.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "net/fabric/link.hpp"

namespace weft::trunk
{

namespace
{

// The order in which virtual lanes are served: management first.
constexpr std::array<std::uint8_t, fabric::Port::kVls> kOrder{15, 0, 1, 2,  3,  4,  5,  6,
							      7,  8, 9, 10, 11, 12, 13, 14};

// Returns a mask of all bits up to @best.
std::uint8_t up_to(std::uint8_t best)
{
	return best == 0 ? 0 : static_cast<std::uint8_t>(2 * best - 1);
}

bool same(const LinkBody &a, const LinkBody &b)
{
	return std::memcmp(&a, &b, sizeof(a)) == 0;
}

bool same_capabilities(const LinkBody &a, const LinkBody &b)
{
	return a.widths == b.widths && a.speeds == b.speeds && a.speeds_ext == b.speeds_ext &&
	       a.mtu == b.mtu;
}

} // namespace

TrunkPort::TrunkPort(fabric::Port &port, std::function<void()> wake)
    : port_(port), wake_(std::move(wake))
{
	port_.attach(*this);
	port_.withhold(true);
	port_.enable();
}

TrunkPort::~TrunkPort()
{
	port_.detach();
	disconnected();
}

// The packet is serialized on the sender's thread, because its payload may be leased and must not
// be referred to while waiting for the network.
void TrunkPort::receive(fabric::Packet &&arriving)
{
	fabric::Packet packet(std::move(arriving));
	while (packet.packets() > kMostRunPackets || packet.payload().size() > kMostRunBytes) {
		if (packet.packets() == 1)
			return;
		fabric::Packet first = packet.take_first();
		receive(std::move(first));
	}
	auto frame = make_packet_frame(packet);
	if (!frame)
		return;
	const std::uint8_t vl = packet.lrh().vl();
	const unsigned packets = packet.packets();
	packet.strip();
	{
		const MutexLock lock(mutex_);
		if (!connected_)
			return;
		queues_[vl].push_back({std::move(*frame), std::move(packet), packets});
	}
	wake_();
}

void TrunkPort::went_down_locked()
{
	attempt_++;
	// Withhold at once, so that the link does not come up again before the peer knows.
	port_.withhold(true);
}

void TrunkPort::link_changed(bool up)
{
	if (up)
		return;
	{
		const MutexLock lock(mutex_);
		went_down_locked();
	}
	wake_();
}

void TrunkPort::link_settled(bool trained)
{
	{
		const MutexLock lock(mutex_);
		if (ready_ && !trained)
			went_down_locked();
		ready_ = trained;
	}
	// Wake even if no state of this half has changed, because the port's capabilities may have
	// changed.
	wake_();
}

void TrunkPort::credit_available(std::uint8_t vl)
{
	credit_back_.fetch_or(1u << vl, std::memory_order_release);
	wake_();
}

void TrunkPort::connected()
{
	const MutexLock lock(mutex_);
	connected_ = true;
}

void TrunkPort::disconnected()
{
	{
		const MutexLock lock(mutex_);
		connected_ = false;
	}
	agreed_.reset();
	port_.withhold(true);
	port_.settle();
	drop_queued();
	drop_waiting();
	for (unsigned vl = 0; vl < kVls; vl++) {
		outstanding_packets_[vl] = owed_[vl] = 0;
		// Empty the queue before the packets are destroyed, because returned credits let
		// others enter it.
		auto sent = std::exchange(outstanding_[vl], {});
	}
	sent_.reset();
	received_.reset();
}

void TrunkPort::drop_queued()
{
	Queues lost;
	const MutexLock lock(mutex_);
	lost.swap(queues_);
}

void TrunkPort::drop_waiting()
{
	for (unsigned vl = 0; vl < kVls; vl++) {
		owed_[vl] += std::exchange(waiting_packets_[vl], 0);
		// Empty the queue before the packets are destroyed, as above.
		auto arrived = std::exchange(waiting_[vl], {});
	}
}

const char *TrunkPort::take(const Frame &frame)
{
	switch (frame.type) {
	case FrameType::packet:
		return take_packet(frame);
	case FrameType::credits:
		return take_credits(frame);
	case FrameType::link:
		return take_link(frame);
	case FrameType::alive:
		return frame.body.empty() ? nullptr : "a malformed keepalive";
	default:
		return "an unexpected frame";
	}
}

const char *TrunkPort::take_packet(const Frame &frame)
{
	auto packet = read_packet(frame.body);
	if (!packet)
		return "a malformed packet";
	const std::uint8_t vl = packet->lrh().vl();
	const unsigned packets = packet->packets();
	// These packets' credits have not been returned to the peer.
	if (waiting_packets_[vl] + owed_[vl] + packets > kWindow)
		return "a packet without credit";
	waiting_packets_[vl] += packets;
	if (!waiting_[vl].empty() || !enter(vl, *packet))
		waiting_[vl].push_back(std::move(*packet));
	return nullptr;
}

bool TrunkPort::enter(std::uint8_t vl, fabric::Packet &packet)
{
	const unsigned before = packet.packets();
	// A run may be split, and the rest of it may find no credit.
	const bool entered = port_.send(packet) != fabric::Sent::no_credit;
	const unsigned gone = entered ? before : before - packet.packets();
	waiting_packets_[vl] -= gone;
	owed_[vl] += gone;
	return entered;
}

void TrunkPort::enter_waiting(std::uint8_t vl)
{
	auto &waiting = waiting_[vl];
	while (!waiting.empty() && enter(vl, waiting.front()))
		waiting.pop_front();
}

const char *TrunkPort::take_credits(const Frame &frame)
{
	const auto credits = read_credits(frame.body);
	if (!credits)
		return "malformed credits";
	unsigned left = credits->packets;
	if (left > outstanding_packets_[credits->vl])
		return "credits for packets that were not sent";
	outstanding_packets_[credits->vl] -= left;
	auto &outstanding = outstanding_[credits->vl];
	std::vector<fabric::Packet> done;
	while (left != 0) {
		Outstanding &first = outstanding.front();
		const unsigned returned = std::min(left, first.packets);
		left -= returned;
		first.packets -= returned;
		if (first.packets != 0)
			break;
		done.push_back(std::move(first.credit));
		outstanding.pop_front();
	}
	// This may call receive() with the next packet.
	fabric::Packet::release_credits(done);
	return nullptr;
}

const char *TrunkPort::take_link(const Frame &frame)
{
	const auto link = read_link(frame.body);
	if (!link)
		return "a malformed state of the link";
	if (agreed_ && !same_capabilities(*received_, *link))
		go_down();
	received_ = link;
	port_.limit_mtu(static_cast<ib::Mtu>(link->mtu));
	const fabric::EnabledRates rates{link->widths, link->speeds, link->speeds_ext};
	if (rates != port_.enabled_rates())
		port_.enable_rates(rates);
	// Answer immediately, because packets may follow.
	agree(own_half());
	return nullptr;
}

TrunkPort::Half TrunkPort::own_half()
{
	Half half{};
	{
		const MutexLock lock(mutex_);
		half = {attempt_, ready_};
	}
	if (half.attempt != dropped_to_) {
		// Also drop packets from the peer: the port for which they wait may have been
		// removed, and they must not arrive after the next training.
		drop_queued();
		drop_waiting();
		dropped_to_ = half.attempt;
	}
	return half;
}

LinkBody TrunkPort::offer(const Half &half) const
{
	LinkBody body{};
	body.attempt = half.attempt;
	body.seen = received_ ? std::uint32_t{received_->attempt} : 0;
	body.ready = half.ready;
	body.mtu = static_cast<std::uint8_t>(ib::Mtu::mtu_4096);
	if (const fabric::Link *link = port_.link()) {
		const fabric::LinkRate cable = link->rate();
		const fabric::EnabledRates own = link->other(port_).enabled_rates();
		body.widths = own.widths & up_to(cable.width);
		body.speeds = own.speeds & up_to(cable.speed);
		body.speeds_ext = own.speeds_ext & up_to(cable.speed_ext);
		body.mtu = static_cast<std::uint8_t>(link->mtu());
	}
	return body;
}

void TrunkPort::go_down()
{
	agreed_.reset();
	port_.withhold(true);
	port_.settle();
}

void TrunkPort::agree(const Half &half)
{
	const bool may =
		half.ready && received_ && received_->ready && received_->seen == half.attempt;
	if (agreed_ && (!may || received_->attempt != *agreed_))
		return go_down();
	if (agreed_ || !may)
		return;
	// The peer would train with outdated capabilities of this half.
	if (!sent_ || !same(*sent_, offer(half)))
		return wake_();
	{
		const MutexLock lock(mutex_);
		// The link has gone down meanwhile, and serve() will be called again.
		if (attempt_ != half.attempt)
			return;
		port_.withhold(false);
	}
	agreed_ = received_->attempt;
	port_.settle();
}

// Credits are usually sent together with packets in the other direction, because a message with
// nothing else in it costs both ends about as much as a packet. The peer may be about to wait for
// them if it has used a large part of its window. Without flow control, packets that find no
// credit are dropped.
bool TrunkPort::must_return_credits(unsigned vl) const
{
	return vl == ib::vl_management || waiting_packets_[vl] + owed_[vl] >= kCreditBatch;
}

std::size_t TrunkPort::serve(std::deque<Buffer> &out, std::size_t room)
{
	std::size_t bytes = 0;
	const auto append = [&](Buffer &&frame) {
		bytes += frame.size();
		out.push_back(std::move(frame));
	};
	{
		const MutexLock lock(mutex_);
		if (!connected_)
			return 0;
	}
	const Half half = own_half();
	for (std::uint32_t back = credit_back_.exchange(0, std::memory_order_acquire); back != 0;
	     back &= back - 1)
		enter_waiting(static_cast<std::uint8_t>(std::countr_zero(back)));

	// The state must be sent before the first packet after the link came up.
	if (const LinkBody body = offer(half); !sent_ || !same(*sent_, body)) {
		append(make_frame(FrameType::link, body));
		sent_ = body;
	}
	agree(half);

	MutexLock lock(mutex_);
	const bool frames_follow =
		bytes != 0 ||
		std::ranges::any_of(queues_, [](const auto &queue) { return !queue.empty(); });
	lock.unlock();
	for (std::uint8_t vl = 0; vl < kVls; vl++)
		if (owed_[vl] != 0 && (frames_follow || must_return_credits(vl)))
			append(make_frame(FrameType::credits,
					  CreditsBody{vl, 0,
						      static_cast<std::uint16_t>(
							      std::exchange(owed_[vl], 0))}));

	lock.lock();
	for (const std::uint8_t vl : kOrder) {
		auto &queue = queues_[vl];
		while (bytes < room && !queue.empty() &&
		       outstanding_packets_[vl] + queue.front().packets <= kWindow) {
			Outgoing next = std::move(queue.front());
			queue.pop_front();
			append(std::move(next.frame));
			outstanding_packets_[vl] += next.packets;
			outstanding_[vl].push_back({std::move(next.credit), next.packets});
		}
	}
	return bytes;
}

} // namespace weft::trunk
