// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements the send path, from a program's write() to the midlayer, and the completion of sends.
 */
#include <ib/mad.hpp>
#include <kern/nospec.hpp>
#include <kern/user.hpp>
#include <rdma/objects.hpp>
#include <rdma/user_address.hpp>
#include "file.hpp"
#include "port.hpp"

namespace umad
{

namespace
{

/*
 * The program's messages are refused beyond this size, which is slightly above the midlayer's
 * limit.
 */
constexpr size_t message_bytes_max = 16 * 1024 * 1024;

/*
 * Converts a timeout or a number of retries. Programs use large unsigned values for "no limit", so
 * the result is limited to the largest int.
 */
int as_int(u32 number)
{
	constexpr u32 most = 0x7fffffff;
	return static_cast<int>(number < most ? number : most);
}

/*
 * In requests, sets the upper half of the transaction ID to the agent's value, by which the
 * response is assigned to the agent. A response keeps the requester's transaction ID.
 */
void own_transaction(ib_mad_hdr &mad, u32 agent_half)
{
	if (!ib_response_mad(&mad))
		mad.tid = u64{agent_half} << 32 | (mad.tid.value() & 0xffffffff);
}

} // namespace

kern::Result<kern::Owned<Send>> Send::create(Agent &agent, const abi::Header &header,
					     kern::ConstBytes bytes)
{
	auto send = KERN_TRY(kern::adopt(new (kern::Gfp::kernel_account) Send(header)));
	KERN_TRY(send->start(agent, bytes));
	return send;
}

Send::~Send()
{
	if (buffer_)
		ib_free_send_mad(buffer_);
	if (address_)
		rdma_destroy_ah(address_, 0);
}

kern::Result<> Send::start(Agent &agent, kern::ConstBytes bytes)
{
	const auto &given = *reinterpret_cast<const ib_rmpp_mad *>(bytes.data());
	const u8 mgmt_class = given.mad_hdr.mgmt_class;
	const bool rmpp = agent.segments(mgmt_class) &&
			  (ib_get_rmpp_flags(&given.rmpp_hdr) & IB_MGMT_RMPP_FLAG_ACTIVE);
	const int headers = ib_get_mad_data_offset(mgmt_class);

	KERN_TRY(check_pkey(agent.mad()));
	KERN_TRY(make_address(agent.mad()));
	buffer_ = KERN_TRY(rdma::check(ib_create_send_mad(
		&agent.mad(), header_.qpn, header_.pkey_index, rmpp, headers,
		static_cast<int>(bytes.size()) - headers,
		static_cast<unsigned int>(kern::Gfp::kernel_account), IB_MGMT_BASE_VERSION)));
	fill(bytes);
	own_transaction(mad(), agent.mad().hi_tid);
	buffer_->ah = address_;
	buffer_->context[0] = this;
	buffer_->timeout_ms = as_int(header_.timeout_ms);
	/* Without a timeout only RMPP segments are retransmitted. */
	buffer_->retries = header_.timeout_ms || rmpp ? as_int(header_.retries) : 0;
	if (header_.timeout_ms)
		outcome_ = KERN_TRY(
			kern::make<Unread>(kern::Gfp::kernel_account, Unread::Kind::outcome));
	return {};
}

/* Checks the P_Key index, which is ignored on QP0. */
kern::Result<> Send::check_pkey(const ib_mad_agent &agent) const
{
	const int count = agent.device->port_immutable[agent.port_num].pkey_tbl_len;
	return kern::check(agent.qp->qp_type == IB_QPT_SMI || header_.pkey_index < count ? 0
											 : -EINVAL);
}

kern::Result<> Send::make_address(ib_mad_agent &agent)
{
	rdma::UserAddress address{};

	address.port_num = static_cast<u8>(agent.port_num);
	address.dlid = header_.lid;
	address.sl = header_.sl;
	address.src_path_bits = header_.path_bits;
	address.is_global = header_.grh_present;
	__builtin_memcpy(address.dgid, header_.gid, sizeof(address.dgid));
	address.flow_label = header_.flow_label;
	address.sgid_index = header_.gid_index;
	address.hop_limit = header_.hop_limit;
	address.traffic_class = header_.traffic_class;
	rdma_ah_attr to = rdma::address_of(address);
	address_ =
		KERN_TRY(rdma::check(rdma_create_ah(agent.qp->pd, &to, RDMA_CREATE_AH_SLEEPABLE)));
	return {};
}

/*
 * Copies the message into the segments. The headers are written only to the first segment, from
 * which the midlayer copies them.
 */
void Send::fill(kern::ConstBytes bytes)
{
	const auto headers = static_cast<size_t>(buffer_->hdr_len),
		   capacity = static_cast<size_t>(buffer_->seg_size);

	__builtin_memcpy(buffer_->mad, bytes.data(), headers);
	bytes = bytes.subspan(headers);
	for (int segment = 1; !bytes.empty(); segment++) {
		const size_t part = bytes.size() < capacity ? bytes.size() : capacity;
		__builtin_memcpy(ib_get_rmpp_segment(buffer_, segment), bytes.data(), part);
		bytes = bytes.subspan(part);
	}
}

bool Send::has_same_destination(const Send &other) const
{
	if (!header_.grh_present || !other.header_.grh_present)
		return header_.grh_present == other.header_.grh_present &&
		       header_.lid == other.header_.lid;
	return __builtin_memcmp(header_.gid, other.header_.gid, sizeof(header_.gid)) == 0;
}

bool Send::is_mistakable_for(const Send &other) const
{
	if (mad().tid != other.mad().tid || mad().mgmt_class != other.mad().mgmt_class)
		return false;
	const bool answers = ib_response_mad(&mad());
	if (answers != static_cast<bool>(ib_response_mad(&other.mad())))
		return false;
	return !answers || has_same_destination(other);
}

kern::Owned<Unread> Send::take_outcome()
{
	if (outcome_) {
		outcome_->header = header_;
		outcome_->header.status = ETIMEDOUT;
		outcome_->unanswered = mad();
	}
	return std::move(outcome_);
}

kern::Result<size_t> File::write(u64 from, size_t count)
{
	const size_t header_bytes = header_size();
	abi::Header header{};

	if (count < header_bytes + IB_MGMT_RMPP_HDR || count - header_bytes > message_bytes_max)
		return kern::Error{-EINVAL};
	KERN_TRY(kern::copy_in(&header, from, header_bytes));
	if (header.id >= agents_max)
		return kern::Error{-EINVAL};
	/*
	 * The message is copied before any lock is taken, so that closing the file does not wait
	 * for the program's memory.
	 */
	const size_t size = count - header_bytes;
	alignas(u64) std::byte single[IB_MGMT_MAD_SIZE];
	/* Allocated in words, because these are zeroed faster than bytes. */
	kern::OwnedArray<u64> several;
	std::byte *bytes = single;
	if (size > sizeof(single)) {
		several = KERN_TRY(kern::make_array<u64>(kern::Gfp::kernel_account,
							 (size + sizeof(u64) - 1) / sizeof(u64)));
		bytes = reinterpret_cast<std::byte *>(several.data());
	}
	KERN_TRY(kern::copy_in(bytes, from + header_bytes, size));

	kern::SharedGuard guard(agents_lock_);
	Agent *agent = agents_[kern::index_nospec(header.id, agents_max)].get();
	if (!agent)
		return kern::Error{-EIO};
	KERN_TRY(post(KERN_TRY(Send::create(*agent, header, {bytes, size})), *agent));
	return count;
}

kern::Result<> File::post(kern::Owned<Send> send, const Agent &agent)
{
	const auto &given = *reinterpret_cast<const ib_rmpp_mad *>(&send->mad());
	/*
	 * Segments that the program sends itself all have the same transaction ID, so they are not
	 * compared.
	 */
	const bool alone = !(agent.leaves_segments(given.mad_hdr.mgmt_class) &&
			     (ib_get_rmpp_flags(&given.rmpp_hdr) & IB_MGMT_RMPP_FLAG_ACTIVE));
	{
		kern::Guard guard(lock_);
		if (sent_mads_ + unread_outcomes_ >= mads_max)
			return kern::Error{-ENOBUFS};
		if (alone)
			for (const Send &other : sends_)
				if (send->is_mistakable_for(other))
					return kern::Error{-EINVAL};
		sends_.push_back(*send);
		sent_mads_ += send->mads();
	}
	/* The list owns the send until it has completed. */
	Send &posted = *send.release();
	const int status = ib_post_send_mad(&posted.buffer(), nullptr);
	if (status)
		take(posted);
	return kern::check(status);
}

kern::Owned<Send> File::take(Send &send)
{
	kern::Guard guard(lock_);
	send.node.unlink();
	sent_mads_ -= send.mads();
	return kern::Owned<Send>::adopt(&send);
}

void File::on_sent(Send &send, bool failed)
{
	/* All failures are reported as ETIMEDOUT, because programs expect no other status. */
	if (failed)
		if (kern::Owned<Unread> message = send.take_outcome())
			push(message, &send);
	/* The send is no longer counted from here on; its outcome is counted already. */
	take(send);
}

} // namespace umad
