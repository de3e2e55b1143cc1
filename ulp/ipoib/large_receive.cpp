// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "large_receive.hpp"

#include "receive.hpp"

namespace ipoib
{
namespace
{

/*
 * Packets of at most this size are copied, because the network stack charges the whole block of a
 * packet to its socket.
 */
constexpr u32 block_worth = 8192;
constexpr auto direction = kern::dma::Direction::from_device;

} // namespace

kern::Result<LargeReceive::Block> LargeReceive::make(kern::Gfp flags)
{
	page *pages = kern_alloc_pages(block_order, kern_node_id(),
				       static_cast<unsigned>(flags | kern::Gfp::no_warn));
	if (!pages)
		return kern::Error{-ENOMEM};
	auto mapped = kern::dma::map_page(device_->dma_device, pages, 0, block_bytes, direction);
	if (!mapped.ok()) {
		kern_put_page(pages);
		return kern::Error{mapped.error()};
	}
	counters_.pages_allocated++;
	return Block{pages, mapped.value()};
}

void LargeReceive::release(const Block &block)
{
	kern::dma::unmap_page(device_->dma_device, block.dma, block_bytes, direction);
	kern_put_page(block.pages);
}

void LargeReceive::install(Slot &slot, const Block &block)
{
	slot.block = block;
	slot.sge.addr = block.dma;
}

kern::Result<> LargeReceive::fill(net_device *dev, ib_device *device, ib_srq *srq, u32 lkey)
{
	dev_ = dev;
	device_ = device;
	srq_ = srq;
	slots_ = KERN_TRY(kern::make_array<Slot>(kern::Gfp::kernel, depth));
	u32 index = 0;
	for (Slot &slot : slots_) {
		install(slot, KERN_TRY(make(kern::Gfp::kernel)));
		slot.sge.length = block_bytes;
		slot.sge.lkey = lkey;
		slot.wr.sg_list = &slot.sge;
		slot.wr.num_sge = 1;
		slot.wr.wr_id = index++;
		append(slot);
	}
	post();
	return kern::check(back_ ? -EIO : 0);
}

void LargeReceive::reclaim()
{
	for (Slot &slot : slots_)
		if (slot.block.pages)
			release(slot.block);
	slots_ = {};
	for (; spares_first_ != spares_end_; spares_first_++)
		release(spares_[spares_first_ % spares_max]);
	back_first_ = back_last_ = nullptr;
	back_ = 0;
}

/* Appends the slot's request to the chain that post() posts. */
void LargeReceive::append(Slot &slot)
{
	slot.wr.next = nullptr;
	if (back_last_)
		back_last_->next = &slot.wr;
	else
		back_first_ = &slot.wr;
	back_last_ = &slot.wr;
	back_++;
}

bool LargeReceive::post()
{
	if (!back_)
		return true;
	const ib_recv_wr *bad = nullptr;
	const int status = ib_post_srq_recv(srq_, back_first_, &bad);
	if (!status) {
		back_first_ = back_last_ = nullptr;
		back_ = 0;
		return true;
	}
	counters_.errors++;
	while (back_first_ != bad) {
		back_first_ = back_first_->next;
		back_--;
	}
	return back_ < depth;
}

/*
 * Takes a spare block that the stack has released. Only the two blocks that the stack has had for
 * the longest time are checked.
 */
bool LargeReceive::take_spare(Block &block)
{
	for (unsigned checked = 0; checked < 2 && spares_first_ != spares_end_; checked++) {
		block = spares_[spares_first_++ % spares_max];
		if (kern_page_references(block.pages) != 1)
			spares_[spares_end_++ % spares_max] = block;
		else if (!kern_page_reusable(block.pages))
			release(block);
		else
			return true;
	}
	return false;
}

/*
 * Provides a block to replace one that is passed to the stack. Returns false if there is none, or
 * if the stack already has as many blocks as it may have.
 */
bool LargeReceive::take_another(Block &block)
{
	if (take_spare(block)) {
		counters_.pages_reused++;
		return true;
	}
	if (spares_end_ - spares_first_ >= spares_max)
		return false;
	auto made = make(kern::Gfp::nowait);
	if (made.ok())
		block = made.value();
	return made.ok();
}

void LargeReceive::receive(kern_napi &napi, const ib_wc &wc, Unsummed unsummed)
{
	Slot &slot = slots_[static_cast<u32>(wc.wr_id)];
	if (wc.status == IB_WC_SUCCESS) [[likely]] {
		if (wc.byte_len <= sizeof(Header)) {
			counters_.too_short++;
		} else if (wc.byte_len > connected_bytes) {
			counters_.too_long++;
		} else {
			kern::dma::sync_for_cpu(device_->dma_device, slot.block.dma, wc.byte_len,
						direction);
			deliver(napi, slot, wc.byte_len, unsummed);
		}
	} else if (wc.status != IB_WC_WR_FLUSH_ERR) {
		counters_.errors++;
	}
	kern::dma::sync_for_device(device_->dma_device, slot.block.dma, block_bytes, direction);
	append(slot);
}

void LargeReceive::deliver(kern_napi &napi, Slot &slot, u32 length, Unsummed unsummed)
{
	const auto *bytes = static_cast<const u8 *>(kern_page_address(slot.block.pages));
	LinkHeader link{};
	link.header = *reinterpret_cast<const Header *>(bytes);
	const auto type = link.header.type.value();
	if (!carries(type)) [[unlikely]] {
		counters_.unknown_type++;
		return;
	}

	kern_rx_packet packet{};
	packet.mac_header = &link;
	packet.mac_length = sizeof(link);
	packet.data = bytes + sizeof(Header);
	packet.length = length - static_cast<u32>(sizeof(Header));
	packet.copied = linear_length(bytes, length) - static_cast<u32>(sizeof(Header));
	packet.page = slot.block.pages;
	packet.page_offset = sizeof(Header);
	packet.truesize = block_bytes;
	packet.protocol = type;
	packet.type = KERN_PACKET_HOST;
	if (unsummed != Unsummed::nothing && link.header.reserved.value() == Header::unsummed) {
		if (unsummed == Unsummed::lost) {
			counters_.unsummed_lost++;
			return;
		}
		const ChecksumPlace sum = checksum_place(type, packet.data, packet.length);
		if (!sum) {
			counters_.errors++;
			return;
		}
		packet.checksum_start = sum.start;
		packet.checksum_offset = sum.offset;
		packet.copied = packet.copied < sum.end() ? sum.end() : packet.copied;
		counters_.unsummed++;
	}
	link.header.reserved = 0;

	Block fresh;
	const bool replaced = length > block_worth && take_another(fresh);
	const Block given = slot.block;
	if (replaced)
		kern_get_page(given.pages);
	if (replaced ? !kern_napi_receive(&napi, dev_, &packet)
		     : !kern_napi_receive_copy(&napi, dev_, &packet)) [[unlikely]] {
		counters_.no_memory++;
		if (replaced) {
			kern_put_page(given.pages);
			release(fresh);
		}
		return;
	}
	counters_.packets++;
	counters_.bytes += packet.length;
	if (replaced) {
		install(slot, fresh);
		/*
		 * There is a free entry: take_another() has either removed one or checked that the
		 * array is not full. The stack may have released the block already.
		 */
		spares_[spares_end_++ % spares_max] = given;
	}
}

} // namespace ipoib
