// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Manages subscriptions to traps (InformInfo, IBA 13.4.8.3), and sends the reports, which are
 * repeated until subscribers acknowledge them (IBA 13.4.11).
 */
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <unordered_map>

#include "sm/config.hpp"
#include "sm/due_index.hpp"
#include "sm/mad_client.hpp"
#include "sm/query.hpp"
#include "sm/subnet.hpp"

namespace weft::sm
{

class Subscriptions
{
public:
	/*
	 * Maximum number of subscriptions of one port, out of 65,536 in total, and of unanswered
	 * reports to it.
	 */
	static constexpr std::size_t kSubscriptionsOfOne = 256;
	static constexpr std::size_t kReportsToOne = 256;
	/* Maximum number of unanswered reports. Beyond it, subscribers miss reports in rotation. */
	static constexpr std::size_t kReportsMax = 4096;
	/*
	 * Maximum number of notices that wait to be reported, which is enough for all ports behind
	 * a large switch.
	 */
	static constexpr std::size_t kNoticesMax = 16384;

	Subscriptions(MadClient &client, const Config &config) : client_(client), config_(config) {}

	/*
	 * Handles Set(InformInfo), which subscribes or unsubscribes. Returns the MAD status, and
	 * updates the response.
	 */
	std::uint16_t set(const Subnet &subnet, const fabric::MadAddress &from, ib::SaMad &mad);
	/* Handles Get and GetTable of InformInfoRecord. */
	Query query(std::shared_ptr<const Subnet> subnet, const ib::SaMad &mad) const;

	/* Queues the notice for run(), which reports it to all subscribers. */
	void report(const ib::Notice &notice);
	/* Handles a ReportResp. */
	void acknowledged(const fabric::AddressedMad &mad);
	void subnet_changed(const Subnet &subnet);
	/* Sends reports. Repeats or drops reports that are due at @now. */
	void run(const Subnet &subnet, Clock::time_point now, Work &work);
	/* Returns when run() has something to do. */
	Clock::time_point due() const;
	std::size_t size() const { return count_; }

private:
	struct Subscriber;
	/* Subscribers in the order in which they get reports. */
	using Bucket = std::list<Subscriber *>;
	/* The trap number or a wildcard, with the bits of is_generic. */
	using BucketKey = std::uint32_t;
	struct Subscriber {
		ib::Guid port_guid;
		std::uint32_t qpn;
		ib::InformInfo info;
		BucketKey bucket;
		Bucket::iterator place;
	};
	struct Report {
		ib::Guid port_guid;
		fabric::MadAddress to;
		ib::Mad mad;
		unsigned tries_left;
		Clock::time_point due;
	};
	using Reports = std::map<std::uint64_t, Report>;

	static BucketKey bucket_of(bool generic, std::uint16_t trap)
	{
		return BucketKey{generic} << 16 | trap;
	}
	static bool wants(const Subscriber &subscriber, const ib::Notice &notice);
	void remove(const Subscriber &subscriber);
	/*
	 * Iterate over the subscribers that the first notice may match, one bucket after the other.
	 */
	void begin_notice();
	void begin_bucket(BucketKey key);
	/* Sends one report. Returns false if all subscribers have been handled. */
	bool report_next(const Subnet &subnet, Work &work);
	void send(const Subnet &subnet, PortRef port, const Subscriber &subscriber,
		  const ib::Notice &notice);
	void expire(std::uint64_t tid, Work &work);
	void end(Reports::iterator report);

	MadClient &client_;
	const Config &config_;
	/* Keyed by port, in the order of subscription. */
	std::map<ib::Guid, std::list<Subscriber>> ports_;
	std::map<BucketKey, Bucket> buckets_;
	std::size_t count_ = 0;
	/*
	 * TID of the next report. Subscribers see it, so it must not reveal anything about the TIDs
	 * of SMPs.
	 */
	std::uint64_t tid_ = 0;
	/* Keyed by transaction. */
	Reports reports_;
	std::unordered_map<ib::Guid, std::size_t> reports_to_;
	DueIndex<std::uint64_t> due_;
	LineBudget overflow_log_;

	std::deque<ib::Notice> notices_;
	/* State of reporting the first notice. */
	bool begun_ = false;
	bool last_bucket_ = false;
	Bucket *bucket_ = nullptr;
	Bucket::iterator next_;
};

} // namespace weft::sm
