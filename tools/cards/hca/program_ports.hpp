// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Gives programs on the host (weft attach) access to a card's ports, in addition to the guest's
// driver. Programs and driver share the port's LID and GID for the MADs that they send and receive.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/loop.hpp"
#include "base/mutex.hpp"
#include "cards/hca/port.hpp"
#include "cards/hca/subnet_agent.hpp"
#include "cards/hca/transport.hpp"
#include "net/fabric/egress_queue.hpp"
#include "net/fabric/local_access.hpp"

namespace weft::hca
{

// One port. It exists as long as the card. While a guest is connected, it uses the card's state.
// Otherwise it has the attributes after power-on, and MADs are lost.
class ProgramPort final : public fabric::LocalAccess
{
public:
	explicit ProgramPort(fabric::PortView at_power_on);

	/* --- LocalAccess, on any thread --- */

	void set_receiver(std::shared_ptr<fabric::LocalReceiver> receiver) override
	{
		receiver_.set(std::move(receiver));
	}
	void send_mad(const fabric::MadAddress &address, std::uint8_t path_bits,
		      const ib::Mad &mad) override;
	void describe(std::function<void(fabric::PortView &&)> done) override;
	void set_is_sm(bool is_sm) override;

	/* --- on the card's loop --- */

	// All arguments must outlive the connection. No packet may arrive during disconnect().
	void connect(Loop &loop, CardPort &port, Transport &transport, SubnetAgent &subnet);
	void disconnect();
	// Discards MADs that were not sent.
	void drop();
	// Offers a packet for QP0 or QP1 to the programs. Returns false if the packet is for the
	// driver.
	bool offer(const fabric::Packet &packet);
	void credit_available(std::uint8_t vl);
	void changed() const { receiver_.port_changed(); }
	// Returns true while the card's agent handles an SMP of a program on this node.
	bool managing() const { return managing_; }

private:
	// Updates the hop pointer and the return path of a received directed-route SMP, from which
	// a response takes its route. Returns false if the route does not end here.
	bool has_arrived(ib::Mad &mad) const;

	struct Outgoing {
		fabric::MadAddress address;
		std::uint8_t path_bits;
		ib::Mad mad;
	};
	// The state of the card, which exists while a guest is connected.
	struct Connection {
		Connection(Loop &loop, CardPort &card_port, Transport &data_path,
			   SubnetAgent &agent, std::function<void()> handler)
		    : port(card_port), transport(data_path), subnet(agent),
		      egress(card_port.fabric_port()), wakeup(loop, std::move(handler))
		{
		}

		CardPort &port;
		Transport &transport;
		SubnetAgent &subnet;
		fabric::EgressQueue egress;
		Wakeup wakeup;
	};

	// Executes requests of programs, a limited number of sends at a time.
	void work();
	void send(const Outgoing &mad);
	void send_directed(ib::Smp smp);
	void send_to_self(const fabric::MadAddress &address, const ib::Mad &mad);
	// Passes an SMP of this node to the card's agent. Returns true if there is a response.
	bool answer(ib::Smp &smp, ib::Lid slid);
	void transmit(const fabric::MadAddress &address, const ib::Mad &mad);

	const fabric::PortView at_power_on_;
	fabric::ReceiverSlot receiver_;

	Mutex mutex_;
	bool connected_ WEFT_GUARDED_BY(mutex_) = false;
	bool is_sm_ WEFT_GUARDED_BY(mutex_) = false;
	std::vector<Outgoing> outgoing_ WEFT_GUARDED_BY(mutex_);
	std::vector<std::function<void(fabric::PortView &&)>> asked_ WEFT_GUARDED_BY(mutex_);

	// Changed only on the loop, with the lock held. It can therefore be read on the loop
	// without the lock, and on any thread with the lock.
	std::optional<Connection> connection_;
	std::vector<Outgoing> batch_; // taken from outgoing_
	std::size_t next_ = 0;        // index of the first MAD that was not sent
	bool managing_ = false;
};

class ProgramPorts
{
public:
	// @ports are the ports of the card after power-on.
	ProgramPorts(const fabric::NodeIdentity &identity,
		     const std::vector<std::unique_ptr<CardPort>> &ports);

	// Returns all ports, in order.
	std::vector<fabric::LocalAccess *> access() const;
	// @number is the port number, from 1 on.
	ProgramPort &port(unsigned number) const { return *ports_[number - 1]; }

private:
	std::vector<std::unique_ptr<ProgramPort>> ports_;
};

} // namespace weft::hca
