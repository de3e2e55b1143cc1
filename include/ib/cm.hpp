// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the messages of the communication manager (IBA 12.6). Each message follows the common MAD
 * header; bits that are not named are reserved and zero.
 */
#pragma once

#include "mad.hpp"

namespace ib
{

constexpr std::uint8_t cm_class_version = 2;
constexpr unsigned cm_data_bytes = mad_bytes - sizeof(MadHeader);

/* Attributes, IBA 12.6.1, table 101; all of them are sent by the method Send. */
enum class CmAttribute : std::uint16_t {
	req = 0x10,
	mra = 0x11,
	rej = 0x12,
	rep = 0x13,
	rtu = 0x14,
	dreq = 0x15,
	drep = 0x16,
	sidr_req = 0x17,
	sidr_rep = 0x18,
	lap = 0x19,
	apr = 0x1a,
};
constexpr unsigned cm_attribute_count = 11;

/* Message that MRA and REJ refer to, IBA 12.6.6 and 12.6.7. */
enum class CmSubject : std::uint8_t { req = 0, rep = 1, other = 2 /* MRA: LAP */ };

/* Transport service type, IBA 12.6.5. */
enum class CmTransport : std::uint8_t { rc = 0, uc = 1, rd = 2, extended = 3 };
constexpr std::uint8_t cm_extended_xrc = 1;

constexpr unsigned cm_info_bytes = 72;

/* A path in the format of the REQ (IBA 12.6.5); "local" is the sender's end. */
struct CmPath {
	be16 local_lid;
	be16 remote_lid;
	Gid local_gid;
	Gid remote_gid;
	be32 flow_rate;
	std::uint8_t traffic_class;
	std::uint8_t hop_limit;
	std::uint8_t sl_local;
	std::uint8_t ack_byte;

	constexpr std::uint32_t flow_label() const { return field_get<31, 12>(flow_rate.value()); }
	constexpr std::uint8_t rate() const
	{
		return field_get<5, 0>(static_cast<std::uint8_t>(flow_rate.value()));
	}
	constexpr std::uint8_t sl() const { return field_get<7, 4>(sl_local); }
	constexpr bool subnet_local() const { return field_get<3, 3>(sl_local); }
	constexpr std::uint8_t ack_timeout() const { return field_get<7, 3>(ack_byte); }

	constexpr void set_flow_label(std::uint32_t value)
	{
		flow_rate = field_set<31, 12>(flow_rate.value(), value);
	}
	constexpr void set_rate(std::uint8_t value)
	{
		flow_rate = field_set<5, 0>(flow_rate.value(), value);
	}
	constexpr void set_sl(std::uint8_t value) { sl_local = field_set<7, 4>(sl_local, value); }
	constexpr void set_subnet_local(bool value) { sl_local = field_set<3, 3>(sl_local, value); }
	constexpr void set_ack_timeout(std::uint8_t value)
	{
		ack_byte = field_set<7, 3>(ack_byte, value);
	}
};
static_assert(sizeof(CmPath) == 44 && offsetof(CmPath, local_gid) == 4 &&
	      offsetof(CmPath, flow_rate) == 36 && offsetof(CmPath, ack_byte) == 43);

/* ConnectRequest, IBA 12.6.5. */
struct CmReq {
	be32 local_id;
	std::uint8_t reserved1;
	be24 vendor_id;
	be64 service_id;
	be64 ca_guid;
	be32 reserved2;
	be32 qkey;
	be24 qpn;
	std::uint8_t responder_resources;
	be24 eecn;
	std::uint8_t initiator_depth;
	be24 remote_eecn;
	std::uint8_t remote_byte;
	be24 psn;
	std::uint8_t local_byte;
	be16 pkey;
	std::uint8_t mtu_byte;
	std::uint8_t retries_byte;
	CmPath primary;
	CmPath alternate;
	std::uint8_t private_data[92];

	constexpr std::uint8_t remote_response_timeout() const
	{
		return field_get<7, 3>(remote_byte);
	}
	constexpr CmTransport transport() const
	{
		return static_cast<CmTransport>(field_get<2, 1>(remote_byte));
	}
	constexpr bool flow_control() const { return field_get<0, 0>(remote_byte); }
	constexpr std::uint8_t local_response_timeout() const
	{
		return field_get<7, 3>(local_byte);
	}
	constexpr std::uint8_t retry_count() const { return field_get<2, 0>(local_byte); }
	constexpr std::uint8_t path_mtu() const { return field_get<7, 4>(mtu_byte); }
	constexpr std::uint8_t rnr_retry_count() const { return field_get<2, 0>(mtu_byte); }
	constexpr std::uint8_t max_cm_retries() const { return field_get<7, 4>(retries_byte); }
	constexpr bool srq() const { return field_get<3, 3>(retries_byte); }
	constexpr std::uint8_t extended_transport() const { return field_get<2, 0>(retries_byte); }
	constexpr bool has_alternate() const { return alternate.local_lid != 0; }

	constexpr void set_remote_response_timeout(std::uint8_t value)
	{
		remote_byte = field_set<7, 3>(remote_byte, value);
	}
	constexpr void set_transport(CmTransport value)
	{
		remote_byte = field_set<2, 1>(remote_byte, static_cast<std::uint8_t>(value));
	}
	constexpr void set_flow_control(bool value)
	{
		remote_byte = field_set<0, 0>(remote_byte, value);
	}
	constexpr void set_local_response_timeout(std::uint8_t value)
	{
		local_byte = field_set<7, 3>(local_byte, value);
	}
	constexpr void set_retry_count(std::uint8_t value)
	{
		local_byte = field_set<2, 0>(local_byte, value);
	}
	constexpr void set_path_mtu(std::uint8_t value)
	{
		mtu_byte = field_set<7, 4>(mtu_byte, value);
	}
	constexpr void set_rnr_retry_count(std::uint8_t value)
	{
		mtu_byte = field_set<2, 0>(mtu_byte, value);
	}
	constexpr void set_max_cm_retries(std::uint8_t value)
	{
		retries_byte = field_set<7, 4>(retries_byte, value);
	}
	constexpr void set_srq(bool value) { retries_byte = field_set<3, 3>(retries_byte, value); }
	constexpr void set_extended_transport(std::uint8_t value)
	{
		retries_byte = field_set<2, 0>(retries_byte, value);
	}
};
static_assert(sizeof(CmReq) == cm_data_bytes && offsetof(CmReq, vendor_id) == 5 &&
	      offsetof(CmReq, service_id) == 8 && offsetof(CmReq, ca_guid) == 16 &&
	      offsetof(CmReq, qkey) == 28 && offsetof(CmReq, qpn) == 32 &&
	      offsetof(CmReq, responder_resources) == 35 && offsetof(CmReq, eecn) == 36 &&
	      offsetof(CmReq, initiator_depth) == 39 && offsetof(CmReq, remote_eecn) == 40 &&
	      offsetof(CmReq, remote_byte) == 43 && offsetof(CmReq, psn) == 44 &&
	      offsetof(CmReq, local_byte) == 47 && offsetof(CmReq, pkey) == 48 &&
	      offsetof(CmReq, mtu_byte) == 50 && offsetof(CmReq, retries_byte) == 51 &&
	      offsetof(CmReq, primary) == 52 && offsetof(CmReq, alternate) == 96 &&
	      offsetof(CmReq, private_data) == 140);

/* MsgRcptAck, IBA 12.6.6. */
struct CmMra {
	be32 local_id;
	be32 remote_id;
	std::uint8_t subject_byte;
	std::uint8_t timeout_byte;
	std::uint8_t private_data[222];

	constexpr std::uint8_t subject() const { return field_get<7, 6>(subject_byte); }
	constexpr std::uint8_t service_timeout() const { return field_get<7, 3>(timeout_byte); }
	constexpr void set_subject(CmSubject value)
	{
		subject_byte = field_set<7, 6>(subject_byte, static_cast<std::uint8_t>(value));
	}
	constexpr void set_service_timeout(std::uint8_t value)
	{
		timeout_byte = field_set<7, 3>(timeout_byte, value);
	}
};
static_assert(sizeof(CmMra) == cm_data_bytes && offsetof(CmMra, private_data) == 10);

/* ConnectReject, IBA 12.6.7. */
struct CmRej {
	be32 local_id;
	be32 remote_id;
	std::uint8_t subject_byte;
	std::uint8_t length_byte;
	be16 reason;
	std::uint8_t info[cm_info_bytes];
	std::uint8_t private_data[148];

	constexpr std::uint8_t subject() const { return field_get<7, 6>(subject_byte); }
	constexpr std::uint8_t info_length() const { return field_get<7, 1>(length_byte); }
	constexpr void set_subject(CmSubject value)
	{
		subject_byte = field_set<7, 6>(subject_byte, static_cast<std::uint8_t>(value));
	}
	constexpr void set_info_length(std::uint8_t value)
	{
		length_byte = field_set<7, 1>(length_byte, value);
	}
};
static_assert(sizeof(CmRej) == cm_data_bytes && offsetof(CmRej, reason) == 10 &&
	      offsetof(CmRej, info) == 12 && offsetof(CmRej, private_data) == 84);

/* ConnectReply, IBA 12.6.8. */
struct CmRep {
	be32 local_id;
	be32 remote_id;
	be32 qkey;
	be24 qpn;
	std::uint8_t vendor_high;
	be24 eecn;
	std::uint8_t vendor_middle;
	be24 psn;
	std::uint8_t vendor_low;
	std::uint8_t responder_resources;
	std::uint8_t initiator_depth;
	std::uint8_t delay_byte;
	std::uint8_t retry_byte;
	be64 ca_guid;
	std::uint8_t private_data[196];

	constexpr std::uint32_t vendor_id() const
	{
		return static_cast<std::uint32_t>(vendor_high) << 16 |
		       static_cast<std::uint32_t>(vendor_middle) << 8 | vendor_low;
	}
	constexpr std::uint8_t target_ack_delay() const { return field_get<7, 3>(delay_byte); }
	constexpr std::uint8_t failover_accepted() const { return field_get<2, 1>(delay_byte); }
	constexpr bool flow_control() const { return field_get<0, 0>(delay_byte); }
	constexpr std::uint8_t rnr_retry_count() const { return field_get<7, 5>(retry_byte); }
	constexpr bool srq() const { return field_get<4, 4>(retry_byte); }

	constexpr void set_vendor_id(std::uint32_t value)
	{
		vendor_high = static_cast<std::uint8_t>(value >> 16);
		vendor_middle = static_cast<std::uint8_t>(value >> 8);
		vendor_low = static_cast<std::uint8_t>(value);
	}
	constexpr void set_target_ack_delay(std::uint8_t value)
	{
		delay_byte = field_set<7, 3>(delay_byte, value);
	}
	constexpr void set_failover_accepted(std::uint8_t value)
	{
		delay_byte = field_set<2, 1>(delay_byte, value);
	}
	constexpr void set_flow_control(bool value)
	{
		delay_byte = field_set<0, 0>(delay_byte, value);
	}
	constexpr void set_rnr_retry_count(std::uint8_t value)
	{
		retry_byte = field_set<7, 5>(retry_byte, value);
	}
	constexpr void set_srq(bool value) { retry_byte = field_set<4, 4>(retry_byte, value); }
};
static_assert(sizeof(CmRep) == cm_data_bytes && offsetof(CmRep, qkey) == 8 &&
	      offsetof(CmRep, qpn) == 12 && offsetof(CmRep, eecn) == 16 &&
	      offsetof(CmRep, psn) == 20 && offsetof(CmRep, responder_resources) == 24 &&
	      offsetof(CmRep, delay_byte) == 26 && offsetof(CmRep, ca_guid) == 28 &&
	      offsetof(CmRep, private_data) == 36);

/* ReadyToUse and DisconnectReply, IBA 12.6.9 and 12.6.11. */
struct CmPair {
	be32 local_id;
	be32 remote_id;
	std::uint8_t private_data[224];
};
using CmRtu = CmPair;
using CmDrep = CmPair;
static_assert(sizeof(CmPair) == cm_data_bytes);

/* DisconnectRequest, IBA 12.6.10. */
struct CmDreq {
	be32 local_id;
	be32 remote_id;
	/* The receiver's. */
	be24 remote_qpn;
	std::uint8_t reserved;
	std::uint8_t private_data[220];
};
static_assert(sizeof(CmDreq) == cm_data_bytes && offsetof(CmDreq, private_data) == 12);

/* LoadAlternatePath, IBA 12.8.1. */
struct CmLap {
	be32 local_id;
	be32 remote_id;
	be32 reserved1;
	be24 remote_qpn;
	std::uint8_t timeout_byte;
	be32 reserved2;
	be16 local_lid;
	be16 remote_lid;
	Gid local_gid;
	Gid remote_gid;
	be24 flow_bytes;
	std::uint8_t traffic_class;
	std::uint8_t hop_limit;
	std::uint8_t rate_byte;
	std::uint8_t sl_local;
	std::uint8_t ack_byte;
	std::uint8_t private_data[168];

	constexpr std::uint8_t remote_response_timeout() const
	{
		return field_get<7, 3>(timeout_byte);
	}
	constexpr void set_remote_response_timeout(std::uint8_t value)
	{
		timeout_byte = field_set<7, 3>(timeout_byte, value);
	}
	/* The path in REQ's form, and from it. */
	constexpr CmPath path() const
	{
		CmPath path{local_lid,     remote_lid, local_gid, remote_gid, be32{0},
			    traffic_class, hop_limit,  sl_local,  ack_byte};
		path.set_flow_label(static_cast<std::uint32_t>(flow_bytes) >> 4);
		path.set_rate(field_get<5, 0>(rate_byte));
		return path;
	}
	constexpr void set_path(const CmPath &path)
	{
		local_lid = path.local_lid;
		remote_lid = path.remote_lid;
		local_gid = path.local_gid;
		remote_gid = path.remote_gid;
		flow_bytes = path.flow_label() << 4;
		traffic_class = path.traffic_class;
		hop_limit = path.hop_limit;
		rate_byte = path.rate();
		sl_local = path.sl_local;
		ack_byte = path.ack_byte;
	}
};
static_assert(sizeof(CmLap) == cm_data_bytes && offsetof(CmLap, remote_qpn) == 12 &&
	      offsetof(CmLap, timeout_byte) == 15 && offsetof(CmLap, local_lid) == 20 &&
	      offsetof(CmLap, local_gid) == 24 && offsetof(CmLap, flow_bytes) == 56 &&
	      offsetof(CmLap, traffic_class) == 59 && offsetof(CmLap, ack_byte) == 63 &&
	      offsetof(CmLap, private_data) == 64);

/* AlternatePathResponse, IBA 12.8.2. */
struct CmApr {
	be32 local_id;
	be32 remote_id;
	std::uint8_t info_length;
	std::uint8_t status;
	be16 reserved;
	std::uint8_t info[cm_info_bytes];
	std::uint8_t private_data[148];
};
static_assert(sizeof(CmApr) == cm_data_bytes && offsetof(CmApr, info) == 12 &&
	      offsetof(CmApr, private_data) == 84);

/* SIDR_REQ, IBA 12.11.1. */
struct CmSidrReq {
	be32 request_id;
	be16 pkey;
	be16 reserved;
	be64 service_id;
	std::uint8_t private_data[216];
};
static_assert(sizeof(CmSidrReq) == cm_data_bytes && offsetof(CmSidrReq, private_data) == 16);

/* SIDR_REP, IBA 12.11.2. */
struct CmSidrRep {
	be32 request_id;
	std::uint8_t status;
	std::uint8_t info_length;
	be16 vendor_high;
	be24 qpn;
	std::uint8_t vendor_low;
	be64 service_id;
	be32 qkey;
	std::uint8_t info[cm_info_bytes];
	std::uint8_t private_data[136];

	constexpr std::uint32_t vendor_id() const
	{
		return static_cast<std::uint32_t>(vendor_high.value()) << 8 | vendor_low;
	}
	constexpr void set_vendor_id(std::uint32_t value)
	{
		vendor_high = static_cast<std::uint16_t>(value >> 8);
		vendor_low = static_cast<std::uint8_t>(value);
	}
};
static_assert(sizeof(CmSidrRep) == cm_data_bytes && offsetof(CmSidrRep, qpn) == 8 &&
	      offsetof(CmSidrRep, service_id) == 12 && offsetof(CmSidrRep, qkey) == 20 &&
	      offsetof(CmSidrRep, info) == 24 && offsetof(CmSidrRep, private_data) == 96);

/* The message in a MAD of the class. The caller has checked its attribute. */
template<class Message>
constexpr const Message &cm_message(const Mad &mad)
{
	static_assert(sizeof(Message) == sizeof(mad.data) && alignof(Message) == 1);
	return *reinterpret_cast<const Message *>(mad.data);
}
template<class Message>
constexpr Message &cm_message(Mad &mad)
{
	static_assert(sizeof(Message) == sizeof(mad.data) && alignof(Message) == 1);
	return *reinterpret_cast<Message *>(mad.data);
}

} // namespace ib
