// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "sm/subscriptions.hpp"

#include <cstring>
#include <optional>
#include <utility>

#include <spdlog/spdlog.h>

namespace weft::sm
{

namespace
{

using namespace std::chrono_literals;
using ib::InformInfo;

constexpr auto kReportTimeout = 1000ms;
constexpr unsigned kReportRetries = 3;
constexpr std::size_t kSubscribersMax = 65536;

/*
 * Compares all fields that identify a subscription, without the field that subscribes or
 * unsubscribes.
 */
bool same_interest(const InformInfo &a, const InformInfo &b)
{
	return a.gid == b.gid && a.lid_begin == b.lid_begin && a.lid_end == b.lid_end &&
	       a.is_generic == b.is_generic && a.type == b.type && a.trap_number == b.trap_number &&
	       std::uint32_t{a.producer} == std::uint32_t{b.producer};
}

} // namespace

std::uint16_t Subscriptions::set(const Subnet &subnet, const fabric::MadAddress &from,
				 ib::SaMad &mad)
{
	auto &info = *reinterpret_cast<InformInfo *>(mad.data);
	if (info.subscribe > 1)
		return ib::sa_status_req_invalid;
	PortRef port = subnet.find_lid(from.slid);
	if (!port)
		return ib::sa_status_req_invalid;
	ib::Guid guid = subnet.port(port).guid;
	std::uint32_t qpn = from.src_qp;
	auto its = ports_.find(guid);
	const std::size_t its_count = its == ports_.end() ? 0 : its->second.size();
	const Subscriber *existing = nullptr;
	if (its != ports_.end())
		for (const Subscriber &subscriber : its->second)
			if (subscriber.qpn == qpn && same_interest(subscriber.info, info))
				existing = &subscriber;
	if (info.subscribe == 0) {
		/* IBA 13.4.8.3: it is an error to cancel a subscription that does not exist. */
		if (!existing)
			return ib::sa_status_req_invalid;
		remove(*existing);
		its->second.remove_if([&](const Subscriber &each) { return &each == existing; });
		if (its->second.empty())
			ports_.erase(its);
		return ib::mad_status_ok;
	}
	if (existing)
		return ib::mad_status_ok;
	if (count_ >= kSubscribersMax || its_count >= kSubscriptionsOfOne)
		return ib::sa_status_no_resources;
	Subscriber &subscriber = ports_[guid].emplace_back();
	subscriber = {guid, qpn, info, bucket_of(info.is_generic != 0, info.trap_number), {}};
	Bucket &bucket = buckets_[subscriber.bucket];
	subscriber.place = bucket.insert(bucket.end(), &subscriber);
	count_++;
	return ib::mad_status_ok;
}

/* Removes the subscriber from its bucket, but not from the list of its port. */
void Subscriptions::remove(const Subscriber &subscriber)
{
	const auto bucket = buckets_.find(subscriber.bucket);
	if (bucket_ == &bucket->second && next_ == subscriber.place)
		++next_;
	bucket->second.erase(subscriber.place);
	count_--;
	if (!bucket->second.empty())
		return;
	if (bucket_ == &bucket->second)
		bucket_ = nullptr;
	buckets_.erase(bucket);
}

Query Subscriptions::query(std::shared_ptr<const Subnet> subnet, const ib::SaMad &mad) const
{
	/* Each step processes one port. */
	return Query([this, subnet = std::move(subnet), mad,
		      last = std::optional<ib::Guid>()](RecordSet &answer, Work &work) mutable {
		static constexpr Field kFields[] = {
			{ib::InformInfoRecord::c_subscriber_gid, 0, 128},
			{ib::InformInfoRecord::c_enumeration, 128, 16}};
		const auto port = last ? ports_.upper_bound(*last) : ports_.begin();
		if (port == ports_.end())
			return Query::Step::done;
		last = port->first;
		work.charge(cost::kCompared);
		if (!subnet->find_port(port->first))
			return Query::Step::more;
		std::uint16_t number = 0;
		for (const Subscriber &subscriber : port->second) {
			ib::InformInfoRecord record{};
			record.subscriber_gid =
				ib::Gid::from_parts(config_.gid_prefix, subscriber.port_guid);
			record.enumeration = number++;
			record.info = subscriber.info;
			record.info.qpn_resp_time = subscriber.qpn << 8;
			work.charge(cost::kCompared);
			if (fields_match(kFields, mad.component_mask, mad.data, &record))
				answer.add(record);
		}
		return Query::Step::more;
	});
}

bool Subscriptions::wants(const Subscriber &subscriber, const ib::Notice &notice)
{
	const InformInfo &info = subscriber.info;
	if ((info.is_generic != 0) != notice.is_generic())
		return false;
	if (info.type != InformInfo::any && info.type != notice.type())
		return false;
	if (info.trap_number != InformInfo::any && info.trap_number != notice.trap_number)
		return false;
	std::uint32_t producer = info.producer;
	if (producer != InformInfo::any_producer && producer != std::uint32_t{notice.producer})
		return false;
	if (!info.gid.is_zero())
		return info.gid == notice.issuer_gid;
	/* FFFFh at the beginning of a range means all LIDs. */
	return info.lid_begin == InformInfo::any || info.lid_begin == 0 ||
	       (notice.issuer_lid >= info.lid_begin && notice.issuer_lid <= info.lid_end);
}

void Subscriptions::report(const ib::Notice &notice)
{
	if (count_ == 0)
		return;
	if (notices_.size() >= kNoticesMax) {
		const auto taken = overflow_log_.take(client_.now());
		if (taken.allowed)
			spdlog::warn("sm: too many notices to report{}",
				     withheld_text(taken.withheld));
		return;
	}
	notices_.push_back(notice);
}

void Subscriptions::begin_bucket(BucketKey key)
{
	const auto found = buckets_.find(key);
	bucket_ = found == buckets_.end() ? nullptr : &found->second;
	if (bucket_)
		next_ = bucket_->begin();
}

void Subscriptions::begin_notice()
{
	const ib::Notice &notice = notices_.front();
	begun_ = true;
	/*
	 * The subscribers to any trap are the second and last bucket. If the number in the trap is
	 * itself the value for any trap, there is no other bucket.
	 */
	last_bucket_ = notice.trap_number == InformInfo::any;
	begin_bucket(bucket_of(notice.is_generic(), notice.trap_number));
}

bool Subscriptions::report_next(const Subnet &subnet, Work &work)
{
	const ib::Notice &notice = notices_.front();
	work.charge(cost::kCompared);
	if (!begun_)
		begin_notice();
	if (!bucket_ || next_ == bucket_->end()) {
		if (std::exchange(last_bucket_, true))
			return false;
		begin_bucket(bucket_of(notice.is_generic(), InformInfo::any));
		return true;
	}
	const auto at = next_++;
	const Subscriber &subscriber = **at;
	PortRef port = subnet.find_port(subscriber.port_guid);
	if (!port || !wants(subscriber, notice))
		return true;
	const auto under_way = reports_to_.find(subscriber.port_guid);
	if (under_way != reports_to_.end() && under_way->second >= kReportsToOne)
		return true;
	if (reports_.size() >= kReportsMax) {
		const auto taken = overflow_log_.take(client_.now());
		if (taken.allowed)
			spdlog::warn("sm: too many reports under way{}",
				     withheld_text(taken.withheld));
		/* Subscribers that miss this report are the first ones to get the next one. */
		bucket_->splice(bucket_->end(), *bucket_, bucket_->begin(), at);
		return false;
	}
	send(subnet, port, subscriber, notice);
	work.charge(cost::kMadSent);
	return true;
}

void Subscriptions::send(const Subnet &subnet, PortRef port, const Subscriber &subscriber,
			 const ib::Notice &notice)
{
	ib::SaMad mad{};
	mad.header.base_version = ib::mad_base_version;
	mad.header.mgmt_class = static_cast<std::uint8_t>(ib::MgmtClass::subn_adm);
	mad.header.class_version = ib::sa_class_version;
	mad.header.method = static_cast<std::uint8_t>(ib::MadMethod::report);
	mad.header.tid = ++tid_;
	mad.header.attr_id = std::uint16_t{ib::attr_notice};
	std::memcpy(mad.data, &notice, sizeof(notice));
	Report report{};
	report.port_guid = subscriber.port_guid;
	report.to.dlid = subnet.port(port).lid;
	report.to.src_qp = ib::qpn_gsi;
	report.to.dest_qp = subscriber.qpn;
	report.to.qkey = ib::qkey_gsi;
	report.mad = reinterpret_cast<const ib::Mad &>(mad);
	report.tries_left = kReportRetries;
	report.due = client_.now() + kReportTimeout;
	client_.send(report.to, report.mad);
	due_.add(report.due, tid_);
	reports_to_[report.port_guid]++;
	reports_.emplace(tid_, report);
}

void Subscriptions::end(Reports::iterator report)
{
	due_.remove(report->second.due, report->first);
	const auto its = reports_to_.find(report->second.port_guid);
	if (--its->second == 0)
		reports_to_.erase(its);
	reports_.erase(report);
}

void Subscriptions::acknowledged(const fabric::AddressedMad &mad)
{
	auto report = reports_.find(mad.mad.header.tid);
	/*
	 * Transaction IDs can be guessed, so a response must come from the receiver of the report.
	 */
	if (report != reports_.end() && report->second.to.dlid == mad.address.slid)
		end(report);
}

void Subscriptions::subnet_changed(const Subnet &subnet)
{
	std::erase_if(ports_, [&](const auto &port) {
		if (subnet.find_port(port.first))
			return false;
		for (const Subscriber &subscriber : port.second)
			remove(subscriber);
		return true;
	});
}

void Subscriptions::run(const Subnet &subnet, Clock::time_point now, Work &work)
{
	while (work.left()) {
		if (const auto tid = due_.take_due(now)) {
			expire(*tid, work);
		} else if (!notices_.empty()) {
			if (!report_next(subnet, work)) {
				notices_.pop_front();
				begun_ = false;
				bucket_ = nullptr;
			}
		} else {
			return;
		}
	}
}

void Subscriptions::expire(std::uint64_t tid, Work &work)
{
	const auto found = reports_.find(tid);
	Report &report = found->second;
	work.charge(cost::kCompared);
	if (report.tries_left-- == 0) {
		client_.log().info(report.to.dlid, client_.now(), "LID {} does not answer a report",
				   report.to.dlid);
		return end(found);
	}
	report.due = client_.now() + kReportTimeout;
	due_.add(report.due, tid);
	client_.send(report.to, report.mad);
	work.charge(cost::kMadSent);
}

Clock::time_point Subscriptions::due() const
{
	return notices_.empty() ? due_.first() : Clock::time_point::min();
}

} // namespace weft::sm
