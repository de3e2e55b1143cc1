// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "rmpp_reception.hpp"

#include "links.hpp"

namespace mad
{

RmppReception::Transaction::~Transaction()
{
	while (Receive *segment = segments.pop_front())
		kern::destroy(segment);
}

RmppReception::Transaction *RmppReception::find(const Receive &receive)
{
	for (Transaction &transaction : transactions_)
		if (transaction.matches(receive))
			return &transaction;
	return nullptr;
}

/*
 * Returns a new transaction, or nullptr if the segment cannot begin a message or there is no space
 * for another message.
 */
RmppReception::Transaction *RmppReception::begin(const Receive &receive)
{
	if (receive.rmpp().segment.value() != 1 || !make_room())
		return nullptr;
	auto created = kern::make<Transaction>(kern::Gfp::atomic | kern::Gfp::no_warn);
	if (!created.ok())
		return nullptr;
	Transaction &transaction = *created.take().release();
	transaction.tid = receive.header().tid;
	transaction.mgmt_class = receive.header().mgmt_class;
	transaction.response = receive.is_response();
	transaction.slid = receive.completion.slid;
	transaction.src_qp = receive.completion.src_qp;
	transactions_.push_back(transaction);
	return &transaction;
}

/*
 * Makes space for one more message by dropping a message that has been delivered and is kept only
 * to recognise repetitions. Incomplete messages are never dropped. Returns true if there is space.
 */
bool RmppReception::make_room()
{
	if (transactions_.size() < rmpp_transactions_max)
		return true;
	for (Transaction &transaction : transactions_) {
		if (transaction.receiver.complete()) {
			end(transaction);
			return true;
		}
	}
	return false;
}

void RmppReception::end(Transaction &transaction)
{
	held_ -= transaction.held;
	transaction.node.unlink();
	kern::destroy(&transaction);
}

RmppReception::Taken RmppReception::take(kern::Owned<Receive> &receive, std::uint32_t header_bytes,
					 bool may_begin, u64 now)
{
	Taken taken;
	Transaction *transaction = find(*receive);

	if (!transaction && may_begin)
		transaction = begin(*receive);
	if (!transaction) {
		taken.discarded = true;
		return taken;
	}
	taken.receipt = transaction->receiver.on_data(receive->rmpp(), header_bytes);
	if (taken.receipt.keep && held_ >= rmpp_held_max)
		taken.receipt = RmppReceipt::abort(ib::rmpp_status_resources_exhausted);
	if (taken.receipt.aborts()) {
		end(*transaction);
		return taken;
	}
	if (taken.receipt.keep) {
		transaction->segments.push_back(*receive.release());
		transaction->held++;
		held_++;
	}
	taken.received = transaction->receiver.received();
	taken.window_last = transaction->receiver.window_last();
	if (!transaction->receiver.complete())
		transaction->deadline = now + rmpp_silence_ns;
	else if (!transaction->segments.empty()) {
		held_ -= std::exchange(transaction->held, 0);
		taken.message = assemble(*transaction, header_bytes);
		transaction->deadline = now + rmpp_linger_ns;
	}
	return taken;
}

/* Joins the received segments into one message, which the first segment represents. */
kern::Owned<Receive> RmppReception::assemble(Transaction &transaction, std::uint32_t header_bytes)
{
	auto message = kern::Owned<Receive>::adopt(transaction.segments.pop_front());
	const auto segments = transaction.receiver.received();

	message->present();
	while (Receive *segment = transaction.segments.pop_front()) {
		segment->recv_buf.grh = &segment->buffer.grh;
		segment->recv_buf.mad = reinterpret_cast<ib_mad *>(&segment->buffer.mad);
		links_push_back(message->rmpp_list, segment->recv_buf.list);
	}
	/*
	 * The header of the class is counted once. All segments except the last have a full
	 * payload.
	 */
	const auto payload = ib::rmpp_mad_data_bytes - header_bytes;
	message->mad_len = static_cast<int>(sizeof(ib::MadHeader) + sizeof(ib::RmppHeader) +
					    header_bytes + (segments - 1) * payload +
					    transaction.receiver.last_length() - header_bytes);
	return message;
}

bool RmppReception::give_up(const Receive &receive)
{
	Transaction *transaction = find(receive);

	if (!transaction || transaction->receiver.complete())
		return false;
	end(*transaction);
	return true;
}

void RmppReception::expire(u64 now)
{
	for (Transaction &transaction : transactions_)
		if (transaction.deadline <= now)
			end(transaction);
}

u64 RmppReception::earliest() const
{
	u64 earliest = ~u64{0};

	for (const Transaction &transaction : transactions_)
		if (transaction.deadline < earliest)
			earliest = transaction.deadline;
	return earliest;
}

void RmppReception::clear()
{
	for (Transaction &transaction : transactions_)
		end(transaction);
}

} // namespace mad
