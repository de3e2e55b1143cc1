// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines one side of a connection or of a service ID resolution (SIDR), or a listener: its state,
 * the message that waits for a response, and the events that have not been passed to its handler
 * yet.
 */
#pragma once

#include <kern/list.hpp>
#include <kern/lock.hpp>
#include <kern/span.hpp>
#include <kern/work.hpp>

#include "deliveries.hpp"
#include "retransmit_buffer.hpp"
#include "pair_table.hpp"
#include "path.hpp"
#include "states.hpp"

namespace cm
{

class Device;

/*
 * All members are protected by the device's lock, except the public part, which belongs to the
 * consumer, and the members that only run() accesses.
 *
 * Ownership: the consumer owns an ID that it has created. An ID that the CM has created for a
 * message belongs to the CM until its handler has returned 0, and then to the consumer. finish() is
 * called once, when the consumer destroys the ID or its handler returns an error. The ID is freed
 * when none of its handlers runs.
 */
class Id : public ib_cm_id
{
public:
	/*
	 * Creates an ID for a consumer, or for a request that arrived at @listener. Errors: ENOMEM.
	 * Context: process.
	 */
	static kern::Result<kern::Owned<Id>> create(kern::Ref<Device> device, ib_cm_handler handler,
						    void *context);
	~Id();

	static Id &of(ib_cm_id *id) { return *static_cast<Id *>(id); }
	Device &owner() const { return *device_; }
	State state() const { return state_; }
	/* The port through which the ID sends; valid when it is part of a connection. */
	u32 port_number() const { return port_->number(); }

	/* Errors: EINVAL or EISCONN if the call is not permitted in this state. */
	kern::Result<> permit(Event event) const;

	/*
	 * Implemented in calls.cpp. The caller holds the lock, and the device has not been removed.
	 * See rdma/ib_cm.h for each function.
	 */
	kern::Result<> listen(u64 id, u64 mask);
	kern::Result<> set_backlog(unsigned int count);
	kern::Result<> send_req(const ib_cm_req_param &param);
	kern::Result<> send_rep(const ib_cm_rep_param &param);
	kern::Result<> send_rtu(kern::ConstBytes data);
	kern::Result<> send_dreq(kern::ConstBytes data);
	kern::Result<> send_drep(kern::ConstBytes data);
	kern::Result<> send_rej(ib_cm_rej_reason reason, kern::ConstBytes info,
				kern::ConstBytes data);
	kern::Result<> send_mra(u8 service_timeout, kern::ConstBytes data);
	kern::Result<> send_lap(const sa_path_rec &path, kern::ConstBytes data);
	kern::Result<> send_apr(ib_cm_apr_status status, kern::ConstBytes info,
				kern::ConstBytes data);
	kern::Result<> send_sidr_req(const ib_cm_sidr_req_param &param);
	kern::Result<> send_sidr_rep(const ib_cm_sidr_rep_param &param);
	kern::Result<> communicates();
	kern::Result<> migrated();
	/* Implemented in qp_attributes.cpp. */
	kern::Result<> qp_attributes(ib_qp_attr &attr, int &mask) const;

	/* Implemented in receive.cpp. The caller holds the lock. */
	/* Initialises a new ID from its first message. */
	kern::Result<> begin(Port &port, Received received, kern::Ref<Address> address,
			     Id &listener, Event event);
	/*
	 * Handles a message for this ID. Its contents are not trusted, because any peer may have
	 * sent it. Errors: ENOMEM; nothing has changed in this case.
	 */
	kern::Result<> receive(Port &port, Received received, Event event);
	bool has_space_for_new() const { return listening_->pending < listening_->backlog; }
	/*
	 * Returns true if the message came from the address to which this ID sends, by one of the
	 * connection's paths. Communication IDs can be guessed, but the source LID is filled in by
	 * the sender's card.
	 */
	bool is_from_peer(const Received &received) const;
	/* Implemented in moved.cpp. The caller holds the lock. */
	/*
	 * Returns the attributes for a path query to the peer's port. Errors: ENOENT if the port is
	 * not known.
	 */
	kern::Result<sa_path_rec> path_to_peer() const;
	/* Uses this path for messages from now on. Errors: those of find_route(); ENOMEM. */
	kern::Result<> follow_peer(const sa_path_rec &path);

	/*
	 * Called when the device is removed. Returns true if the consumer does not know the ID yet;
	 * the caller then frees it.
	 */
	bool lose_device();
	/*
	 * Ends the ID. Sends the peer the last message that the state requires, if any, unless
	 * @silent is set. Afterwards only the destructor may be called. The caller holds the lock,
	 * and must call wait_for_handlers() before it frees the ID.
	 */
	void finish(bool silent = false);
	bool ended() const { return life_ == Life::ended; }
	/*
	 * Waits until no handler is running for a new ID of this listener. The caller does not hold
	 * the lock.
	 */
	void wait_for_handlers();
	/* Returns true if called from the ID's own handler. */
	bool in_own_handler() const;

	/*
	 * Links in the tables in which the messages of peers look up the ID; see Device. peer_link
	 * is in resolutions for an ID that answers a SIDR request, otherwise in remote_ids.
	 */
	PairTable<Id>::Link peer_link{*this}, remote_qpn_link{*this};
	kern::ListNode new_node; /* in the list of new IDs of its listener */

private:
	enum class Role : u8 { none, active, passive };
	/*
	 * Maximum number of new IDs of one listener whose events are delivered at a time. The
	 * handler may sleep, and the work queue, which all devices share, runs at most 256 work
	 * items.
	 */
	static constexpr unsigned int turns_max = 16;

	Id(kern::Ref<Device> device, ib_cm_handler handler, void *context);

	/* Implemented in id.cpp. */
	ib::Mad make(ib::CmAttribute attribute, u64 tid) const;
	/* Creates a message with both communication IDs. */
	ib::Mad make_pair(ib::CmAttribute attribute, u64 tid) const;
	ib::Mad make_rej(ib_cm_rej_reason reason) const;
	u64 own_tid() const;
	/* Sends a message that needs a response. The event takes effect only if this succeeds. */
	kern::Result<> ask(const ib::Mad &mad, Event event);
	/*
	 * Sends a response and keeps it, so that it can be repeated. If this fails, nothing has
	 * changed.
	 */
	kern::Result<> answer(const ib::Mad &mad, Event to, Event event);
	/* Keeps a response without sending it. Errors: ENOMEM; the previous response stays. */
	kern::Result<> keep_answer(const ib::Mad &mad, Event to);
	kern::Result<> send(const ib::Mad &mad, Port::Cause cause = Port::Cause::own,
			    bool again = false);
	void change(Event event);
	void wait(u32 ms);
	void stop_waiting();
	void on_time();
	void give_up();
	void reject_last(ib_cm_rej_reason reason);
	kern::Result<> renumber();
	kern::Result<> take_route(const Route &route, u32 qpn, kern::Ref<Address> &address);
	const Address *alternate() const { return migration_ ? migration_->loaded.get() : nullptr; }
	u64 lap_tid() const { return migration_ ? migration_->tid : 0; }
	/*
	 * Allocates the memory for an alternate path, unless it is allocated already. Errors:
	 * ENOMEM.
	 */
	kern::Result<> prepare_migration();
	void add_alternate(ib_qp_attr &attr, int &mask) const;
	void forget_connection();

	/* Implemented in deliver.cpp. */
	void deliver(ib_cm_event_type type, Received received = {});
	void run();
	void fill_event(ib_cm_event &event, const Received &received, Id *listener,
			sa_path_rec (&paths)[2]) const;
	void fill_req(ib_cm_event &event, const Received &received, Id *listener,
		      sa_path_rec (&paths)[2]) const;
	void fill_rep(ib_cm_event &event, const ib::CmRep &rep) const;
	void start();
	void leave_listener();

	/* Implemented in receive.cpp. */
	void take_req(const ib::CmReq &req);
	u32 rep_qpn(const ib::CmRep &rep) const;
	kern::Result<> take_rep(const Received &received);
	void take_stale_rep(Port &port, const Received &received);
	void take_mra(const ib::CmMra &mra, Event event);
	kern::Result<> take_lap(const Received &received);
	void take_apr(const ib::CmApr &apr);
	void load_proposed();
	bool is_answered_lap(const Received &received) const;
	void repeat_answer(Port &port, const Received &received, Event event);

	/* State of a new ID until its handler has returned. */
	enum class Turn : u8 { none, waits, has };
	enum class Life : u8 { unknown /* to the consumer */, known, ended };

	/*
	 * Alternate paths. Few connections have one, so this is allocated when the first path is
	 * proposed.
	 */
	struct Migration {
		kern::Ref<Address> loaded, proposed;
		kern::Ref<Address> former; /* used before the migration to the loaded path */
		/* transaction ID of the last LAP that was sent or accepted */
		u64 tid = 0;
		ib::CmPath path{}; /* the path that this LAP proposed */
		u8 loaded_lifetime = 0, proposed_lifetime = 0;
		u8 loaded_timeout = 0, proposed_timeout = 0;
		bool reloaded = false; /* the loaded path was proposed by a LAP */
	};

	/*
	 * Only for a listener: the new IDs for which its handler has not returned yet, and the
	 * counts of those that are being delivered.
	 */
	struct Listening {
		unsigned int backlog = 256;
		unsigned int pending = 0, turns = 0;
		kern::List<Id, &Id::new_node> new_ids;
		kern::Atomic<unsigned int> handlers_running{0};
	};

	/*
	 * There may be tens of thousands of IDs, most of them idle. State that an established
	 * connection does not need is therefore allocated separately, and only while it is needed
	 * (id.cpp).
	 */
	kern::Ref<Device> device_;
	State state_ = State::idle;
	Life life_ = Life::known;
	Role role_ = Role::none;
	/* has been in a connection; the next one needs a new communication ID */
	bool used_ = false;
	bool resolves_ = false;  /* answers a SIDR request: peer_link is in Device::resolutions */
	Turn turn_ = Turn::none; /* used by IDs that were created for a message */
	Event answered_to_ = Event::new_req;
	u8 tries_left_ = 0;

	/* The connection. */
	Port *port_ = nullptr;
	kern::Ref<Address> address_;
	kern::Owned<Migration> migration_;
	u64 tid_ = 0;
	ib_qp_type qp_type_ = IB_QPT_RC;
	u32 local_qpn_ = 0, remote_qpn_ = 0;
	u32 local_psn_ = 0, remote_psn_ = 0;
	u32 address_port_ = 0; /* port of the first message */
	u16 pkey_ = 0, bth_pkey_ = 0;
	u8 path_mtu_ = 0;
	u8 responder_resources_ = 0, initiator_depth_ = 0;
	u8 retry_count_ = 0, rnr_retry_count_ = 0;
	u8 max_retries_ = 0;
	u8 packet_lifetime_ = 0;
	u8 response_timeout_ = 0; /* encoded time in which the peer must respond */
	u8 qp_timeout_ = 0;
	u8 target_ack_delay_ = 0;
	u32 response_wait_ms_ = 0; /* time that a REQ, REP or DREQ waits for a response */

	/* The message that needs a response, and the response to the peer's last message. */
	u32 wait_ms_ = 0;
	u64 deadline_ = 0; /* 0 if no response is awaited */
	RetransmitBuffer asked_, answered_;

	kern::Owned<Listening> listening_; /* set by listen() */
	/* set for IDs that were created for a message, until their handler has returned */
	Id *listener_ = nullptr;

	Deliveries events_;
	kern::Atomic<unsigned long> running_in_{0}; /* context of the running handler, or 0 */

	/* timer_ is declared last, and thus destroyed first. */
	kern::Work work_{kern::method<&Id::run>, this};
	kern::DelayedWork timer_{kern::method<&Id::on_time>, this};
};

/*
 * Copies private data, and fills the rest of the field with zeroes. Errors: EINVAL if the data does
 * not fit.
 */
kern::Result<> fill(kern::Bytes to, kern::ConstBytes from);
kern::Result<kern::ConstBytes> data_of(const void *data, std::size_t length);

} // namespace cm
