// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides fixtures for the connection suites: nodes with the CM, endpoints that record their
// events, and an independent peer that builds its own messages.
#pragma once
#include <ib/cm.hpp>
#include <kern/atomic.hpp>
#include <kern/kunit_fixture.hpp>
#include <kern/lock.hpp>
#include <rdma/ib_cm.h>
#include "../../verbs/tests/fixture.hpp"

namespace cm_fixture
{

using kern::kunit::Boxed;
using kern::kunit::Test;

/*
 * Waits until the condition holds, and returns false if it does not within a minute. The intervals
 * between checks grow, because timeouts here last seconds.
 */
template<class Condition>
bool eventually(Condition condition)
{
	const auto deadline = kern::Deadline::in_ms(60'000);
	for (unsigned int us = 50; !condition(); us = us < 10'000 ? 2 * us : us) {
		if (deadline.passed())
			return condition();
		kern::sleep_us(us, 2 * us);
	}
	return true;
}

constexpr u64 service = 0x1000000000000042;
constexpr auto gfp = static_cast<unsigned int>(kern::Gfp::kernel);
constexpr u32 some_qpn = 0x000123, other_qpn = 0x000456;

/* A device on the fabric. */
class Node
{
public:
	explicit Node(u16 lid, u32 lacks = 0, unsigned int ports = 1) : lid_(lid)
	{
		const soft_options options = {.ports = ports, .lid = lid, .lacks = lacks};
		auto made = kern::make<fixture::Device>(kern::Gfp::kernel, options);
		if (made.ok())
			device_ = made.take();
	}

	bool ok() const { return device_ && device_->ok(); }
	ib_device *device() const { return device_->get(); }
	/* Removes the device. */
	void leave() { device_.reset(); }
	u16 lid() const { return lid_; }
	ib_gid gid(u32 port = 1) const
	{
		ib_gid gid{};
		(void)rdma_query_gid(device(), port, 0, &gid);
		return gid;
	}
	u64 guid() const { return device()->node_guid; }
	/* Returns the path from a port to the other node's port with the same number. */
	sa_path_rec path_to(const Node &other, u8 lifetime = 10, u32 port = 1) const
	{
		sa_path_rec path{};
		path.sgid = gid(port);
		path.dgid = other.gid(port);
		sa_path_set_slid(&path, lid_ + port - 1);
		sa_path_set_dlid(&path, other.lid_ + port - 1);
		path.pkey = u16{IB_DEFAULT_PKEY_FULL};
		path.mtu = IB_MTU_2048;
		path.rate = IB_RATE_PORT_CURRENT;
		path.packet_life_time = lifetime;
		path.hop_limit = 1;
		return path;
	}
	ib_cm_counters counters(u32 port = 1) const
	{
		ib_cm_counters counters{};
		(void)ib_cm_query_counters(device(), port, &counters);
		return counters;
	}
	u64 received() const
	{
		u64 sum = 0;
		const auto now = counters();
		for (u64 kind : now.received)
			sum += kind;
		return sum + now.malformed;
	}

private:
	u16 lid_;
	kern::Owned<fixture::Device> device_;
};

/* An endpoint of a connection, with the events that its handler received. */
class End
{
public:
	/* Runs in the handler, and provides its return value. */
	using Handler = int (*)(End &end, const ib_cm_event &event);

	explicit End(Handler what = nullptr) : on_event(what) {}
	~End() { close(); }
	End(const End &) = delete;
	End &operator=(const End &) = delete;

	bool open(const Node &node)
	{
		id = ib_create_cm_id(node.device(), handle, this);
		if (!rdma::is_err(id))
			return true;
		id = nullptr;
		return false;
	}
	/* Destroys the ID, and forgets its events. */
	void close()
	{
		if (id)
			ib_destroy_cm_id(std::exchange(id, nullptr));
		for (auto &one : delivered_)
			one.store_release(0);
	}
	ib_cm_state state() const { return ib_cm_query_state(id); }

	/* Returns the number of events of @type. */
	unsigned int delivered(ib_cm_event_type type) const
	{
		return delivered_[type].load_acquire();
	}
	bool receives(ib_cm_event_type type, unsigned int times = 1) const
	{
		return eventually([&] { return delivered(type) >= times; });
	}
	/* Has no upper limit, because tests wait for hours of virtual time. */
	bool receives_within(ib_cm_event_type type, u32 seconds) const
	{
		const auto deadline = kern::Deadline::in_ms(seconds * 1000);
		while (!delivered(type) && !deadline.passed())
			kern::sleep_ms(100);
		return delivered(type) != 0;
	}
	unsigned int all() const
	{
		unsigned int sum = 0;
		for (const auto &one : delivered_)
			sum += one.load_acquire();
		return sum;
	}

	int request(const Node &from, const Node &to, u32 qpn = some_qpn, u64 which = service)
	{
		const sa_path_rec path = from.path_to(to);
		ib_cm_req_param param = request_of(path, qpn, which);
		return ib_send_cm_req(id, &param);
	}
	static ib_cm_req_param request_of(const sa_path_rec &path, u32 qpn = some_qpn,
					  u64 which = service)
	{
		static constexpr u8 data[] = "request";
		ib_cm_req_param param{};
		param.primary_path = &path;
		param.service_id = which;
		param.qp_num = qpn;
		param.qp_type = IB_QPT_RC;
		param.starting_psn = 0x111111;
		param.private_data = data;
		param.private_data_len = sizeof(data);
		param.responder_resources = 4;
		param.initiator_depth = 3;
		param.remote_cm_response_timeout = 16; /* 268 ms */
		param.local_cm_response_timeout = 16;
		param.retry_count = 7;
		param.rnr_retry_count = 6;
		param.max_cm_retries = 3;
		return param;
	}
	static ib_cm_rep_param reply_of(u32 qpn = other_qpn)
	{
		static constexpr u8 data[] = "reply";
		ib_cm_rep_param param{};
		param.qp_num = qpn;
		param.starting_psn = 0x222222;
		param.private_data = data;
		param.private_data_len = sizeof(data);
		param.responder_resources = 3;
		param.initiator_depth = 4;
		param.rnr_retry_count = 5;
		return param;
	}
	int reply(u32 qpn = other_qpn)
	{
		const auto param = reply_of(qpn);
		return ib_send_cm_rep(id, &param);
	}

	ib_cm_id *id = nullptr;
	Handler on_event;
	End *fresh = nullptr;       /* on a listener: the End that gets the next new ID */
	ib_cm_id *newest = nullptr; /* the last new ID that no End has taken */
	ib_cm_event last{};         /* the last event of any type, without its pointers */
	u8 data[256]{};
	sa_path_rec path{};
	kern::Atomic<unsigned int> running{}, overlaps{};

private:
	static int handle(ib_cm_id *cm_id, const ib_cm_event *event)
	{
		auto *end = static_cast<End *>(cm_id->context);
		const bool fresh_id = event->event == IB_CM_REQ_RECEIVED ||
				      event->event == IB_CM_SIDR_REQ_RECEIVED;
		if (fresh_id && end->fresh) {
			End *taker = std::exchange(end->fresh, nullptr);
			cm_id->context = taker;
			taker->id = cm_id;
			end = taker;
		} else if (fresh_id) {
			end->newest = cm_id;
		}
		if (end->running.fetch_add(1) != 0)
			end->overlaps.fetch_add(1);
		end->last = *event;
		if (event->private_data)
			__builtin_memcpy(end->data, event->private_data, event->private_data_len);
		if (event->event == IB_CM_REQ_RECEIVED)
			end->path = *event->param.req_rcvd.primary_path;
		if (event->event == IB_CM_LAP_RECEIVED)
			end->path = *event->param.lap_rcvd.alternate_path;
		const int result = end->on_event ? end->on_event(*end, *event) : 0;
		if (result && end->id == cm_id)
			end->id = nullptr;
		end->running.fetch_sub(1);
		end->delivered_[event->event].fetch_add(1);
		return result;
	}

	kern::Atomic<unsigned int> delivered_[IB_CM_DEVICE_REMOVAL + 1]{};
};

/* Two nodes, a listener on the second one, and the two sides of the connection. */
struct Pair {
	Node a{1}, b{2};
	End active, listener, passive;

	bool ok()
	{
		listener.fresh = &passive;
		return a.ok() && b.ok() && active.open(a) && listener.open(b) &&
		       ib_cm_listen(listener.id, service, 0) == 0;
	}
	/* Proceeds until the REQ has been received. */
	bool request() { return active.request(a, b) == 0 && passive.receives(IB_CM_REQ_RECEIVED); }
	bool reply()
	{
		return request() && passive.reply() == 0 && active.receives(IB_CM_REP_RECEIVED);
	}
	bool connect()
	{
		return reply() && ib_send_cm_rtu(active.id, nullptr, 0) == 0 &&
		       passive.receives(IB_CM_RTU_RECEIVED);
	}
};

/* A node without the CM, which sends any message that the test wants. */
class UnknownPeer
{
public:
	static constexpr unsigned int kept = 64;

	explicit UnknownPeer(u16 lid) : node(lid, RDMA_CORE_CAP_IB_CM) {}
	~UnknownPeer()
	{
		if (agent_)
			ib_unregister_mad_agent(agent_);
		if (pd_)
			ib_dealloc_pd(pd_);
	}
	UnknownPeer(const UnknownPeer &) = delete;
	UnknownPeer &operator=(const UnknownPeer &) = delete;

	bool open()
	{
		if (!node.ok())
			return false;
		auto *pd = ib_alloc_pd(node.device(), 0);
		if (rdma::is_err(pd))
			return false;
		pd_ = pd;
		ib_mad_reg_req request{};
		request.mgmt_class = IB_MGMT_CLASS_CM;
		request.mgmt_class_version = 2;
		request.method_mask[0] = 1ul << IB_MGMT_METHOD_SEND;
		auto *agent = ib_register_mad_agent(node.device(), 1, IB_QPT_GSI, &request, 0,
						    on_sent, on_received, this, 0);
		if (rdma::is_err(agent))
			return false;
		agent_ = agent;
		return true;
	}

	static ib::Mad make(ib::CmAttribute attribute, u32 local_id, u32 remote_id,
			    u64 tid = 0x5555)
	{
		ib::Mad mad{};
		mad.header.base_version = ib::mad_base_version;
		mad.header.mgmt_class = static_cast<std::uint8_t>(ib::MgmtClass::com_mgt);
		mad.header.class_version = ib::cm_class_version;
		mad.header.method = static_cast<std::uint8_t>(ib::MadMethod::send);
		mad.header.tid = tid;
		mad.header.attr_id = static_cast<u16>(attribute);
		auto &pair = ib::cm_message<ib::CmPair>(mad);
		pair.local_id = local_id;
		pair.remote_id = remote_id;
		return mad;
	}
	/* Returns a valid REQ to a node. */
	ib::Mad make_req(const Node &to, u32 local_id, u32 qpn = other_qpn,
			 u64 which = service) const
	{
		ib::Mad mad = make(ib::CmAttribute::req, local_id, 0);
		auto &req = ib::cm_message<ib::CmReq>(mad);
		__builtin_memset(req.private_data, 0, sizeof(req.private_data));
		req.service_id = which;
		req.ca_guid = node.guid();
		req.qpn = qpn;
		req.set_local_response_timeout(14);
		req.set_remote_response_timeout(14);
		req.set_max_cm_retries(1);
		req.set_path_mtu(IB_MTU_2048);
		req.pkey = u16{IB_DEFAULT_PKEY_FULL};
		auto &path = req.primary;
		path.local_lid = node.lid();
		path.remote_lid = to.lid();
		const ib_gid from = node.gid(), there = to.gid();
		__builtin_memcpy(path.local_gid.raw, from.raw, 16);
		__builtin_memcpy(path.remote_gid.raw, there.raw, 16);
		path.hop_limit = 1;
		path.set_subnet_local(true);
		path.set_ack_timeout(12);
		return mad;
	}
	bool send(const Node &to, const ib::Mad &mad)
	{
		auto *send = ib_create_send_mad(agent_, 1, 0, 0, IB_MGMT_MAD_HDR, IB_MGMT_MAD_DATA,
						gfp, IB_MGMT_BASE_VERSION);
		if (rdma::is_err(send))
			return false;
		rdma_ah_attr attr{};
		attr.type = RDMA_AH_ATTR_TYPE_IB;
		rdma_ah_set_dlid(&attr, to.lid());
		rdma_ah_set_port_num(&attr, 1);
		send->ah = rdma_create_ah(pd_, &attr, 0);
		__builtin_memcpy(send->mad, &mad, sizeof(mad));
		if (rdma::is_err(send->ah)) {
			ib_free_send_mad(send);
			return false;
		}
		if (ib_post_send_mad(send, nullptr)) {
			rdma_destroy_ah(send->ah, 0);
			ib_free_send_mad(send);
			return false;
		}
		return true;
	}
	/* Sends @mad, and waits until the node has processed it. */
	bool says(const Node &to, const ib::Mad &mad)
	{
		const u64 before = to.received();
		return send(to, mad) && eventually([&] { return to.received() > before; });
	}
	unsigned int received(ib::CmAttribute attribute)
	{
		kern::Guard guard(lock_);
		return counts_[index(attribute)];
	}
	bool receives(ib::CmAttribute attribute, unsigned int times = 1)
	{
		return eventually([&] { return received(attribute) >= times; });
	}
	/* Returns the last message of a kind. receives() then waits for a newer one. */
	const ib::Mad &last(ib::CmAttribute attribute)
	{
		kern::Guard guard(lock_);
		return shown_[index(attribute)] = last_[index(attribute)];
	}

	Node node;

private:
	static std::size_t index(ib::CmAttribute attribute)
	{
		return static_cast<std::size_t>(attribute) - 0x10;
	}
	static void on_sent(ib_mad_agent *, ib_mad_send_wc *wc)
	{
		rdma_destroy_ah(wc->send_buf->ah, 0);
		ib_free_send_mad(wc->send_buf);
	}
	static void on_received(ib_mad_agent *agent, ib_mad_send_buf *, ib_mad_recv_wc *wc)
	{
		auto &self = *static_cast<UnknownPeer *>(agent->context);
		const auto &mad = *reinterpret_cast<const ib::Mad *>(wc->recv_buf.mad);
		const unsigned attribute = mad.header.attr_id.value() - 0x10u;
		if (attribute < ib::cm_attribute_count) {
			kern::Guard guard(self.lock_);
			self.last_[attribute] = mad;
			self.counts_[attribute]++;
		}
		ib_free_recv_mad(wc);
	}

	ib_pd *pd_ = nullptr;
	ib_mad_agent *agent_ = nullptr;
	kern::SpinLock lock_{KERN_LOCK_CLASS("cm_test.raw_node")};
	ib::Mad last_[ib::cm_attribute_count]{}, shown_[ib::cm_attribute_count]{};
	unsigned int counts_[ib::cm_attribute_count]{};
};

} // namespace cm_fixture
