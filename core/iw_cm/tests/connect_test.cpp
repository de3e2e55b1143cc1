// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Tests the connections of software RNICs: each end receives the right events, and each event once.
 */
#include <kern/kunit.hpp>
#include <kern/kunit_fixture.hpp>
#include <rdma/objects.hpp>
#include "../states.hpp"
#include "fake.hpp"

using namespace iw_cm_fixture;
using kern::kunit::eventually;
using kern::kunit::Test;

namespace
{

constexpr u16 port = 7174;

/* An ID with a QP, and the events that it received. */
struct End {
	explicit End(unsigned int device)
	{
		auto made_pd = rdma::Pd::create(Fake::device(device));
		auto made_cq =
			rdma::CompletionQueue::create(Fake::device(device), nullptr, nullptr, 8);
		if (!made_pd || !made_cq)
			return;
		cq = made_cq.take();
		ib_qp_init_attr attr{};
		attr.cap = {.max_send_wr = 4,
			    .max_recv_wr = 4,
			    .max_send_sge = 1,
			    .max_recv_sge = 1,
			    .max_inline_data = 0};
		attr.qp_type = IB_QPT_RC;
		auto made = rdma::QueuePair::create(made_pd.take(), cq, cq, attr);
		if (!made)
			return;
		qp = made.take();
		id = iw_create_cm_id(Fake::device(device), handle, this);
		if (rdma::is_err(id))
			id = nullptr;
	}
	~End() { close(); }
	void close()
	{
		if (id)
			iw_destroy_cm_id(std::exchange(id, nullptr));
	}
	bool ok() const { return id && qp; }

	static int handle(iw_cm_id *id, const iw_cm_event *event)
	{
		auto *end = static_cast<End *>(id->context);
		if (event->event == IW_CM_EVENT_CONNECT_REQUEST) {
			End *const taker = end->fresh;
			end->received[event->event].fetch_add(1);
			__builtin_memcpy(end->data, event->private_data, event->private_data_len);
			if (!taker)
				return -ECONNREFUSED;
			end->fresh = nullptr;
			taker->id = id;
			id->context = taker;
			taker->asked.store_release(true);
			return 0;
		}
		end->status = event->status;
		if (event->private_data_len)
			__builtin_memcpy(end->data, event->private_data, event->private_data_len);
		end->received[event->event].fetch_add(1);
		return 0;
	}
	unsigned int count(iw_cm_event_type type) const { return received[type].load_acquire(); }
	bool receives(iw_cm_event_type type) const
	{
		return eventually([&] { return count(type) == 1; });
	}
	bool listen(End *taker, unsigned int backlog = 4)
	{
		/*
		 * The ID of the request replaces @taker's ID, which is destroyed here because a
		 * handler must not destroy it.
		 */
		if (taker)
			taker->close();
		fresh = taker;
		id->local.port = port;
		return iw_cm_listen(id, backlog) == 0;
	}
	int connect(const char *text = "request")
	{
		id->remote.port = port;
		const iw_cm_param param = describe(text);
		return iw_cm_connect(id, &param);
	}
	int accept(const char *text = "reply")
	{
		const iw_cm_param param = describe(text);
		return iw_cm_accept(id, &param);
	}
	iw_cm_param describe(const char *text) const
	{
		return {.qp = qp.get(),
			.ord = 1,
			.ird = 1,
			.private_data = text,
			.private_data_len = static_cast<u8>(__builtin_strlen(text) + 1)};
	}

	iw_cm_id *id = nullptr;
	kern::Ref<rdma::CompletionQueue> cq;
	rdma::QueuePair qp;
	End *fresh = nullptr;
	kern::Atomic<bool> asked{false};
	int status = 0;
	char data[IW_CM_PRIVATE_DATA_SIZE] = {};
	kern::Atomic<unsigned int> received[4];
};

/* A network with a listener, a side that connects, and a side that accepts the request. */
struct Scene {
	bool started = Fake::start();
	kern::kunit::Boxed<End> active{0u}, listener{1u}, passive{1u};
	~Scene()
	{
		active.reset();
		passive.reset();
		listener.reset();
		Fake::stop();
	}
	bool ok() const { return started && active.ok() && listener.ok() && passive.ok(); }
	bool request()
	{
		return listener->listen(&*passive) && active->connect() == 0 &&
		       eventually([&] { return passive->asked.load_acquire(); });
	}
	bool establish()
	{
		return request() && passive->accept() == 0 &&
		       active->receives(IW_CM_EVENT_CONNECT_REPLY) &&
		       passive->receives(IW_CM_EVENT_ESTABLISHED);
	}
};

/* Private data is delivered in both directions; each end receives each event once. */
void iwcm_01_both_ends_get_each_connection_event_once(Test &test)
{
	Scene scene;
	ASSERT_TRUE(scene.ok());
	ASSERT_TRUE(scene.establish());
	EXPECT_EQ(scene.active->status, 0);
	EXPECT_EQ(__builtin_strcmp(scene.listener->data, "request"), 0);
	EXPECT_EQ(__builtin_strcmp(scene.active->data, "reply"), 0);
	EXPECT_EQ(scene.active->connect(), -EINVAL);
	EXPECT_EQ(scene.passive->accept(), -EINVAL);
	EXPECT_EQ(iw_cm_reject(scene.passive->id, nullptr, 0), -EINVAL);
	ASSERT_EQ(iw_cm_disconnect(scene.active->id, false), 0);
	EXPECT_TRUE(scene.active->receives(IW_CM_EVENT_CLOSE));
	EXPECT_TRUE(scene.passive->receives(IW_CM_EVENT_CLOSE));
	EXPECT_EQ(iw_cm_disconnect(scene.active->id, true), -EINVAL);
	scene.active->close();
	scene.passive->close();
	EXPECT_EQ(scene.active->count(IW_CM_EVENT_CLOSE), 1u);
	EXPECT_EQ(scene.passive->count(IW_CM_EVENT_CLOSE), 1u);
}

/* The connecting side gets the reason of a rejection, once. */
void connect_reply_event_reports_why_the_request_was_rejected(Test &test)
{
	{
		Scene scene;
		ASSERT_TRUE(scene.ok());
		ASSERT_EQ(scene.active->connect(), 0);
		ASSERT_TRUE(scene.active->receives(IW_CM_EVENT_CONNECT_REPLY));
		EXPECT_EQ(scene.active->status, -ECONNREFUSED);
		EXPECT_EQ(scene.active->connect(), -EINVAL);
	}
	{
		Scene scene;
		ASSERT_TRUE(scene.ok());
		ASSERT_TRUE(scene.request());
		ASSERT_EQ(iw_cm_reject(scene.passive->id, nullptr, 0), 0);
		ASSERT_TRUE(scene.active->receives(IW_CM_EVENT_CONNECT_REPLY));
		EXPECT_EQ(scene.active->status, -ECONNRESET);
		EXPECT_EQ(scene.passive->accept(), -EINVAL);
	}
	/* The handler refuses the request, or the listener's backlog is full. */
	for (const unsigned int backlog : {4u, 0u}) {
		Scene scene;
		ASSERT_TRUE(scene.ok());
		ASSERT_TRUE(scene.listener->listen(nullptr, backlog));
		ASSERT_EQ(scene.active->connect(), 0);
		ASSERT_TRUE(scene.active->receives(IW_CM_EVENT_CONNECT_REPLY));
		EXPECT_EQ(scene.active->status, backlog ? -ECONNRESET : -ECONNREFUSED);
		EXPECT_EQ(Fake::rejected.load_acquire(), backlog ? 1u : 0u);
	}
}

/* A call that the driver refuses changes nothing. */
void iwcm_03_driver_errors_are_returned_to_the_caller(Test &test)
{
	Scene scene;
	ASSERT_TRUE(scene.ok());
	Fake::listen_error = -EADDRINUSE;
	EXPECT_FALSE(scene.listener->listen(&*scene.passive));
	Fake::connect_error = -ENETUNREACH;
	EXPECT_EQ(scene.active->connect(), -ENETUNREACH);
	const iw_cm_param nothing{};
	EXPECT_EQ(iw_cm_connect(scene.active->id, &nothing), -EINVAL);
	ASSERT_TRUE(scene.request());
	Fake::accept_error = -ENOMEM;
	EXPECT_EQ(scene.passive->accept(), -ENOMEM);
	EXPECT_EQ(scene.passive->accept(), -EINVAL);
	ASSERT_TRUE(scene.active->receives(IW_CM_EVENT_CONNECT_REPLY));
	scene.passive->close();
	EXPECT_EQ(scene.passive->count(IW_CM_EVENT_ESTABLISHED), 0u);
	/* Ids cannot be created on a device without connection methods. */
	iw_cm_remove_device(Fake::device(0));
	iw_cm_id *const none = iw_create_cm_id(Fake::device(0), End::handle, nullptr);
	EXPECT_EQ(rdma::ptr_err(none), -ENODEV);
}

/* Destroying an ID in any state waits for the driver's outstanding events, and no event follows. */
void iwcm_02_no_event_follows_the_destruction_of_an_id(Test &test)
{
	{
		Scene scene;
		ASSERT_TRUE(scene.ok());
		Fake::still = true;
		ASSERT_EQ(scene.active->connect(), 0);
		scene.active->close();
		EXPECT_EQ(scene.active->count(IW_CM_EVENT_CONNECT_REPLY), 0u);
	}
	/* An orderly disconnect before the connection is established is reported as well. */
	for (const bool abrupt : {true, false}) {
		Scene scene;
		ASSERT_TRUE(scene.ok());
		Fake::still = true;
		ASSERT_EQ(scene.active->connect(), 0);
		ASSERT_EQ(iw_cm_disconnect(scene.active->id, abrupt), 0);
		ASSERT_TRUE(scene.active->receives(IW_CM_EVENT_CONNECT_REPLY));
		EXPECT_EQ(scene.active->status, -ECONNABORTED);
		EXPECT_EQ(iw_cm_disconnect(scene.active->id, abrupt), -EINVAL);
	}
	{
		Scene scene;
		ASSERT_TRUE(scene.ok());
		ASSERT_TRUE(scene.request());
		scene.passive->close();
		EXPECT_EQ(Fake::rejected.load_acquire(), 1u);
		ASSERT_TRUE(scene.active->receives(IW_CM_EVENT_CONNECT_REPLY));
	}
	{
		Scene scene;
		ASSERT_TRUE(scene.ok());
		ASSERT_TRUE(scene.establish());
		/*
		 * The listener is closed first, because established connections do not depend on
		 * it.
		 */
		scene.listener->close();
		scene.passive->close();
		EXPECT_TRUE(scene.active->receives(IW_CM_EVENT_CLOSE));
		EXPECT_EQ(scene.passive->count(IW_CM_EVENT_CLOSE), 0u);
	}
}

/*
 * On every path through the table, the driver may report only the events that it promised. An ID
 * that is being destroyed stays in that state.
 */
void iwcm_02_only_expected_driver_events_change_the_state_of_an_id(Test &test)
{
	using iw_cm::Event;
	using iw_cm::State;
	kern::SeededRandom random(test.seed());
	for (unsigned int run = 0; run < 2000; run++) {
		State state = State::idle;
		for (unsigned int i = 0; i < 10; i++) {
			const auto event =
				static_cast<Event>(random.below(u32{iw_cm::event_count}));
			const auto taken = iw_cm::step(state, event);
			const bool word = event == Event::connected || event == Event::refused ||
					  event == Event::accepted || event == Event::close;
			if (taken.taken && word)
				ASSERT_TRUE(iw_cm::is_promised(state));
			if (!taken.taken)
				ASSERT_EQ(taken.next, state);
			if (state == State::destroying)
				ASSERT_FALSE(taken.taken);
			state = taken.next;
		}
	}
	EXPECT_FALSE(iw_cm::step(State::closed, Event::close).taken);
	EXPECT_FALSE(iw_cm::step(State::connecting, Event::close).taken);
	EXPECT_FALSE(iw_cm::step(State::established, Event::connected).taken);
	EXPECT_FALSE(iw_cm::step(State::closed, Event::connect).taken);
}

} // namespace

KUNIT_SUITE(iw_cm_connect, KUNIT_CASE(iwcm_01_both_ends_get_each_connection_event_once),
	    KUNIT_CASE(connect_reply_event_reports_why_the_request_was_rejected),
	    KUNIT_CASE(iwcm_03_driver_errors_are_returned_to_the_caller),
	    KUNIT_CASE(iwcm_02_no_event_follows_the_destruction_of_an_id),
	    KUNIT_CASE(iwcm_02_only_expected_driver_events_change_the_state_of_an_id));
