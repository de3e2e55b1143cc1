// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/fabric/switch.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include <spdlog/spdlog.h>

#include "net/fabric/timeline.hpp"

namespace weft::fabric
{

namespace
{

using namespace std::chrono_literals;

/* Limit of queued copies. They hold no credit of an input port, which would limit them. */
constexpr std::size_t kCopiesWaitingMax = 1024;
/*
 * Lower bound of the packet lifetime, because emulated guests may stall for longer than real hosts.
 */
constexpr std::chrono::nanoseconds kHoqLifeMin = 250ms;

NodeAgent::Config agent_config(const SwitchConfig &config)
{
	NodeAgent::Config agent;
	agent.identity.type = ib::NodeType::switch_;
	agent.identity.node_guid = config.guid;
	agent.identity.system_image_guid = config.guid;
	agent.identity.vendor_id = 0x0002c9;
	agent.identity.device_id = 0xbd36;
	agent.identity.revision = 0xa0;
	agent.identity.description = config.name;
	agent.ports = config.ports;
	agent.port_guids = {config.guid};
	agent.capability_mask = ib::port_cap_trap | ib::port_cap_notice | ib::port_cap_sl_mapping |
				ib::port_cap_system_image_guid;
	agent.mtu = config.mtu;
	agent.vl_cap = config.vl_cap;
	agent.pkey_entries = Switch::kPkeyEntries;
	agent.lft_entries = Switch::kLftEntries;
	agent.mft_entries = Switch::kMftEntries;
	agent.optimized_sl_to_vl = config.optimized_sl_to_vl;
	return agent;
}

} // namespace

template<class Take>
bool Switch::make_copies(CopyQueue::Entry &entry, Take &&take)
{
	PortSide &in = *sides_[entry.in - 1];
	const unsigned group = entry.packet.lrh().dlid - ib::lid_multicast_first;
	for (;;) {
		const unsigned port = group_port(group, entry.next, entry.in);
		if (port == 0)
			return true;
		if (!take())
			return false;
		if (entry.packet.ticket()->copies_left.fetch_sub(1, std::memory_order_relaxed) <=
		    0) {
			Counters::add(in.port.counters().rcv_switch_relay_errors);
			return true;
		}
		PortSide &out = *sides_[port - 1];
		entry.next = port + 1;
		/* The last port gets the packet itself, and the others get copies. */
		const bool last = group_port(group, entry.next, entry.in) == 0;
		Packet copy = last ? std::move(entry.packet) : entry.packet.clone();
		if (!out.port.peer_forwards())
			copy.set_ticket(nullptr);
		output(&in, out, std::move(copy));
		if (last)
			return true;
	}
}

Switch::PortSide::PortSide(Switch &sw, unsigned side_number, Port &side_port)
    : owner(sw), number(side_number), port(side_port), egress(side_port),
      multicast(std::make_shared<MulticastSender>(sw.timeline_, [this](Packet &&packet) {
	      owner.replicate(number, std::move(packet));
      }))
{
	/* The initial value of the table in the agent. */
	pkeys[0].store(ib::pkey_default_full, std::memory_order_relaxed);
}

Switch::Switch(const SwitchConfig &config, std::vector<Port *> ports, Timeline &timeline)
    : name_(config.name), guid_(config.guid), timeline_(timeline), external_(std::move(ports)),
      agent_(agent_config(config), *this), lft_(kLftEntries), positions_(port_count() / 16 + 1),
      mft_(kMftEntries * positions_),
      copies_(timeline,
	      [this](CopyQueue::Entry &entry, unsigned &left) {
		      return make_copies(entry, [&left] { return left != 0 && left-- != 0; });
	      }),
      sl_to_vl_((port_count() + 1) * (port_count() + 1))
{
	for (auto &entry : lft_)
		entry.store(ib::lft_drop, std::memory_order_relaxed);
	for (unsigned number = 1; number <= port_count(); number++)
		sides_.push_back(std::make_unique<PortSide>(*this, number, port(number)));
	for (auto &side : sides_)
		side->port.attach(*side);
	for (auto &side : sides_)
		side->port.enable();
}

Switch::~Switch()
{
	for (auto &side : sides_)
		side->port.detach();
	for (auto &side : sides_)
		side->multicast->close();
	/*
	 * The timeline's tasks may schedule others, so remove them after all other callers have
	 * stopped.
	 */
	timeline_.forget(&copies_);
	timeline_.forget(this);
}

void Switch::port_info_set(const ManagedPort &port, const ib::PortInfo &, bool)
{
	const ib::PortInfo &info = port.info;
	if (port.number() == 0) {
		lid_.store(info.lid, std::memory_order_relaxed);
		sm_lid_.store(info.sm_lid, std::memory_order_relaxed);
		sm_sl_.store(info.sm_sl(), std::memory_order_relaxed);
		receiver_.port_changed();
		return;
	}
	PortSide &side = *sides_[port.number() - 1];
	side.mtu.store(info.neighbor_mtu(), std::memory_order_relaxed);
	side.operational_vls.store(ib::vl_count(info.operational_vls()), std::memory_order_relaxed);
	side.enforcement.store(info.vl_oper_enforcement & (ib::PortInfo::enforce_inbound |
							   ib::PortInfo::enforce_outbound),
			       std::memory_order_relaxed);
	side.hoq_life.store(info.hoq_life(), std::memory_order_relaxed);
	side.state.store(info.state(), std::memory_order_release);
}

void Switch::restrict_management(unsigned number, bool restricted)
{
	sides_.at(number - 1)->restricted.store(restricted, std::memory_order_relaxed);
}

void Switch::pkeys_set(const ManagedPort &port, unsigned, std::uint32_t)
{
	if (port.number() == 0)
		receiver_.port_changed();
	else
		for (std::size_t i = 0; i < kPkeyEntries; i++)
			sides_[port.number() - 1]->pkeys[i].store(port.pkeys[i],
								  std::memory_order_relaxed);
}

bool Switch::read_lft(unsigned block, ib::LinearForwarding &table)
{
	if (block >= kLftEntries / std::size(table.port))
		return false;
	for (std::size_t i = 0; i < std::size(table.port); i++)
		table.port[i] =
			lft_[block * std::size(table.port) + i].load(std::memory_order_relaxed);
	return true;
}

bool Switch::write_lft(unsigned block, const ib::LinearForwarding &table)
{
	if (block >= kLftEntries / std::size(table.port))
		return false;
	for (std::size_t i = 0; i < std::size(table.port); i++)
		lft_[block * std::size(table.port) + i].store(table.port[i],
							      std::memory_order_relaxed);
	return true;
}

bool Switch::read_mft(unsigned position, unsigned block, ib::MulticastForwarding &table)
{
	constexpr unsigned per_block = std::size(decltype(table.ports){});
	if (position >= positions_ || block >= kMftEntries / per_block)
		return false;
	for (unsigned i = 0; i < per_block; i++)
		table.ports[i] = mft_[(block * per_block + i) * positions_ + position].load(
			std::memory_order_relaxed);
	return true;
}

bool Switch::write_mft(unsigned position, unsigned block, const ib::MulticastForwarding &table)
{
	constexpr unsigned per_block = std::size(decltype(table.ports){});
	if (position >= positions_ || block >= kMftEntries / per_block)
		return false;
	for (unsigned i = 0; i < per_block; i++)
		mft_[(block * per_block + i) * positions_ + position].store(
			table.ports[i], std::memory_order_relaxed);
	return true;
}

bool Switch::read_sl_to_vl(unsigned in, unsigned out, ib::SlToVl &table)
{
	if (in > port_count() || out > port_count())
		return false;
	auto stored = sl_to_vl_[in * (port_count() + 1) + out].load(std::memory_order_relaxed);
	table = std::bit_cast<ib::SlToVl>(stored);
	return true;
}

bool Switch::write_sl_to_vl(unsigned in, unsigned out, const ib::SlToVl &table)
{
	if (in > port_count() || out > port_count())
		return false;
	sl_to_vl_[in * (port_count() + 1) + out].store(std::bit_cast<std::uint64_t>(table),
						       std::memory_order_relaxed);
	return true;
}

void Switch::link_changed(PortSide &side, bool up)
{
	agent_.link_changed(side.number, up, side.port.rate(), side.port.mtu_cap());
	const MutexLock lock(trap_mutex_);
	trap_due_ = true;
	trap_repeats_ = 0;
	std::uint64_t number = ++trap_number_;
	timeline_.after(
		{},
		[this, &side, number] {
			/* The subnet manager asks the other end for its state, too. */
			side.port.await_link_change();
			send_trap(number);
		},
		this);
}

void Switch::receive(PortSide &in, Packet &&arriving)
{
	Packet packet(std::move(arriving));
	if (++packet.hops_ > kHopsMax) {
		Counters::add(in.port.counters().rcv_switch_relay_errors);
		return;
	}
	const ib::Lrh &lrh = packet.lrh();
	if (lrh.vl() == ib::vl_management) {
		/* VL15 is not subject to port states and P_Keys, so it is only for SMPs. */
		if (packet.bth().opcode != ib::opcode_ud_send_only ||
		    packet.bth().dest_qp() != ib::qpn_smi ||
		    packet.payload().size() != ib::mad_bytes) {
			Counters::add(in.port.counters().rcv_errors);
			return;
		}
		return receive_management(in, std::move(packet));
	}
	/*
	 * Data packets may enter in ARMED and leave in ACTIVE (IBA 7.2.4). They may only use lanes
	 * that both ends of the link have, so that no sender can use the buffers of all lanes
	 * (7.6).
	 */
	if (in.state.load(std::memory_order_acquire) < ib::PortState::armed ||
	    lrh.vl() >= in.operational_vls.load(std::memory_order_relaxed)) {
		Counters::add(in.port.counters().rcv_errors);
		return;
	}
	if (!may_enter(in, packet)) {
		Counters::add(in.port.counters().rcv_constraint_errors);
		return;
	}
	if (lrh.dlid == lid() && lid() != 0)
		return answer_gmp(packet);
	if (ib::lid_is_multicast(lrh.dlid))
		return forward_multicast(in, std::move(packet));
	forward_unicast(&in, std::move(packet));
}

void Switch::forward_unicast(PortSide *in, Packet &&packet)
{
	ib::Lid dlid = packet.lrh().dlid;
	unsigned out = ib::lid_is_unicast(dlid) ? lft_[dlid].load(std::memory_order_relaxed)
						: ib::lft_drop;
	/*
	 * Forwarding a packet to the port by which it arrived would create a loop (IBA 16.1.3.5).
	 */
	if (out == 0 || out > port_count() || (in && in->number == out)) {
		if (in)
			Counters::add(in->port.counters().rcv_switch_relay_errors);
		return;
	}
	output(in, *sides_[out - 1], std::move(packet));
}

void Switch::forward_multicast(PortSide &in, Packet &&packet)
{
	if (packet.lrh().dlid - ib::lid_multicast_first >= static_cast<int>(kMftEntries)) {
		Counters::add(in.port.counters().rcv_switch_relay_errors);
		return;
	}
	packet.keep_credit();
	if (packet.ticket())
		replicate(in.number, std::move(packet));
	else
		in.multicast->enter(std::move(packet));
}

unsigned Switch::group_port(unsigned entry, unsigned from, unsigned in) const
{
	for (unsigned position = from / 16; position < positions_; position++) {
		unsigned mask = mft_[entry * positions_ + position].load(std::memory_order_relaxed);
		if (position == from / 16)
			mask &= ~0u << from % 16;
		for (; mask != 0; mask &= mask - 1) {
			const unsigned port =
				position * 16 + static_cast<unsigned>(std::countr_zero(mask));
			if (port != 0 && port <= port_count() && port != in)
				return port;
		}
	}
	return 0;
}

void Switch::replicate(unsigned in, Packet &&packet)
{
	MulticastTicket &ticket = *packet.ticket();
	const void *const sender = ticket.sender.get();
	CopyQueue::Entry entry{std::move(packet), sender, in};
	/* Keep the order with copies of earlier packets. */
	if (!copies_.has(sender) && make_copies(entry, [&ticket] { return ticket.take_at_once(); }))
		return;
	/*
	 * At the port where it entered the fabric, the packet keeps its credit, which throttles its
	 * sender. Elsewhere it is returned, because other senders use that link, too.
	 */
	if (sides_[in - 1]->multicast.get() != sender)
		entry.packet.release_credit();
	copies_.push(std::move(entry));
}

/*
 * IBA 14.2.5.6, PartitionEnforcementInbound and -Outbound. The table is that of the node behind the
 * port. An incoming packet must have a key of the table; a full member may also use the limited
 * key. A limited member must not use the full key, because it could then reach other limited
 * members. Outgoing packets are matched as the node would do (10.9.3).
 */
bool Switch::may_enter(const PortSide &side, const Packet &packet)
{
	if ((side.enforcement.load(std::memory_order_relaxed) & ib::PortInfo::enforce_inbound) == 0)
		return true;
	ib::Pkey sent = packet.bth().pkey;
	return ib::pkey_base(sent) != 0 &&
	       std::any_of(side.pkeys.begin(), side.pkeys.end(), [&](const auto &entry) {
		       ib::Pkey own = entry.load(std::memory_order_relaxed);
		       return own == sent || own == (sent | ib::pkey_full_bit);
	       });
}

bool Switch::may_leave(const PortSide &side, const Packet &packet)
{
	if ((side.enforcement.load(std::memory_order_relaxed) & ib::PortInfo::enforce_outbound) ==
	    0)
		return true;
	ib::Pkey sent = packet.bth().pkey;
	return std::any_of(side.pkeys.begin(), side.pkeys.end(), [&](const auto &entry) {
		return ib::pkey_match(entry.load(std::memory_order_relaxed), sent);
	});
}

/* Leaves a dropped packet to the caller, which destroys it. */
void Switch::output(PortSide *in, PortSide &out, Packet &&packet)
{
	ib::Lrh &lrh = packet.lrh();
	std::uint8_t vl = lrh.vl();
	if (vl != ib::vl_management) {
		Counters &counters = out.port.counters();
		if (out.state.load(std::memory_order_acquire) != ib::PortState::active ||
		    packet.packet_bytes() >
			    ib::mtu_bytes(out.mtu.load(std::memory_order_relaxed))) {
			Counters::add(counters.xmit_discards, packet.packets());
			return;
		}
		if (!may_leave(out, packet)) {
			Counters::add(counters.xmit_constraint_errors, packet.packets());
			return;
		}
		ib::SlToVl table{};
		read_sl_to_vl(in ? in->number : 0, out.number, table);
		vl = table.vl(lrh.sl());
		/* VL15 in the table means that the packet is dropped (IBA 7.6.6). */
		if (vl >= out.operational_vls.load(std::memory_order_relaxed)) {
			Counters::add(counters.xmit_discards, packet.packets());
			return;
		}
		lrh.set_vl(vl);
	}
	/* Packets with a credit of an input port are limited by the credits, but copies are not. */
	bool copy = !packet.credit_port_;
	auto result =
		out.egress.send(std::move(packet),
				copy ? kCopiesWaitingMax : std::numeric_limits<std::size_t>::max());
	if (result == EgressQueue::Result::dropped)
		Counters::add(out.port.counters().xmit_discards);
	if (result == EgressQueue::Result::queued &&
	    (out.expiry_planned.fetch_or(1u << vl) & 1u << vl) == 0)
		timeline_.after(hoq_lifetime(out), [this, &out, vl] { expire(out, vl); }, this);
}

Clock::time_point Switch::now() const
{
	return timeline_.now();
}

std::chrono::nanoseconds Switch::hoq_lifetime(const PortSide &out)
{
	/* The lifetime is 4.096 us * 2^n (IBA 14.2.5.6), and infinite from n = 20 on. */
	unsigned life = out.hoq_life.load(std::memory_order_relaxed);
	if (life >= 20)
		return 24h;
	return std::max<std::chrono::nanoseconds>(4096ns * (1u << life), kHoqLifeMin);
}

void Switch::expire(PortSide &out, std::uint8_t vl)
{
	out.expiry_planned.fetch_and(~(1u << vl));
	auto life = hoq_lifetime(out);
	const auto now = timeline_.now(); // the queue uses the same clock
	/* The packets are counted before their credits are returned. */
	std::vector<Packet> dropped = out.egress.expire(vl, now - life);
	if (!dropped.empty()) {
		unsigned packets = 0;
		for (const Packet &packet : dropped)
			packets += packet.packets();
		/*
		 * A guest that takes no packets causes this while others send to it, so the log
		 * lines are limited.
		 */
		if (const auto taken = out.expiry_log.take(now); taken.allowed)
			spdlog::warn("switch {} port {}: {} packets on VL {} found no credit in "
				     "time{}",
				     name_, out.number, packets, vl, withheld_text(taken.withheld));
		Counters::add(out.port.counters().xmit_discards, packets);
	}
	dropped.clear();
	auto since = out.egress.waiting_since(vl);
	if (since != Clock::time_point::max() &&
	    (out.expiry_planned.fetch_or(1u << vl) & 1u << vl) == 0)
		timeline_.after(since + life - now, [this, &out, vl] { expire(out, vl); }, this);
}

} // namespace weft::fabric
