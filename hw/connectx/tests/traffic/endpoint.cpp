// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "endpoint.hpp"
#include <cstdarg>
#include <kern/log.hpp>
#include <kern/time.hpp>
#include <rdma/driver.hpp>

namespace traffic {

namespace {

constexpr unsigned int patience_ms = 60000;
constexpr u32 grh_bytes = 40;

template <class T>
kern::Result<T *> checked(T *pointer)
{
	if (rdma::is_err(pointer))
		return kern::Error{rdma::ptr_err(pointer)};
	return pointer;
}

ib_qp_type type_of(const Arguments &arguments)
{
	return arguments.is("type", "uc") ? IB_QPT_UC : arguments.is("type", "ud") ? IB_QPT_UD : IB_QPT_RC;
}

ib_wr_opcode opcode_of(const Arguments &arguments)
{
	static constexpr struct {
		const char *name;
		ib_wr_opcode opcode;
	} names[] = {
		{"write", IB_WR_RDMA_WRITE},
		{"write_imm", IB_WR_RDMA_WRITE_WITH_IMM},
		{"read", IB_WR_RDMA_READ},
		{"send_imm", IB_WR_SEND_WITH_IMM},
		{"send_inv", IB_WR_SEND_WITH_INV},
		{"cas", IB_WR_ATOMIC_CMP_AND_SWP},
		{"add", IB_WR_ATOMIC_FETCH_AND_ADD},
	};
	for (const auto &[name, opcode] : names)
		if (arguments.is("op", name))
			return opcode;
	return IB_WR_SEND;
}

} // namespace

void Answer::add(const char *format, ...)
{
	std::va_list args;
	va_start(args, format);
	used += kern_format_list(text + used, sizeof(text) - static_cast<size_t>(used), format, args);
	va_end(args);
	if (used >= static_cast<int>(sizeof(text)))
		used = sizeof(text) - 1;
}

Endpoint::Endpoint(ib_device *device) : device_(device), completed_(KERN_LOCK_CLASS("traffic.completed")) {}

kern::Result<kern::Owned<Endpoint>> Endpoint::create(ib_device *device, const Arguments &arguments, Answer &answer)
{
	auto endpoint = TRY(kern::adopt(new (kern::Gfp::kernel) Endpoint(device)));
	TRY(endpoint->open(arguments));
	ib_port_attr port;
	TRY_ERRNO(ib_query_port(device, endpoint->port_, &port));
	answer.add("qpn=%u lid=%u state=%d mtu=%d addr=0x%lx rkey=0x%x", endpoint->qp_->qp_num, port.lid, port.state,
		   port.active_mtu, endpoint->recv_memory_.address(), endpoint->all_->rkey);
	return endpoint;
}

kern::Result<> Endpoint::open(const Arguments &arguments)
{
	type_ = type_of(arguments);
	port_ = static_cast<u32>(arguments.number("port", 1));
	depth_ = static_cast<u32>(arguments.number("depth", 64));
	size_ = static_cast<u32>(arguments.number("size", 65536));
	requests_ = TRY(kern::make_array<Request>(kern::Gfp::kernel, max_batch));
	send_memory_ = TRY(kern::DmaBuffer::create(device_->dma_device, size_));
	recv_memory_ = TRY(kern::DmaBuffer::create(device_->dma_device, size_));
	pd_ = TRY(checked(ib_alloc_pd(device_, 0)));
	all_ = TRY(checked(ib_get_dma_mr(pd_, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ |
						      IB_ACCESS_REMOTE_ATOMIC)));
	const auto handler = [](ib_cq *, void *context) {
		auto *endpoint = static_cast<Endpoint *>(context);
		endpoint->interrupts_.add_relaxed(1);
		endpoint->completed_.wake_all();
	};
	ib_cq_init_attr cq{.cqe = depth_ + 16,
			   .comp_vector = static_cast<u32>(arguments.number("vector")),
			   .flags = 0};
	send_cq_ = TRY(checked(ib_create_cq(device_, handler, nullptr, this, &cq)));
	recv_cq_ = TRY(checked(ib_create_cq(device_, handler, nullptr, this, &cq)));
	const auto event = [](ib_event *event, void *context) {
		auto *endpoint = static_cast<Endpoint *>(context);
		endpoint->last_event_ = event->event;
		endpoint->events_++;
	};
	if (arguments.number("srq")) {
		ib_srq_init_attr srq{};
		srq.event_handler = event;
		srq.srq_context = this;
		srq.attr.max_wr = depth_;
		srq.attr.max_sge = 2;
		srq.attr.srq_limit = static_cast<u32>(arguments.number("limit"));
		srq_ = TRY(checked(ib_create_srq(pd_, &srq)));
	}
	ib_qp_init_attr init{};
	init.event_handler = event;
	init.qp_context = this;
	init.send_cq = send_cq_;
	init.recv_cq = recv_cq_;
	init.srq = srq_;
	init.cap = {.max_send_wr = depth_,
		    .max_recv_wr = srq_ ? 0 : depth_,
		    .max_send_sge = 4,
		    .max_recv_sge = srq_ ? 0u : 4u,
		    .max_inline_data = 128};
	init.sq_sig_type = IB_SIGNAL_REQ_WR;
	init.qp_type = type_;
	qp_ = TRY(checked(ib_create_qp(pd_, &init)));
	return {};
}

Endpoint::~Endpoint()
{
	if (qp_)
		ib_destroy_qp(qp_);
	if (srq_)
		ib_destroy_srq(srq_);
	if (ah_)
		rdma_destroy_ah(ah_, RDMA_DESTROY_AH_SLEEPABLE);
	if (send_cq_)
		ib_destroy_cq(send_cq_);
	if (recv_cq_)
		ib_destroy_cq(recv_cq_);
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
	const u32 psn = static_cast<u32>(arguments.number("psn", 1));
	const bool rc = type_ == IB_QPT_RC;
	remote_qpn_ = static_cast<u32>(arguments.number("qpn"));
	rdma_ah_attr address{};
	address.type = RDMA_AH_ATTR_TYPE_IB;
	address.port_num = port_;
	rdma_ah_set_dlid(&address, static_cast<u32>(arguments.number("lid")));

	ib_qp_attr attr{};
	attr.qp_state = IB_QPS_INIT;
	attr.port_num = port_;
	attr.qkey = qkey_;
	attr.qp_access_flags = arguments.number("deny") ? 0 :
							  IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ |
								  IB_ACCESS_REMOTE_ATOMIC;
	TRY(modify(attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
				 (type_ == IB_QPT_UD ? IB_QP_QKEY : IB_QP_ACCESS_FLAGS)));
	attr.qp_state = IB_QPS_RTR;
	attr.ah_attr = address;
	attr.path_mtu = static_cast<ib_mtu>(arguments.number("mtu", IB_MTU_2048));
	attr.dest_qp_num = remote_qpn_;
	attr.rq_psn = psn;
	attr.max_dest_rd_atomic = 4;
	attr.min_rnr_timer = 12;
	if (type_ == IB_QPT_UD) {
		TRY(modify(attr, IB_QP_STATE));
		ah_ = TRY(checked(rdma_create_ah(pd_, &address, RDMA_CREATE_AH_SLEEPABLE)));
	} else {
		TRY(modify(attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
					 (rc ? IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER : 0)));
	}
	attr.qp_state = IB_QPS_RTS;
	attr.sq_psn = psn;
	attr.timeout = static_cast<u8>(arguments.number("timeout", 17));
	attr.retry_cnt = static_cast<u8>(arguments.number("retry", 7));
	attr.rnr_retry = static_cast<u8>(arguments.number("rnr", 7));
	attr.max_rd_atomic = 4;
	return modify(attr, IB_QP_STATE | IB_QP_SQ_PSN |
				    (rc ? IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC : 0));
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
		// Armed first, then looked at again by the arming itself: what came in between raises its event (NOTIFY-03).
		const int missed = ib_req_notify_cq(cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS);
		if (missed < 0)
			return kern::Error{missed};
		// In slices, for the sake of a removal, which is nobody's completion.
		if (missed == 0)
			(void)completed_.wait_for(100, [&] { return interrupts_.load_acquire() != seen; });
		// Also where events come and no completion does, as of a broken card.
		if (deadline.passed())
			return kern::Error{-ETIMEDOUT};
	}
}

kern::Result<> Endpoint::post_receive(u32 slot, u32 size)
{
	// In two pieces, where there is something to divide.
	const u64 address = recv_memory_.address() + u64{slot} * size;
	const u32 first = size / 3;
	ib_sge sge[2] = {{address, first, pd_->local_dma_lkey}, {address + first, size - first, pd_->local_dma_lkey}};
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
	receive_size_ = static_cast<u32>(arguments.number("size", 64)) + (type_ == IB_QPT_UD ? grh_bytes : 0);
	if (count > depth_ || u64{count} * receive_size_ > size_)
		return kern::Error{-EINVAL};
	__builtin_memset(recv_memory_.memory(), 0xee, size_);
	for (u32 i = 0; i < count; i++)
		TRY(post_receive(i, receive_size_));
	return {};
}

kern::Result<> Endpoint::send(const Arguments &arguments, Answer &answer)
{
	const ib_wr_opcode opcode = opcode_of(arguments);
	const u32 count = static_cast<u32>(arguments.number("count", 1));
	const u32 size = static_cast<u32>(arguments.number("size", 64));
	const u32 seed = static_cast<u32>(arguments.number("seed"));
	const u32 step = static_cast<u32>(arguments.number("step", size));
	const u32 batch = static_cast<u32>(arguments.number("batch", 1));
	const u64 remote = arguments.number("addr");
	const u32 rkey = static_cast<u32>(arguments.number("rkey"));
	const bool inlined = arguments.number("inline");
	const bool atomic = opcode == IB_WR_ATOMIC_CMP_AND_SWP || opcode == IB_WR_ATOMIC_FETCH_AND_ADD;
	const bool reads = opcode == IB_WR_RDMA_READ || atomic;
	const u32 slots = size_ / (size ? size : 1);
	if (!slots || batch == 0 || batch > max_batch || batch > depth_)
		return kern::Error{-EINVAL};

	u32 posted = 0, done = 0, failed = 0, first_status = 0;
	const u64 begin = kern::now_ns();
	while (done < count) {
		while (posted < count && posted - done + batch <= depth_ && posted - done + batch <= slots) {
			u32 n = 0;
			for (; n < batch && posted + n < count; n++) {
				const u32 offset = (posted + n) % slots * size;
				Request &request = requests_[n];
				__builtin_memset(&request, 0, sizeof(request));
				if (!reads)
					fill(offset, size, seed + posted + n);
				// Inline data is read by the CPU's address, all else by the device's.
				request.sge = {inlined ? reinterpret_cast<u64>(send_memory_.as<u8>() + offset) :
						    (reads ? recv_memory_ : send_memory_).address() + offset,
					  size, pd_->local_dma_lkey};
				request.wr.wr_id = posted + n;
				request.wr.sg_list = &request.sge;
				request.wr.num_sge = size ? 1 : 0;
				request.wr.opcode = opcode;
				request.wr.send_flags = IB_SEND_SIGNALED | (inlined ? IB_SEND_INLINE : 0);
				if (opcode == IB_WR_SEND_WITH_INV)
					request.wr.ex.invalidate_rkey = rkey;
				else
					request.wr.ex.imm_data = ib::be32(seed + posted + n);
				if (type_ == IB_QPT_UD) {
					request.ud.ah = ah_;
					request.ud.remote_qpn = remote_qpn_;
					request.ud.remote_qkey = static_cast<u32>(arguments.number("qkey", qkey_));
				} else if (atomic) {
					request.atomic.remote_addr = remote;
					request.atomic.rkey = rkey;
					request.atomic.compare_add = arguments.number("compare_add");
					request.atomic.swap = arguments.number("swap");
				} else {
					request.rdma.remote_addr = remote + u64{posted + n} * step;
					request.rdma.rkey = rkey;
				}
				if (n)
					requests_[n - 1].wr.next = &request.wr;
			}
			const ib_send_wr *bad;
			TRY_ERRNO(ib_post_send(qp_, &requests_[0].wr, &bad));
			posted += n;
		}
		const ib_wc wc = TRY(wait_completion(
			send_cq_, static_cast<unsigned int>(arguments.number("ms", patience_ms))));
		if (wc.status != IB_WC_SUCCESS) {
			if (!failed++)
				first_status = wc.status;
		} else if (wc.wr_id != done) {
			answer.add("completion %lu where %u was due ", wc.wr_id, done);
			return kern::Error{-EPROTO};
		}
		done++;
	}
	answer.add("done=%u failed=%u status=%s ns=%lu", done - failed, failed,
		   ib_wc_status_msg(static_cast<ib_wc_status>(first_status)), kern::now_ns() - begin);
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
		const ib_wc wc = TRY(wait_completion(recv_cq_, static_cast<unsigned int>(
								       arguments.number("ms", patience_ms))));
		if (wc.status != IB_WC_SUCCESS) {
			if (!failed++)
				answer.add("status=%s ", ib_wc_status_msg(wc.status));
			continue;
		}
		const u32 offset = static_cast<u32>(wc.wr_id) * receive_size_ + skip;
		if (wc.opcode == IB_WC_RECV) {
			const u32 at = wc.byte_len == size + skip ? check(offset, size, seed + i) : 0;
			if (at != size || wc.byte_len != size + skip) {
				answer.add("message %u of %u bytes wrong at %u ", i, wc.byte_len, at);
				return kern::Error{-EBADMSG};
			}
		}
		if ((wc.wc_flags & IB_WC_WITH_IMM) && wc.ex.imm_data.value() != seed + i) {
			answer.add("message %u has immediate %#x ", i, wc.ex.imm_data.value());
			return kern::Error{-EBADMSG};
		}
		good++;
		if (repost)
			TRY(post_receive(static_cast<u32>(wc.wr_id), receive_size_));
	}
	answer.add("good=%u failed=%u", good, failed);
	return {};
}

kern::Result<> Endpoint::verify(const Arguments &arguments, Answer &answer)
{
	const u32 count = static_cast<u32>(arguments.number("count", 1));
	const u32 size = static_cast<u32>(arguments.number("size", 64));
	for (u32 i = 0; i < count; i++) {
		const u32 at = check(i * size, size, static_cast<u32>(arguments.number("seed")) + i);
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
	if (arguments.is("to", "err") || arguments.is("to", "reset")) {
		attr.qp_state = arguments.is("to", "err") ? IB_QPS_ERR : IB_QPS_RESET;
		TRY(modify(attr, IB_QP_STATE));
	}
	TRY_ERRNO(ib_query_qp(qp_, &attr, IB_QP_STATE, &init));
	answer.add("state=%d events=%u last=%s", attr.qp_state, events_,
		   events_ ? ib_event_msg(static_cast<ib_event_type>(last_event_)) : "none");
	return {};
}

kern::Result<> Endpoint::resize(const Arguments &arguments)
{
	TRY_ERRNO(ib_resize_cq(recv_cq_, static_cast<int>(arguments.number("cqe"))));
	return kern::check(ib_resize_cq(send_cq_, static_cast<int>(arguments.number("cqe"))));
}

kern::Result<> Endpoint::register_fast(const Arguments &arguments, Answer &answer)
{
	if (!fast_)
		fast_ = TRY(checked(ib_alloc_mr(pd_, IB_MR_TYPE_MEM_REG, (size_ + 4095) / 4096)));
	else
		ib_update_fast_reg_key(fast_, static_cast<u8>(fast_->rkey + 1));
	const ib_dma_segment segment{recv_memory_.address(), size_};
	const int mapped = ib_map_mr_sg(fast_, &segment, 1, nullptr, 4096);
	if (mapped != 1)
		return kern::Error{mapped < 0 ? mapped : -EIO};
	ib_reg_wr reg{};
	reg.wr.opcode = IB_WR_REG_MR;
	reg.wr.send_flags = IB_SEND_SIGNALED;
	reg.mr = fast_;
	reg.key = fast_->rkey;
	reg.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ;
	const ib_send_wr *bad;
	TRY_ERRNO(ib_post_send(qp_, &reg.wr, &bad));
	const ib_wc wc = TRY(wait_completion(send_cq_, patience_ms));
	answer.add("status=%s rkey=0x%x addr=0x%lx", ib_wc_status_msg(wc.status), fast_->rkey, fast_->iova);
	return {};
}

kern::Result<> Endpoint::invalidate(const Arguments &arguments, Answer &answer)
{
	if (!fast_)
		return kern::Error{-EINVAL};
	ib_send_wr wr{};
	wr.opcode = IB_WR_LOCAL_INV;
	wr.send_flags = IB_SEND_SIGNALED;
	wr.ex.invalidate_rkey = fast_->rkey;
	const ib_send_wr *bad;
	TRY_ERRNO(ib_post_send(qp_, &wr, &bad));
	const ib_wc wc = TRY(wait_completion(send_cq_, patience_ms));
	answer.add("status=%s", ib_wc_status_msg(wc.status));
	return {};
}

} // namespace traffic
