// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "fixture.hpp"

namespace rdma_cm_fixture
{

Address ipv4(u8 host, u16 port)
{
	Address address = rdma_cm::any_of(RDMA_AF_INET);
	address.in.addr[0] = 10;
	address.in.addr[3] = host;
	address.in.port = port;
	return address;
}

Address ipv6(u8 host, u16 port)
{
	Address address = rdma_cm::any_of(RDMA_AF_INET6);
	address.in6.addr[0] = 0xfd;
	address.in6.addr[15] = host;
	address.in6.port = port;
	return address;
}

namespace
{

ib_gid gid_of(const Node &node)
{
	ib_gid gid{};
	(void)rdma_query_gid(node.device(), 1, 0, &gid);
	return gid;
}

} // namespace

u8 Addresses::host_of(const Address &address)
{
	return address.family == RDMA_AF_INET ? address.in.addr[3] : address.in6.addr[15];
}

void Addresses::add(const Node &node, u8 host, u16 pkey, u64 net)
{
	add(gid_of(node), host, pkey, net);
}

void Addresses::add(const ib_gid &gid, u8 host, u16 pkey, u64 net)
{
	kern::Guard guard(lock_);
	for (Entry &entry : entries_) {
		if (entry.host)
			continue;
		entry.host = host;
		entry.interface.net = net;
		entry.interface.index = host;
		entry.interface.gid = gid;
		entry.interface.pkey = pkey;
		static constexpr u8 broadcast[16] = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0,   0, 0,
						     0,    0,    0,    0xff, 0xff, 0xff, 0xff};
		__builtin_memcpy(entry.interface.broadcast.raw, broadcast, sizeof(broadcast));
		return;
	}
}

void Addresses::move(u8 host, const Node &node)
{
	kern::Guard guard(lock_);
	for (Entry &entry : entries_)
		if (entry.host == host)
			entry.interface.gid = gid_of(node);
}

kern_net *Addresses::enter(bool of_caller)
{
	entered.fetch_add(1);
	return reinterpret_cast<kern_net *>(&nets_[of_caller ? caller_net : 0]);
}

u64 Addresses::number_of(kern_net &net)
{
	return static_cast<u64>(reinterpret_cast<u8 *>(&net) - nets_);
}

template<class Suits>
kern::Result<Interface> Addresses::find(const Address &address, Suits suits)
{
	kern::Guard guard(lock_);
	for (const Entry &entry : entries_)
		if (entry.host && entry.host == host_of(address) && suits(entry.interface))
			return entry.interface;
	return kern::Error{-EADDRNOTAVAIL};
}

kern::Result<Interface> Addresses::find_in(kern_net &net, const Address &address)
{
	return find(address, [&](const Interface &here) { return here.net == number_of(net); });
}

kern::Result<Interface> Addresses::owner(kern_net &net, const Address &address)
{
	owners.fetch_add(1);
	return find_in(net, address);
}

/*
 * All hosts are on one subnet. Without a source address, the source is host 1 or the namespace's
 * own host.
 */
kern::Result<Interface> Addresses::route(kern_net &net, const Address &to, Address &source)
{
	if (host_of(to) == 99)
		return kern::Error{-ENETUNREACH};
	if (rdma_cm::is_any(source)) {
		const u8 host = number_of(net) ? 3 : 1;
		rdma_cm::set_host(source, rdma_cm::to_ip(to.family == RDMA_AF_INET ? ipv4(host)
										   : ipv6(host)));
	}
	return find_in(net, source);
}

kern::Result<ib_gid> Addresses::neighbour(kern_net &, const Address &to, const Interface &)
{
	asked.fetch_add(1);
	if (!answering.load_acquire())
		return kern::Error{-EAGAIN};
	auto there = find(to, [](const Interface &) { return true; });
	return there.ok() ? kern::Result<ib_gid>(there.value().gid) : kern::Error{-EAGAIN};
}

kern::Result<Interface> Addresses::incoming(const ib_gid &gid, u16 pkey, const Address &to,
					    const Address &)
{
	if (holding.load_acquire()) {
		held.fetch_add(1);
		(void)eventually([&] { return !holding.load_acquire(); });
	}
	const auto there = find(
		to, [&](const Interface &here) { return here.gid == gid && here.pkey == pkey; });
	return there.ok() ? there : kern::Error{-ENODEV};
}

kern::Result<Interface> Addresses::incoming_ethernet(const ib_gid &, const Address &to)
{
	owners.fetch_add(1);
	return find(to, [](const Interface &) { return true; });
}

bool End::open(rdma_ucm_port_space space, ib_qp_type type, bool of_process)
{
	id = (of_process ? rdma_create_user_id : rdma_create_id)(handle, this, space, type);
	if (!rdma::is_err(id))
		return true;
	id = nullptr;
	return false;
}

void End::close()
{
	if (id) {
		rdma_destroy_qp(id);
		rdma_destroy_id(std::exchange(id, nullptr));
	}
	for (auto &one : delivered_)
		one.store_release(0);
}

int End::handle(rdma_cm_id *id, rdma_cm_event *event)
{
	auto *end = static_cast<End *>(id->context);
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST && end->fresh) {
		End *taker = std::exchange(end->fresh, nullptr);
		id->context = taker;
		taker->id = id;
		end = taker;
	}
	if (end->running.fetch_add(1) != 0)
		end->overlaps.fetch_add(1);
	end->last = *event;
	const bool datagrams = id->qp_type == IB_QPT_UD;
	const void *data =
		datagrams ? event->param.ud.private_data : event->param.conn.private_data;
	const u8 length =
		datagrams ? event->param.ud.private_data_len : event->param.conn.private_data_len;
	if (data)
		__builtin_memcpy(end->data, data, length);
	/* An unexpected new id is released. */
	const bool wanted = event->event != RDMA_CM_EVENT_CONNECT_REQUEST || end->id == id;
	const int result = end->on_event ? end->on_event(*end, *event) : wanted ? 0 : -EPERM;
	if (result && end->id == id)
		end->id = nullptr;
	end->running.fetch_sub(1);
	end->delivered_[event->event].fetch_add(1);
	return result;
}

rdma_conn_param End::param(u32 qpn, const char *data)
{
	rdma_conn_param param{};
	param.private_data = data;
	param.private_data_len = static_cast<u8>(__builtin_strlen(data) + 1);
	param.responder_resources = 4;
	param.initiator_depth = 3;
	param.retry_count = 7;
	param.rnr_retry_count = 6;
	param.qp_num = qpn;
	return param;
}

int End::accept(u32 qpn, const char *result)
{
	const auto what = param(qpn, result);
	rdma_lock_handler(id);
	const int status = rdma_accept(id, &what);
	rdma_unlock_handler(id);
	return status;
}

bool End::resolve(const Address &to, const Address *from)
{
	return rdma_resolve_addr(id, from, &to, 2000) == 0 &&
	       receives(RDMA_CM_EVENT_ADDR_RESOLVED) && rdma_resolve_route(id, 2000) == 0 &&
	       receives(RDMA_CM_EVENT_ROUTE_RESOLVED);
}

int End::connect(u32 qpn, const char *result)
{
	const auto what = param(qpn, result);
	return rdma_connect(id, &what);
}

Pair::Pair()
{
	sa.describe_context = this;
	sa.describe = [](void *context, ib::PathRecord &record) {
		auto &pair = *static_cast<Pair *>(context);
		sa_path_rec path{};
		ib_sa_unpack_path(&record, &path);
		const auto lid_of = [&](const ib_gid &gid) {
			return gid == gid_of(pair.b)                      ? 2u
			       : pair.third && gid == gid_of(*pair.third) ? 3u
									  : 1u;
		};
		sa_path_set_dlid(&path, lid_of(path.dgid));
		sa_path_set_slid(&path, lid_of(path.sgid));
		path.mtu = IB_MTU_2048;
		path.rate = IB_RATE_PORT_CURRENT;
		path.packet_life_time = 10;
		path.hop_limit = 1;
		ib_sa_pack_path(&path, &record);
	};
}

bool Pair::stand()
{
	if (!ground.ok() || !a.ok() || !b.ok() || !sa.ok())
		return false;
	ground.addresses.add(a, 1);
	ground.addresses.add(b, 2);
	return active.open();
}

bool Pair::listen(const Address &at, rdma_ucm_port_space space, ib_qp_type type)
{
	Address bound = at;
	rdma_cm::set_port(bound, space, port);
	listener.fresh = &passive;
	return listener.open(space, type) && rdma_bind_addr(listener.id, &bound) == 0 &&
	       rdma_listen(listener.id, 0) == 0;
}

bool Pair::request(const Address &to)
{
	return active.resolve(to) && active.connect() == 0 &&
	       passive.receives(RDMA_CM_EVENT_CONNECT_REQUEST);
}

/* The IDs have no QPs of their own, as with programs. */
bool Pair::establish(const Address &to)
{
	if (!request(to) || passive.accept() != 0 ||
	    !active.receives(RDMA_CM_EVENT_CONNECT_RESPONSE))
		return false;
	rdma_lock_handler(active.id);
	const int status = rdma_accept(active.id, nullptr);
	rdma_unlock_handler(active.id);
	return status == 0 && passive.receives(RDMA_CM_EVENT_ESTABLISHED);
}

} // namespace rdma_cm_fixture
