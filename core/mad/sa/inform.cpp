// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "inform.hpp"

#include "port.hpp"

namespace mad::sa
{
namespace
{

/* Time that the SA may wait for the ReportResp: 4.096 us * 2^n (IBA 13.4.8.3). */
constexpr unsigned response_time = 18;

/* A pending query that subscribes or unsubscribes; holds a reference to its topic. */
class TopicQuery final : public Query
{
public:
	TopicQuery(Informs &informs, Topic &topic, bool subscribing)
	    : informs_(informs), topic_(kern::Ref<Topic>::share(topic)), subscribing_(subscribing)
	{
	}

private:
	void answered(int status, const std::uint8_t *) override
	{
		informs_.on_answer(*topic_, subscribing_, status);
	}

	Informs &informs_;
	const kern::Ref<Topic> topic_;
	const bool subscribing_;
};

bool covers(const Topic &topic, const ib_sa_notice &notice)
{
	return topic.trap_number == IB_SA_ANY_TRAP ||
	       (notice.is_generic && topic.trap_number == notice.trap_number);
}

} // namespace

Informs::~Informs()
{
	work_.cancel();
	while (Topic *topic = topics_.pop_front())
		kern::Ref<Topic>::adopt(topic).reset();
	while (Report *report = reports_.pop_front())
		kern::destroy(report);
}

void Informs::close()
{
	kern::Guard guard(lock_);
	closing_ = true;
}

Topic *Informs::find_locked(u16 trap_number)
{
	for (Topic &topic : topics_)
		if (topic.trap_number == trap_number)
			return &topic;
	return nullptr;
}

void Informs::kick_locked(Topic &topic)
{
	topic.attention = true;
	work_.queue();
}

kern::Result<Listener *> Informs::listen(u16 trap_number, RetryPolicy retry_policy,
					 Callback callback, void *context)
{
	auto listener = KERN_TRY(kern::make<Listener>(kern::Gfp::kernel));
	auto fresh = KERN_TRY(kern::make_ref<Topic>(kern::Gfp::kernel, trap_number));
	listener->owner = this;
	listener->trap_number = trap_number;
	listener->callback = callback;
	listener->context = context;
	listener->retry_policy = retry_policy;

	kern::Guard guard(lock_);
	if (closing_)
		return kern::Error{-ENODEV};
	Topic *topic = find_locked(trap_number);
	if (!topic) {
		topic = fresh.release();
		topics_.push_back(*topic);
	}
	listener->notified_of = last_report_;
	listener->topic = kern::Ref<Topic>::share(*topic);
	topic->retry_policy = retry_policy;
	topic->listeners.push_back(*listener);
	kick_locked(*topic);
	return listener.release();
}

void Informs::leave(Listener &listener)
{
	bool wait;
	{
		kern::Guard guard(lock_);
		listener.state = Listener::State::ended;
		listener.node.unlink();
		wait = listener.callback_guard.leave_locked();
		kick_locked(*listener.topic);
	}
	if (wait)
		listener.callback_guard.wait();
	kern::destroy(&listener);
}

void Informs::renew()
{
	kern::Guard guard(lock_);
	for (Topic &topic : topics_) {
		topic.renew = topic.subscribed;
		kick_locked(topic);
	}
}

kern::Result<> Informs::on_report(const ib::Notice &notice)
{
	auto report = KERN_TRY(kern::make<Report>(kern::Gfp::atomic | kern::Gfp::no_warn));
	unpack(notice, report->notice);

	kern::Guard guard(lock_);
	if (closing_ || reports_waiting_ >= reports_max)
		return kern::Error{-ENOBUFS};
	report->number = ++last_report_;
	reports_waiting_++;
	reports_.push_back(*report.release());
	work_.queue();
	return {};
}

void Informs::on_answer(Topic &topic, bool subscribing, int status)
{
	kern::Guard guard(lock_);

	topic.asking = false;
	/*
	 * The subscription counts as ended even if the SA rejects the unsubscription or does not
	 * answer: the SA drops the subscriptions of a port that does not respond to its reports.
	 */
	topic.subscribed = subscribing && status == 0;
	if (subscribing && status) {
		for (Listener &listener : topic.listeners) {
			if (!listener.counts())
				continue;
			listener.outcome =
				listener.state == Listener::State::subscribed ? -ENETRESET : status;
			listener.state = Listener::State::ended;
			listener.to_notify = true;
		}
	}
	kick_locked(topic);
}

/* Returns a topic that run() must examine; empty if there is none. */
kern::Ref<Topic> Informs::next_topic()
{
	kern::Guard guard(lock_);
	for (Topic &topic : topics_) {
		if (!topic.attention)
			continue;
		topic.attention = false;
		return kern::Ref<Topic>::share(topic);
	}
	return {};
}

/* Context: work queue; never runs in parallel with itself. */
void Informs::run()
{
	while (auto topic = next_topic())
		serve(*topic);
	for (Due due = next_due(); due.listener; due = next_due())
		notify(due);
}

void Informs::serve(Topic &topic)
{
	enum class Step : std::uint8_t { nothing, subscribe, unsubscribe } step = Step::nothing;
	RetryPolicy retry_policy;
	kern::Ref<Topic> last;
	{
		kern::Guard guard(lock_);
		const bool wanted = topic.wanted();

		if (topic.subscribed) {
			for (Listener &listener : topic.listeners) {
				if (listener.state != Listener::State::waiting)
					continue;
				listener.state = Listener::State::subscribed;
				listener.to_notify = true;
			}
		}
		if (!topic.asking && !closing_) {
			if (wanted && (!topic.subscribed || topic.renew))
				step = Step::subscribe;
			else if (!wanted && topic.subscribed)
				step = Step::unsubscribe;
			topic.renew = false;
			topic.asking = step != Step::nothing;
			/*
			 * The subscription is being cancelled, so new listeners must wait for a new
			 * one.
			 */
			if (step == Step::unsubscribe)
				topic.subscribed = false;
		}
		retry_policy = topic.retry_policy;
		if (!topic.asking && topic.listeners.empty() && !topic.subscribed &&
		    topic.node.linked()) {
			topic.node.unlink();
			last = kern::Ref<Topic>::adopt(&topic);
		}
	}
	if (step != Step::nothing)
		ask(topic, step == Step::subscribe, retry_policy);
}

void Informs::ask(Topic &topic, bool subscribing, const RetryPolicy &retry_policy)
{
	ib::InformInfo wire{};
	wire.lid_begin = ib::InformInfo::any;
	wire.is_generic = 1;
	wire.subscribe = subscribing;
	wire.type = ib::InformInfo::any;
	wire.trap_number = topic.trap_number;
	wire.qpn_resp_time = ib::qpn_gsi << 8 | response_time;
	wire.producer = ib::InformInfo::any_producer;
	const Request request{
		.method = static_cast<u8>(ib::MadMethod::set),
		.attribute = ib::attr_inform_info,
		.component_mask = 0,
		.retry_policy = retry_policy,
		.gfp = kern::Gfp::kernel,
	};
	int status;
	if (auto query = kern::make_ref<TopicQuery>(kern::Gfp::kernel, *this, topic, subscribing);
	    query.ok())
		status = query.value()->start(port_, nullptr, request, &wire, sizeof(wire)).error();
	else
		status = query.error();
	if (status < 0)
		on_answer(topic, subscribing, status);
}

Listener *Informs::next_to_notify_locked(const Report &report)
{
	for (Topic &topic : topics_) {
		if (!covers(topic, report.notice))
			continue;
		for (Listener &listener : topic.listeners)
			if (listener.state == Listener::State::subscribed &&
			    listener.notified_of < report.number)
				return &listener;
	}
	return nullptr;
}

Informs::Due Informs::next_due()
{
	kern::Guard guard(lock_);
	for (Topic &topic : topics_) {
		for (Listener &listener : topic.listeners) {
			if (!listener.to_notify)
				continue;
			listener.to_notify = false;
			listener.callback_guard.begin_locked();
			return {&listener, listener.outcome, nullptr};
		}
	}
	while (Report *report = reports_.front()) {
		if (Listener *listener = next_to_notify_locked(*report)) {
			listener->notified_of = report->number;
			listener->callback_guard.begin_locked();
			return {listener, 0, &report->notice};
		}
		report->node.unlink();
		reports_waiting_--;
		kern::destroy(report);
	}
	return {};
}

void Informs::notify(const Due &due)
{
	Listener &listener = *due.listener;
	const bool refused = listener.callback(due.status, &listener, due.notice) != 0;
	{
		kern::Guard guard(lock_);
		/*
		 * If the consumer unsubscribes during the callback, it waits and then frees the
		 * listener.
		 */
		if (listener.callback_guard.end_locked() || !refused)
			return;
		listener.node.unlink();
		kick_locked(*listener.topic);
	}
	kern::destroy(&listener);
}

} // namespace mad::sa
