// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements both ends of the connections that weft-ucma-probe makes.
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <random>

#include "tests/ucma_probe/node.hpp"
#include "tests/ucma_probe/queues.hpp"

namespace weft::ucma
{

namespace
{

using Random = std::mt19937_64;

constexpr std::uint64_t kListenerUid = 1, kDatagramListenerUid = 2;
constexpr int kBacklog = 8;
constexpr std::uint32_t kResolveMs = 2000;
/* These numbers belong to no QP. */
constexpr std::uint32_t kServerQp = 0x200000, kClientQp = 0x100000;
/* A client waits longer than the CM repeats a request (16 times 4 s). */
constexpr int kLongestWaitMs = 80000;
constexpr unsigned kWindow = 4;

rdma_ucm_conn_param parameters(std::uint32_t qp)
{
	rdma_ucm_conn_param result{};
	result.qp_num = qp;
	result.private_data_len = 16;
	result.responder_resources = 1;
	result.initiator_depth = 1;
	result.retry_count = 7;
	result.rnr_retry_count = 7;
	result.valid = 1;
	return result;
}

/* Waits for an event. Returns false after `milliseconds` without one. */
bool wait_for_event(const Node &node, rdma_ucm_event_resp &event, int milliseconds)
{
	for (;;) {
		const long error = node.get_event(event);
		if (!error)
			return true;
		pollfd waiting = {.fd = node.number(), .events = POLLIN, .revents = 0};
		/* Another error, such as ENOMEM, leaves the event in its queue. */
		if (error != EAGAIN)
			::usleep(1000);
		else if (::poll(&waiting, 1, milliseconds) <= 0)
			return false;
	}
}

/* Creates an ID that listens. Repeats this, because an allocation may fail. */
void listen(const Node &node, std::uint64_t uid, rdma_ucm_port_space space, std::uint16_t port)
{
	for (;; ::usleep(50000)) {
		rdma_ucm_bind_ip bind{};
		std::uint32_t id;
		long error = node.create_id(uid, space, id);
		if (error)
			continue;
		bind.addr = ipv4_address(INADDR_ANY, port);
		bind.id = id;
		error = node.command(RDMA_USER_CM_CMD_BIND_IP, bind);
		if (!error)
			error = node.command(RDMA_USER_CM_CMD_LISTEN,
					     rdma_ucm_listen{.id = id, .backlog = kBacklog});
		if (!error)
			return;
		node.destroy_id(id);
	}
}

long accept(const Node &node, Queues &queues, std::uint32_t id)
{
	return with_qp(queues, kServerQp + id, [&](std::uint32_t qp) {
		rdma_ucm_accept request{};
		/* Events of an ID without a uid are not reported. */
		request.uid = (std::uint64_t{1} << 32) | id;
		request.conn_param = parameters(qp);
		request.id = id;
		return node.command(RDMA_USER_CM_CMD_ACCEPT, request);
	});
}

/* Handles an event of serve(). */
void answer(const Node &node, Queues &queues, const rdma_ucm_event_resp &event, std::uint64_t seed,
	    Random &random)
{
	const std::uint64_t choice = seed ? random() % 8 : 0;

	switch (static_cast<Event>(event.event)) {
	case Event::connect_request:
		if (choice < 5) {
			if (accept(node, queues, event.id))
				node.destroy_id(event.id);
		} else if (choice == 5) {
			rdma_ucm_reject request{};
			request.id = event.id;
			request.private_data_len = static_cast<std::uint8_t>(random() % 149);
			node.command(RDMA_USER_CM_CMD_REJECT, request);
			node.destroy_id(event.id);
		} else if (choice == 6) {
			node.destroy_id(event.id);
		}
		/* Otherwise the ID stays until the program exits. */
		break;
	case Event::established:
		if (choice >= 6)
			node.command(RDMA_USER_CM_CMD_DISCONNECT, rdma_ucm_disconnect{event.id});
		break;
	default:
		if (event.uid == kListenerUid || event.uid == kDatagramListenerUid)
			break;
		if (choice < 6)
			node.command(RDMA_USER_CM_CMD_DISCONNECT, rdma_ucm_disconnect{event.id});
		node.destroy_id(event.id);
	}
}

/* Several connections of a client at the same time, on one file. */
class Client
{
public:
	Client(std::uint32_t address, std::uint16_t port, std::uint64_t seed)
	    : address_(address), port_(port), seed_(seed), random_(seed)
	{
	}

	unsigned long run(unsigned long count);

private:
	bool chance(unsigned one_in) { return seed_ && random_() % one_in == 0; }
	/* Creates an ID and resolves the address. */
	void begin(std::uint64_t uid);
	void handle(const rdma_ucm_event_resp &event);
	/* Returns an errno if the ID is not needed any more. */
	long advance(std::uint32_t id, bool datagrams, Event event);
	long connect(std::uint32_t id);
	long complete(std::uint32_t id);
	void destroy_all();

	const std::uint32_t address_;
	const std::uint16_t port_;
	const std::uint64_t seed_;
	Random random_;
	Node node_;
	Queues queues_;
	struct Connection {
		std::uint32_t id;
		bool datagrams;
	};
	std::map<std::uint64_t, Connection> connections_;
	unsigned long established_ = 0;
};

void Client::begin(std::uint64_t uid)
{
	Connection made{};

	made.datagrams = chance(4);
	if (node_.create_id(uid, made.datagrams ? RDMA_PS_UDP : RDMA_PS_TCP, made.id))
		return;
	rdma_ucm_resolve_ip request{};
	request.dst_addr =
		ipv4_address(address_, static_cast<std::uint16_t>(port_ + made.datagrams));
	request.id = made.id;
	request.timeout_ms = chance(8) ? static_cast<std::uint32_t>(random_() % 50) : kResolveMs;
	if (node_.command(RDMA_USER_CM_CMD_RESOLVE_IP, request) || chance(16))
		node_.destroy_id(made.id);
	else
		connections_[uid] = made;
}

long Client::connect(std::uint32_t id)
{
	return with_qp(queues_, kClientQp + id, [&](std::uint32_t qp) {
		rdma_ucm_connect request{};
		request.conn_param = parameters(qp);
		request.id = id;
		return node_.command(RDMA_USER_CM_CMD_CONNECT, request);
	});
}

/* Sends the RTU, after the queries with which librdmacm modifies its QP. */
long Client::complete(std::uint32_t id)
{
	for (const std::uint32_t state : {kQpStateInit, kQpStateRtr, kQpStateRts}) {
		ib_uverbs_qp_attr attributes;
		rdma_ucm_init_qp_attr request{};
		request.id = id;
		request.qp_state = state;
		if (const long error =
			    node_.command(RDMA_USER_CM_CMD_INIT_QP_ATTR, request, attributes))
			return error;
	}
	rdma_ucm_accept request{};
	request.id = id;
	return node_.command(RDMA_USER_CM_CMD_ACCEPT, request);
}

long Client::advance(std::uint32_t id, bool datagrams, Event event)
{
	switch (event) {
	case Event::addr_resolved: {
		const long error = node_.command(RDMA_USER_CM_CMD_RESOLVE_ROUTE,
						 rdma_ucm_resolve_route{id, kResolveMs});
		return chance(16) ? ECANCELED : error;
	}
	case Event::route_resolved: {
		const long error = connect(id);
		return chance(8) ? ECANCELED : error;
	}
	case Event::connect_response: {
		if (chance(8))
			return ECANCELED;
		if (const long error = complete(id))
			return error;
		established_++;
		const long error =
			node_.command(RDMA_USER_CM_CMD_DISCONNECT, rdma_ucm_disconnect{id});
		return chance(4) ? ECANCELED : error;
	}
	case Event::established:
		established_ += datagrams;
		if (chance(4))
			node_.command(RDMA_USER_CM_CMD_NOTIFY,
				      rdma_ucm_notify{id, kCommunicationEstablished});
		return datagrams ? ECANCELED : 0;
	case Event::disconnected:
		/* The ID stays until its time-wait state is over, or is destroyed before. */
		return chance(2) ? 0 : ECANCELED;
	default:
		return ECANCELED;
	}
}

void Client::handle(const rdma_ucm_event_resp &event)
{
	const auto found = connections_.find(event.uid);
	if (found == connections_.end())
		return;
	if (!advance(found->second.id, found->second.datagrams, static_cast<Event>(event.event)))
		return;
	node_.destroy_id(found->second.id);
	connections_.erase(found);
}

void Client::destroy_all()
{
	for (const auto &[uid, connection] : connections_)
		node_.destroy_id(connection.id);
	connections_.clear();
}

unsigned long Client::run(unsigned long count)
{
	constexpr int waits[] = {20, 500, 5000};
	unsigned long begun = 0;

	while (begun < count || !connections_.empty()) {
		rdma_ucm_event_resp event;
		while (begun < count && connections_.size() < kWindow)
			begin(++begun);
		if (connections_.empty())
			continue;
		if (wait_for_event(node_, event, seed_ ? waits[random_() % 3] : kLongestWaitMs))
			handle(event);
		else
			destroy_all();
	}
	return established_;
}

} // namespace

void serve(std::uint16_t port, std::uint64_t seed)
{
	const Node node;
	Queues queues;
	Random random(seed);

	listen(node, kListenerUid, RDMA_PS_TCP, port);
	listen(node, kDatagramListenerUid, RDMA_PS_UDP, static_cast<std::uint16_t>(port + 1));
	std::puts("ready");
	std::fflush(stdout);
	for (;;) {
		rdma_ucm_event_resp event;
		if (wait_for_event(node, event, -1))
			answer(node, queues, event, seed, random);
	}
}

unsigned long connect_to(std::uint32_t address, std::uint16_t port, std::uint64_t seed,
			 unsigned long count)
{
	return Client(address, port, seed).run(count);
}

} // namespace weft::ucma
