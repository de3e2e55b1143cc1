// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * A receive queue that refills itself (MGMT-12), for a QP whose receive CQ is from ib_alloc_cq():
 *
 *	auto queue = TRY(rdma::ReceiveQueue::create(pd, depth, bytes, handler, context));
 *	TRY_ERRNO(queue->fill(qp));			// once, in state INIT or later
 *	...
 *	queue->stop(); ib_drain_rq(qp); ib_destroy_qp(qp); queue = {};	// the queue outlives the QP's receives
 *
 * Each buffer goes back to the QP when the handler has looked at it. A handler that keeps the memory is given another
 * buffer in its place; where there is no memory, or the QP refuses it, the shortfall is counted and made up later.
 */
#pragma once
#include <kern/atomic.hpp>
#include <kern/list.hpp>
#include <kern/lock.hpp>
#include <kern/memory.hpp>
#include <kern/work.hpp>
#include <rdma/dma.hpp>
#include <rdma/ib_verbs.h>

namespace rdma
{

class ReceiveQueue {
public:
	/* What becomes of the memory after the handler: posted again, or the handler's, to be freed by kern_free(). */
	enum class Verdict { again, kept };

	/* Called for each successful receive, in the CQ's polling context. */
	using Handler = Verdict (*)(void *context, ib_wc &wc, void *memory);

	/* depth: at most the QP's max_recv_wr; bytes: of each buffer. Errors: ENOMEM. Context: process. */
	static kern::Result<kern::Owned<ReceiveQueue>> create(ib_pd *pd, unsigned int depth, unsigned int bytes,
							      Handler handler, void *context)
	{
		auto queue = TRY(kern::adopt(new (kern::Gfp::kernel) ReceiveQueue(pd, bytes, handler, context)));
		queue->buffers_ = TRY(kern::make_array<Buffer>(kern::Gfp::kernel, depth));
		for (Buffer &buffer : queue->buffers_) {
			buffer.queue = queue.get();
			TRY(queue->equip(buffer, kern::Gfp::kernel));
			queue->put_idle(buffer);
		}
		return queue;
	}
	/* All that was posted has completed. Context: process. */
	~ReceiveQueue()
	{
		stop();
		/* One that was not made whole has posted nothing. */
		KERN_WARN_ON(qp_ && idle_count_ != buffers_.size());
		while (idle_.pop_front())
			;
		for (Buffer &buffer : buffers_)
			strip(buffer);
	}
	ReceiveQueue(const ReceiveQueue &) = delete;
	ReceiveQueue &operator=(const ReceiveQueue &) = delete;

	/* Posts all buffers to the QP, and from now on keeps it full. Errors: the driver's. Context: process. */
	int fill(ib_qp *qp)
	{
		qp_ = qp;
		return post_idle();
	}
	/* Makes up for no shortfall any more: before the QP is drained. Context: process. */
	void stop()
	{
		kern::write_once(stopping_, true);
		refill_.cancel();
	}
	/* Buffers that the QP should have and has not. Any context. */
	unsigned int shortfall() const { return kern::read_once(idle_count_); }
	/* How often there was no memory for a buffer, or the QP refused one. Any context. */
	unsigned long shortages() const { return shortages_.load_relaxed(); }

private:
	struct Buffer {
		ib_cqe cqe{.done = done};
		ReceiveQueue *queue = nullptr;
		void *memory = nullptr;
		u64 address = 0;
		kern::ListNode node;
	};
	static constexpr unsigned int retry_ms = 10;

	ReceiveQueue(ib_pd *pd, unsigned int bytes, Handler handler, void *context)
		: pd_(pd), bytes_(bytes), handler_(handler), context_(context)
	{
	}

	/* Gives a buffer memory, if it has none. */
	kern::Result<> equip(Buffer &buffer, kern::Gfp gfp)
	{
		if (buffer.memory)
			return {};
		void *memory = kern_alloc(bytes_, static_cast<unsigned int>(gfp));
		if (!memory)
			return kern::Error{-ENOMEM};
		auto mapped = map_single(pd_->device, memory, bytes_, kern::dma::Direction::from_device);
		if (!mapped.ok()) {
			kern_free(memory);
			return kern::Error{mapped.error()};
		}
		buffer.memory = memory;
		buffer.address = mapped.value();
		return {};
	}
	/* The memory, which is the CPU's again. */
	void *unmap(Buffer &buffer)
	{
		unmap_single(pd_->device, buffer.address, bytes_, kern::dma::Direction::from_device);
		return std::exchange(buffer.memory, nullptr);
	}
	void strip(Buffer &buffer)
	{
		if (buffer.memory)
			kern_free(unmap(buffer));
	}

	int post(Buffer &buffer)
	{
		ib_sge sge = {.addr = buffer.address, .length = bytes_, .lkey = pd_->local_dma_lkey};
		ib_recv_wr wr = {};

		wr.wr_cqe = &buffer.cqe;
		wr.sg_list = &sge;
		wr.num_sge = 1;
		return ib_post_recv(qp_, &wr, nullptr);
	}

	static void done(ib_cq *, ib_wc *wc)
	{
		auto *buffer = reinterpret_cast<Buffer *>(wc->wr_cqe);
		ReceiveQueue &queue = *buffer->queue;

		if (wc->status != IB_WC_SUCCESS) {
			/* The QP is in error: nothing is received any more. */
			kern::write_once(queue.stopping_, true);
			queue.put_idle(*buffer);
			return;
		}
		if (queue.take_in(*buffer, *wc) && queue.post(*buffer) == 0)
			return;
		queue.shortages_.add_relaxed(1);
		queue.put_idle(*buffer);
		if (!kern::read_once(queue.stopping_))
			queue.refill_.queue(retry_ms);
	}
	/* Shows a received buffer to the handler; true if it can be posted again. */
	bool take_in(Buffer &buffer, ib_wc &wc)
	{
		/* The device has written; the mapping ends before the CPU reads, and a new one is made for the next time. */
		void *memory = unmap(buffer);

		if (handler_(context_, wc, memory) == Verdict::kept)
			return equip(buffer, kern::Gfp::atomic).ok();
		auto mapped = map_single(pd_->device, memory, bytes_, kern::dma::Direction::from_device);
		if (!mapped.ok()) {
			kern_free(memory);
			return false;
		}
		buffer.memory = memory;
		buffer.address = mapped.value();
		return true;
	}

	void put_idle(Buffer &buffer)
	{
		kern::Guard guard(lock_);
		idle_.push_back(buffer);
		kern::write_once(idle_count_, idle_count_ + 1);
	}
	Buffer *take_idle()
	{
		kern::Guard guard(lock_);
		Buffer *buffer = idle_.pop_front();
		if (buffer)
			kern::write_once(idle_count_, idle_count_ - 1);
		return buffer;
	}
	int post_idle()
	{
		while (Buffer *buffer = take_idle()) {
			auto equipped = equip(*buffer, kern::Gfp::kernel);
			const int error = equipped.ok() ? post(*buffer) : equipped.error();
			if (error) {
				put_idle(*buffer);
				return error;
			}
		}
		return 0;
	}
	void refill()
	{
		if (kern::read_once(stopping_) || post_idle() == 0)
			return;
		shortages_.add_relaxed(1);
		refill_.queue(retry_ms);
	}

	ib_pd *const pd_;
	const unsigned int bytes_;
	const Handler handler_;
	void *const context_;
	ib_qp *qp_ = nullptr;
	bool stopping_ = false;
	kern::OwnedArray<Buffer> buffers_;
	kern::IrqSpinLock lock_{KERN_LOCK_CLASS("rdma.receive_queue")};
	kern::List<Buffer, &Buffer::node> idle_ GUARDED_BY(lock_);
	unsigned int idle_count_ = 0;
	kern::Atomic<unsigned long> shortages_{0};
	kern::DelayedWork refill_{kern::method<&ReceiveQueue::refill>, this};
};

} // namespace rdma
