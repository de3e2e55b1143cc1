// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "convert.hpp"

namespace rdma_ucm
{

namespace
{

/* Largest value of the 3-bit retry fields in REQ and REP. */
constexpr u8 retries_max = 7;

u8 retries_of(u8 given)
{
	return given < retries_max ? given : retries_max;
}

kern::Result<rdma_sockaddr> address_of(const void *given, size_t capacity, size_t size)
{
	rdma_sockaddr address{};

	__builtin_memcpy(&address.family, given, sizeof(address.family));
	const size_t own = size_of(address.family);
	if (!own || own > capacity || (size && size != own))
		return kern::Error{-EINVAL};
	__builtin_memcpy(&address, given, own);
	return address;
}

void show_data(const void *data, u8 length, u8 (&shown)[abi::private_data_max], u8 &shown_length)
{
	if (length)
		__builtin_memcpy(shown, data, length);
	shown_length = length;
}

} // namespace

size_t size_of(u16 family)
{
	switch (family) {
	case RDMA_AF_INET:
		return sizeof(rdma_sockaddr_in);
	case RDMA_AF_INET6:
		return sizeof(rdma_sockaddr_in6);
	case RDMA_AF_IB:
		return sizeof(rdma_sockaddr_ib);
	default:
		return 0;
	}
}

kern::Result<rdma_sockaddr> address_of(const abi::Storage &given, size_t size)
{
	if (!size)
		return kern::Error{-EINVAL};
	return address_of(given, sizeof(given), size);
}

kern::Result<rdma_sockaddr> address_of(const abi::Ip &given)
{
	return address_of(given, sizeof(given), 0);
}

u16 show(const rdma_sockaddr &address, abi::Storage &shown)
{
	const size_t size = size_of(address.family);

	__builtin_memcpy(shown, &address, size);
	return static_cast<u16>(size);
}

void show(const rdma_sockaddr &address, abi::Ip &shown)
{
	const size_t size = size_of(address.family);

	__builtin_memcpy(shown, &address, size < sizeof(shown) ? size : sizeof(shown));
}

rdma_conn_param param_of(const abi::ConnParam &given)
{
	return {
		.private_data = given.private_data,
		.private_data_len = given.private_data_len,
		.responder_resources = given.responder_resources,
		.initiator_depth = given.initiator_depth,
		.flow_control = given.flow_control,
		.retry_count = retries_of(given.retry_count),
		.rnr_retry_count = retries_of(given.rnr_retry_count),
		.srq = given.srq,
		.qp_num = given.qp_num & IB_QPN_MASK,
		.qkey = given.qkey,
	};
}

void show(const rdma_conn_param &param, abi::ConnParam &shown)
{
	show_data(param.private_data, param.private_data_len, shown.private_data,
		  shown.private_data_len);
	shown.responder_resources = param.responder_resources;
	shown.initiator_depth = param.initiator_depth;
	shown.flow_control = param.flow_control;
	shown.retry_count = param.retry_count;
	shown.rnr_retry_count = param.rnr_retry_count;
	shown.srq = param.srq;
	shown.qp_num = param.qp_num;
}

void show(const rdma_ud_param &param, abi::UdParam &shown)
{
	show_data(param.private_data, param.private_data_len, shown.private_data,
		  shown.private_data_len);
	rdma::fill_address(param.ah_attr, shown.ah_attr);
	shown.qp_num = param.qp_num;
	shown.qkey = param.qkey;
}

void show(const sa_path_rec &path, abi::PathRecord &shown)
{
	__builtin_memcpy(shown.dgid, path.dgid.raw, sizeof(shown.dgid));
	__builtin_memcpy(shown.sgid, path.sgid.raw, sizeof(shown.sgid));
	shown.dlid = path.ib.dlid;
	shown.slid = path.ib.slid;
	shown.raw_traffic = path.ib.raw_traffic;
	shown.flow_label = path.flow_label;
	shown.reversible = path.reversible;
	shown.mtu = path.mtu;
	shown.pkey = path.pkey;
	shown.hop_limit = path.hop_limit;
	shown.traffic_class = path.traffic_class;
	shown.numb_path = path.numb_path;
	shown.sl = path.sl;
	shown.mtu_selector = path.mtu_selector;
	shown.rate_selector = path.rate_selector;
	shown.rate = path.rate;
	shown.packet_life_time_selector = path.packet_life_time_selector;
	shown.packet_life_time = path.packet_life_time;
	shown.preference = path.preference;
}

void show(const ib_qp_attr &attr, int mask, abi::QpAttr &shown)
{
	shown.qp_attr_mask = static_cast<u32>(mask);
	shown.qp_state = attr.qp_state;
	shown.cur_qp_state = attr.cur_qp_state;
	shown.path_mtu = attr.path_mtu;
	shown.path_mig_state = attr.path_mig_state;
	shown.qkey = attr.qkey;
	shown.rq_psn = attr.rq_psn;
	shown.sq_psn = attr.sq_psn;
	shown.dest_qp_num = attr.dest_qp_num;
	shown.qp_access_flags = static_cast<u32>(attr.qp_access_flags);
	rdma::fill_address(attr.ah_attr, shown.ah_attr);
	rdma::fill_address(attr.alt_ah_attr, shown.alt_ah_attr);
	shown.max_send_wr = attr.cap.max_send_wr;
	shown.max_recv_wr = attr.cap.max_recv_wr;
	shown.max_send_sge = attr.cap.max_send_sge;
	shown.max_recv_sge = attr.cap.max_recv_sge;
	shown.max_inline_data = attr.cap.max_inline_data;
	shown.pkey_index = attr.pkey_index;
	shown.alt_pkey_index = attr.alt_pkey_index;
	shown.en_sqd_async_notify = attr.en_sqd_async_notify;
	shown.sq_draining = attr.sq_draining;
	shown.max_rd_atomic = attr.max_rd_atomic;
	shown.max_dest_rd_atomic = attr.max_dest_rd_atomic;
	shown.min_rnr_timer = attr.min_rnr_timer;
	shown.port_num = static_cast<u8>(attr.port_num);
	shown.timeout = attr.timeout;
	shown.retry_cnt = attr.retry_cnt;
	shown.rnr_retry = attr.rnr_retry;
	shown.alt_port_num = static_cast<u8>(attr.alt_port_num);
	shown.alt_timeout = attr.alt_timeout;
}

} // namespace rdma_ucm
