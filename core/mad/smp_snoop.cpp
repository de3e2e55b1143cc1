// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "smp_snoop.hpp"

#include <ib/smp.hpp>
#include <rdma/driver.hpp>
#include <rdma/ib_cache.h>

namespace mad
{
namespace
{

constexpr u32 of_port = 1, of_pkeys = 2, of_gids = 4;

constexpr u32 touched_by(const ib::MadHeader &header)
{
	if (!header.is_smp() || !header.is_method(ib::MadMethod::set))
		return 0;
	switch (header.attr_id.value()) {
	case ib::attr_port_info:
		return of_port;
	case ib::attr_pkey_table:
		return of_pkeys;
	case ib::attr_guid_info:
		return of_gids;
	default:
		return 0;
	}
}

} // namespace

void SmpSnoop::observe(const ib::MadHeader &header)
{
	if (const u32 touched = touched_by(header)) {
		suspected_.fetch_or(touched);
		work_.queue();
	}
}

void SmpSnoop::run()
{
	const u32 suspected = suspected_.exchange(0);

	if (suspected & of_port)
		check_port();
	if (suspected & of_pkeys)
		check_pkeys();
	if (suspected & of_gids)
		check_gids();
}

/* A port that cannot be queried now is queried after the next observed Set. */
void SmpSnoop::check_port()
{
	ib_port_attr now;
	ib_port_cache before;

	if (ib_query_port(device_, port_num_, &now) ||
	    ib_get_cached_port(device_, port_num_, &before))
		return;
	const bool is_active = now.state == IB_PORT_ACTIVE,
		   was_active = before.state == IB_PORT_ACTIVE;
	if (is_active != was_active)
		report(is_active ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR);
	if (now.lid != before.lid || now.lmc != before.lmc)
		report(IB_EVENT_LID_CHANGE);
	if (now.sm_lid != before.sm_lid || now.sm_sl != before.sm_sl)
		report(IB_EVENT_SM_CHANGE);
	if (now.subnet_prefix != before.subnet_prefix)
		report(IB_EVENT_GID_CHANGE);
}

void SmpSnoop::check_pkeys()
{
	for (int i = 0; i < device_->port_immutable[port_num_].pkey_tbl_len; i++) {
		u16 now, before;
		if (ib_query_pkey(device_, port_num_, static_cast<u16>(i), &now) ||
		    ib_get_cached_pkey(device_, port_num_, i, &before))
			return;
		if (now != before)
			return report(IB_EVENT_PKEY_CHANGE);
	}
}

void SmpSnoop::check_gids()
{
	for (int i = 0; i < device_->port_immutable[port_num_].gid_tbl_len; i++) {
		ib_gid now, before;
		if (device_->ops.query_gid(device_, port_num_, i, &now) ||
		    rdma_query_gid(device_, port_num_, i, &before))
			return;
		if (!(now == before))
			return report(IB_EVENT_GID_CHANGE);
	}
}

void SmpSnoop::report(ib_event_type type)
{
	rdma::dispatch(type, device_, port_num_);
}

} // namespace mad
