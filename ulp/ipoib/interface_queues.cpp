// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* The UD QPs of an interface and their queues. */
#include "interface.hpp"

#include <kern/log.hpp>

namespace ipoib
{
namespace
{

constexpr u32 wanted_inline = 192;
constexpr u32 wanted_send_sge = 18;

bool is_power_of_two(u32 value)
{
	return value && !(value & (value - 1));
}

u32 at_most(u32 wanted, int limit)
{
	return limit > 0 && static_cast<u32>(limit) < wanted ? static_cast<u32>(limit) : wanted;
}

} // namespace

unsigned Interface::transmit_queues_wanted()
{
	const unsigned cpus = kern_cpu_count();
	return cpus < max_transmit_queues ? cpus : max_transmit_queues;
}

/* vector: of the interface, each of which begins with another of the device's. */
ib_cq *Interface::create_cq(u32 entries, u32 vector, ib_comp_handler handler)
{
	const auto vectors = static_cast<u32>(device_->num_comp_vectors);
	ib_cq_init_attr attr{};
	attr.cqe = entries;
	attr.comp_vector = ((port_num_ - 1) * (1 + transmit_queues_wanted()) + vector) % vectors;
	return ib_create_cq(device_, handler, nullptr, nullptr, &attr);
}

ib_qp *Interface::create_qp(ib_cq *send_cq, u32 receive_depth, u32 transmit_depth)
{
	ib_qp_init_attr init{};
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
		/* A device that cannot place so much in a request does without. */
		init.cap.max_inline_data = 0;
		qp = ib_create_qp(pd_, &init);
	}
	send_sge_ = init.cap.max_send_sge;
	inline_bytes_ = init.cap.max_inline_data < wanted_inline ? init.cap.max_inline_data : wanted_inline;
	return qp;
}

/* One transmit queue; the first one's QP is that which receives. */
kern::Result<> Interface::create_sender(u32 index, u32 receive_depth, u32 transmit_depth)
{
	Sender &sender = senders_[index];
	ib_cq *cq = create_cq(transmit_depth, 1 + index, [](ib_cq *, void *context) {
		static_cast<TransmitQueue *>(context)->on_completion();
	});
	if (rdma::is_err(cq))
		return kern::Error{rdma::ptr_err(cq)};
	sender.cq = cq;
	ib_qp *qp = create_qp(cq, index ? 0 : receive_depth, transmit_depth);
	if (rdma::is_err(qp))
		return kern::Error{rdma::ptr_err(qp)};
	sender.qp = qp;
	sender.queue = TRY(kern::make<TransmitQueue>(kern::Gfp::kernel));
	TRY(sender.queue->allocate(transmit_depth, pd_->local_dma_lkey));
	sender.queue->moderation().attach(cq);
	cq->cq_context = sender.queue.get();
	return {};
}

/* All queues and their QPs. The first QP's number is part of the hardware address, so it lives as long as the interface keeps its rings. */
kern::Result<> Interface::create_queues(u32 receive_depth, u32 transmit_depth)
{
	ib_port_attr port;
	TRY_ERRNO(ib_query_port(device_, port_num_, &port));
	receive_depth = at_most(receive_depth, device_->attrs.max_qp_wr);
	transmit_depth = at_most(transmit_depth, device_->attrs.max_qp_wr);

	ib_cq *cq = create_cq(receive_depth, 0, [](ib_cq *, void *context) {
		static_cast<ReceiveQueue *>(context)->on_completion();
	});
	if (rdma::is_err(cq))
		return kern::Error{rdma::ptr_err(cq)};
	receive_cq_ = cq;
	receive_ = TRY(kern::make<ReceiveQueue>(kern::Gfp::kernel));
	const auto datagram = static_cast<u32>(ib_mtu_enum_to_int(port.max_mtu));
	TRY(receive_->allocate(device_, receive_depth, datagram, pd_->local_dma_lkey));
	receive_->moderation().attach(cq);
	cq->cq_context = receive_.get();

	/* More queues than vectors would share their interrupts; fewer than the device was made with are always allowed. */
	const u32 queues = at_most(kern_netdev_tx_queue_count(dev_), device_->num_comp_vectors);
	senders_ = TRY(kern::make_array<Sender>(kern::Gfp::kernel, at_most(queues, max_transmit_queues)));
	for (u32 index = 0; index < senders_.size(); index++)
		TRY(create_sender(index, receive_depth, transmit_depth));
	qp_ = senders_[0].qp;
	/* A device without moderation raises an event for each. */
	(void)set_coalesce(receive_coalesce_, transmit_coalesce_);
	return {};
}

void Interface::destroy_queues()
{
	for (Sender &sender : senders_)
		if (sender.qp)
			ib_destroy_qp(sender.qp);
	for (Sender &sender : senders_)
		if (sender.cq)
			ib_destroy_cq(sender.cq);
	if (receive_cq_)
		ib_destroy_cq(receive_cq_);
	qp_ = nullptr;
	receive_cq_ = nullptr;
	senders_ = {};
	receive_.reset();
}

void Interface::attach_queues()
{
	receive_->attach(dev_, qp_, receive_cq_);
	receive_->set_checksum(kern_netdev_rx_checksum(dev_));
	receive_->add(dev_, false);
	u32 index = 0;
	for (Sender &sender : senders_) {
		receive_->add_own_qp(sender.qp->qp_num);
		sender.queue->attach(dev_, index++, device_, sender.qp, sender.cq, send_sge_, inline_bytes_,
				     recover_work_);
		sender.queue->add(dev_, true);
	}
}

void Interface::detach_queues()
{
	receive_->del();
	for (Sender &sender : senders_)
		sender.queue->del();
}

kern::Result<> Interface::modify_qps(ib_qp_attr &attr, int mask)
{
	int first_error = 0;
	for (Sender &sender : senders_)
		if (const int status = ib_modify_qp(sender.qp, &attr, mask); status && !first_error)
			first_error = status;
	return kern::check(first_error);
}

kern::Result<> Interface::to_state(ib_qp_state state)
{
	ib_qp_attr attr{};
	attr.qp_state = state;
	return modify_qps(attr, IB_QP_STATE);
}

/* RESET to RTS, receives posted, NAPI on. Context: rtnl lock. */
kern::Result<> Interface::start_queues()
{
	ib_qp_attr attr{};
	attr.qp_state = IB_QPS_INIT;
	attr.pkey_index = pkey_index_;
	attr.port_num = port_num_;
	/* Until the broadcast group says what it is. */
	attr.qkey = 0;
	auto up = modify_qps(attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY);
	if (up.ok())
		up = to_state(IB_QPS_RTR);
	if (up.ok()) {
		attr.qp_state = IB_QPS_RTS;
		attr.sq_psn = 0;
		up = modify_qps(attr, IB_QP_STATE | IB_QP_SQ_PSN);
	}
	if (!up.ok()) {
		kern::ignore(to_state(IB_QPS_RESET));
		return up;
	}
	ib::Gid group;
	__builtin_memcpy(group.raw, broadcast_.gid.raw, sizeof(group.raw));
	if (auto started = receive_->start(group); !started.ok()) {
		kern::ignore(to_state(IB_QPS_ERR));
		receive_->drain();
		kern::ignore(to_state(IB_QPS_RESET));
		receive_->reclaim();
		return started;
	}
	for (Sender &sender : senders_)
		sender.queue->start();
	return {};
}

/* NAPI off, and every buffer back: by its completion, or, if the device gives none any more, by the RESET. Context: rtnl lock. */
void Interface::stop_queues()
{
	receive_->stop();
	for (Sender &sender : senders_)
		sender.queue->stop();
	/* A device that is gone refuses, and what it had is taken back all the same. */
	kern::ignore(to_state(IB_QPS_ERR));
	const bool received = receive_->drain();
	bool sent = true;
	for (Sender &sender : senders_)
		sent = sender.queue->drain() && sent;
	if (!received || !sent)
		kern_warning_limited("%s: the device kept %s\n", kern_netdev_name(dev_),
				     received ? "sends" : sent ? "receives" : "sends and receives");
	kern::ignore(to_state(IB_QPS_RESET));
	receive_->reclaim();
	for (Sender &sender : senders_)
		sender.queue->reclaim();
}

/* New rings mean a new QP, and so a new hardware address: only while the interface is down. Context: rtnl lock. */
int Interface::set_rings(u32 receive, u32 transmit)
{
	if (!is_power_of_two(receive) || receive < ReceiveQueue::min_depth || receive > ReceiveQueue::max_depth ||
	    !is_power_of_two(transmit) || transmit < TransmitQueue::min_depth ||
	    transmit > TransmitQueue::max_depth)
		return -EINVAL;
	if (opened_)
		return -EBUSY;

	const u32 former_receive = receive_->depth(), former_transmit = senders_[0].queue->depth();
	detach_queues();
	destroy_queues();
	auto made = create_queues(receive, transmit);
	if (!made.ok()) {
		destroy_queues();
		if (auto again = create_queues(former_receive, former_transmit); !again.ok()) {
			kern_error("%s: its queues are lost: %d\n", kern_netdev_name(dev_), again.error());
			return again.error();
		}
	}
	kern::ignore(read_port());
	attach_queues();
	kern_netdev_set_address(dev_, reinterpret_cast<const u8 *>(&address_));
	return made.error();
}

void Interface::get_coalesce(kern_coalesce &rx, kern_coalesce &tx)
{
	rx = receive_->moderation().get();
	/* They have one setting, and each finds its own delay: the longest. */
	tx = senders_[0].queue->moderation().get();
	for (Sender &sender : senders_)
		if (const kern_coalesce other = sender.queue->moderation().get(); other.usecs > tx.usecs)
			tx = other;
}

int Interface::set_coalesce(const kern_coalesce &rx, const kern_coalesce &tx)
{
	if (const int status = receive_->moderation().set(rx))
		return status;
	receive_coalesce_ = rx;
	for (Sender &sender : senders_)
		if (const int status = sender.queue->moderation().set(tx))
			return status;
	transmit_coalesce_ = tx;
	return 0;
}

} // namespace ipoib
