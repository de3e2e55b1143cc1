// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the actions of the malicious guest against weftd and other guests.
#include "tests/malicious_guest/intruder.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <stdexcept>

#include <sys/socket.h>
#include <unistd.h>

#include <ib/sa.hpp>

#include "cards/mlx4/transport/tests/wqe_builder.hpp"
#include "bus/vfio-user/protocol.hpp"

namespace weft::malicious_guest
{

using mlx4::testing::CardDriver;
using mlx4::testing::Mailbox;
using mlx4::testing::Opcode;
using mlx4::testing::ServiceType;
using mlx4::transport::WqeBuilder;
using hw::mlx4::PageMapping;
using hw::mlx4::Status;
using hw::mlx4::WqeData;
using hw::mlx4::WqeDatagram;
using hw::mlx4::WqeOpcode;
using hw::mlx4::WqeRemoteAddress;

namespace
{

// The broadcast group of the default partition, which ARP needs in all guests (RFC 4391 section 4).
constexpr std::array<std::uint8_t, 16> kBroadcast{0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0,    0,
						  0,    0,    0,    0,    0xff, 0xff, 0xff, 0xff};
constexpr std::uint32_t kMappings = hw::mlx4::mailbox_max / PageMapping::size;

std::span<const std::byte> bytes_of(const ib::Mad &mad)
{
	return std::as_bytes(std::span(&mad, 1));
}

// Returns a mailbox full of mappings, each created by @next from its index.
template<typename F>
Mailbox mappings(F &&next)
{
	Mailbox mailbox(hw::mlx4::mailbox_max);
	for (std::uint32_t i = 0; i < kMappings; ++i) {
		PageMapping mapping{};
		next(i, mapping.bytes);
		std::memcpy(mailbox.data() + i * sizeof(mapping.bytes), mapping.bytes,
			    sizeof(mapping.bytes));
	}
	return mailbox;
}

} // namespace

// Sends a message with the maximum number of descriptors, which is more than the daemon can open.
// The daemon cannot know what was requested, and closes the connection.
void Intruder::take_the_last_descriptors()
{
	const std::vector<int> many(vfio_user::kMaxMessageFds, machine_->memory_fd());
	machine_->client().send(vfio_user::Command::dma_unmap, {}, many);
}

// Posts large sends with segments of one byte, so each byte becomes a packet.
void Intruder::send_giants()
{
	constexpr std::uint32_t requests = 8, bytes = 256 << 10, enough = 1 << 15;
	const std::uint64_t before = packets_sent();
	auto queue = create_queue(CardDriver::kFirstQp, ServiceType::ud);
	WqeDatagram to{};
	to.address.port_pd = 1u << 24 | kPd;
	to.address.dlid = victim().lid;
	to.qpn_word = 0x48 + below(16);
	to.qkey = 0x0b1b;
	constexpr std::array<std::byte, 12> header{};
	for (std::uint32_t i = 0; i < requests; ++i) {
		WqeBuilder wqe(WqeOpcode::lso);
		wqe.add(to);
		wqe.add(hw::mlx4::WqeLso{1u << 16 | header.size()}).raw(header);
		wqe.add(WqeData{bytes, kKey, 0});
		post(queue, wqe.done());
	}
	count("requests", requests);
	await_packets(before, enough);
	// The rest of them must not be counted among the packets of the next action.
	must(driver_->command(Opcode::to_rst_qp, queue.qpn, 2), "2RST_QP");
}

// Maps all of the guest's memory in each entry of a mailbox, and more than there is.
void Intruder::map_all_memory()
{
	constexpr unsigned log_all = 12;
	static_assert(CardDriver::kMemorySize == std::uint64_t{4096} << log_all);
	const auto all = mappings([](std::uint32_t i, std::uint8_t *mapping) {
		PageMapping::virtual_address.set(mapping, std::uint64_t{i + 1} << 40);
		PageMapping::log_pages.set(mapping, log_all);
	});
	must(driver_->command(Opcode::map_icm, kMappings, 0, all), "MAP_ICM of all memory");
	count("mailboxes");
	count("mappings", kMappings);
	const auto beyond = mappings([this](std::uint32_t i, std::uint8_t *mapping) {
		PageMapping::virtual_address.set(mapping, std::uint64_t{i + 1} << 48);
		PageMapping::log_pages.set(mapping, log_all + 1 + below(51 - log_all));
		PageMapping::bus_address.set(mapping,
					     below(2) ? 0 : random_() & ~std::uint64_t{0xfff});
	});
	must_refuse(driver_->command(Opcode::map_icm, kMappings, 0, beyond),
		    "MAP_ICM of more than all memory");
	count("refused");

	auto init = driver_->init_hca_mailbox();
	must(driver_->command(Opcode::close_hca), "CLOSE_HCA");
	for (const auto &table : {hw::mlx4::InitHca::log_qps, hw::mlx4::InitHca::log_cqs,
				  hw::mlx4::InitHca::log_srqs}) {
		auto too_large = init;
		table.set(too_large.bytes, 24);
		must_refuse(driver_->command(Opcode::init_hca, 0, 0, too_large.bytes),
			    "INIT_HCA with a table of 2^24");
		count("refused");
		table.set(init.bytes, 20);
	}
	hw::mlx4::InitHca::log_mcg_size.set(init.bytes, 20);
	must(driver_->command(Opcode::init_hca, 0, 0, init.bytes),
	     "INIT_HCA with the largest tables");
}

// Maps single pages that are not adjacent until no more are accepted. Then splits mappings, which
// would exceed the limit.
void Intruder::split_windows()
{
	constexpr std::uint32_t bound =
		65536; // "What one guest can take" in Documentation/connectx.rst
	std::uint64_t address = std::uint64_t{1} << 40;
	for (std::uint32_t pieces = 0;; pieces += kMappings) {
		const auto pages = mappings([&](std::uint32_t, std::uint8_t *mapping) {
			PageMapping::virtual_address.set(mapping, address += 8192);
			PageMapping::bus_address.set(mapping, std::uint64_t{below(4096)} << 12);
		});
		const auto result = driver_->command(Opcode::map_icm, kMappings, 0, pages);
		count("mailboxes");
		if (result.status == Status::exceeds_limit)
			break;
		must(result, "MAP_ICM");
		count("pieces", kMappings);
		if (pieces > bound)
			throw std::runtime_error("windows without end");
	}
	for (std::uint64_t page = 1; page < 32; page += 2) {
		must_refuse(driver_->immediate(Opcode::unmap_icm, 1,
					       CardDriver::kIcmSize - (page + 1) * 4096),
			    "a cut too many");
		count("refused");
	}
}

void Intruder::truncate_memory()
{
	if (::ftruncate(machine_->memory_fd(), 0))
		throw std::runtime_error("ftruncate");
	// From now on, the memory must not be accessed, because it has been truncated for this
	// process, too.
	driver_->raw(Opcode::query_fw, 0, 0, 0, scratch_);
	machine_->write<std::uint32_t>(
		2, hw::mlx4::uar::page_size * CardDriver::kUarPage + hw::mlx4::uar::send_doorbell,
		__builtin_bswap32(special_.qpn << 8));
}

void Intruder::take_descriptors()
{
	constexpr int connections = 500, messages = 64;
	std::vector<FileDescriptor> others;
	for (int i = 0; i < connections; ++i)
		others.push_back(connect_to(options_.card));
	for (auto &other : others) {
		if (!testing::FakeClient(std::move(other), RemoteMachine::kTimeLimit).wait_closed())
			throw std::runtime_error("a card serves two machines");
		count("connections");
	}
	// Messages with a few descriptors are refused as well.
	const std::vector<int> few(4, machine_->memory_fd());
	for (int i = 0; i < messages; ++i) {
		if (!machine_->client().call(vfio_user::Command::dma_unmap, {}, few).error())
			throw std::runtime_error("a message without content was met");
		count("descriptors", few.size());
	}
}

void Intruder::trap_by_the_thousand()
{
	auto trap =
		driver_->mad(ib::MgmtClass::subn_lid_routed, ib::MadMethod::trap, ib::attr_notice);
	for (unsigned i = 0; i < 1000; ++i) {
		trap.header.tid = random_();
		std::memset(trap.data, static_cast<int>(below(256)), sizeof(trap.data));
		send_raw_packet(manager_lid_, 0, 0xffff, true, bytes_of(trap));
	}
	await_raw_packets();
}

void Intruder::ask_for_membership(ib::MadMethod method, std::uint64_t port_guid)
{
	auto request = driver_->mad(ib::MgmtClass::subn_adm, method, ib::attr_mc_member_record);
	request.header.class_version = 2;
	request.header.tid = random_();
	ib::SaMad sa;
	std::memcpy(&sa, &request, sizeof(sa));
	ib::McMemberRecord record{};
	std::memcpy(&record.mgid, kBroadcast.data(), kBroadcast.size());
	record.port_gid = ib::Gid::from_parts(std::uint64_t{0xfe80} << 48, port_guid);
	record.set_scope_join_state(2, ib::McMemberRecord::full_member);
	sa.component_mask = ib::component(ib::McMemberRecord::c_mgid) |
			    ib::component(ib::McMemberRecord::c_port_gid) |
			    ib::component(ib::McMemberRecord::c_join_state);
	std::memcpy(sa.data, &record, sizeof(record));
	ib::Mad mad;
	std::memcpy(&mad, &sa, sizeof(mad));
	send_raw_packet(manager_lid_, 1, 0xffff, false, bytes_of(mad));
}

void Intruder::join_and_leave_for_others()
{
	for (const Victim &who : options_.victims)
		for (const auto method : {ib::MadMethod::set, ib::MadMethod::remove})
			ask_for_membership(method, who.port_guid);
	await_raw_packets();
}

void Intruder::use_foreign_pkeys()
{
	std::array<std::byte, 256> payload{};
	for (int i = 0; i < 200; ++i)
		send_raw_packet(victim().lid, 0x40 + below(64),
				static_cast<std::uint16_t>(0x8000 | below(0x7fff)), false, payload);
	await_raw_packets();
	// Then the P_Keys are written into the card's own table.
	auto table = driver_->mad(ib::MgmtClass::subn_lid_routed, ib::MadMethod::set,
				  ib::attr_pkey_table);
	for (std::size_t i = 40; i < 104; i += 2) {
		table.data[i] = 0x80;
		table.data[i + 1] = static_cast<std::uint8_t>(i);
	}
	if (driver_->ask(1, table).header.status != 0)
		throw std::runtime_error("the port's P_Key table was not written");
	count("tables");
}

void Intruder::send_vl15_to_data_qps()
{
	std::array<std::byte, 256> payload{};
	for (int i = 0; i < 200; ++i)
		send_raw_packet(victim().lid, 2 + below(0x80), 0xffff, true, payload);
	await_raw_packets();
}

void Intruder::guess_keys()
{
	// Packets to an RC QP need only its number. The packet sequence numbers and the keys are
	// guessed.
	constexpr std::uint32_t attempts = 16, writes = 4;
	for (std::uint32_t attempt = 0; attempt < attempts; ++attempt) {
		const std::uint64_t sent = packets_sent();
		auto queue = create_queue(CardDriver::kFirstQp + 1, ServiceType::rc, victim().lid,
					  0x40 + below(64));
		for (std::uint32_t i = 0; i < writes; ++i) {
			WqeBuilder wqe(WqeOpcode::rdma_write);
			wqe.add(WqeRemoteAddress{random_() & 0xffffffff000,
						 static_cast<std::uint32_t>(below(0x400) << 8), 0});
			wqe.add(WqeData{4096, kKey, 0});
			post(queue, wqe.done());
		}
		count("writes", writes);
		await_packets(sent, 1);
	}
}

void Intruder::write_anything()
{
	for (int i = 0; i < 300; ++i) {
		if (below(2)) {
			machine_->write<std::uint32_t>(2, 4 * below(8 << 20 >> 2),
						       static_cast<std::uint32_t>(random_()));
			count("registers");
		} else {
			driver_->raw(static_cast<Opcode>(below(0x80)), below(256), below(4),
				     scratch_, scratch_ + 4096);
			count("commands");
		}
	}
}

// Requests tables of all paths with a service level that no path has. The SM would examine every
// pair of ports for each, and find none.
void Intruder::ask_for_all_paths()
{
	constexpr unsigned requests = 1000;
	for (unsigned i = 0; i < requests; ++i) {
		auto request = driver_->mad(ib::MgmtClass::subn_adm, ib::MadMethod::get_table,
					    ib::attr_path_record);
		request.header.class_version = 2;
		request.header.tid = random_();
		ib::SaMad sa;
		std::memcpy(&sa, &request, sizeof(sa));
		ib::PathRecord record{};
		record.qos_class_sl = std::uint16_t{15};
		sa.component_mask = ib::component(ib::PathRecord::c_sl);
		std::memcpy(sa.data, &record, sizeof(record));
		ib::Mad mad;
		std::memcpy(&mad, &sa, sizeof(mad));
		send_raw_packet(manager_lid_, 1, 0xffff, false, bytes_of(mad));
	}
	await_raw_packets();
}

void Intruder::post_to_everybody(Queue &queue, unsigned port)
{
	constexpr std::uint32_t requests = 8, bytes = 64 << 10;
	WqeDatagram to{};
	to.address.port_pd = port << 24 | kPd;
	to.address.grh_path_bits = 0x80;
	to.address.hop_limit = 0xff;
	to.address.dlid = ib::lid_multicast_first;
	std::memcpy(to.address.dgid, kBroadcast.data(), kBroadcast.size());
	to.qpn_word = 0xffffff;
	to.qkey = 0x7777;
	constexpr std::array<std::byte, 12> header{};
	for (std::uint32_t i = 0; i < requests; ++i) {
		WqeBuilder wqe(WqeOpcode::lso);
		wqe.add(to);
		wqe.add(hw::mlx4::WqeLso{1u << 16 | header.size()}).raw(header);
		wqe.add(WqeData{bytes, kKey, 0});
		post(queue, wqe.done());
	}
	count("requests", requests);
}

// Sends as many datagrams as possible to the broadcast group, with a Q_Key that no member has. Each
// switch copies them, and each member's card compares the Q_Key.
void Intruder::send_to_everybody()
{
	constexpr std::uint32_t enough = 1 << 12;
	const std::uint64_t before = packets_sent();
	auto queue = create_queue(CardDriver::kFirstQp + 2, ServiceType::ud);
	post_to_everybody(queue, 1);
	await_packets(before, enough);
	must(driver_->command(Opcode::to_rst_qp, queue.qpn, 2), "2RST_QP");
}

// Each entry of the table has eight members. The first entry is at the hash of the group, and the
// others are in the overflow part.
void Intruder::attach_to_everybody(std::uint32_t first_qpn, std::uint32_t last_qpn)
{
	using hw::mlx4::McgHeader;
	constexpr std::uint32_t members = 8, first_chained = 128;
	const auto hash = driver_->command(Opcode::mgid_hash, 0, 0, kBroadcast);
	must(hash, "MGID_HASH");
	auto index = static_cast<std::uint32_t>(hash.value);
	std::uint32_t next = first_chained;
	for (std::uint32_t qpn = first_qpn; qpn < last_qpn; qpn += members, index = next++) {
		Mailbox entry(McgHeader::size + members * McgHeader::member_size);
		const bool last = qpn + members >= last_qpn;
		McgHeader::next.set(entry.data(), last ? 0 : next);
		McgHeader::member_count.set(entry.data(), members);
		std::ranges::copy(kBroadcast, entry.begin() + McgHeader::gid);
		for (std::uint32_t i = 0; i < members; ++i)
			hw::mlx4::store_be32(entry.data() + McgHeader::size,
					     i * McgHeader::member_size, qpn + i);
		must(driver_->command(Opcode::write_mcg, index, 0, entry), "WRITE_MCG");
	}
}

// The card of this port delivers each packet of a group to hundreds of QPs, while the card's other
// port sends to that group at full speed through a trunk that others use.
void Intruder::serve_many_members()
{
	constexpr std::uint32_t first = 256, last = 1u << CardDriver::kLogQps, received = 1 << 10;
	const auto deadline = std::chrono::steady_clock::now() + RemoteMachine::kTimeLimit;
	for (std::uint32_t qpn = first; qpn < last; ++qpn) {
		must(driver_->command(Opcode::rst2init_qp, qpn, 0,
				      driver_->qp_mailbox(cq_, ServiceType::ud)),
		     "RST2INIT_QP");
		Mailbox ready(hw::mlx4::qp_mailbox_size);
		std::uint8_t *const context = ready.data() + hw::mlx4::qp_mailbox_context;
		hw::mlx4::QpContext::qkey.set(context, 0x7777);
		hw::mlx4::QpContext::mtu.set(context,
					     static_cast<std::uint32_t>(ib::Mtu::mtu_2048));
		hw::mlx4::AddressPathLayout::sched_queue.set(
			context + hw::mlx4::QpContext::primary_path, 0x83);
		must(driver_->command(Opcode::init2rtr_qp, qpn, 0, ready), "INIT2RTR_QP");
	}
	count("queues", last - first);
	attach_to_everybody(first, last);
	must(driver_->command(Opcode::init_port, 2), "INIT_PORT");
	await_active_port(2);
	const auto node = driver_->ask(1, driver_->mad(ib::MgmtClass::subn_lid_routed,
						       ib::MadMethod::get, ib::attr_node_info));
	ib::Smp smp;
	std::memcpy(&smp, &node, sizeof(smp));
	ask_for_membership(ib::MadMethod::set, ib::smp_attribute<ib::NodeInfo>(smp).port_guid);
	await_raw_packets();

	auto queue = create_queue(CardDriver::kFirstQp + 3, ServiceType::ud, 0, 0, 2);
	const std::uint64_t before = counters_of(1).multicast_rcv_packets;
	std::uint64_t seen = 0;
	// The manager takes a while for the join; until then nothing is received.
	while ((seen = counters_of(1).multicast_rcv_packets - before) < received) {
		if (std::chrono::steady_clock::now() > deadline)
			throw std::runtime_error("port 1 receives nothing of what port 2 sends");
		const std::uint64_t sent = counters_of(2).xmit_packets;
		post_to_everybody(queue, 2);
		while (counters_of(2).xmit_packets - sent < 1 << 12)
			if (std::chrono::steady_clock::now() > deadline)
				throw std::runtime_error("port 2 does not send");
	}
	count("received", seen);
}

// Creates QPs in the error state, each with a request, which the card must poll.
void Intruder::break_queues()
{
	constexpr std::uint32_t first = 256, last = 1u << CardDriver::kLogQps;
	for (std::uint32_t qpn = first; qpn < last; ++qpn) {
		must(driver_->command(Opcode::rst2init_qp, qpn, 0, driver_->qp_mailbox(cq_)),
		     "RST2INIT_QP");
		must(driver_->command(Opcode::to_err_qp, qpn), "2ERR_QP");
	}
	count("queues", last - first);
}

void Intruder::flood_ethernet()
{
	constexpr unsigned frames = 4000;
	constexpr std::uint32_t size = 9000;
	std::vector<std::uint8_t> stream(sizeof(size) + size, 0x5a);
	for (unsigned i = 0; i < sizeof(size); ++i)
		stream[i] = static_cast<std::uint8_t>(size >> (24 - 8 * i));
	std::memset(stream.data() + sizeof(size), 0xff, 6); // to all
	stream[sizeof(size) + 6] = 0x02;                    // source address
	const FileDescriptor ethernet = connect_to(options_.ethernet);
	for (unsigned i = 0; i < frames; ++i)
		for (std::size_t sent = 0; sent < stream.size();) {
			const auto bytes = ::send(ethernet.get(), stream.data() + sent,
						  stream.size() - sent, MSG_NOSIGNAL);
			if (bytes <= 0)
				throw std::runtime_error("the place on the Ethernet was lost");
			sent += static_cast<std::size_t>(bytes);
		}
	count("frames", frames);
}

} // namespace weft::malicious_guest
