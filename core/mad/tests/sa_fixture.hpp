// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides fixtures for the test suites of the SA client: an SA that the test implements on one
// node, and the SA's clients.
#pragma once
#include "fixture.hpp"

#include <ib/sa.hpp>
#include <rdma/ib_sa.h>

namespace mad_fixture
{

/* A subnet administration that answers as the test specifies, and reports traps. */
class Administrator
{
public:
	kern::Atomic<unsigned int> gets{}, joins{}, leaves{}, subscriptions{}, ends{};
	kern::Atomic<unsigned int> acknowledged{}, unacknowledged{}; /* numbers of reports */
	kern::Atomic<u32> last_trap{};
	kern::Atomic<u32> refuse{}; /* status of all answers, if not 0 */
	kern::Atomic<u32> mlid{0xc001};
	kern::Atomic<u32>
		group_mtu{}; /* MTU of every group, with its selector; 0: the requested MTU */
	kern::Atomic<u32>
		deaf_to_ends{}; /* number of leaves and unsubscriptions that are not answered */

	/*
	 * Fills in the path record of a response, which initially equals the request. If unset, all
	 * paths lead to LID 77. Must be set before any query.
	 */
	void (*describe)(void *context, ib::PathRecord &path) = nullptr;
	void *describe_context = nullptr;

	explicit Administrator(const Node &node) : node_(node)
	{
		ib_mad_reg_req request{};
		request.mgmt_class = IB_MGMT_CLASS_SUBN_ADM;
		request.mgmt_class_version = IB_SA_CLASS_VERSION;
		request.method_mask[0] = 1ul << IB_MGMT_METHOD_GET | 1ul << IB_MGMT_METHOD_SET |
					 1ul << IB_SA_METHOD_DELETE;
		agent_ = ib_register_mad_agent(node.device(), 1, IB_QPT_GSI, &request, 0, on_sent,
					       on_received, this, 0);
	}
	~Administrator()
	{
		if (ok())
			ib_unregister_mad_agent(agent_);
	}
	bool ok() const { return !rdma::is_err(agent_); }

	/*
	 * Sends one report of a trap with a GID to the node at a LID, and waits up to @timeout_ms
	 * for the response.
	 */
	bool report(u16 lid, u16 trap, u8 gid, int timeout_ms = 5000, u16 issuer = 1)
	{
		auto *send = ib_create_send_mad(agent_, 1, 0, 0, IB_MGMT_SA_HDR, IB_MGMT_SA_DATA,
						gfp, IB_MGMT_BASE_VERSION);
		if (rdma::is_err(send))
			return false;
		auto &mad = *static_cast<ib::SaMad *>(send->mad);
		mad.header.base_version = ib::mad_base_version;
		mad.header.mgmt_class = IB_MGMT_CLASS_SUBN_ADM;
		mad.header.class_version = IB_SA_CLASS_VERSION;
		mad.header.method = IB_MGMT_METHOD_REPORT;
		mad.header.attr_id = u16{ib::attr_notice};
		mad.header.tid = u64{agent_->hi_tid} << 32 | next_tid_++;
		auto &notice = *reinterpret_cast<ib::Notice *>(mad.data);
		notice.generic_type = ib::Notice::generic_bit |
				      static_cast<u8>(ib::NoticeType::subnet_management);
		notice.producer = 4u;
		notice.trap_number = trap;
		notice.issuer_lid = issuer;
		notice.details[6 + 15] = gid;
		send->timeout_ms = timeout_ms;
		send->ah = node_.address(lid);
		if (!rdma::is_err(send->ah) && ib_post_send_mad(send, nullptr) == 0)
			return true;
		if (!rdma::is_err(send->ah))
			rdma_destroy_ah(send->ah, 0);
		ib_free_send_mad(send);
		return false;
	}

private:
	static void on_sent(ib_mad_agent *agent, ib_mad_send_wc *wc)
	{
		auto &self = *static_cast<Administrator *>(agent->context);
		if (wc->send_buf->timeout_ms)
			(wc->status == IB_WC_SUCCESS ? self.acknowledged : self.unacknowledged)
				.fetch_add(1);
		rdma_destroy_ah(wc->send_buf->ah, 0);
		ib_free_send_mad(wc->send_buf);
	}
	static void on_received(ib_mad_agent *agent, ib_mad_send_buf *, ib_mad_recv_wc *wc)
	{
		if (!ib_response_mad(&wc->recv_buf.mad->mad_hdr))
			static_cast<Administrator *>(agent->context)->answer(*wc);
		ib_free_recv_mad(wc);
	}
	static bool is_end(const ib::SaMad &question)
	{
		return question.header.method == IB_SA_METHOD_DELETE ||
		       (question.header.attr_id == ib::attr_inform_info &&
			!reinterpret_cast<const ib::InformInfo *>(question.data)->subscribe);
	}
	void answer(const ib_mad_recv_wc &wc)
	{
		const auto &question = *reinterpret_cast<const ib::SaMad *>(wc.recv_buf.mad);
		if (is_end(question) && deaf_to_ends.load_acquire()) {
			deaf_to_ends.fetch_sub(1);
			(question.header.method == IB_SA_METHOD_DELETE ? leaves : ends)
				.fetch_add(1);
			return;
		}
		auto *send = ib_create_send_mad(agent_, wc.wc->src_qp, 0, 0, IB_MGMT_SA_HDR,
						IB_MGMT_SA_DATA, gfp, IB_MGMT_BASE_VERSION);
		if (rdma::is_err(send))
			return;
		auto &mad = *static_cast<ib::SaMad *>(send->mad);
		mad = question;
		mad.header.status = static_cast<u16>(refuse.load_acquire());
		fill_in(mad);
		/* The response to a Set is a GetResp; other methods have their own responses. */
		mad.header.method =
			question.header.is_method(ib::MadMethod::set)
				? static_cast<u8>(ib::MadMethod::get_resp)
				: static_cast<u8>(question.header.method | IB_MGMT_METHOD_RESP);
		send->ah = ib_create_ah_from_wc(node_.pd(), wc.wc, wc.recv_buf.grh, 1);
		if (rdma::is_err(send->ah)) {
			ib_free_send_mad(send);
		} else if (ib_post_send_mad(send, nullptr)) {
			rdma_destroy_ah(send->ah, 0);
			ib_free_send_mad(send);
		}
	}

	void fill_in(ib::SaMad &mad)
	{
		switch (mad.header.attr_id.value()) {
		case ib::attr_mc_member_record:
			reinterpret_cast<ib::McMemberRecord *>(mad.data)->mlid =
				static_cast<u16>(mlid.load_acquire());
			if (const u32 mtu = group_mtu.load_acquire())
				reinterpret_cast<ib::McMemberRecord *>(mad.data)->mtu_selector =
					static_cast<u8>(mtu);
			(mad.header.method == IB_SA_METHOD_DELETE ? leaves : joins).fetch_add(1);
			break;
		case ib::attr_inform_info: {
			const auto &info = *reinterpret_cast<const ib::InformInfo *>(mad.data);
			last_trap.store_release(info.trap_number.value());
			(info.subscribe ? subscriptions : ends).fetch_add(1);
			break;
		}
		case ib::attr_class_port_info:
			reinterpret_cast<ib::ClassPortInfo *>(mad.data)->capability_mask =
				u16{ib::sa_cap_ud_multicast};
			gets.fetch_add(1);
			break;
		case ib::attr_path_record:
			if (auto &path = *reinterpret_cast<ib::PathRecord *>(mad.data); describe)
				describe(describe_context, path);
			else
				path.dlid = u16{77};
			gets.fetch_add(1);
			break;
		default: /* the attribute is returned unchanged */
			break;
		}
	}

	u32 next_tid_ = 1;
	const Node &node_;
	ib_mad_agent *agent_;
};

struct Client : ib_sa_client {
	Client() : ib_sa_client{} { ib_sa_register_client(this); }
	~Client() { ib_sa_unregister_client(this); }
};

inline void report(const Node &node, ib_event_type type)
{
	ib_event event{};
	event.device = node.device();
	event.element.port_num = 1;
	event.event = type;
	ib_dispatch_event(&event);
}

/* Moves the subnet manager to another LID; 0 removes it. */
inline bool move_manager(const Node &node, u16 lid)
{
	ib_port_attr attr;

	if (ib_query_port(node.device(), 1, &attr))
		return false;
	attr.sm_lid = lid;
	soft_set_port(node.device(), 1, &attr);
	report(node, IB_EVENT_SM_CHANGE);
	return true;
}

} // namespace mad_fixture
