// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the interface through which programs that run outside any guest (weft attach) use a port
 * of a node of any type: they send and receive MADs on its QP0 and QP1, in addition to the node's
 * own agents, and read its attributes.
 */
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include <ib/smp.hpp>

#include "base/mutex.hpp"
#include "net/fabric/mad_packet.hpp"
#include "net/fabric/managed_port.hpp"

namespace weft::fabric
{

/* Attributes of a node and one of its ports. */
struct PortView {
	ib::NodeInfo node{};
	ib::PortInfo port{};
	std::vector<ib::Pkey> pkeys;
	std::array<ib::Guid, kGuidsPerBlock> guids{};
};

/*
 * Called on any thread, possibly within LocalAccess::send_mad(). An implementation may only enqueue
 * and wake.
 */
class LocalReceiver
{
public:
	virtual ~LocalReceiver() = default;
	/*
	 * Handles a MAD that the node's agents do not answer. Returns true if a program takes it.
	 * Otherwise the MAD is passed to the rest of the node, such as a guest.
	 */
	virtual bool receive(const AddressedMad &mad) = 0;
	/* The attributes that describe() returned may have changed. */
	virtual void port_changed() = 0;
};

/* Thread-safe. The functions do not block. */
class LocalAccess
{
public:
	virtual ~LocalAccess() = default;

	/*
	 * Null removes the receiver. A call to the previous receiver that has begun may still be
	 * running.
	 */
	virtual void set_receiver(std::shared_ptr<LocalReceiver> receiver) = 0;
	/*
	 * Sends a MAD from QP0 or QP1 (address.src_qp). A directed-route SMP without a preceding
	 * LID-routed part begins here. If it has no hops, it is for the node itself, and the
	 * response is delivered to the receiver. The source LID is the port's own with @path_bits.
	 * A MAD that cannot be sent is lost.
	 */
	virtual void send_mad(const MadAddress &address, std::uint8_t path_bits,
			      const ib::Mad &mad) = 0;
	/*
	 * Calls @done with the port's attributes, on any thread, possibly within the call. May
	 * never call it.
	 */
	virtual void describe(std::function<void(PortView &&)> done) = 0;
	/* Sets or clears IsSM of PortInfo. */
	virtual void set_is_sm(bool is_sm) = 0;
};

/* The receiver of a LocalAccess. */
class ReceiverSlot
{
public:
	void set(std::shared_ptr<LocalReceiver> receiver)
	{
		const MutexLock lock(mutex_);
		receiver_.swap(receiver);
	}
	bool empty() const { return !get(); }
	bool offer(const AddressedMad &mad) const
	{
		const auto receiver = get();
		return receiver && receiver->receive(mad);
	}
	void port_changed() const
	{
		if (const auto receiver = get())
			receiver->port_changed();
	}

private:
	std::shared_ptr<LocalReceiver> get() const
	{
		const MutexLock lock(mutex_);
		return receiver_;
	}

	mutable Mutex mutex_;
	std::shared_ptr<LocalReceiver> receiver_ WEFT_GUARDED_BY(mutex_);
};

/*
 * Returns true for a directed-route SMP whose route begins with a LID-routed part, in the direction
 * of the SMP.
 */
constexpr bool begins_by_lid(const ib::Smp &smp)
{
	return (smp.returning() ? smp.dr_dlid : smp.dr_slid) != ib::lid_permissive;
}

/* Returns true for the response to a directed-route SMP that the node has sent to itself. */
constexpr bool answers_itself(const ib::Smp &smp)
{
	return smp.returning() && smp.header.hop_cnt == 0 && smp.header.hop_ptr == 0;
}

} // namespace weft::fabric
