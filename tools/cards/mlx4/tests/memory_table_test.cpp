// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that permitted accesses by memory keys succeed, and that all others are refused.
#include <gtest/gtest.h>

#include "cards/mlx4/limits.hpp"
#include "cards/mlx4/tests/tiny_driver.hpp"
#include "cards/mlx4/transport/send_request.hpp"

namespace weft::mlx4::testing
{
namespace
{

using hw::mlx4::MptEntry;
using hw::mlx4::WqeBindWindow;
using hw::mlx4::WqeFastRegister;
namespace mpt_status = hw::mlx4::mpt_status;

constexpr std::uint32_t kPd = 7;
constexpr std::uint32_t kIndex = 0x5000 | 20; // bits beyond the table, as drivers set them
constexpr std::uint32_t kKey = kIndex << 8 | 0x42;

class MemoryTableTest : public ::testing::Test
{
public:
	MemoryTableTest()
	{
		driver.bring_up_events();
		buffer = driver.make_buffer(4 * 4096);
		std::uint8_t *const e = entry.bytes;
		MptEntry::region.set(e, 1);
		MptEntry::status.set(e, mpt_status::software);
		MptEntry::local_read.set(e, 1);
		MptEntry::local_write.set(e, 1);
		MptEntry::remote_write.set(e, 1);
		MptEntry::mem_key.set(e, hw::mlx4::mpt_key(kKey));
		MptEntry::pd.set(e, kPd);
		MptEntry::start.set(e, kStart);
		MptEntry::length.set(e, kLength);
		MptEntry::entity_size.set(e, 12);
		MptEntry::mtt_offset.set(e, buffer.mtt_offset);
	}
	Status create(std::uint32_t index = kIndex)
	{
		return driver.command(Opcode::sw2hw_mpt, index, 0, entry.bytes).status;
	}
	MemoryError resolve(KeyAccess access, std::uint64_t address, std::uint64_t length,
			    std::uint32_t key = kKey, std::uint32_t pd = kPd, std::uint32_t qpn = 1)
	{
		ranges.clear();
		return memory().resolve({key, access, pd, qpn, false}, address, length, ranges);
	}
	MemoryTable &memory() { return driver.context().memory; }

	// The region begins in the middle of the first page.
	static constexpr std::uint64_t kStart = 0x7f0000000800;
	static constexpr std::uint64_t kLength = 0x2000;
	TinyDriver driver;
	TinyDriver::Buffer buffer;
	MptEntry entry{};
	std::vector<BusRange> ranges;
};

TEST_F(MemoryTableTest, VirtualAddressesAreTranslatedByThePageList)
{
	// The pages are in another order, so that they are not adjacent.
	driver.write_mtt(buffer.mtt_offset, (buffer.bus + 0x3000) | 1);
	driver.write_mtt(buffer.mtt_offset + 8, (buffer.bus + 0x1000) | 1);
	driver.write_mtt(buffer.mtt_offset + 16, (buffer.bus + 0x2000) | 1);
	ASSERT_EQ(create(), Status::ok);
	ASSERT_EQ(resolve(KeyAccess::local_read, kStart, kLength), MemoryError::none);
	ASSERT_EQ(ranges.size(), 2u);
	EXPECT_EQ(ranges[0].address, buffer.bus + 0x3800);
	EXPECT_EQ(ranges[0].length, 0x800u);
	EXPECT_EQ(ranges[1].address, buffer.bus + 0x1000);
	EXPECT_EQ(ranges[1].length, 0x1800u) << "adjacent pages are one range";

	std::vector<MemorySegment> segments;
	ASSERT_EQ(memory().translate({kKey, KeyAccess::local_write, kPd, 1, false}, kStart + 1, 10,
				     segments),
		  MemoryError::none);
	ASSERT_EQ(segments.size(), 1u);
	EXPECT_EQ(segments[0].data, driver.host.memory(buffer.bus + 0x3801, 1).data());
}

TEST_F(MemoryTableTest, EachMemoryAccessViolationHasItsOwnError)
{
	EXPECT_EQ(resolve(KeyAccess::local_read, kStart, 1), MemoryError::invalid_key)
		<< "before it exists";
	ASSERT_EQ(create(), Status::ok);
	const auto read = KeyAccess::local_read;
	EXPECT_EQ(resolve(read, kStart, 1), MemoryError::none);
	EXPECT_EQ(resolve(read, kStart, 1, kKey + 1), MemoryError::invalid_key) << "variant";
	EXPECT_EQ(resolve(read, kStart, 1, kKey & 0xfffff), MemoryError::invalid_key) << "alias";
	EXPECT_EQ(resolve(read, kStart, 1, kKey, kPd + 1), MemoryError::protection_domain);
	EXPECT_EQ(resolve(KeyAccess::remote_write, kStart, 1), MemoryError::none);
	EXPECT_EQ(resolve(KeyAccess::remote_read, kStart, 1), MemoryError::permission);
	EXPECT_EQ(resolve(KeyAccess::remote_atomic, kStart, 8), MemoryError::permission);
	EXPECT_EQ(resolve(read, kStart - 1, 1), MemoryError::bounds);
	EXPECT_EQ(resolve(read, kStart + kLength, 1), MemoryError::bounds);
	EXPECT_EQ(resolve(read, kStart + kLength - 1, 2), MemoryError::bounds);
	EXPECT_EQ(resolve(read, kStart + 1, ~0ull), MemoryError::bounds) << "wraps around";
	EXPECT_EQ(resolve(read, kStart - 1, 0), MemoryError::none) << "no bytes, no check";
	driver.write_mtt(buffer.mtt_offset + 8, 0);
	EXPECT_EQ(resolve(read, kStart, 0x800), MemoryError::none);
	EXPECT_EQ(resolve(read, kStart, 0x801), MemoryError::translation) << "page not present";
	EXPECT_TRUE(ranges.empty());
	driver.command(Opcode::hw2sw_mpt, kIndex, 1);
	EXPECT_EQ(resolve(read, kStart, 1), MemoryError::invalid_key) << "after it has gone";
}

TEST_F(MemoryTableTest, PagesOutsideGuestMemoryAreRejected)
{
	driver.write_mtt(buffer.mtt_offset, TinyDriver::kMemorySize | 1);
	ASSERT_EQ(create(), Status::ok);
	std::vector<MemorySegment> segments;
	EXPECT_EQ(memory().translate({kKey, KeyAccess::local_read, kPd, 1, false}, kStart, 1,
				     segments),
		  MemoryError::translation);
	EXPECT_TRUE(segments.empty());
}

TEST_F(MemoryTableTest, PhysicalAddressMrNeedsNoPageList)
{
	MptEntry::physical.set(entry.bytes, 1);
	MptEntry::length64.set(entry.bytes, 1);
	MptEntry::length.set(entry.bytes, 0);
	MptEntry::start.set(entry.bytes, 0);
	ASSERT_EQ(create(), Status::ok);
	ASSERT_EQ(resolve(KeyAccess::local_read, 0x123456, 100), MemoryError::none);
	EXPECT_EQ(ranges.at(0).address, 0x123456u);
}

TEST_F(MemoryTableTest, ReservedLkeyIsValidOnlyForLocalAccessByQpsThatEnableIt)
{
	KeyUse use{limits::kReservedLkey, KeyAccess::local_write, kPd, 1, true};
	EXPECT_EQ(memory().resolve(use, 0x4000, 16, ranges), MemoryError::none);
	use.reserved_lkey = false;
	EXPECT_EQ(memory().resolve(use, 0x4000, 16, ranges), MemoryError::invalid_key);
	use.reserved_lkey = true;
	use.access = KeyAccess::remote_write;
	EXPECT_EQ(memory().resolve(use, 0x4000, 16, ranges), MemoryError::invalid_key);
}

TEST_F(MemoryTableTest, UninitialisedMptEntriesAreInvalidKeys)
{
	TinyDriver other;
	other.bring_up();
	// Write an entry that looks valid, but was created by no command, to a page that is mapped
	// again.
	MptEntry::status.set(entry.bytes, mpt_status::valid);
	const std::uint32_t slot = kIndex & 1023;
	std::ranges::copy(
		std::as_bytes(std::span(entry.bytes)),
		other.host.memory(other.icm_bus(TinyDriver::kDmptBase) + 64 * slot, 64).begin());
	KeyUse use{kKey, KeyAccess::local_read, kPd, 1, false};
	EXPECT_EQ(other.context().memory.resolve(use, kStart, 1, ranges), MemoryError::invalid_key);
	std::ranges::copy(
		std::as_bytes(std::span(entry.bytes)),
		other.host.memory(other.icm_bus(TinyDriver::kDmptBase) + 64 * slot, 64).begin());
	EXPECT_EQ(other.context().memory.resolve(use, kStart, 1, ranges), MemoryError::translation)
		<< "read where it is: the driver may edit entries in place";
	other.map_icm(TinyDriver::kDmptBase, other.icm_bus(TinyDriver::kDmptBase), 4);
	EXPECT_EQ(other.context().memory.resolve(use, kStart, 1, ranges), MemoryError::invalid_key);
}

TEST_F(MemoryTableTest, InPlaceMptEditTakesEffectImmediately)
{
	ASSERT_EQ(create(), Status::ok);
	driver.command(Opcode::hw2sw_mpt, kIndex, 1);
	auto &stored = driver.host.object<MptEntry>(driver.icm_bus(TinyDriver::kDmptBase) +
						    64 * (kIndex & 1023));
	EXPECT_EQ(MptEntry::status.get(stored.bytes), mpt_status::software);
	MptEntry::pd.set(stored.bytes, 99);
	MptEntry::status.set(stored.bytes, mpt_status::valid);
	EXPECT_EQ(driver.command(Opcode::sync_tpt).status, Status::ok);
	EXPECT_EQ(resolve(KeyAccess::local_read, kStart, 1, kKey, 99), MemoryError::none);
}

TEST_F(MemoryTableTest, KeysCanBeFastRegisteredAndInvalidated)
{
	std::uint8_t *const e = entry.bytes;
	MptEntry::status.set(e, mpt_status::free);
	MptEntry::fast_register_enable.set(e, 1);
	MptEntry::remote_access_enable.set(e, 1);
	MptEntry::remote_invalidate_enable.set(e, 1);
	MptEntry::entity_size.set(e, 0);
	MptEntry::mtt_size.set(e, 4);
	ASSERT_EQ(create(), Status::ok);
	EXPECT_EQ(resolve(KeyAccess::local_read, kStart, 1), MemoryError::invalid_key) << "free";

	const std::uint64_t pages = driver.allocate(2 * 4096);
	const std::uint64_t list = driver.allocate(64, 8);
	driver.host.object<ib::be64>(list) = pages | 1;
	driver.host.object<ib::be64>(list + 8) = (pages + 4096) | 1;
	const std::uint32_t new_key = kIndex << 8 | 0x43;
	WqeFastRegister request{};
	request.flags = WqeFastRegister::local_read | WqeFastRegister::remote_read;
	request.key = new_key;
	request.page_list = list;
	request.start = std::uint64_t{0x10000};
	request.length = std::uint64_t{0x2000};
	request.page_shift = 12;
	EXPECT_EQ(memory().fast_register(transport::decoded(request), kPd + 1),
		  MemoryError::protection_domain);
	WqeFastRegister too_long = request;
	too_long.length = std::uint64_t{0x5000};
	EXPECT_EQ(memory().fast_register(transport::decoded(too_long), kPd), MemoryError::bounds);
	WqeFastRegister lost = request;
	lost.page_list = TinyDriver::kMemorySize;
	EXPECT_EQ(memory().fast_register(transport::decoded(lost), kPd), MemoryError::translation);
	ASSERT_EQ(memory().fast_register(transport::decoded(request), kPd), MemoryError::none);

	ASSERT_EQ(resolve(KeyAccess::remote_read, 0x11000, 16, new_key), MemoryError::none);
	EXPECT_EQ(ranges.at(0).address, pages + 0x1000);
	EXPECT_EQ(resolve(KeyAccess::local_read, 0x10000, 1, kKey), MemoryError::invalid_key)
		<< "the old variant";
	EXPECT_EQ(memory().fast_register(transport::decoded(request), kPd),
		  MemoryError::bad_request)
		<< "not free";
	EXPECT_EQ(memory().invalidate(new_key, kPd + 1, 1, false), MemoryError::protection_domain);
	EXPECT_EQ(memory().invalidate(new_key, kPd, 1, true), MemoryError::none);
	EXPECT_EQ(resolve(KeyAccess::remote_read, 0x11000, 16, new_key), MemoryError::invalid_key);
}

TEST_F(MemoryTableTest, OrdinaryMemoryRegionsCannotBeInvalidated)
{
	ASSERT_EQ(create(), Status::ok);
	EXPECT_EQ(memory().invalidate(kKey, kPd, 1, false), MemoryError::bad_request);
	EXPECT_EQ(resolve(KeyAccess::local_read, kStart, 1), MemoryError::none);
}

TEST_F(MemoryTableTest, MemoryWindowGrantsAccessOnlyToItsRange)
{
	MptEntry::bind_enable.set(entry.bytes, 1);
	ASSERT_EQ(create(), Status::ok);
	const std::uint32_t window_index = 30;
	MptEntry window{};
	MptEntry::status.set(window.bytes, mpt_status::free);
	MptEntry::mem_key.set(window.bytes, window_index);
	MptEntry::pd.set(window.bytes, kPd);
	MptEntry::bound_to_qp.set(window.bytes, 1);
	ASSERT_EQ(driver.command(Opcode::sw2hw_mpt, window_index, 0, window.bytes).status,
		  Status::ok);

	const std::uint32_t rkey = window_index << 8 | 1;
	WqeBindWindow request{};
	request.access = WqeBindWindow::remote_read;
	request.type = WqeBindWindow::type_2;
	request.new_rkey = rkey;
	request.region_lkey = kKey;
	request.address = kStart + 0x100;
	request.length = std::uint64_t{0x100};
	ASSERT_EQ(memory().bind_window(transport::decoded(request), kPd, 5), MemoryError::none);
	const auto read = KeyAccess::remote_read;
	EXPECT_EQ(resolve(read, kStart + 0x100, 0x100, rkey, kPd, 5), MemoryError::none)
		<< "though the region itself is closed to it";
	EXPECT_EQ(resolve(read, kStart + 0x100, 0x101, rkey, kPd, 5), MemoryError::bounds);
	EXPECT_EQ(resolve(read, kStart + 0x100, 1, rkey, kPd, 6), MemoryError::protection_domain)
		<< "another queue pair";
	EXPECT_EQ(resolve(read, kStart + 0x100, 1, rkey, kPd + 1, 5),
		  MemoryError::protection_domain)
		<< "a queue pair that got the number later, in another domain";
	EXPECT_EQ(resolve(KeyAccess::local_read, kStart + 0x100, 1, rkey, kPd, 5),
		  MemoryError::invalid_key);
	EXPECT_EQ(driver.command(Opcode::hw2sw_mpt, kIndex, 1).status, Status::region_bound);
	EXPECT_EQ(memory().invalidate(rkey, kPd, 5, true), MemoryError::none);
	EXPECT_EQ(resolve(read, kStart + 0x100, 1, rkey, kPd, 5), MemoryError::invalid_key);
	EXPECT_EQ(driver.command(Opcode::hw2sw_mpt, kIndex, 1).status, Status::ok);
}

TEST_F(MemoryTableTest, BindingAMemoryWindowRequiresAnMrWithBindEnabled)
{
	ASSERT_EQ(create(), Status::ok); // without bind_enable
	MptEntry window{};
	MptEntry::mem_key.set(window.bytes, 30);
	MptEntry::pd.set(window.bytes, kPd);
	driver.command(Opcode::sw2hw_mpt, 30, 0, window.bytes);
	WqeBindWindow request{};
	request.new_rkey = 30 << 8;
	request.region_lkey = kKey;
	request.address = kStart;
	request.length = std::uint64_t{1};
	EXPECT_EQ(memory().bind_window(transport::decoded(request), kPd, 5),
		  MemoryError::permission);
	request.region_lkey = kKey + 1;
	EXPECT_EQ(memory().bind_window(transport::decoded(request), kPd, 5),
		  MemoryError::invalid_key);
	EXPECT_EQ(resolve(KeyAccess::remote_read, kStart, 1, 30 << 8), MemoryError::permission);
}

// The length of a page list is limited, however many entries the key claims to have.
TEST_F(MemoryTableTest, FastRegistrationRefusesPageListsAboveTheMaximumLength)
{
	MptEntry::fast_register_enable.set(entry.bytes, 1);
	MptEntry::mtt_size.set(entry.bytes, 1u << 20);
	ASSERT_EQ(create(), Status::ok);
	const auto make_free = [&] {
		MptEntry free = entry;
		MptEntry::status.set(free.bytes, mpt_status::free);
		ASSERT_TRUE(memory().write_entry(kIndex, free));
	};
	WqeFastRegister request{};
	request.key = kKey;
	request.page_shift = 12;
	request.page_list = std::uint64_t{0x10000};
	request.length = std::uint64_t{MemoryTable::kMaxFastRegisterPages} * 4096;
	make_free();
	EXPECT_EQ(memory().fast_register(transport::decoded(request), kPd), MemoryError::none);
	request.length = (std::uint64_t{MemoryTable::kMaxFastRegisterPages} + 1) * 4096;
	make_free();
	EXPECT_EQ(memory().fast_register(transport::decoded(request), kPd), MemoryError::bounds);
}

TEST_F(MemoryTableTest, InvalidMptCommandsAreRefused)
{
	EXPECT_EQ(create(15), Status::bad_resource) << "reserved";
	EXPECT_EQ(create(kIndex + 1), Status::bad_parameter) << "another slot than its key's";
	driver.immediate(Opcode::unmap_icm, 64, TinyDriver::kDmptBase);
	EXPECT_EQ(create(), Status::icm_error);
	EXPECT_EQ(driver.command(Opcode::query_mpt, kIndex, 0, {}, 0x40).status, Status::icm_error);
}

// The data path is notified of a removed key before the command has completed.
TEST_F(MemoryTableTest, DestroyingAMemoryKeyIsReportedToTheTransportEngine)
{
	ASSERT_EQ(create(), Status::ok);
	EXPECT_TRUE(memory().holds(kKey));
	ASSERT_EQ(driver.command(Opcode::hw2sw_mpt, kIndex, 1).status, Status::ok);
	EXPECT_EQ(driver.transport().gone_keys, std::vector<std::uint32_t>{kIndex});
	EXPECT_FALSE(memory().holds(kKey));
	EXPECT_EQ(memory().slot(kIndex), memory().slot(kIndex & 0xff))
		<< "whatever is beyond the table";

	const unsigned before = driver.transport().key_changes;
	driver.command(Opcode::sync_tpt);
	EXPECT_EQ(driver.transport().key_changes, before + 1);
	driver.immediate(Opcode::unmap_icm, 64, TinyDriver::kDmptBase);
	EXPECT_EQ(driver.transport().key_changes, before + 2);
}

// When guest memory is removed or added, no key is valid for a moment, and then all former keys are
// valid again.
TEST_F(MemoryTableTest, RemovingGuestMemoryIsReportedToTheTransportEngine)
{
	constexpr std::uint64_t elsewhere = 1ull << 40;
	ASSERT_EQ(create(), Status::ok);
	driver.host.dma().map(elsewhere, 4096, true, true, MemoryMapping::allocate(4096));
	const unsigned before = driver.transport().key_changes;
	ASSERT_TRUE(driver.host.dma().unmap(elsewhere, 4096));
	driver.card.memory_changed();
	EXPECT_EQ(driver.transport().key_changes, before + 2);
	EXPECT_TRUE(memory().holds(kKey));
	driver.host.set_bus_master(false);
	driver.card.memory_changed();
	EXPECT_FALSE(memory().holds(kKey)) << "it is no bus master for all that";
}

TEST_F(MemoryTableTest, WriteMttCommandSetsPageAddressesOfAnMr)
{
	Mailbox mailbox(16 + 16);
	hw::mlx4::WriteMttHeader::offset.set(mailbox.data(), 0x800);
	hw::mlx4::store_be64(mailbox.data(), 16, 0x5001);
	hw::mlx4::store_be64(mailbox.data(), 24, 0x9001);
	ASSERT_EQ(driver.command(Opcode::write_mtt, 2, 0, mailbox).status, Status::ok);
	MptEntry::mtt_offset.set(entry.bytes, 0x800);
	ASSERT_EQ(create(), Status::ok);
	ASSERT_EQ(resolve(KeyAccess::local_read, kStart, 0x900), MemoryError::none);
	EXPECT_EQ(ranges.at(0).address, 0x5800u);
	EXPECT_EQ(ranges.at(1).address, 0x9000u);
	EXPECT_EQ(driver.command(Opcode::write_mtt, 511, 0, mailbox).status, Status::bad_parameter)
		<< "more than a mailbox holds";
	hw::mlx4::WriteMttHeader::offset.set(mailbox.data(), ~0ull);
	EXPECT_EQ(driver.command(Opcode::write_mtt, 2, 0, mailbox).status, Status::icm_error);
}

} // namespace
} // namespace weft::mlx4::testing
