// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Who wants to hear of which traps (InformInfo, IBA 13.4.8.3), and the reports sent to them until
 * they acknowledge (IBA 13.4.11).
 */
#pragma once

#include <cstdint>
#include <list>
#include <map>

#include "sm/config.hpp"
#include "sm/mad_client.hpp"
#include "sm/records.hpp"
#include "sm/subnet.hpp"

namespace weft::sm
{

class Subscriptions
{
public:
	/* One port's of 65,536, and reports to it, which it may not answer. */
	static constexpr std::size_t subscriptions_of_one = 256;
	static constexpr std::size_t reports_to_one = 256;
	/* Reports that wait for their answer; beyond that subscribers miss some, each in turn. */
	static constexpr std::size_t reports_max = 4096;

	Subscriptions(MadClient &client, const Config &config) : client_(client), config_(config) {}

	/* Set(InformInfo): subscribe or unsubscribe. Returns the MAD status; edits the answer. */
	std::uint16_t set(const Subnet &subnet, const fabric::MadAddress &from, ib::SaMad &mad);
	/* Get and GetTable of InformInfoRecord. */
	RecordSet query(const Subnet &subnet, const ib::SaMad &mad) const;

	/* Report to all who asked for it. */
	void report(const Subnet &subnet, const ib::Notice &notice);
	/* A ReportResp arrived. */
	void acknowledged(const fabric::AddressedMad &mad);
	void subnet_changed(const Subnet &subnet);
	void tick(Clock::time_point now);
	Clock::time_point due() const;
	std::size_t size() const { return subscribers_.size(); }

private:
	struct Subscriber {
		ib::Guid port_guid;
		std::uint32_t qpn;
		ib::InformInfo info;
	};
	struct Report {
		ib::Guid port_guid;
		fabric::MadAddress to;
		ib::Mad mad;
		unsigned tries_left;
		Clock::time_point due;
	};
	static bool wants(const Subscriber &subscriber, const ib::Notice &notice);

	MadClient &client_;
	const Config &config_;
	/* In the order in which they are reported to. */
	std::list<Subscriber> subscribers_;
	/* Subscribers see them: no SMP's may follow from one. */
	std::uint64_t tid_ = 0;
	/* By transaction. */
	std::map<std::uint64_t, Report> reports_;
};

} // namespace weft::sm
