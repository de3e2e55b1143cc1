// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements weft_talk, a module that guest tests control. /sys/kernel/debug/weft_talk executes one
 * command line for each write, and returns its output when read:
 *
 *	serve port=7174			one connection at a time
 *	serve port=7174 as=meter	the other end of measure
 *	talk a=10 b=3 c=0 d=2 port=7174 count=16 size=4096	->  good=16 events=...
 *	served				->  connections=1 ended=1
 *
 *	measure a=10 … port=7174 what=echo-send|echo-write|send|write count=1000 size=64	->  ns=...
 *	connect a=10 … port=7174 count=50	->  good=50 ns=...
 *
 * Both ends use the protocol of librdmacm's rping, which may be either end: the client sends the
 * address of a text, the server reads it and reports that, receives the address of a buffer, writes
 * the text there and reports that. The client compares every byte. All connections use the RDMA CM.
 */
#include <kern/debugfs.hpp>
#include <kern/log.hpp>
#include <kern/work.hpp>
#include "../../../mlx4/tests/traffic/arguments.hpp"
#include "end.hpp"
#include "measure.hpp"

namespace talk
{
namespace
{

using traffic::Arguments;

/* The text of a round, which ends with a zero byte; rping does not write back an empty text. */
constexpr u8 pattern(u32 round, u32 at, u32 size)
{
	return at == size - 1 ? 0 : static_cast<u8>((at * 7 + round * 13 + (at >> 8)) % 255 + 1);
}

/* Serves as many rounds as the peer wants, until the peer disconnects. */
kern::Result<> answer(End &end)
{
	KERN_TRY(end.received());
	const Note from = end.note(1).swapped();
	if (from.size > memory_bytes)
		return kern::Error{-EINVAL};
	KERN_TRY(end.post(IB_WR_RDMA_READ, end.sge(0, from.size), from.address, from.key));
	KERN_TRY(end.sent());
	KERN_TRY(end.report(0, 0));
	KERN_TRY(end.received());
	const Note to = end.note(1).swapped();
	if (to.size != from.size)
		return kern::Error{-EINVAL};
	KERN_TRY(end.post(IB_WR_RDMA_WRITE, end.sge(0, to.size), to.address, to.key));
	KERN_TRY(end.sent());
	return end.report(0, 0);
}

class Server
{
public:
	kern::Result<> start(u16 port, bool measures)
	{
		measures_ = measures;
		id_ = KERN_TRY(
			rdma::check(rdma_create_id(handle_event, this, RDMA_PS_TCP, IB_QPT_RC)));
		rdma_sockaddr any{};
		any.in.family = RDMA_AF_INET;
		any.in.port = port;
		KERN_TRY_ERRNO(rdma_bind_addr(id_, &any));
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
	/* Serves one connection at a time, and rejects others. */
	static int handle_event(rdma_cm_id *id, rdma_cm_event *event)
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
			auto equipped = self.end_->equip();
			if (equipped)
				equipped = self.end_->receive();
			self.stage_.store_release(Stage::asked);
			const int status = equipped ? rdma_accept(id, &param) : equipped.error();
			if (status) {
				rdma_destroy_qp(id);
				self.end_->id = nullptr;
				self.end_.reset();
				self.stage_.store_release(Stage::none);
				self.busy_.store_release(false);
			}
			return status;
		}
		if (event->event == RDMA_CM_EVENT_ESTABLISHED) {
			self.connections_.fetch_add(1);
			self.stage_.store_release(Stage::connected);
			self.work_.queue();
			return 0;
		}
		u32 stage = Stage::asked;
		/* The device is being removed, or the peer has disconnected. */
		if (event->event != RDMA_CM_EVENT_ADDR_CHANGE &&
		    self.stage_.compare_exchange(stage, Stage::lost))
			self.work_.queue();
		return 0;
	}
	void serve()
	{
		const bool connected = stage_.exchange(Stage::none) == Stage::connected;
		/* The loop ends with an error when the connection ends. */
		while (connected && (measures_ ? meter::serve(*end_) : answer(*end_)))
			;
		end_.reset();
		busy_.store_release(false);
		ended_.fetch_add(1);
	}

	/* Stage of the only connection. */
	enum Stage : u32 { none, asked, connected, lost };

	rdma_cm_id *id_ = nullptr;
	bool measures_ = false;
	kern::Atomic<u32> stage_{Stage::none};
	kern::Owned<End> end_;
	kern::Atomic<u32> connections_{0}, ended_{0};
	kern::Atomic<bool> busy_{false};
	kern::Work work_{kern::method<&Server::serve>, this};
};

class Client
{
public:
	static int handle_event(rdma_cm_id *id, rdma_cm_event *event)
	{
		auto &end = *static_cast<End *>(id->context);
		end.status = event->status;
		end.event.store_release(static_cast<u32>(event->event));
		end.changed.wake_all();
		return 0;
	}
	static kern::Result<> wait(End &end, rdma_cm_event_type type)
	{
		if (!end.changed.wait_for(end.wait_ms,
					  [&] { return end.event.load_acquire() != ~0u; }))
			return kern::Error{-ETIMEDOUT};
		const u32 event = end.event.exchange(~0u);
		/* The status shows whether the peer's TCP or its listener has refused. */
		if (event == RDMA_CM_EVENT_REJECTED)
			return kern::Error{-ECONNREFUSED};
		if (event != static_cast<u32>(type))
			return kern::Error{end.status < 0 ? end.status : -ECONNREFUSED};
		return {};
	}
	/* Connects. @ns is set to the time from the call to the event. */
	static kern::Result<> connect(End &end, const Arguments &arguments, u64 &ns)
	{
		end.wait_ms =
			static_cast<unsigned int>(arguments.number("timeout_ms", default_wait_ms));
		rdma_sockaddr to{};
		to.in.family = RDMA_AF_INET;
		to.in.port = static_cast<u16>(arguments.number("port"));
		const char *const names[] = {"a", "b", "c", "d"};
		for (u32 i = 0; i < 4; i++)
			to.in.addr[i] = static_cast<u8>(arguments.number(names[i]));
		end.id = KERN_TRY(
			rdma::check(rdma_create_id(handle_event, &end, RDMA_PS_TCP, IB_QPT_RC)));
		KERN_TRY_ERRNO(rdma_resolve_addr(end.id, nullptr, &to, 2000));
		KERN_TRY(wait(end, RDMA_CM_EVENT_ADDR_RESOLVED));
		KERN_TRY_ERRNO(rdma_resolve_route(end.id, 2000));
		KERN_TRY(wait(end, RDMA_CM_EVENT_ROUTE_RESOLVED));
		KERN_TRY(end.equip());
		rdma_conn_param param{};
		param.responder_resources = param.initiator_depth = 4;
		const u64 start = kern::now_ns();
		KERN_TRY_ERRNO(rdma_connect(end.id, &param));
		KERN_TRY(wait(end, RDMA_CM_EVENT_ESTABLISHED));
		ns = kern::now_ns() - start;
		return {};
	}
	static kern::Result<> disconnect(End &end)
	{
		KERN_TRY_ERRNO(rdma_disconnect(end.id));
		return wait(end, RDMA_CM_EVENT_DISCONNECTED);
	}
	static kern::Result<> run(End &end, const Arguments &arguments, u32 &good)
	{
		u64 ns;
		KERN_TRY(connect(end, arguments, ns));
		const u32 count = static_cast<u32>(arguments.number("count", 1));
		const u32 size = static_cast<u32>(arguments.number("size", 4096));
		if (size > memory_bytes / 2)
			return kern::Error{-EINVAL};
		for (good = 0; good < count; good++)
			KERN_TRY(exchange(end, good, size));
		return disconnect(end);
	}
	static kern::Result<> measure(End &end, const Arguments &arguments, u64 &ns)
	{
		u64 connecting;
		KERN_TRY(connect(end, arguments, connecting));
		ns = KERN_TRY(meter::ask(end, arguments));
		return disconnect(end);
	}

private:
	static kern::Result<> exchange(End &end, u32 round, u32 size)
	{
		u8 *const bytes = end.memory.as<u8>();
		for (u32 i = 0; i < size; i++) {
			bytes[i] = pattern(round, i, size);
			bytes[size + i] = 0xff;
		}
		KERN_TRY(end.report(end.memory.address(), size));
		KERN_TRY(end.received());
		KERN_TRY(end.report(end.memory.address() + size, size));
		KERN_TRY(end.received());
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
		good_ = 0;
		ns_ = 0;
		if (arguments.command("serve")) {
			server_.reset();
			auto made = kern::make<Server>(kern::Gfp::kernel);
			if (!made)
				return made.error();
			server_ = made.take();
			return server_
				->start(static_cast<u16>(arguments.number("port")),
					arguments.is("as", "meter"))
				.error();
		}
		if (arguments.command("connect"))
			return connect(arguments).error();
		auto end = kern::make<End>(kern::Gfp::kernel);
		if (!end)
			return end.error();
		if (arguments.command("measure"))
			return Client::measure(*end.value(), arguments, ns_).error();
		return arguments.command("talk")
			       ? Client::run(*end.value(), arguments, good_).error()
			       : -EINVAL;
	}
	/*
	 * Connects repeatedly. The server refuses while it closes the previous connection, so only
	 * refusals are tolerated, for a limited time.
	 */
	kern::Result<> connect(const Arguments &arguments)
	{
		const u32 count = static_cast<u32>(arguments.number("count", 1));
		const auto wait_ms =
			static_cast<unsigned int>(arguments.number("timeout_ms", default_wait_ms));
		auto deadline = kern::Deadline::in_ms(wait_ms);
		while (good_ < count) {
			auto end = KERN_TRY(kern::make<End>(kern::Gfp::kernel));
			u64 ns;
			const auto connected = Client::connect(*end, arguments, ns);
			if (!connected && (connected.error() != -ECONNREFUSED || deadline.passed()))
				return connected;
			if (!connected)
				continue;
			KERN_TRY(Client::disconnect(*end));
			ns_ += ns;
			good_++;
			deadline = kern::Deadline::in_ms(wait_ms);
		}
		return {};
	}
	void show(kern::debugfs::Output &out)
	{
		kern::Guard guard(lock_);
		out.print("good=%u connections=%u ended=%u ns=%llu\n", good_,
			  server_ ? server_->connections() : 0, server_ ? server_->ended() : 0,
			  static_cast<unsigned long long>(ns_));
	}

	kern::Mutex lock_{KERN_LOCK_CLASS("weft_talk.control")};
	u32 good_ = 0;
	u64 ns_ = 0;
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
