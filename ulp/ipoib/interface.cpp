// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Implements the life cycle of an interface: creation, opening, port events, stopping, removal. */
#include "interface.hpp"

#include "client.hpp"

#include <kern/log.hpp>
#include <kern/time.hpp>
#include <rdma/ib_cache.h>
#include <rdma/objects.hpp>

namespace ipoib
{
namespace
{

constexpr unsigned short arphrd_infiniband = 32;
/*
 * Timeout of the transmit watchdog. A restart of the queues loses packets, and a card on a busy
 * host may take seconds to complete a request; two seconds were observed.
 */
constexpr unsigned watchdog_ms = 10'000;
constexpr unsigned tx_queue_len = 1000;
/* A destination that was not used in idle_rounds periods is removed. */
constexpr unsigned periodic_ms = 30'000;
constexpr unsigned idle_rounds = 4;
/*
 * Number of periods after which no request uses a retired address handle any more. A datagram needs
 * no response, and the watchdog restarts a queue that makes no progress for a third of a period.
 * The restart ends all requests of the queue.
 */
constexpr unsigned retired_rounds = 1;
constexpr unsigned gso_max_size = 65536;
/*
 * Time before another attempt to start queues that could not be started. An event of the port
 * causes an attempt at once.
 */
constexpr unsigned restart_ms = 2'000;

bool is_power_of_two(u32 value)
{
	return value && !(value & (value - 1));
}

} // namespace

Interface::Interface(ib_device *device, u32 port_num, u16 pkey, Interface *parent)
    : device_(device), port_num_(port_num), pkey_(pkey), parent_(parent),
      broadcast_(broadcast_address(pkey)), queues_(device, port_num, recover_work_)
{
}

Interface::~Interface()
{
	kern_assert(state() == State::gone);
}

kern::Result<Interface *> Interface::create(ib_device *device, u32 port_num, u16 pkey,
					    Interface *parent, net_device *dev)
{
	auto interface = KERN_TRY(
		kern::adopt(new (kern::Gfp::kernel) Interface(device, port_num, pkey, parent)));
	ib_port_attr attr;
	KERN_TRY_ERRNO(ib_query_port(device, port_num, &attr));
	const bool allocated = dev == nullptr;
	if (allocated)
		dev = parent ? kern_netdev_alloc_child(parent->dev_, pkey, transmit_queues_wanted())
			     : kern_netdev_alloc("ib%d", transmit_queues_wanted());
	if (!dev)
		return kern::Error{-ENOMEM};
	interface->dev_ = dev;
	interface->user_made_ = !allocated;
	if (parent)
		interface->wanted_guid_ = parent->wanted_guid_;
	if (auto made = interface->bring_up_.to(State::down); !made.ok()) {
		if (allocated)
			kern_netdev_free(dev);
		return kern::Error{made.error()};
	}

	const auto max_mtu = ip_mtu(static_cast<unsigned>(ib_mtu_enum_to_int(attr.max_mtu)));
	const auto mtu = ip_mtu(2048) < max_mtu ? ip_mtu(2048) : max_mtu;
	interface->wanted_mtu_ = interface->max_datagram_mtu_ = max_mtu;
	kern_netdev_config config{};
	config.ops = &netdev_ops;
	config.owner = interface.get();
	config.parent = device->dma_device;
	config.type = arphrd_infiniband;
	config.addr_len = address_bytes;
	config.hard_header_len = hard_header_bytes;
	config.dev_port = static_cast<unsigned short>(port_num - 1);
	config.tx_queue_len = tx_queue_len;
	config.mtu = mtu;
	config.min_mtu = 68;
	config.max_mtu = max_mtu;
	config.features = KERN_NETDEV_SG;
	if (device->attrs.device_cap_flags & IB_DEVICE_UD_IP_CSUM)
		config.features |= KERN_NETDEV_CSUM;
	if (device->attrs.kernel_cap_flags & IBK_UD_TSO)
		config.features |= KERN_NETDEV_TSO;
	config.gso_max_size = gso_max_size;
	config.watchdog_ms = watchdog_ms;
	config.address = reinterpret_cast<const u8 *>(&interface->address_);
	config.broadcast = reinterpret_cast<const u8 *>(&interface->broadcast_);
	kern_netdev_configure(dev, &config);
	interface->queues_.set_checksum(kern_netdev_rx_checksum(dev));
	adopt_link_kind(dev);

	if (const int status = kern_netdev_register_locked(dev)) {
		kern::ignore(interface->bring_up_.to(State::gone));
		if (allocated)
			kern_netdev_free(dev);
		return kern::Error{status};
	}
	interface->registered_.store_release(true);
	/*
	 * The rtnl lock is held, so the device cannot be opened before this call. The call cannot
	 * fail, because it only reduces the number of queues.
	 */
	kern_netdev_use_tx_queues(dev, interface->queues_.transmit_queues());
	return interface.release();
}

unsigned Interface::transmit_queues_wanted()
{
	const unsigned cpus = kern_cpu_count();
	return cpus < max_transmit_queues ? cpus : max_transmit_queues;
}

/*
 * Afterwards, netdev_ops.uninit releases the resources and netdev_ops.destroy frees the interface.
 */
void Interface::remove()
{
	kern_netdev_unregister_locked(dev_);
}

/*
 * Acquires the resources that each state adds. step_down() releases them, also if step_up() failed
 * half-way. No other code acquires or releases them.
 * Context: rtnl lock.
 */
kern::Result<> Interface::step_up(State to)
{
	switch (to) {
	case State::gone:
		break;
	case State::down:
		return create_resources();
	case State::halted:
		periodic_work_.queue(periodic_ms);
		break;
	case State::waiting:
		return start_queues();
	case State::active:
		kern_netdev_carrier(dev_, true);
		break;
	}
	return {};
}

Interface::State Interface::step_down(State from)
{
	switch (from) {
	case State::gone:
		break;
	case State::down:
		destroy_resources();
		break;
	case State::halted:
		periodic_work_.cancel();
		return State::down;
	case State::waiting:
		stop_queues();
		return State::halted;
	case State::active:
		kern_netdev_carrier(dev_, false);
		return State::waiting;
	}
	return State::gone;
}

kern::Result<> Interface::create_resources()
{
	pd_ = KERN_TRY(rdma::check(ib_alloc_pd(device_, 0)));
	queues_.set_pd(pd_);
	connected_.attach(dev_);
	KERN_TRY(queues_.attach(dev_, broadcast_.gid));
	KERN_TRY(queues_.to(Queues::State::made));
	/* Attributes that are not known yet are read when the port becomes active (MGMT-10). */
	kern::ignore(read_port());
	address_ = own_address();
	return {};
}

void Interface::destroy_resources()
{
	kern::ignore(queues_.to(Queues::State::none));
	queues_.detach();
	connected_.detach();
	if (ib_pd *pd = std::exchange(pd_, nullptr)) {
		end_addresses();
		ib_dealloc_pd(pd);
	}
}

kern::Result<> Interface::start_queues()
{
	kern::ignore(read_port());
	/*
	 * Connections must be possible before the queues run, because packets may need them at
	 * once.
	 */
	KERN_TRY(start_connections());
	KERN_TRY(queues_.to(Queues::State::running));
	/* The QPs may be new, so the hardware address may have changed. */
	publish_address();
	return {};
}

/*
 * Destroys the address handles of all removed destinations after their last RCU reader has
 * finished. The QPs are in RESET or destroyed, so no request uses the handles.
 */
void Interface::end_addresses()
{
	kern::rcu::barrier();
	destinations_.destroy_retired(0);
}

/*
 * Stops the queues. When this returns, no packet of the network stack and no response of the SA is
 * pending.
 */
void Interface::stop_queues()
{
	/*
	 * Leave the groups while the QP exists. Packets that are sent in the meantime are flushed.
	 */
	leave_domain();
	kern::ignore(queues_.to(Queues::State::made));
	cancel_queries();
	/*
	 * Leave groups and remove destinations that packets have created before the queues stopped.
	 */
	leave_domain();
	connected_.stop();
	end_addresses();
}

/*
 * Reads the current attributes of the port. Context: rtnl lock. Errors: ENOENT if the port's tables
 * do not contain the partition or the GID that was set; those of the cache.
 */
kern::Result<> Interface::read_port()
{
	ib_gid gid;
	u16 index, lid;

	KERN_TRY_ERRNO(rdma_query_gid(device_, port_num_, 0, &gid));
	if (wanted_guid_ != 0u)
		gid.global.interface_id = wanted_guid_;
	port_gid_ = gid;
	if (ib_get_cached_lid(device_, port_num_, &lid) == 0)
		queues_.set_own_lid(lid);
	KERN_TRY_ERRNO(ib_find_cached_pkey(device_, port_num_, pkey_, &index));
	pkey_index_ = index;
	queues_.set_pkey_index(index);
	if (wanted_guid_ != 0u)
		KERN_TRY_ERRNO(ib_find_cached_gid_by_port(device_, &gid, port_num_, &index));
	return {};
}

/* Returns the hardware address; without a QP, the previous address with the current flags. */
HardwareAddress Interface::own_address() const
{
	ib::Gid raw;
	__builtin_memcpy(raw.raw, port_gid_.raw, sizeof(raw.raw));
	HardwareAddress now = qp() ? HardwareAddress::make(qp()->qp_num, raw) : address_;
	now.flags = mode() == Mode::connected ? HardwareAddress::flag_rc : 0;
	return now;
}

/*
 * Publishes the interface's hardware address to the network stack if it has changed. Context: rtnl
 * lock.
 */
void Interface::publish_address()
{
	const HardwareAddress now = own_address();
	if (now.same_peer(address_) && now.flags == address_.flags)
		return;
	address_ = now;
	kern_netdev_set_address(dev_, reinterpret_cast<const u8 *>(&address_));
}

/*
 * Does not wait for the port to become active (MGMT-10); refresh() follows the port's state.
 * Context: rtnl lock.
 */
int Interface::open()
{
	if (auto started = bring_up_.to(State::waiting); !started.ok()) {
		kern::ignore(bring_up_.to(State::down));
		return started.error();
	}
	refresh_work_.queue();
	return 0;
}

/* Context: rtnl lock. */
void Interface::stop()
{
	kern::ignore(bring_up_.to(State::down));
}

/* The network stack has unregistered the device. Context: rtnl lock. */
void Interface::uninit()
{
	kern::ignore(bring_up_.to(State::gone));
}

void Interface::on_event(ib_event_type event)
{
	u32 flush;
	switch (event) {
	case IB_EVENT_SM_CHANGE:
	case IB_EVENT_CLIENT_REREGISTER:
		flush = flush_light;
		break;
	case IB_EVENT_PORT_ERR:
	case IB_EVENT_PORT_ACTIVE:
	case IB_EVENT_LID_CHANGE:
		flush = flush_normal;
		break;
	case IB_EVENT_PKEY_CHANGE:
	case IB_EVENT_GID_CHANGE:
	case IB_EVENT_DEVICE_FATAL:
		flush = flush_heavy;
		break;
	default:
		return;
	}
	__atomic_fetch_or(&pending_flush_, flush, __ATOMIC_RELEASE);
	refresh_work_.queue();
}

/*
 * Adapts the interface to the state of its port. Only this function does so, and it handles all
 * events since its last call. Context: work queue.
 */
void Interface::refresh()
{
	kern::RtnlGuard rtnl;
	const u32 flush = __atomic_exchange_n(&pending_flush_, 0, __ATOMIC_ACQ_REL);
	if (state() < State::halted)
		return;
	/* The event may have removed the reason why the queues could not be started. */
	if (state() == State::halted) {
		restart();
		return;
	}

	const u16 former_index = pkey_index_;
	const bool present = read_port().ok();
	ib_port_state port = IB_PORT_NOP;
	/* If this fails, the device is being removed, so the port counts as down. */
	(void)ib_get_cached_port_state(device_, port_num_, &port);
	const bool usable = present && port == IB_PORT_ACTIVE;

	if (flush & (flush_normal | flush_heavy) || !usable) {
		kern::ignore(bring_up_.to(State::waiting));
		leave_domain();
	} else if (flush & flush_light) {
		destinations_.mark_stale();
	}
	publish_address();
	if (!usable)
		return;
	if (pkey_index_ != former_index) {
		kern::ignore(bring_up_.to(State::halted));
		restart();
		return;
	}

	ib_sa_mcmember_rec record;
	if (!multicast_.broadcast_record(record)) {
		multicast_.start();
		return;
	}
	if (auto taken = apply_broadcast_record(record); !taken.ok()) {
		kern::ignore(bring_up_.to(State::halted));
		retry_later(taken.error());
		return;
	}
	kern::ignore(bring_up_.to(State::active));
}

/* Applies the attributes of the broadcast group: Q_Key and MTU. Context: rtnl lock. */
kern::Result<> Interface::apply_broadcast_record(const ib_sa_mcmember_rec &record)
{
	KERN_TRY(queues_.set_qkey(record.qkey.value()));
	const int datagram = ib_mtu_enum_to_int(static_cast<ib_mtu>(record.mtu));
	if (datagram > 0) {
		__atomic_store_n(&domain_mtu_, ip_mtu(static_cast<unsigned>(datagram)),
				 __ATOMIC_RELAXED);
		if (mode() == Mode::datagram && datagram_mtu() != kern_netdev_mtu(dev_))
			set_mtu(datagram_mtu());
	}
	return {};
}

/*
 * Leaves all groups, removes all destinations and ends all active connections. Context: rtnl lock.
 */
void Interface::leave_domain()
{
	multicast_.stop();
	__atomic_fetch_add(&tx_dropped_, destinations_.remove_all(), __ATOMIC_RELAXED);
	connected_.end_active();
}

/*
 * Fixes the faults that the queues have reported, or retries a failed start. Context: work queue.
 */
void Interface::recover()
{
	/*
	 * A card may report a fault of a QP while create() still runs. If create() then fails, it
	 * waits for this work item with the rtnl lock held, so the lock must not be taken here.
	 */
	if (!registered_.load_acquire())
		return;
	kern::RtnlGuard rtnl;
	const u32 faults = queues_.take_faults() | connected_.take_faults();
	if (state() < State::halted)
		return;
	if (state() > State::halted &&
	    (!faults || (faults == fault_recheck && queues_.send_again())))
		return;
	/* Otherwise stop the queues and start them again. */
	kern::ignore(bring_up_.to(State::halted));
	if (faults & fault_cq)
		kern::ignore(queues_.to(Queues::State::none));
	restart();
}

/* Starts the queues. State: halted. Context: rtnl lock. */
void Interface::restart()
{
	if (auto started = bring_up_.to(State::waiting); started.ok())
		refresh_work_.queue();
	else
		retry_later(started.error());
}

/* Schedules another attempt to start the queues. State: halted. */
void Interface::retry_later(int error)
{
	kern_warning_limited("%s: cannot start queues: error %d; retrying\n",
			     kern_netdev_name(dev_), error);
	recover_work_.reschedule(restart_ms);
}

/* Performs the work that is due every periodic_ms. Context: work queue. */
void Interface::run_periodic()
{
	__atomic_fetch_add(&tx_dropped_, destinations_.remove_unused(idle_rounds),
			   __ATOMIC_RELAXED);
	destinations_.destroy_retired(retired_rounds);
	multicast_.leave_unused();
	connected_.end_idle();
	periodic_work_.queue(periodic_ms);
}

/*
 * Handles a request for another hardware address. An administrator may change only the interface ID
 * of the GID: the QP number and the subnet prefix are given. The interface has no carrier until the
 * GID is in the port's table.
 * Context: rtnl lock.
 */
int Interface::set_address(const HardwareAddress &wanted)
{
	HardwareAddress expected = address_;
	ib_gid gid;

	__builtin_memcpy(gid.raw, wanted.gid.raw, sizeof(gid.raw));
	__builtin_memcpy(expected.gid.raw + 8, wanted.gid.raw + 8, 8);
	if (gid.global.interface_id == 0u ||
	    __builtin_memcmp(&expected, &wanted, sizeof(wanted)) != 0)
		return -EINVAL;
	/*
	 * An interface with the interface ID of the port's first GID follows later changes of that
	 * GID.
	 */
	ib_gid first;
	const bool own = rdma_query_gid(device_, port_num_, 0, &first) == 0 &&
			 first.global.interface_id == gid.global.interface_id;
	use_guid(own ? __be64{} : gid.global.interface_id);
	/* A child has its parent's setting until it gets its own. */
	each_child(*this, [](Interface &child) { child.use_guid(child.parent_->wanted_guid_); });
	return 0;
}

/* Uses the GID with this interface ID from now on; 0: the port's first GID. Context: rtnl lock. */
void Interface::use_guid(__be64 guid)
{
	wanted_guid_ = guid;
	kern::ignore(read_port());
	publish_address();
	__atomic_fetch_or(&pending_flush_, flush_normal, __ATOMIC_RELEASE);
	refresh_work_.queue();
}

int Interface::change_mtu(unsigned mtu)
{
	if (mode() == Mode::connected)
		return 0;
	if (domain_mtu_ && mtu > domain_mtu_)
		return -EINVAL;
	wanted_mtu_ = mtu;
	return 0;
}

/* Applies the settings that have changed. Context: rtnl lock. */
int Interface::change(const kern_link_settings &settings)
{
	if (settings.umcast >= 0 && umcast_ != (settings.umcast != 0)) {
		umcast_ = settings.umcast;
		multicast_.list_changed();
	}
	return settings.mode < 0 ? 0 : set_mode(static_cast<Mode>(settings.mode));
}

void Interface::tx_timeout()
{
	kern_warning_limited("%s: transmit queue stuck, restarting it\n", kern_netdev_name(dev_));
	queues_.report(fault_queue);
}

/*
 * New rings need a new QP, which changes the hardware address, so the interface must be down.
 * Context: rtnl lock. Errors: EINVAL for sizes that are not supported; EBUSY if the interface is
 * up; those of the allocation.
 */
int Interface::set_rings(u32 receive, u32 transmit)
{
	if (!is_power_of_two(receive) || receive < ReceiveQueue::min_depth ||
	    receive > ReceiveQueue::max_depth || !is_power_of_two(transmit) ||
	    transmit < TransmitQueue::min_depth || transmit > TransmitQueue::max_depth)
		return -EINVAL;
	if (state() != State::down)
		return -EBUSY;

	const u32 former_receive = queues_.receive_depth(),
		  former_transmit = queues_.transmit_depth();
	kern::ignore(queues_.to(Queues::State::none));
	queues_.set_depths(receive, transmit);
	const auto made = queues_.to(Queues::State::made);
	if (!made.ok()) {
		queues_.set_depths(former_receive, former_transmit);
		/* If this also fails, it is retried when the interface is opened. */
		kern::ignore(queues_.to(Queues::State::made));
	}
	publish_address();
	return made.error();
}

/*
 * Attaches the QP to a group. Programs can make the stack join any group, so most groups count as a
 * program's, for which the device may keep only a part of its table (ib_attach_mcast_for_user()).
 * Only groups that an interface needs to work count as the kernel's; a program cannot add to these.
 */
int Interface::enter_group(Group &group)
{
	if (group.joined_for != Group::Use::listen || group.attached)
		return 0;
	const auto attach = group.address.same_peer(broadcast_) || is_all_hosts(group.address)
				    ? ib_attach_mcast
				    : ib_attach_mcast_for_user;
	const int status = attach(qp(), &group.record.mgid, group.record.mlid.value());
	group.attached = status == 0;
	return status;
}

void Interface::resolved_group(const Group &group)
{
	rdma_ah_attr where;
	ib_sa_mcmember_rec record = group.record;
	kern::Owned<Handle> handle;
	if (ib_init_ah_from_mcmember(device_, port_num_, &record, &where) == 0)
		handle = Handle::create(pd_, where);
	resolved(group.address, std::move(handle));
}

ib_sa_client *Interface::sa_client()
{
	return &ipoib::sa_client();
}

} // namespace ipoib
