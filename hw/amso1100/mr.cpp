// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "mr.hpp"

#include <hw/amso1100/verbs.hpp>
#include "pd.hpp"

namespace amso1100
{
namespace
{

constexpr u32 page_bytes = 1u << 30;
constexpr u32 pages = 4;
constexpr u32 max_bytes = 0xffffffff;
static_assert(pages <= wire::mr_register::most_pages);
constexpr int remote_rights =
	IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC;

u16 flags_of(int access)
{
	namespace flag = wire::mr_flag;
	return static_cast<u16>(flag::va_based | flag::complete | flag::local_read |
				(access & IB_ACCESS_LOCAL_WRITE ? flag::local_write : 0) |
				(access & IB_ACCESS_REMOTE_READ ? flag::remote_read : 0) |
				(access & IB_ACCESS_REMOTE_WRITE ? flag::remote_write : 0));
}

} // namespace

kern::Result<> Mr::start_dma(int access)
{
	/*
	 * STag 0 covers all memory for local requests, because the RNIC was opened as privileged.
	 */
	verbs_.lkey = verbs_.rkey = 0;
	if (!(access & remote_rights))
		return {};
	namespace at = wire::mr_register;
	Message message(wire::MessageId::mr_register);
	message.put_opaque(at::rnic_handle, rnic_.handle());
	message.put(at::va, u64{0});
	message.put(at::flags, flags_of(access));
	message.put_opaque(at::pd, Pd::of(verbs_.pd).number);
	message.put(at::total_pages, pages);
	message.put(at::page_size, page_bytes);
	message.put(at::first_offset, u32{0});
	message.put(at::length, max_bytes);
	message.put(at::pages_here, pages);
	for (u32 i = 0; i < pages; i++)
		message.put(at::pages + i * sizeof(u64), u64{i} * page_bytes);
	KERN_TRY(rnic_.channel().call(message, at::pages + pages * sizeof(u64)));
	stag_ = message.get<u32>(at::reply_stag);
	/* A peer cannot use key 0. */
	if (stag_ == 0)
		return kern::Error{-EPROTO};
	verbs_.rkey = stag_;
	verbs_.length = max_bytes;
	return {};
}

kern::Result<> Mr::stop()
{
	if (!stag_)
		return {};
	Message message(wire::MessageId::stag_dealloc);
	message.put_opaque(wire::rnic_handle, rnic_.handle());
	message.put(wire::object_handle, stag_);
	const auto freed = rnic_.channel().call(message, wire::object_request_size);
	/* A failed card cannot access memory any more. */
	if (!freed && !rnic_.channel().failed())
		return freed;
	stag_ = 0;
	return {};
}

} // namespace amso1100
