// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx4/transport/tests/node.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "net/fabric/port.hpp"

namespace weft::mlx4::transport
{

using hw::mlx4::CqContext;
using hw::mlx4::Eqe;
using hw::mlx4::ErrorCqe;
using hw::mlx4::MptEntry;
using hw::mlx4::SrqContext;

namespace
{

/* Addresses of the tables, both in ICM and on the bus. */
constexpr std::uint64_t kDmptBase = 0;
constexpr unsigned kLogDmpts = 12;
constexpr std::uint64_t kMttBase = 1 << 20;
constexpr std::uint64_t kIcmSize = 4 << 20;
constexpr unsigned kLogObjects = 12;
constexpr unsigned kPage = 4096;

} // namespace

Node::Node(fabric::Port &port, ib::Lid lid)
    : memory_(icm_, 0), events_([](unsigned) {}), context_({.name = "test",
							    .loop = host_.loop(),
							    .memory = memory_,
							    .events = events_,
							    .multicast = multicast_,
							    .management = agent_,
							    .diagnostics = diagnostics_,
							    .ports = ports_},
							   kLogObjects),
      free_memory_(kIcmSize)
{
	icm_.map(0, 0, kIcmSize);
	memory_.set_memory(&host_.dma());
	memory_.set_layout({kDmptBase, kMttBase, kLogDmpts});
	multicast_.reset(6, 1 << 4, 5);
	ports_.push_back(std::make_unique<CardPort>(1, 0x1000u + lid, port));
	ports_[0]->info().lid = lid;
	ports_[0]->info().set_state(ib::PortState::active);

	events_.reset(3);
	create_event_queue(true);

	context_.ipoib_checksum = true;
	transport_ = make_transport(context_);
	port.attach(*this);
	port.enable();
}

Node::~Node()
{
	ports_[0]->fabric_port().detach();
	context_.queue_pairs.for_each([&](hca::QueuePair &qp) { transport_->qp_destroyed(qp); });
	inbox_.clear();
	transport_.reset();
}

void Node::receive(fabric::Packet &&packet)
{
	const MutexLock lock(inbox_mutex_);
	inbox_.push_back(std::move(packet));
}

void Node::credit_available(std::uint8_t vl)
{
	const MutexLock lock(inbox_mutex_);
	credits_ |= 1u << vl;
}

bool Node::poll()
{
	const bool worked = deliver();
	return host_.loop().poll() != 0 || worked;
}

bool Node::deliver()
{
	std::vector<fabric::Packet> packets;
	unsigned credits;
	{
		const MutexLock lock(inbox_mutex_);
		packets.swap(inbox_);
		credits = std::exchange(credits_, 0u);
	}
	bool worked = credits != 0 || !packets.empty();
	for (auto &packet : packets)
		transport_->receive(1, std::move(packet));
	for (std::uint8_t vl = 0; vl < fabric::Port::kVls; vl++)
		if (credits & 1u << vl)
			transport_->credit_available(1, vl);
	return worked;
}

std::uint64_t Node::allocate(std::uint64_t bytes, std::uint64_t alignment)
{
	free_memory_ = (free_memory_ + alignment - 1) & ~(alignment - 1);
	std::uint64_t address = free_memory_;
	free_memory_ += bytes;
	return address;
}

std::uint64_t Node::new_mtts(std::span<const std::uint64_t> pages)
{
	std::uint64_t offset = free_mtt_;
	for (std::uint64_t address : pages) {
		host_.object<ib::be64>(kMttBase + free_mtt_) = address | 1;
		free_mtt_ += 8;
	}
	return offset;
}

Node::QueueMemory Node::queue_memory(std::uint64_t size)
{
	if (auto spare = spare_queues_.find(size); spare != spare_queues_.end()) {
		QueueMemory again = spare->second;
		spare_queues_.erase(spare);
		std::memset(bytes(again.address, again.size).data(), 0, again.size);
		return again;
	}
	std::uint64_t address = allocate(size);
	std::vector<std::uint64_t> pages;
	for (std::uint64_t at = 0; at < size; at += kPage)
		pages.push_back(address + at);
	return {{.mtt_offset = new_mtts(pages)}, address, size};
}

void Node::write_mpt(std::uint32_t key, const MptEntry &entry)
{
	memory_.write_entry(key >> 8, entry);
	keys_[key] = entry;
}

Region Node::region(std::uint64_t length, std::uint32_t rights, std::uint32_t pd)
{
	Region region{allocate(length), length, next_key_++ << 8 | 0x5a};
	MptEntry entry{};
	hw::mlx4::store_be32(entry.bytes, 0, rights << 10);
	MptEntry::region.set(entry.bytes, 1);
	MptEntry::physical.set(entry.bytes, 1);
	MptEntry::remote_invalidate_enable.set(entry.bytes, 1);
	MptEntry::mem_key.set(entry.bytes, hw::mlx4::mpt_key(region.key));
	MptEntry::pd.set(entry.bytes, pd);
	MptEntry::start.set(entry.bytes, region.address);
	MptEntry::length.set(entry.bytes, length);
	write_mpt(region.key, entry);
	return region;
}

Region Node::paged_region(std::uint64_t length, std::uint64_t virtual_address,
			  std::vector<std::uint64_t> &pages)
{
	pages.clear();
	std::uint64_t count = (virtual_address % kPage + length + kPage - 1) / kPage;
	for (std::uint64_t i = 0; i < count; i++) {
		pages.push_back(allocate(kPage));
		allocate(kPage); /* so that the pages are not adjacent */
	}
	Region region{virtual_address, length, next_key_++ << 8 | 0x33};
	MptEntry entry{};
	hw::mlx4::store_be32(entry.bytes, 0, kAllRights << 10);
	MptEntry::region.set(entry.bytes, 1);
	MptEntry::mem_key.set(entry.bytes, hw::mlx4::mpt_key(region.key));
	MptEntry::pd.set(entry.bytes, 7);
	MptEntry::start.set(entry.bytes, virtual_address);
	MptEntry::length.set(entry.bytes, length);
	MptEntry::mtt_offset.set(entry.bytes, new_mtts(pages));
	MptEntry::entity_size.set(entry.bytes, 12);
	write_mpt(region.key, entry);
	return region;
}

std::uint32_t Node::free_key(unsigned count)
{
	std::uint32_t key = next_key_++ << 8;
	std::vector<std::uint64_t> none(count, 0);
	MptEntry entry{};
	MptEntry::status.set(entry.bytes, hw::mlx4::mpt_status::free);
	MptEntry::region.set(entry.bytes, 1);
	MptEntry::mem_key.set(entry.bytes, hw::mlx4::mpt_key(key));
	MptEntry::pd.set(entry.bytes, 7);
	MptEntry::fast_register_enable.set(entry.bytes, 1);
	MptEntry::remote_access_enable.set(entry.bytes, 1);
	MptEntry::invalidate_enable.set(entry.bytes, 1);
	MptEntry::remote_invalidate_enable.set(entry.bytes, 1);
	MptEntry::mtt_offset.set(entry.bytes, new_mtts(none));
	MptEntry::mtt_size.set(entry.bytes, count);
	write_mpt(key, entry);
	return key;
}

void Node::destroy_key(std::uint32_t key)
{
	MptEntry entry{};
	MptEntry::status.set(entry.bytes, hw::mlx4::mpt_status::software);
	write_mpt(key, entry);
	transport_->key_gone(key >> 8);
}

void Node::restore_keys()
{
	for (const auto &[key, entry] : keys_)
		memory_.write_entry(key >> 8, entry);
}

CompletionQueue &Node::create_cq(unsigned log_size)
{
	std::uint32_t cqn = next_number_++;
	QueueMemory queue = queue_memory(std::uint64_t{32} << log_size);
	DriverCq driver{queue.address, allocate(8, 8), log_size};
	CqContext context{};
	CqContext::log_size.set(context.bytes, log_size);
	CqContext::mtt_offset.set(context.bytes, queue.buffer.mtt_offset);
	CqContext::doorbell_record.set(context.bytes, driver.record);
	auto cq = std::make_unique<CompletionQueue>(
		CompletionQueue::Services{memory_, events_, host_.loop()}, cqn, context);
	cq->initialise_buffer();
	cqs_[cqn] = driver;
	return context_.completion_queues.insert(cqn, std::move(cq));
}

QueuePair &Node::create_qp(const QpOptions &options, CompletionQueue &send_cq,
			   CompletionQueue &receive_cq)
{
	auto owned = std::make_unique<QueuePair>();
	QueuePair &qp = *owned;
	qp.qpn = options.qpn ? options.qpn : next_number_++ | 0xabc000;
	qp.state = QpState::init;
	qp.service = options.service;
	qp.special = context_.special_qps.kind(qp.qpn);
	qp.pd = options.pd;
	qp.send_cqn = send_cq.number();
	qp.receive_cqn = receive_cq.number();
	qp.uses_srq = options.srqn != 0;
	qp.srqn = options.srqn;
	qp.xrc_domain = options.xrc_domain;
	qp.remote_read = qp.remote_write = qp.remote_atomic = true;
	qp.fast_register = true;
	qp.qkey = options.qkey;
	qp.send_queue = {.offset = 0,
			 .log_size = static_cast<std::uint8_t>(options.log_send),
			 .log_stride = 10,
			 .present = true};
	qp.receive_queue = {.offset = std::uint64_t{1} << (options.log_send + 10),
			    .log_size = static_cast<std::uint8_t>(options.log_receive),
			    .log_stride = 6,
			    .present = !qp.uses_srq && options.service != ServiceType::xrc};
	qp.has_receive_queue = qp.receive_queue.present;
	QueueMemory queue =
		queue_memory(qp.receive_queue.offset +
			     (std::uint64_t{1} << (options.log_receive + 6)) + sizeof(ib::be32));
	/* Before the first lap the card owns all send WQEs. */
	for (unsigned i = 0; i < qp.send_queue.size(); i++)
		host_.object<ib::be32>(queue.address + qp.send_queue.wqe_offset(i)) = 1u << 31;
	qp.buffer = queue.buffer;
	qp.doorbell_record = queue.address + queue.size - sizeof(ib::be32);
	qps_[qp.qpn] = {queue.address, queue};
	context_.queue_pairs.insert(qp.qpn, std::move(owned));
	transport_->qp_created(qp);
	return qp;
}

SharedReceiveQueue &Node::create_srq(unsigned log_size, std::uint16_t limit,
				     std::uint16_t xrc_domain, std::uint32_t cqn)
{
	std::uint32_t srqn = next_number_++;
	QueueMemory queue = queue_memory(std::uint64_t{64} << log_size);
	DriverSrq driver{queue.address, allocate(4, 4)};
	for (std::uint32_t i = 0; i < 1u << log_size; i++)
		host_.object<hw::mlx4::SrqNext>(queue.address + i * 64).next_index =
			static_cast<std::uint16_t>((i + 1) & ((1u << log_size) - 1));
	SrqContext context{};
	SrqContext::log_size.set(context.bytes, log_size);
	SrqContext::log_stride.set(context.bytes, 2);
	SrqContext::mtt_offset.set(context.bytes, queue.buffer.mtt_offset);
	SrqContext::pd.set(context.bytes, 7);
	SrqContext::xrc_domain.set(context.bytes, xrc_domain);
	SrqContext::cqn.set(context.bytes, cqn);
	SrqContext::doorbell_record.set(context.bytes, driver.record);
	srqs_[srqn] = driver;
	auto &srq = context_.shared_receive_queues.insert(
		srqn,
		std::make_unique<SharedReceiveQueue>(memory_, events_, nullptr, srqn, context));
	if (limit)
		srq.arm_limit(limit);
	return srq;
}

void Node::modify(QueuePair &qp, QpState state)
{
	QpState from = qp.state;
	qp.state = state;
	transport_->qp_changed(qp, from);
}

void Node::connect(QueuePair &qp, const Node &peer, const QueuePair &peer_qp,
		   const QpOptions &options, QpState last)
{
	qp.mtu = static_cast<std::uint8_t>(options.mtu);
	qp.remote_qpn = peer_qp.qpn;
	qp.path.remote_lid = peer.context_.port(1)->lid();
	qp.path.ack_timeout = options.ack_timeout;
	qp.retry_count = options.retry_count;
	qp.rnr_retry = options.rnr_retry;
	qp.min_rnr_timer = options.min_rnr_timer;
	qp.log_requester_reads = qp.log_responder_reads = options.log_reads;
	qp.initial_receive_psn = qp.initial_send_psn = options.first_psn;
	if (last >= QpState::rtr)
		modify(qp, QpState::rtr);
	if (last >= QpState::rts)
		modify(qp, QpState::rts);
}

void Node::destroy(QueuePair &qp)
{
	transport_->qp_destroyed(qp);
	const QueueMemory memory = qps_.at(qp.qpn).memory;
	spare_queues_.emplace(memory.size, memory);
	qps_.erase(qp.qpn);
	context_.queue_pairs.remove(qp.qpn);
}

void Node::zero_send_queue(const QueuePair &qp)
{
	std::size_t size = std::size_t{qp.send_queue.size()} << qp.send_queue.log_stride;
	std::ranges::fill(bytes(qps_.at(qp.qpn).address, size), std::byte{0});
}

std::uint16_t Node::post(QueuePair &qp, std::vector<std::byte> wqe)
{
	DriverQp &driver = qps_.at(qp.qpn);
	std::uint16_t index = driver.sent++;
	std::uint64_t address = driver.address + qp.send_queue.wqe_offset(index);
	hw::mlx4::WqeControl control;
	std::memcpy(&control, wqe.data(), sizeof(control));
	std::uint32_t word = control.opcode_word & ~hw::mlx4::WqeControl::owner_bit;
	if (index >> qp.send_queue.log_size & 1)
		word |= hw::mlx4::WqeControl::owner_bit;
	auto place = bytes(address, wqe.size());
	std::memcpy(place.data() + 4, wqe.data() + 4, wqe.size() - 4);
	host_.object<ib::be32>(address) = word;
	return index;
}

void Node::post_receive(QueuePair &qp, const std::vector<WqeData> &pieces)
{
	DriverQp &driver = qps_.at(qp.qpn);
	std::uint64_t address = driver.address + qp.receive_queue.wqe_offset(driver.received++);
	for (const WqeData &piece : pieces) {
		host_.object<WqeData>(address) = piece;
		address += sizeof(WqeData);
	}
	if (pieces.size() * sizeof(WqeData) < qp.receive_queue.stride())
		host_.object<WqeData>(address) = {0, WqeData::terminator_lkey, 0};
	host_.object<ib::be32>(qp.doorbell_record) = driver.received;
}

void Node::post_srq(SharedReceiveQueue &srq, const std::vector<WqeData> &pieces)
{
	DriverSrq &driver = srqs_.at(srq.number());
	std::uint64_t address = driver.address + srq.wqe_offset(driver.tail) + 16;
	for (const WqeData &piece : pieces) {
		host_.object<WqeData>(address) = piece;
		address += sizeof(WqeData);
	}
	if (pieces.size() < 3)
		host_.object<WqeData>(address) = {0, WqeData::terminator_lkey, 0};
	driver.tail = static_cast<std::uint16_t>((driver.tail + 1) & (srq.size() - 1));
	host_.object<ib::be32>(driver.record) = ++driver.posted;
}

std::optional<Completion> Node::poll_cq(CompletionQueue &cq)
{
	DriverCq &driver = cqs_.at(cq.number());
	std::uint32_t slot = driver.consumer & ((1u << driver.log_size) - 1);
	const auto &cqe = host_.object<hw::mlx4::Cqe>(driver.address + slot * 32);
	if (cqe.owner() != ((driver.consumer >> driver.log_size & 1) != 0))
		return std::nullopt;
	driver.consumer++;
	host_.object<ib::be32>(driver.record) = driver.consumer & 0xffffff;
	Completion completion;
	completion.raw = cqe;
	completion.is_send = cqe.is_send();
	completion.opcode = cqe.opcode();
	completion.qpn = cqe.qpn();
	completion.wqe_index = cqe.wqe_index;
	completion.byte_count = cqe.byte_count;
	completion.immediate = cqe.immediate;
	if (cqe.opcode() == hw::mlx4::cqe_opcode_error) {
		completion.is_error = true;
		completion.syndrome =
			static_cast<CqeSyndrome>(std::bit_cast<ErrorCqe>(cqe).syndrome);
	}
	return completion;
}

void Node::create_event_queue(bool endless)
{
	QueueMemory queue = queue_memory(std::uint64_t{32} << log_events_);
	eq_address_ = queue.address;
	eq_consumer_ = 0;
	events_.create(memory_, 0,
		       {.buffer = queue.buffer,
			.log_size = static_cast<std::uint8_t>(log_events_),
			.overrun_ignore = endless,
			.state = hw::mlx4::eq_state::armed})
		.initialise_buffer();
	events_.map(~std::uint64_t{0}, 0);
}

void Node::bound_event_queue(unsigned log_size)
{
	events_.remove(0);
	log_events_ = log_size;
	create_event_queue(false);
}

void Node::acknowledge_events()
{
	events_.find(0)->set_consumer_index(eq_consumer_);
	transport_->events_wanted();
}

std::vector<Event> Node::take_events()
{
	std::vector<Event> result;
	for (;; eq_consumer_++) {
		std::uint32_t slot = eq_consumer_ & ((1u << log_events_) - 1);
		const auto &eqe = host_.object<Eqe>(eq_address_ + slot * 32);
		if (Eqe::owner.get(eqe.bytes) != (eq_consumer_ >> log_events_ & 1))
			break;
		auto type = static_cast<EventType>(Eqe::type.get(eqe.bytes));
		if (type != EventType::completion)
			result.push_back({type, Eqe::number.get(eqe.bytes)});
	}
	return result;
}

} // namespace weft::mlx4::transport
