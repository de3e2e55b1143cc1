// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "port.hpp"
#include <kern/log.hpp>
#include "management.hpp"

namespace mellanox_icm
{

namespace
{

constexpr u32 guids_per_block = 8;
constexpr u32 pkeys_per_block = 32;

/*
 * The order in which events that occurred together are reported: losses first, requests of the
 * subnet manager last.
 */
constexpr ib_event_type event_order[] = {
	IB_EVENT_PORT_ERR,  IB_EVENT_LID_CHANGE,  IB_EVENT_PKEY_CHANGE,       IB_EVENT_GID_CHANGE,
	IB_EVENT_SM_CHANGE, IB_EVENT_PORT_ACTIVE, IB_EVENT_CLIENT_REREGISTER,
};

} // namespace

Port::Port(CommandInterface &commands, PortControl &control, u32 number,
	   const PortCapabilities &capabilities, u32 log_max_message)
    : commands_(commands), control_(control), number_(number), capabilities_(capabilities),
      log_max_message_(log_max_message), read_lock_(KERN_LOCK_CLASS("mellanox.port_read")),
      tables_lock_(KERN_LOCK_CLASS("mellanox.port_tables")),
      device_lock_(KERN_LOCK_CLASS("mellanox.port_device")),
      modify_lock_(KERN_LOCK_CLASS("mellanox.port_modify"))
{
}

kern::Result<kern::Owned<Port>> Port::create(CommandInterface &commands, PortControl &control,
					     u32 number, const PortCapabilities &capabilities,
					     u32 log_max_message)
{
	auto port = KERN_TRY(kern::adopt(new (kern::Gfp::kernel) Port(
		commands, control, number, capabilities, log_max_message)));
	port->tables_ = KERN_TRY(kern::make<PortTables>(kern::Gfp::kernel));
	KERN_TRY(port->read_tables());
	return port;
}

Port::~Port()
{
	refresh_work_.cancel();
	close();
}

kern::Result<> Port::read_tables()
{
	kern::Guard reading(read_lock_);
	auto fresh = KERN_TRY(kern::make<PortTables>(kern::Gfp::kernel));
	ib::Smp smp;
	KERN_TRY(get_attribute(commands_, number_, ib::attr_port_info, number_, smp));
	fresh->gid_prefix = ib::smp_attribute<ib::PortInfo>(smp).gid_prefix;
	for (u32 first = 0; first < capabilities_.gids; first += guids_per_block) {
		const auto got = get_attribute(commands_, number_, ib::attr_guid_info,
					       first / guids_per_block, smp);
		// The agent may have fewer entries than the driver's table: entries that it refuses
		// are not assigned.
		if (!got && (first == 0 || got.error() != -EIO || commands_.failed()))
			return got;
		for (u32 i = 0; i < guids_per_block && first + i < capabilities_.gids; i++)
			fresh->guids[first + i] =
				got ? ib::smp_attribute<ib::GuidInfo>(smp).guid[i].value() : 0;
	}
	for (u32 first = 0; first < capabilities_.pkeys; first += pkeys_per_block) {
		KERN_TRY(get_attribute(commands_, number_, ib::attr_pkey_table,
				       first / pkeys_per_block, smp));
		for (u32 i = 0; i < pkeys_per_block && first + i < capabilities_.pkeys; i++)
			fresh->pkeys[first + i] = ib::smp_attribute<ib::PkeyTable>(smp).pkey[i];
	}
	// Some agents do not have this attribute; for those, VL 0 for all SLs is correct.
	if (get_attribute(commands_, number_, ib::attr_sl_to_vl, 0, smp))
		fresh->sl_to_vl = ib::smp_attribute<ib::SlToVl>(smp);
	kern::Guard guard(tables_lock_);
	std::swap(tables_, fresh);
	return {};
}

kern::Result<> Port::open()
{
	kern::Guard guard(modify_lock_);
	if (open_)
		return {};
	KERN_TRY(control_.open(number_));
	open_ = true;
	return {};
}

void Port::close()
{
	kern::Guard guard(modify_lock_);
	if (!open_)
		return;
	open_ = false;
	// If this fails, CLOSE_HCA or the reset closes the port.
	kern::ignore(control_.close(number_));
}

kern::Result<> Port::query(ib_port_attr &attr)
{
	ib::Smp smp;
	KERN_TRY(get_attribute(commands_, number_, ib::attr_port_info, number_, smp));
	const auto &info = ib::smp_attribute<ib::PortInfo>(smp);
	attr.subnet_prefix = info.gid_prefix;
	attr.state = static_cast<ib_port_state>(info.state());
	attr.max_mtu = static_cast<ib_mtu>(info.mtu_cap());
	attr.active_mtu = static_cast<ib_mtu>(info.neighbor_mtu());
	attr.gid_tbl_len = static_cast<int>(capabilities_.gids);
	attr.port_cap_flags = info.capability_mask;
	attr.max_msg_sz = 1u << log_max_message_;
	attr.bad_pkey_cntr = info.pkey_violations;
	attr.qkey_viol_cntr = info.qkey_violations;
	attr.pkey_tbl_len = static_cast<u16>(capabilities_.pkeys);
	attr.port_cap_flags2 = info.capability_mask2;
	attr.sm_lid = info.sm_lid;
	attr.lid = info.lid;
	attr.lmc = info.lmc();
	attr.max_vl_num = info.vl_cap();
	attr.sm_sl = info.sm_sl();
	attr.subnet_timeout = info.subnet_timeout();
	attr.init_type_reply = static_cast<u8>(info.init_reply_mtu_cap >> 4);
	attr.active_width = info.link_width_active;
	attr.phys_state = static_cast<u8>(info.phys_state());
	// A link that is down has no speed. The lowest speed is reported.
	attr.active_speed =
		attr.state == IB_PORT_DOWN ? static_cast<u16>(IB_SPEED_SDR) : info.speed_active();
	return {};
}

kern::Result<ib_gid> Port::gid(u32 index)
{
	if (index >= capabilities_.gids)
		return kern::Error{-EINVAL};
	return with_tables([index](const PortTables &tables) {
		ib_gid gid;
		gid.global.subnet_prefix = ib::be64(tables.gid_prefix);
		gid.global.interface_id = ib::be64(tables.guids[index]);
		return gid;
	});
}

kern::Result<u16> Port::pkey(u32 index)
{
	if (index >= capabilities_.pkeys)
		return kern::Error{-EINVAL};
	return with_tables([index](const PortTables &tables) { return tables.pkeys[index]; });
}

kern::Result<> Port::modify(int mask, const ib_port_modify &change)
{
	kern::Guard guard(modify_lock_);
	ib::Smp smp;
	KERN_TRY(get_attribute(commands_, number_, ib::attr_port_info, number_, smp));
	const u32 now = ib::smp_attribute<ib::PortInfo>(smp).capability_mask;
	return control_.set_capabilities(
		number_, (now | change.set_port_cap_mask) & ~change.clr_port_cap_mask,
		mask & IB_PORT_RESET_QKEY_CNTR);
}

kern::Result<ib::PerfMad> Port::performance(ib::PerfAttribute attribute)
{
	ib::PerfMad mad{};
	static_assert(sizeof(mad) == ib::mad_bytes);
	mad.header.base_version = ib::mad_base_version;
	mad.header.mgmt_class = static_cast<u8>(ib::MgmtClass::perf);
	mad.header.class_version = ib::perf_class_version;
	mad.header.method = static_cast<u8>(ib::MadMethod::get);
	mad.header.attr_id = attribute;
	// PortSelect is the second byte of each counter attribute (IBA 16.1.3).
	static_assert(__builtin_offsetof(ib::PortCounters, port_select) == 1 &&
		      __builtin_offsetof(ib::PortCountersExtended, port_select) == 1);
	mad.data[1] = static_cast<u8>(number_);
	KERN_TRY(ask_agent(commands_, number_,
			   hw::mellanox_icm::MadIfc::op_ignore_mkey |
				   hw::mellanox_icm::MadIfc::op_ignore_bkey,
			   nullptr, &mad, &mad));
	if (mad.header.status)
		return kern::Error{-EIO};
	return mad;
}

kern::Result<ib::PortCountersExtended> Port::counters()
{
	const ib::PerfMad mad = KERN_TRY(performance(ib::attr_port_counters_extended));
	return *reinterpret_cast<const ib::PortCountersExtended *>(mad.data);
}

void Port::dump(kern::debugfs::Output &out)
{
	if (const auto got = counters())
		out.print("port %u: sent %lu packets, %lu words, received %lu packets, %lu words\n",
			  number_, got.value().xmit_packets.value(), got.value().xmit_data.value(),
			  got.value().rcv_packets.value(), got.value().rcv_data.value());
}

void Port::changed(u32 events)
{
	// If the port was reported both up and down, only the later event describes the current
	// state.
	constexpr u32 up = 1u << IB_EVENT_PORT_ACTIVE, down = 1u << IB_EVENT_PORT_ERR;
	if (events & up)
		pending_.fetch_or(up);
	if (events & down)
		pending_.fetch_and(~up);
	pending_.fetch_or(events);
	refresh_work_.queue();
}

void Port::set_device(ib_device *device)
{
	kern::Guard guard(device_lock_);
	device_ = device;
}

void Port::refresh()
{
	const u32 events = pending_.exchange(0);
	if (const auto read = read_tables(); !read && !commands_.failed())
		kern_warning_limited("port %u: its tables cannot be read again (%d)\n", number_,
				     read.error());
	kern::Guard guard(device_lock_);
	if (!device_)
		return;
	for (const ib_event_type event : event_order)
		if (events & 1u << event)
			rdma::dispatch(event, device_, number_);
}

} // namespace mellanox_icm
