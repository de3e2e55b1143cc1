// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * A module that guest tests drive: /sys/kernel/debug/weft_talk takes a command line a write, and
 * reads as its answer:
 *
 *	serve port=7174
 *	talk a=10 b=3 c=0 d=2 port=7174 count=16 size=4096	->  good=16 events=...
 *	served				->  connections=1 ended=1
 *
 * What they say to each other is what rping of librdmacm says, which may be either of them: who
 * talks tells where a text is, who serves reads it and says so, is told where there is room for
 * it, writes it there and says so. Who talks compares every byte. All by the RDMA CM.
 */
#include <kern/debugfs.hpp>
#include <kern/dma.hpp>
#include <kern/log.hpp>
#include <kern/time.hpp>
#include <kern/wait_queue.hpp>
#include <kern/work.hpp>
#include <rdma/objects.hpp>
#include <rdma/rdma_cm.h>
#include "../../../connectx/tests/traffic/arguments.hpp"

namespace talk
{
namespace
{

using traffic::Arguments;

constexpr u32 memory_bytes = 256 << 10;
constexpr unsigned int patience_ms = 60000;
constexpr u32 depth = 8;

/* What travels in messages, big-endian: where memory is. Of who serves it means that it is done. */
struct Note {
	u64 address;
	u32 key;
	u32 size;

	/* The same in the other order of bytes. */
	Note swapped() const
	{
		return {__builtin_bswap64(address), __builtin_bswap32(key),
			__builtin_bswap32(size)};
	}
};
static_assert(sizeof(Note) == 16);

/* One end of a connection: an id, a QP, and memory. */
class End
{
public:
	explicit End(rdma_cm_id *from = nullptr) : id(from) {}
	~End()
	{
		if (id) {
			rdma_disconnect(id);
			rdma_destroy_qp(id);
			rdma_destroy_id(id);
		}
	}
	/* Queues and memory on the id's device. */
	kern::Result<> equip()
	{
		pd = TRY(rdma::Pd::create(id->device));
		cq = TRY(rdma::CompletionQueue::create(
			id->device,
			[](ib_cq *, void *context) {
				auto &end = *static_cast<End *>(context);
				end.interrupts.fetch_add(1);
				end.changed.wake_all();
			},
			this, 4 * depth));
		memory = TRY(kern::DmaBuffer::create(id->device->dma_device,
						     memory_bytes + 2 * sizeof(Note)));
		all = TRY(rdma::MemoryRegion::all(pd, IB_ACCESS_LOCAL_WRITE |
							      IB_ACCESS_REMOTE_READ |
							      IB_ACCESS_REMOTE_WRITE));
		ib_qp_init_attr attr{};
		attr.send_cq = attr.recv_cq = cq->get();
		attr.cap = {.max_send_wr = depth,
			    .max_recv_wr = depth,
			    .max_send_sge = 2,
			    .max_recv_sge = 2,
			    .max_inline_data = 0};
		attr.sq_sig_type = IB_SIGNAL_ALL_WR;
		attr.qp_type = IB_QPT_RC;
		TRY_ERRNO(rdma_create_qp(id, pd->get(), &attr));
		return receive();
	}
	Note &note(u32 which) const
	{
		return reinterpret_cast<Note *>(memory.as<u8>() + memory_bytes)[which];
	}
	ib_sge sge(u32 offset, u32 length) const
	{
		return {memory.address() + offset, length, pd->local_dma_lkey()};
	}
	/* Into the second note. */
	kern::Result<> receive()
	{
		ib_sge place = sge(memory_bytes + sizeof(Note), sizeof(Note));
		ib_recv_wr wr{};
		wr.wr_id = 1;
		wr.sg_list = &place;
		wr.num_sge = 1;
		return kern::check(ib_post_recv(id->qp, &wr, nullptr));
	}
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
	/* The next completion, which is to be good. */
	kern::Result<ib_wc_opcode> next()
	{
		const auto deadline = kern::Deadline::in_ms(patience);
		for (;;) {
			ib_wc wc;
			if (cq->poll(1, &wc) == 1) {
				if (wc.status == IB_WC_SUCCESS)
					return wc.opcode;
				return kern::Error{wc.status == IB_WC_WR_FLUSH_ERR ? -ECONNRESET
										   : -EIO};
			}
			const u32 seen = interrupts.load_acquire();
			if (cq->request_notification(IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) >
			    0)
				continue;
			(void)changed.wait_for(100,
					       [&] { return interrupts.load_acquire() != seen; });
			if (deadline.passed())
				return kern::Error{-ETIMEDOUT};
		}
	}
	/* A message that has come, or the end of a request: they come in any order. */
	kern::Result<> received() { return ended(true); }
	kern::Result<> sent() { return ended(false); }
	/*
	 * Says where memory is, and waits until it is said. Room for the answer is there before it.
	 */
	kern::Result<> tell(u64 address, u32 size)
	{
		TRY(receive());
		note(0) = Note{address, all->rkey, size}.swapped();
		TRY(post(IB_WR_SEND, sge(memory_bytes, sizeof(Note))));
		return sent();
	}

	/* Of the handler. */
	kern::Atomic<u32> event{~0u};
	int status = 0;

	unsigned int patience = patience_ms;
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
			seen_[TRY(next()) == IB_WC_RECV]++;
		seen_[receive]--;
		return {};
	}

	/* Completions that nobody has waited for yet: of requests, of receives. */
	u32 seen_[2] = {0, 0};
};

/* A text, with its end: of what is none, rping writes nothing back. */
constexpr u8 pattern(u32 round, u32 at, u32 size)
{
	return at == size - 1 ? 0 : static_cast<u8>((at * 7 + round * 13 + (at >> 8)) % 255 + 1);
}

/* Who serves: as many rounds as the peer wants, then the peer disconnects. */
kern::Result<> answer(End &end)
{
	TRY(end.received());
	const Note from = end.note(1).swapped();
	if (from.size > memory_bytes)
		return kern::Error{-EINVAL};
	TRY(end.post(IB_WR_RDMA_READ, end.sge(0, from.size), from.address, from.key));
	TRY(end.sent());
	TRY(end.tell(0, 0));
	TRY(end.received());
	const Note to = end.note(1).swapped();
	if (to.size != from.size)
		return kern::Error{-EINVAL};
	TRY(end.post(IB_WR_RDMA_WRITE, end.sge(0, to.size), to.address, to.key));
	TRY(end.sent());
	return end.tell(0, 0);
}

class Server
{
public:
	kern::Result<> start(u16 port)
	{
		id_ = TRY(rdma::check(rdma_create_id(hear, this, RDMA_PS_TCP, IB_QPT_RC)));
		rdma_sockaddr any{};
		any.in.family = RDMA_AF_INET;
		any.in.port = port;
		TRY_ERRNO(rdma_bind_addr(id_, &any));
		return kern::check(rdma_listen(id_, 4));
	}
	~Server()
	{
		if (id_)
			rdma_destroy_id(id_);
		work_.cancel();
	}
	u32 connections() const { return connections_.load_acquire(); }
	u32 ended() const { return ended_.load_acquire(); }

private:
	/* One connection at a time: another is refused. */
	static int hear(rdma_cm_id *id, rdma_cm_event *event)
	{
		auto &self = *static_cast<Server *>(id->context);
		if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
			if (self.busy_.exchange(true))
				return -EBUSY;
			auto made = kern::make<End>(kern::Gfp::kernel, id);
			if (!made) {
				self.busy_.store_release(false);
				return made.error();
			}
			self.end_ = made.take();
			rdma_conn_param param{};
			param.responder_resources = param.initiator_depth = 4;
			param.private_data = "served";
			param.private_data_len = 7;
			const auto equipped = self.end_->equip();
			const int status = equipped ? rdma_accept(id, &param) : equipped.error();
			if (status) {
				rdma_destroy_qp(id);
				self.end_->id = nullptr;
				self.end_.reset();
				self.busy_.store_release(false);
			}
			return status;
		}
		if (event->event == RDMA_CM_EVENT_ESTABLISHED) {
			self.connections_.fetch_add(1);
			self.work_.queue();
		}
		return 0;
	}
	void serve()
	{
		/* It ends with the connection, by an error. */
		while (answer(*end_))
			;
		end_.reset();
		busy_.store_release(false);
		ended_.fetch_add(1);
	}

	rdma_cm_id *id_ = nullptr;
	kern::Owned<End> end_;
	kern::Atomic<u32> connections_{0}, ended_{0};
	kern::Atomic<bool> busy_{false};
	kern::Work work_{kern::method<&Server::serve>, this};
};

class Client
{
public:
	static int hear(rdma_cm_id *id, rdma_cm_event *event)
	{
		auto &end = *static_cast<End *>(id->context);
		end.status = event->status;
		end.event.store_release(static_cast<u32>(event->event));
		end.changed.wake_all();
		return 0;
	}
	static kern::Result<> wait(End &end, rdma_cm_event_type type)
	{
		if (!end.changed.wait_for(end.patience,
					  [&] { return end.event.load_acquire() != ~0u; }))
			return kern::Error{-ETIMEDOUT};
		if (end.event.exchange(~0u) != static_cast<u32>(type))
			return kern::Error{end.status < 0 ? end.status : -ECONNREFUSED};
		return {};
	}
	static kern::Result<> run(End &end, const Arguments &arguments, u32 &good)
	{
		end.patience = static_cast<unsigned int>(arguments.number("patience", patience_ms));
		rdma_sockaddr to{};
		to.in.family = RDMA_AF_INET;
		to.in.port = static_cast<u16>(arguments.number("port"));
		const char *const names[] = {"a", "b", "c", "d"};
		for (u32 i = 0; i < 4; i++)
			to.in.addr[i] = static_cast<u8>(arguments.number(names[i]));
		end.id = TRY(rdma::check(rdma_create_id(hear, &end, RDMA_PS_TCP, IB_QPT_RC)));
		TRY_ERRNO(rdma_resolve_addr(end.id, nullptr, &to, 2000));
		TRY(wait(end, RDMA_CM_EVENT_ADDR_RESOLVED));
		TRY_ERRNO(rdma_resolve_route(end.id, 2000));
		TRY(wait(end, RDMA_CM_EVENT_ROUTE_RESOLVED));
		TRY(end.equip());
		rdma_conn_param param{};
		param.responder_resources = param.initiator_depth = 4;
		TRY_ERRNO(rdma_connect(end.id, &param));
		TRY(wait(end, RDMA_CM_EVENT_ESTABLISHED));
		const u32 count = static_cast<u32>(arguments.number("count", 1));
		const u32 size = static_cast<u32>(arguments.number("size", 4096));
		if (size > memory_bytes / 2)
			return kern::Error{-EINVAL};
		for (good = 0; good < count; good++)
			TRY(exchange(end, good, size));
		TRY_ERRNO(rdma_disconnect(end.id));
		return wait(end, RDMA_CM_EVENT_DISCONNECTED);
	}

private:
	static kern::Result<> exchange(End &end, u32 round, u32 size)
	{
		u8 *const bytes = end.memory.as<u8>();
		for (u32 i = 0; i < size; i++) {
			bytes[i] = pattern(round, i, size);
			bytes[size + i] = 0xff;
		}
		TRY(end.tell(end.memory.address(), size));
		TRY(end.received());
		TRY(end.tell(end.memory.address() + size, size));
		TRY(end.received());
		for (u32 i = 0; i < size; i++)
			if (bytes[size + i] != pattern(round, i, size))
				return kern::Error{-EBADMSG};
		return {};
	}
};

class Control
{
public:
	Control() { file_.add("weft_talk", directory_); }

private:
	int write(const char *text, size_t)
	{
		kern::Guard guard(lock_);
		const Arguments arguments(text);
		if (arguments.command("serve")) {
			server_.reset();
			auto made = kern::make<Server>(kern::Gfp::kernel);
			if (!made)
				return made.error();
			server_ = made.take();
			return server_->start(static_cast<u16>(arguments.number("port"))).error();
		}
		if (!arguments.command("talk"))
			return -EINVAL;
		auto end = kern::make<End>(kern::Gfp::kernel);
		return end ? Client::run(*end.value(), arguments, good_).error() : end.error();
	}
	void show(kern::debugfs::Output &out)
	{
		kern::Guard guard(lock_);
		out.print("good=%u connections=%u ended=%u\n", good_,
			  server_ ? server_->connections() : 0, server_ ? server_->ended() : 0);
	}

	kern::Mutex lock_{KERN_LOCK_CLASS("weft_talk.control")};
	u32 good_ = 0;
	kern::Owned<Server> server_;
	kern::debugfs::Directory directory_{"weft_talk"};
	kern::debugfs::File file_{kern::method<&Control::show>, kern::method<&Control::write>,
				  this};
};

constinit kern::Static<Control> control;

} // namespace
} // namespace talk

extern "C" int weft_talk_init()
{
	talk::control.construct();
	return 0;
}

extern "C" void weft_talk_exit()
{
	talk::control.destruct();
}
