// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Fuzzes CM messages with arbitrary input. Every message that check() accepts must have the
// properties that the CM relies on, and getters must read back what setters wrote.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "core/cm/check.hpp"

namespace
{

void require(bool holds)
{
	if (!holds)
		std::abort();
}

void same_path(const ib::CmPath &path)
{
	ib::CmPath again = path;
	again.set_flow_label(path.flow_label());
	again.set_rate(path.rate());
	again.set_sl(path.sl());
	again.set_subnet_local(path.subnet_local());
	again.set_ack_timeout(path.ack_timeout());
	require(std::memcmp(&again, &path, sizeof(path)) == 0);
}

void look_into(const ib::CmReq &req)
{
	ib::CmReq again = req;
	require(req.local_id != 0 && req.qpn != 0 &&
		ib::mtu_bytes(static_cast<ib::Mtu>(req.path_mtu())) != 0);
	require(req.transport() != ib::CmTransport::rd);
	again.set_remote_response_timeout(req.remote_response_timeout());
	again.set_transport(req.transport());
	again.set_flow_control(req.flow_control());
	again.set_local_response_timeout(req.local_response_timeout());
	again.set_retry_count(req.retry_count());
	again.set_path_mtu(req.path_mtu());
	again.set_rnr_retry_count(req.rnr_retry_count());
	again.set_max_cm_retries(req.max_cm_retries());
	again.set_srq(req.srq());
	again.set_extended_transport(req.extended_transport());
	require(std::memcmp(&again, &req, sizeof(req)) == 0);
	same_path(req.primary);
	same_path(req.alternate);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	ib::Mad mad{};
	std::memcpy(&mad, data, size < sizeof(mad) ? size : sizeof(mad));
	if (cm::check(mad) != cm::Fault::none)
		return 0;
	switch (static_cast<ib::CmAttribute>(mad.header.attr_id.value())) {
	case ib::CmAttribute::req:
		look_into(ib::cm_message<ib::CmReq>(mad));
		break;
	case ib::CmAttribute::rej:
		require(ib::cm_message<ib::CmRej>(mad).info_length() <= ib::cm_info_bytes);
		break;
	case ib::CmAttribute::apr:
		require(ib::cm_message<ib::CmApr>(mad).info_length <= ib::cm_info_bytes);
		break;
	case ib::CmAttribute::sidr_rep:
		require(ib::cm_message<ib::CmSidrRep>(mad).info_length <= ib::cm_info_bytes);
		break;
	case ib::CmAttribute::lap: {
		ib::CmLap lap = ib::cm_message<ib::CmLap>(mad);
		same_path(lap.path());
		lap.set_path(lap.path());
		require(std::memcmp(lap.private_data, ib::cm_message<ib::CmLap>(mad).private_data,
				    sizeof(lap.private_data)) == 0);
		break;
	}
	default:
		require(ib::cm_message<ib::CmPair>(mad).local_id != 0);
		break;
	}
	return 0;
}
