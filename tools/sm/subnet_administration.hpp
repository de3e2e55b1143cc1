// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Subnet administration, IBA 15: answers what end nodes ask of the subnet. Runs on the manager's
 * thread, over the subnet that the last complete sweep published.
 */
#pragma once

#include <memory>
#include <vector>

#include "sm/config.hpp"
#include "sm/garbler.hpp"
#include "sm/mc_groups.hpp"
#include "sm/rmpp_sender.hpp"
#include "sm/services.hpp"
#include "sm/subscriptions.hpp"

namespace weft::sm
{

class SubnetAdministration
{
public:
	SubnetAdministration(MadClient &client, const Config &config);

	/*
	 * A MAD of class SubnAdm. Joins and leaves are answered by release(), when the switches
	 * have learned of them.
	 */
	void handle(fabric::AddressedMad &&mad);
	/* Answer what waited for multicast tables. */
	void release();
	/* A sweep is complete; null while there is none (another manager is master). */
	void publish(std::shared_ptr<const Subnet> subnet);
	/* A trap came from a node, or something happened that subscribers may want to know. */
	void report(const ib::Notice &notice);

	void tick(Clock::time_point now);
	Clock::time_point due() const;

	McGroups &groups() { return groups_; }
	Garbler &garbler() { return garbler_; }

private:
	struct Waiting {
		fabric::MadAddress to;
		ib::SaMad mad;
	};

	void answer(const fabric::MadAddress &from, const ib::SaMad &request,
		    const RecordSet &records);
	void send(const fabric::MadAddress &to, ib::SaMad mad);
	void answer_status(const fabric::MadAddress &from, ib::SaMad mad, std::uint16_t status);
	RecordSet dispatch(const fabric::MadAddress &from, ib::SaMad &mad, bool &handled);
	Requester requester_of(const fabric::MadAddress &from, const ib::SaMad &mad) const;
	void report_group(const ib::Gid &mgid, bool created);
	static ib::ClassPortInfo class_port_info();

	MadClient &client_;
	const Config &config_;
	std::shared_ptr<const Subnet> subnet_;
	McGroups groups_;
	Services services_;
	Subscriptions subscriptions_;
	RmppSender rmpp_;
	Garbler garbler_;
	std::vector<Waiting> waiting_;
};

} // namespace weft::sm
