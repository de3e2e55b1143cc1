// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "sm/subnet_administration.hpp"

#include <cstring>
#include <utility>

#include <spdlog/spdlog.h>

#include "sm/paths.hpp"
#include "sm/tables.hpp"

namespace weft::sm
{

using ib::MadMethod;

SubnetAdministration::SubnetAdministration(MadClient &client, const Config &config,
					   const Configurator &configurator)
    : client_(client), config_(config), configurator_(configurator),
      groups_(config, client.log(),
	      [this](const ib::Gid &mgid, bool created) { report_group(mgid, created); }),
      subscriptions_(client, config), rmpp_(client)
{
}

void SubnetAdministration::publish(std::shared_ptr<const Subnet> subnet)
{
	std::shared_ptr<const Subnet> before = std::exchange(subnet_, std::move(subnet));
	if (!subnet_) {
		waiting_.clear();
		return;
	}
	groups_.subnet_changed(*subnet_);
	services_.subnet_changed(*subnet_);
	subscriptions_.subnet_changed(*subnet_);
	/* Traps 64 and 65 report ports that have appeared and disappeared (IBA 14.2.5.1). */
	auto announce = [&](std::uint16_t trap, ib::Guid guid) {
		ib::Notice notice{};
		notice.generic_type = static_cast<std::uint8_t>(ib::Notice::generic_bit) |
				      static_cast<std::uint8_t>(ib::NoticeType::subnet_management);
		notice.producer = static_cast<std::uint32_t>(ib::NodeType::channel_adapter);
		notice.trap_number = trap;
		reinterpret_cast<ib::GidDetails *>(notice.details)->gid =
			ib::Gid::from_parts(config_.gid_prefix, guid);
		report(notice);
	};
	if (!before)
		return;
	for (PortRef ref : subnet_->end_ports)
		if (!before->find_port(subnet_->port(ref).guid))
			announce(ib::trap_gid_in_service, subnet_->port(ref).guid);
	for (PortRef ref : before->end_ports)
		if (!subnet_->find_port(before->port(ref).guid))
			announce(ib::trap_gid_out_of_service, before->port(ref).guid);
}

void SubnetAdministration::report_group(const ib::Gid &mgid, bool created)
{
	ib::Notice notice{};
	notice.generic_type = static_cast<std::uint8_t>(ib::Notice::generic_bit) |
			      static_cast<std::uint8_t>(ib::NoticeType::subnet_management);
	notice.producer = static_cast<std::uint32_t>(ib::NodeType::channel_adapter);
	notice.trap_number = created ? std::uint16_t{ib::trap_mcast_group_created}
				     : std::uint16_t{ib::trap_mcast_group_deleted};
	reinterpret_cast<ib::GidDetails *>(notice.details)->gid = mgid;
	report(notice);
}

void SubnetAdministration::report(const ib::Notice &original)
{
	if (!subnet_)
		return;
	ib::Notice notice = original;
	if (notice.issuer_lid == 0)
		notice.issuer_lid = client_.mads().port_info().lid;
	PortRef issuer = subnet_->find_lid(notice.issuer_lid);
	if (issuer)
		notice.issuer_gid =
			ib::Gid::from_parts(config_.gid_prefix, subnet_->port(issuer).guid);
	subscriptions_.report(notice);
}

Requester SubnetAdministration::requester_of(const fabric::MadAddress &from,
					     const ib::SaMad &mad) const
{
	PortRef port = subnet_->find_lid(from.slid);
	return {port ? subnet_->port(port).guid : ib::Guid{0},
		config_.sa_key != 0 && mad.sm_key == config_.sa_key, from.slid};
}

std::optional<Job> SubnetAdministration::handle(fabric::AddressedMad &&received, Work &work)
{
	auto &mad = reinterpret_cast<ib::SaMad &>(received.mad);
	const ib::MadHeader &header = mad.header;
	/* This manager is not master, so it does not answer. Clients then find the master. */
	if (!subnet_)
		return std::nullopt;
	if (header.is_method(MadMethod::report_resp)) {
		subscriptions_.acknowledged(received);
		return std::nullopt;
	}
	bool rmpp = (mad.rmpp.flags() & ib::RmppHeader::active) != 0;
	if (rmpp && mad.rmpp.type != ib::RmppHeader::data) {
		rmpp_.handle(received);
		return std::nullopt;
	}
	if (header.is_response())
		return std::nullopt;
	if (header.base_version != ib::mad_base_version ||
	    header.class_version != ib::sa_class_version) {
		answer_status(received.address, mad, ib::mad_status_bad_version, work);
		return std::nullopt;
	}
	std::optional<Query> query = dispatch(received.address, mad, work);
	if (!query)
		return std::nullopt;
	return Job{std::move(received), std::move(*query)};
}

void SubnetAdministration::finish(const Job &job, Work &work)
{
	if (subnet_)
		answer(job.request.address, reinterpret_cast<const ib::SaMad &>(job.request.mad),
		       job.query.answer(), work);
}

std::optional<Query> SubnetAdministration::dispatch(const fabric::MadAddress &from, ib::SaMad &mad,
						    Work &work)
{
	const Subnet &subnet = *subnet_;
	auto method = static_cast<MadMethod>(mad.header.method);
	std::uint16_t attribute = mad.header.attr_id;
	bool read = method == MadMethod::get || method == MadMethod::get_table;
	const Requester requester = requester_of(from, mad);

	switch (attribute) {
	case ib::attr_class_port_info:
		if (method == MadMethod::get) {
			ib::ClassPortInfo info = class_port_info();
			std::memset(mad.data, 0, sizeof(mad.data));
			std::memcpy(mad.data, &info, sizeof(info));
			answer_status(from, mad, ib::mad_status_ok, work);
			return std::nullopt;
		}
		break;
	case ib::attr_inform_info:
		if (method == MadMethod::set) {
			std::uint16_t status = subscriptions_.set(subnet, from, mad);
			work.charge(Subscriptions::kSubscriptionsOfOne * cost::kCompared / 4);
			answer_status(from, mad, status, work);
			return std::nullopt;
		}
		break;
	case ib::attr_inform_info_record:
		if (read)
			return subscriptions_.query(subnet_, mad);
		break;
	case ib::attr_path_record:
		if (read)
			return find_paths(subnet_, config_, groups_, mad,
					  subnet.find_lid(from.slid));
		break;
	case ib::attr_mc_member_record:
		if (read)
			return groups_.query(requester, mad);
		if (method == MadMethod::set)
			return Query(groups_.join(subnet, requester, mad, client_.now(), work));
		if (method == MadMethod::remove)
			return Query(groups_.leave(requester, mad, work));
		break;
	case ib::attr_service_record:
		if (read)
			return services_.query(mad);
		if (method == MadMethod::set)
			return Query(services_.add(requester, mad, client_.now()));
		if (method == MadMethod::remove)
			return Query(services_.remove(requester, mad));
		break;
	default:
		if (read)
			if (auto query = query_table({subnet_, configurator_, config_}, mad,
						     requester.trusted))
				return query;
		break;
	}
	return Query(RecordSet::failure(ib::mad_status_unsupported_method_attribute));
}

ib::ClassPortInfo SubnetAdministration::class_port_info()
{
	ib::ClassPortInfo info{};
	info.base_version = ib::mad_base_version;
	info.class_version = ib::sa_class_version;
	info.capability_mask =
		static_cast<std::uint16_t>(ib::sa_cap_ud_multicast | ib::sa_cap_optional_records);
	/* Response time: 4.096 us * 2^18, about a second. */
	info.capability2_resp_time = std::uint32_t{ib::sa_cap2_send_only_full_member} << 5 | 18;
	return info;
}

void SubnetAdministration::answer_status(const fabric::MadAddress &from, ib::SaMad mad,
					 std::uint16_t status, Work &work)
{
	work.charge(cost::kMadSent);
	bool remove = mad.header.is_method(MadMethod::remove);
	bool table = mad.header.is_method(MadMethod::get_table);
	mad.header.method = static_cast<std::uint8_t>(remove  ? MadMethod::remove_resp
						      : table ? MadMethod::get_table_resp
							      : MadMethod::get_resp);
	mad.header.status = status;
	mad.rmpp = {};
	mad.sm_key = std::uint64_t{0};
	fabric::MadAddress to = from.reversed();
	to.qkey = ib::qkey_gsi;
	bool joins =
		mad.header.attr_id == ib::attr_mc_member_record && status == 0 && groups_.changed();
	if (joins)
		waiting_.push_back({to, mad});
	else
		send(to, mad);
}

void SubnetAdministration::send(const fabric::MadAddress &to, ib::SaMad mad)
{
	reply_corrupter_.pass(mad);
	client_.send(to, reinterpret_cast<const ib::Mad &>(mad));
}

void SubnetAdministration::answer(const fabric::MadAddress &from, const ib::SaMad &request,
				  const RecordSet &records, Work &work)
{
	ib::SaMad mad = request;
	bool table = request.header.is_method(MadMethod::get_table);
	std::uint16_t status = records.status();
	if (status == 0 && !table && records.count() == 0)
		status = ib::sa_status_no_records;
	/* A Get requires exactly one record, but several match (IBA 15.4.5). */
	if (status == 0 && !table && records.count() > 1)
		status = ib::sa_status_too_many_records;
	mad.attr_offset = static_cast<std::uint16_t>(records.stride() / 8);
	if (status == 0 && table) {
		mad.header.method = static_cast<std::uint8_t>(MadMethod::get_table_resp);
		mad.header.status = std::uint16_t{0};
		mad.sm_key = std::uint64_t{0};
		fabric::MadAddress to = from.reversed();
		to.qkey = ib::qkey_gsi;
		work.charge(cost::copied(records.bytes().size()) + cost::kMadSent);
		return rmpp_.start(to, requester_of(from, request).port_guid, mad, records);
	}
	std::memset(mad.data, 0, sizeof(mad.data));
	if (status == 0)
		std::memcpy(mad.data, records.bytes().data(), records.stride());
	else
		spdlog::debug("sm: LID {} gets status {:#06x} for method {:#04x} of {:#06x}",
			      from.slid, status, request.header.method,
			      request.header.attr_id.value());
	answer_status(from, mad, status, work);
}

void SubnetAdministration::release(const std::vector<Waiting> &answers)
{
	for (const Waiting &waiting : answers)
		send(waiting.to, waiting.mad);
}

void SubnetAdministration::run(Clock::time_point now, Work &work)
{
	services_.run(now, work);
	reports_first_ = !reports_first_;
	if (!reports_first_)
		rmpp_.run(now, work);
	if (subnet_)
		subscriptions_.run(*subnet_, now, work);
	if (reports_first_)
		rmpp_.run(now, work);
}

Clock::time_point SubnetAdministration::due() const
{
	auto due = std::min(rmpp_.due(), services_.due());
	return subnet_ ? std::min(due, subscriptions_.due()) : due;
}

} // namespace weft::sm
