// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "query.hpp"

#include "../special_qp.hpp"
#include "port.hpp"

#include <kern/lock.hpp>

namespace mad::sa
{
namespace
{

/* The pending queries, by the IDs with which their consumers cancel them. */
struct LiveQueries {
	kern::List<ib_sa_query, &ib_sa_query::live_node> list;
	int last_id = 0;

	void add(ib_sa_query &query)
	{
		last_id = last_id == __INT_MAX__ ? 1 : last_id + 1;
		query.id = last_id;
		list.push_back(query);
	}
	kern::Ref<ib_sa_query> find(int id, const ib_sa_query *wanted)
	{
		for (ib_sa_query &query : list)
			if (&query == wanted && query.id == id)
				return kern::Ref<ib_sa_query>::share(query);
		return {};
	}
};

constinit kern::Static<kern::Locked<LiveQueries, kern::IrqSpinLock>> live_queries;

void end_live(ib_sa_query &query)
{
	live_queries->with([&](LiveQueries &) { query.live_node.unlink(); });
}

} // namespace

void begin_queries()
{
	live_queries.construct(KERN_LOCK_CLASS("sa.queries"));
}

void end_queries()
{
	live_queries.destruct();
}

Query::~Query()
{
	if (send_)
		kern::destroy(send_);
}

kern::Result<int> Query::start(Port &port, ib_sa_client *client, const Request &request,
			       const void *record, std::size_t size)
{
	if (client && !client->state)
		return kern::Error{-ENOMEM};
	if (request.retry_policy.timeout_ms == 0 || request.retry_policy.timeout_ms > __INT_MAX__ ||
	    request.retry_policy.retries < 0)
		return kern::Error{-EINVAL};
	address_ = port.sm_address();
	if (!address_)
		return kern::Error{-EAGAIN};

	auto send = KERN_TRY(Send::create(port.agent(), ib::qpn_gsi, address_->pkey_index(), false,
					  IB_MGMT_SA_HDR, IB_MGMT_SA_DATA, request.gfp));
	auto &mad = *reinterpret_cast<ib::SaMad *>(send->first().bytes);
	mad.header.base_version = ib::mad_base_version;
	mad.header.mgmt_class = static_cast<u8>(ib::MgmtClass::subn_adm);
	mad.header.class_version = ib::sa_class_version;
	mad.header.method = request.method;
	mad.header.tid = port.next_tid();
	mad.header.attr_id = request.attribute;
	mad.component_mask = request.component_mask;
	__builtin_memcpy(mad.data, record, size);

	send->ah = address_->ah();
	send->timeout_ms = static_cast<int>(request.retry_policy.timeout_ms);
	send->retries = request.retry_policy.retries;
	send->context[0] = this;
	send_ = send.release();

	const int given_id = live_queries->with([&](LiveQueries &live) {
		live.add(*this);
		return id;
	});
	if (client) {
		client_ = client->state;
		client_->users.get();
	}
	/* The agent's handlers have a reference of their own, which on_sent() drops. */
	auto handlers = kern::Ref<ib_sa_query>::share(*this);
	if (auto posted = port.agent().special_qp().post(*send_); !posted.ok()) {
		end_live(*this);
		if (client_)
			client_->put();
		return kern::Error{posted.error()};
	}
	(void)handlers.release();
	/* given_id is a copy, because the query may already have been destroyed. */
	return given_id;
}

void Query::cancel(int id, const ib_sa_query *query)
{
	auto found = live_queries->with([&](LiveQueries &live) { return live.find(id, query); });
	if (!found)
		return;
	auto &self = static_cast<Query &>(*found);
	/* EINVAL means that the query has ended meanwhile, which is the desired result. */
	kern::ignore(self.send_->agent().special_qp().modify(*self.send_, 0));
}

void Query::on_answer(ib_mad_agent *agent, ib_mad_send_buf *send, ib_mad_recv_wc *receive)
{
	if (send) {
		auto &self = *static_cast<Query *>(send->context[0]);
		const auto &mad = *reinterpret_cast<const ib::SaMad *>(receive->recv_buf.mad);
		self.has_answer_ = true;
		self.answer_status_ = mad.header.status.value() ? -EINVAL : 0;
		__builtin_memcpy(self.answer_, mad.data, sizeof(self.answer_));
	} else if (receive->recv_buf.mad->mad_hdr.method == IB_MGMT_METHOD_REPORT) {
		static_cast<Port *>(agent->context)->on_report(*static_cast<Receive *>(receive));
	}
	ib_free_recv_mad(receive);
}

void Query::on_sent(ib_mad_agent *, ib_mad_send_wc *wc)
{
	auto self = kern::Ref<ib_sa_query>::adopt(static_cast<Query *>(wc->send_buf->context[0]));
	auto &query = static_cast<Query &>(*self);

	int status;
	switch (wc->status) {
	case IB_WC_SUCCESS:
		status = query.has_answer_ ? query.answer_status_ : -EIO;
		break;
	case IB_WC_RESP_TIMEOUT_ERR:
		status = -ETIMEDOUT;
		break;
	case IB_WC_WR_FLUSH_ERR:
		status = -EINTR;
		break;
	default:
		status = -EIO;
		break;
	}
	end_live(query);
	query.answered(status, query.answer_);
	if (query.client_)
		query.client_->put();
}

} // namespace mad::sa
