// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "sm/subscriptions.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include <spdlog/spdlog.h>

namespace weft::sm
{

namespace
{

using namespace std::chrono_literals;
using ib::InformInfo;

constexpr auto report_timeout = 1000ms;
constexpr unsigned report_retries = 3;
constexpr std::size_t subscribers_max = 65536;

/* What tells one subscription from another: all but the order to subscribe or not. */
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
	auto existing = std::find_if(
		subscribers_.begin(), subscribers_.end(), [&](const Subscriber &subscriber) {
			return subscriber.port_guid == guid && subscriber.qpn == qpn &&
			       same_interest(subscriber.info, info);
		});
	if (info.subscribe == 0) {
		/* IBA 13.4.8.3: to unsubscribe what is not there is an error. */
		if (existing == subscribers_.end())
			return ib::sa_status_req_invalid;
		subscribers_.erase(existing);
		return ib::mad_status_ok;
	}
	if (existing == subscribers_.end()) {
		const auto its = static_cast<std::size_t>(
			std::ranges::count(subscribers_, guid, &Subscriber::port_guid));
		if (subscribers_.size() >= subscribers_max || its >= subscriptions_of_one)
			return ib::sa_status_no_resources;
		subscribers_.push_back({guid, qpn, info});
	}
	return ib::mad_status_ok;
}

RecordSet Subscriptions::query(const Subnet &subnet, const ib::SaMad &mad) const
{
	static constexpr Field fields[] = {{ib::InformInfoRecord::c_subscriber_gid, 0, 128},
					   {ib::InformInfoRecord::c_enumeration, 128, 16}};
	RecordSet answer;
	std::map<ib::Guid, std::uint16_t> next;
	for (const Subscriber &subscriber : subscribers_) {
		if (!subnet.find_port(subscriber.port_guid))
			continue;
		ib::InformInfoRecord record{};
		record.subscriber_gid =
			ib::Gid::from_parts(config_.gid_prefix, subscriber.port_guid);
		record.enumeration = next[subscriber.port_guid]++;
		record.info = subscriber.info;
		record.info.qpn_resp_time = subscriber.qpn << 8;
		if (fields_match(fields, mad.component_mask, mad.data, &record))
			answer.add(record);
	}
	return answer;
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
	/* FFFFh begins the range "all". */
	return info.lid_begin == InformInfo::any || info.lid_begin == 0 ||
	       (notice.issuer_lid >= info.lid_begin && notice.issuer_lid <= info.lid_end);
}

void Subscriptions::report(const Subnet &subnet, const ib::Notice &notice)
{
	std::unordered_map<ib::Guid, unsigned> under_way;
	for (const auto &[tid, report] : reports_)
		under_way[report.port_guid]++;
	for (auto at = subscribers_.begin(); at != subscribers_.end(); ++at) {
		const Subscriber &subscriber = *at;
		PortRef port = subnet.find_port(subscriber.port_guid);
		if (!port || !wants(subscriber, notice))
			continue;
		if (under_way[subscriber.port_guid]++ >= reports_to_one)
			continue;
		if (reports_.size() >= reports_max) {
			spdlog::warn("sm: too many reports under way");
			/* Who misses this one is first at the next: not always the same. */
			subscribers_.splice(subscribers_.end(), subscribers_, subscribers_.begin(),
					    at);
			return;
		}
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
		report.tries_left = report_retries;
		report.due = client_.now() + report_timeout;
		client_.send(report.to, report.mad);
		reports_.emplace(mad.header.tid, report);
	}
}

void Subscriptions::acknowledged(const fabric::AddressedMad &mad)
{
	auto report = reports_.find(mad.mad.header.tid);
	/* Transactions can be guessed: only whom it was sent to may say that it arrived. */
	if (report != reports_.end() && report->second.to.dlid == mad.address.slid)
		reports_.erase(report);
}

void Subscriptions::subnet_changed(const Subnet &subnet)
{
	subscribers_.remove_if([&](const Subscriber &subscriber) {
		return !subnet.find_port(subscriber.port_guid);
	});
}

void Subscriptions::tick(Clock::time_point now)
{
	for (auto it = reports_.begin(); it != reports_.end();) {
		Report &report = it->second;
		if (report.due > now) {
			++it;
		} else if (report.tries_left-- == 0) {
			spdlog::info("sm: LID {} does not answer a report", report.to.dlid);
			it = reports_.erase(it);
		} else {
			report.due = now + report_timeout;
			client_.send(report.to, report.mad);
			++it;
		}
	}
}

Clock::time_point Subscriptions::due() const
{
	auto soonest = Clock::time_point::max();
	for (const auto &[tid, report] : reports_)
		soonest = std::min(soonest, report.due);
	return soonest;
}

} // namespace weft::sm
