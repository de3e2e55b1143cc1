// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Models a switch. It forwards packets by its linear and multicast tables, inline on the thread
 * that delivers them, and answers requests of subnet and performance management.
 *
 * The forwarding path takes no lock as long as output ports have credit: tables are arrays of
 * atomics. A packet without credit waits in a queue of its output port and VL and holds a credit of
 * the input port, so that the back pressure reaches the sender. A packet that waits longer than the
 * head-of-queue lifetime is dropped (IBA 18.2.5.4), so that a blocked port cannot stop the others.
 */
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <ib/smi.hpp>

#include "base/line_budget.hpp"
#include "base/mutex.hpp"
#include "net/fabric/egress_queue.hpp"
#include "net/fabric/fabric.hpp"
#include "net/fabric/local_access.hpp"
#include "net/fabric/mad_packet.hpp"
#include "net/fabric/multicast.hpp"
#include "net/fabric/node_agent.hpp"

namespace weft::fabric
{

class Switch final : public LocalAccess, private SubnetAgentHost
{
public:
	static constexpr unsigned kLftEntries = ib::lid_unicast_last + 1;
	static constexpr unsigned kMftEntries = 4096;
	static constexpr unsigned kHopsMax = 64;
	/* Number of P_Keys of each port, the same as for a card. */
	static constexpr unsigned kPkeyEntries = 128;

	/* @ports are the external ports, port 1 first; the fabric owns them. */
	Switch(const SwitchConfig &config, std::vector<Port *> ports, Timeline &timeline);
	Switch(const Switch &) = delete;
	Switch &operator=(const Switch &) = delete;
	~Switch() override;

	const std::string &name() const { return name_; }
	ib::Guid guid() const { return guid_; }
	ib::Lid lid() const { return lid_.load(std::memory_order_relaxed); }
	unsigned port_count() const { return static_cast<unsigned>(external_.size()); }
	/* Returns an external port, counted from 1; throws std::out_of_range. */
	Port &port(unsigned number) const { return *external_.at(number - 1); }
	/*
	 * Restricts the node behind an external port, so that it cannot take part in managing the
	 * subnet. The switch forwards only the node's responses and traps among its SMPs, and no
	 * SMInfo.
	 */
	void restrict_management(unsigned number, bool restricted = true);
	bool restricts_management(unsigned number) const
	{
		return sides_.at(number - 1)->restricted.load(std::memory_order_relaxed);
	}
	ib::PortInfo port_info(unsigned number) const { return agent_.port_info(number); }

	/* LocalAccess to port 0. */
	void set_receiver(std::shared_ptr<LocalReceiver> receiver) override
	{
		receiver_.set(std::move(receiver));
	}
	void send_mad(const MadAddress &address, std::uint8_t path_bits,
		      const ib::Mad &mad) override;
	void describe(std::function<void(PortView &&)> done) override { done(agent_.view(0)); }
	void set_is_sm(bool is_sm) override;

private:
	class PortSide final : public PortSink
	{
	public:
		PortSide(Switch &owner, unsigned number, Port &port);
		void receive(Packet &&packet) override { owner.receive(*this, std::move(packet)); }
		void link_changed(bool up) override { owner.link_changed(*this, up); }
		void credit_available(std::uint8_t vl) override { egress.drain(vl); }
		bool forwards() const override { return true; }
		/* The egress queue and multicast call keep_credit(). */
		bool borrows_credits() const override { return true; }

		Switch &owner;
		const unsigned number;
		Port &port;
		std::atomic<ib::PortState> state{ib::PortState::down};
		std::atomic<ib::Mtu> mtu{ib::Mtu::mtu_2048};
		std::atomic<unsigned> operational_vls{1};
		std::atomic<std::uint8_t> enforcement{0};
		std::atomic<bool> restricted{false};
		std::atomic<std::uint8_t> hoq_life{0};
		std::array<std::atomic<ib::Pkey>, kPkeyEntries> pkeys{};

		EgressQueue egress;
		/* The node behind the port as a sender of multicast. */
		const std::shared_ptr<MulticastSender> multicast;
		/* A bit for each VL: a check for expired packets is scheduled. */
		std::atomic<unsigned> expiry_planned{0};
		/* Used on the timeline only. */
		LineBudget expiry_log;
	};

	/* SubnetAgentHost */
	Clock::time_point now() const override;
	void port_info_set(const ManagedPort &port, const ib::PortInfo &before,
			   bool reregister) override;
	void pkeys_set(const ManagedPort &port, unsigned block, std::uint32_t changed) override;
	bool read_lft(unsigned block, ib::LinearForwarding &table) override;
	bool write_lft(unsigned block, const ib::LinearForwarding &table) override;
	bool read_mft(unsigned position, unsigned block, ib::MulticastForwarding &table) override;
	bool write_mft(unsigned position, unsigned block,
		       const ib::MulticastForwarding &table) override;
	bool read_sl_to_vl(unsigned in, unsigned out, ib::SlToVl &table) override;
	bool write_sl_to_vl(unsigned in, unsigned out, const ib::SlToVl &table) override;

	void link_changed(PortSide &side, bool up);

	/* Forwarding. @in is null for packets that the switch itself sends. */
	void receive(PortSide &in, Packet &&packet);
	void receive_management(PortSide &in, Packet &&packet);
	void forward_unicast(PortSide *in, Packet &&packet);
	void forward_multicast(PortSide &in, Packet &&packet);
	/* Makes the copies of a packet with a ticket, now or on the timeline. */
	void replicate(unsigned in, Packet &&packet);
	/* Makes copies as long as @take returns true. Returns true if all copies have been made. */
	template<class Take>
	bool make_copies(CopyQueue::Entry &entry, Take &&take);
	/*
	 * Returns the first port of a group from @from on, except the one by which the packet
	 * arrived.
	 */
	unsigned group_port(unsigned entry, unsigned from, unsigned in) const;
	void output(PortSide *in, PortSide &out, Packet &&packet);
	void expire(PortSide &out, std::uint8_t vl);
	/*
	 * Partition enforcement: return whether the node behind a port may send or receive a
	 * packet.
	 */
	static bool may_enter(const PortSide &side, const Packet &packet);
	static bool may_leave(const PortSide &side, const Packet &packet);
	static std::chrono::nanoseconds hoq_lifetime(const PortSide &out);

	/* Management. */
	bool pass_on(PortSide &in, Packet &packet);
	void act(const ib::SmiDecision &decision, PortSide &in, AddressedMad &&mad, unsigned hops);
	void answer_smp(PortSide &in, AddressedMad &&mad, unsigned hops);
	void answer_gmp(const Packet &packet);
	/* For programs on the switch. */
	void send_directed(const ib::Smp &smp);
	void send_to_self(AddressedMad &&mad);
	/* Replaces a performance management MAD by its response; returns false if there is none. */
	bool answer_perf(ib::Mad &mad);
	void send_smp(PortSide &out, const ib::Mad &mad, unsigned hops);
	void send_trap(std::uint64_t number);
	/* Returns true if the trap was sent by this switch. */
	bool repress_trap(std::uint64_t tid);

	const std::string name_;
	const ib::Guid guid_;
	Timeline &timeline_;
	const std::vector<Port *> external_;
	std::vector<std::unique_ptr<PortSide>> sides_;
	ReceiverSlot receiver_;
	NodeAgent agent_;

	std::atomic<ib::Lid> lid_{0};
	std::atomic<ib::Lid> sm_lid_{0};
	std::atomic<std::uint8_t> sm_sl_{0};
	std::vector<std::atomic<std::uint8_t>> lft_;
	const unsigned positions_;
	/* Port mask words, sixteen ports each: entry * positions_ + position. */
	std::vector<std::atomic<std::uint16_t>> mft_;
	CopyQueue copies_;
	/* SL-to-VL tables in wire format: in * (ports + 1) + out. */
	std::vector<std::atomic<std::uint64_t>> sl_to_vl_;

	/*
	 * The trap that waits for its TrapRepress: a number, which each change increments, and its
	 * TID.
	 */
	Mutex trap_mutex_;
	std::uint64_t trap_number_ WEFT_GUARDED_BY(trap_mutex_) = 0;
	unsigned trap_repeats_ WEFT_GUARDED_BY(trap_mutex_) = 0;
	bool trap_due_ WEFT_GUARDED_BY(trap_mutex_) = false;
};

} // namespace weft::fabric
