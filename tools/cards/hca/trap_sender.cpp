// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/hca/trap_sender.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace weft::hca
{

TrapSender::TrapSender(Loop &loop, const CardPort &port, std::function<void(const ib::Smp &)> send)
    : loop_(loop), port_(port), send_(std::move(send)), timer_(loop, [this] { run(); })
{
}

// IBA 14.2.5.6: 4.096 us * 2^SubnetTimeOut.
Clock::duration TrapSender::interval() const
{
	return std::chrono::nanoseconds(std::int64_t{4096} << port_.info().subnet_timeout());
}

void TrapSender::raise(ib::TrapNumber number, ib::NoticeType type, const std::uint8_t *details)
{
	const ib::PortInfo &info = port_.info();
	// Without a subnet manager, the trap is not sent. A manager that starts later reads all
	// attributes anyway.
	if (!(info.capability_mask & ib::port_cap_trap) || info.sm_lid == 0 || info.lid == 0)
		return;
	auto slot = std::ranges::find(pending_, number, &Pending::number);
	if (slot == pending_.end())
		slot = std::ranges::find(pending_, ib::TrapNumber{}, &Pending::number);
	if (slot == pending_.end())
		return;

	*slot = {.number = number};
	ib::MadHeader &header = slot->smp.header;
	header.base_version = ib::mad_base_version;
	header.mgmt_class = static_cast<std::uint8_t>(ib::MgmtClass::subn_lid_routed);
	header.class_version = 1;
	header.method = static_cast<std::uint8_t>(ib::MadMethod::trap);
	header.tid = ++tid_;
	header.attr_id = std::uint16_t{ib::attr_sm_notice};
	ib::Notice notice{};
	notice.generic_type =
		static_cast<std::uint8_t>(ib::Notice::generic_bit | static_cast<unsigned>(type));
	notice.producer = static_cast<std::uint32_t>(ib::NodeType::channel_adapter);
	notice.trap_number = std::uint16_t{number};
	notice.issuer_lid = port_.lid();
	std::memcpy(notice.details, details, sizeof(notice.details));
	std::memcpy(slot->smp.data, &notice, ib::notice_smp_bytes);
	if (!timer_.armed())
		run();
}

bool TrapSender::repress(std::uint64_t tid)
{
	for (Pending &pending : pending_) {
		if (pending.number == ib::TrapNumber{} || pending.smp.header.tid != tid)
			continue;
		pending = {};
		return true;
	}
	return false;
}

void TrapSender::clear()
{
	pending_.fill({});
	timer_.cancel();
}

// Returns the trap to be sent next, or null if none is pending.
TrapSender::Pending *TrapSender::next()
{
	for (std::size_t i = 1; i <= kKinds; ++i) {
		Pending &pending = pending_[(turn_ + i) % kKinds];
		if (pending.number == ib::TrapNumber{})
			continue;
		turn_ = (turn_ + i) % kKinds;
		return &pending;
	}
	return nullptr;
}

void TrapSender::run()
{
	const Clock::time_point now = loop_.now();
	if (now >= next_send_) {
		Pending *const pending = next();
		if (!pending)
			return;
		next_send_ = now + interval();
		const ib::Smp smp = pending->smp;
		if (++pending->sent > kMaxRepeats)
			*pending = {};
		send_(smp); // the response may arrive within the call
	}
	timer_.arm_at(next_send_);
}

} // namespace weft::hca
