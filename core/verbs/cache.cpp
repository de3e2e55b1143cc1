// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements the cache of a device's ports. The cache of a port is one immutable block. A refresh
 * replaces it with a new block, so readers need no lock and see a consistent state. The old block
 * is freed after a grace period. The refresh does not wait for the grace period, because this would
 * delay the event handlers, which run after the refresh.
 */
#include "cache.hpp"
#include <kern/log.hpp>
#include "checks.hpp"
#include "verbs.hpp"

using namespace verbs;

/*
 * The cached attributes of a port. The port's GIDs follow in the same allocation, and after them
 * its P_Keys.
 */
struct verbs::PortTable {
	ib_port_cache port;
	int gid_count;
	int pkey_count;
	kern::rcu::Deferred deferred_free;

	void free() { kern_free_large(this); }
	ib_gid *gids() { return reinterpret_cast<ib_gid *>(this + 1); }
	u16 *pkeys() { return reinterpret_cast<u16 *>(gids() + gid_count); }

	static size_t size(const ib_port_immutable &immutable)
	{
		return sizeof(PortTable) +
		       static_cast<size_t>(immutable.gid_tbl_len) * sizeof(ib_gid) +
		       static_cast<size_t>(immutable.pkey_tbl_len) * sizeof(u16);
	}
};
static_assert(sizeof(PortTable) % alignof(ib_gid) == 0);

namespace
{

/*
 * Calls body with the port's current table; body must not sleep. Errors: EINVAL for an invalid
 * port; the errors of body.
 */
template<class Body>
int with_table(ib_device *device, u32 port_num, Body body)
{
	if (!rdma_is_port_valid(device, port_num))
		return -EINVAL;
	kern::rcu::ReadGuard reading;
	return body(*device->verbs->ports[port_num].table.load());
}

int read_port(ib_device &device, u32 port_num, PortTable &table)
{
	ib_port_attr attr;

	if (int error = ib_query_port(&device, port_num, &attr))
		return error;
	table.port = {.subnet_prefix = attr.subnet_prefix,
		      .state = attr.state,
		      .active_mtu = attr.active_mtu,
		      .lid = static_cast<u16>(attr.lid),
		      .sm_lid = static_cast<u16>(attr.sm_lid),
		      .lmc = attr.lmc,
		      .sm_sl = attr.sm_sl,
		      .subnet_timeout = attr.subnet_timeout,
		      .generation = 0};
	for (int i = 0; i < table.gid_count; i++)
		if (int error =
			    VERBS_CALL(&device, query_gid, &device, port_num, i, &table.gids()[i]))
			return error;
	for (int i = 0; i < table.pkey_count; i++)
		if (int error = VERBS_CALL(&device, query_pkey, &device, port_num,
					   static_cast<u16>(i), &table.pkeys()[i]))
			return error;
	return 0;
}

} // namespace

kern::Result<> verbs::refresh_port(ib_device &device, ib_device_verbs &verbs, u32 port_num)
{
	const ib_port_immutable &immutable = verbs.immutable[port_num];
	const auto gfp = static_cast<unsigned int>(kern::Gfp::kernel | kern::Gfp::zero);
	auto *fresh =
		static_cast<PortTable *>(kern_alloc_large(1, PortTable::size(immutable), gfp));

	if (!fresh)
		return kern::Error{-ENOMEM};
	fresh->gid_count = immutable.gid_tbl_len;
	fresh->pkey_count = immutable.pkey_tbl_len;

	PortTable *old;
	{
		/*
		 * The lock prevents parallel refreshes, of which the one with the older values
		 * could be stored last.
		 */
		kern::Guard guard(verbs.cache_lock);
		if (int error = read_port(device, port_num, *fresh)) {
			kern_free_large(fresh);
			return kern::Error{error};
		}
		auto &place = verbs.ports[port_num].table;
		if (const PortTable *present = place.load_exclusive())
			fresh->port.generation = present->port.generation + 1;
		old = place.exchange(fresh);
	}
	if (old)
		old->deferred_free.call(kern::method<&PortTable::free>, old);
	return {};
}

void verbs::free_cache(ib_device_verbs &verbs)
{
	for (Port &port : verbs.ports)
		kern_free_large(port.table.exchange(nullptr));
}

void verbs::refresh_cache(const ib_event &event)
{
	ib_device &device = *event.device;

	switch (event.event) {
	case IB_EVENT_PORT_ACTIVE:
	case IB_EVENT_PORT_ERR:
	case IB_EVENT_LID_CHANGE:
	case IB_EVENT_PKEY_CHANGE:
	case IB_EVENT_SM_CHANGE:
	case IB_EVENT_CLIENT_REREGISTER:
	case IB_EVENT_GID_CHANGE:
		break;
	default:
		return;
	}
	const u32 port_num = event.element.port_num;
	if (!rdma_is_port_valid(&device, port_num)) {
		kern_warning_limited("%s: %s on port %u, which it does not have\n", device.name,
				     ib_event_msg(event.event), port_num);
		return;
	}
	/* If the port cannot be read, the old values stay in the cache until the next event. */
	if (auto result = refresh_port(device, *device.verbs, port_num); !result)
		kern_warning_limited("%s: port %u cannot be read: %d\n", device.name, port_num,
				     result.error());
}

extern "C" {

int ib_get_cached_port(struct ib_device *device, u32 port_num, struct ib_port_cache *port)
{
	return with_table(device, port_num, [&](PortTable &table) {
		*port = table.port;
		return 0;
	});
}

int ib_get_cached_port_state(struct ib_device *device, u32 port_num, enum ib_port_state *port_state)
{
	return with_table(device, port_num, [&](PortTable &table) {
		*port_state = table.port.state;
		return 0;
	});
}

int ib_get_cached_lmc(struct ib_device *device, u32 port_num, u8 *lmc)
{
	return with_table(device, port_num, [&](PortTable &table) {
		*lmc = table.port.lmc;
		return 0;
	});
}

int ib_get_cached_lid(struct ib_device *device, u32 port_num, u16 *lid)
{
	return with_table(device, port_num, [&](PortTable &table) {
		*lid = table.port.lid;
		return 0;
	});
}

int ib_get_cached_sm_lid(struct ib_device *device, u32 port_num, u16 *sm_lid)
{
	return with_table(device, port_num, [&](PortTable &table) {
		*sm_lid = table.port.sm_lid;
		return 0;
	});
}

int ib_get_cached_subnet_prefix(struct ib_device *device, u32 port_num, u64 *subnet_prefix)
{
	return with_table(device, port_num, [&](PortTable &table) {
		*subnet_prefix = table.port.subnet_prefix;
		return 0;
	});
}

int rdma_query_gid(struct ib_device *device, u32 port_num, int index, union ib_gid *gid)
{
	return with_table(device, port_num, [&](PortTable &table) {
		if (index < 0 || index >= table.gid_count)
			return -EINVAL;
		*gid = table.gids()[index];
		return 0;
	});
}

int ib_find_cached_gid_by_port(struct ib_device *device, const union ib_gid *gid, u32 port_num,
			       u16 *index)
{
	return with_table(device, port_num, [&](PortTable &table) {
		for (int i = 0; i < table.gid_count; i++) {
			if (table.gids()[i] == *gid) {
				*index = static_cast<u16>(i);
				return 0;
			}
		}
		return -ENOENT;
	});
}

int ib_find_cached_gid(struct ib_device *device, const union ib_gid *gid, u32 *port_num, u16 *index)
{
	u32 port;

	rdma_for_each_port(device, port)
	{
		if (ib_find_cached_gid_by_port(device, gid, port, index) == 0) {
			*port_num = port;
			return 0;
		}
	}
	return -ENOENT;
}

int ib_get_cached_pkey(struct ib_device *device, u32 port_num, int index, u16 *pkey)
{
	return with_table(device, port_num, [&](PortTable &table) {
		if (index < 0 || index >= table.pkey_count)
			return -EINVAL;
		*pkey = table.pkeys()[index];
		return 0;
	});
}

int ib_find_cached_pkey(struct ib_device *device, u32 port_num, u16 pkey, u16 *index)
{
	return with_table(device, port_num, [&](PortTable &table) {
		int partial = -1;
		for (int i = 0; i < table.pkey_count; i++) {
			const u16 entry = table.pkeys()[i];
			if ((entry & 0x7fff) != (pkey & 0x7fff))
				continue;
			if (entry & 0x8000) {
				*index = static_cast<u16>(i);
				return 0;
			}
			if (partial < 0)
				partial = i;
		}
		if (partial < 0)
			return -ENOENT;
		*index = static_cast<u16>(partial);
		return 0;
	});
}

int ib_find_exact_cached_pkey(struct ib_device *device, u32 port_num, u16 pkey, u16 *index)
{
	return with_table(device, port_num, [&](PortTable &table) {
		for (int i = 0; i < table.pkey_count; i++) {
			if (table.pkeys()[i] == pkey) {
				*index = static_cast<u16>(i);
				return 0;
			}
		}
		return -ENOENT;
	});
}
}
