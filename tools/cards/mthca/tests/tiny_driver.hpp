// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides a card in a simulated guest, with a minimal driver, for tests. The two ports are cabled
// to each other.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include <hw/mellanox_icm/cqe.hpp>
#include <hw/mellanox_icm/eqe.hpp>
#include <hw/mellanox_icm/commands.hpp>
#include <hw/mthca/commands.hpp>
#include <hw/mthca/contexts.hpp>
#include <hw/mthca/cqe.hpp>
#include <hw/mthca/wqe.hpp>

#include "net/fabric/fabric.hpp"
#include "cards/mthca/card.hpp"
#include "cards/mthca/card_context.hpp"
#include "bus/pci/testing/fake_host.hpp"

namespace weft::mthca::testing
{

using hw::mthca::Opcode;
using hw::mthca::Status;

struct Result {
	Status status;
	std::uint64_t out_param;
	std::vector<std::uint8_t> out;
};

class TinyDriver
{
public:
	// Addresses and numbers that the driver uses, in ICM and in memory.
	static constexpr std::uint64_t kMpts = 0x100000, kMtts = 0x200000, kUarcs = 0x300000;
	static constexpr std::uint32_t kUar = 2, kPd = 5, kKeyIndex = 0x77000020, kKey = 0x00002077;
	static constexpr std::uint32_t kEqn = 1, kSpecialQps = 16;

	explicit TinyDriver(bool trusted = true, TransportFactory transport = make_transport)
	    : card({"test", 0x0002c90200000100, {&port1, &port2}, trusted}, std::move(transport))
	{
		host.set_bus_master(true);
		host.set_msix_enabled(true);
		host.plug(card);
		host.loop().poll();
	}
	~TinyDriver() { host.unplug(); }

	// Returns driver memory, which is never freed.
	std::uint64_t allocate(std::uint64_t size, std::uint64_t alignment = 4096)
	{
		free_ = (free_ + alignment - 1) & ~(alignment - 1);
		return std::exchange(free_, free_ + size);
	}
	void write_be32(unsigned bar, std::uint64_t offset, std::uint32_t value)
	{
		host.write(bar, offset, __builtin_bswap32(value));
	}
	// Submits a command with mailboxes at any address; the status and out_param are in the
	// register.
	void submit(Opcode opcode, std::uint32_t in_modifier, unsigned op_modifier,
		    std::uint64_t in_param, std::uint64_t out_param, bool by_event,
		    std::uint16_t token = kToken)
	{
		const std::uint32_t words[] = {static_cast<std::uint32_t>(in_param >> 32),
					       static_cast<std::uint32_t>(in_param),
					       in_modifier,
					       static_cast<std::uint32_t>(out_param >> 32),
					       static_cast<std::uint32_t>(out_param),
					       std::uint32_t{token} << 16,
					       (by_event ? 3u : 2u) << 22 | op_modifier << 12 |
						       static_cast<std::uint32_t>(opcode)};
		for (unsigned i = 0; i < 7; ++i)
			write_be32(0, hw::mthca::bar0::hcr + 4 * i, words[i]);
	}
	Result command(Opcode opcode, std::uint32_t in_modifier = 0, unsigned op_modifier = 0,
		       std::span<const std::uint8_t> in = {}, std::size_t out_size = 0,
		       std::uint64_t in_param = 0, bool by_event = false)
	{
		if (!in.empty()) {
			std::ranges::copy(std::as_bytes(in), host.memory(kIn, in.size()).begin());
			in_param = kIn;
		}
		submit(opcode, in_modifier, op_modifier, in_param, out_size ? kOut : 0, by_event);
		namespace hcr = hw::mellanox_icm::hcr;
		std::uint32_t answer[3];
		for (unsigned i = 0; i < 3; ++i)
			answer[i] = __builtin_bswap32(host.read<std::uint32_t>(
				0, hw::mthca::bar0::hcr + (i == 2 ? std::uint64_t{hcr::control}
								  : hcr::out_param + 4 * i)));
		EXPECT_EQ(answer[2] >> 23 & 1, 0u) << "the command has not ended";
		Result result{static_cast<Status>(answer[2] >> 24),
			      std::uint64_t{answer[0]} << 32 | answer[1],
			      {}};
		const auto out = host.memory(kOut, out_size);
		for (const std::byte byte : out)
			result.out.push_back(static_cast<std::uint8_t>(byte));
		return result;
	}
	// Resets the card, zeroes and frees all memory, and enables interrupts and bus mastering.
	// Only the cable keeps its state.
	void start_over()
	{
		host.set_bus_master(true);
		host.set_msix_enabled(true);
		write_be32(0, hw::mthca::bar0::reset, hw::mthca::bar0::reset_bit);
		host.loop().poll();
		host.clear_memory();
		free_ = kFirstFree;
		eq_consumer_ = 0;
	}
	Status map(Opcode opcode, std::uint64_t address, std::uint64_t bus, unsigned log_pages)
	{
		std::uint8_t mapping[hw::mellanox_icm::PageMapping::size]{};
		hw::mellanox_icm::PageMapping::virtual_address.set(mapping, address);
		hw::mellanox_icm::PageMapping::bus_address.set(mapping, bus);
		hw::mellanox_icm::PageMapping::log_pages.set(mapping, log_pages);
		return command(opcode, 1, 0, mapping).status;
	}
	// Executes all commands before INIT_HCA.
	void start_firmware()
	{
		ASSERT_EQ(map(Opcode::map_fa, 0, allocate(64 << 10, 64 << 10), 4), Status::ok);
		ASSERT_EQ(command(Opcode::run_fw).status, Status::ok);
		ASSERT_EQ(map(Opcode::map_icm_aux, 0, allocate(16 << 10, 16 << 10), 2), Status::ok);
		ASSERT_EQ(map(Opcode::map_icm, 0, allocate(8 << 20, 8 << 20), 11), Status::ok);
	}
	hw::mthca::InitHca init() const
	{
		using Init = hw::mthca::InitHca;
		Init init{};
		Init::flags.set(init.bytes, Init::flag_av_port_check);
		Init::log_qps.set(init.bytes, 8);
		Init::log_srqs.set(init.bytes, 8);
		Init::log_cqs.set(init.bytes, 8);
		Init::log_eqs.set(init.bytes, 5);
		Init::log_mcg_entry_size.set(init.bytes, 8);
		Init::mcg_hash_size.set(init.bytes, 8);
		Init::log_mcg_size.set(init.bytes, 4);
		Init::mpt_base.set(init.bytes, kMpts);
		Init::log_mpts.set(init.bytes, 8);
		Init::mtt_base.set(init.bytes, kMtts);
		Init::log_uars.set(init.bytes, 3);
		Init::uarc_base.set(init.bytes, kUarcs);
		return init;
	}
	// Creates a key for all memory.
	Status make_key()
	{
		using Mpt = hw::mthca::MptEntry;
		using Family = hw::mlx4::MptEntry;
		Mpt mpt{};
		for (const auto *right :
		     {&Family::local_read, &Family::local_write, &Family::remote_read,
		      &Family::remote_write, &Family::remote_atomic, &Family::physical,
		      &Family::region})
			right->set(mpt.bytes, 1);
		Family::status.set(mpt.bytes, 0xf); // as Linux writes it
		Mpt::mem_key.set(mpt.bytes, kKeyIndex);
		Mpt::pd.set(mpt.bytes, kPd);
		Mpt::length.set(mpt.bytes, Mpt::whole);
		return command(Opcode::sw2hw_mpt, kKeyIndex & 0xff, 0, mpt.bytes).status;
	}
	void bring_up() { bring_up(init()); }
	// Brings the card up with tables of other sizes.
	void bring_up(const hw::mthca::InitHca &tables)
	{
		start_firmware();
		ASSERT_EQ(command(Opcode::init_hca, 0, 0, tables.bytes).status, Status::ok);
		ASSERT_EQ(make_key(), Status::ok);
		eq = allocate(32 << kLogEq);
		for (std::uint32_t i = 0; i < 1u << kLogEq; ++i)
			host.memory(eq + 32 * i + 31, 1)[0] = std::byte{0x80};
		using Eq = hw::mthca::EqContext;
		Eq context{};
		Eq::state.set(context.bytes, hw::mellanox_icm::eq_state::armed);
		Eq::start.set(context.bytes, eq);
		Eq::log_size.set(context.bytes, kLogEq);
		Eq::by_message.set(context.bytes, 1);
		Eq::vector.set(context.bytes, 2);
		Eq::pd.set(context.bytes, kPd);
		Eq::lkey.set(context.bytes, kKey);
		ASSERT_EQ(command(Opcode::sw2hw_eq, kEqn, 0, context.bytes).status, Status::ok);
		ASSERT_EQ(command(Opcode::map_eq, kEqn, 0, {}, 0, ~std::uint64_t{0}).status,
			  Status::ok);
	}
	// Consumes the next event and returns it. The type is 0xff if there is none.
	hw::mellanox_icm::Eqe next_event()
	{
		auto entry = host.object<hw::mellanox_icm::Eqe>(
			eq + 32 * (eq_consumer_ % (1u << kLogEq)));
		if (entry.bytes[31] & 0x80) {
			hw::mellanox_icm::Eqe::type.set(entry.bytes, 0xff);
			return entry;
		}
		host.memory(eq + 32 * (eq_consumer_ % (1u << kLogEq)) + 31, 1)[0] = std::byte{0x80};
		write_be32(0, limits::kEqConsumerIndexes + 8 * kEqn, ++eq_consumer_);
		return entry;
	}
	void arm_eq() { write_be32(0, limits::kEqArm + 4, 1u << kEqn); }
	std::uint64_t icm_bus(std::uint64_t icm) const { return kIcm + icm; }
	ib::be32 &record(std::uint32_t index)
	{
		return host.object<ib::be32>(icm_bus(kUarcs) + (kUar << 12) + 8 * index);
	}
	CardContext &context() { return *card.context(); }

	static constexpr unsigned kLogEq = 4;
	static constexpr std::uint16_t kToken = 0x1234;
	std::uint64_t eq = 0;

	fabric::Fabric fabric;
	fabric::Port &port1 = fabric.add_port("card/1");
	fabric::Port &port2 = fabric.add_port("card/2");
	fabric::Link &link = fabric.connect(port1, port2);
	static constexpr std::uint64_t kMemorySize = 64 << 20;
	weft::testing::FakeHost host{kMemorySize};
	Card card;

private:
	static constexpr std::uint64_t kIn = 0x1000, kOut = 0x2000;
	static constexpr std::uint64_t kFirstFree = 0x10000;
	std::uint64_t free_ = kFirstFree;
	// The address of ICM, which is the third allocation of start_firmware().
	static constexpr std::uint64_t kIcm = 8 << 20;
	std::uint32_t eq_consumer_ = 0;
};

} // namespace weft::mthca::testing
