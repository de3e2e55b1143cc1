/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Implements one query to the subnet administrator, from the request to the single call of its
 * callback.
 */
#pragma once

#include "../send.hpp"
#include "records.hpp"

#include <kern/completion.hpp>
#include <kern/ref.hpp>

struct ib_sa_client_state {
	/* Counts the client itself and every query whose callback has not returned. */
	kern::RefCount users;
	kern::Completion unused;

	void put()
	{
		if (users.put())
			unused.complete();
	}
};

/*
 * The consumer's handle for cancellation. A pointer from the consumer is compared but not
 * dereferenced until the query has been found by its ID.
 */
struct ib_sa_query : kern::RefCounted<ib_sa_query> {
	virtual ~ib_sa_query() = default;

	kern::ListNode live_node; /* in the list of pending queries */
	int id = -1;
};

namespace mad::sa
{

class Port;
class SmAddress;

/* The time in which a query must be answered, and the number of retransmissions. */
struct RetryPolicy {
	unsigned long timeout_ms;
	int retries;

	/* Returns the client's values for its queries, or the defaults. */
	static constexpr RetryPolicy of(const ib_sa_client *client)
	{
		return client && client->timeout_ms
			       ? RetryPolicy{client->timeout_ms, client->retries}
			       : RetryPolicy{1'000, 3};
	}
};

struct Request {
	u8 method;
	std::uint16_t attribute;
	u64 component_mask;
	RetryPolicy retry_policy;
	kern::Gfp gfp;
};

class Query : public ib_sa_query
{
public:
	~Query() override;

	/**
	 * start() - send the query
	 * @port: the port to send from
	 * @client: the requesting client; nullptr for the SA client's own queries
	 * @request: method, attribute, component mask, retry policy and allocation flags
	 * @record: the record's bytes, @size of them
	 *
	 * After success, the callback is called exactly once. Context: any that the request's gfp
	 * permits.
	 * Return: an ID for cancel(); EINVAL for a timeout of 0; EAGAIN while no SM is known;
	 * ENOMEM; the errors of ib_post_send_mad().
	 */
	kern::Result<int> start(Port &port, ib_sa_client *client, const Request &request,
				const void *record, std::size_t size);

	/* Ends the query with this ID with EINTR, if it is @query. Context: any. */
	static void cancel(int id, const ib_sa_query *query);

	/* The send and receive handlers of the port's agent. */
	static void on_sent(ib_mad_agent *agent, ib_mad_send_wc *wc);
	static void on_answer(ib_mad_agent *agent, ib_mad_send_buf *send, ib_mad_recv_wc *receive);

protected:
	/*
	 * Called with the response: status is 0, and record points to the record's bytes; or status
	 * is a negative errno. Context: process.
	 */
	virtual void answered(int status, const std::uint8_t *record) = 0;

private:
	int answer_status_ = 0;
	bool has_answer_ = false;
	std::uint8_t answer_[ib::sa_data_bytes];
	Send *send_ = nullptr;
	ib_sa_client_state *client_ = nullptr;
	kern::Ref<SmAddress> address_;
};

/* The module's table of pending queries. Context: module init and exit. */
void begin_queries();
void end_queries();

/* A query whose response is passed to a callback. */
template<class Record, class Wire, class Callback>
class RecordQuery final : public Query
{
public:
	RecordQuery(Callback callback, void *context) : callback_(callback), context_(context) {}

private:
	void answered(int status, const std::uint8_t *record) override
	{
		if (status) {
			callback_(status, nullptr, context_);
			return;
		}
		Record unpacked;
		unpack(*reinterpret_cast<const Wire *>(record), unpacked);
		callback_(0, &unpacked, context_);
	}

	const Callback callback_;
	void *const context_;
};

} // namespace mad::sa
