// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements a receive queue that refills itself (MGMT-12), with buffers that the consumer may
 * keep:
 *
 *	struct Buffer : ib_cqe {
 *		kern::ListNode node;				// the queue's while it is posted
 *		u64 dma_addr;					// the queue's
 *		static constexpr u32 dma_bytes = 2048;
 *		void *dma_memory();				// what the hardware writes to, dma_bytes of it
 *		static kern::Result<kern::Owned<Buffer>> create();	// called in any context
 *	};
 *	rdma::ReceiveQueue<Buffer> queue_{pd, depth, done, kern::method<&Owner::wake>, this};
 *
 *	queue_.open(qp); queue_.fill();				// once, in state INIT or later
 *	auto buffer = queue_.take_back(static_cast<Buffer *>(wc->wr_cqe));	// in done, of each completion
 *	buffer = queue_.replace(std::move(buffer));		// to keep it; or queue_.post_again(std::move(buffer))
 *	queue_.make_up();					// after polling, and when woken
 *	queue_.stop(); ib_destroy_qp(qp); queue_.close();
 *
 * There is no lock. The poller of the CQ owns the queue; before that, the code that opens the QP
 * owns it, and afterwards the code that destroys the QP. missing() counts buffers that could not be
 * allocated or that the device refused. This is logged, and `wake` is called in a task when the
 * owner should call make_up() again.
 */
#pragma once
#include <kern/back_off.hpp>
#include <kern/list.hpp>
#include <kern/log.hpp>
#include <kern/memory.hpp>
#include <kern/work.hpp>
#include <rdma/dma.hpp>
#include <rdma/ib_verbs.h>

namespace rdma
{

template<class Buffer>
class ReceiveQueue
{
public:
	/*
	 * depth: number of buffers, at most the QP's max_recv_wr; done: called with each completion
	 * of a buffer; wake: void (T::*)(), called in a task.
	 */
	template<auto Wake, class T>
	ReceiveQueue(ib_pd *pd, int depth, void (*done)(ib_cq *, ib_wc *), kern::Method<Wake> wake,
		     T *owner)
	    : pd_(pd), depth_(depth), done_(done), retry_(wake, owner)
	{
	}
	~ReceiveQueue() { close(); }
	ReceiveQueue(const ReceiveQueue &) = delete;
	ReceiveQueue &operator=(const ReceiveQueue &) = delete;

	void open(ib_qp *qp) { qp_ = qp; }
	/* When this has returned, `wake` is not called any more. Context: process. */
	void stop() { retry_.cancel(); }
	/*
	 * Frees the buffers that the hardware has not returned. The QP must have been reset or
	 * destroyed, so that nothing can write to them, and its completions must have been polled.
	 * After a reset, the queue can be filled again. Context: process.
	 */
	void close()
	{
		stop();
		while (Buffer *buffer = posted_.pop_front()) {
			unmap(*buffer);
			kern::destroy(buffer);
		}
		count_ = 0;
	}

	bool full() const { return count_ == depth_; }
	bool empty() const { return count_ == 0; }
	/* Returns the number of buffers that are missing in the queue. */
	int missing() const { return depth_ - count_; }

	/* Posts the missing buffers. Errors: ENOMEM; those of ib_post_recv(). Context: process. */
	kern::Result<> fill()
	{
		while (!full())
			KERN_TRY(post(KERN_TRY(Buffer::create())));
		return {};
	}
	/*
	 * Like fill(). If it fails, `wake` is called after a delay, which increases with each
	 * failure. Context: process.
	 */
	void make_up()
	{
		const auto filled = fill();

		if (filled.ok()) {
			back_off_.succeeded();
			return;
		}
		kern_warning_limited("%s QP %#x: %d receive buffers are missing: %d\n",
				     pd_->device->name, qp_->qp_num, missing(), filled.error());
		if (retry_.queue(back_off_.next_ms()))
			back_off_.failed();
	}

	/* Takes back the buffer of a completion. It belongs to the caller after that. */
	kern::Owned<Buffer> take_back(Buffer *buffer)
	{
		unmap(*buffer);
		buffer->node.unlink();
		count_--;
		return kern::Owned<Buffer>::adopt(buffer);
	}
	/* Posts a buffer that the consumer does not keep. */
	void post_again(kern::Owned<Buffer> buffer) { kern::ignore(post(std::move(buffer))); }
	/*
	 * Posts a new buffer instead of one that the consumer keeps, and returns the latter. If
	 * there is no memory, it posts the received buffer and returns an empty pointer: the queue
	 * stays full, and the received data is lost.
	 */
	kern::Owned<Buffer> replace(kern::Owned<Buffer> received)
	{
		auto next = Buffer::create();

		if (!next.ok()) {
			post_again(std::move(received));
			return {};
		}
		post_again(next.take());
		return received;
	}

private:
	kern::Result<> post(kern::Owned<Buffer> buffer)
	{
		buffer->done = done_;
		buffer->dma_addr =
			KERN_TRY(map_single(pd_->device, buffer->dma_memory(), Buffer::dma_bytes,
					    kern::dma::Direction::from_device));

		ib_sge sge{buffer->dma_addr, Buffer::dma_bytes, pd_->local_dma_lkey};
		ib_recv_wr wr{};
		wr.wr_cqe = buffer.get();
		wr.sg_list = &sge;
		wr.num_sge = 1;
		if (int status = ib_post_recv(qp_, &wr, nullptr)) {
			unmap(*buffer);
			return kern::Error{status};
		}
		/*
		 * The hardware owns the buffer until its completion, which is not polled before
		 * this function returns.
		 */
		posted_.push_back(*buffer.release());
		count_++;
		return {};
	}
	void unmap(const Buffer &buffer)
	{
		unmap_single(pd_->device, buffer.dma_addr, Buffer::dma_bytes,
			     kern::dma::Direction::from_device);
	}

	ib_pd *const pd_;
	const int depth_;
	void (*const done_)(ib_cq *, ib_wc *);
	ib_qp *qp_ = nullptr;
	kern::List<Buffer, &Buffer::node> posted_;
	int count_ = 0;
	kern::BackOff back_off_;
	kern::DelayedWork retry_;
};

} // namespace rdma
