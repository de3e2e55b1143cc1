// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* The life of an interface: made, opened, following its port, stopped, gone. */
#include "interface.hpp"

#include "client.hpp"

#include <kern/log.hpp>
#include <kern/time.hpp>
#include <rdma/ib_cache.h>

namespace ipoib
{
namespace
{

constexpr unsigned short arphrd_infiniband = 32;
/* To restart a queue loses what is in it, and a card whose host is busy may take seconds (seen: two) for a completion. */
constexpr unsigned watchdog_ms = 10'000;
constexpr unsigned tx_queue_len = 1000;
/* A destination that was not used in four rounds of half a minute is forgotten. */
constexpr unsigned tend_ms = 30'000;
constexpr unsigned idle_rounds = 4;
constexpr unsigned gso_max_size = 65536;

} // namespace

Interface::Interface(ib_device *device, u32 port_num, u16 pkey, Interface *parent)
    : device_(device), port_num_(port_num), pkey_(pkey), parent_(parent),
      broadcast_(broadcast_address(pkey))
{
}

Interface::~Interface()
{
	destroy_queues();
	if (pd_)
		ib_dealloc_pd(pd_);
}

kern::Result<Interface *> Interface::create(ib_device *device, u32 port_num, u16 pkey, Interface *parent,
					    net_device *dev)
{
	auto interface = TRY(kern::adopt(new (kern::Gfp::kernel) Interface(device, port_num, pkey, parent)));
	ib_port_attr attr;
	TRY_ERRNO(ib_query_port(device, port_num, &attr));
	ib_pd *pd = ib_alloc_pd(device, 0);
	if (rdma::is_err(pd))
		return kern::Error{rdma::ptr_err(pd)};
	interface->pd_ = pd;
	const bool allocated = dev == nullptr;
	if (allocated)
		dev = kern_netdev_alloc("ib%d", transmit_queues_wanted());
	if (!dev)
		return kern::Error{-ENOMEM};
	interface->dev_ = dev;
	auto made = interface->create_queues(ReceiveQueue::default_depth, TransmitQueue::default_depth);
	if (!made.ok()) {
		if (allocated)
			kern_netdev_free(dev);
		return kern::Error{made.error()};
	}
	/* What is not known yet is read again when the port comes up (MGMT-10). */
	kern::ignore(interface->read_port());

	const auto max_mtu = ip_mtu(static_cast<unsigned>(ib_mtu_enum_to_int(attr.max_mtu)));
	const auto mtu = ip_mtu(2048) < max_mtu ? ip_mtu(2048) : max_mtu;
	interface->wanted_mtu_ = max_mtu;
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
	interface->attach_queues();
	adopt_link_kind(dev);

	if (const int status = kern_netdev_register_locked(dev)) {
		interface->detach_queues();
		if (allocated)
			kern_netdev_free(dev);
		return kern::Error{status};
	}
	/* Before the device can be opened: the rtnl lock is held. Fewer than allocated are always to be had. */
	kern_netdev_use_tx_queues(dev, static_cast<unsigned>(interface->senders_.size()));
	return interface.release();
}

/* From here on the stack decides; netdev_ops.uninit and netdev_ops.destroy end it. */
void Interface::remove()
{
	kern_netdev_unregister_locked(dev_);
}

/* What the port says of itself now. Errors: ENOENT while the partition is not there; those of the cache. */
kern::Result<> Interface::read_port()
{
	ib_gid gid;
	u16 index, lid;

	TRY_ERRNO(rdma_query_gid(device_, port_num_, 0, &gid));
	port_gid_ = gid;
	if (ib_get_cached_lid(device_, port_num_, &lid) == 0 && receive_)
		receive_->set_own_lid(lid);
	if (qp_) {
		ib::Gid raw;
		__builtin_memcpy(raw.raw, gid.raw, sizeof(raw.raw));
		address_ = HardwareAddress::make(qp_->qp_num, raw);
	}
	pkey_present_ = ib_find_cached_pkey(device_, port_num_, pkey_, &index) == 0;
	if (!pkey_present_)
		return kern::Error{-ENOENT};
	pkey_index_ = index;
	return {};
}

/* Opening does not wait for the link (MGMT-10): refresh() follows the port. Context: rtnl lock. */
int Interface::open()
{
	kern::ignore(read_port());
	if (auto started = start_queues(); !started.ok())
		return started.error();
	opened_ = true;
	tend_work_.queue(tend_ms);
	refresh_work_.queue();
	return 0;
}

/* Context: rtnl lock. */
void Interface::stop()
{
	opened_ = false;
	kern_netdev_carrier(dev_, false);
	kern_netdev_stop_queues(dev_);
	tend_work_.cancel();
	multicast_.stop();
	stop_queues();
	__atomic_fetch_add(&tx_dropped_, destinations_.remove_all(), __ATOMIC_RELAXED);
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
 * Brings the interface into line with its port. The one place that does, so that events that come together cost one pass.
 * Context: work queue.
 */
void Interface::refresh()
{
	kern::RtnlGuard rtnl;
	const u32 flush = __atomic_exchange_n(&pending_flush_, 0, __ATOMIC_ACQ_REL);
	if (!opened_ || removing_)
		return;

	const u16 former_index = pkey_index_;
	const HardwareAddress former_address = address_;
	const bool present = read_port().ok();
	ib_port_state state = IB_PORT_NOP;
	ib_get_cached_port_state(device_, port_num_, &state);
	const bool active = present && state == IB_PORT_ACTIVE;

	if (flush & (flush_normal | flush_heavy) || !active) {
		kern_netdev_carrier(dev_, false);
		multicast_.stop();
		__atomic_fetch_add(&tx_dropped_, destinations_.remove_all(), __ATOMIC_RELAXED);
	} else if (flush & flush_light) {
		destinations_.mark_stale();
	}
	if (!address_.same_peer(former_address))
		kern_netdev_set_address(dev_, reinterpret_cast<const u8 *>(&address_));
	if (!active)
		return;

	if ((flush & flush_heavy) && pkey_index_ != former_index) {
		kern_netdev_stop_queues(dev_);
		stop_queues();
		if (auto started = start_queues(); !started.ok()) {
			kern_error("%s: no restart after a change of partitions: %d\n", kern_netdev_name(dev_),
				   started.error());
			return;
		}
	}
	ib_sa_mcmember_rec record;
	if (multicast_.broadcast_record(record))
		apply_domain(record);
	else
		multicast_.start();
}

/* The interface is in its broadcast domain: takes over what that lays down, and goes up. Context: rtnl lock. */
void Interface::apply_domain(const ib_sa_mcmember_rec &record)
{
	ib_qp_attr attr{};
	attr.qkey = record.qkey.value();
	if (auto taken = modify_qps(attr, IB_QP_QKEY); !taken.ok()) {
		kern_warning_limited("%s: Q_Key %#x not taken: %d\n", kern_netdev_name(dev_), attr.qkey,
				     taken.error());
		return;
	}
	const int datagram = ib_mtu_enum_to_int(static_cast<ib_mtu>(record.mtu));
	if (datagram > 0) {
		const unsigned domain_mtu = ip_mtu(static_cast<unsigned>(datagram));
		domain_mtu_ = domain_mtu;
		const unsigned mtu = wanted_mtu_ < domain_mtu ? wanted_mtu_ : domain_mtu;
		if (mtu != kern_netdev_mtu(dev_))
			kern_netdev_set_mtu(dev_, mtu);
	}
	if (kern_netdev_carrier_ok(dev_))
		return;
	kern_netdev_start_queues(dev_);
	kern_netdev_carrier(dev_, true);
}

/* Whether a QP sends, if need be after a send error has stopped it (IBA 10.3.1, SQE). Context: process. */
static bool sends_again(ib_qp *qp)
{
	ib_qp_attr attr{}, found{};
	ib_qp_init_attr init;
	if (ib_query_qp(qp, &found, IB_QP_STATE, &init))
		return false;
	if (found.qp_state != IB_QPS_SQE)
		return found.qp_state == IB_QPS_RTS;
	attr.cur_qp_state = IB_QPS_SQE;
	attr.qp_state = IB_QPS_RTS;
	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_CUR_STATE) == 0;
}

/* A send error has stopped a QP: brings it back. Context: work queue. */
void Interface::recover()
{
	kern::RtnlGuard rtnl;
	if (!opened_ || removing_)
		return;
	bool well = !__atomic_exchange_n(&stuck_, false, __ATOMIC_RELAXED);
	for (const Sender &sender : senders_)
		well = well && sends_again(sender.qp);
	if (well)
		return;
	/* Worse than that: from the beginning. */
	__atomic_fetch_or(&pending_flush_, flush_normal, __ATOMIC_RELEASE);
	kern_netdev_carrier(dev_, false);
	kern_netdev_stop_queues(dev_);
	stop_queues();
	if (auto started = start_queues(); !started.ok())
		kern_error("%s: no restart after a send error: %d\n", kern_netdev_name(dev_), started.error());
	refresh_work_.queue();
}

/* Looks after what time brings. Context: work queue. */
void Interface::tend()
{
	__atomic_fetch_add(&tx_dropped_, destinations_.remove_unused(idle_rounds), __ATOMIC_RELAXED);
	multicast_.leave_unused();
	tend_work_.queue(tend_ms);
}

int Interface::change_mtu(unsigned mtu)
{
	if (domain_mtu_ && mtu > domain_mtu_)
		return -EINVAL;
	wanted_mtu_ = mtu;
	return 0;
}

void Interface::tx_timeout()
{
	kern_warning_limited("%s: transmit queue stuck, restarting it\n", kern_netdev_name(dev_));
	__atomic_store_n(&stuck_, true, __ATOMIC_RELAXED);
	recover_work_.queue();
}

int Interface::enter_group(Group &group)
{
	if (group.joined_for != Group::Use::listen || group.attached)
		return 0;
	const int status = ib_attach_mcast(qp_, &group.record.mgid, group.record.mlid.value());
	group.attached = status == 0;
	return status;
}

void Interface::resolved_group(const Group &group)
{
	rdma_ah_attr where;
	ib_sa_mcmember_rec record = group.record;
	ib_ah *ah = nullptr;
	if (ib_init_ah_from_mcmember(device_, port_num_, &record, &where) == 0) {
		ah = rdma_create_ah(pd_, &where, 0);
		if (rdma::is_err(ah))
			ah = nullptr;
	}
	resolved(group.address, ah);
}

ib_sa_client *Interface::sa_client()
{
	return &ipoib::sa_client();
}

} // namespace ipoib
