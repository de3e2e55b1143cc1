/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Manages the subscriptions of a port's consumers to traps and notices (IBA 13.4.8.3, 15.4.4). As
 * with multicast groups, all consumers of a trap share one subscription: the first consumer
 * subscribes at the subnet administrator and the last one unsubscribes. All subscriptions are
 * repeated if the SA may have lost its state.
 */
#pragma once

#include "query.hpp"
#include "callback_guard.hpp"

#include <kern/list.hpp>
#include <kern/lock.hpp>
#include <kern/ref.hpp>
#include <kern/work.hpp>
#include <rdma/ib_sa.h>

namespace mad::sa
{

struct Topic;
class Informs;
class Port;

/*
 * Maximum number of reports of one port that wait for their callbacks. Additional reports are not
 * acknowledged, so that the SA sends them again.
 */
constexpr std::size_t reports_max = 64;

/* The subscription of one consumer to one trap. Its state is protected by Informs::lock_. */
class Listener : public ib_inform_info
{
public:
	enum class State : std::uint8_t {
		waiting, /* waiting for the SA to accept */
		subscribed,
		/*
		 * the consumer is being notified of a refusal or a loss, or the object is being
		 * freed: it has no effect any more
		 */
		ended,
	};

	kern::ListNode node; /* in Topic::listeners */
	Informs *owner;
	kern::Ref<Topic> topic;
	RetryPolicy retry_policy;
	State state = State::waiting;
	int outcome = 0;        /* status that is passed to the callback */
	bool to_notify = false; /* the callback for the outcome is due */
	/*
	 * number of the last report that was passed to the callback, or that arrived before the
	 * subscription
	 */
	u64 notified_of = 0;
	CallbackGuard callback_guard;

	bool counts() const { return state != State::ended; }
};

/* A trap number. All members except the number are protected by Informs::lock_. */
struct Topic : kern::RefCounted<Topic> {
	explicit Topic(u16 trap) : trap_number(trap) {}
	~Topic() { kern_assert(listeners.empty()); }

	const u16 trap_number;
	/*
	 * in Informs::topics_, with a reference, while there are listeners or the SA has a
	 * subscription
	 */
	kern::ListNode node;
	kern::List<Listener, &Listener::node> listeners;
	RetryPolicy retry_policy{};
	bool subscribed = false; /* the SA has confirmed the subscription */
	bool asking = false;     /* a query is pending */
	bool renew = false;      /* the SA may have lost the subscription */
	bool attention = false;  /* run() must examine it */

	bool wanted() const
	{
		for (const Listener &listener : listeners)
			if (listener.counts())
				return true;
		return false;
	}
};

/*
 * All topics of a port. No other lock is taken with lock_ held. Callbacks are called and queries
 * are sent without it.
 */
class Informs
{
public:
	explicit Informs(Port &port) : port_(port) {}
	/* No query may be pending. */
	~Informs();
	/* There must be no listeners. No listener can be added after the call. */
	void close();

	using Callback = int (*)(int, ib_inform_info *, ib_sa_notice *);
	/* Context: process. Errors: ENOMEM, ENODEV. */
	kern::Result<Listener *> listen(u16 trap_number, RetryPolicy retry_policy,
					Callback callback, void *context);
	/* Context: process, not from the listener's callback. */
	void leave(Listener &listener);
	/* Repeats all subscriptions at the SA. Context: any. */
	void renew();

	/*
	 * Queues a report that has arrived. It must be acknowledged only if this function succeeds.
	 * Errors: ENOMEM, ENOBUFS. Context: any.
	 */
	kern::Result<> on_report(const ib::Notice &notice);
	/* Handles the result of a query. Context: any. */
	void on_answer(Topic &topic, bool subscribing, int status);

private:
	struct Report {
		kern::ListNode node;
		u64 number;
		ib_sa_notice notice;
	};
	struct Due {
		Listener *listener;
		int status;
		ib_sa_notice *notice;
	};

	void run();
	void serve(Topic &topic);
	kern::Ref<Topic> next_topic();
	/* Returns the next callback that is due; its listener is nullptr if there is none. */
	Due next_due();
	void notify(const Due &due);
	void ask(Topic &topic, bool subscribing, const RetryPolicy &retry_policy);
	void kick_locked(Topic &topic) KERN_REQUIRES(lock_);
	Topic *find_locked(u16 trap_number) KERN_REQUIRES(lock_);
	Listener *next_to_notify_locked(const Report &report) KERN_REQUIRES(lock_);

	Port &port_;
	kern::IrqSpinLock lock_{KERN_LOCK_CLASS("sa.inform")};
	kern::List<Topic, &Topic::node> topics_ KERN_GUARDED_BY(lock_);
	kern::List<Report, &Report::node> reports_ KERN_GUARDED_BY(lock_);
	std::size_t reports_waiting_ KERN_GUARDED_BY(lock_) = 0;
	u64 last_report_ KERN_GUARDED_BY(lock_) = 0;
	bool closing_ KERN_GUARDED_BY(lock_) = false;
	kern::Work work_{kern::method<&Informs::run>, this};
};

} // namespace mad::sa
