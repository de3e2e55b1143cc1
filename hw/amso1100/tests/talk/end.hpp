// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements one end of a connection of weft_talk, the kernel module with which guest tests use the
// RNIC.
#pragma once
#include <kern/dma.hpp>
#include <kern/time.hpp>
#include <kern/wait_queue.hpp>
#include <rdma/objects.hpp>
#include <rdma/rdma_cm.h>

namespace talk
{

constexpr u32 memory_bytes = 256 << 10;
constexpr unsigned int default_wait_ms = 60000;
/* Maximum number of outstanding requests. */
constexpr u32 send_depth = 64, receive_depth = 320;

/*
 * A message, big-endian: the address and the key of memory. From the server, it means completion.
 */
struct Note {
	u64 address;
	u32 key;
	u32 size;

	/* Returns the note in the opposite byte order. */
	Note swapped() const
	{
		return {__builtin_bswap64(address), __builtin_bswap32(key),
			__builtin_bswap32(size)};
	}
};
static_assert(sizeof(Note) == 16);

/* One end of a connection: an ID, a QP, and memory. */
class End
{
public:
	explicit End(rdma_cm_id *from = nullptr) : id(from) {}
	~End()
	{
		if (!id)
			return;
		rdma_disconnect(id);
		rdma_destroy_qp(id);
		/*
		 * The removal of a device waits for its IDs, but not for its other objects, so
		 * these are destroyed first.
		 */
		all = {};
		memory = {};
		cq.reset();
		pd.reset();
		rdma_destroy_id(id);
	}
	/* Creates the queues and the memory on the ID's device. */
	kern::Result<> equip()
	{
		pd = KERN_TRY(rdma::Pd::create(id->device));
		cq = KERN_TRY(rdma::CompletionQueue::create(
			id->device,
			[](ib_cq *, void *context) {
				auto &end = *static_cast<End *>(context);
				end.interrupts.fetch_add(1);
				end.changed.wake_all();
			},
			this, send_depth + receive_depth));
		memory = KERN_TRY(kern::DmaBuffer::create(id->device->dma_device,
							  memory_bytes + 2 * sizeof(Note)));
		all = KERN_TRY(rdma::MemoryRegion::all(pd, IB_ACCESS_LOCAL_WRITE |
								   IB_ACCESS_REMOTE_READ |
								   IB_ACCESS_REMOTE_WRITE));
		ib_qp_init_attr attr{};
		attr.send_cq = attr.recv_cq = cq->get();
		attr.cap = {.max_send_wr = send_depth,
			    .max_recv_wr = receive_depth,
			    .max_send_sge = 2,
			    .max_recv_sge = 2,
			    .max_inline_data = 0};
		attr.sq_sig_type = IB_SIGNAL_ALL_WR;
		attr.qp_type = IB_QPT_RC;
		return kern::check(rdma_create_qp(id, pd->get(), &attr));
	}
	Note &note(u32 which) const
	{
		return reinterpret_cast<Note *>(memory.as<u8>() + memory_bytes)[which];
	}
	ib_sge sge(u32 offset, u32 length) const
	{
		return {memory.address() + offset, length, pd->local_dma_lkey()};
	}
	kern::Result<> receive(ib_sge place)
	{
		ib_recv_wr wr{};
		wr.wr_id = 1;
		wr.sg_list = &place;
		wr.num_sge = 1;
		return kern::check(ib_post_recv(id->qp, &wr, nullptr));
	}
	/* Posts a receive into the second note. */
	kern::Result<> receive() { return receive(sge(memory_bytes + sizeof(Note), sizeof(Note))); }
	kern::Result<> post(ib_wr_opcode opcode, ib_sge place, u64 address = 0, u32 key = 0)
	{
		ib_rdma_wr wr{};
		wr.wr.sg_list = &place;
		wr.wr.num_sge = 1;
		wr.wr.opcode = opcode;
		wr.wr.send_flags = opcode == IB_WR_SEND ? IB_SEND_SOLICITED : 0;
		wr.remote_addr = address;
		wr.rkey = key;
		return kern::check(ib_post_send(id->qp, &wr.wr, nullptr));
	}
	/* Waits for the next completion, which must be successful. */
	kern::Result<ib_wc_opcode> next()
	{
		const auto deadline = kern::Deadline::in_ms(wait_ms);
		for (;;) {
			ib_wc wc;
			if (cq->poll(1, &wc) == 1) {
				if (wc.status == IB_WC_SUCCESS)
					return wc.opcode;
				return kern::Error{wc.status == IB_WC_WR_FLUSH_ERR ? -ECONNRESET
										   : -EIO};
			}
			if (deadline.passed())
				return kern::Error{-ETIMEDOUT};
			if (spins) {
				kern::cond_resched();
				continue;
			}
			const u32 seen = interrupts.load_acquire();
			if (cq->request_notification(IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) >
			    0)
				continue;
			(void)changed.wait_for(100,
					       [&] { return interrupts.load_acquire() != seen; });
		}
	}
	/*
	 * Waits for a received message, or for the end of a send. They may complete in either
	 * order.
	 */
	kern::Result<> received() { return ended(true); }
	kern::Result<> sent() { return ended(false); }
	/* Sends the address of memory, and waits for the completion. */
	kern::Result<> say(u64 address, u32 key, u32 size)
	{
		note(0) = Note{address, key, size}.swapped();
		KERN_TRY(post(IB_WR_SEND, sge(memory_bytes, sizeof(Note))));
		return sent();
	}
	/* Posts a receive for the response, and then sends the address of memory. */
	kern::Result<> report(u64 address, u32 size)
	{
		KERN_TRY(receive());
		return say(address, all->rkey, size);
	}

	/* Set by the handler. */
	kern::Atomic<u32> event{~0u};
	int status = 0;

	unsigned int wait_ms = default_wait_ms;
	/* Completions are polled without pauses. */
	bool spins = false;
	rdma_cm_id *id;
	kern::Ref<rdma::Pd> pd;
	kern::Ref<rdma::CompletionQueue> cq;
	kern::DmaBuffer memory;
	rdma::MemoryRegion all;
	kern::Atomic<u32> interrupts{0};
	kern::WaitQueue changed{KERN_LOCK_CLASS("weft_talk")};

private:
	kern::Result<> ended(bool receive)
	{
		while (!seen_[receive])
			seen_[KERN_TRY(next()) == IB_WC_RECV]++;
		seen_[receive]--;
		return {};
	}

	/* Completions of sends and of receives that have not been waited for. */
	u32 seen_[2] = {0, 0};
};

} // namespace talk
