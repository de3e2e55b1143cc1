// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "endpoint.hpp"
#include <cstdarg>
#include <kern/log.hpp>
#include <kern/time.hpp>
#include <rdma/driver.hpp>

namespace traffic
{

namespace
{

constexpr u32 grh_bytes = 40;

ib_qp_type type_of(const Arguments &arguments)
{
	return arguments.is("type", "uc")    ? IB_QPT_UC
	       : arguments.is("type", "ud")  ? IB_QPT_UD
	       : arguments.is("type", "xrc") ? IB_QPT_XRC_INI
					     : IB_QPT_RC;
}

rdma_ah_attr address_of(u32 port, const Arguments &arguments)
{
	rdma_ah_attr address{};
	address.type = RDMA_AH_ATTR_TYPE_IB;
	address.port_num = port;
	rdma_ah_set_dlid(&address, static_cast<u32>(arguments.number("lid")));
	return address;
}

} // namespace

void Answer::add(const char *format, ...)
{
	std::va_list args;
	va_start(args, format);
	used += kern_format_list(text + used, sizeof(text) - static_cast<size_t>(used), format,
				 args);
	va_end(args);
	if (used >= static_cast<int>(sizeof(text)))
		used = sizeof(text) - 1;
}

Endpoint::Endpoint(ib_device *device)
    : device_(device), completed_(KERN_LOCK_CLASS("traffic.completed"))
{
}

kern::Result<kern::Owned<Endpoint>> Endpoint::create(ib_device *device, const Arguments &arguments,
						     Answer &answer)
{
	auto endpoint = KERN_TRY(kern::adopt(new (kern::Gfp::kernel) Endpoint(device)));
	KERN_TRY(endpoint->open(arguments));
	ib_port_attr port;
	KERN_TRY_ERRNO(ib_query_port(device, endpoint->port_, &port));
	answer.add("qpn=%u lid=%u state=%d mtu=%d addr=0x%lx rkey=0x%x", endpoint->qp_->qp_num,
		   port.lid, port.state, port.active_mtu, endpoint->recv_memory_.address(),
		   endpoint->all_->rkey);
	if (endpoint->target_)
		answer.add(" target=%u srqn=%u", endpoint->target_->qp_num,
			   endpoint->srq_->ext.xrc.srq_num);
	return endpoint;
}

kern::Result<> Endpoint::open(const Arguments &arguments)
{
	type_ = type_of(arguments);
	port_ = static_cast<u32>(arguments.number("port", 1));
	depth_ = static_cast<u32>(arguments.number("depth", 64));
	size_ = static_cast<u32>(arguments.number("size", 65536));
	requests_ = KERN_TRY(kern::make_array<Request>(kern::Gfp::kernel, max_batch));
	send_memory_ = KERN_TRY(kern::DmaBuffer::create(device_->dma_device, size_));
	recv_memory_ = KERN_TRY(kern::DmaBuffer::create(device_->dma_device, size_));
	pd_ = KERN_TRY(checked(ib_alloc_pd(device_, 0)));
	all_ = KERN_TRY(checked(ib_get_dma_mr(
		pd_, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ |
			     IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_MW_BIND)));
	const auto handler = [](ib_cq *, void *context) {
		auto *endpoint = static_cast<Endpoint *>(context);
		endpoint->interrupts_.add_relaxed(1);
		endpoint->completed_.wake_all();
	};
	const auto event = [](ib_event *event, void *context) {
		static_cast<Endpoint *>(context)->events_.add(event->event);
	};
	ib_cq_init_attr cq{.cqe = static_cast<u32>(arguments.number("cqe", depth_ + 16)),
			   .comp_vector = static_cast<u32>(arguments.number("vector")),
			   .flags = 0};
	send_cq_ = KERN_TRY(checked(ib_create_cq(device_, handler, event, this, &cq)));
	recv_cq_ = KERN_TRY(checked(ib_create_cq(device_, handler, event, this, &cq)));
	const bool xrc = type_ == IB_QPT_XRC_INI;
	if (xrc)
		xrcd_ = KERN_TRY(checked(ib_alloc_xrcd(device_)));
	if (xrc || arguments.number("srq")) {
		ib_srq_init_attr srq{};
		srq.event_handler = event;
		srq.srq_context = this;
		srq.attr.max_wr = depth_;
		srq.attr.max_sge = 2;
		if (xrc) {
			srq.srq_type = IB_SRQT_XRC;
			srq.ext.cq = recv_cq_;
			srq.ext.xrc.xrcd = xrcd_;
		}
		srq_ = KERN_TRY(checked(ib_create_srq(pd_, &srq)));
	}
	ib_qp_init_attr init{};
	init.event_handler = event;
	init.qp_context = this;
	init.send_cq = send_cq_;
	init.recv_cq = xrc ? nullptr : recv_cq_;
	init.srq = xrc ? nullptr : srq_;
	init.cap = {.max_send_wr = depth_,
		    .max_recv_wr = srq_ ? 0 : depth_,
		    .max_send_sge = 4,
		    .max_recv_sge = srq_ ? 0u : 4u,
		    .max_inline_data = 128};
	init.sq_sig_type = IB_SIGNAL_REQ_WR;
	init.qp_type = type_;
	qp_ = KERN_TRY(checked(ib_create_qp(pd_, &init)));
	if (xrc) {
		init = {};
		init.event_handler = event;
		init.qp_context = this;
		init.xrcd = xrcd_;
		init.sq_sig_type = IB_SIGNAL_REQ_WR;
		init.qp_type = IB_QPT_XRC_TGT;
		target_ = KERN_TRY(checked(ib_create_qp(pd_, &init)));
	}
	return {};
}

Endpoint::~Endpoint()
{
	if (qp_)
		(void)ib_destroy_qp(qp_);
	if (target_)
		(void)ib_destroy_qp(target_);
	if (srq_)
		ib_destroy_srq(srq_);
	if (xrcd_)
		(void)ib_dealloc_xrcd(xrcd_);
	if (ah_)
		rdma_destroy_ah(ah_, RDMA_DESTROY_AH_SLEEPABLE);
	if (send_cq_)
		ib_destroy_cq(send_cq_);
	if (recv_cq_)
		ib_destroy_cq(recv_cq_);
	if (window_)
		(void)ib_dealloc_mw(window_);
	if (fast_)
		(void)ib_dereg_mr(fast_);
	if (all_)
		(void)ib_dereg_mr(all_);
	if (pd_)
		ib_dealloc_pd(pd_);
}

kern::Result<> Endpoint::modify(ib_qp_attr &attr, int mask)
{
	return kern::check(ib_modify_qp(qp_, &attr, mask));
}

kern::Result<> Endpoint::connect(const Arguments &arguments)
{
	remote_qpn_ = static_cast<u32>(arguments.number("qpn"));
	remote_srqn_ = static_cast<u32>(arguments.number("srqn"));
	if (type_ == IB_QPT_UD) {
		rdma_ah_attr address =
			address_of(static_cast<u32>(arguments.number("av_port", port_)), arguments);
		ah_ = KERN_TRY(checked(rdma_create_ah(pd_, &address, RDMA_CREATE_AH_SLEEPABLE)));
	}
	if (!target_)
		return connect_qp(qp_, port_, remote_qpn_, arguments);
	KERN_TRY(connect_qp(qp_, port_, static_cast<u32>(arguments.number("target")), arguments));
	return connect_qp(target_, port_, remote_qpn_, arguments);
}

kern::Result<> connect_qp(ib_qp *qp, u32 port, u32 remote_qpn, const Arguments &arguments)
{
	const u32 psn = static_cast<u32>(arguments.number("psn", 1));
	const ib_qp_type type = qp->qp_type;
	const bool responds = type == IB_QPT_RC || type == IB_QPT_XRC_TGT;
	const bool requests = type == IB_QPT_RC || type == IB_QPT_XRC_INI;
	const auto modify = [qp](ib_qp_attr &attr, int mask) {
		return kern::check(ib_modify_qp(qp, &attr, mask));
	};
	ib_qp_attr attr{};
	attr.qp_state = IB_QPS_INIT;
	attr.port_num = port;
	attr.qkey = datagram_qkey;
	attr.qp_access_flags =
		arguments.number("deny")
			? 0
			: IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC;
	KERN_TRY(modify(attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
				      (type == IB_QPT_UD ? IB_QP_QKEY : IB_QP_ACCESS_FLAGS)));
	attr.qp_state = IB_QPS_RTR;
	attr.ah_attr = address_of(port, arguments);
	attr.path_mtu = static_cast<ib_mtu>(arguments.number("mtu", IB_MTU_2048));
	attr.dest_qp_num = remote_qpn;
	attr.rq_psn = psn;
	attr.max_dest_rd_atomic = 4;
	attr.min_rnr_timer = 12;
	if (type == IB_QPT_UD)
		KERN_TRY(modify(attr, IB_QP_STATE));
	else
		KERN_TRY(modify(
			attr,
			IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
				(responds ? IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER : 0)));
	if (arguments.is("until", "rtr"))
		return {};
	attr.qp_state = IB_QPS_RTS;
	attr.sq_psn = psn;
	attr.timeout = static_cast<u8>(arguments.number("timeout", 17));
	attr.retry_cnt = static_cast<u8>(arguments.number("retry", 7));
	attr.rnr_retry = static_cast<u8>(arguments.number("rnr", 7));
	attr.max_rd_atomic = 4;
	const u32 alternate = static_cast<u32>(arguments.number("alternate"));
	attr.alt_ah_attr = attr.ah_attr;
	rdma_ah_set_dlid(&attr.alt_ah_attr, alternate);
	attr.alt_port_num = static_cast<u8>(port);
	attr.alt_timeout = attr.timeout;
	attr.path_mig_state = IB_MIG_ARMED;
	return modify(attr,
		      IB_QP_STATE | IB_QP_SQ_PSN | (requests || responds ? IB_QP_TIMEOUT : 0) |
			      (alternate ? IB_QP_ALT_PATH | IB_QP_PATH_MIG_STATE : 0) |
			      (requests ? IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC
					: 0));
}

void Endpoint::fill(u32 offset, u32 size, u32 seed)
{
	u8 *memory = send_memory_.as<u8>() + offset;
	for (u32 i = 0; i < size; i++)
		memory[i] = pattern(seed, i);
}

u32 Endpoint::check(u32 offset, u32 size, u32 seed) const
{
	const u8 *memory = recv_memory_.as<u8>() + offset;
	u32 at = 0;
	while (at < size && memory[at] == pattern(seed, at))
		at++;
	return at;
}

kern::Result<ib_wc> Endpoint::wait_completion(ib_cq *cq, unsigned int ms)
{
	const auto deadline = kern::Deadline::in_ms(ms);
	ib_wc wc;
	for (;;) {
		if (removals.load_acquire()) [[unlikely]]
			return kern::Error{-ECANCELED};
		if (ib_poll_cq(cq, 1, &wc) > 0)
			return wc;
		const u32 seen = interrupts_.load_acquire();
		// The CQ is armed after the last poll. Completions since then raise an event or are
		// reported by the return value (NOTIFY-03).
		const int missed =
			ib_req_notify_cq(cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS);
		if (missed < 0)
			return kern::Error{missed};
		// Waits in slices, because a device removal causes no completion.
		if (missed == 0)
			(void)completed_.wait_for(
				100, [&] { return interrupts_.load_acquire() != seen; });
		// Also ends the wait if events arrive without completions, which a faulty card may
		// cause.
		if (deadline.passed())
			return kern::Error{-ETIMEDOUT};
	}
}

kern::Result<> Endpoint::post_receive(u32 slot, u32 size)
{
	// The buffer is divided into two pieces if it is long enough.
	const u64 address = recv_memory_.address() + u64{slot} * size;
	const u32 first = size / 3;
	ib_sge sge[2] = {{address, first, pd_->local_dma_lkey},
			 {address + first, size - first, pd_->local_dma_lkey}};
	ib_recv_wr wr{};
	wr.wr_id = slot;
	wr.sg_list = sge;
	wr.num_sge = 2;
	const ib_recv_wr *bad;
	return kern::check(srq_ ? ib_post_srq_recv(srq_, &wr, &bad) : ib_post_recv(qp_, &wr, &bad));
}

kern::Result<> Endpoint::post_receives(const Arguments &arguments)
{
	const u32 count = static_cast<u32>(arguments.number("count", 1));
	receive_size_ = static_cast<u32>(arguments.number("size", 64)) +
			(type_ == IB_QPT_UD ? grh_bytes : 0);
	if (count > depth_ || u64{count} * receive_size_ > size_)
		return kern::Error{-EINVAL};
	__builtin_memset(recv_memory_.memory(), 0xee, size_);
	for (u32 i = 0; i < count; i++)
		KERN_TRY(post_receive(i, receive_size_));
	return {};
}

kern::Result<> Endpoint::receive(const Arguments &arguments, Answer &answer)
{
	const u32 count = static_cast<u32>(arguments.number("count", 1));
	const u32 size = static_cast<u32>(arguments.number("size", 64));
	const u32 seed = static_cast<u32>(arguments.number("seed"));
	const bool repost = arguments.number("repost");
	const u32 skip = type_ == IB_QPT_UD ? grh_bytes : 0;
	u32 good = 0, failed = 0;
	for (u32 i = 0; i < count; i++) {
		const ib_wc wc = KERN_TRY(wait_completion(
			recv_cq_, static_cast<unsigned int>(arguments.number("ms", wait_ms))));
		if (wc.status != IB_WC_SUCCESS) {
			if (!failed++)
				answer.add("status=%s ", ib_wc_status_msg(wc.status));
			continue;
		}
		const u32 offset = static_cast<u32>(wc.wr_id) * receive_size_ + skip;
		if (wc.opcode == IB_WC_RECV) {
			const u32 at =
				wc.byte_len == size + skip ? check(offset, size, seed + i) : 0;
			if (at != size || wc.byte_len != size + skip) {
				answer.add("message %u of %u bytes wrong at %u ", i, wc.byte_len,
					   at);
				return kern::Error{-EBADMSG};
			}
		}
		if ((wc.wc_flags & IB_WC_WITH_IMM) && wc.ex.imm_data.value() != seed + i) {
			answer.add("message %u has immediate %#x ", i, wc.ex.imm_data.value());
			return kern::Error{-EBADMSG};
		}
		if (wc.wc_flags & IB_WC_WITH_INVALIDATE)
			answer.add("invalidated=0x%x ", wc.ex.invalidate_rkey);
		if (target_ && wc.qp != target_) {
			answer.add("message %u is another QP's ", i);
			return kern::Error{-EBADMSG};
		}
		good++;
		if (repost)
			KERN_TRY(post_receive(static_cast<u32>(wc.wr_id), receive_size_));
	}
	answer.add("good=%u failed=%u", good, failed);
	return {};
}

kern::Result<> Endpoint::verify(const Arguments &arguments, Answer &answer)
{
	const u32 count = static_cast<u32>(arguments.number("count", 1));
	const u32 size = static_cast<u32>(arguments.number("size", 64));
	const u64 offset = arguments.number("offset");
	if (offset + u64{count} * size > size_)
		return kern::Error{-EINVAL};
	for (u32 i = 0; i < count; i++) {
		const u32 at = check(static_cast<u32>(offset) + i * size, size,
				     static_cast<u32>(arguments.number("seed")) + i);
		if (at != size) {
			answer.add("message %u wrong at %u ", i, at);
			return kern::Error{-EBADMSG};
		}
	}
	answer.add("good=%u", count);
	return {};
}

kern::Result<> Endpoint::read_word(const Arguments &arguments, Answer &answer)
{
	const u64 index = arguments.number("index");
	if (index >= size_ / 8)
		return kern::Error{-EINVAL};
	u64 &word = recv_memory_.as<u64>()[index];
	if (arguments.is("set", "yes"))
		kern::write_once(word, arguments.number("value"));
	answer.add("word=0x%lx", kern::read_once(word));
	return {};
}

kern::Result<> Endpoint::state(const Arguments &arguments, Answer &answer)
{
	ib_qp_attr attr{};
	ib_qp_init_attr init{};
	static constexpr struct {
		const char *name;
		ib_qp_state state;
	} names[] = {{"err", IB_QPS_ERR},
		     {"reset", IB_QPS_RESET},
		     {"sqd", IB_QPS_SQD},
		     {"rts", IB_QPS_RTS}};
	for (const auto &[name, state] : names) {
		if (!arguments.is("to", name))
			continue;
		attr.qp_state = state;
		attr.en_sqd_async_notify = 1;
		KERN_TRY(modify(
			attr, IB_QP_STATE | (state == IB_QPS_SQD ? IB_QP_EN_SQD_ASYNC_NOTIFY : 0)));
	}
	KERN_TRY_ERRNO(ib_query_qp(qp_, &attr, IB_QP_STATE, &init));
	answer.add("state=%d ", attr.qp_state);
	events_.describe(answer);
	return {};
}

kern::Result<> Endpoint::limit(const Arguments &arguments)
{
	if (!srq_)
		return kern::Error{-EINVAL};
	ib_srq_attr attr{};
	attr.srq_limit = static_cast<u32>(arguments.number("limit"));
	return kern::check(ib_modify_srq(srq_, &attr, IB_SRQ_LIMIT));
}

kern::Result<> Endpoint::resize(const Arguments &arguments)
{
	KERN_TRY_ERRNO(ib_resize_cq(recv_cq_, static_cast<int>(arguments.number("cqe"))));
	return kern::check(ib_resize_cq(send_cq_, static_cast<int>(arguments.number("cqe"))));
}

kern::Result<> Endpoint::moderate(const Arguments &arguments)
{
	return kern::check(rdma_set_cq_moderation(recv_cq_,
						  static_cast<u16>(arguments.number("count")),
						  static_cast<u16>(arguments.number("period"))));
}

kern::Result<> Endpoint::arm(const Arguments &)
{
	armed_at_ = interrupts_.load_acquire();
	return kern::check(ib_req_notify_cq(recv_cq_, IB_CQ_NEXT_COMP));
}

kern::Result<> Endpoint::delay(const Arguments &arguments, Answer &answer)
{
	const int count = static_cast<int>(arguments.number("count", 1));
	Request &call = requests_[0];
	describe(call, Arguments("size=64"), 0);
	const ib_send_wr *bad;
	KERN_TRY_ERRNO(ib_post_send(qp_, &call.wr, &bad));
	const auto deadline = kern::Deadline::in_ms(wait_ms);
	while (ib_peek_cq(recv_cq_, count) < count) {
		if (deadline.passed())
			return kern::Error{-ETIMEDOUT};
		kern::sleep_us(20, 50);
	}
	const u64 complete = kern::now_ns();
	if (!completed_.wait_for(wait_ms, [&] { return interrupts_.load_acquire() != armed_at_; }))
		return kern::Error{-ETIMEDOUT};
	answer.add("us=%lu", (kern::now_ns() - complete) / 1000);
	// This completion is polled last, because waiting for it may arm its CQ, whose event must
	// not be measured.
	const ib_wc called = KERN_TRY(wait_completion(send_cq_, wait_ms));
	return called.status == IB_WC_SUCCESS ? kern::Result<>()
					      : kern::Result<>(kern::Error{-EIO});
}

} // namespace traffic
