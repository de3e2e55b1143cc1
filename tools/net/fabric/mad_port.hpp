// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements a software end node for management: a CA with one port. The node's SMA and PMA answer
 * the MADs that are addressed to them. A program (the subnet manager or a test) sends and receives
 * other MADs on QP0 and QP1.
 */
#pragma once

#include <functional>
#include <string>

#include "net/fabric/egress_queue.hpp"
#include "net/fabric/local_access.hpp"
#include "net/fabric/mad_packet.hpp"
#include "net/fabric/port.hpp"
#include "net/fabric/node_agent.hpp"

namespace weft::fabric
{

class MadPort final : public LocalAccess, private PortSink, private SubnetAgentHost
{
public:
	struct Config {
		std::string description = "weft";
		ib::Guid node_guid = 0;
		/* True if IsSM is set in PortInfo's capability mask from the start. */
		bool is_sm = false;
		ib::Mtu mtu = ib::Mtu::mtu_4096;
		/* Environment that provides its time. */
		const Environment *environment = &Environment::host();
	};

	struct Handlers {
		/*
		 * Called with a MAD that the node's agents do not answer, or that the node has sent
		 * to itself. Called on any thread; a handler may only enqueue and wake.
		 */
		std::function<void(AddressedMad &&)> received;
		/*
		 * Called when the attributes or the link of the port have changed. Called on any
		 * thread; a handler may only enqueue and wake.
		 */
		std::function<void()> port_changed;
	};

	/* Attaches to the port and enables it. The port must outlive this. */
	MadPort(Port &port, const Config &config, Handlers handlers);
	MadPort(const MadPort &) = delete;
	MadPort &operator=(const MadPort &) = delete;
	~MadPort() override;

	/*
	 * Sends a directed-route SMP along its initial path, or its return path if it is a response
	 * (D bit). Never blocks. Returns false if the link is down or the SMP has no directed
	 * route.
	 */
	bool send_directed(const ib::Smp &smp);
	/*
	 * Sends a MAD by LID from QP 0 or 1 (address.src_qp). The source LID and the VL are filled
	 * in, and for QP1 the port's own P_Key of the address's partition. Returns false if it
	 * cannot be sent.
	 */
	bool send(MadAddress address, const ib::Mad &mad);

	ib::Guid guid() const { return config_.node_guid; }
	ib::PortInfo port_info() const { return agent_.port_info(1); }
	ib::Gid gid() const;
	bool has_lid(ib::Lid lid) const;
	/* Returns the port's own P_Key that matches this one (IBA 10.9.3). */
	std::optional<ib::Pkey> own_pkey(ib::Pkey pkey) const { return agent_.match_pkey(1, pkey); }
	const Port &port() const { return port_; }

	/* LocalAccess: its receiver is called before the handlers. */
	void set_receiver(std::shared_ptr<LocalReceiver> receiver) override
	{
		receiver_.set(std::move(receiver));
	}
	void send_mad(const MadAddress &address, std::uint8_t path_bits,
		      const ib::Mad &mad) override;
	void describe(std::function<void(PortView &&)> done) override;
	void set_is_sm(bool is_sm) override;

private:
	/* PortSink */
	void receive(Packet &&packet) override;
	void link_changed(bool up) override;
	void credit_available(std::uint8_t vl) override { egress_.drain(vl); }
	/* SubnetAgentHost */
	Clock::time_point now() const override { return config_.environment->now(); }
	void port_info_set(const ManagedPort &port, const ib::PortInfo &before,
			   bool reregister) override;
	void pkeys_set(const ManagedPort &, unsigned, std::uint32_t) override
	{
		receiver_.port_changed();
	}
	void guids_set(const ManagedPort &, std::uint32_t) override { receiver_.port_changed(); }

	bool send_from(ib::Lid slid, MadAddress address, const ib::Mad &mad);
	/* Delivers MADs that the node's agents do not answer. */
	void deliver(AddressedMad &&mad);
	void handle_gmp(AddressedMad &&mad);
	void handle_smp(AddressedMad &&mad);
	/* Delivers a directed-route SMP to this node itself. */
	void loop_back(const ib::Smp &smp);
	bool transmit(Packet &&packet);

	Port &port_;
	const Config config_;
	const Handlers handlers_;
	ReceiverSlot receiver_;
	NodeAgent agent_;
	EgressQueue egress_;
};

} // namespace weft::fabric
