// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Handles messages from peers whose port's LID has changed since the connection was established,
 * for example because the subnet manager restarted. Their messages come from an address that does
 * not belong to the connection. Any node could have sent such a message, so it is not trusted
 * (Id::is_from_peer()). Instead, the CM asks the SA for the current LID of the peer's port.
 */
#include "device.hpp"

#include <rdma/ib_cache.h>

namespace cm
{

/* A query for the address of a peer. A device has at most one in progress. */
struct Device::PeerPathQuery {
	kern::Ref<Device> device;
	u32 local_id;
	u32 slid;  /* source LID of a message */
	bool ends; /* the peer has forgotten the connection */
};

kern::Result<sa_path_rec> Id::path_to_peer() const
{
	if (!address_ || !port_ || rdma_is_zero_gid(&address_->gid))
		return kern::Error{-ENOENT};
	sa_path_rec path{};
	KERN_TRY_ERRNO(rdma_query_gid(device, port_->number(), 0, &path.sgid));
	path.dgid = address_->gid;
	path.pkey = pkey_;
	path.reversible = 1;
	path.numb_path = 1;
	return path;
}

kern::Result<> Id::follow_peer(const sa_path_rec &path)
{
	const Route route = KERN_TRY(find_route(*device, path));
	kern::Ref<Address> there;
	KERN_TRY(take_route(route, remote_cm_qpn, there));
	address_ = std::move(there);
	port_ = device_->port(route.port);
	address_port_ = route.port;
	return {};
}

/*
 * Queries the SA for the path to the peer. If the query cannot be sent, the next repetition of the
 * peer's message causes another query.
 */
void Device::query_peer_path(Id &id, const Received &received, bool ends)
{
	constexpr unsigned long timeout_ms = 1000;
	constexpr int retries = 2;
	constexpr u64 mask = IB_SA_PATH_REC_DGID | IB_SA_PATH_REC_SGID | IB_SA_PATH_REC_PKEY |
			     IB_SA_PATH_REC_NUMB_PATH | IB_SA_PATH_REC_REVERSIBLE;
	auto wanted = id.path_to_peer();
	if (peer_query_pending_ || !wanted.ok())
		return;
	auto asked = kern::make<PeerPathQuery>(kern::Gfp::kernel, kern::Ref<Device>::share(*this),
					       id.local_id.value(), u32{received.wc().slid}, ends);
	if (!asked.ok())
		return;
	ib_sa_query *query;
	const int status = ib_sa_path_rec_get(
		&sa_client(), &ib_, id.port_number(), &wanted.value(), mask, timeout_ms, retries,
		static_cast<unsigned int>(kern::Gfp::kernel),
		[](int failed, sa_path_rec *path, void *context) {
			const auto finished = kern::Owned<PeerPathQuery>::adopt(
				static_cast<PeerPathQuery *>(context));
			finished->device->peer_path_found(*finished, failed, path);
		},
		asked.value().get(), &query);
	if (status < 0)
		return;
	/* The callback owns the object. It may run already, but waits for the lock. */
	(void)asked.take().release();
	peer_query_pending_ = true;
}

void Device::peer_path_found(const PeerPathQuery &asked, int status, const sa_path_rec *path)
{
	kern::Guard guard(lock_);
	peer_query_pending_ = false;
	if (status || gone_ || path->ib.dlid.value() != asked.slid)
		return;
	Id *id = find(asked.local_id);
	if (!id || !id->follow_peer(*path).ok())
		return;
	if (asked.ends)
		kern::ignore(id->send_dreq({}));
}

} // namespace cm
