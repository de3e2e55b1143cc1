// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Posts the requests of an endpoint to its send queue.
#include <kern/time.hpp>
#include "endpoint.hpp"

namespace traffic
{

namespace
{

ib_wr_opcode opcode_of(const Arguments &arguments)
{
	static constexpr struct {
		const char *name;
		ib_wr_opcode opcode;
	} names[] = {
		{"write", IB_WR_RDMA_WRITE},
		{"write_imm", IB_WR_RDMA_WRITE_WITH_IMM},
		{"read", IB_WR_RDMA_READ},
		{"send_imm", IB_WR_SEND_WITH_IMM},
		{"send_inv", IB_WR_SEND_WITH_INV},
		{"cas", IB_WR_ATOMIC_CMP_AND_SWP},
		{"add", IB_WR_ATOMIC_FETCH_AND_ADD},
		{"masked_cas", IB_WR_MASKED_ATOMIC_CMP_AND_SWP},
		{"masked_add", IB_WR_MASKED_ATOMIC_FETCH_AND_ADD},
	};
	for (const auto &[name, opcode] : names)
		if (arguments.is("op", name))
			return opcode;
	return IB_WR_SEND;
}

bool is_atomic(ib_wr_opcode opcode)
{
	return opcode == IB_WR_ATOMIC_CMP_AND_SWP || opcode == IB_WR_ATOMIC_FETCH_AND_ADD ||
	       opcode == IB_WR_MASKED_ATOMIC_CMP_AND_SWP ||
	       opcode == IB_WR_MASKED_ATOMIC_FETCH_AND_ADD;
}

/* Returns the opcode that the completion of a request must have. */
ib_wc_opcode completion_of(ib_wr_opcode opcode)
{
	switch (opcode) {
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return IB_WC_RDMA_WRITE;
	case IB_WR_RDMA_READ:
		return IB_WC_RDMA_READ;
	case IB_WR_ATOMIC_CMP_AND_SWP:
		return IB_WC_COMP_SWAP;
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		return IB_WC_FETCH_ADD;
	case IB_WR_MASKED_ATOMIC_CMP_AND_SWP:
		return IB_WC_MASKED_COMP_SWAP;
	case IB_WR_MASKED_ATOMIC_FETCH_AND_ADD:
		return IB_WC_MASKED_FETCH_ADD;
	case IB_WR_LOCAL_INV:
		return IB_WC_LOCAL_INV;
	case IB_WR_BIND_MW:
		return IB_WC_BIND_MW;
	case IB_WR_REG_MR:
		return IB_WC_REG_MR;
	default:
		return IB_WC_SEND;
	}
}

} // namespace

/* Fills in request `number` of a series completely. */
void Endpoint::describe(Request &request, const Arguments &arguments, u32 number)
{
	const ib_wr_opcode opcode = opcode_of(arguments);
	const u32 size = static_cast<u32>(arguments.number("size", 64));
	const u32 seed = static_cast<u32>(arguments.number("seed"));
	const u32 slots = size_ / (size ? size : 1);
	const u32 offset = number % slots * size;
	const u32 rkey = static_cast<u32>(arguments.number("rkey"));
	const u64 remote = arguments.number("addr");
	const bool inlined = arguments.number("inline");
	const bool reads = opcode == IB_WR_RDMA_READ || is_atomic(opcode);

	__builtin_memset(&request, 0, sizeof(request));
	if (!reads)
		fill(offset, size, seed + number);
	// Inline data is read through the CPU address, all other data through the DMA address.
	const u64 address = inlined ? reinterpret_cast<u64>(send_memory_.as<u8>() + offset)
				    : (reads ? recv_memory_ : send_memory_).address() + offset;
	const u64 wanted = arguments.number("pieces", 1);
	const u32 pieces = static_cast<u32>(wanted < max_pieces ? wanted : max_pieces);
	u32 at = 0;
	for (u32 i = 0; i < pieces && size; i++) {
		const u32 part = i + 1 < pieces ? size / pieces : size - at;
		request.sge[i] = {address + at, part, pd_->local_dma_lkey};
		at += part;
	}
	request.wr.wr_id = number;
	request.wr.sg_list = request.sge;
	request.wr.num_sge = size ? static_cast<int>(pieces) : 0;
	request.wr.opcode = opcode;
	request.wr.send_flags = IB_SEND_SIGNALED | (inlined ? IB_SEND_INLINE : 0);
	if (opcode == IB_WR_SEND_WITH_INV)
		request.wr.ex.invalidate_rkey = rkey;
	else
		request.wr.ex.imm_data = ib::be32(seed + number);
	if (type_ == IB_QPT_UD) {
		request.ud.ah = ah_;
		request.ud.remote_qpn = remote_qpn_;
		request.ud.remote_qkey = static_cast<u32>(arguments.number("qkey", datagram_qkey));
		return;
	}
	if (is_atomic(opcode)) {
		request.atomic.remote_addr = remote;
		request.atomic.rkey = rkey;
		request.atomic.compare_add = arguments.number("compare_add");
		request.atomic.compare_add_mask = arguments.number("compare_add_mask");
		request.atomic.swap = arguments.number("swap");
		request.atomic.swap_mask = arguments.number("swap_mask");
	} else {
		request.rdma.remote_addr = remote + number * arguments.number("step", size);
		request.rdma.rkey = rkey;
	}
	if (type_ == IB_QPT_XRC_INI)
		request.xrc.remote_srqn = remote_srqn_;
}

kern::Result<> Endpoint::send(const Arguments &arguments, Answer &answer)
{
	const u32 count = static_cast<u32>(arguments.number("count", 1));
	const u32 size = static_cast<u32>(arguments.number("size", 64));
	const u32 batch = static_cast<u32>(arguments.number("batch", 1));
	const u32 slots = size_ / (size ? size : 1);
	if (!slots || batch == 0 || batch > max_batch || batch > depth_)
		return kern::Error{-EINVAL};
	for (u64 calls = arguments.number("after"); calls; calls--)
		KERN_TRY(wait_completion(recv_cq_, wait_ms));

	u32 posted = 0, done = 0, failed = 0, first_status = 0;
	const u64 begin = kern::now_ns();
	while (done < count) {
		while (posted < count && posted - done + batch <= depth_ &&
		       posted - done + batch <= slots) {
			u32 n = 0;
			for (; n < batch && posted + n < count; n++) {
				describe(requests_[n], arguments, posted + n);
				if (n)
					requests_[n - 1].wr.next = &requests_[n].wr;
			}
			const ib_send_wr *bad;
			KERN_TRY_ERRNO(ib_post_send(qp_, &requests_[0].wr, &bad));
			posted += n;
		}
		const ib_wc wc = KERN_TRY(wait_completion(
			send_cq_, static_cast<unsigned int>(arguments.number("ms", wait_ms))));
		if (wc.status != IB_WC_SUCCESS) {
			if (!failed++)
				first_status = wc.status;
		} else if (wc.wr_id != done || wc.opcode != completion_of(opcode_of(arguments))) {
			answer.add("completion %lu, opcode %d, where %u was due ", wc.wr_id,
				   wc.opcode, done);
			return kern::Error{-EPROTO};
		}
		done++;
	}
	answer.add("done=%u failed=%u status=%s ns=%lu", done - failed, failed,
		   ib_wc_status_msg(static_cast<ib_wc_status>(first_status)),
		   kern::now_ns() - begin);
	return {};
}

kern::Result<ib_wc> Endpoint::perform(Request &request)
{
	request.wr.send_flags = IB_SEND_SIGNALED;
	const ib_send_wr *bad;
	KERN_TRY_ERRNO(ib_post_send(qp_, &request.wr, &bad));
	const ib_wc wc = KERN_TRY(wait_completion(send_cq_, wait_ms));
	if (wc.status == IB_WC_SUCCESS && wc.opcode != completion_of(request.wr.opcode))
		return kern::Error{-EPROTO};
	return wc;
}

kern::Result<> Endpoint::register_fast(const Arguments &, Answer &answer)
{
	if (!fast_)
		fast_ = KERN_TRY(
			checked(ib_alloc_mr(pd_, IB_MR_TYPE_MEM_REG, (size_ + 4095) / 4096)));
	else
		ib_update_fast_reg_key(fast_, static_cast<u8>(fast_->rkey + 1));
	const ib_dma_segment segment{recv_memory_.address(), size_};
	const int mapped = ib_map_mr_sg(fast_, &segment, 1, nullptr, 4096);
	if (mapped != 1)
		return kern::Error{mapped < 0 ? mapped : -EIO};
	Request request{};
	request.reg.wr.opcode = IB_WR_REG_MR;
	request.reg.mr = fast_;
	request.reg.key = fast_->rkey;
	request.reg.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
			     IB_ACCESS_REMOTE_READ | IB_ACCESS_MW_BIND;
	const ib_wc wc = KERN_TRY(perform(request));
	answer.add("status=%s rkey=0x%x addr=0x%lx", ib_wc_status_msg(wc.status), fast_->rkey,
		   fast_->iova);
	return {};
}

kern::Result<> Endpoint::bind(const Arguments &arguments, Answer &answer)
{
	if (!fast_)
		return kern::Error{-EINVAL};
	if (!window_)
		window_ = KERN_TRY(checked(ib_alloc_mw(
			pd_, arguments.number("type", 2) == 1 ? IB_MW_TYPE_1 : IB_MW_TYPE_2)));
	else
		window_->rkey = (window_->rkey & ~0xffu) | ((window_->rkey + 1) & 0xff);
	Request request{};
	request.bind.wr.opcode = IB_WR_BIND_MW;
	request.bind.mw = window_;
	request.bind.rkey = window_->rkey;
	request.bind.mr = fast_;
	request.bind.addr = fast_->iova + arguments.number("offset");
	request.bind.length = arguments.number("size", 4096);
	request.bind.access = arguments.number("deny")
				      ? IB_ACCESS_REMOTE_READ
				      : IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE;
	const ib_wc wc = KERN_TRY(perform(request));
	answer.add("status=%s rkey=0x%x addr=0x%lx", ib_wc_status_msg(wc.status), window_->rkey,
		   request.bind.addr);
	return {};
}

kern::Result<> Endpoint::invalidate(const Arguments &arguments, Answer &answer)
{
	const bool window = arguments.number("window");
	if (window ? !window_ : !fast_)
		return kern::Error{-EINVAL};
	Request request{};
	request.wr.opcode = IB_WR_LOCAL_INV;
	request.wr.ex.invalidate_rkey = window ? window_->rkey : fast_->rkey;
	const ib_wc wc = KERN_TRY(perform(request));
	answer.add("status=%s", ib_wc_status_msg(wc.status));
	return {};
}

} // namespace traffic
