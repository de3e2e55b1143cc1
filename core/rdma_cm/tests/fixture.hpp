// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides fixtures for the test suites of the RDMA CM (rdma_cm): IP addresses that need no network
// interface, nodes that have these addresses, and endpoints that record their events.
#pragma once
#include <kern/atomic.hpp>
#include <kern/kunit_fixture.hpp>
#include <kern/lock.hpp>
#include "../../mad/tests/sa_fixture.hpp"
#include "../ib_transport.hpp"
#include "../iw_transport.hpp"
#include "../manager.hpp"

namespace rdma_cm_fixture
{

using fixture::eventually;
using kern::kunit::Boxed;
using kern::kunit::Test;
using mad_fixture::Administrator;
using mad_fixture::Node;
using rdma_cm::Address;
using rdma_cm::Interface;

/* 10.0.0.host and fd00::host. */
Address ipv4(u8 host, u16 port = 0);
Address ipv6(u8 host, u16 port = 0);

/* Defines the addresses of interfaces, and which neighbours are resolved. */
class Addresses final : public rdma_cm::Resolver
{
public:
	/* A node's port has 10.0.0.host and fd00::host, in the namespace of that number. */
	void add(const Node &node, u8 host, u16 pkey = IB_DEFAULT_PKEY_FULL, u64 net = 0);
	/* Does the same for the interface of an RNIC, which is not found by a GID. */
	void add_rnic(u8 host) { add(ib_gid{}, host, 0, 0); }
	/* The interface of a host is on the port of that GID from now on. */
	void move(u8 host, const Node &node);

	kern_net *enter(bool of_caller) override;
	void leave(kern_net &) override { entered.fetch_sub(1); }
	u64 number_of(kern_net &net) override;
	kern::Result<Interface> owner(kern_net &net, const Address &address) override;
	kern::Result<Interface> route(kern_net &net, const Address &to, Address &source) override;
	kern::Result<ib_gid> neighbour(kern_net &net, const Address &to,
				       const Interface &interface) override;
	kern::Result<Interface> incoming(const ib_gid &gid, u16 pkey, const Address &to,
					 const Address &peer) override;
	kern::Result<Interface> incoming_ethernet(const ib_gid &gid, const Address &to) override;
	void local_ports(kern_net &, u16 &first, u16 &last) override
	{
		first = first_port;
		last = last_port;
	}
	/* The manager is locked then. */
	bool may_use_low_ports(kern_net &) override
	{
		if (holding_ports.load_acquire()) {
			held.fetch_add(1);
			(void)eventually([&] { return !holding_ports.load_acquire(); });
		}
		return privileged.load_acquire();
	}
	bool v6only(kern_net &) override { return false; }

	/* The namespace of the calling process; how often one is held. */
	u64 caller_net = 0;
	kern::Atomic<int> entered{0};
	/* If set, a caller that looks up the interface of a request has to wait; how many did. */
	kern::Atomic<bool> holding{false};
	/* Does the same for requests for a low port. */
	kern::Atomic<bool> holding_ports{false};
	kern::Atomic<unsigned int> held{0};
	/* Number of lookups of an address's owner. */
	kern::Atomic<unsigned int> owners{0};
	/* True if neighbours answer; how often they were asked for. */
	kern::Atomic<bool> answering{true};
	kern::Atomic<unsigned int> asked{0};
	kern::Atomic<bool> privileged{true};
	u16 first_port = 32768, last_port = 60999;

private:
	struct Entry {
		u8 host = 0; /* 0: none */
		Interface interface;
	};
	static u8 host_of(const Address &address);
	void add(const ib_gid &gid, u8 host, u16 pkey, u64 net);
	template<class Suits>
	kern::Result<Interface> find(const Address &address, Suits suits);
	kern::Result<Interface> find_in(kern_net &net, const Address &address);

	/* The address of an element represents the namespace of that number. */
	u8 nets_[2]{};
	kern::Mutex lock_{KERN_LOCK_CLASS("rdma_cm_test.addresses")};
	Entry entries_[4];
};

/* The manager, for the duration of a test. */
class Ground
{
public:
	Ground() : ok_(rdma_cm::Manager::start(addresses, transport_, iwarp_).ok()) {}
	~Ground()
	{
		if (ok_)
			rdma_cm::Manager::stop();
	}
	Ground(const Ground &) = delete;
	Ground &operator=(const Ground &) = delete;
	bool ok() const { return ok_; }

	Addresses addresses;

private:
	rdma_cm::IbTransport transport_;
	rdma_cm::IwTransport iwarp_;
	bool ok_;
};

/* One ID, and the events that its handler received. */
class End
{
public:
	/* Runs in the handler, and provides its return value. */
	using Handler = int (*)(End &end, const rdma_cm_event &event);

	explicit End(Handler what = nullptr) : on_event(what) {}
	~End() { close(); }
	End(const End &) = delete;
	End &operator=(const End &) = delete;

	bool open(rdma_ucm_port_space space = RDMA_PS_TCP, ib_qp_type type = IB_QPT_RC,
		  bool of_process = false);
	/* Destroys the ID, and forgets its events. */
	void close();

	unsigned int delivered(rdma_cm_event_type type) const
	{
		return delivered_[type].load_acquire();
	}
	bool receives(rdma_cm_event_type type, unsigned int times = 1) const
	{
		return eventually([&] { return delivered(type) >= times; });
	}
	unsigned int all() const
	{
		unsigned int sum = 0;
		for (const auto &one : delivered_)
			sum += one.load_acquire();
		return sum;
	}
	rdma_cm::State state() const { return rdma_cm::Id::of(id).state(); }
	/* Holds the handler lock, as rdma/rdma_cm.h requires. */
	int accept(u32 qpn = 0x456, const char *data = "reply");
	static rdma_conn_param param(u32 qpn, const char *data = "request");

	/* Resolves the address and the route. */
	bool resolve(const Address &to, const Address *from = nullptr);
	int connect(u32 qpn = 0x123, const char *data = "request");

	rdma_cm_id *id = nullptr;
	Handler on_event;
	End *fresh = nullptr; /* on a listener: the End that gets the next new ID */
	rdma_cm_event last{}; /* pointers apart */
	u8 data[256]{};
	kern::Atomic<unsigned int> running{}, overlaps{};

private:
	static int handle(rdma_cm_id *id, rdma_cm_event *event);

	kern::Atomic<unsigned int> delivered_[RDMA_CM_EVENT_TIMEWAIT_EXIT + 1]{};
};

/* Two nodes with an address each, of which the first has the SM; a listener on the second. */
struct Pair {
	static constexpr u16 port = 7174;

	Ground ground;
	Node a{1}, b{2};
	Administrator sa{a};
	End active, listener, passive;
	/* One at LID 3 that the administrator knows, while there is no question on its way. */
	const Node *third = nullptr;

	Pair();
	/* Without a listener. */
	bool stand();
	bool ok() { return stand() && listen(); }
	bool listen(const Address &at = rdma_cm::any_of(RDMA_AF_INET),
		    rdma_ucm_port_space space = RDMA_PS_TCP, ib_qp_type type = IB_QPT_RC);
	/* Connects until CONNECT_REQUEST, and completely. */
	bool request(const Address &to = ipv4(2, port));
	bool establish(const Address &to = ipv4(2, port));
};

/*
 * Endpoints in addition to those of a pair; declared after it, because they must be destroyed
 * first.
 */
template<unsigned int count>
struct Ends {
	End ends[count];
};

} // namespace rdma_cm_fixture
