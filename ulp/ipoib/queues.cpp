// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "queues.hpp"

#include <kern/log.hpp>
#include <rdma/objects.hpp>

namespace ipoib
{
namespace
{

constexpr u32 wanted_inline = 192;
constexpr u32 wanted_send_sge = 18;

/* Returns `wanted`, or `limit` if that is positive and smaller. */
u32 at_most(u32 wanted, int limit)
{
	return limit > 0 && static_cast<u32>(limit) < wanted ? static_cast<u32>(limit) : wanted;
}

/* Halves `wanted`, a power of two, until it is at most the device's limit. */
u32 ring_size(u32 wanted, int limit)
{
	while (limit > 0 && wanted > static_cast<u32>(limit))
		wanted /= 2;
	return wanted;
}

} // namespace

Queues::Queues(ib_device *device, u32 port_num, kern::DelayedWork &recovery_work)
    : device_(device), port_num_(port_num), faults_(recovery_work)
{
	set_depths(receive_depth_, transmit_depth_);
}

Queues::~Queues()
{
	kern_assert(state() == State::none);
}

void Queues::set_depths(u32 receive, u32 transmit)
{
	receive_depth_ = ring_size(receive, device_->attrs.max_qp_wr);
	transmit_depth_ = ring_size(transmit, device_->attrs.max_qp_wr);
}

kern::Result<> Queues::attach(net_device *dev, const ib::Gid &broadcast)
{
	broadcast_ = broadcast;
	/*
	 * More queues than completion vectors would share interrupts. The device may have been
	 * allocated with more queues than are used.
	 */
	const u32 queues =
		at_most(at_most(kern_netdev_tx_queue_count(dev), device_->num_comp_vectors),
			max_transmit_queues);
	senders_ = KERN_TRY(kern::make_array<Sender>(kern::Gfp::kernel, queues));
	dev_ = dev;
	receive_.init(dev, faults_);
	u32 index = 0;
	for (Sender &sender : senders_)
		sender.queue.init(dev, index++, faults_);
	return {};
}

void Queues::detach()
{
	kern_assert(state() == State::none);
	if (!std::exchange(dev_, nullptr))
		return;
	receive_.del();
	for (Sender &sender : senders_)
		sender.queue.del();
}

/*
 * Acquires the resources that each state adds. step_down() releases them, also if step_up() failed
 * half-way. Context: rtnl lock.
 */
kern::Result<> Queues::step_up(State to)
{
	switch (to) {
	case State::none:
		break;
	case State::made:
		return make();
	case State::ready:
		return connect();
	case State::running:
		return run();
	}
	return {};
}

Queues::State Queues::step_down(State from)
{
	switch (from) {
	case State::none:
		break;
	case State::made:
		unmake();
		break;
	case State::ready:
		return disconnect();
	case State::running:
		halt();
		return State::ready;
	}
	return State::none;
}

/*
 * Creates a CQ. vector: index among the interface's CQs. The interfaces of different ports begin
 * with different completion vectors of the device.
 */
kern::Result<ib_cq *> Queues::make_cq(u32 entries, u32 vector, ib_comp_handler handler,
				      void (*event_handler)(ib_event *, void *), void *context)
{
	const auto vectors = static_cast<u32>(device_->num_comp_vectors);
	const u32 first = (port_num_ - 1) * (1 + static_cast<u32>(senders_.size()));
	ib_cq_init_attr attr{};
	attr.cqe = entries;
	attr.comp_vector = (first + vector) % vectors;
	return rdma::check(ib_create_cq(device_, handler, event_handler, context, &attr));
}

/* Context: event handler. */
void Queues::on_qp_event(ib_event *event, void *context)
{
	switch (event->event) {
	case IB_EVENT_QP_FATAL:
	case IB_EVENT_QP_REQ_ERR:
	case IB_EVENT_QP_ACCESS_ERR:
		static_cast<Queues *>(context)->report(fault_queue);
		break;
	default:
		break;
	}
}

kern::Result<ib_qp *> Queues::make_qp(ib_cq *send_cq, u32 receive_depth, u32 transmit_depth)
{
	ib_qp_init_attr init{};
	init.event_handler = on_qp_event;
	init.qp_context = this;
	init.send_cq = send_cq;
	init.recv_cq = receive_cq_;
	init.cap.max_send_wr = transmit_depth;
	init.cap.max_recv_wr = receive_depth;
	init.cap.max_send_sge = at_most(wanted_send_sge, device_->attrs.max_send_sge);
	init.cap.max_recv_sge = receive_depth ? 2 : 0;
	init.cap.max_inline_data = wanted_inline;
	init.sq_sig_type = IB_SIGNAL_REQ_WR;
	init.qp_type = IB_QPT_UD;
	if (device_->attrs.kernel_cap_flags & IBK_UD_TSO)
		init.create_flags |= IB_QP_CREATE_IPOIB_UD_LSO;
	if (device_->attrs.kernel_cap_flags & IBK_BLOCK_MULTICAST_LOOPBACK)
		init.create_flags |= IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK;
	ib_qp *qp = ib_create_qp(pd_, &init);
	if (rdma::is_err(qp)) {
		/* A device that does not support this much inline data is used without it. */
		init.cap.max_inline_data = 0;
		qp = ib_create_qp(pd_, &init);
	}
	send_sge_ = init.cap.max_send_sge;
	inline_bytes_ =
		init.cap.max_inline_data < wanted_inline ? init.cap.max_inline_data : wanted_inline;
	return rdma::check(qp);
}

/* Creates a transmit queue. The QP of the first one also receives. */
kern::Result<> Queues::make_sender(u32 index, u32 receive_depth, u32 transmit_depth)
{
	Sender &sender = senders_[index];
	sender.cq = KERN_TRY(make_cq(
		transmit_depth, 1 + index,
		[](ib_cq *, void *queue) { static_cast<TransmitQueue *>(queue)->on_completion(); },
		[](ib_event *, void *queue) {
			static_cast<TransmitQueue *>(queue)->report(fault_cq);
		},
		&sender.queue));
	sender.qp = KERN_TRY(make_qp(sender.cq, index ? 0 : receive_depth, transmit_depth));
	KERN_TRY(sender.queue.allocate(transmit_depth, pd_->local_dma_lkey));
	sender.queue.attach(device_, sender.qp, sender.cq, send_sge_, inline_bytes_);
	receive_.add_own_qp(sender.qp->qp_num);
	return {};
}

/*
 * Allocates all rings and creates their CQs and QPs. The number of the first QP is part of the
 * hardware address, so this QP exists as long as the interface keeps its rings.
 */
kern::Result<> Queues::make()
{
	ib_port_attr port;
	KERN_TRY_ERRNO(ib_query_port(device_, port_num_, &port));
	receive_cq_ = KERN_TRY(make_cq(
		receive_depth_, 0,
		[](ib_cq *, void *queue) { static_cast<ReceiveQueue *>(queue)->on_completion(); },
		[](ib_event *, void *queue) {
			static_cast<ReceiveQueue *>(queue)->report(fault_cq);
		},
		&receive_));
	const auto datagram = static_cast<u32>(ib_mtu_enum_to_int(port.max_mtu));
	KERN_TRY(receive_.allocate(device_, receive_depth_, datagram, pd_->local_dma_lkey));
	for (u32 index = 0; index < senders_.size(); index++)
		KERN_TRY(make_sender(index, receive_depth_, transmit_depth_));
	receive_.attach(senders_[0].qp, receive_cq_);
	return {};
}

void Queues::unmake()
{
	receive_.detach();
	for (Sender &sender : senders_)
		sender.queue.detach();
	for (Sender &sender : senders_)
		if (ib_qp *qp = std::exchange(sender.qp, nullptr))
			KERN_WARN_ON(ib_destroy_qp(qp));
	for (Sender &sender : senders_)
		if (ib_cq *cq = std::exchange(sender.cq, nullptr))
			ib_destroy_cq(cq);
	if (ib_cq *cq = std::exchange(receive_cq_, nullptr))
		ib_destroy_cq(cq);
	/* The QPs are destroyed, so the device does not use their buffers any more. */
	receive_.reclaim();
	receive_.free();
	for (Sender &sender : senders_) {
		sender.queue.reclaim();
		sender.queue.free();
	}
}

/* Modifies all QPs. Returns the first error, if any. */
kern::Result<> Queues::modify(ib_qp_attr &attr, int mask)
{
	int first_error = 0;
	for (Sender &sender : senders_)
		if (const int status = ib_modify_qp(sender.qp, &attr, mask); status && !first_error)
			first_error = status;
	return kern::check(first_error);
}

kern::Result<> Queues::to_qp_state(ib_qp_state state)
{
	ib_qp_attr attr{};
	attr.qp_state = state;
	return modify(attr, IB_QP_STATE);
}

kern::Result<> Queues::set_qkey(u32 qkey)
{
	ib_qp_attr attr{};
	attr.qkey = qkey;
	return modify(attr, IB_QP_QKEY);
}

/* Moves the QPs from RESET to RTS, and posts all receives. */
kern::Result<> Queues::connect()
{
	ib_qp_attr attr{};
	attr.qp_state = IB_QPS_INIT;
	attr.pkey_index = pkey_index_;
	attr.port_num = port_num_;
	/* The Q_Key is set to that of the broadcast group when that is known. */
	attr.qkey = 0;
	KERN_TRY(modify(attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY));
	KERN_TRY(to_qp_state(IB_QPS_RTR));
	attr.qp_state = IB_QPS_RTS;
	attr.sq_psn = 0;
	KERN_TRY(modify(attr, IB_QP_STATE | IB_QP_SQ_PSN));
	return receive_.fill(broadcast_);
}

/*
 * Recovers every buffer: by its completion or, if the device does not complete it, by moving the QP
 * to RESET. If a QP cannot be moved to RESET, all verbs objects are destroyed, and the interface
 * starts again with new ones.
 */
Queues::State Queues::disconnect()
{
	if (to_qp_state(IB_QPS_ERR).ok()) {
		const bool received = receive_.drain();
		bool sent = true;
		for (Sender &sender : senders_)
			sent = sender.queue.drain() && sent;
		if (!received || !sent)
			kern_warning_limited("%s: the device kept %s\n", kern_netdev_name(dev_),
					     received ? "sends"
					     : sent   ? "receives"
						      : "sends and receives");
	}
	if (!to_qp_state(IB_QPS_RESET).ok()) {
		unmake();
		return State::none;
	}
	receive_.reclaim();
	for (Sender &sender : senders_)
		sender.queue.reclaim();
	return State::made;
}

/* Starts all queues, even if one fails; halt() stops them. Returns the first error, if any. */
kern::Result<> Queues::run()
{
	int error = receive_.start().error();
	for (Sender &sender : senders_)
		if (const int status = sender.queue.start().error(); status && !error)
			error = status;
	return kern::check(error);
}

/*
 * Stops completions first, because a completion may restart a netdev queue that was stopped because
 * its ring was full.
 */
void Queues::halt()
{
	receive_.stop();
	for (Sender &sender : senders_)
		sender.queue.stop();
	kern_netdev_stop_queues(dev_);
}

bool Queues::send_again()
{
	for (const Sender &sender : senders_) {
		ib_qp_attr attr{}, found{};
		ib_qp_init_attr init;
		if (ib_query_qp(sender.qp, &found, IB_QP_STATE, &init))
			return false;
		if (found.qp_state == IB_QPS_RTS)
			continue;
		attr.cur_qp_state = IB_QPS_SQE;
		attr.qp_state = IB_QPS_RTS;
		if (found.qp_state != IB_QPS_SQE ||
		    ib_modify_qp(sender.qp, &attr, IB_QP_STATE | IB_QP_CUR_STATE))
			return false;
	}
	return true;
}

TransmitCounters Queues::sent() const
{
	TransmitCounters all{};
	for (const Sender &sender : senders_)
		all += sender.queue.counters();
	return all;
}

void Queues::get_coalesce(kern_coalesce &rx, kern_coalesce &tx)
{
	rx = receive_.moderation().get();
	/*
	 * All transmit queues have the same setting, but each one chooses its own adaptive delay.
	 * The longest delay is reported.
	 */
	tx = senders_[0].queue.moderation().get();
	for (Sender &sender : senders_)
		if (const kern_coalesce other = sender.queue.moderation().get();
		    other.usecs > tx.usecs)
			tx = other;
}

int Queues::set_coalesce(const kern_coalesce &rx, const kern_coalesce &tx)
{
	if (const int status = receive_.moderation().set(rx))
		return status;
	for (Sender &sender : senders_)
		if (const int status = sender.queue.moderation().set(tx))
			return status;
	return 0;
}

} // namespace ipoib
