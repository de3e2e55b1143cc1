// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "agent.hpp"

#include "special_qp.hpp"

#include <kern/time.hpp>

namespace mad
{
namespace
{

constexpr bool is_vendor_range2(u8 mgmt_class)
{
	return mgmt_class >= IB_MGMT_CLASS_VENDOR_RANGE2_START &&
	       mgmt_class <= IB_MGMT_CLASS_VENDOR_RANGE2_END;
}

} // namespace

Agent::Agent(SpecialQp &qp, const ib_mad_reg_req *request)
    : ib_mad_agent{}, qp_(qp), registered_(request != nullptr), request_{}
{
	if (request)
		request_ = *request;
}

Agent::~Agent()
{
	kern_assert(pending.empty() && reception.empty());
}

bool Agent::wants(const ib::Mad &mad) const
{
	const auto &header = mad.header;
	if (!registered_ || !same_class(header.mgmt_class, request_.mgmt_class) ||
	    header.class_version != request_.mgmt_class_version)
		return false;
	constexpr unsigned bits = 8 * sizeof(request_.method_mask[0]);
	const unsigned method = header.method & ~ib::mad_response_bit;
	if (!(request_.method_mask[method / bits] >> (method % bits) & 1))
		return false;
	if (!is_vendor_range2(header.mgmt_class))
		return true;
	return __builtin_memcmp(reinterpret_cast<const ib_vendor_mad *>(&mad)->oui, request_.oui,
				sizeof(request_.oui)) == 0;
}

bool Agent::overlaps(const Agent &other) const
{
	/*
	 * Agents that register for different SMP classes do not overlap: each receives the SMPs of
	 * its own class.
	 */
	if (!registered_ || !other.registered_ ||
	    request_.mgmt_class != other.request_.mgmt_class ||
	    request_.mgmt_class_version != other.request_.mgmt_class_version)
		return false;
	if (is_vendor_range2(request_.mgmt_class) &&
	    __builtin_memcmp(request_.oui, other.request_.oui, sizeof(request_.oui)) != 0)
		return false;
	for (unsigned i = 0; i < sizeof(request_.method_mask) / sizeof(request_.method_mask[0]);
	     i++)
		if (request_.method_mask[i] & other.request_.method_mask[i])
			return true;
	return false;
}

void Agent::put()
{
	if (uses_.put())
		unused_.complete();
}

void Agent::drain()
{
	timer_.cancel();
	put();
	unused_.wait();
	/* A handler that ran until now may have armed the timer again. */
	timer_.cancel();
}

void Agent::arm_timer_locked(u64 now)
{
	const u64 answer = pending.earliest(), segment = reception.earliest();
	const u64 earliest = answer < segment ? answer : segment;
	if (leaving || earliest == ~u64{0})
		return;
	const u64 ns_per_ms = 1'000'000;
	timer_.reschedule(earliest <= now ? 0
					  : static_cast<unsigned>((earliest - now + ns_per_ms - 1) /
								  ns_per_ms));
}

void Agent::on_timer()
{
	qp_.on_agent_timer(*this);
}

} // namespace mad
