// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Handles directed-route SMPs with zero hops, which a node sends to itself. They never reach the
 * wire (IBA 14.2.2.1).
 */
#include "special_qp.hpp"

namespace mad
{

/* Processes the first waiting send. */
void SpecialQp::serve_local(const HandlerContext &here)
{
	Send *send;
	{
		kern::Guard guard(lock_);
		send = local_.pop();
		if (!send)
			return;
		send->agent().pending.add(*send);
		send->holds++;
	}
	answer_local(here, *send);

	kern::Guard guard(lock_);
	/* There was no response: the send ends with its timeout, as it would on the wire. */
	if (send->awaits_answer)
		send->tries = static_cast<unsigned>(send->retries) + 1;
	else
		decide_locked(*send, IB_WC_SUCCESS);
	release_locked(*send);
}

/* Passes a request to the device's agent or, if that does not handle it, to an agent on this QP. */
void SpecialQp::answer_local(const HandlerContext &here, Send &send)
{
	auto created = Receive::create();
	if (!created.ok())
		return;
	auto receive = created.take();

	receive->completion = {};
	receive->completion.status = IB_WC_SUCCESS;
	receive->completion.qp = qp_;
	receive->completion.byte_len = sizeof(Receive::Buffer);
	receive->completion.slid = IB_LID_PERMISSIVE_HOST;
	receive->completion.pkey_index = send.first().wr.pkey_index;
	receive->completion.port_num = port_num_;
	__builtin_memcpy(&receive->buffer.mad, send.first().bytes, ib::mad_bytes);

	ib::Mad answer{};
	const DeviceAnswer device_answer = ask_device(*receive, nullptr, answer);
	if (device_answer == DeviceAnswer::consumed)
		return;
	if (device_answer == DeviceAnswer::answered)
		receive->buffer.mad = answer;
	receive->present();
	hand_to_agent(here, std::move(receive));
}

} // namespace mad
