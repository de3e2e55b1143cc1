// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Tests connections of an RNIC that is simulated in memory: the connection manager's IDs receive
 * the right events, and each event once.
 */
#include <kern/time.hpp>
#include <rdma/iw_cm.h>
#include "fixture.hpp"
#include "../qp.hpp"

using namespace amso1100;
using kern::kunit::Test;

namespace
{

/* An ID on the fixture's card, and the events that it received. */
struct Consumer {
	explicit Consumer(Bed &bed) : id(iw_create_cm_id(&bed.card->ib->ib, handle, this)) {}
	~Consumer() { close(); }
	void close()
	{
		if (fresh)
			iw_destroy_cm_id(std::exchange(fresh, nullptr));
		if (id)
			iw_destroy_cm_id(std::exchange(id, nullptr));
	}
	static int handle(iw_cm_id *id, const iw_cm_event *event)
	{
		auto &self = *static_cast<Consumer *>(id->context);
		self.status = event->status;
		self.port = event->remote.port;
		self.data_length = event->private_data_len;
		if (event->event == IW_CM_EVENT_CONNECT_REQUEST)
			self.fresh = id;
		self.times[event->event].fetch_add(1);
		return 0;
	}
	unsigned int count(iw_cm_event_type type) const { return times[type].load_acquire(); }
	bool receives(iw_cm_event_type type, unsigned int number = 1) const
	{
		return eventually([&] { return count(type) >= number; });
	}

	iw_cm_id *id;
	iw_cm_id *fresh = nullptr; /* the ID of a request */
	int status = 0;
	u16 port = 0;
	u8 data_length = 0;
	kern::Atomic<unsigned int> times[4];
};

iw_cm_param param_of(Bed &bed, u8 length = 4)
{
	return {.qp = bed.qp.get(),
		.ord = 1000,
		.ird = 3,
		.private_data = "data and more than that",
		.private_data_len = length};
}

Message of_qp(Bed &bed, wire::EventId id, wire::Status result = wire::Status::ok, u32 number = 1)
{
	Message event;
	event.bytes()[wire::header::id] = static_cast<u8>(id);
	event.bytes()[wire::header::result] = static_cast<u8>(result);
	event.put_opaque(wire::event::user_context, bed.card->qp(number).context);
	event.put(wire::event::resource_type, static_cast<u32>(wire::ResourceType::qp));
	return event;
}

void report(Bed &bed, Message &event)
{
	bed.card->report_and_wait(event);
}

[[gnu::noinline]] void report_to_qp(Bed &bed, wire::EventId id,
				    wire::Status result = wire::Status::ok)
{
	Message event = of_qp(bed, id, result);
	report(bed, event);
}

/* Starts a connection to 10.0.0.2, and waits until the card has received the request. */
[[gnu::noinline]] bool connect(Bed &bed, Consumer &consumer)
{
	consumer.id->remote = {{10, 0, 0, 2}, false, 7174};
	const iw_cm_param param = param_of(bed);
	return iw_cm_connect(consumer.id, &param) == 0 &&
	       eventually([&] { return bed.card->asked(wire::MessageId::qp_connect) == 1; });
}

[[gnu::noinline]] bool establish(Bed &bed, Consumer &consumer)
{
	if (!connect(bed, consumer))
		return false;
	Message event = of_qp(bed, wire::EventId::connect_result);
	event.put(wire::connect_result::remote_port, u16{7174});
	event.put(wire::connect_result::private_length, u32{9});
	report(bed, event);
	return consumer.receives(IW_CM_EVENT_CONNECT_REPLY) && consumer.status == 0;
}

/*
 * Checks the requests to the card and the events of the ID. The close event is delivered once,
 * however often the card reports it.
 */
void iwcm_01_close_event_is_delivered_once(Test &test)
{
	Boxed<Bed> bed;
	ASSERT_TRUE(bed.ok());
	Consumer consumer(*bed);
	ib_qp_attr attr{};
	attr.qp_state = IB_QPS_INIT;
	ASSERT_OK(bed->qp.modify(attr, IB_QP_STATE));
	attr.qp_state = IB_QPS_RTS;
	EXPECT_ERROR(bed->qp.modify(attr, IB_QP_STATE), -ENOTCONN);
	ASSERT_TRUE(establish(*bed, consumer));
	const Message &asked = bed->card->last(wire::MessageId::qp_connect);
	EXPECT_EQ(asked.get<u32>(wire::qp_connect::remote_address), 0x0a000002u);
	EXPECT_EQ(asked.get<u16>(wire::qp_connect::remote_port), 7174u);
	EXPECT_EQ(asked.get<u32>(wire::qp_connect::private_length), 4u);
	const Message &reads = bed->card->last(wire::MessageId::qp_modify);
	EXPECT_EQ(reads.get<u32>(wire::qp_modify::ord), 128u);
	EXPECT_EQ(reads.get<u32>(wire::qp_modify::ird), 3u);
	EXPECT_EQ(consumer.port, 7174u);
	EXPECT_EQ(consumer.data_length, 9u);
	EXPECT_OK(bed->qp.modify(attr, IB_QP_STATE));
	/* The same QP cannot be connected a second time, and a second reply has no effect. */
	Consumer second(*bed);
	const iw_cm_param param = param_of(*bed);
	EXPECT_EQ(iw_cm_connect(second.id, &param), -EISCONN);
	report_to_qp(*bed, wire::EventId::connect_result);
	ASSERT_EQ(iw_cm_disconnect(consumer.id, false), 0);
	EXPECT_EQ(bed->card->last(wire::MessageId::qp_modify).get<u32>(wire::qp_modify::next_state),
		  static_cast<u32>(wire::QpState::closing));
	for (const auto id : {wire::EventId::close_complete, wire::EventId::connection_reset,
			      wire::EventId::bad_close})
		report_to_qp(*bed, id);
	ASSERT_TRUE(consumer.receives(IW_CM_EVENT_CLOSE));
	bed->qp = {};
	consumer.close();
	EXPECT_EQ(consumer.count(IW_CM_EVENT_CLOSE), 1u);
	EXPECT_EQ(consumer.count(IW_CM_EVENT_CONNECT_REPLY), 1u);
}

/* Destroying a QP reports the end of its connection, in each state. */
void iwcm_01_destroying_a_qp_reports_the_end_of_its_connection(Test &test)
{
	for (const bool established : {true, false}) {
		Boxed<Bed> bed;
		ASSERT_TRUE(bed.ok());
		Consumer consumer(*bed);
		ASSERT_TRUE(established ? establish(*bed, consumer) : connect(*bed, consumer));
		bed->qp = {};
		ASSERT_TRUE(consumer.receives(established ? IW_CM_EVENT_CLOSE
							  : IW_CM_EVENT_CONNECT_REPLY));
		EXPECT_EQ(consumer.status, established ? 0 : -ECONNABORTED);
		consumer.close();
		EXPECT_EQ(consumer.count(IW_CM_EVENT_CLOSE), established ? 1u : 0u);
	}
	/* Destroying an ID also ends its connection. */
	Boxed<Bed> bed;
	ASSERT_TRUE(bed.ok());
	Consumer consumer(*bed);
	ASSERT_TRUE(establish(*bed, consumer));
	consumer.close();
	EXPECT_EQ(bed->card->last(wire::MessageId::qp_modify).get<u32>(wire::qp_modify::next_state),
		  static_cast<u32>(wire::QpState::error));
	EXPECT_EQ(consumer.count(IW_CM_EVENT_CLOSE), 0u);
}

/* A failed connect reports its error. The QP may connect again. */
void failed_connect_reports_its_reason_and_the_qp_can_connect_again(Test &test)
{
	const struct {
		wire::Status said;
		int expected;
	} results[] = {{wire::Status::connection_refused, -ECONNREFUSED},
		       {wire::Status::connection_reset, -ECONNRESET},
		       {wire::Status::connection_timed_out, -ETIMEDOUT},
		       {wire::Status::host_unreachable, -EHOSTUNREACH},
		       {wire::Status::network_unreachable, -ENETUNREACH}};
	Boxed<Bed> bed;
	ASSERT_TRUE(bed.ok());
	for (const auto &[said, expected] : results) {
		Consumer consumer(*bed);
		consumer.id->remote.port = 1;
		const iw_cm_param param = param_of(*bed);
		ASSERT_EQ(iw_cm_connect(consumer.id, &param), 0);
		report_to_qp(*bed, wire::EventId::connect_result, said);
		ASSERT_TRUE(consumer.receives(IW_CM_EVENT_CONNECT_REPLY));
		EXPECT_EQ(consumer.status, expected);
	}
	Consumer consumer(*bed);
	iw_cm_param param = param_of(*bed, 201);
	EXPECT_EQ(iw_cm_connect(consumer.id, &param), -EINVAL);
}

/* Connection requests reach the listener and are accepted or rejected; invalid ones are refused. */
void iwcm_03_only_valid_connection_requests_are_delivered_to_the_listener(Test &test)
{
	Boxed<Bed> bed;
	ASSERT_TRUE(bed.ok());
	Card &card = *bed->card;
	Consumer listener(*bed);
	listener.id->local.port = 7174;
	ASSERT_EQ(iw_cm_listen(listener.id, 4), 0);
	const Message &asked = card.last(wire::MessageId::listen_create);
	EXPECT_EQ(asked.get<u16>(wire::listen_create::port), 7174u);
	Message event;
	event.bytes()[wire::header::id] = static_cast<u8>(wire::EventId::connection_request);
	event.put_opaque(wire::event::user_context,
			 asked.get_opaque<u64>(wire::listen_create::user_context));
	event.put(wire::event::resource_type, static_cast<u32>(wire::ResourceType::endpoint));
	event.put_opaque(wire::connection_request::endpoint, u32{0x1234});
	event.put(wire::connection_request::remote_port, u16{99});
	event.put(wire::connection_request::private_length, u32{201});
	report(*bed, event);
	EXPECT_TRUE(eventually([&] { return card.asked(wire::MessageId::request_reject) == 1; }));
	event.put(wire::connection_request::private_length, u32{200});
	report(*bed, event);
	ASSERT_TRUE(listener.receives(IW_CM_EVENT_CONNECT_REQUEST));
	EXPECT_EQ(listener.port, 99u);
	EXPECT_EQ(listener.data_length, 200u);
	ASSERT_EQ(iw_cm_reject(listener.fresh, nullptr, 0), 0);
	EXPECT_TRUE(eventually([&] { return card.asked(wire::MessageId::request_reject) == 2; }));
	EXPECT_EQ(card.last(wire::MessageId::request_reject).get_opaque<u32>(wire::object_handle),
		  0x1234u);
	iw_destroy_cm_id(std::exchange(listener.fresh, nullptr));

	/* A request that cannot be accepted is rejected. */
	report(*bed, event);
	ASSERT_TRUE(listener.receives(IW_CM_EVENT_CONNECT_REQUEST, 2));
	card.answers(wire::MessageId::request_accept, wire::Status::connection_reset);
	const iw_cm_param param = param_of(*bed);
	EXPECT_EQ(iw_cm_accept(listener.fresh, &param), -ECONNRESET);
	iw_destroy_cm_id(std::exchange(listener.fresh, nullptr));
	card.answers(wire::MessageId::request_accept, wire::Status::ok);

	report(*bed, event);
	ASSERT_TRUE(listener.receives(IW_CM_EVENT_CONNECT_REQUEST, 3));
	ASSERT_EQ(iw_cm_accept(listener.fresh, &param), 0);
	ASSERT_TRUE(listener.receives(IW_CM_EVENT_ESTABLISHED));
	EXPECT_EQ(card.last(wire::MessageId::request_accept)
			  .get_opaque<u32>(wire::request_accept::endpoint),
		  0x1234u);
	report_to_qp(*bed, wire::EventId::connection_lost);
	ASSERT_TRUE(listener.receives(IW_CM_EVENT_CLOSE));
	listener.close();
	EXPECT_EQ(card.asked(wire::MessageId::listen_destroy), 1u);
	EXPECT_EQ(listener.count(IW_CM_EVENT_CLOSE), 1u);
	EXPECT_EQ(listener.count(IW_CM_EVENT_ESTABLISHED), 1u);
}

/*
 * A reject sent from the event handler does not wait for its reply: the card may hold back all
 * replies until its events are read.
 */
void iw_cm_reject_does_not_wait_for_the_reply_of_the_card(Test &test)
{
	Boxed<Bed> bed(200u);
	ASSERT_TRUE(bed.ok());
	Card &card = *bed->card;
	Consumer listener(*bed);
	listener.id->local.port = 7174;
	ASSERT_EQ(iw_cm_listen(listener.id, 4), 0);
	card.answers(wire::MessageId::request_reject, wire::Status::pending);
	Message event;
	event.bytes()[wire::header::id] = static_cast<u8>(wire::EventId::connection_request);
	event.put_opaque(wire::event::user_context,
			 card.last(wire::MessageId::listen_create)
				 .get_opaque<u64>(wire::listen_create::user_context));
	event.put(wire::event::resource_type, static_cast<u32>(wire::ResourceType::endpoint));
	event.put(wire::connection_request::private_length, u32{201});
	for (unsigned int i = 0; i < 3; i++)
		report(*bed, event);
	EXPECT_TRUE(eventually([&] { return card.asked(wire::MessageId::request_reject) == 3; }));
	EXPECT_FALSE(card.rnic->channel().failed());
}

[[gnu::noinline]] void report_soon(Bed &bed, wire::EventId id, u32 number)
{
	Message event = of_qp(bed, id, wire::Status::ok, number);
	bed.card->report(event);
}

/*
 * The QP is destroyed while the card reports that a connection is established or lost: each event
 * is delivered once.
 */
void iwcm_01_events_during_qp_destroy_are_reported_once(Test &test)
{
	Boxed<Bed> bed;
	ASSERT_TRUE(bed.ok());
	for (u32 round = 1; round < 60; round++) {
		Consumer consumer(*bed);
		consumer.id->remote = {{10, 0, 0, 2}, false, 7174};
		const iw_cm_param param = param_of(*bed);
		ASSERT_EQ(iw_cm_connect(consumer.id, &param), 0);
		report_soon(*bed, wire::EventId::connect_result, round);
		if (round % 3 == 0)
			report_soon(*bed, wire::EventId::connection_lost, round);
		bed->qp = {};
		ASSERT_TRUE(consumer.receives(IW_CM_EVENT_CONNECT_REPLY));
		consumer.close();
		EXPECT_EQ(consumer.count(IW_CM_EVENT_CONNECT_REPLY), 1u);
		EXPECT_LE(consumer.count(IW_CM_EVENT_CLOSE), 1u);
		ASSERT_TRUE(bed->add(bed->qp, IB_SIGNAL_ALL_WR));
	}
}

[[gnu::noinline]] void say_late(Bed &bed, const EventRecorder &recorder)
{
	Message event = recorder.event();
	bed.card->report(event);
	event = of_qp(bed, wire::EventId::connection_reset);
	bed.card->say(event);
}

/*
 * Events of a stream before the QP was reset do not reach its next stream, however late they are
 * handled.
 */
void iwcm_01_events_from_before_a_qp_reset_do_not_reach_the_next_connection(Test &test)
{
	Boxed<Bed> bed;
	ASSERT_TRUE(bed.ok());
	Consumer first(*bed), second(*bed);
	EventRecorder recorder(*bed);
	ASSERT_TRUE(recorder.ok() && establish(*bed, first));
	const auto move = [&](ib_qp_state state) {
		ib_qp_attr attr{};
		attr.qp_state = state;
		return bed->qp.modify(attr, IB_QP_STATE);
	};
	/*
	 * The event is queued behind another one, whose handler takes longer than all requests to
	 * the card.
	 */
	recorder.on_event = [](EventRecorder &, Bed &on) {
		(void)eventually([&] { return on.card->asked(wire::MessageId::qp_modify) == 4; });
		kern::sleep_us(20'000, 30'000);
	};
	say_late(*bed, recorder);
	ASSERT_OK(move(IB_QPS_ERR));
	ASSERT_OK(move(IB_QPS_RESET));
	second.id->remote = {{10, 0, 0, 2}, false, 7174};
	const iw_cm_param param = param_of(*bed);
	ASSERT_EQ(iw_cm_connect(second.id, &param), 0);
	bed->card->rnic->flush_events();
	report_to_qp(*bed, wire::EventId::connect_result);
	ASSERT_TRUE(second.receives(IW_CM_EVENT_CONNECT_REPLY));
	EXPECT_EQ(second.status, 0);
}

/* A failed card reports nothing. The driver nevertheless closes each of its connections once. */
void iwcm_01_card_failure_closes_each_connection_once(Test &test)
{
	for (const bool established : {true, false}) {
		Boxed<Bed> bed;
		ASSERT_TRUE(bed.ok());
		Consumer consumer(*bed);
		ASSERT_TRUE(established ? establish(*bed, consumer) : connect(*bed, consumer));
		bed->card->rnic->channel().fail("is broken by a test");
		ASSERT_TRUE(consumer.receives(established ? IW_CM_EVENT_CLOSE
							  : IW_CM_EVENT_CONNECT_REPLY));
		EXPECT_EQ(consumer.status, established ? 0 : -EIO);
		bed->qp = {};
		consumer.close();
		EXPECT_EQ(consumer.count(IW_CM_EVENT_CLOSE), established ? 1u : 0u);
		EXPECT_EQ(consumer.count(IW_CM_EVENT_CONNECT_REPLY), 1u);
	}
}

} // namespace

KUNIT_SUITE(amso1100_connections, KUNIT_CASE(iw_cm_reject_does_not_wait_for_the_reply_of_the_card),
	    KUNIT_CASE(iwcm_01_events_during_qp_destroy_are_reported_once),
	    KUNIT_CASE(iwcm_01_events_from_before_a_qp_reset_do_not_reach_the_next_connection),
	    KUNIT_CASE(iwcm_01_card_failure_closes_each_connection_once),
	    KUNIT_CASE(iwcm_01_close_event_is_delivered_once),
	    KUNIT_CASE(iwcm_01_destroying_a_qp_reports_the_end_of_its_connection),
	    KUNIT_CASE(failed_connect_reports_its_reason_and_the_qp_can_connect_again),
	    KUNIT_CASE(iwcm_03_only_valid_connection_requests_are_delivered_to_the_listener));
