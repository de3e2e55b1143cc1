// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "stranger/intruder.hpp"

#include <array>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>

#include <unistd.h>

#include <ib/sa.hpp>
#include <ib/smp.hpp>

#include "connectx/transport/tests/wqe_builder.hpp"
#include "core/packet/headers.hpp"
#include "vfio-user/protocol.hpp"

namespace weft::stranger
{

using connectx::testing::CardDriver;
using connectx::testing::Mailbox;
using connectx::testing::Opcode;
using connectx::testing::ServiceType;
using connectx::transport::WqeBuilder;
using hw::connectx::AddressPathLayout;
using hw::connectx::MptEntry;
using hw::connectx::PageMapping;
using hw::connectx::QpContext;
using hw::connectx::WqeControl;
using hw::connectx::WqeData;
using hw::connectx::WqeDatagram;
using hw::connectx::WqeOpcode;
using hw::connectx::WqeRemoteAddress;

namespace
{

constexpr std::uint64_t kMemory = CardDriver::kMemorySize;
constexpr std::uint32_t kPd = 7;
constexpr std::uint32_t kKey = 20 << 8;
constexpr std::uint64_t kScratch = 512 << 10;
// The numbers that CONF_SPECIAL_QP gives: QP0 and, two further, QP1.
constexpr std::uint32_t kSpecialQps = 128;
constexpr std::uint32_t kGsi = kSpecialQps + 2;
constexpr unsigned kLogSendQueue = 6;
constexpr unsigned kSendStride = 1024;
constexpr auto kPatience = std::chrono::seconds(30);

std::span<const std::byte> bytes_of(const ib::Mad &mad)
{
	return std::as_bytes(std::span(&mad, 1));
}

} // namespace

Intruder::Intruder(IntruderOptions options) : options_(std::move(options)), random_(options_.seed)
{
	acts_ = {
		{"giants", &Intruder::send_giants},
		{"all-memory", &Intruder::map_all_memory},
		{"splits", &Intruder::split_windows},
		{"truncated-memory", &Intruder::truncate_memory},
		{"descriptors", &Intruder::take_descriptors},
		{"traps", &Intruder::trap_by_the_thousand},
		{"foreign-members", &Intruder::join_and_leave_for_others},
		{"foreign-pkeys", &Intruder::use_foreign_pkeys},
		{"vl15", &Intruder::send_vl15_to_data_qps},
		{"keys", &Intruder::guess_keys},
		{"anything", &Intruder::write_anything},
	};
}

Intruder::~Intruder() = default;

void Intruder::run()
{
	for (unsigned turn = 0; turn < options_.turns; ++turn) {
		if (!machine_)
			plug_in();
		Act &act = acts_[turn % acts_.size()];
		try {
			(this->*act.carry_out)();
		} catch (const std::exception &) {
			// Hung up, or stuck for good: a machine of that kind is plugged in anew.
			++cards_lost_;
			driver_.reset();
			machine_.reset();
		}
		++act.done;
	}
}

void Intruder::plug_in()
{
	const auto deadline = std::chrono::steady_clock::now() + kPatience;
	// The card may still be busy with the machine before.
	for (;;) {
		try {
			machine_ = std::make_unique<RemoteMachine>(options_.card, kMemory);
			driver_ = std::make_unique<CardDriver>(*machine_);
			machine_->write(0, hw::connectx::bar0::reset, __builtin_bswap32(hw::connectx::bar0::reset_bit));
			driver_->bring_up_events();
			break;
		} catch (const std::exception &error) {
			driver_.reset();
			machine_.reset();
			if (std::chrono::steady_clock::now() > deadline)
				throw std::runtime_error(std::string("the card cannot be had again: ") + error.what());
			std::this_thread::sleep_for(std::chrono::milliseconds(50));
		}
	}
	cq_ = driver_->create_cq(CardDriver::kFirstCq, 6);
	const auto region = driver_->make_buffer(kScratch);
	scratch_ = region.bus;
	MptEntry mpt{};
	std::uint8_t *const e = mpt.bytes;
	MptEntry::region.set(e, 1);
	for (const auto &right : {MptEntry::local_read, MptEntry::local_write, MptEntry::remote_read, MptEntry::remote_write,
				  MptEntry::remote_atomic})
		right.set(e, 1);
	MptEntry::mem_key.set(e, hw::connectx::mpt_key(kKey));
	MptEntry::pd.set(e, kPd);
	MptEntry::length.set(e, kScratch);
	MptEntry::entity_size.set(e, 12);
	MptEntry::mtt_offset.set(e, region.mtt_offset);
	driver_->command(Opcode::sw2hw_mpt, kKey >> 8, 0, mpt.bytes);
	driver_->command(Opcode::conf_special_qp, kSpecialQps);
	driver_->command(Opcode::init_port, 1);
	await_active_port();
	special_ = create_queue(kGsi, ServiceType::mlx);
}

void Intruder::await_active_port()
{
	const auto deadline = std::chrono::steady_clock::now() + kPatience;
	const auto request = driver_->mad(ib::MgmtClass::subn_lid_routed, ib::MadMethod::get, ib::attr_port_info, 1);
	for (;;) {
		const ib::Mad answer = driver_->ask(1, request);
		ib::Smp smp;
		std::memcpy(&smp, &answer, sizeof(smp));
		const auto &info = ib::smp_attribute<ib::PortInfo>(smp);
		if (info.state() == ib::PortState::active) {
			lid_ = info.lid;
			manager_lid_ = info.sm_lid;
			return;
		}
		if (std::chrono::steady_clock::now() > deadline)
			throw std::runtime_error("the port does not become active");
		std::this_thread::sleep_for(std::chrono::milliseconds(20));
	}
}

Intruder::Queue Intruder::create_queue(std::uint32_t qpn, ServiceType service, std::uint16_t remote_lid, std::uint32_t remote_qpn)
{
	driver_->command(Opcode::to_rst_qp, qpn, 2);
	Queue queue{qpn, driver_->make_buffer((std::uint64_t{kSendStride} << kLogSendQueue) + 4096), 0};
	Mailbox mailbox(hw::connectx::qp_mailbox_size);
	std::uint8_t *const c = mailbox.data() + hw::connectx::qp_mailbox_context;
	QpContext::service_type.set(c, static_cast<std::uint32_t>(service));
	QpContext::pd.set(c, kPd);
	QpContext::uar_page.set(c, CardDriver::kUarPage);
	QpContext::send_cqn.set(c, cq_.number);
	QpContext::receive_cqn.set(c, cq_.number);
	QpContext::log_sq_size.set(c, kLogSendQueue);
	QpContext::log_sq_stride.set(c, 6);
	QpContext::log_rq_size.set(c, 3);
	QpContext::log_rq_stride.set(c, 1);
	QpContext::mtt_offset.set(c, queue.buffer.mtt_offset);
	QpContext::doorbell_record.set(c, driver_->allocate(4, 4));
	QpContext::qkey.set(c, 0x0b1b);
	for (unsigned i = 0; i < 1u << kLogSendQueue; ++i)
		machine_->object<ib::be32>(queue.buffer.bus + std::uint64_t{i} * kSendStride) = WqeControl::owner_bit;
	driver_->command(Opcode::rst2init_qp, qpn, 0, mailbox);

	Mailbox next(hw::connectx::qp_mailbox_size);
	std::uint8_t *const n = next.data() + hw::connectx::qp_mailbox_context;
	QpContext::mtu.set(n, static_cast<std::uint32_t>(ib::Mtu::mtu_2048));
	QpContext::log_max_message.set(n, service == ServiceType::ud ? 18 : 30);
	QpContext::remote_qpn.set(n, remote_qpn);
	QpContext::sra_max.set(n, 2);
	QpContext::rra_max.set(n, 2);
	QpContext::retry_count.set(n, 1);
	QpContext::rnr_retry.set(n, 1);
	std::uint8_t *const path = n + QpContext::primary_path;
	AddressPathLayout::remote_lid.set(path, remote_lid);
	AddressPathLayout::ack_timeout.set(path, 31);
	AddressPathLayout::sched_queue.set(path, 0x83);
	driver_->command(Opcode::init2rtr_qp, qpn, 0, next);
	driver_->command(Opcode::rtr2rts_qp, qpn, 0, next);
	return queue;
}

void Intruder::post(Queue &queue, std::vector<std::byte> wqe)
{
	const std::uint64_t at = queue.buffer.bus + std::uint64_t{queue.posted % (1u << kLogSendQueue)} * kSendStride;
	WqeControl control;
	std::memcpy(&control, wqe.data(), sizeof(control));
	std::uint32_t word = control.opcode_word & ~WqeControl::owner_bit;
	if (queue.posted >> kLogSendQueue & 1)
		word |= WqeControl::owner_bit;
	std::memcpy(machine_->memory(at + 4, wqe.size() - 4).data(), wqe.data() + 4, wqe.size() - 4);
	machine_->object<ib::be32>(at) = word;
	++queue.posted;
	machine_->write<std::uint32_t>(2, hw::connectx::uar::page_size * CardDriver::kUarPage + hw::connectx::uar::send_doorbell,
				       __builtin_bswap32(queue.qpn << 8));
	// What has completed does not matter: that the queue never fills up does.
	driver_->set_consumer(cq_, cq_.consumer + 1);
}

void Intruder::let_it_work()
{
	// Each is answered on the card's thread, behind what it does now.
	for (int i = 0; i < 8; ++i)
		driver_->command(Opcode::nop);
}

void Intruder::send_raw_packet(std::uint16_t dlid, std::uint32_t dest_qp, std::uint16_t pkey, bool vl15,
			       std::span<const std::byte> payload)
{
	packet::Headers headers;
	headers.lrh.set_vl(vl15 ? 15 : 0);
	headers.lrh.dlid = dlid;
	headers.lrh.slid = lid_;
	headers.bth.opcode = ib::opcode_ud_send_only;
	headers.bth.pkey = pkey;
	headers.bth.set_dest_qp(dest_qp);
	headers.deth.qkey = 0x80010000u;
	headers.deth.src_qp = 1u;
	std::array<std::uint8_t, 128> bytes{};
	unsigned length = 0;
	if (packet::build(headers, static_cast<unsigned>(payload.size()), bytes.data(), bytes.size(), &length) !=
	    packet::Error::none)
		throw std::logic_error("a packet that cannot be built");
	const std::uint64_t at = scratch_ + (special_.posted % 64) * 4096;
	const auto place = machine_->memory(at, length + payload.size() + 4);
	std::memcpy(place.data(), bytes.data(), length);
	std::memcpy(place.data() + length, payload.data(), payload.size());
	WqeBuilder wqe(WqeOpcode::send, WqeControl::completion | (vl15 ? 1u << 17 : 0));
	wqe.add(WqeData{static_cast<std::uint32_t>(length + payload.size() + 4), kKey, at - scratch_});
	auto done = wqe.done();
	WqeControl control;
	std::memcpy(&control, done.data(), sizeof(control));
	control.immediate = std::uint32_t{dlid} << 16;
	std::memcpy(done.data(), &control, sizeof(control));
	post(special_, std::move(done));
}

// A large send cut into segments of one byte: as many packets as it has bytes.
void Intruder::send_giants()
{
	auto queue = create_queue(CardDriver::kFirstQp, ServiceType::ud);
	WqeDatagram to{};
	to.address.port_pd = 1u << 24 | kPd;
	to.address.dlid = victim().lid;
	to.qpn_word = 0x48 + below(16);
	to.qkey = 0x0b1b;
	for (int i = 0; i < 8; ++i) {
		WqeBuilder wqe(WqeOpcode::lso);
		wqe.add(to);
		wqe.add(hw::connectx::WqeLso{(1u << 16) | 4}).raw({});
		std::array<std::byte, 12> header{};
		wqe.raw(header);
		wqe.add(WqeData{256 << 10, kKey, 0});
		post(queue, wqe.done());
	}
	let_it_work();
}

void Intruder::map_all_memory()
{
	// As many mappings as a mailbox has, each as large as can be said, at addresses that are the machine's or nobody's.
	Mailbox mailbox(4096);
	for (std::size_t at = 0; at + sizeof(PageMapping) <= mailbox.size(); at += sizeof(PageMapping)) {
		PageMapping mapping{};
		PageMapping::virtual_address.set(mapping.bytes, at << 36);
		PageMapping::bus_address.set(mapping.bytes, below(2) ? 0 : random_() & ~std::uint64_t{0xfff});
		PageMapping::log_pages.set(mapping.bytes, below(52));
		std::memcpy(mailbox.data() + at, mapping.bytes, sizeof(mapping.bytes));
	}
	driver_->command(Opcode::map_icm, static_cast<std::uint32_t>(mailbox.size() / sizeof(PageMapping)), 0, mailbox);
	auto init = driver_->init_hca_mailbox();
	hw::connectx::InitHca::log_qps.set(init.bytes, 24);
	hw::connectx::InitHca::log_cqs.set(init.bytes, 24);
	hw::connectx::InitHca::log_mcg_size.set(init.bytes, 20);
	driver_->command(Opcode::close_hca);
	driver_->command(Opcode::init_hca, 0, 0, init.bytes);
	machine_.reset();
	driver_.reset();
}

void Intruder::split_windows()
{
	// Every other page of a window taken out.
	for (std::uint64_t page = 1; page < 400; page += 2)
		driver_->immediate(Opcode::unmap_icm, 1, CardDriver::kIcmSize - page * 4096);
	machine_.reset();
	driver_.reset();
}

void Intruder::truncate_memory()
{
	if (::ftruncate(machine_->memory_fd(), 0))
		throw std::runtime_error("ftruncate");
	machine_->write<std::uint32_t>(2, hw::connectx::uar::page_size * CardDriver::kUarPage + hw::connectx::uar::send_doorbell,
				       __builtin_bswap32(kGsi << 8));
	machine_->write<std::uint32_t>(0, hw::connectx::bar0::hcr + hw::connectx::hcr::control, __builtin_bswap32(1u << 23 | 0x31));
	// No look at our own memory from here on: it is as gone for us.
	throw std::runtime_error("this machine has no memory any more");
}

void Intruder::take_descriptors()
{
	std::vector<FileDescriptor> connections;
	for (int i = 0; i < 500; ++i)
		connections.push_back(connect_to(options_.card));
	// And messages with more descriptors than any may have, each refused.
	const std::vector<int> many(vfio_user::kMaxMessageFds, machine_->memory_fd());
	for (int i = 0; i < 64; ++i)
		machine_->client().call(vfio_user::Command::DmaUnmap, {}, many);
}

void Intruder::trap_by_the_thousand()
{
	auto trap = driver_->mad(ib::MgmtClass::subn_lid_routed, ib::MadMethod::trap, ib::attr_notice);
	for (unsigned i = 0; i < 1000; ++i) {
		trap.header.tid = random_();
		std::memset(trap.data, static_cast<int>(below(256)), sizeof(trap.data));
		send_raw_packet(manager_lid_, 0, 0xffff, true, bytes_of(trap));
	}
}

void Intruder::join_and_leave_for_others()
{
	for (const Victim &who : options_.victims) {
		for (const auto method : {ib::MadMethod::set, ib::MadMethod::remove}) {
			auto request = driver_->mad(ib::MgmtClass::subn_adm, method, ib::attr_mc_member_record);
			request.header.class_version = 2;
			request.header.tid = random_();
			ib::SaMad sa;
			std::memcpy(&sa, &request, sizeof(sa));
			ib::McMemberRecord record{};
			// The broadcast group of the default partition, which everybody's ARP needs (RFC 4391 section 4).
			const std::uint8_t group[16] = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff};
			std::memcpy(&record.mgid, group, sizeof(group));
			record.port_gid = ib::Gid::from_parts(std::uint64_t{0xfe80} << 48, who.port_guid);
			record.set_scope_join_state(2, ib::McMemberRecord::full_member);
			sa.component_mask = ib::component(ib::McMemberRecord::c_mgid) |
					    ib::component(ib::McMemberRecord::c_port_gid) |
					    ib::component(ib::McMemberRecord::c_join_state);
			std::memcpy(sa.data, &record, sizeof(record));
			ib::Mad mad;
			std::memcpy(&mad, &sa, sizeof(mad));
			send_raw_packet(manager_lid_, 1, 0xffff, false, bytes_of(mad));
		}
	}
	let_it_work();
}

void Intruder::use_foreign_pkeys()
{
	std::array<std::byte, 256> payload{};
	for (int i = 0; i < 200; ++i)
		send_raw_packet(victim().lid, 0x40 + below(64), static_cast<std::uint16_t>(0x8000 | below(0x7fff)), false, payload);
	// And written into its own table, which then has them.
	auto table = driver_->mad(ib::MgmtClass::subn_lid_routed, ib::MadMethod::set, ib::attr_pkey_table);
	for (std::size_t i = 40; i < 104; i += 2) {
		table.data[i] = 0x80;
		table.data[i + 1] = static_cast<std::uint8_t>(i);
	}
	driver_->ask(1, table);
}

void Intruder::send_vl15_to_data_qps()
{
	std::array<std::byte, 256> payload{};
	for (int i = 0; i < 200; ++i)
		send_raw_packet(victim().lid, 2 + below(0x80), 0xffff, true, payload);
}

void Intruder::guess_keys()
{
	// An RC queue pair is spoken to by its number alone; the packet numbers and the keys are guessed.
	for (int attempt = 0; attempt < 16; ++attempt) {
		auto queue = create_queue(CardDriver::kFirstQp + 1, ServiceType::rc, victim().lid, 0x40 + below(64));
		for (int i = 0; i < 4; ++i) {
			WqeBuilder wqe(WqeOpcode::rdma_write);
			wqe.add(WqeRemoteAddress{random_() & 0xffffffff000, static_cast<std::uint32_t>(below(0x400) << 8), 0});
			wqe.add(WqeData{4096, kKey, 0});
			post(queue, wqe.done());
		}
		let_it_work();
	}
}

void Intruder::write_anything()
{
	for (int i = 0; i < 300; ++i) {
		if (below(2))
			machine_->write<std::uint32_t>(2, 4 * below(8 << 20 >> 2), static_cast<std::uint32_t>(random_()));
		else
			driver_->raw(static_cast<Opcode>(below(0x80)), below(256), below(4), scratch_, scratch_ + 4096);
	}
	machine_.reset();
	driver_.reset();
}

} // namespace weft::stranger
