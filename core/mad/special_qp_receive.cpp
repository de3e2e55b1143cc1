// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements the receive path of a special QP: from the completion to the agent that receives the
 * MAD.
 */
#include "special_qp.hpp"

namespace mad
{
namespace
{

void count(u64 &counter)
{
	__atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED);
}

/* Returns true for a response with the status "busy" (IBA 13.4.7). */
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
	       header.base_version == ib::mad_base_version &&
	       header.is_smp() == (type == IB_QPT_SMI);
}

} // namespace

/* Takes back a completed buffer and, while the QP is up, posts a replacement. */
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
		/*
		 * The packet was longer than a MAD. Post the buffer again: otherwise such packets
		 * would use up all posted buffers and stop all reception.
		 */
		count(counters_.malformed);
		if (is_up)
			receive_queue_.post_again(std::move(receive));
		return;
	}
	receive->completion = *wc;
	/* An adapter's QP belongs to one port, so its completions need not contain the port. */
	if (!node_.is_switch)
		receive->completion.port_num = port_num_;

	if (is_up) {
		receive = receive_queue_.replace(std::move(receive));
		if (!receive) {
			/*
			 * No replacement could be allocated, so the same buffer was posted again
			 * and this MAD is lost. Its sender will retransmit it.
			 */
			count(counters_.no_memory);
			return;
		}
	}
	if (!fits(*receive, type_)) {
		count(counters_.malformed);
		return;
	}
	received_.push_back(*receive.release());
	received_count_++;
}

void SpecialQp::route(const HandlerContext &here, kern::Owned<Receive> receive)
{
	receive->present();
	/* The lock is taken only if there are snoop agents or tracing is enabled, which is rare. */
	if (kern::read_once(watchers_) != 0)
		snoop(here, *receive);
	if (receive->header().cls() == ib::MgmtClass::subn_directed_route) {
		const auto decision =
			smi_inbound(receive->smp(), node_,
				    static_cast<std::uint8_t>(receive->completion.port_num));
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

/*
 * Forwards a directed-route SMP in a switch: through another port or, after the end of the directed
 * part, by LID (IBA 14.2.2).
 */
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

/* Passes a MAD to the agents that are built into the device. Fills in answer if they respond. */
SpecialQp::DeviceAnswer SpecialQp::ask_device(const Receive &receive, const ib_grh *grh,
					      ib::Mad &answer)
{
	if (!device_->ops.process_mad)
		return DeviceAnswer::not_handled;

	size_t size = sizeof(answer);
	u16 pkey_index = receive.completion.pkey_index;
	/* NodeInfo contains the port at which the request reached the switch. */
	const u32 port_num = node_.is_switch ? receive.completion.port_num : port_num_;
	const int result = ib_process_mad(device_, 0, port_num, &receive.completion, grh,
					  reinterpret_cast<const ib_mad *>(&receive.buffer.mad),
					  reinterpret_cast<ib_mad *>(&answer), &size, &pkey_index);
	if (!(result & IB_MAD_RESULT_SUCCESS))
		return DeviceAnswer::not_handled;
	if (result & (IB_MAD_RESULT_CONSUMED | IB_MAD_RESULT_REPLY))
		smp_snoop_.observe(receive.header());
	if (result & IB_MAD_RESULT_CONSUMED)
		return DeviceAnswer::consumed;
	return result & IB_MAD_RESULT_REPLY ? DeviceAnswer::answered : DeviceAnswer::not_handled;
}

/*
 * Offers a MAD to the device's own agents, which have precedence (MGMT-04). Returns true if the MAD
 * has been handled.
 */
bool SpecialQp::offer_to_device(const Receive &receive)
{
	ib::Mad answer{};
	const DeviceAnswer device_answer = ask_device(receive, &receive.buffer.grh, answer);

	if (device_answer == DeviceAnswer::answered)
		reply(*internal_agent_, receive, answer);
	return device_answer != DeviceAnswer::not_handled;
}

void SpecialQp::snoop(const HandlerContext &, Receive &receive)
{
	if (kern::read_once(traced_)) {
		const kern_trace_mad mad =
			traced(receive.header(), IB_WC_SUCCESS, receive.completion.slid);
		kern_trace_mad_received(device_->name, &mad);
	}
	for (Agent *agent = next_snooper(nullptr); agent; agent = next_snooper(agent))
		if (agent->recv_handler)
			agent->recv_handler(agent, nullptr, &receive);
}

kern_trace_mad SpecialQp::traced(const ib::MadHeader &header, ib_wc_status status, u32 lid) const
{
	return {.port = port_num_,
		.qpn = qp_->qp_num,
		.mgmt_class = header.mgmt_class,
		.method = header.method,
		.attribute = header.attr_id.value(),
		.transaction = header.tid.value(),
		.status = static_cast<u32>(status),
		.lid = lid};
}

/*
 * Returns the snoop agent after @after with a reference, and drops the reference to @after. Returns
 * nullptr after the last one.
 */
Agent *SpecialQp::next_snooper(Agent *after)
{
	Agent *found = nullptr;
	{
		kern::Guard guard(lock_);
		found = agents_.next_snooper_after(after);
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

/*
 * Answers a Get or Set that no agent serves with an error (IBA 13.4.6.1), so that its sender need
 * not wait for a timeout.
 */
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

/* Passes a complete MAD or message to its agent, which owns it from then on. */
void SpecialQp::deliver(const HandlerContext &, Agent &agent, kern::Owned<Receive> receive)
{
	Send *send = nullptr;
	bool ask_again = false;
	if (receive->is_response()) {
		kern::Guard guard(lock_);
		send = agent.pending.find(*receive);
		if (send && !send->awaits_answer)
			send = nullptr;
		/*
		 * A busy responder must be asked again later (IBA 13.4.7): the timeout retransmits
		 * the request.
		 */
		ask_again = send && is_busy(*receive) &&
			    send->tries <= static_cast<unsigned>(send->retries);
		if (send && !ask_again) {
			send->holds++;
			decide_locked(*send, IB_WC_SUCCESS);
		}
	}
	/*
	 * An agent that does RMPP itself, whether or not it registered for it, receives all
	 * segments. Only the first segment completes a send.
	 */
	const bool segment = agent.recv_handler && !agent.does_rmpp() && carries_rmpp(*receive);
	if (ask_again || (!send && receive->is_response() && !segment)) {
		if (!ask_again)
			count(counters_.no_agent);
		/* This frees all segments. */
		ib_free_recv_mad(receive.release());
		return;
	}
	agent.recv_handler(&agent, send, receive.release());
	if (send) {
		kern::Guard guard(lock_);
		release_locked(*send);
	}
}

} // namespace mad
