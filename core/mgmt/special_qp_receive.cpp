// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* The receiving half of a special QP: from the hardware to the one agent that a MAD is for. */
#include "special_qp.hpp"

namespace mgmt
{
namespace
{

void count(u64 &counter)
{
	__atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED);
}

/* An answer that says: not now (IBA 13.4.7). */
bool is_busy(const Receive &receive)
{
	return receive.header().status.value() & ib::mad_status_busy;
}

bool carries_rmpp(const Receive &receive)
{
	return ib_is_mad_class_rmpp(receive.header().mgmt_class) &&
	       (receive.rmpp().flags() & ib::RmppHeader::active);
}

bool fits(const Receive &receive, ib_qp_type type)
{
	const auto &header = receive.header();
	return receive.completion.byte_len == sizeof(Receive::Buffer) &&
	       header.base_version == ib::mad_base_version && header.is_smp() == (type == IB_QPT_SMI);
}

/*
 * Whether a word about a response of ours comes from where that response went: transaction ids are the requester's, and two may use the
 * same one.
 */
bool comes_from_requester(const Send &send, const Receive &receive)
{
	rdma_ah_attr address;

	if (!send.header().is_response() || !send.ah || rdma_query_ah(send.ah, &address))
		return true;
	const u32 lid = rdma_ah_get_dlid(&address);
	return lid == IB_LID_PERMISSIVE_HOST ||
	       (lid == receive.completion.slid && send.first().wr.remote_qpn == receive.completion.src_qp);
}

} // namespace

/*
 * Takes a buffer back and posts another in its place. Where that fails, the queue is short of one until refill() makes up for it, at the
 * latest at the next retry.
 */
void SpecialQp::on_receive_done(ib_wc *wc)
{
	auto receive = receive_queue_.take_back(static_cast<Receive *>(wc->wr_cqe));

	if (wc->status == IB_WC_WR_FLUSH_ERR) {
		kern::Guard guard(lock_);
		step_locked(SpecialQpEvent::receive_flushed);
		return;
	}
	const bool is_up = state() == SpecialQpState::up;
	if (wc->status != IB_WC_SUCCESS) {
		/* Longer than a MAD. Were its buffer not posted again, a queue's length of these would end all reception. */
		count(counters_.malformed);
		if (is_up)
			kern::ignore(receive_queue_.post(std::move(receive)));
		return;
	}
	receive->completion = *wc;
	/* An adapter's QP is of one port, and need not say which. */
	if (!node_.is_switch)
		receive->completion.port_num = port_num_;

	if (is_up) {
		auto next = Receive::create();
		if (!next.ok()) {
			/* The queue stays full at the price of this MAD: its sender will ask again. */
			count(counters_.no_memory);
			kern::ignore(receive_queue_.post(std::move(receive)));
			return;
		}
		kern::ignore(receive_queue_.post(next.take()));
	}
	if (!fits(*receive, type_)) {
		count(counters_.malformed);
		return;
	}
	received_.push_back(*receive.release());
}

void SpecialQp::route(const HandlerContext &here, kern::Owned<Receive> receive)
{
	receive->present();
	snoop(here, *receive);
	if (receive->header().cls() == ib::MgmtClass::subn_directed_route) {
		const auto decision =
			smi_inbound(receive->smp(), node_, static_cast<std::uint8_t>(receive->completion.port_num));
		if (decision.action == ib::SmiAction::discard) {
			count(counters_.misrouted);
			return;
		}
		if (decision.action != ib::SmiAction::local) {
			pass_on(*receive, decision);
			return;
		}
	}
	if (offer_to_device(*receive))
		return;
	hand_to_agent(here, std::move(receive));
}

/* At a switch: a directed route goes on by another port, or at its end by LID (IBA 14.2.2). */
void SpecialQp::pass_on(const Receive &receive, const ib::SmiDecision &decision)
{
	const bool by_lid = decision.action == ib::SmiAction::forward_by_lid;
	rdma_ah_attr address{};

	if (by_lid && (decision.lid == 0 || decision.lid >= IB_MULTICAST_LID_BASE_HOST)) {
		count(counters_.misrouted);
		return;
	}
	address.type = RDMA_AH_ATTR_TYPE_IB;
	rdma_ah_set_dlid(&address, by_lid ? decision.lid : IB_LID_PERMISSIVE_HOST);
	rdma_ah_set_sl(&address, receive.completion.sl);
	rdma_ah_set_port_num(&address, port_num_);
	send_unattended(*internal_agent_, receive, receive.buffer.mad, address, &decision);
}

/* What the agents that the device has built in make of a MAD; answer is filled in if they have one. */
SpecialQp::DeviceAnswer SpecialQp::ask_device(const Receive &receive, const ib_grh *grh, ib::Mad &answer)
{
	if (!device_->ops.process_mad)
		return DeviceAnswer::not_mine;

	size_t size = sizeof(answer);
	u16 pkey_index = receive.completion.pkey_index;
	/* A switch is asked by a certain port (NodeInfo has it). */
	const u32 port_num = node_.is_switch ? receive.completion.port_num : port_num_;
	const int result = device_->ops.process_mad(device_, 0, port_num, &receive.completion, grh,
						    reinterpret_cast<const ib_mad *>(&receive.buffer.mad),
						    reinterpret_cast<ib_mad *>(&answer), &size, &pkey_index);
	if (!(result & IB_MAD_RESULT_SUCCESS))
		return DeviceAnswer::not_mine;
	if (result & (IB_MAD_RESULT_CONSUMED | IB_MAD_RESULT_REPLY))
		port_check_.suspect(receive.header());
	if (result & IB_MAD_RESULT_CONSUMED)
		return DeviceAnswer::consumed;
	return result & IB_MAD_RESULT_REPLY ? DeviceAnswer::answered : DeviceAnswer::not_mine;
}

/* The device's own agents come first (MGMT-04). True if the MAD is dealt with. */
bool SpecialQp::offer_to_device(const Receive &receive)
{
	ib::Mad answer{};
	const DeviceAnswer said = ask_device(receive, &receive.buffer.grh, answer);

	if (said == DeviceAnswer::answered)
		reply(*internal_agent_, receive, answer);
	return said != DeviceAnswer::not_mine;
}

void SpecialQp::snoop(const HandlerContext &, Receive &receive)
{
	for (Agent *agent = next_snooper(nullptr); agent; agent = next_snooper(agent))
		if (agent->recv_handler)
			agent->recv_handler(agent, nullptr, &receive);
}

/* The snooping agent behind one, held until the next call; nullptr after the last. */
Agent *SpecialQp::next_snooper(Agent *after)
{
	Agent *found = nullptr;
	/* Mostly there is none, and then every MAD is spared the lock. */
	if (!after && kern::read_once(snoopers_) == 0)
		return nullptr;
	{
		kern::Guard guard(lock_);
		found = agents_.snooper_behind(after);
		if (found)
			found->get();
	}
	if (after)
		after->put();
	return found;
}

void SpecialQp::hand_to_agent(const HandlerContext &here, kern::Owned<Receive> receive)
{
	Agent *agent;
	{
		kern::Guard guard(lock_);
		agent = agents_.find(*receive);
		if (agent)
			agent->get();
	}
	if (!agent) {
		count(counters_.no_agent);
		refuse(*receive);
		return;
	}
	if (agent->does_rmpp() && carries_rmpp(*receive))
		take_rmpp(here, *agent, std::move(receive));
	else
		deliver(here, *agent, std::move(receive));
	agent->put();
}

/* A request that nobody serves is answered so (IBA 13.4.6.1), that its sender need not wait for a time-out. */
void SpecialQp::refuse(const Receive &receive)
{
	const auto &header = receive.header();
	if (!header.is_method(ib::MadMethod::get) && !header.is_method(ib::MadMethod::set))
		return;
	ib::Mad answer = receive.buffer.mad;
	answer.header.method = static_cast<std::uint8_t>(ib::MadMethod::get_resp);
	answer.header.status = ib::mad_status_unsupported_method_attribute;
	if (header.cls() == ib::MgmtClass::subn_directed_route)
		answer.header.status =
			ib::mad_status_unsupported_method_attribute | ib::mad_status_direction;
	reply(*internal_agent_, receive, answer);
}

/*
 * The send that a MAD is the other side's word on: same transaction, same class, the other direction, still waiting. Transaction ids are the
 * requester's: without a look at the direction, our own answer to a peer that happens to use the same one would do.
 */
Send *SpecialQp::find_locked(Agent &agent, const Receive &receive)
{
	for (Send &send : agent.outstanding)
		if (!send.decided && !send.reply && send.header().is_response() != receive.is_response() &&
		    send.header().tid == receive.header().tid &&
		    same_class(send.header().mgmt_class, receive.header().mgmt_class) &&
		    comes_from_requester(send, receive))
			return &send;
	return nullptr;
}

/* A whole MAD or message for its agent, who owns it from here on. */
void SpecialQp::deliver(const HandlerContext &, Agent &agent, kern::Owned<Receive> receive)
{
	Send *send = nullptr;
	bool ask_again = false;
	if (receive->is_response()) {
		kern::Guard guard(lock_);
		send = find_locked(agent, *receive);
		if (send && !send->awaits_answer)
			send = nullptr;
		/* It shall be asked again later (IBA 13.4.7): the time-out does. */
		ask_again = send && is_busy(*receive) && send->tries <= static_cast<unsigned>(send->retries);
		if (send && !ask_again) {
			send->holds++;
			decide_locked(*send, IB_WC_SUCCESS);
		}
	}
	/* Who does RMPP himself, whether he has said so or not, gets all segments, of which only the first ends a send. */
	const bool segment = agent.recv_handler && !agent.does_rmpp() && carries_rmpp(*receive);
	if (ask_again || (!send && receive->is_response() && !segment)) {
		if (!ask_again)
			count(counters_.no_agent);
		/* With all its segments. */
		ib_free_recv_mad(receive.release());
		return;
	}
	agent.recv_handler(&agent, send, receive.release());
	if (send) {
		kern::Guard guard(lock_);
		release_locked(*send);
	}
}

} // namespace mgmt
