// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "check.hpp"

namespace cm
{
namespace
{

constexpr Fault fault_unless(bool right)
{
	return right ? Fault::none : Fault::malformed;
}

Fault check_req(const ib::CmReq &req)
{
	/*
	 * A REQ without the sender's communication ID or QP number could not be answered (IBA
	 * 12.6.5).
	 */
	if (req.local_id == 0 || req.qpn == 0)
		return Fault::malformed;
	switch (req.transport()) {
	case ib::CmTransport::rc:
	case ib::CmTransport::uc:
		break;
	case ib::CmTransport::rd:
		return Fault::transport_type;
	case ib::CmTransport::extended:
		if (req.extended_transport() != ib::cm_extended_xrc)
			return Fault::transport_type;
		break;
	}
	return ib::mtu_bytes(static_cast<ib::Mtu>(req.path_mtu())) ? Fault::none : Fault::path_mtu;
}

/*
 * Checks that both communication IDs are set, as in every message of a connection that both sides
 * know.
 */
template<class Message>
Fault check_pair(const ib::Mad &mad)
{
	const auto &message = ib::cm_message<Message>(mad);
	return fault_unless(message.local_id != 0 && message.remote_id != 0);
}

} // namespace

Fault check(const ib::Mad &mad)
{
	constexpr auto last_subject = static_cast<std::uint8_t>(ib::CmSubject::other);
	const auto &header = mad.header;

	if (header.base_version != ib::mad_base_version || header.cls() != ib::MgmtClass::com_mgt ||
	    header.class_version != ib::cm_class_version || !header.is_method(ib::MadMethod::send))
		return Fault::not_ours;
	switch (static_cast<ib::CmAttribute>(header.attr_id.value())) {
	case ib::CmAttribute::req:
		return check_req(ib::cm_message<ib::CmReq>(mad));
	case ib::CmAttribute::mra:
		if (ib::cm_message<ib::CmMra>(mad).subject() > last_subject)
			return Fault::malformed;
		return check_pair<ib::CmMra>(mad);
	case ib::CmAttribute::rej: {
		/*
		 * The sender of a REJ need not have a communication ID, and the rejected message
		 * may have had none (IBA 12.6.7).
		 */
		const auto &rej = ib::cm_message<ib::CmRej>(mad);
		return fault_unless((rej.local_id != 0 || rej.remote_id != 0) &&
				    rej.subject() <= last_subject &&
				    rej.info_length() <= ib::cm_info_bytes);
	}
	case ib::CmAttribute::rep: {
		const auto &rep = ib::cm_message<ib::CmRep>(mad);
		return rep.failover_accepted() > 2 ? Fault::malformed : check_pair<ib::CmRep>(mad);
	}
	case ib::CmAttribute::rtu:
	case ib::CmAttribute::drep:
		return check_pair<ib::CmPair>(mad);
	case ib::CmAttribute::dreq:
		return check_pair<ib::CmDreq>(mad);
	case ib::CmAttribute::lap:
		return check_pair<ib::CmLap>(mad);
	case ib::CmAttribute::apr:
		if (ib::cm_message<ib::CmApr>(mad).info_length > ib::cm_info_bytes)
			return Fault::malformed;
		return check_pair<ib::CmApr>(mad);
	case ib::CmAttribute::sidr_req:
		return fault_unless(ib::cm_message<ib::CmSidrReq>(mad).request_id != 0);
	case ib::CmAttribute::sidr_rep: {
		const auto &rep = ib::cm_message<ib::CmSidrRep>(mad);
		return fault_unless(rep.request_id != 0 && rep.info_length <= ib::cm_info_bytes);
	}
	}
	return Fault::not_ours;
}

} // namespace cm
