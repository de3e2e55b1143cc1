// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "tests/traffic/endpoint.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>

namespace weft::traffic
{

namespace
{

constexpr std::uint32_t kGrhBytes = 40;
constexpr std::uint32_t kQkey = 0x11111111;
constexpr std::uint32_t kMaxBatch = 32;
constexpr std::uint32_t kMaxPieces = 4;
constexpr int kTimeLimitMs = 60'000;

template<typename T>
T *made(T *object, const char *what)
{
	if (!object)
		throw Failure(std::string(what) + ": " + std::strerror(errno));
	return object;
}

void check_status(int status, const char *what)
{
	if (status)
		throw Failure(std::string(what) + ": " + std::strerror(status));
}

ibv_qp_type type_of(const Arguments &arguments)
{
	const auto name = arguments.text("type", "rc");
	return name == "uc"    ? IBV_QPT_UC
	       : name == "ud"  ? IBV_QPT_UD
	       : name == "xrc" ? IBV_QPT_XRC_SEND
			       : IBV_QPT_RC;
}

ibv_wr_opcode opcode_of(const Arguments &arguments)
{
	static const std::map<std::string, ibv_wr_opcode> kNames = {
		{"send", IBV_WR_SEND},
		{"send_imm", IBV_WR_SEND_WITH_IMM},
		{"send_inv", IBV_WR_SEND_WITH_INV},
		{"write", IBV_WR_RDMA_WRITE},
		{"write_imm", IBV_WR_RDMA_WRITE_WITH_IMM},
		{"read", IBV_WR_RDMA_READ},
		{"cas", IBV_WR_ATOMIC_CMP_AND_SWP},
		{"add", IBV_WR_ATOMIC_FETCH_AND_ADD},
	};
	return kNames.at(arguments.text("op", "send"));
}

// Uses the same words as weft_traffic.ko, so that a test can parse the answers of either.
const char *status_text(ibv_wc_status status)
{
	static constexpr const char *kNames[] = {"success",
						 "local length error",
						 "local QP operation error",
						 "local EE context operation error",
						 "local protection error",
						 "request flushed",
						 "memory window bind error",
						 "bad response",
						 "local access error",
						 "remote invalid request",
						 "remote access error",
						 "remote operation error",
						 "retries exceeded",
						 "receiver-not-ready retries exceeded"};
	return status < std::size(kNames) ? kNames[status] : "another error";
}

} // namespace

Endpoint::Endpoint(ibv_context *context, const Arguments &arguments)
    : context_(context), type_(type_of(arguments)),
      port_(static_cast<std::uint8_t>(arguments.word("port", 1))),
      depth_(arguments.word("depth", 64)), size_(arguments.word("size", 65536)),
      send_memory_(size_), receive_memory_(size_)
{
	constexpr int remote = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	pd_.reset(made(ibv_alloc_pd(context_), "protection domain"));
	send_region_.reset(made(ibv_reg_mr(pd_.get(), send_memory_.data(), size_, 0), "region"));
	receive_region_.reset(
		made(ibv_reg_mr(pd_.get(), receive_memory_.data(), size_, remote), "region"));
	channel_.reset(made(ibv_create_comp_channel(context_), "completion channel"));
	const auto entries = static_cast<int>(arguments.word("cqe", depth_ + 16));
	send_cq_.reset(made(ibv_create_cq(context_, entries, nullptr, channel_.get(), 0), "CQ"));
	receive_cq_.reset(made(ibv_create_cq(context_, entries, nullptr, channel_.get(), 0), "CQ"));
	if (type_ == IBV_QPT_XRC_SEND)
		create_extended();
	else
		create_queue_pair(arguments);
}

// One QP that sends, one that receives, and the SRQ between that and the receives.
void Endpoint::create_extended()
{
	ibv_xrcd_init_attr domain{};
	domain.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	domain.fd = -1;
	domain.oflags = O_CREAT;
	xrc_domain_.reset(made(ibv_open_xrcd(context_, &domain), "XRC domain"));

	ibv_srq_init_attr_ex queue{};
	queue.attr.max_wr = depth_;
	queue.attr.max_sge = 2;
	queue.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
			  IBV_SRQ_INIT_ATTR_CQ;
	queue.srq_type = IBV_SRQT_XRC;
	queue.pd = pd_.get();
	queue.xrcd = xrc_domain_.get();
	queue.cq = receive_cq_.get();
	srq_.reset(made(ibv_create_srq_ex(context_, &queue), "SRQ"));

	ibv_qp_init_attr_ex init{};
	init.qp_type = IBV_QPT_XRC_SEND;
	init.comp_mask = IBV_QP_INIT_ATTR_PD;
	init.pd = pd_.get();
	init.send_cq = send_cq_.get();
	init.cap.max_send_wr = depth_;
	init.cap.max_send_sge = kMaxPieces;
	init.cap.max_inline_data = 128;
	qp_.reset(made(ibv_create_qp_ex(context_, &init), "queue pair"));

	ibv_qp_init_attr_ex target{};
	target.qp_type = IBV_QPT_XRC_RECV;
	target.comp_mask = IBV_QP_INIT_ATTR_XRCD;
	target.xrcd = xrc_domain_.get();
	target_.reset(made(ibv_create_qp_ex(context_, &target), "queue pair"));
}

void Endpoint::create_queue_pair(const Arguments &arguments)
{
	if (arguments.number("srq")) {
		ibv_srq_init_attr init{};
		init.attr.max_wr = depth_;
		init.attr.max_sge = 2;
		srq_.reset(made(ibv_create_srq(pd_.get(), &init), "SRQ"));
	}
	ibv_qp_init_attr init{};
	init.send_cq = send_cq_.get();
	init.recv_cq = receive_cq_.get();
	init.srq = srq_.get();
	init.qp_type = type_;
	init.cap = {.max_send_wr = depth_,
		    .max_recv_wr = srq_ ? 0 : depth_,
		    .max_send_sge = kMaxPieces,
		    .max_recv_sge = srq_ ? 0u : 4u,
		    .max_inline_data = 128};
	qp_.reset(made(ibv_create_qp(pd_.get(), &init), "queue pair"));
}

std::string Endpoint::describe() const
{
	ibv_port_attr port{};
	check_status(ibv_query_port(context_, port_, &port), "port");
	std::ostringstream out;
	out << "qpn=" << qp_->qp_num << " lid=" << port.lid << " state=" << port.state
	    << " mtu=" << port.active_mtu << " addr=0x" << std::hex
	    << reinterpret_cast<std::uintptr_t>(receive_memory_.data()) << " rkey=0x"
	    << receive_region_->rkey << std::dec;
	if (target_) {
		std::uint32_t srqn = 0;
		check_status(ibv_get_srq_num(srq_.get(), &srqn), "SRQ");
		out << " target=" << target_->qp_num << " srqn=" << srqn;
	}
	return out.str();
}

void Endpoint::modify(ibv_qp_attr &attr, int mask)
{
	check_status(ibv_modify_qp(qp_.get(), &attr, mask), "modify");
}

std::string Endpoint::connect(const Arguments &arguments)
{
	remote_qpn_ = arguments.word("qpn");
	remote_srqn_ = arguments.word("srqn");
	connect(*qp_, target_ ? arguments.word("target") : remote_qpn_, arguments);
	if (target_)
		connect(*target_, remote_qpn_, arguments);
	return "";
}

void Endpoint::connect(ibv_qp &qp, std::uint32_t remote_qpn, const Arguments &arguments)
{
	const bool ud = qp.qp_type == IBV_QPT_UD;
	const bool responds = qp.qp_type == IBV_QPT_RC || qp.qp_type == IBV_QPT_XRC_RECV;
	const bool requests = qp.qp_type == IBV_QPT_RC || qp.qp_type == IBV_QPT_XRC_SEND;
	const auto modify = [&qp](ibv_qp_attr &attr, int mask) {
		check_status(ibv_modify_qp(&qp, &attr, mask), "modify");
	};
	const auto psn = arguments.word("psn", 1);
	ibv_ah_attr address{};
	address.dlid = static_cast<std::uint16_t>(arguments.number("lid"));
	address.port_num = port_;

	ibv_qp_attr attr{};
	attr.qp_state = IBV_QPS_INIT;
	attr.port_num = port_;
	attr.qkey = kQkey;
	attr.qp_access_flags = arguments.number("deny")
				       ? 0
				       : IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
						 IBV_ACCESS_REMOTE_ATOMIC;
	modify(attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
	attr.qp_state = IBV_QPS_RTR;
	attr.ah_attr = address;
	attr.path_mtu = static_cast<ibv_mtu>(arguments.number("mtu", IBV_MTU_2048));
	attr.dest_qp_num = remote_qpn;
	attr.rq_psn = psn;
	attr.max_dest_rd_atomic = 4;
	attr.min_rnr_timer = 12;
	if (ud) {
		modify(attr, IBV_QP_STATE);
		ah_.reset(made(ibv_create_ah(pd_.get(), &address), "address handle"));
	} else {
		modify(attr,
		       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			       IBV_QP_RQ_PSN |
			       (responds ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0));
	}
	if (arguments.text("until") == "rtr")
		return;
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = psn;
	attr.timeout = static_cast<std::uint8_t>(arguments.number("timeout", 17));
	attr.retry_cnt = static_cast<std::uint8_t>(arguments.number("retry", 7));
	attr.rnr_retry = static_cast<std::uint8_t>(arguments.number("rnr", 7));
	attr.max_rd_atomic = 4;
	modify(attr,
	       IBV_QP_STATE | IBV_QP_SQ_PSN | (requests || responds ? IBV_QP_TIMEOUT : 0) |
		       (requests ? IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC
				 : 0));
}

std::uint32_t Endpoint::check(std::uint32_t offset, std::uint32_t size, std::uint32_t seed) const
{
	std::uint32_t at = 0;
	while (at < size && receive_memory_[offset + at] == pattern(seed, at))
		at++;
	return at;
}

ibv_wc Endpoint::wait_completion(ibv_cq *cq)
{
	ibv_wc wc;
	for (;;) {
		if (ibv_poll_cq(cq, 1, &wc) > 0)
			return wc;
		// The CQ is armed, and then polled again (NOTIFY-03). Events of the other CQ are
		// found when that one is polled.
		check_status(ibv_req_notify_cq(cq, 0), "arm");
		if (ibv_poll_cq(cq, 1, &wc) > 0)
			return wc;
		pollfd file{channel_->fd, POLLIN, 0};
		if (poll(&file, 1, kTimeLimitMs) <= 0)
			throw Failure("no completion in time");
		ibv_cq *of;
		void *unused;
		check_status(ibv_get_cq_event(channel_.get(), &of, &unused), "event");
		ibv_ack_cq_events(of, 1);
	}
}

void Endpoint::post_receive(std::uint32_t slot)
{
	// The buffer is divided into two pieces if it is long enough.
	const auto address = reinterpret_cast<std::uint64_t>(receive_memory_.data()) +
			     std::uint64_t{slot} * receive_size_;
	const std::uint32_t first = receive_size_ / 3;
	ibv_sge sge[2] = {{address, first, receive_region_->lkey},
			  {address + first, receive_size_ - first, receive_region_->lkey}};
	ibv_recv_wr wr{}, *bad;
	wr.wr_id = slot;
	wr.sg_list = sge;
	wr.num_sge = 2;
	check_status(srq_ ? ibv_post_srq_recv(srq_.get(), &wr, &bad)
			  : ibv_post_recv(qp_.get(), &wr, &bad),
		     "receive");
}

std::string Endpoint::post_receives(const Arguments &arguments)
{
	const auto count = arguments.word("count", 1);
	receive_size_ = arguments.word("size", 64) + (type_ == IBV_QPT_UD ? kGrhBytes : 0);
	if (count > depth_ || std::uint64_t{count} * receive_size_ > size_)
		throw Failure("more than there is room for");
	std::fill(receive_memory_.begin(), receive_memory_.end(), std::uint8_t{0xee});
	for (std::uint32_t slot = 0; slot < count; slot++)
		post_receive(slot);
	return "";
}

void Endpoint::post_batch(const Arguments &arguments, std::uint32_t first, std::uint32_t count,
			  bool burst)
{
	const auto opcode = opcode_of(arguments);
	const bool atomic =
		opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	const bool reads = opcode == IBV_WR_RDMA_READ || atomic;
	const auto size = arguments.word("size", 64);
	const auto seed = arguments.word("seed");
	const auto slots = size_ / std::max(size, 1u);
	const auto number_of_pieces = std::min(arguments.word("pieces", 1), kMaxPieces);
	std::array<ibv_send_wr, kMaxBatch> requests{};
	std::array<std::array<ibv_sge, kMaxPieces>, kMaxBatch> pieces;

	for (std::uint32_t n = 0; n < count; n++) {
		const std::uint32_t number = first + n, offset = number % slots * size;
		auto &memory = reads ? receive_memory_ : send_memory_;
		for (std::uint32_t at = 0; at < size && !reads; at++)
			memory[offset + at] = pattern(seed + number, at);
		for (std::uint32_t i = 0, at = 0; i < number_of_pieces; i++) {
			const bool last = i + 1 == number_of_pieces;
			const auto part = last ? size - at : size / number_of_pieces;
			pieces[n][i] = {reinterpret_cast<std::uint64_t>(memory.data()) + offset +
						at,
					part, (reads ? receive_region_ : send_region_)->lkey};
			at += part;
		}
		ibv_send_wr &wr = requests[n];
		wr.wr_id = number;
		wr.next = n + 1 < count ? &requests[n + 1] : nullptr;
		wr.sg_list = pieces[n].data();
		wr.num_sge = size ? static_cast<int>(number_of_pieces) : 0;
		if (target_)
			wr.qp_type.xrc.remote_srqn = remote_srqn_;
		wr.opcode = opcode;
		wr.send_flags =
			IBV_SEND_SIGNALED | (arguments.number("inline") ? IBV_SEND_INLINE : 0);
		if (burst)
			wr.send_flags = wr.next ? 0 : IBV_SEND_SIGNALED | IBV_SEND_SOLICITED;
		if (opcode == IBV_WR_SEND_WITH_INV)
			wr.invalidate_rkey = arguments.word("rkey");
		else
			wr.imm_data = htonl(seed + number);
		if (type_ == IBV_QPT_UD) {
			wr.wr.ud = {ah_.get(), remote_qpn_, arguments.word("qkey", kQkey)};
		} else if (atomic) {
			wr.wr.atomic.remote_addr = arguments.number("addr");
			wr.wr.atomic.rkey = arguments.word("rkey");
			wr.wr.atomic.compare_add = arguments.number("compare_add");
			wr.wr.atomic.swap = arguments.number("swap");
		} else {
			wr.wr.rdma.remote_addr =
				arguments.number("addr") +
				std::uint64_t{number} * arguments.word("step", size);
			wr.wr.rdma.rkey = arguments.word("rkey");
		}
	}
	ibv_send_wr *bad;
	check_status(ibv_post_send(qp_.get(), requests.data(), &bad), "send");
}

std::string Endpoint::send(const Arguments &arguments)
{
	const auto count = arguments.word("count", 1), batch = arguments.word("batch", 1);
	const auto slots = size_ / std::max(arguments.word("size", 64), 1u);
	if (!slots || !batch || batch > kMaxBatch || batch > depth_)
		throw Failure("no room for such a batch");
	for (auto calls = arguments.word("after"); calls; calls--)
		wait_completion(receive_cq_.get());

	std::uint32_t posted = 0, done = 0, failed = 0;
	ibv_wc_status first_status = IBV_WC_SUCCESS;
	for (; done < count; done++) {
		while (posted < count && posted - done + batch <= std::min(depth_, slots)) {
			const auto number = std::min(batch, count - posted);
			post_batch(arguments, posted, number);
			posted += number;
		}
		const ibv_wc wc = wait_completion(send_cq_.get());
		if (wc.status != IBV_WC_SUCCESS) {
			if (!failed++)
				first_status = wc.status;
		} else if (wc.wr_id != done) {
			throw Failure("completion " + std::to_string(wc.wr_id) + " where " +
				      std::to_string(done) + " was due");
		}
	}
	return "done=" + std::to_string(done - failed) + " failed=" + std::to_string(failed) +
	       " status=" + status_text(first_status);
}

std::string Endpoint::burst(const Arguments &arguments)
{
	constexpr std::uint32_t longest_gap_us = 60;
	const auto count = arguments.word("count", 1000);
	std::mt19937_64 random(arguments.number("seed"));
	if (depth_ < kMaxBatch || std::uint64_t{kMaxBatch} * arguments.word("size", 64) > size_)
		throw Failure("no room for a burst");
	std::uint32_t sent = 0, bursts = 0;
	for (; sent < count; bursts++) {
		const auto number = std::min(static_cast<std::uint32_t>(1 + random() % kMaxBatch),
					     count - sent);
		post_batch(arguments, sent, number, true);
		if (const ibv_wc wc = wait_completion(send_cq_.get()); wc.status != IBV_WC_SUCCESS)
			throw Failure(std::string("status=") + status_text(wc.status));
		sent += number;
		std::this_thread::sleep_for(std::chrono::microseconds(random() % longest_gap_us));
	}
	return "sent=" + std::to_string(sent) + " bursts=" + std::to_string(bursts);
}

std::string Endpoint::receive(const Arguments &arguments)
{
	const auto count = arguments.word("count", 1), size = arguments.word("size", 64),
		   seed = arguments.word("seed");
	const std::uint32_t skip = type_ == IBV_QPT_UD ? kGrhBytes : 0;
	std::uint32_t good = 0, failed = 0;
	std::string answer;
	for (std::uint32_t i = 0; i < count; i++) {
		const ibv_wc wc = wait_completion(receive_cq_.get());
		if (wc.status != IBV_WC_SUCCESS) {
			if (!failed++)
				answer = std::string("status=") + status_text(wc.status) + " ";
			continue;
		}
		const auto offset = static_cast<std::uint32_t>(wc.wr_id) * receive_size_ + skip;
		if (wc.opcode == IBV_WC_RECV) {
			const auto at =
				wc.byte_len == size + skip ? check(offset, size, seed + i) : 0;
			if (at != size || wc.byte_len != size + skip)
				throw Failure("message " + std::to_string(i) + " of " +
					      std::to_string(wc.byte_len) + " bytes wrong at " +
					      std::to_string(at));
		}
		if ((wc.wc_flags & IBV_WC_WITH_IMM) && ntohl(wc.imm_data) != seed + i)
			throw Failure("message " + std::to_string(i) + " has immediate " +
				      std::to_string(ntohl(wc.imm_data)));
		good++;
		if (arguments.number("repost"))
			post_receive(static_cast<std::uint32_t>(wc.wr_id));
	}
	return answer + "good=" + std::to_string(good) + " failed=" + std::to_string(failed);
}

std::string Endpoint::verify(const Arguments &arguments) const
{
	const auto count = arguments.word("count", 1), size = arguments.word("size", 64);
	const auto offset = arguments.word("offset");
	if (offset + std::uint64_t{count} * size > size_)
		throw Failure("more than there is");
	for (std::uint32_t i = 0; i < count; i++)
		if (const auto at = check(offset + i * size, size, arguments.word("seed") + i);
		    at != size)
			throw Failure("message " + std::to_string(i) + " wrong at " +
				      std::to_string(at));
	return "good=" + std::to_string(count);
}

std::string Endpoint::word(const Arguments &arguments)
{
	const auto index = arguments.number("index");
	if (index >= size_ / 8)
		throw Failure("no such word");
	auto *words = reinterpret_cast<volatile std::uint64_t *>(receive_memory_.data());
	if (arguments.text("set") == "yes")
		words[index] = arguments.number("value");
	std::ostringstream out;
	out << "word=0x" << std::hex << words[index];
	return out.str();
}

std::string Endpoint::state(const Arguments &arguments)
{
	static const std::map<std::string, ibv_qp_state> kStates = {{"err", IBV_QPS_ERR},
								    {"reset", IBV_QPS_RESET},
								    {"sqd", IBV_QPS_SQD},
								    {"rts", IBV_QPS_RTS}};
	ibv_qp_attr attr{};
	ibv_qp_init_attr init{};
	if (const auto to = kStates.find(arguments.text("to")); to != kStates.end()) {
		attr.qp_state = to->second;
		attr.en_sqd_async_notify = 1;
		modify(attr,
		       IBV_QP_STATE | (to->second == IBV_QPS_SQD ? IBV_QP_EN_SQD_ASYNC_NOTIFY : 0));
	}
	check_status(ibv_query_qp(qp_.get(), &attr, IBV_QP_STATE, &init), "query");
	return "state=" + std::to_string(attr.qp_state) + ' ' + events_.describe();
}

std::string Endpoint::limit(const Arguments &arguments)
{
	if (!srq_)
		throw Failure("it has no SRQ");
	ibv_srq_attr attr{};
	attr.srq_limit = arguments.word("limit");
	check_status(ibv_modify_srq(srq_.get(), &attr, IBV_SRQ_LIMIT), "limit");
	return "";
}

bool Endpoint::take(const ibv_async_event &event)
{
	bool mine = false;
	switch (event.event_type) {
	case IBV_EVENT_CQ_ERR:
		mine = event.element.cq == send_cq_.get() || event.element.cq == receive_cq_.get();
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		mine = srq_ && event.element.srq == srq_.get();
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		mine = event.element.qp == qp_.get() || event.element.qp == target_.get();
		break;
	default:
		break;
	}
	if (mine)
		events_.add(event.event_type);
	return mine;
}

std::string Endpoint::resize(const Arguments &arguments)
{
	const auto entries = static_cast<int>(arguments.number("cqe"));
	check_status(ibv_resize_cq(receive_cq_.get(), entries), "resize");
	check_status(ibv_resize_cq(send_cq_.get(), entries), "resize");
	return "";
}

} // namespace weft::traffic
