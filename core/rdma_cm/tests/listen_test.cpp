// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests which IDs may bind and share a port number, and which listener gets a request.
#include <kern/completion.hpp>
#include <kern/thread.hpp>
#include "fixture.hpp"

using namespace rdma_cm_fixture;
using rdma_cm::State;

namespace
{

u16 bound_port(const End &end)
{
	return rdma_cm::port_of(end.id->route.addr.src_addr);
}

/*
 * Programs cannot take all port numbers of the automatic range, whether automatically or by number.
 */
void rcm_07_programs_cannot_bind_all_ports_of_the_local_port_range(Test &test)
{
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.there() && pair->stand());
	Addresses &addresses = pair->ground.addresses;
	addresses.first_port = 5000;
	addresses.last_port = 5015;
	const Address any = rdma_cm::any_of(RDMA_AF_INET);
	Boxed<Ends<15>> programs;
	Boxed<Ends<2>> others;
	ASSERT_TRUE(programs.there() && others.there());
	for (End &end : programs->ends) {
		ASSERT_TRUE(end.open(RDMA_PS_TCP, IB_QPT_RC, true));
		ASSERT_EQ(rdma_bind_addr(end.id, &any), 0);
	}
	End &program = others->ends[0], &kernels = others->ends[1];
	ASSERT_TRUE(program.open(RDMA_PS_TCP, IB_QPT_RC, true));
	EXPECT_EQ(rdma_bind_addr(program.id, &any), -EADDRNOTAVAIL);
	for (u16 port = 5000; port <= 5015; port++) {
		Address named = any;
		rdma_cm::set_port(named, RDMA_PS_TCP, port);
		EXPECT_EQ(rdma_bind_addr(program.id, &named), -EADDRNOTAVAIL);
	}
	ASSERT_TRUE(kernels.open());
	EXPECT_EQ(rdma_bind_addr(kernels.id, &any), 0);
	programs->ends[0].close();
	EXPECT_EQ(rdma_bind_addr(program.id, &any), 0);
}

/*
 * Automatic port numbers are in the range and unique, until none is left. Low port numbers need a
 * privilege.
 */
void rcm_07_automatically_bound_ports_are_unique_and_in_the_local_port_range(Test &test)
{
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.there() && pair->stand());
	Addresses &addresses = pair->ground.addresses;
	addresses.first_port = 5000;
	addresses.last_port = 5003;
	const Address any = rdma_cm::any_of(RDMA_AF_INET);
	Boxed<Ends<4>> all;
	Boxed<Ends<2>> others;
	ASSERT_TRUE(all.there() && others.there());
	auto &ends = all->ends;
	End &more = others->ends[0], &other = others->ends[1];
	u32 seen = 0;
	for (End &end : ends) {
		ASSERT_TRUE(end.open());
		ASSERT_EQ(rdma_bind_addr(end.id, &any), 0);
		ASSERT_TRUE(bound_port(end) >= 5000 && bound_port(end) <= 5003);
		seen |= 1u << (bound_port(end) - 5000);
	}
	EXPECT_EQ(seen, 0xfu);
	ASSERT_TRUE(more.open());
	EXPECT_EQ(rdma_bind_addr(more.id, &any), -EADDRNOTAVAIL);
	EXPECT_EQ(more.state(), State::idle);
	/*
	 * Another port space has its own ports: it can allocate each of them, regardless of the
	 * port that the first space allocated last.
	 */
	const u16 freed = bound_port(ends[0]);
	u16 elsewhere = 0;
	while (elsewhere != freed) {
		ASSERT_TRUE(other.open(RDMA_PS_UDP, IB_QPT_UD));
		ASSERT_EQ(rdma_bind_addr(other.id, &any), 0);
		elsewhere = bound_port(other);
		other.close();
	}
	/* A port that is free again is assigned again, except the most recent one. */
	ends[0].close();
	EXPECT_EQ(rdma_bind_addr(more.id, &any), 0);
	EXPECT_EQ(bound_port(more), freed);

	addresses.privileged.store_release(false);
	Address low = any;
	rdma_cm::set_port(low, RDMA_PS_TCP, 1023);
	for (auto [space, type] :
	     {std::pair{RDMA_PS_IB, IB_QPT_RC}, std::pair{RDMA_PS_UDP, IB_QPT_UD},
	      std::pair{RDMA_PS_TCP, IB_QPT_RC}}) {
		ends[0].close();
		ASSERT_TRUE(ends[0].open(space, type));
		EXPECT_EQ(rdma_bind_addr(ends[0].id, &low), -EACCES);
	}
	addresses.privileged.store_release(true);
	EXPECT_EQ(rdma_bind_addr(ends[0].id, &low), 0);
}

/* A service ID, and whether an id of a port space may have it. */
struct ServiceCase {
	rdma_ucm_port_space of;
	u64 service, mask;
	int expected;
	rdma_ucm_port_space space;
};

constexpr u64 whole = ~u64{0}, but_port = ~u64{0xffff};
constexpr ServiceCase services[] = {
	/* librdmacm probes for AF_IB support with this one. */
	{RDMA_PS_IB, 0x0000000001060000, 0xffffffffffff0000, 0, RDMA_PS_TCP},
	{RDMA_PS_IB, 0x01111b58, whole, 0, RDMA_PS_UDP},
	{RDMA_PS_IB, 0x013f1b58, whole, 0, RDMA_PS_IB},
	{RDMA_PS_IB, 0, 0, 0, RDMA_PS_IB},
	{RDMA_PS_IB, 0x00020000, but_port, -EPROTONOSUPPORT, {}},
	{RDMA_PS_IB, 0x0001000001060000, but_port, -EPROTONOSUPPORT, {}},
	{RDMA_PS_TCP, 0x01061b58, whole, 0, RDMA_PS_TCP},
	{RDMA_PS_TCP, 0x01110000, but_port, -EPROTONOSUPPORT, {}},
	{RDMA_PS_TCP, 0x013f0000, but_port, -EPROTONOSUPPORT, {}},
};

/*
 * In AF_IB addresses the service ID selects the port space, and the ID gets the complete service
 * ID. Such port numbers are shared with those of IP addresses.
 */
void rcm_07_service_id_of_an_af_ib_address_selects_the_port_space(Test &test)
{
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.there() && pair->stand());
	End &end = pair->active, &other = pair->passive;
	Address address = rdma_cm::any_of(RDMA_AF_IB);
	for (const ServiceCase &one : services) {
		end.close();
		ASSERT_TRUE(end.open(one.of));
		address.ib.sid = one.service;
		address.ib.sid_mask = one.mask;
		EXPECT_EQ(rdma_bind_addr(end.id, &address), one.expected);
		if (one.expected)
			continue;
		const u16 port = bound_port(end);
		EXPECT_NE(port, 0);
		EXPECT_EQ(end.id->route.addr.src_addr.ib.sid.value(),
			  rdma_cm::service_of(one.space, port));
		EXPECT_EQ(end.id->route.addr.src_addr.ib.sid_mask.value(), whole);
	}
	Address same = rdma_cm::any_of(RDMA_AF_INET);
	rdma_cm::set_port(same, RDMA_PS_TCP, 0x1b58);
	end.close();
	ASSERT_TRUE(end.open(RDMA_PS_IB) && other.open(RDMA_PS_TCP));
	address.ib.sid = u64{0x01061b58};
	address.ib.sid_mask = whole;
	ASSERT_EQ(rdma_bind_addr(end.id, &address), 0);
	EXPECT_EQ(rdma_bind_addr(other.id, &same), -EADDRNOTAVAIL);
}

/*
 * A program can bind only port numbers, in the port spaces that its ID may use: other services
 * belong to the kernel. A mask gives access to none of them.
 */
void rcm_07_programs_cannot_bind_service_ids_outside_their_port_spaces(Test &test)
{
	struct {
		rdma_ucm_port_space of;
		u64 service;
		int expected;
	} static constexpr asked[] = {
		{RDMA_PS_IB, 0x01061b58, 0},
		{RDMA_PS_IB, 0x01111b58, 0},
		{RDMA_PS_IB, 0x013f1b58, 0},
		{RDMA_PS_IB, 0x1000000000000123, -EPROTONOSUPPORT},
		{RDMA_PS_IB, 0x0001000001061b58, -EPROTONOSUPPORT},
		{RDMA_PS_TCP, 0x01061b58, 0},
		{RDMA_PS_TCP, 0x01111b58, -EPROTONOSUPPORT},
	};
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.there() && pair->stand());
	End &end = pair->active;
	Address to = rdma_cm::any_of(RDMA_AF_IB);
	ASSERT_EQ(rdma_query_gid(pair->b.device(), 1, 0, &to.ib.addr), 0);
	for (const auto &one : asked)
		for (const u64 mask : {whole, u64{0}})
			for (const bool of_process : {true, false}) {
				end.close();
				ASSERT_TRUE(end.open(one.of, IB_QPT_RC, of_process));
				to.ib.sid = one.service;
				to.ib.sid_mask = mask;
				const int expected = of_process ? one.expected : 0;
				EXPECT_EQ(rdma_resolve_addr(end.id, nullptr, &to, 2000), expected);
				if (expected == 0)
					EXPECT_TRUE(end.receives(RDMA_CM_EVENT_ADDR_RESOLVED));
				else
					EXPECT_EQ(end.all(), 0u);
			}
}

/* Two ids that want one port. */
struct PortCase {
	Address first, second;
	bool reuse;
	int afonly; /* option of the second ID; -1: not set */
	int bind, listen;
};

/* Not inline: with all cases in one frame it is too large for the stack. */
[[gnu::noinline]] void check_port(Test &test, const PortCase &one)
{
	Boxed<Ends<3>> three;
	ASSERT_TRUE(three.there());
	auto &[first, second, third] = three->ends;
	ASSERT_TRUE(first.open() && second.open());
	if (one.reuse) {
		EXPECT_EQ(rdma_set_reuseaddr(first.id, 1), 0);
		EXPECT_EQ(rdma_set_reuseaddr(second.id, 1), 0);
	}
	if (one.afonly >= 0)
		EXPECT_EQ(rdma_set_afonly(second.id, one.afonly), 0);
	ASSERT_EQ(rdma_bind_addr(first.id, &one.first), 0);
	EXPECT_EQ(rdma_bind_addr(second.id, &one.second), one.bind);
	if (one.bind)
		return;
	EXPECT_EQ(rdma_listen(second.id, 1), one.listen);
	EXPECT_EQ(second.state(), one.listen ? State::addr_bound : State::listen);
	if (one.listen) {
		/* An id that was refused to listen still shares its port. */
		ASSERT_TRUE(third.open());
		EXPECT_EQ(rdma_set_reuseaddr(third.id, 1), 0);
		EXPECT_EQ(rdma_bind_addr(third.id, &one.second), 0);
		third.close();
		/* Without the other ID, it can listen. */
		first.close();
		EXPECT_EQ(rdma_listen(second.id, 1), 0);
	}
	/* From now on it is not shared. */
	ASSERT_TRUE(third.open());
	EXPECT_EQ(rdma_set_reuseaddr(third.id, 1), 0);
	EXPECT_NE(rdma_bind_addr(third.id, &one.second), 0);
}

/*
 * Several IDs can share a port number if they have different addresses or families, or if all
 * permit it; never with a listener.
 */
void rcm_07_ids_can_share_a_port_if_addresses_do_not_overlap_or_all_set_reuseaddr(Test &test)
{
	constexpr u16 port = 7000;
	const Address any4 = [] {
		Address address = rdma_cm::any_of(RDMA_AF_INET);
		address.in.port = port;
		return address;
	}();
	const Address any6 = [] {
		Address address = rdma_cm::any_of(RDMA_AF_INET6);
		address.in6.port = port;
		return address;
	}();
	const PortCase cases[] = {
		{ipv4(1, port), ipv4(2, port), false, -1, 0, 0},
		{ipv4(1, port), ipv4(1, port), false, -1, -EADDRINUSE, 0},
		{ipv4(1, port), any4, false, -1, -EADDRNOTAVAIL, 0},
		{any4, ipv4(1, port), false, -1, -EADDRNOTAVAIL, 0},
		{any4, any6, false, 0, -EADDRNOTAVAIL, 0},
		{any4, any6, false, 1, 0, 0},
		{ipv4(1, port), ipv4(1, port), true, -1, 0, -EADDRINUSE},
		{any4, any4, true, -1, 0, -EADDRINUSE},
	};
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.there() && pair->stand());
	for (const PortCase &one : cases)
		check_port(test, one);
}

/* A call in a separate task. */
template<class Call>
struct Apart {
	Call call;
	kern::Completion done{};
	int status = 1;

	int run()
	{
		status = call();
		done.complete();
		return 0;
	}
};
template<class Call>
Apart(Call) -> Apart<Call>;

/* An ID whose listen fails keeps sharing its port number with others meanwhile. */
void rcm_07_bind_to_a_shared_port_succeeds_during_a_failing_listen_call_on_the_same_port(Test &test)
{
	constexpr u16 low = 700;
	Address any4 = rdma_cm::any_of(RDMA_AF_INET);
	any4.in.port = low;
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.there() && pair->stand());
	Boxed<Ends<3>> three;
	ASSERT_TRUE(three.there());
	auto &[listener, beside, late] = three->ends;
	for (End *end : {&listener, &beside, &late}) {
		ASSERT_TRUE(end->open());
		ASSERT_EQ(rdma_set_reuseaddr(end->id, 1), 0);
	}
	ASSERT_EQ(rdma_bind_addr(listener.id, &any4), 0);
	ASSERT_EQ(rdma_bind_addr(beside.id, &any4), 0);

	Addresses &addresses = pair->ground.addresses;
	addresses.holding_ports.store_release(true);
	Apart binding{[id = late.id, &any4] { return rdma_bind_addr(id, &any4); }};
	auto binder = kern::Thread::create("rdma_cm_test", kern::method<&decltype(binding)::run>,
					   &binding);
	ASSERT_OK(binder);
	ASSERT_TRUE(eventually([&] { return addresses.held.load_acquire() == 1; }));
	Apart listening{[id = listener.id] { return rdma_listen(id, 1); }};
	auto thread = kern::Thread::create("rdma_cm_test", kern::method<&decltype(listening)::run>,
					   &listening);
	ASSERT_OK(thread);
	/* It waits for the manager's lock while it holds its own. */
	kern::NoIoMutex &lock = rdma_cm::Id::of(listener.id).lock();
	EXPECT_TRUE(eventually([&] {
		if (!lock.try_lock())
			return true;
		lock.release();
		return false;
	}));
	addresses.holding_ports.store_release(false);
	ASSERT_TRUE(binding.done.wait_for(60'000) && listening.done.wait_for(60'000));
	EXPECT_EQ(binding.status, 0);
	EXPECT_EQ(listening.status, -EADDRINUSE);
}

/*
 * A request is passed to the listener with its address. A wildcard listener gets all others, also
 * on devices that are added later.
 */
void rcm_08_request_reaches_the_listener_of_its_destination_address(Test &test)
{
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.there() && pair->stand());
	ASSERT_TRUE(pair->listen(ipv4(2)));
	EXPECT_TRUE(pair->listener.id->device == pair->b.device());
	Boxed<Ends<3>> three;
	ASSERT_TRUE(three.there());
	auto &[six, six_passive, another] = three->ends;
	six.fresh = &six_passive;
	Address any6 = rdma_cm::any_of(RDMA_AF_INET6);
	any6.in6.port = Pair::port;
	ASSERT_TRUE(six.open());
	ASSERT_EQ(rdma_set_afonly(six.id, 1), 0);
	ASSERT_EQ(rdma_bind_addr(six.id, &any6), 0);
	ASSERT_EQ(rdma_listen(six.id, 1), 0);
	ASSERT_TRUE(pair->establish());

	ASSERT_TRUE(another.open() && another.resolve(ipv6(2, Pair::port)));
	ASSERT_EQ(another.connect(0x124), 0);
	ASSERT_TRUE(six_passive.receives(RDMA_CM_EVENT_CONNECT_REQUEST));
	/* There is no IPv4 listener on host 1. */
	another.close();
	ASSERT_TRUE(another.open() && another.resolve(ipv4(1, Pair::port)));
	ASSERT_EQ(another.connect(0x125), 0);
	ASSERT_TRUE(another.receives(RDMA_CM_EVENT_REJECTED));

	Node later(3);
	pair->ground.addresses.add(later, 3);
	/*
	 * With this subnet administration their path leads to LID 1, so the test only checks that
	 * the port is listened on.
	 */
	ib_cm_id *taken = ib_create_cm_id(
		later.device(), [](ib_cm_id *, const ib_cm_event *) { return 0; }, nullptr);
	ASSERT_FALSE(rdma::is_err(taken));
	EXPECT_EQ(ib_cm_listen(taken, rdma_cm::service_of(RDMA_PS_TCP, Pair::port), u64{0}),
		  -EBUSY);
	six.close();
	pair->listener.close();
	EXPECT_EQ(ib_cm_listen(taken, rdma_cm::service_of(RDMA_PS_TCP, Pair::port), u64{0}), 0);
	ib_destroy_cm_id(taken);
}

/*
 * The contents of a request are not trusted: other versions, other types and unknown addresses are
 * refused.
 */
void rcm_08_requests_with_an_invalid_version_or_ip_address_are_rejected(Test &test)
{
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.there() && pair->ok());
	struct {
		u8 offset, value;
	} const changes[] = {{0, 0x10}, {0, 0x01}, {32, 127}, {32, 224},
			     {32, 0},   {16, 127}, {16, 239}, {35, 7}};
	for (const auto &change : changes) {
		End &end = pair->active;
		end.close();
		ASSERT_TRUE(end.open() && end.resolve(ipv4(2, Pair::port)));
		auto header = rdma_cm::make_header(ipv4(1, 5000), ipv4(2, Pair::port));
		auto *bytes = reinterpret_cast<u8 *>(&header);
		bytes[change.offset] = change.value;
		if (change.offset == 32 && change.value == 0)
			bytes[35] = 0;
		struct Answer {
			kern::Atomic<int> reason{0};
		} answer;
		ib_cm_id *outsider = ib_create_cm_id(
			pair->a.device(),
			[](ib_cm_id *id, const ib_cm_event *event) {
				if (event->event == IB_CM_REJ_RECEIVED)
					static_cast<Answer *>(id->context)
						->reason.store_release(
							event->param.rej_rcvd.reason);
				return 0;
			},
			&answer);
		ASSERT_FALSE(rdma::is_err(outsider));
		ib_cm_req_param req{};
		req.primary_path = &end.id->route.path_rec;
		req.service_id = rdma_cm::service_of(RDMA_PS_TCP, Pair::port);
		req.qp_num = 0x700;
		req.qp_type = IB_QPT_RC;
		req.private_data = bytes;
		req.private_data_len = sizeof(header);
		req.remote_cm_response_timeout = req.local_cm_response_timeout = 16;
		EXPECT_EQ(ib_send_cm_req(outsider, &req), 0);
		EXPECT_TRUE(eventually([&] { return answer.reason.load_acquire() != 0; }));
		EXPECT_EQ(answer.reason.load_acquire(), IB_CM_REJ_CONSUMER_DEFINED);
		ib_destroy_cm_id(outsider);
	}
	EXPECT_EQ(pair->listener.all() + pair->passive.all(), 0u);
}

/*
 * Random private data is not taken for an IP address, is refused, or is the same when it is encoded
 * again from the decoded values.
 */
void rcm_08_addresses_decoded_from_random_private_data_encode_to_the_same_bytes(Test &test)
{
	using rdma_cm::IpHeader;
	kern::SeededRandom random(test.seed());
	for (int round = 0; round < 100'000; round++) {
		u8 bytes[sizeof(IpHeader)];
		for (u8 &byte : bytes)
			byte = static_cast<u8>(random.next() >> 56);
		/* Most of the data are nearly valid. */
		if (random.below(4))
			bytes[0] = 0;
		if (random.below(4))
			bytes[1] =
				static_cast<u8>((random.below(2) ? 0x40 : 0x60) | random.below(16));
		const auto read = rdma_cm::read_header(bytes, RDMA_PS_TCP, Pair::port);
		const bool v4 = bytes[1] >> 4 == 4, v6 = bytes[1] >> 4 == 6;
		ASSERT_EQ(read.ok(), (!v4 && !v6) || bytes[0] == 0);
		if (!read.ok())
			continue;
		const rdma_cm::Ends &ends = read.value();
		ASSERT_EQ(ends.local.family, v4   ? u16{RDMA_AF_INET}
					     : v6 ? u16{RDMA_AF_INET6}
						  : u16{0});
		ASSERT_EQ(ends.header, v4 || v6 ? sizeof(IpHeader) : 0u);
		if (!v4 && !v6)
			continue;
		ASSERT_EQ(rdma_cm::port_of(ends.local), Pair::port);
		const IpHeader again = rdma_cm::make_header(ends.peer, ends.local);
		const std::size_t begin = v4 ? 12 : 0;
		ASSERT_EQ(__builtin_memcmp(&again.source_port,
					   bytes + offsetof(IpHeader, source_port), 2),
			  0);
		ASSERT_EQ(__builtin_memcmp(again.source + begin,
					   bytes + offsetof(IpHeader, source) + begin, 16 - begin),
			  0);
		ASSERT_EQ(__builtin_memcmp(again.destination + begin,
					   bytes + offsetof(IpHeader, destination) + begin,
					   16 - begin),
			  0);
	}
}

/* A connection that is never established. */
class Loose final : public rdma_cm::Connection
{
public:
	kern::Result<> connect(const rdma_conn_param &) override { return {}; }
	kern::Result<> accept(const rdma_conn_param *) override { return {}; }
	kern::Result<> reject(const void *, u8, u8) override { return {}; }
	kern::Result<> disconnect() override { return {}; }
	kern::Result<> notify(ib_event_type) override { return {}; }
	kern::Result<> qp_attributes(ib_qp_attr &, int &) override { return {}; }
};

/* A request to host 2, whose interface moves while the new id is made. */
class Moving final : public rdma_cm::Request
{
public:
	explicit Moving(Pair &of)
	    : pair(of), header(rdma_cm::make_header(ipv4(1, 5000), ipv4(2, Pair::port)))
	{
		device = pair.b.device();
		port_num = 1;
		qp_type = IB_QPT_RC;
		pkey = IB_DEFAULT_PKEY_FULL;
		(void)rdma_query_gid(device, 1, 0, &sgid);
		private_data = &header;
		private_data_len = sizeof(header);
	}
	kern::Result<kern::Owned<rdma_cm::Connection>> take(rdma_cm::Id &id) override
	{
		pair.ground.addresses.move(2, pair.a);
		rdma_cm::check_interfaces();
		if (id.handler_lock().try_lock()) {
			could_be_notified = true;
			id.handler_lock().unlock();
		}
		auto made = KERN_TRY(kern::make<Loose>(kern::Gfp::kernel));
		return kern::Owned<rdma_cm::Connection>(std::move(made));
	}
	void kept() override {}
	void not_accepted() override {}

	Pair &pair;
	const rdma_cm::IpHeader header;
	/* Set if the id could get an event before the consumer knows it. */
	bool could_be_notified = false;
};

/*
 * A new ID gets events about its interface only after the event of its request. An ID that is
 * rejected gets none.
 */
void rcm_08_request_event_is_the_first_event_of_a_new_id(Test &test)
{
	for (bool wanted : {true, false}) {
		Boxed<Pair> pair;
		ASSERT_TRUE(pair.there() && pair->ok());
		if (!wanted)
			pair->listener.fresh = nullptr;
		Moving request(*pair);
		const auto service = kern::Ref<rdma_cm::Service>::share(
			*rdma_cm::Id::of(pair->listener.id).service);
		EXPECT_EQ(rdma_cm::take_request(*service, request), wanted ? 0 : -EPERM);
		EXPECT_FALSE(request.could_be_notified);
		if (wanted)
			EXPECT_TRUE(pair->passive.receives(RDMA_CM_EVENT_ADDR_CHANGE));
		EXPECT_EQ(pair->passive.all(), wanted ? 2u : 0u);
		EXPECT_EQ(pair->listener.all(), wanted ? 0u : 1u);
	}
}

} // namespace

SOFT_SUITES(
	rdma_cm_listen,
	KUNIT_CASE(rcm_07_automatically_bound_ports_are_unique_and_in_the_local_port_range),
	KUNIT_CASE(rcm_07_programs_cannot_bind_all_ports_of_the_local_port_range),
	KUNIT_CASE(rcm_07_service_id_of_an_af_ib_address_selects_the_port_space),
	KUNIT_CASE(rcm_07_programs_cannot_bind_service_ids_outside_their_port_spaces),
	KUNIT_CASE(rcm_07_ids_can_share_a_port_if_addresses_do_not_overlap_or_all_set_reuseaddr),
	KUNIT_CASE(
		rcm_07_bind_to_a_shared_port_succeeds_during_a_failing_listen_call_on_the_same_port),
	KUNIT_CASE(rcm_08_request_reaches_the_listener_of_its_destination_address),
	KUNIT_CASE(rcm_08_requests_with_an_invalid_version_or_ip_address_are_rejected),
	KUNIT_CASE(rcm_08_addresses_decoded_from_random_private_data_encode_to_the_same_bytes),
	KUNIT_CASE(rcm_08_request_event_is_the_first_event_of_a_new_id));
