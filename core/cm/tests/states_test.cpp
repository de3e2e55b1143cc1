// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that the state table matches the specification, and that IDs follow it for every message in
// every state.
#include "../states.hpp"
#include "fixture.hpp"

using namespace cm_fixture;
using cm::Action;
using cm::Event;
using cm::State;

namespace
{

constexpr u32 their_id = 0x7e57;

/*
 * The table of IBA 12.9: the states in which an event has an effect, and the state to which it
 * leads. In all other states the event must have no effect.
 */
struct Row {
	Event event;
	u32 from; /* a bit for each state */
	State to;
};

constexpr u32 bit(State state)
{
	return 1u << static_cast<unsigned>(state);
}
template<class... States>
constexpr u32 any_of(States... states)
{
	return (bit(states) | ...);
}

constexpr u32 connected = any_of(State::established, State::lap_sent, State::mra_lap_rcvd,
				 State::lap_rcvd, State::mra_lap_sent);
constexpr u32 everything = (1u << cm::state_count) - 1;
constexpr u32 before_reply = any_of(State::req_sent, State::mra_req_rcvd),
	      asked = any_of(State::req_rcvd, State::mra_req_sent),
	      replied = any_of(State::rep_sent, State::mra_rep_rcvd),
	      answered = any_of(State::rep_rcvd, State::mra_rep_sent);

constexpr Row rows[] = {
	{Event::new_req, bit(State::idle), State::req_rcvd},
	{Event::new_sidr_req, bit(State::idle), State::sidr_req_rcvd},
	{Event::got_rep, before_reply, State::rep_rcvd},
	{Event::got_mra_req, bit(State::req_sent), State::mra_req_rcvd},
	{Event::got_mra_rep, bit(State::rep_sent), State::mra_rep_rcvd},
	{Event::got_mra_lap, bit(State::lap_sent), State::mra_lap_rcvd},
	{Event::got_rtu, replied, State::established},
	{Event::got_dreq, replied | connected | bit(State::dreq_sent), State::dreq_rcvd},
	{Event::got_drep, any_of(State::dreq_sent, State::dreq_rcvd), State::timewait},
	{Event::got_rej, before_reply | asked | replied, State::idle},
	{Event::got_rej, answered | connected | bit(State::dreq_sent), State::timewait},
	{Event::got_rej_stale,
	 before_reply | asked | replied | answered | connected | bit(State::dreq_sent),
	 State::timewait},
	{Event::got_lap, bit(State::established), State::lap_rcvd},
	{Event::got_apr, any_of(State::lap_sent, State::mra_lap_rcvd), State::established},
	{Event::got_sidr_rep, bit(State::sidr_req_sent), State::idle},
	{Event::listen, bit(State::idle), State::listen},
	{Event::send_req, bit(State::idle), State::req_sent},
	{Event::send_rep, asked, State::rep_sent},
	{Event::send_rtu, answered, State::established},
	{Event::send_rej, before_reply | asked | answered, State::idle},
	{Event::send_rej, replied, State::timewait},
	{Event::send_mra, bit(State::req_rcvd), State::mra_req_sent},
	{Event::send_mra, bit(State::rep_rcvd), State::mra_rep_sent},
	{Event::send_mra, bit(State::lap_rcvd), State::mra_lap_sent},
	{Event::send_dreq, connected, State::dreq_sent},
	{Event::send_drep, bit(State::dreq_rcvd), State::timewait},
	{Event::send_lap, bit(State::established), State::lap_sent},
	{Event::send_apr, any_of(State::lap_rcvd, State::mra_lap_sent), State::established},
	{Event::send_sidr_req, bit(State::idle), State::sidr_req_sent},
	{Event::send_sidr_rep, bit(State::sidr_req_rcvd), State::idle},
	{Event::communicates, replied, State::established},
	{Event::migrated, bit(State::established), State::established},
	{Event::gave_up, before_reply | replied | bit(State::sidr_req_sent), State::idle},
	{Event::gave_up, bit(State::dreq_sent), State::timewait},
	{Event::gave_up, any_of(State::lap_sent, State::mra_lap_rcvd), State::established},
	{Event::timewait_exit, bit(State::timewait), State::idle},
	{Event::device_gone, everything, State::idle},
};

void cm_02_id_state_transitions_match_the_specification(Test &test)
{
	for (std::size_t s = 0; s < cm::state_count; s++)
		for (std::size_t e = 0; e < cm::event_count; e++) {
			const auto state = static_cast<State>(s);
			const auto event = static_cast<Event>(e);
			const auto actual = cm::transition(state, event);
			const Row *expected = nullptr;
			for (const Row &row : rows)
				if (row.event == event && (row.from & bit(state)))
					expected = &row;
			if (event == Event::destroy) {
				EXPECT_EQ(actual.next, State::idle);
				EXPECT_GE(actual.action, Action::end);
				continue;
			}
			if ((actual.action == Action::take) != (expected != nullptr) ||
			    actual.next != (expected ? expected->to : state)) {
				EXPECT_EQ(s, cm::state_count);
				EXPECT_EQ(e, cm::event_count);
			}
		}
	EXPECT_TRUE(cm::awaits_answer(State::req_sent) && cm::awaits_answer(State::mra_lap_rcvd));
	EXPECT_FALSE(cm::awaits_answer(State::req_rcvd) || cm::awaits_answer(State::timewait) ||
		     cm::awaits_answer(State::dreq_rcvd));
}

/* A node with the CM, and an independent peer that brings one of its IDs to any state. */
struct Walk {
	Node node{1};
	UnknownPeer peer{2};
	End listener, one;

	bool ok() { return node.ok() && peer.open(); }

	bool says(ib::CmAttribute attribute, u8 subject = 0)
	{
		ib::Mad mad = message(attribute);
		if (attribute == ib::CmAttribute::mra) {
			ib::cm_message<ib::CmMra>(mad).set_subject(
				static_cast<ib::CmSubject>(subject));
			ib::cm_message<ib::CmMra>(mad).set_service_timeout(20);
		}
		return peer.says(node, mad);
	}
	/* Returns a message that is valid for the id in its state. */
	ib::Mad message(ib::CmAttribute attribute)
	{
		ib::Mad mad = UnknownPeer::make(attribute, their_id,
						one.id ? one.id->local_id.value() : 1);
		/* Responses to a LAP have its transaction ID. */
		if (attribute == ib::CmAttribute::mra || attribute == ib::CmAttribute::apr)
			mad.header.tid = peer.last(ib::CmAttribute::lap).header.tid;
		switch (attribute) {
		case ib::CmAttribute::req:
			mad = peer.make_req(node, their_id, other_qpn, service + 1);
			break;
		case ib::CmAttribute::rep: {
			auto &rep = ib::cm_message<ib::CmRep>(mad);
			rep.qpn = other_qpn;
			rep.ca_guid = peer.node.guid();
			rep.set_target_ack_delay(20);
			break;
		}
		case ib::CmAttribute::dreq:
			ib::cm_message<ib::CmDreq>(mad).remote_qpn = some_qpn;
			break;
		case ib::CmAttribute::lap:
			ib::cm_message<ib::CmLap>(mad).set_path(
				ib::cm_message<ib::CmReq>(peer.make_req(node, their_id)).primary);
			break;
		case ib::CmAttribute::sidr_req: {
			auto &req = ib::cm_message<ib::CmSidrReq>(mad);
			req = {};
			req.request_id = their_id;
			req.service_id = service + 1;
			break;
		}
		case ib::CmAttribute::sidr_rep: {
			auto &rep = ib::cm_message<ib::CmSidrRep>(mad);
			rep = {};
			rep.request_id = one.id ? one.id->local_id.value() : 1;
			break;
		}
		default:
			break;
		}
		return mad;
	}

	/* Brings the ID to a state by messages that the independent peer starts. */
	bool answer_to(State wanted)
	{
		if (!listener.open(node) || ib_cm_listen(listener.id, service, 0))
			return false;
		listener.fresh = &one;
		const bool resolves = wanted == State::sidr_req_rcvd;
		ib::Mad mad = resolves ? message(ib::CmAttribute::sidr_req)
				       : peer.make_req(node, their_id);
		if (resolves) {
			ib::cm_message<ib::CmSidrReq>(mad).service_id = service;
		} else {
			auto &req = ib::cm_message<ib::CmReq>(mad);
			req.set_local_response_timeout(20);
			req.primary.set_ack_timeout(20);
		}
		if (!peer.send(node, mad) ||
		    !one.receives(resolves ? IB_CM_SIDR_REQ_RECEIVED : IB_CM_REQ_RECEIVED))
			return false;
		if (wanted == State::req_rcvd || resolves)
			return true;
		if (wanted == State::mra_req_sent)
			return ib_send_cm_mra(one.id, 20, nullptr, 0) == 0;
		if (one.reply(some_qpn))
			return false;
		if (wanted == State::rep_sent)
			return true;
		if (wanted == State::mra_rep_rcvd)
			return says(ib::CmAttribute::mra, 1) && one.receives(IB_CM_MRA_RECEIVED);
		if (!says(ib::CmAttribute::rtu) || !one.receives(IB_CM_RTU_RECEIVED))
			return false;
		switch (wanted) {
		case State::established:
			return true;
		case State::dreq_sent:
			return ib_send_cm_dreq(one.id, nullptr, 0) == 0;
		case State::dreq_rcvd:
		case State::timewait:
			return says(ib::CmAttribute::dreq) && one.receives(IB_CM_DREQ_RECEIVED) &&
			       (wanted == State::dreq_rcvd ||
				ib_send_cm_drep(one.id, nullptr, 0) == 0);
		case State::lap_rcvd:
		case State::mra_lap_sent:
			return says(ib::CmAttribute::lap) && one.receives(IB_CM_LAP_RECEIVED) &&
			       (wanted == State::lap_rcvd ||
				ib_send_cm_mra(one.id, 20, nullptr, 0) == 0);
		default:
			return false;
		}
	}
	/* Brings the ID to a state by calls that the ID starts. */
	bool ask(State wanted)
	{
		if (!one.open(node))
			return false;
		const sa_path_rec path = node.path_to(peer.node, 18);
		if (wanted == State::idle)
			return true;
		if (wanted == State::listen)
			return ib_cm_listen(one.id, service, 0) == 0;
		if (wanted == State::sidr_req_sent) {
			ib_cm_sidr_req_param param{};
			param.path = &path;
			param.service_id = service;
			param.timeout_ms = 10'000;
			return ib_send_cm_sidr_req(one.id, &param) == 0;
		}
		const unsigned int proposals = peer.received(ib::CmAttribute::lap);
		ib_cm_req_param param = End::request_of(path);
		param.remote_cm_response_timeout = 22;
		if (ib_send_cm_req(one.id, &param))
			return false;
		if (wanted == State::req_sent)
			return true;
		if (wanted == State::mra_req_rcvd)
			return says(ib::CmAttribute::mra, 0) && one.receives(IB_CM_MRA_RECEIVED);
		if (!says(ib::CmAttribute::rep) || !one.receives(IB_CM_REP_RECEIVED))
			return false;
		if (wanted == State::rep_rcvd)
			return true;
		if (wanted == State::mra_rep_sent)
			return ib_send_cm_mra(one.id, 20, nullptr, 0) == 0;
		if (ib_send_cm_rtu(one.id, nullptr, 0) ||
		    ib_send_cm_lap(one.id, &path, nullptr, 0) ||
		    !peer.receives(ib::CmAttribute::lap, proposals + 1))
			return false;
		return wanted == State::lap_sent ||
		       (says(ib::CmAttribute::mra, 2) && one.receives(IB_CM_MRA_RECEIVED));
	}
	bool reach(State wanted)
	{
		switch (wanted) {
		case State::idle:
		case State::listen:
		case State::sidr_req_sent:
		case State::req_sent:
		case State::mra_req_rcvd:
		case State::rep_rcvd:
		case State::mra_rep_sent:
		case State::lap_sent:
		case State::mra_lap_rcvd:
			return ask(wanted);
		default:
			return answer_to(wanted);
		}
	}
	void end()
	{
		one.close();
		listener.close();
	}
};

constexpr ib_cm_state shown(State state)
{
	return cm::is_established(state) ? IB_CM_ESTABLISHED : static_cast<ib_cm_state>(state);
}

/* Every kind of message, as an event and as a message of the peer. */
struct Kind {
	Event event;
	ib::CmAttribute attribute;
	u8 detail;
};
constexpr Kind kinds[] = {
	{Event::got_req, ib::CmAttribute::req, 0},
	{Event::got_mra_req, ib::CmAttribute::mra, 0},
	{Event::got_mra_rep, ib::CmAttribute::mra, 1},
	{Event::got_mra_lap, ib::CmAttribute::mra, 2},
	{Event::got_rej, ib::CmAttribute::rej, 28},
	{Event::got_rej_stale, ib::CmAttribute::rej, 10},
	{Event::got_rep, ib::CmAttribute::rep, 0},
	{Event::got_rtu, ib::CmAttribute::rtu, 0},
	{Event::got_dreq, ib::CmAttribute::dreq, 0},
	{Event::got_drep, ib::CmAttribute::drep, 0},
	{Event::got_lap, ib::CmAttribute::lap, 0},
	{Event::got_apr, ib::CmAttribute::apr, 0},
	{Event::got_sidr_req, ib::CmAttribute::sidr_req, 0},
	{Event::got_sidr_rep, ib::CmAttribute::sidr_rep, 0},
};

ib::Mad of_kind(Walk &walk, const Kind &kind)
{
	ib::Mad mad = walk.message(kind.attribute);
	if (kind.attribute == ib::CmAttribute::mra) {
		ib::cm_message<ib::CmMra>(mad).set_subject(static_cast<ib::CmSubject>(kind.detail));
		ib::cm_message<ib::CmMra>(mad).set_service_timeout(20);
	}
	if (kind.attribute == ib::CmAttribute::rej)
		ib::cm_message<ib::CmRej>(mad).reason = u16{kind.detail};
	return mad;
}

u64 duplicates(const Node &node)
{
	u64 sum = 0;
	for (u64 kind : node.counters().duplicates)
		sum += kind;
	return sum;
}

/*
 * Every message in every state: a valid message changes the state and is reported once. An invalid
 * one does neither.
 */
void cm_02_message_changes_the_state_of_an_id_only_if_valid_in_that_state(Test &test)
{
	Boxed<Walk> walk;
	ASSERT_TRUE(walk.ok());
	for (std::size_t s = 0; s < cm::state_count; s++)
		for (const Kind &kind : kinds) {
			const auto state = static_cast<State>(s);
			const auto expected = cm::transition(state, kind.event);
			const bool reached = walk->reach(state);
			if (!reached || walk->one.state() != shown(state)) {
				EXPECT_EQ(s, cm::state_count);
				walk->end();
				continue;
			}
			const unsigned int delivered = walk->one.all();
			const u64 before = duplicates(walk->node);
			ASSERT_TRUE(walk->peer.says(walk->node, of_kind(*walk, kind)));
			const bool taken = expected.action == Action::take;
			const bool again = expected.action == Action::duplicate ||
					   expected.action == Action::answer_again ||
					   expected.action == Action::reject_again;
			if (taken)
				eventually([&] { return walk->one.all() > delivered; });
			const bool right = walk->one.state() == shown(expected.next) &&
					   walk->one.all() == delivered + taken &&
					   duplicates(walk->node) == before + again;
			if (!right) {
				EXPECT_EQ(walk->one.state(), shown(expected.next));
				EXPECT_EQ(walk->one.all(), delivered + taken);
				EXPECT_EQ(duplicates(walk->node), before + again);
				/* The values show the state and the event of a failure. */
				EXPECT_EQ(s, cm::state_count);
				EXPECT_EQ(static_cast<std::size_t>(kind.event), cm::event_count);
			}
			walk->end();
		}
	EXPECT_EQ(walk->one.overlaps.load_acquire(), 0u);
}

/* The consumer responds to a LAP with an unreachable path as to any other. */
void cm_10_lap_with_invalid_path_is_passed_to_the_consumer(Test &test)
{
	Boxed<Walk> walk;
	ASSERT_TRUE(walk.ok());
	ASSERT_TRUE(walk->reach(State::established));
	ib::Mad mad = walk->message(ib::CmAttribute::lap);
	auto &lap = ib::cm_message<ib::CmLap>(mad);
	auto path = lap.path();
	path.set_rate(1);
	lap.set_path(path);
	ASSERT_TRUE(walk->peer.says(walk->node, mad));
	ASSERT_TRUE(walk->one.receives(IB_CM_LAP_RECEIVED));
	EXPECT_EQ(
		ib_send_cm_apr(walk->one.id, IB_CM_APR_INVALID_PACKET_RATE, nullptr, 0, nullptr, 0),
		0);
	EXPECT_TRUE(walk->peer.receives(ib::CmAttribute::apr));
	walk->end();
}

/* Messages with IDs that belong to no connection do not affect the existing one. */
void cm_02_messages_with_unknown_communication_ids_are_ignored(Test &test)
{
	Boxed<Walk> walk;
	ASSERT_TRUE(walk.ok());
	for (State state : {State::rep_sent, State::rep_rcvd, State::established, State::dreq_sent,
			    State::lap_sent, State::timewait}) {
		for (const Kind &kind : kinds) {
			ASSERT_TRUE(walk->reach(state));
			const unsigned int delivered = walk->one.all();
			ib::Mad mad = of_kind(*walk, kind);
			auto &pair = ib::cm_message<ib::CmPair>(mad);
			pair.local_id = their_id + 1;
			if (kind.attribute == ib::CmAttribute::sidr_rep)
				pair.local_id = walk->one.id->local_id + 1;
			if (kind.attribute == ib::CmAttribute::req)
				ib::cm_message<ib::CmReq>(mad).qpn = 0x999;
			ASSERT_TRUE(walk->peer.says(walk->node, mad));
			EXPECT_EQ(walk->one.state(), shown(state));
			EXPECT_EQ(walk->one.all(), delivered);
			walk->end();
		}
	}
}

/*
 * Messages with the right IDs, from a node that does not belong to the connection, are ignored. If
 * that node claims to have the peer's QP, the old connection does not end.
 */
void cm_02_messages_from_a_third_node_are_ignored(Test &test)
{
	Boxed<Walk> walk;
	Boxed<UnknownPeer> third(u16{3});
	ASSERT_TRUE(walk.ok() && third.there() && third->open());
	for (State state : {State::req_sent, State::rep_sent, State::rep_rcvd, State::established,
			    State::dreq_sent, State::lap_sent, State::timewait}) {
		for (const Kind &kind : kinds) {
			ASSERT_TRUE(walk->reach(state));
			const unsigned int delivered = walk->one.all();
			ASSERT_TRUE(third->says(walk->node, of_kind(*walk, kind)));
			ib::Mad req = walk->peer.make_req(walk->node, their_id + 1, other_qpn,
							  service + 1);
			ASSERT_TRUE(third->says(walk->node, req));
			EXPECT_EQ(walk->one.state(), shown(state));
			EXPECT_EQ(walk->one.all(), delivered);
			walk->end();
		}
	}
}

/* Every call in every state: calls that the table refuses return EINVAL and change nothing. */
void cm_02_functions_return_an_error_in_invalid_states(Test &test)
{
	Boxed<Walk> walk;
	ASSERT_TRUE(walk.ok());
	const sa_path_rec path = walk->node.path_to(walk->peer.node, 18);
	struct {
		Event event;
		int (*call)(ib_cm_id *id, const sa_path_rec &path);
	} const calls[] = {
		{Event::listen,
		 [](ib_cm_id *id, const sa_path_rec &) {
			 return ib_cm_listen(id, service + 2, u64{0});
		 }},
		{Event::send_req,
		 [](ib_cm_id *id, const sa_path_rec &to) {
			 const auto param = End::request_of(to);
			 return ib_send_cm_req(id, &param);
		 }},
		{Event::send_rep,
		 [](ib_cm_id *id, const sa_path_rec &) {
			 const auto param = End::reply_of(some_qpn);
			 return ib_send_cm_rep(id, &param);
		 }},
		{Event::send_rtu,
		 [](ib_cm_id *id, const sa_path_rec &) { return ib_send_cm_rtu(id, nullptr, 0); }},
		{Event::send_rej,
		 [](ib_cm_id *id, const sa_path_rec &) {
			 return ib_send_cm_rej(id, IB_CM_REJ_CONSUMER_DEFINED, nullptr, 0, nullptr,
					       0);
		 }},
		{Event::send_mra,
		 [](ib_cm_id *id, const sa_path_rec &) {
			 return ib_send_cm_mra(id, 20, nullptr, 0);
		 }},
		{Event::send_dreq,
		 [](ib_cm_id *id, const sa_path_rec &) { return ib_send_cm_dreq(id, nullptr, 0); }},
		{Event::send_drep,
		 [](ib_cm_id *id, const sa_path_rec &) { return ib_send_cm_drep(id, nullptr, 0); }},
		{Event::send_apr,
		 [](ib_cm_id *id, const sa_path_rec &) {
			 return ib_send_cm_apr(id, IB_CM_APR_REJECT, nullptr, 0, nullptr, 0);
		 }},
		{Event::send_sidr_req,
		 [](ib_cm_id *id, const sa_path_rec &to) {
			 ib_cm_sidr_req_param param{};
			 param.path = &to;
			 param.service_id = service;
			 param.timeout_ms = 10'000;
			 return ib_send_cm_sidr_req(id, &param);
		 }},
		{Event::send_sidr_rep,
		 [](ib_cm_id *id, const sa_path_rec &) {
			 const ib_cm_sidr_rep_param param{};
			 return ib_send_cm_sidr_rep(id, &param);
		 }},
		{Event::communicates,
		 [](ib_cm_id *id, const sa_path_rec &) {
			 return ib_cm_notify(id, IB_EVENT_COMM_EST);
		 }},
	};
	for (std::size_t s = 0; s < cm::state_count; s++)
		for (const auto &one : calls) {
			const auto state = static_cast<State>(s);
			const auto expected = cm::transition(state, one.event);
			ASSERT_TRUE(walk->reach(state));
			const int actual = one.call(walk->one.id, path);
			const int right = expected.action == Action::take               ? 0
					  : expected.action == Action::refuse_connected ? -EISCONN
											: -EINVAL;
			if (actual != right || walk->one.state() != shown(expected.next)) {
				EXPECT_EQ(actual, right);
				EXPECT_EQ(walk->one.state(), shown(expected.next));
				EXPECT_EQ(s, cm::state_count);
				EXPECT_EQ(static_cast<std::size_t>(one.event), cm::event_count);
			}
			walk->end();
		}
}

/* The message that is sent when an ID is destroyed, for every state. */
void cm_07_id_destroy_sends_the_message_that_each_state_requires(Test &test)
{
	Boxed<Walk> walk;
	ASSERT_TRUE(walk.ok());
	for (std::size_t s = 0; s < cm::state_count; s++) {
		const auto state = static_cast<State>(s);
		ib::CmAttribute word = ib::CmAttribute::rej;
		bool speaks = true;
		u16 reason = IB_CM_REJ_CONSUMER_DEFINED;
		switch (cm::transition(state, Event::destroy).action) {
		case Action::end_timeout:
			reason = IB_CM_REJ_TIMEOUT;
			break;
		case Action::end_reject:
			break;
		case Action::end_disconnect:
			word = ib::CmAttribute::dreq;
			break;
		case Action::end_drep:
			word = ib::CmAttribute::drep;
			break;
		case Action::end_sidr:
			word = ib::CmAttribute::sidr_rep;
			break;
		default:
			speaks = false;
			break;
		}
		ASSERT_TRUE(walk->reach(state));
		const unsigned int before = walk->peer.received(word);
		const auto sent = walk->node.counters().sent[static_cast<std::size_t>(word) - 0x10];
		walk->one.close();
		EXPECT_EQ(walk->node.counters().sent[static_cast<std::size_t>(word) - 0x10] - sent,
			  speaks ? 1u : 0u);
		if (speaks) {
			EXPECT_TRUE(walk->peer.receives(word, before + 1));
			const ib::Mad &last = walk->peer.last(word);
			if (word == ib::CmAttribute::rej)
				EXPECT_EQ(ib::cm_message<ib::CmRej>(last).reason, reason);
			if (word == ib::CmAttribute::sidr_rep)
				EXPECT_EQ(ib::cm_message<ib::CmSidrRep>(last).status,
					  IB_SIDR_REJECT);
		}
		walk->end();
	}
}

/*
 * The device is removed while an ID is in any state: the ID gets the event once, as its last; all
 * later calls fail.
 */
void cm_11_device_removal_is_the_last_event_of_an_id(Test &test)
{
	for (std::size_t s = 0; s < cm::state_count; s++) {
		Boxed<Walk> walk;
		ASSERT_TRUE(walk.ok());
		ASSERT_TRUE(walk->reach(static_cast<State>(s)));
		const unsigned int delivered = walk->one.all();
		walk->node.leave();
		EXPECT_EQ(walk->one.delivered(IB_CM_DEVICE_REMOVAL), 1u);
		EXPECT_EQ(walk->one.all(), delivered + 1);
		EXPECT_EQ(walk->one.state(), IB_CM_IDLE);
		EXPECT_EQ(ib_send_cm_dreq(walk->one.id, nullptr, 0), -ENODEV);
		EXPECT_EQ(ib_cm_listen(walk->one.id, service + 5, u64{0}), -ENODEV);
		walk->end();
	}
}

} // namespace

CARD_SUITE(cm_states, KUNIT_CASE(cm_02_id_state_transitions_match_the_specification),
	   KUNIT_CASE(cm_02_message_changes_the_state_of_an_id_only_if_valid_in_that_state),
	   KUNIT_CASE(cm_02_messages_with_unknown_communication_ids_are_ignored),
	   KUNIT_CASE(cm_02_messages_from_a_third_node_are_ignored),
	   KUNIT_CASE(cm_10_lap_with_invalid_path_is_passed_to_the_consumer),
	   KUNIT_CASE(cm_02_functions_return_an_error_in_invalid_states),
	   KUNIT_CASE(cm_07_id_destroy_sends_the_message_that_each_state_requires),
	   KUNIT_CASE(cm_11_device_removal_is_the_last_event_of_an_id));
