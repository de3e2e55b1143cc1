// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* The UD QP of an interface and its two queues. */
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

/* Both queues and their QP. The QP's number is part of the hardware address, so it lives as long as the interface keeps its rings. */
kern::Result<> Interface::create_queues(u32 receive_depth, u32 transmit_depth)
{
	ib_port_attr port;
	TRY_ERRNO(ib_query_port(device_, port_num_, &port));
	receive_depth = at_most(receive_depth, device_->attrs.max_qp_wr);
	transmit_depth = at_most(transmit_depth, device_->attrs.max_qp_wr);

	const auto vectors = static_cast<u32>(device_->num_comp_vectors);
	ib_cq_init_attr cq_attr{};
	cq_attr.cqe = receive_depth;
	cq_attr.comp_vector = (2 * (port_num_ - 1)) % vectors;
	ib_cq *cq = ib_create_cq(
		device_, [](ib_cq *, void *context) { static_cast<ReceiveQueue *>(context)->on_completion(); },
		nullptr, nullptr, &cq_attr);
	if (rdma::is_err(cq))
		return kern::Error{rdma::ptr_err(cq)};
	receive_cq_ = cq;
	cq_attr.cqe = transmit_depth;
	cq_attr.comp_vector = (2 * (port_num_ - 1) + 1) % vectors;
	cq = ib_create_cq(
		device_, [](ib_cq *, void *context) { static_cast<TransmitQueue *>(context)->on_completion(); },
		nullptr, nullptr, &cq_attr);
	if (rdma::is_err(cq))
		return kern::Error{rdma::ptr_err(cq)};
	transmit_cq_ = cq;

	ib_qp_init_attr init{};
	init.send_cq = transmit_cq_;
	init.recv_cq = receive_cq_;
	init.cap.max_send_wr = transmit_depth;
	init.cap.max_recv_wr = receive_depth;
	init.cap.max_send_sge = at_most(wanted_send_sge, device_->attrs.max_send_sge);
	init.cap.max_recv_sge = 2;
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
	if (rdma::is_err(qp))
		return kern::Error{rdma::ptr_err(qp)};
	qp_ = qp;
	send_sge_ = init.cap.max_send_sge;
	inline_bytes_ = init.cap.max_inline_data < wanted_inline ? init.cap.max_inline_data : wanted_inline;

	auto receive = TRY(kern::make<ReceiveQueue>(kern::Gfp::kernel));
	auto transmit = TRY(kern::make<TransmitQueue>(kern::Gfp::kernel));
	const auto datagram = static_cast<u32>(ib_mtu_enum_to_int(port.max_mtu));
	TRY(receive->allocate(device_, receive_depth, datagram, pd_->local_dma_lkey));
	TRY(transmit->allocate(transmit_depth, pd_->local_dma_lkey));
	receive_cq_->cq_context = receive.get();
	transmit_cq_->cq_context = transmit.get();
	receive_ = std::move(receive);
	transmit_ = std::move(transmit);
	/* A device without moderation raises an event for each. */
	receive_->moderation().attach(receive_cq_);
	transmit_->moderation().attach(transmit_cq_);
	(void)set_coalesce(receive_coalesce_, transmit_coalesce_);
	return {};
}

void Interface::destroy_queues()
{
	if (qp_)
		ib_destroy_qp(qp_);
	if (transmit_cq_)
		ib_destroy_cq(transmit_cq_);
	if (receive_cq_)
		ib_destroy_cq(receive_cq_);
	qp_ = nullptr;
	transmit_cq_ = receive_cq_ = nullptr;
	receive_.reset();
	transmit_.reset();
}

void Interface::attach_queues()
{
	receive_->attach(dev_, qp_, receive_cq_);
	receive_->set_checksum(device_->attrs.device_cap_flags & IB_DEVICE_UD_IP_CSUM);
	transmit_->attach(dev_, device_, qp_, transmit_cq_, send_sge_, inline_bytes_, recover_work_);
	receive_->add(dev_, false);
	transmit_->add(dev_, true);
}

void Interface::detach_queues()
{
	receive_->del();
	transmit_->del();
}

kern::Result<> Interface::to_state(ib_qp_state state)
{
	ib_qp_attr attr{};
	attr.qp_state = state;
	return kern::check(ib_modify_qp(qp_, &attr, IB_QP_STATE));
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
	TRY_ERRNO(ib_modify_qp(qp_, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY));
	if (auto up = to_state(IB_QPS_RTR); !up.ok()) {
		kern::ignore(to_state(IB_QPS_RESET));
		return up;
	}
	attr.qp_state = IB_QPS_RTS;
	attr.sq_psn = 0;
	if (int status = ib_modify_qp(qp_, &attr, IB_QP_STATE | IB_QP_SQ_PSN)) {
		kern::ignore(to_state(IB_QPS_RESET));
		return kern::Error{status};
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
	transmit_->start();
	return {};
}

/* NAPI off, and every buffer back: by its completion, or, if the device gives none any more, by the RESET. Context: rtnl lock. */
void Interface::stop_queues()
{
	receive_->stop();
	transmit_->stop();
	/* A device that is gone refuses, and what it had is taken back all the same. */
	kern::ignore(to_state(IB_QPS_ERR));
	const bool received = receive_->drain(), sent = transmit_->drain();
	if (!received || !sent)
		kern_warning_limited("%s: the device kept %s\n", kern_netdev_name(dev_),
				     received ? "sends" : sent ? "receives" : "sends and receives");
	kern::ignore(to_state(IB_QPS_RESET));
	receive_->reclaim();
	transmit_->reclaim();
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

	const u32 former_receive = receive_->depth(), former_transmit = transmit_->depth();
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
	tx = transmit_->moderation().get();
}

int Interface::set_coalesce(const kern_coalesce &rx, const kern_coalesce &tx)
{
	if (const int status = receive_->moderation().set(rx))
		return status;
	receive_coalesce_ = rx;
	if (const int status = transmit_->moderation().set(tx))
		return status;
	transmit_coalesce_ = tx;
	return 0;
}

} // namespace ipoib
