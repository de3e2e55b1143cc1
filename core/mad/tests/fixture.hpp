// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides fixtures for the management datagram suites: nodes on the software fabric, agents on
// them, and sends that count their completions.
#pragma once
#include <kern/atomic.hpp>
#include <rdma/ib_mad.h>
#include "../../verbs/tests/fixture.hpp"

namespace mad_fixture
{

using fixture::Device;
using fixture::eventually;
using kern::kunit::Test;

constexpr u8 vendor_class = 0x09;
constexpr u8 vendor_rmpp_class = IB_MGMT_CLASS_VENDOR_RANGE2_START;
constexpr auto gfp = static_cast<unsigned int>(kern::Gfp::kernel);

/* A device with one port, from which address handles for other ports can be created. */
class Node
{
public:
	explicit Node(u16 lid, soft_notify notify = SOFT_NOTIFY_FIRES,
		      soft_context context = SOFT_HARD_INTERRUPT,
		      struct device *dma_device = nullptr)
	    : device_({.notify = notify, .context = context, .lid = lid, .dma_device = dma_device})
	{
		if (device_.ok())
			pd_ = ib_alloc_pd(device_, 0);
	}
	~Node()
	{
		if (ok())
			ib_dealloc_pd(pd_);
	}
	Node(const Node &) = delete;
	Node &operator=(const Node &) = delete;

	bool ok() const { return pd_ && !rdma::is_err(pd_); }
	ib_device *device() const { return device_.get(); }
	ib_pd *pd() const { return pd_; }
	/* The caller must deallocate the PD before the device is removed. */
	ib_pd *take_pd() { return std::exchange(pd_, nullptr); }
	ib_ah *address(u16 lid) const
	{
		rdma_ah_attr attr{};
		attr.type = RDMA_AH_ATTR_TYPE_IB;
		rdma_ah_set_dlid(&attr, lid);
		rdma_ah_set_port_num(&attr, 1);
		return rdma_create_ah(pd_, &attr, 0);
	}

private:
	Device device_;
	ib_pd *pd_ = nullptr;
};

/* Counts the MADs that an agent receives; may answer. */
struct Agent {
	Node &node;
	ib_mad_agent *agent = nullptr;
	kern::Atomic<unsigned int> received{}, answers{};
	unsigned int busy = 0;  /* number of requests to answer with "busy" */
	bool answering = false; /* whether the node replies to requests */
	int answer_bytes = 0;   /* length of the answer's RMPP data, or 0 for no RMPP */
	ib_wc last{};           /* completion of the last MAD received */
	int last_length = 0;
	u16 last_status = 0;
	bool content_right = true;
	kern::Atomic<unsigned int> answers_failed{}, answers_sent{};

	explicit Agent(Node &on) : node(on) {}
	~Agent() { close(); }
	Agent(const Agent &) = delete;
	Agent &operator=(const Agent &) = delete;

	/*
	 * @methods has a bit for each unsolicited method to be received, or is 0. Returns an errno.
	 */
	int open(u8 mgmt_class = 0, unsigned long methods = 0, u8 version = 1, u8 rmpp_version = 0,
		 u8 oui = 0)
	{
		ib_mad_reg_req request{};
		request.mgmt_class = mgmt_class;
		request.mgmt_class_version = version;
		request.oui[2] = oui;
		request.method_mask[0] = methods;
		agent = ib_register_mad_agent(node.device(), 1, IB_QPT_GSI,
					      methods ? &request : nullptr, rmpp_version, on_sent,
					      on_received, this, 0);
		if (!rdma::is_err(agent))
			return 0;
		const int error = rdma::ptr_err(agent);
		agent = nullptr;
		return error;
	}
	void close()
	{
		if (agent)
			ib_unregister_mad_agent(std::exchange(agent, nullptr));
	}

	static u8 pattern(u32 offset) { return static_cast<u8>(offset * 7 + (offset >> 8)); }

	static void fill(ib_mad_send_buf *send)
	{
		for (int segment = 0; segment < send->seg_count; segment++) {
			auto *to = static_cast<u8 *>(ib_get_rmpp_segment(send, segment + 1));
			for (int i = 0; i < send->seg_size; i++)
				to[i] = pattern(static_cast<u32>(segment * send->seg_size + i));
		}
	}

private:
	/* Completions of a test's sends, which have context[0] set, and of answers. */
	static void on_sent(ib_mad_agent *mad_agent, ib_mad_send_wc *wc);
	static void on_received(ib_mad_agent *mad_agent, ib_mad_send_buf *, ib_mad_recv_wc *wc)
	{
		auto &self = *static_cast<Agent *>(mad_agent->context);
		self.last = *wc->wc;
		self.last_length = wc->mad_len;
		self.last_status = wc->recv_buf.mad->mad_hdr.status.value();
		if (wc->mad_len > IB_MGMT_MAD_SIZE)
			self.check(*wc);
		const bool response = ib_response_mad(&wc->recv_buf.mad->mad_hdr);
		if (response)
			self.answers.fetch_add(1);
		/*
		 * Counted before the answer is sent, because another CPU may receive and count the
		 * answer at once.
		 */
		self.received.fetch_add(1);
		if (!response && self.answering)
			self.answer(mad_agent, *wc);
		ib_free_recv_mad(wc);
	}
	void check(const ib_mad_recv_wc &wc)
	{
		constexpr int header = IB_MGMT_VENDOR_HDR, payload = IB_MGMT_VENDOR_DATA;
		int offset = 0;
		for (ib_list_head *at = wc.rmpp_list.next; at != &wc.rmpp_list; at = at->next) {
			const auto *buf = reinterpret_cast<const ib_mad_recv_buf *>(at);
			const auto *bytes = reinterpret_cast<const u8 *>(buf->mad) + header;
			for (int i = 0; i < payload && offset < wc.mad_len - header; i++, offset++)
				content_right = content_right &&
						bytes[i] == pattern(static_cast<u32>(offset));
		}
		content_right = content_right && offset == wc.mad_len - header;
	}
	/*
	 * Uses @from instead of @agent, because MADs may arrive before open() has stored its
	 * result, and while close() waits.
	 */
	void answer(ib_mad_agent *from, const ib_mad_recv_wc &wc)
	{
		const bool rmpp = answer_bytes != 0;
		auto *send = ib_create_send_mad(
			from, wc.wc->src_qp, 0, rmpp, rmpp ? IB_MGMT_VENDOR_HDR : IB_MGMT_MAD_HDR,
			rmpp ? answer_bytes : IB_MGMT_MAD_DATA, gfp, IB_MGMT_BASE_VERSION);
		if (rdma::is_err(send))
			return;
		if (rmpp)
			fill(send);
		auto *mad = static_cast<ib_mad *>(send->mad);
		mad->mad_hdr = wc.recv_buf.mad->mad_hdr;
		mad->mad_hdr.method |= IB_MGMT_METHOD_RESP;
		if (busy) {
			busy--;
			mad->mad_hdr.status = IB_MGMT_MAD_STATUS_BUSY;
		}
		send->retries = rmpp ? 5 : 0;
		send->ah = ib_create_ah_from_wc(node.pd(), wc.wc, wc.recv_buf.grh, 1);
		if (rdma::is_err(send->ah)) {
			ib_free_send_mad(send);
		} else if (ib_post_send_mad(send, nullptr)) {
			rdma_destroy_ah(send->ah, 0);
			ib_free_send_mad(send);
		}
	}
};

/* A MAD sent by a test, and how it ended. */
class Sent
{
public:
	/* @data_bytes is the length of an RMPP message, or 0 for a single datagram. */
	Sent(Agent &from, u16 lid, u8 mgmt_class, u8 method, int timeout_ms, int retries,
	     int data_bytes = 0)
	{
		static constinit kern::Atomic<u32> next_tid{};
		const bool rmpp = data_bytes != 0;

		buf_ = ib_create_send_mad(
			from.agent, 1, 0, rmpp, rmpp ? IB_MGMT_VENDOR_HDR : IB_MGMT_MAD_HDR,
			rmpp ? data_bytes : IB_MGMT_MAD_DATA, gfp, IB_MGMT_BASE_VERSION);
		if (rdma::is_err(buf_))
			return;
		buf_->ah = from.node.address(lid);
		buf_->context[0] = this;
		buf_->timeout_ms = timeout_ms;
		buf_->retries = retries;
		if (rmpp)
			Agent::fill(buf_);
		auto &h = header();
		h.base_version = IB_MGMT_BASE_VERSION;
		h.mgmt_class = mgmt_class;
		h.class_version = 1;
		h.method = method;
		h.tid = u64{from.agent->hi_tid} << 32 | next_tid.fetch_add(1);
	}
	~Sent()
	{
		if (!ok())
			return;
		/*
		 * If the test has given up, the buffer must not be freed while the MAD layer uses
		 * it.
		 */
		if (posted_ && !completions()) {
			ib_cancel_mad(buf_);
			if (!ended())
				return;
		}
		rdma_destroy_ah(buf_->ah, 0);
		ib_free_send_mad(buf_);
	}
	Sent(const Sent &) = delete;
	Sent &operator=(const Sent &) = delete;

	bool ok() const { return !rdma::is_err(buf_) && !rdma::is_err(buf_->ah); }
	ib_mad_hdr &header() { return static_cast<ib_mad *>(buf_->mad)->mad_hdr; }
	ib_mad_send_buf *buf() const { return buf_; }
	int post()
	{
		const int status = ib_post_send_mad(buf_, nullptr);
		posted_ = posted_ || status == 0;
		return status;
	}
	/* Posts the whole list. Returns an error if bad_send_buf is not @expected_bad. */
	int post_list(const ib_mad_send_buf *expected_bad)
	{
		ib_mad_send_buf *bad = nullptr;
		const int status = ib_post_send_mad(buf_, &bad);
		posted_ = status == 0 || bad != buf_;
		return bad == expected_bad ? status : -ENOENT;
	}
	unsigned int completions() const { return completions_.load_acquire(); }
	bool ended() const
	{
		return eventually([&] { return completions() != 0; });
	}
	ib_wc_status status() const { return status_; }
	void complete(ib_wc_status status)
	{
		status_ = status;
		completions_.fetch_add(1);
	}

private:
	ib_mad_send_buf *buf_ = nullptr;
	bool posted_ = false;
	ib_wc_status status_ = IB_WC_GENERAL_ERR;
	kern::Atomic<unsigned int> completions_{};
};

inline void Agent::on_sent(ib_mad_agent *mad_agent, ib_mad_send_wc *wc)
{
	auto &self = *static_cast<Agent *>(mad_agent->context);
	ib_mad_send_buf *buf = wc->send_buf;

	if (auto *sent = static_cast<Sent *>(buf->context[0])) {
		sent->complete(wc->status);
		return;
	}
	(wc->status == IB_WC_SUCCESS ? self.answers_sent : self.answers_failed).fetch_add(1);
	rdma_destroy_ah(buf->ah, 0);
	ib_free_send_mad(buf);
}

inline ib_mad_counters dropped(const Node &node, ib_qp_type type = IB_QPT_GSI)
{
	ib_mad_counters counters{};
	(void)ib_query_mad_counters(node.device(), 1, type, &counters);
	return counters;
}

/* Posts without an agent; @done is called on completion. Returns the result of ib_post_send(). */
inline int post_datagram(ib_qp *qp, ib_cqe &done, ib_sge &sge, ib_ah *ah, u32 remote_qpn)
{
	ib_ud_wr wr{};
	wr.wr.wr_cqe = &done;
	wr.wr.sg_list = &sge;
	wr.wr.num_sge = 1;
	wr.wr.opcode = IB_WR_SEND;
	wr.wr.send_flags = IB_SEND_SIGNALED;
	wr.ah = ah;
	wr.remote_qpn = remote_qpn;
	wr.remote_qkey = remote_qpn ? IB_QP1_QKEY : 0;
	return ib_post_send(qp, &wr.wr, nullptr);
}

/*
 * Sends one datagram at a time without the MAD layer, from the agent's special QP to the QP of the
 * same number at a LID.
 */
class Raw : ib_cqe
{
public:
	Raw(Agent &from, u16 lid) : ib_cqe{}, agent_(from), ah_(from.node.address(lid))
	{
		done = [](ib_cq *, ib_wc *wc) {
			auto &self = *static_cast<Raw *>(wc->wr_cqe);
			self.status_ = wc->status;
			self.done_.complete();
		};
	}
	~Raw() { rdma_destroy_ah(ah_, 0); }
	Raw(const Raw &) = delete;
	Raw &operator=(const Raw &) = delete;

	bool send(u32 length)
	{
		ib_sge sge{reinterpret_cast<u64>(bytes), length, agent_.node.pd()->local_dma_lkey};
		done_.reinit();
		if (post_datagram(agent_.agent->qp, *this, sge, ah_, agent_.agent->qp->qp_num))
			return false;
		done_.wait();
		return status_ == IB_WC_SUCCESS;
	}
	ib_rmpp_mad &mad() { return *reinterpret_cast<ib_rmpp_mad *>(bytes); }

	alignas(8) u8 bytes[4096]{};

private:
	Agent &agent_;
	ib_ah *ah_;
	kern::Completion done_;
	ib_wc_status status_ = IB_WC_GENERAL_ERR;
};

/*
 * Changes the state of a QP without the midlayer, as a hardware error would. The QP's owner may be
 * changing the state at the same time.
 */
inline bool move_unasked(ib_qp *qp, ib_qp_state state)
{
	ib_qp_attr attr{};
	attr.qp_state = state;
	return qp->device->ops.modify_qp(qp, &attr, IB_QP_STATE, nullptr) == 0;
}

/* A request that no hardware can carry out: it stops the send queue (IBA 10.3.1.6). */
struct BadRequest : ib_cqe {
	kern::Completion ended;
	ib_wc_status status = IB_WC_SUCCESS; /* valid once `ended` is complete */

	BadRequest() : ib_cqe{}
	{
		done = [](ib_cq *, ib_wc *wc) {
			auto &self = *static_cast<BadRequest *>(wc->wr_cqe);
			self.status = wc->status;
			self.ended.complete();
		};
	}
	int post(ib_qp *qp, ib_ah *ah)
	{
		ib_sge nowhere{.addr = 64, .length = 16, .lkey = 0xdead};
		return post_datagram(qp, *this, nowhere, ah, 1);
	}
};

/* Returns @count requests that are not posted yet, or an empty array if memory is short. */
inline kern::OwnedArray<kern::Owned<Sent>> make_requests(std::size_t count, Agent &from, u16 lid,
							 int timeout_ms, int retries)
{
	auto made = kern::make_array<kern::Owned<Sent>>(kern::Gfp::kernel, count);
	if (!made.ok())
		return {};
	auto requests = made.take();
	for (auto &request : requests) {
		auto one = kern::make<Sent>(kern::Gfp::kernel, from, lid, vendor_class,
					    u8{IB_MGMT_METHOD_GET}, timeout_ms, retries);
		if (!one.ok())
			return {};
		request = one.take();
		if (!request->ok())
			return {};
	}
	return requests;
}

/* Counts the packets that a device sends, and loses those whose bits are set in a mask. */
struct Watch {
	ib_device *device;
	kern::Atomic<unsigned int> seen{};
	unsigned long
		lost; /* bit n: packet n, counted from 0; bit 63 also applies to all later ones */

	Watch(ib_device *of, unsigned long mask) : device(of), lost(mask)
	{
		soft_watch(
			device,
			[](void *context, const void *, size_t) {
				auto &self = *static_cast<Watch *>(context);
				const unsigned int n = self.seen.fetch_add(1);
				return (self.lost >> (n < 63 ? n : 63) & 1) != 0;
			},
			this);
	}
	~Watch() { soft_watch(device, nullptr, nullptr); }
	Watch(const Watch &) = delete;
	Watch &operator=(const Watch &) = delete;
};

/* Records the last RMPP packet that a device sent. */
struct Spy {
	ib_device *device;
	kern::Atomic<u32> type{}, status{};

	explicit Spy(ib_device *of) : device(of)
	{
		soft_watch(
			device,
			[](void *context, const void *payload, size_t length) {
				auto &self = *static_cast<Spy *>(context);
				if (length == IB_MGMT_MAD_SIZE) {
					const auto &rmpp =
						static_cast<const ib_rmpp_mad *>(payload)->rmpp_hdr;
					self.status.store_release(rmpp.rmpp_status);
					self.type.store_release(rmpp.rmpp_type);
				}
				return false;
			},
			this);
	}
	~Spy() { soft_watch(device, nullptr, nullptr); }
	Spy(const Spy &) = delete;
	Spy &operator=(const Spy &) = delete;

	/* Waits until the device has sent an ABORT with this status. */
	bool aborted(u32 with)
	{
		return eventually([&] {
			return type.load_acquire() == IB_MGMT_RMPP_TYPE_ABORT &&
			       status.load_acquire() == with;
		});
	}
};

} // namespace mad_fixture
