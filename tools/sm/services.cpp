// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "sm/services.hpp"

#include <algorithm>
#include <array>

namespace weft::sm
{

namespace
{

using Record = ib::ServiceRecord;

constexpr std::size_t services_max = 65536;

/* Identity, name and each element of the data arrays is a component of its own. */
constexpr auto make_fields()
{
	std::array<Field, 5 + 16 + 8 + 4 + 2> fields{};
	std::size_t at = 0;
	fields[at++] = {Record::c_id, 0, 64};
	fields[at++] = {Record::c_gid, 64, 128};
	fields[at++] = {Record::c_pkey, 192, 16};
	fields[at++] = {Record::c_key, 256, 128};
	fields[at++] = {Record::c_name, 384, 512};
	auto array = [&](unsigned component, unsigned count, unsigned bit, unsigned bits) {
		for (unsigned i = 0; i < count; i++)
			fields[at++] = {static_cast<std::uint8_t>(component + i),
					static_cast<std::uint16_t>(bit + i * bits),
					static_cast<std::uint16_t>(bits)};
	};
	array(Record::c_data8_first, 16, offsetof(Record, data8) * 8, 8);
	array(Record::c_data16_first, 8, offsetof(Record, data16) * 8, 16);
	array(Record::c_data32_first, 4, offsetof(Record, data32) * 8, 32);
	array(Record::c_data64_first, 2, offsetof(Record, data64) * 8, 64);
	return fields;
}
constexpr auto fields = make_fields();

} // namespace

Services::Identity Services::identity(const Record &record)
{
	return {record.gid.interface_id(), record.gid, record.id.value(), record.pkey.value()};
}

/* Whether one more has room, among all and among its port's. */
bool Services::have_room(const Record &record) const
{
	const ib::Guid port = record.gid.interface_id();
	auto at = services_.lower_bound(Identity{port, ib::Gid{}, 0, 0});
	std::size_t its = 0;
	for (; at != services_.end() && std::get<0>(at->first) == port; at++)
		its++;
	return services_.size() < services_max && its < services_of_one;
}

RecordSet Services::add(const Requester &requester, const ib::SaMad &mad, Clock::time_point now)
{
	const auto &wanted = record_of<Record>(mad);
	for (unsigned needed : {Record::c_id, Record::c_gid, Record::c_pkey, Record::c_lease})
		if (!has_component(mad, needed))
			return RecordSet::failure(ib::sa_status_insufficient_components);
	/* A service is where its registrant is, unless the manager is trusted to say so. */
	if (!requester.may_act_for(wanted.gid.interface_id()))
		return RecordSet::failure(ib::sa_status_denied);
	/* P_Key 0 means any; a lease of zero ends at once. */
	auto existing = services_.find(identity(wanted));
	if (existing != services_.end() && !std::equal(std::begin(wanted.key), std::end(wanted.key),
						       std::begin(existing->second.record.key)))
		return RecordSet::failure(ib::sa_status_denied);
	if (existing == services_.end()) {
		if (!have_room(wanted))
			return RecordSet::failure(ib::sa_status_no_resources);
		existing = services_.try_emplace(identity(wanted)).first;
	}
	existing->second.record = wanted;
	existing->second.expires = wanted.lease == Record::lease_forever
					   ? Clock::time_point::max()
					   : now + std::chrono::seconds(wanted.lease.value());
	RecordSet answer;
	answer.add(wanted);
	return answer;
}

RecordSet Services::remove(const Requester &requester, const ib::SaMad &mad)
{
	const auto &wanted = record_of<Record>(mad);
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
	services_.erase(existing);
	return answer;
}

RecordSet Services::query(const ib::SaMad &mad) const
{
	RecordSet answer;
	for (const auto &[identity, service] : services_) {
		if (!fields_match(fields, mad.component_mask, mad.data, &service.record))
			continue;
		/* The key is the registrant's secret. */
		Record shown = service.record;
		if (!has_component(mad, Record::c_key))
			std::fill(std::begin(shown.key), std::end(shown.key), std::uint8_t{0});
		answer.add(shown);
	}
	return answer;
}

void Services::subnet_changed(const Subnet &subnet)
{
	std::erase_if(services_, [&](const auto &service) {
		return !subnet.find_port(std::get<0>(service.first));
	});
}

void Services::tick(Clock::time_point now)
{
	std::erase_if(services_,
		      [&](const auto &service) { return service.second.expires <= now; });
}

} // namespace weft::sm
