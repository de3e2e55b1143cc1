// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements subnet administration (IBA 15), which answers requests of end nodes about the subnet.
 * It runs on the manager's thread and uses the subnet that the last complete sweep has published.
 * All work for requests is done in bounded steps whose cost is counted (work.hpp).
 */
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sm/config.hpp"
#include "sm/configurator.hpp"
#include "sm/fair_queue.hpp"
#include "sm/reply_corrupter.hpp"
#include "sm/mc_groups.hpp"
#include "sm/rmpp_sender.hpp"
#include "sm/services.hpp"
#include "sm/subscriptions.hpp"

namespace weft::sm
{

class SubnetAdministration
{
public:
	/* A delayed answer to a join or leave, and its requester. */
	struct Waiting {
		fabric::MadAddress to;
		ib::SaMad mad;
	};

	SubnetAdministration(MadClient &client, const Config &config,
			     const Configurator &configurator);

	/*
	 * Handles a MAD of class SubnAdm. Returns a job that computes the response, for finish()
	 * when its query is complete. Returns nothing if no job is needed. Joins and leaves are
	 * answered by release(), after the switches have been programmed.
	 */
	std::optional<Job> handle(fabric::AddressedMad &&mad, Work &work);
	void finish(const Job &job, Work &work);
	/* Returns the answers that wait for the current multicast tables, for release(). */
	std::vector<Waiting> take_waiting() { return std::exchange(waiting_, {}); }
	void release(const std::vector<Waiting> &answers);
	/* Uses the result of a complete sweep. Null means that another manager is master. */
	void publish(std::shared_ptr<const Subnet> subnet);
	/* Reports a trap of a node, or another event, to subscribers. */
	void report(const ib::Notice &notice);

	/* Sends segments and reports, and handles timeouts that are due at @now. */
	void run(Clock::time_point now, Work &work);
	/* Returns when run() has work to do. */
	Clock::time_point due() const;

	McGroups &groups() { return groups_; }
	ReplyCorrupter &reply_corrupter() { return reply_corrupter_; }

private:
	void answer(const fabric::MadAddress &from, const ib::SaMad &request,
		    const RecordSet &records, Work &work);
	void send(const fabric::MadAddress &to, ib::SaMad mad);
	void answer_status(const fabric::MadAddress &from, ib::SaMad mad, std::uint16_t status,
			   Work &work);
	/*
	 * Returns the query that answers the request, or nothing if the request was already
	 * handled.
	 */
	std::optional<Query> dispatch(const fabric::MadAddress &from, ib::SaMad &mad, Work &work);
	Requester requester_of(const fabric::MadAddress &from, const ib::SaMad &mad) const;
	void report_group(const ib::Gid &mgid, bool created);
	static ib::ClassPortInfo class_port_info();

	MadClient &client_;
	const Config &config_;
	const Configurator &configurator_;
	std::shared_ptr<const Subnet> subnet_;
	McGroups groups_;
	Services services_;
	Subscriptions subscriptions_;
	RmppSender rmpp_;
	ReplyCorrupter reply_corrupter_;
	std::vector<Waiting> waiting_;
	/* True if reports are sent before segments. The order alternates. */
	bool reports_first_ = false;
};

} // namespace weft::sm
