// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// What the hostile machine does.
#include "stranger/intruder.hpp"

#include <array>
#include <cstring>
#include <stdexcept>

#include <unistd.h>

#include <ib/sa.hpp>

#include "connectx/transport/tests/wqe_builder.hpp"
#include "vfio-user/protocol.hpp"

namespace weft::stranger
{

using connectx::testing::CardDriver;
using connectx::testing::Mailbox;
using connectx::testing::Opcode;
using connectx::testing::ServiceType;
using connectx::transport::WqeBuilder;
using hw::connectx::PageMapping;
using hw::connectx::Status;
using hw::connectx::WqeData;
using hw::connectx::WqeDatagram;
using hw::connectx::WqeOpcode;
using hw::connectx::WqeRemoteAddress;

namespace
{

constexpr std::uint32_t kMappings = hw::connectx::mailbox_max / PageMapping::size;

std::span<const std::byte> bytes_of(const ib::Mad &mad)
{
	return std::as_bytes(std::span(&mad, 1));
}

// A mailbox full of mappings, which @next makes from their number.
template<typename F>
Mailbox mappings(F &&next)
{
	Mailbox mailbox(hw::connectx::mailbox_max);
	for (std::uint32_t i = 0; i < kMappings; ++i) {
		PageMapping mapping{};
		next(i, mapping.bytes);
		std::memcpy(mailbox.data() + i * sizeof(mapping.bytes), mapping.bytes,
			    sizeof(mapping.bytes));
	}
	return mailbox;
}

} // namespace

// A message with as many descriptors as any may have, which are more than the daemon has numbers
// left for: it cannot tell what was asked of it, and ends the card that asked.
void Intruder::take_the_last_descriptors()
{
	const std::vector<int> many(vfio_user::kMaxMessageFds, machine_->memory_fd());
	machine_->client().send(vfio_user::Command::DmaUnmap, {}, many);
}

// Large sends cut into segments of one byte: as many packets as they have bytes.
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
		wqe.add(hw::connectx::WqeLso{1u << 16 | header.size()}).raw(header);
		wqe.add(WqeData{bytes, kKey, 0});
		post(queue, wqe.done());
	}
	count("requests", requests);
	await_packets(before, enough);
	// What is left of them must not be counted among the packets of what comes next.
	must(driver_->command(Opcode::to_rst_qp, queue.qpn, 2), "2RST_QP");
}

// All of the machine's memory in each mapping of a mailbox, and more than there is.
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
	for (const auto &table : {hw::connectx::InitHca::log_qps, hw::connectx::InitHca::log_cqs,
				  hw::connectx::InitHca::log_srqs}) {
		auto too_large = init;
		table.set(too_large.bytes, 24);
		must_refuse(driver_->command(Opcode::init_hca, 0, 0, too_large.bytes),
			    "INIT_HCA with a table of 2^24");
		count("refused");
		table.set(init.bytes, 20);
	}
	hw::connectx::InitHca::log_mcg_size.set(init.bytes, 20);
	must(driver_->command(Opcode::init_hca, 0, 0, init.bytes),
	     "INIT_HCA with the largest tables");
}

// Single pages that do not touch one another, until no more are taken; then windows cut in two,
// which would be more.
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
	// No look at our own memory from here on: it is as gone for us.
	driver_->raw(Opcode::query_fw, 0, 0, 0, scratch_);
	machine_->write<std::uint32_t>(2,
				       hw::connectx::uar::page_size * CardDriver::kUarPage +
					       hw::connectx::uar::send_doorbell,
				       __builtin_bswap32(special_.qpn << 8));
}

void Intruder::take_descriptors()
{
	constexpr int connections = 500, messages = 64;
	std::vector<FileDescriptor> others;
	for (int i = 0; i < connections; ++i)
		others.push_back(connect_to(options_.card));
	for (auto &other : others) {
		if (!testing::FakeClient(std::move(other), RemoteMachine::kPatience).wait_closed())
			throw std::runtime_error("a card serves two machines");
		count("connections");
	}
	// And messages with a few descriptors, each refused.
	const std::vector<int> few(4, machine_->memory_fd());
	for (int i = 0; i < messages; ++i) {
		if (!machine_->client().call(vfio_user::Command::DmaUnmap, {}, few).error())
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

void Intruder::join_and_leave_for_others()
{
	for (const Victim &who : options_.victims) {
		for (const auto method : {ib::MadMethod::set, ib::MadMethod::remove}) {
			auto request = driver_->mad(ib::MgmtClass::subn_adm, method,
						    ib::attr_mc_member_record);
			request.header.class_version = 2;
			request.header.tid = random_();
			ib::SaMad sa;
			std::memcpy(&sa, &request, sizeof(sa));
			ib::McMemberRecord record{};
			// The broadcast group of the default partition, which everybody's ARP needs
			// (RFC 4391 section 4).
			const std::uint8_t group[16] = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff,
							0,    0,    0,    0,    0,    0,
							0xff, 0xff, 0xff, 0xff};
			std::memcpy(&record.mgid, group, sizeof(group));
			record.port_gid =
				ib::Gid::from_parts(std::uint64_t{0xfe80} << 48, who.port_guid);
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
	await_raw_packets();
}

void Intruder::use_foreign_pkeys()
{
	std::array<std::byte, 256> payload{};
	for (int i = 0; i < 200; ++i)
		send_raw_packet(victim().lid, 0x40 + below(64),
				static_cast<std::uint16_t>(0x8000 | below(0x7fff)), false, payload);
	await_raw_packets();
	// And written into its own table, which then has them.
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
	// An RC queue pair is spoken to by its number alone; the packet numbers and the keys are
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

} // namespace weft::stranger
