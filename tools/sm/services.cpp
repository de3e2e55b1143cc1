// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "sm/services.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>

namespace weft::sm
{

namespace
{

using ib::ServiceRecord;

constexpr std::size_t kServicesMax = 65536;

/* Returns the components of the record: identity, name, and each element of the data arrays. */
constexpr auto make_fields()
{
	std::array<Field, 5 + 16 + 8 + 4 + 2> fields{};
	std::size_t at = 0;
	fields[at++] = {ServiceRecord::c_id, 0, 64};
	fields[at++] = {ServiceRecord::c_gid, 64, 128};
	fields[at++] = {ServiceRecord::c_pkey, 192, 16};
	fields[at++] = {ServiceRecord::c_key, 256, 128};
	fields[at++] = {ServiceRecord::c_name, 384, 512};
	auto array = [&](unsigned component, unsigned count, unsigned bit, unsigned bits) {
		for (unsigned i = 0; i < count; i++)
			fields[at++] = {static_cast<std::uint8_t>(component + i),
					static_cast<std::uint16_t>(bit + i * bits),
					static_cast<std::uint16_t>(bits)};
	};
	array(ServiceRecord::c_data8_first, 16, offsetof(ServiceRecord, data8) * 8, 8);
	array(ServiceRecord::c_data16_first, 8, offsetof(ServiceRecord, data16) * 8, 16);
	array(ServiceRecord::c_data32_first, 4, offsetof(ServiceRecord, data32) * 8, 32);
	array(ServiceRecord::c_data64_first, 2, offsetof(ServiceRecord, data64) * 8, 64);
	return fields;
}
constexpr auto kServiceFields = make_fields();

} // namespace

Services::Identity Services::identity(const ServiceRecord &record)
{
	return {record.gid.interface_id(), record.gid, record.id.value(), record.pkey.value()};
}

/* Returns true if another service is permitted, in total and for its port. */
bool Services::may_add(const ServiceRecord &record) const
{
	const auto its = counts_.find(record.gid.interface_id());
	return services_.size() < kServicesMax &&
	       (its == counts_.end() || its->second < kServicesOfOne);
}

std::map<Services::Identity, Services::Service>::iterator
Services::erase(std::map<Identity, Service>::iterator service)
{
	due_.remove(service->second.expires, service->first);
	const auto its = counts_.find(std::get<0>(service->first));
	if (--its->second == 0)
		counts_.erase(its);
	return services_.erase(service);
}

RecordSet Services::add(const Requester &requester, const ib::SaMad &mad, Clock::time_point now)
{
	const auto &wanted = record_of<ServiceRecord>(mad);
	for (unsigned needed : {ServiceRecord::c_id, ServiceRecord::c_gid, ServiceRecord::c_pkey,
				ServiceRecord::c_lease})
		if (!has_component(mad, needed))
			return RecordSet::failure(ib::sa_status_insufficient_components);
	/* The service must be on the requester's own port, unless the requester is trusted. */
	if (!requester.may_act_for(wanted.gid.interface_id()))
		return RecordSet::failure(ib::sa_status_denied);
	/* P_Key 0 matches any P_Key. A lease of zero expires at once. */
	auto existing = services_.find(identity(wanted));
	if (existing != services_.end() && !std::equal(std::begin(wanted.key), std::end(wanted.key),
						       std::begin(existing->second.record.key)))
		return RecordSet::failure(ib::sa_status_denied);
	if (existing == services_.end()) {
		if (!may_add(wanted))
			return RecordSet::failure(ib::sa_status_no_resources);
		existing = services_.try_emplace(identity(wanted)).first;
		counts_[wanted.gid.interface_id()]++;
	}
	due_.remove(existing->second.expires, existing->first);
	existing->second.record = wanted;
	existing->second.expires = wanted.lease == ServiceRecord::lease_forever
					   ? Clock::time_point::max()
					   : now + std::chrono::seconds(wanted.lease.value());
	due_.add(existing->second.expires, existing->first);
	RecordSet answer;
	answer.add(wanted);
	return answer;
}

RecordSet Services::remove(const Requester &requester, const ib::SaMad &mad)
{
	const auto &wanted = record_of<ServiceRecord>(mad);
	if (!requester.may_act_for(wanted.gid.interface_id()))
		return RecordSet::failure(ib::sa_status_denied);
	auto existing = services_.find(identity(wanted));
	if (existing == services_.end())
		return RecordSet::failure(ib::sa_status_no_records);
	if (!std::equal(std::begin(wanted.key), std::end(wanted.key),
			std::begin(existing->second.record.key)))
		return RecordSet::failure(ib::sa_status_denied);
	RecordSet answer;
	answer.add(existing->second.record);
	erase(existing);
	return answer;
}

Query Services::query(const ib::SaMad &mad) const
{
	return Query([this, mad, last = std::optional<Identity>()](RecordSet &answer,
								   Work &work) mutable {
		const auto at = last ? services_.upper_bound(*last) : services_.begin();
		if (at == services_.end())
			return Query::Step::done;
		last = at->first;
		/* The comparison has many fields. */
		work.charge(2 * cost::kCompared);
		if (!fields_match(kServiceFields, mad.component_mask, mad.data, &at->second.record))
			return Query::Step::more;
		/*
		 * Do not report the key, which is a secret of the port that registered the service.
		 */
		ServiceRecord shown = at->second.record;
		if (!has_component(mad, ServiceRecord::c_key))
			std::fill(std::begin(shown.key), std::end(shown.key), std::uint8_t{0});
		answer.add(shown);
		return Query::Step::more;
	});
}

void Services::subnet_changed(const Subnet &subnet)
{
	for (auto at = services_.begin(); at != services_.end();) {
		const ib::Guid port = std::get<0>(at->first);
		const bool gone = !subnet.find_port(port);
		while (at != services_.end() && std::get<0>(at->first) == port)
			at = gone ? erase(at) : std::next(at);
	}
}

void Services::run(Clock::time_point now, Work &work)
{
	while (work.left()) {
		const auto expired = due_.take_due(now);
		if (!expired)
			return;
		work.charge(cost::kCompared);
		erase(services_.find(*expired));
	}
}

} // namespace weft::sm
