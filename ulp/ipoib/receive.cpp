// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "receive.hpp"

#include <kern/time.hpp>

namespace ipoib
{
namespace
{

/* Number of receives that are posted with one doorbell. */
constexpr u32 post_batch = 32;
/* A packet of at most this size is copied completely, and its buffer is posted again at once. */
constexpr u32 copy_limit = 256;
/* Header bytes to copy if the packet is not plain TCP; covers most protocols. */
constexpr u32 header_guess = 128;
constexpr unsigned drain_ms = 5000;
/* Distance between two GRHs in their area, so that two do not share a cache line. */
constexpr u32 grh_stride = 64;

/*
 * Returns the length of the headers to copy into the linear part of an skb. length: greater than
 * copy_limit.
 */
u32 header_length(const u8 *datagram, u32 length)
{
	constexpr u32 start = sizeof(Header);
	constexpr u8 protocol_tcp = 6;
	const auto type = reinterpret_cast<const Header *>(datagram)->type.value();
	u32 tcp;

	if (type == type_ipv4 && datagram[start + 9] == protocol_tcp)
		tcp = start + (datagram[start] & 0xf) * 4u;
	else if (type == type_ipv6 && datagram[start + 6] == protocol_tcp)
		tcp = start + 40;
	else
		return header_guess < length ? header_guess : length;
	/* The data offset, in words, is the high half of the thirteenth byte of the TCP header. */
	const u32 end = tcp + 20 < length ? tcp + (datagram[tcp + 12] >> 4) * 4u : length;
	return end < length && end <= copy_limit ? end
						 : (header_guess < length ? header_guess : length);
}

[[gnu::always_inline]] inline u32 linear_part(const u8 *datagram, u32 length)
{
	return length <= copy_limit ? length : header_length(datagram, length);
}

} // namespace

u32 linear_length(const u8 *datagram, u32 length)
{
	return linear_part(datagram, length);
}

ReceiveQueue::~ReceiveQueue()
{
	for (Slot &slot : slots_)
		kern_assert(!slot.buffer.page);
}

kern::Result<> ReceiveQueue::allocate(ib_device *device, u32 entries, u32 datagram_bytes, u32 lkey)
{
	device_ = device;
	buffer_bytes_ =
		datagram_bytes <= kern::page_size / 2 ? kern::page_size / 2 : kern::page_size;
	grh_area_ = KERN_TRY(kern::DmaBuffer::create(device->dma_device, entries * grh_stride));
	slots_ = KERN_TRY(kern::make_array<Slot>(kern::Gfp::kernel, entries));
	mask_ = entries - 1;

	u32 index = 0;
	for (Slot &slot : slots_) {
		slot.sge[0] = {grh_area_.address() + index * grh_stride, grh_bytes, lkey};
		slot.sge[1] = {0, buffer_bytes_, lkey};
		slot.wr.sg_list = slot.sge;
		slot.wr.num_sge = 2;
		slot.wr.wr_id = index++;
	}
	return {};
}

void ReceiveQueue::free()
{
	slots_ = {};
	grh_area_ = {};
}

void ReceiveQueue::init(net_device *dev, Faults &faults)
{
	dev_ = dev;
	faults_ = &faults;
	add(dev, false);
}

void ReceiveQueue::attach(ib_qp *qp, ib_cq *cq)
{
	qp_ = qp;
	cq_ = cq;
	moderation_.attach(cq);
}

void ReceiveQueue::detach()
{
	moderation_.detach();
	qp_ = nullptr;
	cq_ = nullptr;
	own_qp_count_ = 0;
}

void ReceiveQueue::add_own_qp(u32 number)
{
	kern_assert(own_qp_count_ < max_transmit_queues);
	own_qps_[own_qp_count_++] = number;
}

bool ReceiveQueue::is_own_qp(u32 number) const
{
	for (u32 i = 0; i < own_qp_count_; i++)
		if (own_qps_[i] == number)
			return true;
	return false;
}

kern::Result<> ReceiveQueue::fill(const ib::Gid &broadcast)
{
	broadcast_ = broadcast;
	posted_ = taken_ = 0;
	supply_ = Supply::kept;
	for (Slot &slot : slots_) {
		Buffer fresh;
		if (slot.buffer.page)
			continue;
		if (!acquire(fresh))
			return kern::Error{-ENOMEM};
		install(slot, fresh);
	}
	return kern::check(post());
}

kern::Result<> ReceiveQueue::start()
{
	enable();
	const int armed = ib_req_notify_cq(cq_, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS);
	if (armed < 0) [[unlikely]]
		return kern::Error{armed};
	/*
	 * The CQ may have been armed by an earlier start, and its event may have been lost because
	 * NAPI was disabled. On some hardware the same completion raises no second event, so poll
	 * once in any case.
	 */
	schedule_from_task();
	return {};
}

void ReceiveQueue::stop()
{
	disable();
	moderation_.stop();
}

/* Allocates and maps a page. Returns false if either fails. */
bool ReceiveQueue::acquire(Buffer &buffer)
{
	page *fresh = kern_page_alloc();
	if (!fresh)
		return false;
	auto mapped = kern::dma::map_page(device_->dma_device, fresh, 0, kern::page_size,
					  kern::dma::Direction::from_device);
	if (!mapped.ok()) {
		kern_page_put(fresh);
		return false;
	}
	counters_.pages_allocated++;
	buffer = {fresh, mapped.value()};
	return true;
}

void ReceiveQueue::release(Buffer &buffer)
{
	if (!buffer.page)
		return;
	kern::dma::unmap_page(device_->dma_device, buffer.dma, kern::page_size,
			      kern::dma::Direction::from_device);
	kern_page_put(buffer.page);
	buffer.page = nullptr;
}

void ReceiveQueue::install(Slot &slot, const Buffer &buffer)
{
	slot.buffer = buffer;
	slot.offset = 0;
	slot.sge[1].addr = buffer.dma;
}

/* Posts all free buffers. Errors: those of ib_post_recv(), which may have accepted some of them. */
int ReceiveQueue::post()
{
	const u32 end = taken_ + depth();
	if (posted_ == end)
		return 0;
	ib_recv_wr *const first = &slot(posted_).wr;
	ib_recv_wr *last = first;
	for (u32 index = posted_ + 1; index != end; index++) {
		ib_recv_wr *const next = &slot(index).wr;
		last->next = next;
		last = next;
	}
	last->next = nullptr;

	const ib_recv_wr *bad = nullptr;
	const int status = ib_post_recv(qp_, first, &bad);
	if (status) [[unlikely]] {
		counters_.errors++;
		for (const ib_recv_wr *wr = first; wr != bad; wr = wr->next)
			posted_++;
		return status;
	}
	posted_ = end;
	return 0;
}

/*
 * Posts receives that were refused before. If the QP accepts none and holds none, no completion
 * will follow, so the fault is reported.
 */
void ReceiveQueue::repost()
{
	if (supply_ == Supply::kept && post() && posted_ == taken_) [[unlikely]]
		report(fault_queue);
}

void ReceiveQueue::receive(Slot &slot, const ib_wc &wc)
{
	if (wc.status != IB_WC_SUCCESS) [[unlikely]] {
		if (wc.status == IB_WC_WR_FLUSH_ERR) {
			/*
			 * Only this driver stops the QP, and it does not poll at that time, so a
			 * flushed receive means that the QP is in error.
			 */
			supply_ = Supply::cut;
			report(fault_queue);
		} else {
			counters_.errors++;
			report(fault_recheck);
		}
		return;
	}
	if (wc.byte_len <= grh_bytes + sizeof(Header)) [[unlikely]] {
		counters_.too_short++;
		return;
	}
	const u32 length = wc.byte_len - grh_bytes;
	if (length > buffer_bytes_) [[unlikely]] {
		counters_.too_long++;
		return;
	}
	/*
	 * A multicast packet is also delivered to its sender (IBA 9.4). Without this check, the
	 * stack would receive its own neighbour discovery.
	 */
	if (wc.slid == __atomic_load_n(&own_lid_, __ATOMIC_RELAXED) && is_own_qp(wc.src_qp))
		[[unlikely]] {
		counters_.from_self++;
		return;
	}
	kern::dma::sync_for_cpu(device_->dma_device, slot.sge[1].addr, length,
				kern::dma::Direction::from_device);
	if (!deliver(slot, wc, length)) [[unlikely]]
		kern::dma::sync_for_device(device_->dma_device, slot.sge[1].addr, length,
					   kern::dma::Direction::from_device);
}

/*
 * Passes a packet to the stack. Returns false if the CPU has read only the packet's headers, so the
 * caller must return the buffer to the device.
 */
bool ReceiveQueue::deliver(Slot &slot, const ib_wc &wc, u32 length)
{
	LinkHeader mac{};

	const auto *datagram =
		static_cast<const u8 *>(kern_page_bytes(slot.buffer.page)) + slot.offset;
	mac.header = *reinterpret_cast<const Header *>(datagram);
	const auto type = mac.header.type.value();
	if (!carries(type)) [[unlikely]] {
		counters_.unknown_type++;
		return false;
	}

	kern_rx_packet packet{};
	packet.mac_header = &mac;
	packet.mac_length = sizeof(mac);
	packet.data = datagram + sizeof(Header);
	packet.length = length - static_cast<u32>(sizeof(Header));
	packet.copied = linear_part(datagram, length) - static_cast<u32>(sizeof(Header));
	packet.page = slot.buffer.page;
	packet.page_offset = slot.offset + static_cast<u32>(sizeof(Header));
	packet.truesize = buffer_bytes_;
	packet.protocol = type;
	packet.checksum_ok = checksum_ && (wc.wc_flags & IB_WC_IP_CSUM_OK);
	packet.type = KERN_PACKET_HOST;
	if (wc.wc_flags & IB_WC_GRH) {
		const auto *grh = reinterpret_cast<const ib_grh *>(
			grh_area_.as<u8>() + static_cast<u32>(wc.wr_id) * grh_stride);
		if (rdma_is_multicast_gid(&grh->dgid)) {
			const bool broadcast = __builtin_memcmp(grh->dgid.raw, broadcast_.raw,
								sizeof(broadcast_.raw)) == 0;
			packet.type = broadcast ? KERN_PACKET_BROADCAST : KERN_PACKET_MULTICAST;
			counters_.multicast++;
		}
	}

	const bool gives_page = packet.copied < packet.length;
	const bool keeps_half = gives_page && other_half_is_free(slot);
	Buffer fresh{};
	if (keeps_half) {
		kern_page_get(slot.buffer.page);
	} else if (gives_page && !acquire(fresh)) [[unlikely]] {
		counters_.no_memory++;
		return false;
	}
	if (!kern_napi_receive(this, dev_, &packet)) [[unlikely]] {
		counters_.no_memory++;
		if (keeps_half)
			kern_page_put(slot.buffer.page);
		release(fresh);
		return true;
	}
	counters_.packets++;
	counters_.bytes += packet.length;
	if (keeps_half) {
		slot.offset ^= static_cast<u32>(kern::page_size / 2);
		slot.sge[1].addr = slot.buffer.dma + slot.offset;
		counters_.pages_reused++;
	} else if (gives_page) {
		/* The stack now owns the reference that the slot held. */
		kern::dma::unmap_page(device_->dma_device, slot.buffer.dma, kern::page_size,
				      kern::dma::Direction::from_device);
		install(slot, fresh);
	}
	return true;
}

/* Returns true if the stack uses no part of the slot's page. */
bool ReceiveQueue::other_half_is_free(const Slot &slot) const
{
	return buffer_bytes_ < kern::page_size && kern_page_references(slot.buffer.page) == 1 &&
	       kern_page_reusable(slot.buffer.page);
}

/* NAPI poll method. Context: softirq. */
int ReceiveQueue::poll(int budget)
{
	constexpr int batch = sizeof(wc_) / sizeof(wc_[0]);
	int work = 0;

	counters_.polls++;
	while (work < budget) {
		const int left = budget - work;
		const int count = ib_poll_cq(cq_, left < batch ? left : batch, wc_);
		if (count <= 0)
			break;
		for (int i = 0; i < count; i++)
			receive(slot(static_cast<u32>(wc_[i].wr_id)), wc_[i]);
		taken_ += static_cast<u32>(count);
		work += count;
		if (depth() - (posted_ - taken_) >= post_batch)
			repost();
		if (count < batch && count < left)
			break;
	}
	if (work >= budget)
		return budget;
	/* If no buffers are posted, no completion will schedule NAPI again. */
	if (posted_ == taken_) [[unlikely]]
		repost();
	moderation_.idle(counters_.packets, counters_.bytes);
	/*
	 * NOTIFY-09: complete NAPI first, then arm. If a completion has arrived in between,
	 * schedule NAPI again.
	 */
	if (!complete_done(work))
		return work;
	const int armed = ib_req_notify_cq(cq_, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS);
	if (armed > 0) {
		counters_.rearms_missed++;
		schedule();
	} else if (armed < 0) [[unlikely]] {
		/* NOTIFY-02: no further event will be raised. */
		report(fault_queue);
	}
	return work;
}

bool ReceiveQueue::drain()
{
	const auto deadline = kern::Deadline::in_ms(drain_ms);
	while (posted_ != taken_) {
		const int count = ib_poll_cq(cq_, sizeof(wc_) / sizeof(wc_[0]), wc_);
		if (count > 0) {
			taken_ += static_cast<u32>(count);
			continue;
		}
		if (deadline.passed())
			return false;
		kern::sleep_ms(1);
	}
	return true;
}

void ReceiveQueue::reclaim()
{
	posted_ = taken_ = 0;
	for (Slot &slot : slots_)
		release(slot.buffer);
	/*
	 * Drop completions from before the RESET; otherwise they would be taken for those of new
	 * receives.
	 */
	while (cq_ && ib_poll_cq(cq_, sizeof(wc_) / sizeof(wc_[0]), wc_) > 0)
		;
}

} // namespace ipoib
