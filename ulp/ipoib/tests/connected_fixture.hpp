// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides the fixture of the connected mode suites: a subnet whose SA resolves all paths.
#pragma once
#include "fixture.hpp"

#include <rdma/ib_cm.h>

namespace ipoib
{
struct TimePasses {
	static void on(Interface &interface) { interface.run_periodic(); }
};
} // namespace ipoib

namespace ipoib::fixture
{

using Mode = Interface::Mode;

inline int set_mode(const Host &host, Mode mode)
{
	kern::RtnlGuard rtnl;
	return host.interface().change({.pkey = -1, .mode = static_cast<int>(mode), .umcast = -1});
}

inline ib_gid gid_of(const Host &host, unsigned int index = 0)
{
	ib_gid gid{};
	(void)rdma_query_gid(host.device(), 1, static_cast<int>(index), &gid);
	return gid;
}

/* Two hosts in a subnet whose SA knows the paths in both directions. */
struct Subnet : Pair {
	explicit Subnet(soft_context context = SOFT_HARD_INTERRUPT,
			soft_notify notify = SOFT_NOTIFY_FIRES, unsigned int gids = 0)
	    : Pair(notify, context, gids)
	{
		administrator.describe_context = this;
		administrator.describe = [](void *context, ib::PathRecord &record) {
			auto &subnet = *static_cast<Subnet *>(context);
			const auto lid = [&](const ib_gid &gid) -> u16 {
				u32 port;
				u16 index;
				return ib_find_cached_gid(subnet.a.device(), &gid, &port, &index)
					       ? 77
					       : 2;
			};
			sa_path_rec path{};
			ib_sa_unpack_path(&record, &path);
			sa_path_set_dlid(&path, lid(path.dgid));
			sa_path_set_slid(&path, lid(path.sgid));
			path.mtu = IB_MTU_2048;
			path.rate = IB_RATE_PORT_CURRENT;
			path.packet_life_time = 10;
			path.hop_limit = 1;
			ib_sa_pack_path(&path, &record);
		};
	}
	bool begin(Mode of_a, Mode of_b) const
	{
		return set_mode(a, of_a) == 0 && set_mode(b, of_b) == 0 && Pair::begin();
	}
};

/* Two running hosts in connected mode. */
struct BothConnected : Subnet {
	explicit BothConnected(soft_context context = SOFT_HARD_INTERRUPT,
			       soft_notify notify = SOFT_NOTIFY_FIRES)
	    : Subnet(context, notify),
	      begun_(Subnet::ok() && begin(Mode::connected, Mode::connected))
	{
	}
	bool ok() const { return begun_; }

private:
	const bool begun_;
};

/* Requests connections, as a program with its own code may. */
class Asker
{
public:
	Asker(const Subnet &subnet, const void *data, u8 length, unsigned int gid_index = 0)
	{
		id_ = ib_create_cm_id(subnet.a.device(), on_event, this);
		if (rdma::is_err(id_))
			return;
		sa_path_rec path{};
		path.sgid = gid_of(subnet.a, gid_index);
		path.dgid = gid_of(subnet.b);
		sa_path_set_slid(&path, 2);
		sa_path_set_dlid(&path, 77);
		path.pkey = u16{IB_DEFAULT_PKEY_FULL};
		path.mtu = IB_MTU_2048;
		path.rate = IB_RATE_PORT_CURRENT;
		path.packet_life_time = 10;
		path.hop_limit = 1;
		ib_cm_req_param req{};
		req.primary_path = &path;
		req.service_id = connection_service(subnet.b.interface().qp()->qp_num);
		req.qp_num = next_qpn_.fetch_add(1);
		req.qp_type = IB_QPT_RC;
		req.private_data = data;
		req.private_data_len = length;
		req.remote_cm_response_timeout = req.local_cm_response_timeout = 20;
		req.max_cm_retries = 15;
		if (ib_send_cm_req(id_, &req))
			outcome_.store_release(never_sent);
	}
	~Asker()
	{
		if (!rdma::is_err(id_))
			ib_destroy_cm_id(id_);
	}
	Asker(const Asker &) = delete;
	Asker &operator=(const Asker &) = delete;

	static constexpr int waits = -1, agreed = 0, never_sent = -2;
	/* Returns `agreed`, or the reason of the rejection. */
	int outcome() const
	{
		(void)eventually([&] { return outcome_.load_acquire() != waits; });
		return outcome_.load_acquire();
	}

private:
	static int on_event(ib_cm_id *id, const ib_cm_event *event)
	{
		auto &self = *static_cast<Asker *>(id->context);
		if (event->event == IB_CM_REP_RECEIVED)
			self.outcome_.store_release(ib_send_cm_rtu(id, nullptr, 0) ? never_sent
										   : agreed);
		else if (event->event == IB_CM_REJ_RECEIVED)
			self.outcome_.store_release(event->param.rej_rcvd.reason);
		return 0;
	}

	static inline constinit kern::Atomic<u32> next_qpn_{0x8000};
	ib_cm_id *id_;
	kern::Atomic<int> outcome_{waits};
};

} // namespace ipoib::fixture
