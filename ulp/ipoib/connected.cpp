// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "connected.hpp"

#include "connection_data.hpp"

#include <kern/time.hpp>

namespace ipoib
{

/*
 * A peer that has begun a message occupies a buffer until the message continues. Even if every
 * connection has begun one, there must be buffers for those messages that continue.
 */
static_assert(LargeReceive::depth >= PassiveConnections::connections_max + 64);

namespace
{

/*
 * Maximum number of send completions in one poll. They are not charged to NAPI's budget; see
 * TransmitQueue.
 */
constexpr int sends_per_poll = 256;

} // namespace

bool Connected::possible(const ib_device *device, u32 port_num)
{
	return device->attrs.max_srq > 0 && rdma_cap_ib_cm(device, port_num);
}

void Connected::attach(net_device *dev)
{
	dev_ = dev;
	add(dev, false);
}

void Connected::detach()
{
	kern_assert(state() == State::none);
	if (std::exchange(dev_, nullptr))
		del();
}

kern::Result<> Connected::start(const ConnectionResources &resources)
{
	kern_assert(state() == State::none);
	resources_ = resources;
	return bring_up_.to(State::running);
}

/*
 * Acquires the resources that each state adds. step_down() releases them, also if step_up() failed
 * half-way.
 */
kern::Result<> Connected::step_up(State to)
{
	switch (to) {
	case State::none:
		break;
	case State::made:
		return make();
	case State::running:
		return run();
	}
	return {};
}

Connected::State Connected::step_down(State from)
{
	switch (from) {
	case State::none:
		break;
	case State::made:
		unmake();
		break;
	case State::running:
		halt();
		return State::made;
	}
	return State::none;
}

kern::Result<> Connected::make()
{
	ib_cq_init_attr cq{};
	cq.cqe = LargeReceive::depth + ActiveConnections::requests_max;
	resources_.cq = KERN_TRY(own(ib_create_cq(
		resources_.device,
		[](ib_cq *, void *self) { static_cast<Connected *>(self)->schedule(); },
		[](ib_event *, void *self) {
			static_cast<Connected *>(self)->faults_.report(fault_queue);
		},
		this, &cq)));
	ib_srq_init_attr srq{};
	srq.event_handler = [](ib_event *event, void *self) {
		if (event->event == IB_EVENT_SRQ_ERR)
			static_cast<Connected *>(self)->faults_.report(fault_queue);
	};
	srq.srq_context = this;
	srq.attr.max_wr = LargeReceive::depth;
	srq.attr.max_sge = 1;
	resources_.srq = KERN_TRY(own(ib_create_srq(resources_.pd, &srq)));
	KERN_TRY(active_.allocate(resources_));
	passive_.set_resources(resources_);
	return receive_.fill(dev_, resources_.device, resources_.srq,
			     resources_.pd->local_dma_lkey);
}

void Connected::unmake()
{
	if (ib_srq *srq = std::exchange(resources_.srq, nullptr))
		ib_destroy_srq(srq);
	if (ib_cq *cq = std::exchange(resources_.cq, nullptr))
		ib_destroy_cq(cq);
	receive_.reclaim();
	active_.reclaim();
}

kern::Result<> Connected::run()
{
	without_delay_.store_release(false);
	enable();
	const int armed =
		ib_req_notify_cq(resources_.cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS);
	if (armed < 0) [[unlikely]]
		return kern::Error{armed};
	/* Schedule NAPI for the reason given in ReceiveQueue::start(). */
	schedule_from_task();
	listener_ = KERN_TRY(own(ib_create_cm_id(resources_.device, on_request, this)));
	return kern::check(ib_cm_listen(listener_, connection_service(resources_.qpn), 0));
}

/*
 * First destroys the listener, so that no connection is added. Then ends all connections; the work
 * item destroys them, as always, and this function waits for it. All requests in flight complete
 * here at the latest.
 */
void Connected::halt()
{
	if (ib_cm_id *listener = std::exchange(listener_, nullptr))
		ib_destroy_cm_id(listener);
	active_.end_all();
	passive_.end_all();
	without_delay_.store_release(true);
	work_.queue();
	work_.flush();
	delayed_work_.cancel();
	work_.cancel();
	disable();
	while (const int count = ib_poll_cq(resources_.cq, sizeof(wc_) / sizeof(wc_[0]), wc_)) {
		if (count < 0)
			break;
		for (int i = 0; i < count; i++)
			if (!LargeReceive::owns(wc_[i]))
				active_.complete(wc_[i], 0);
	}
}

/*
 * Destroys the connections that are over. The QP of a completion points to its passive connection,
 * so no completion may be polled while a connection is destroyed. Completions that are polled later
 * have no QP, and a poll that has called NAPI's complete function uses no completions.
 *
 * Peers can create and end connections as often as they like, so passive connections are destroyed
 * in rounds. A new round begins round_interval_ns after the last one, or at once if connections
 * become scarce or the interface stops.
 *
 * Context: work queue; NAPI is enabled.
 */
void Connected::end_connections()
{
	active_.run();
	const u64 now = kern::now_ns();
	if (now < next_round_ && !without_delay_.load_acquire() && !passive_.is_crowded()) {
		delayed_work_.queue(kern::rest_ms(next_round_));
		return;
	}
	bool ended = false;
	while (passive_.begin_teardown()) {
		pause();
		passive_.finish_teardown();
		enable();
		/* Requests to schedule NAPI were ignored during the pause. */
		schedule_from_task();
		ended = true;
	}
	if (ended)
		next_round_ = kern::now_ns() + round_interval_ns;
}

void Connected::end_idle()
{
	if (state() != State::running)
		return;
	active_.end_unused();
	passive_.end_idle();
}

/* Context: handler of the listener. */
int Connected::on_request(ib_cm_id *id, const ib_cm_event *event)
{
	auto &self = *static_cast<Connected *>(id->context);
	/* A SIDR_REQ asks for the QP number of a UD service, which does not exist here. */
	return event->event == IB_CM_REQ_RECEIVED        ? self.passive_.accept(*id, *event)
	       : event->event == IB_CM_SIDR_REQ_RECEIVED ? -EINVAL
							 : 0;
}

/*
 * Handles a completion. Returns true if it was that of a received packet, which is charged to
 * NAPI's budget.
 */
bool Connected::handle_completion(const ib_wc &wc, int budget)
{
	if (!LargeReceive::owns(wc)) {
		active_.complete(wc, budget);
		return false;
	}
	auto *const from = wc.qp ? static_cast<PassiveConnection *>(wc.qp->qp_context) : nullptr;
	/*
	 * The completion may arrive after its connection has been destroyed. Then it is unknown
	 * what was agreed with the peer.
	 */
	const Unsummed unsummed = !from                        ? Unsummed::lost
				  : !from->leaves_checksums()  ? Unsummed::nothing
				  : !passive_.takes_unsummed() ? Unsummed::lost
							       : Unsummed::missing;
	receive_.receive(*this, wc, unsummed);
	if (!from)
		return true;
	PassiveConnection &connection = *from;
	if (wc.status == IB_WC_SUCCESS) [[likely]]
		connection.touch();
	else
		passive_.broken(connection);
	return true;
}

/* NAPI poll method. Context: softirq. */
int Connected::poll(int budget)
{
	constexpr int batch = sizeof(wc_) / sizeof(wc_[0]);
	int work = 0, sends = 0;

	while (work < budget && sends < sends_per_poll) {
		const int left = budget - work;
		const int count = ib_poll_cq(resources_.cq, left < batch ? left : batch, wc_);
		if (count <= 0)
			break;
		int received = 0;
		for (int i = 0; i < count; i++)
			received += handle_completion(wc_[i], budget);
		work += received;
		sends += count - received;
		if (!receive_.post()) [[unlikely]]
			faults_.report(fault_queue);
		if (count < batch && count < left)
			break;
	}
	if (work >= budget || sends >= sends_per_poll)
		return budget;
	/*
	 * NOTIFY-09: complete NAPI first, then arm. If a completion has arrived in between,
	 * schedule NAPI again.
	 */
	if (!complete_done(work))
		return work;
	const int armed =
		ib_req_notify_cq(resources_.cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS);
	if (armed > 0)
		schedule();
	else if (armed < 0) [[unlikely]]
		/* NOTIFY-02: no further event will be raised. */
		faults_.report(fault_queue);
	return work;
}

} // namespace ipoib
