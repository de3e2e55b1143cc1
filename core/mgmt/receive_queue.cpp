// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "receive_queue.hpp"

#include <rdma/dma.hpp>

namespace mgmt
{

kern::Result<> ReceiveQueue::fill()
{
	while (!full())
		TRY(post(TRY(Receive::create())));
	return {};
}

kern::Result<> ReceiveQueue::post(kern::Owned<Receive> receive)
{
	receive->done = done_;
	receive->dma_addr = TRY(rdma::map_single(pd_->device, &receive->buffer, sizeof(Receive::Buffer), kern::dma::Direction::from_device));

	ib_sge sge{receive->dma_addr, sizeof(Receive::Buffer), pd_->local_dma_lkey};
	ib_recv_wr wr{};
	wr.wr_cqe = receive.get();
	wr.sg_list = &sge;
	wr.num_sge = 1;
	const ib_recv_wr *bad;
	if (int status = ib_post_recv(qp_, &wr, &bad)) {
		unmap(*receive);
		return kern::Error{status};
	}
	/* The hardware has it now, and gives it back by its completion, which nobody polls meanwhile. */
	posted_.push_back(*receive.release());
	count_++;
	return {};
}

void ReceiveQueue::unmap(const Receive &receive)
{
	rdma::unmap_single(pd_->device, receive.dma_addr, sizeof(Receive::Buffer), kern::dma::Direction::from_device);
}

kern::Owned<Receive> ReceiveQueue::take_back(Receive *receive)
{
	unmap(*receive);
	receive->node.unlink();
	count_--;
	return kern::Owned<Receive>::adopt(receive);
}

void ReceiveQueue::close()
{
	while (Receive *receive = posted_.pop_front()) {
		unmap(*receive);
		kern::destroy(receive);
	}
	count_ = 0;
}

} // namespace mgmt
