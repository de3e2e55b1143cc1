// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the limits on the memory and time of weftd that one guest can use by commands. The tests
// reach each limit and exceed it by one.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "cards/mlx4/limits.hpp"
#include "cards/mlx4/tests/tiny_driver.hpp"

namespace weft::mlx4::testing
{
namespace
{

using hw::mlx4::CqContext;
using hw::mlx4::InitHca;
using hw::mlx4::McgHeader;
using hw::mlx4::McgMember;
using hw::mlx4::MptEntry;
using hw::mlx4::PageMapping;
using hw::mlx4::SrqContext;

class Quota : public ::testing::Test
{
public:
	// Tables of 2^17 objects of each kind, whose contexts all share the same pages.
	static constexpr unsigned kLogObjects = 17;
	static constexpr std::uint64_t kTables = 0x10000000;
	static constexpr std::uint64_t kTable = 0x4000000;

	static PageMapping mapping(std::uint64_t icm, std::uint64_t bus, unsigned log_pages)
	{
		PageMapping entry{};
		PageMapping::virtual_address.set(entry.bytes, icm);
		PageMapping::bus_address.set(entry.bytes, bus);
		PageMapping::log_pages.set(entry.bytes, log_pages);
		return entry;
	}
	Status map(const PageMapping &entry)
	{
		return driver.command(Opcode::map_icm, 1, 0, entry.bytes).status;
	}

	void bring_up_large()
	{
		driver.bring_up();
		ASSERT_EQ(driver.command(Opcode::close_hca).status, Status::ok);
		constexpr unsigned log_pages = 8;
		constexpr std::uint64_t chunk = 4096ull << log_pages;
		const std::uint64_t bus = driver.allocate(chunk, chunk);
		for (std::uint64_t at = 0; at < 3 * kTable; at += chunk)
			driver.map_icm(kTables + at, bus, log_pages);
		InitHca init = driver.init_hca_mailbox();
		InitHca::qpc_base.set(init.bytes, kTables);
		InitHca::log_qps.set(init.bytes, kLogObjects);
		InitHca::cqc_base.set(init.bytes, kTables + kTable);
		InitHca::log_cqs.set(init.bytes, kLogObjects);
		InitHca::srqc_base.set(init.bytes, kTables + 2 * kTable);
		InitHca::log_srqs.set(init.bytes, kLogObjects);
		ASSERT_EQ(driver.command(Opcode::init_hca, 0, 0, init.bytes).status, Status::ok);
		driver.completions = driver.create_eq(TinyDriver::kCompletionEq, 6, 1);
	}

	TinyDriver driver;
};

// The numbers of QPs, CQs and SRQs are limited, however large the tables are and however little
// memory the guest provides. Another object is possible after one was destroyed.
TEST_F(Quota, NumberOfQueuesOfEachTypeIsLimited)
{
	ASSERT_NO_FATAL_FAILURE(bring_up_large());
	const auto cq = driver.make_cq(TinyDriver::kFirstCq, 0);
	const auto cq_context = driver.cq_context(cq);
	const auto fill = [](std::uint32_t first, std::size_t most, auto &&create, auto &&remove) {
		for (std::uint32_t number = first; number < first + most; ++number)
			ASSERT_EQ(create(number), Status::ok) << number;
		const auto next = static_cast<std::uint32_t>(first + most);
		EXPECT_EQ(create(next), Status::exceeds_limit);
		remove(first);
		EXPECT_EQ(create(next), Status::ok);
		EXPECT_EQ(create(first), Status::exceeds_limit);
	};
	fill(
		TinyDriver::kFirstCq, limits::kMostCqs,
		[&](std::uint32_t cqn) {
			return driver.command(Opcode::sw2hw_cq, cqn, 0, cq_context.bytes).status;
		},
		[&](std::uint32_t cqn) { driver.command(Opcode::hw2sw_cq, cqn, 1); });

	TinyDriver::Cq last = cq;
	last.number = TinyDriver::kFirstCq + limits::kMostCqs;
	const auto mailbox = driver.qp_mailbox(last);
	fill(
		TinyDriver::kFirstQp, limits::kMostQps,
		[&](std::uint32_t qpn) {
			return driver.command(Opcode::rst2init_qp, qpn, 0, mailbox).status;
		},
		[&](std::uint32_t qpn) { driver.command(Opcode::to_rst_qp, qpn, 3); });

	const auto buffer = driver.make_buffer(4096);
	hw::mlx4::SrqContext srq{};
	SrqContext::log_stride.set(srq.bytes, 1);
	SrqContext::mtt_offset.set(srq.bytes, buffer.mtt_offset);
	fill(
		TinyDriver::kFirstSrq, limits::kMostSrqs,
		[&](std::uint32_t srqn) {
			return driver.command(Opcode::sw2hw_srq, srqn, 0, srq.bytes).status;
		},
		[&](std::uint32_t srqn) { driver.command(Opcode::hw2sw_srq, srqn, 1); });
}

// The number of entries that a command initialises is limited by the maximum size of a queue. This
// applies to new and resized CQs and to EQs.
TEST_F(Quota, CqsAndEqsAboveTheMaximumSizeAreRefused)
{
	ASSERT_NO_FATAL_FAILURE(driver.bring_up_events());
	static_assert((64ull << limits::kLogMarkedEntries) <= 8 << 20);
	static_assert((32ull << limits::kLogMaxEqSize) <= 8 << 20);
	constexpr unsigned log_page = 23;
	const auto cq = driver.create_cq(TinyDriver::kFirstCq, 4);
	constexpr std::uint64_t pages = (32ull << limits::kLogMaxCqSize) >> log_page;
	const std::uint64_t mtt = driver.make_buffer(pages * 4096).mtt_offset;
	const std::uint64_t bus = driver.allocate(0, 1ull << log_page);
	// The buffer has the maximum size, and all entries of its page list refer to the same page.
	for (std::uint64_t i = 0; i < pages; ++i)
		driver.write_mtt(mtt + i * sizeof(ib::be64), bus | hw::mlx4::MttEntry::present);
	const auto sized = [&](unsigned log_size) {
		CqContext context = driver.cq_context(cq);
		CqContext::log_size.set(context.bytes, log_size);
		CqContext::log_page_size.set(context.bytes, log_page - 12);
		CqContext::mtt_offset.set(context.bytes, mtt);
		return context;
	};
	const auto make = [&](unsigned log_size) {
		const auto status = driver.command(Opcode::sw2hw_cq, TinyDriver::kFirstCq + 1, 0,
						   sized(log_size).bytes)
					    .status;
		driver.command(Opcode::hw2sw_cq, TinyDriver::kFirstCq + 1, 1);
		return status;
	};
	const auto resize = [&](unsigned log_size) {
		return driver
			.command(Opcode::modify_cq, cq.number, hw::mlx4::modify_cq_resize,
				 sized(log_size).bytes)
			.status;
	};
	const auto make_eq = [&](unsigned log_size) {
		hw::mlx4::EqContext context{};
		hw::mlx4::EqContext::log_size.set(context.bytes, log_size);
		hw::mlx4::EqContext::log_page_size.set(context.bytes, log_page - 12);
		hw::mlx4::EqContext::mtt_offset.set(context.bytes, mtt);
		const auto status = driver.command(Opcode::sw2hw_eq, TinyDriver::kCompletionEq + 1,
						   0, context.bytes)
					    .status;
		driver.command(Opcode::hw2sw_eq, TinyDriver::kCompletionEq + 1);
		return status;
	};
	EXPECT_EQ(make(limits::kLogMaxCqSize), Status::ok);
	EXPECT_EQ(make(limits::kLogMaxCqSize + 1), Status::exceeds_limit);
	EXPECT_EQ(resize(limits::kLogMaxCqSize), Status::ok);
	EXPECT_EQ(resize(limits::kLogMaxCqSize + 1), Status::exceeds_limit);
	EXPECT_EQ(make_eq(limits::kLogMaxEqSize), Status::ok);
	EXPECT_EQ(make_eq(limits::kLogMaxEqSize + 1), Status::exceeds_limit);
}

// INIT_HCA accepts tables of the maximum size, and no larger ones.
TEST_F(Quota, InitHcaRefusesTablesAboveTheMaximumSize)
{
	driver.bring_up();
	const auto with = [&](const hw::mlx4::Field &field, unsigned value) {
		driver.command(Opcode::close_hca);
		InitHca init = driver.init_hca_mailbox();
		field.set(init.bytes, value);
		return driver.command(Opcode::init_hca, 0, 0, init.bytes).status;
	};
	for (const auto &[field, most] : {std::pair(InitHca::log_qps, limits::kLogMaxQps),
					  std::pair(InitHca::log_cqs, limits::kLogMaxCqs),
					  std::pair(InitHca::log_srqs, limits::kLogMaxSrqs),
					  std::pair(InitHca::log_eqs, limits::kLogMaxEqs),
					  std::pair(InitHca::log_dmpts, limits::kLogMaxMpts)}) {
		EXPECT_EQ(with(field, most), Status::ok);
		EXPECT_EQ(with(field, most + 1), Status::exceeds_limit);
	}
}

// Entries of a key table must not cross pages, and the table must not wrap around.
TEST_F(Quota, InitHcaRefusesAnMptTableThatIsUnalignedOrWrapsAround)
{
	driver.bring_up();
	const auto at = [&](std::uint64_t base) {
		driver.command(Opcode::close_hca);
		InitHca init = driver.init_hca_mailbox();
		InitHca::dmpt_base.set(init.bytes, base);
		return driver.command(Opcode::init_hca, 0, 0, init.bytes).status;
	};
	EXPECT_EQ(at(TinyDriver::kDmptBase + MptEntry::size), Status::ok);
	EXPECT_EQ(at(TinyDriver::kDmptBase + 1), Status::bad_parameter);
	EXPECT_EQ(at(0 - (MptEntry::size << TinyDriver::kLogMpts)), Status::ok);
	EXPECT_EQ(at(0 - MptEntry::size), Status::bad_parameter);
}

// A guest can map only its own memory. If a page is wholly or partly outside the guest's memory,
// none of the mailbox's pages is mapped.
TEST_F(Quota, MappedIcmPagesMustBeInGuestMemory)
{
	driver.bring_up();
	const std::uint64_t end = TinyDriver::kMemorySize;
	const std::uint64_t own = driver.allocate(4096);
	EXPECT_EQ(map(mapping(kTables, end, 0)), Status::bad_parameter);
	EXPECT_EQ(map(mapping(kTables, 0, 13)), Status::bad_parameter) << "twice its size";
	EXPECT_EQ(map(mapping(kTables, std::uint64_t{1} << 40, 20)), Status::bad_parameter);
	std::vector<std::uint8_t> both;
	for (const auto &entry : {mapping(kTables, own, 0), mapping(kTables + 4096, end, 0)})
		both.insert(both.end(), std::begin(entry.bytes), std::end(entry.bytes));
	EXPECT_EQ(driver.command(Opcode::map_icm, 2, 0, both).status, Status::bad_parameter);

	// Creating a CQ whose context would be in the first of the two pages shows whether that
	// page is mapped.
	ASSERT_EQ(driver.command(Opcode::close_hca).status, Status::ok);
	InitHca init = driver.init_hca_mailbox();
	InitHca::cqc_base.set(init.bytes, kTables - TinyDriver::kFirstCq * limits::kCqcEntry);
	ASSERT_EQ(driver.command(Opcode::init_hca, 0, 0, init.bytes).status, Status::ok);
	driver.completions = driver.create_eq(TinyDriver::kCompletionEq, 6, 1);
	const auto cq = driver.make_cq(TinyDriver::kFirstCq, 0);
	const auto create = [&] {
		return driver.command(Opcode::sw2hw_cq, cq.number, 0, driver.cq_context(cq).bytes)
			.status;
	};
	EXPECT_EQ(create(), Status::icm_error);
	EXPECT_EQ(map(mapping(kTables, own, 0)), Status::ok);
	EXPECT_EQ(create(), Status::ok);
	EXPECT_EQ(map(mapping(kTables, end - 4096, 0)), Status::ok);
}

// Mapping writes nothing, however many pages are mapped. Data in a mapped page is not accepted as a
// key, neither before the table is initialised nor after the page was replaced.
TEST_F(Quota, MapIcmNeitherWritesTheMappedPagesNorAcceptsTheirContentsAsMptEntries)
{
	MptEntry key{};
	MptEntry::region.set(key.bytes, 1);
	MptEntry::local_read.set(key.bytes, 1);
	MptEntry::physical.set(key.bytes, 1);
	MptEntry::length64.set(key.bytes, 1);
	const auto fill = [&](std::uint64_t bus) {
		for (std::uint64_t at = 0; at < 4096; at += MptEntry::size)
			std::ranges::copy(std::as_bytes(std::span(key.bytes)),
					  driver.host.memory(bus + at, MptEntry::size).begin());
	};
	const auto untouched = [&](std::uint64_t bus) {
		for (std::uint64_t at = 0; at < 4096; at += MptEntry::size)
			if (!std::ranges::equal(std::as_bytes(std::span(key.bytes)),
						driver.host.memory(bus + at, MptEntry::size)))
				return false;
		return true;
	};
	const auto readable = [&](std::uint32_t index) {
		std::vector<BusRange> out;
		return driver.context().memory.resolve(
			       {index << 8, KeyAccess::local_read, 0, 1, false}, 0, 1, out) ==
		       MemoryError::none;
	};
	driver.bring_up();
	ASSERT_EQ(driver.command(Opcode::close_hca).status, Status::ok);
	constexpr std::uint32_t per_page = 4096 / MptEntry::size;
	std::uint64_t bus[4];
	for (std::uint32_t i = 0; i < 4; ++i) {
		bus[i] = driver.allocate(4096);
		fill(bus[i]);
	}
	for (std::uint32_t i = 0; i < 3; ++i)
		ASSERT_EQ(map(mapping(TinyDriver::kDmptBase + i * 4096, bus[i], 0)), Status::ok);
	ASSERT_EQ(driver.command(Opcode::init_hca, 0, 0, driver.init_hca_mailbox().bytes).status,
		  Status::ok);
	for (std::uint32_t i = 0; i < 4; ++i)
		EXPECT_TRUE(untouched(bus[i])) << i;
	EXPECT_FALSE(readable(per_page + 1));
	EXPECT_TRUE(untouched(bus[0]));
	EXPECT_FALSE(untouched(bus[1])) << "the page that was used";
	EXPECT_TRUE(untouched(bus[2]));

	// Only keys that a command has created are valid.
	std::ranges::fill(key.bytes, std::uint8_t{0});
	MptEntry::region.set(key.bytes, 1);
	MptEntry::local_read.set(key.bytes, 1);
	MptEntry::physical.set(key.bytes, 1);
	MptEntry::length64.set(key.bytes, 1);
	MptEntry::mem_key.set(key.bytes, hw::mlx4::mpt_key((per_page + 2) << 8));
	ASSERT_EQ(driver.command(Opcode::sw2hw_mpt, per_page + 2, 0, key.bytes).status, Status::ok);
	EXPECT_TRUE(readable(per_page + 2));
	EXPECT_FALSE(readable(per_page + 3));

	// The page is replaced by one whose contents look like keys.
	MptEntry::mem_key.set(key.bytes, hw::mlx4::mpt_key((per_page + 2) << 8));
	fill(bus[3]);
	ASSERT_EQ(map(mapping(TinyDriver::kDmptBase + 4096, bus[3], 0)), Status::ok);
	EXPECT_TRUE(untouched(bus[3]));
	EXPECT_FALSE(readable(per_page + 2));
}

// The number of groups with members is limited, whatever the size of the table. So are the members
// of a group to which a packet is delivered, and the entries that are searched for them.
TEST(MulticastQuota, NumbersOfGroupsAndMembersAreLimited)
{
	MulticastTable table;
	constexpr unsigned log_entry = 6;
	table.reset(log_entry, 4, limits::kLogMaxMcgs);
	const ib::Gid gid = ib::Gid::from_parts(0xff12401bffff0000, 1);
	constexpr std::size_t room = ((1u << log_entry) - McgHeader::size) / McgMember::size;
	const auto entry = [&](std::uint32_t next, bool ours) {
		std::vector<std::uint8_t> bytes(1u << log_entry);
		McgHeader::next.set(bytes.data(), next);
		McgHeader::member_count.set(bytes.data(), room);
		if (ours)
			std::ranges::copy(gid.raw, bytes.begin() + McgHeader::gid);
		return bytes;
	};
	const std::uint32_t first = table.hash(gid);
	// All entries form one chain, and all belong to the group.
	ASSERT_TRUE(table.write(first, entry(16, true)));
	const auto last = static_cast<std::uint32_t>(16 + MulticastTable::kMost - 1);
	for (std::uint32_t index = 16; index < last; ++index)
		ASSERT_TRUE(table.write(index, entry(index + 1, true)));
	EXPECT_FALSE(table.write(last, entry(0, true))) << "one too many";
	EXPECT_TRUE(table.write(16, entry(17, true))) << "one that is there may change";
	EXPECT_TRUE(table.write(last - 1, std::vector<std::uint8_t>(1u << log_entry)));
	EXPECT_TRUE(table.write(last, entry(0, true))) << "one that went made room";

	std::vector<MulticastTable::Member> found;
	table.members(gid, found);
	EXPECT_EQ(found.size(),
		  std::min(MulticastTable::kMostMembers, MulticastTable::kMostSteps * room));

	// An entry behind this many entries of other groups is not found.
	for (std::uint32_t index = 16; index < 16 + MulticastTable::kMostSteps; ++index)
		ASSERT_TRUE(table.write(index, entry(index + 1, false)));
	ASSERT_TRUE(table.write(first, entry(16, false)));
	found.clear();
	table.members(gid, found);
	EXPECT_TRUE(found.empty());
	ASSERT_TRUE(table.write(16 + MulticastTable::kMostSteps - 2, entry(0, true)));
	table.members(gid, found);
	EXPECT_EQ(found.size(), room);
}

} // namespace
} // namespace weft::mlx4::testing
