// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests memory keys: address translation, refused accesses, and work requests that change keys.
#include "cards/hca/requests.hpp"
#include "cards/mlx5/limits.hpp"
#include "cards/mlx5/tests/tiny_driver.hpp"

namespace weft::mlx5::testing
{

using hw::mlx5::Cqe;
using hw::mlx5::CqeOpcode;
using hw::mlx5::MkeyContext;
using hw::mlx5::WqeUmr;
namespace umr = hw::mlx5::umr;

class Mlx5Memory : public ::testing::Test
{
public:
	void SetUp() override
	{
		driver.bring_up();
		driver.set_port_active();
	}
	// A key with all rights, for a test to complete.
	MkeyContext context(MkeyMode mode, std::uint64_t start, std::uint64_t length)
	{
		MkeyContext context{};
		for (const auto *right : {&MkeyContext::local_read, &MkeyContext::local_write,
					  &MkeyContext::remote_read, &MkeyContext::remote_write})
			right->set(context.bytes, 1);
		MkeyContext::mode_low.set(context.bytes, static_cast<std::uint32_t>(mode));
		MkeyContext::qpn.set(context.bytes, MkeyContext::any_qp);
		MkeyContext::variant.set(context.bytes, 0x11);
		MkeyContext::pd.set(context.bytes, driver.pd);
		MkeyContext::start.set(context.bytes, start);
		MkeyContext::length.set(context.bytes, length);
		MkeyContext::log_page_size.set(context.bytes, 12);
		return context;
	}
	static Bytes pages(std::initializer_list<std::uint64_t> addresses)
	{
		Bytes list(16 * ((addresses.size() + 1) / 2));
		std::size_t at = 0;
		for (const std::uint64_t address : addresses) {
			hw::mlx5::store_be64(list.data(), at, address);
			at += 8;
		}
		return list;
	}
	std::uint32_t make(MkeyContext context, const Bytes &list)
	{
		const auto octwords = static_cast<std::uint32_t>(list.size() / 16);
		MkeyContext::octwords.set(context.bytes, octwords);
		return driver.make_key(context, octwords, list);
	}
	MemoryError resolve(std::uint32_t key, std::uint64_t address, std::uint64_t length,
			    KeyAccess access = KeyAccess::remote_read)
	{
		ranges.clear();
		return driver.card.context()->memory.resolve(
			{.key = key, .access = access, .pd = driver.pd, .qpn = 99}, address, length,
			ranges);
	}

	TinyDriver driver;
	std::vector<BusRange> ranges;
};

// The first page is the one that contains the start, and adjacent pages are one range.
TEST_F(Mlx5Memory, MemoryRegionMayStartWithinAPage)
{
	const std::uint32_t key = make(context(MkeyMode::pages, 0x7000100, 0x2800),
				       pages({0x200000, 0x201000, 0x300000}));
	ASSERT_NE(key, 0u);
	ASSERT_EQ(resolve(key, 0x7000100, 0x2800), MemoryError::none);
	ASSERT_EQ(ranges.size(), 2u);
	EXPECT_EQ(ranges[0].address, 0x200100u);
	EXPECT_EQ(ranges[0].length, 0x1f00u);
	EXPECT_EQ(ranges[1].address, 0x300000u);
	EXPECT_EQ(ranges[1].length, 0x900u);
	EXPECT_EQ(resolve(key, 0x7000100, 0x2801), MemoryError::bounds);
	EXPECT_EQ(resolve(key, 0x70000ff, 1), MemoryError::bounds);
	EXPECT_EQ(resolve(key, ~std::uint64_t{0}, 2), MemoryError::bounds);
}

TEST_F(Mlx5Memory, AccessWithAWrongMkeyVariantPdOrQpOrWithoutTheAccessRightIsRefused)
{
	MkeyContext given = context(MkeyMode::pages, 0, 4096);
	MkeyContext::remote_write.set(given.bytes, 0);
	const std::uint32_t key = make(given, pages({0x200000}));
	EXPECT_EQ(resolve(key, 0, 8), MemoryError::none);
	EXPECT_EQ(resolve(key ^ 1, 0, 8), MemoryError::invalid_key) << "another variant";
	EXPECT_EQ(resolve(key, 0, 8, KeyAccess::remote_write), MemoryError::permission);
	EXPECT_EQ(resolve(key, 0, 8, KeyAccess::remote_atomic), MemoryError::permission);
	const std::uint32_t pd = std::exchange(driver.pd, driver.pd + 1);
	EXPECT_EQ(resolve(key, 0, 8), MemoryError::protection_domain);
	driver.pd = pd;
	MkeyContext::qpn.set(given.bytes, 98);
	EXPECT_EQ(resolve(make(given, pages({0x200000})), 0, 8), MemoryError::protection_domain)
		<< "another queue pair's";
	EXPECT_EQ(driver.command(Opcode::destroy_mkey, key >> 8).status, Status::ok);
	EXPECT_EQ(resolve(key, 0, 8), MemoryError::invalid_key);
	EXPECT_EQ(driver.command(Opcode::destroy_mkey, key >> 8).status, Status::bad_resource);
}

// Access beyond the end of a list that is shorter than the range fails.
TEST_F(Mlx5Memory, AccessBeyondAShortPageListFailsTranslation)
{
	const std::uint32_t key = make(context(MkeyMode::pages, 0, 1 << 20), pages({0x200000, 0}));
	EXPECT_EQ(resolve(key, 0, 4096), MemoryError::none);
	EXPECT_EQ(resolve(key, 3 * 4096, 1), MemoryError::translation);
	EXPECT_TRUE(ranges.empty());
}

TEST_F(Mlx5Memory, InvalidMkeysAreRefused)
{
	MkeyContext device_memory = context(MkeyMode::pages, 0, 4096);
	MkeyContext::mode_high.set(device_memory.bytes, 1);
	EXPECT_EQ(make(device_memory, {}), 0u);
	MkeyContext whole = context(MkeyMode::pages, 0, 4096);
	MkeyContext::length64.set(whole.bytes, 1);
	EXPECT_EQ(make(whole, pages({0x200000})), 0u);
	MkeyContext small_pages = context(MkeyMode::pages, 0, 4096);
	MkeyContext::log_page_size.set(small_pages.bytes, 11);
	EXPECT_EQ(make(small_pages, pages({0x200000})), 0u);
	MkeyContext large = context(MkeyMode::pages, 0, 4096);
	MkeyContext::octwords.set(large.bytes, limits::kMostKeyPages / 2 + 1);
	EXPECT_EQ(driver.make_key(large, 0, {}), 0u);
	MkeyContext many = context(MkeyMode::pieces, 0, 4096);
	MkeyContext::octwords.set(many.bytes, (1u << limits::kLogPieces) + 1);
	EXPECT_EQ(driver.make_key(many, 0, {}), 0u);
	MkeyContext::octwords.set(many.bytes, 1u << limits::kLogPieces);
	EXPECT_NE(driver.make_key(many, 0, {}), 0u);
	MkeyContext cut = context(MkeyMode::pages, 0, 4096);
	MkeyContext::octwords.set(cut.bytes, 8);
	EXPECT_EQ(driver.make_key(cut, 8, pages({0x200000})), 0u) << "fewer than it says";
}

// Bus mastering is disabled, or guest memory changes: packets in flight must not read it any more.
TEST_F(Mlx5Memory, MkeysAreInvalidWithoutBusMastering)
{
	const MemoryKeys &memory = driver.card.context()->memory;
	EXPECT_TRUE(memory.holds(driver.key));
	driver.host.set_bus_master(false);
	EXPECT_FALSE(memory.holds(driver.key));
	driver.host.set_bus_master(true);
	EXPECT_TRUE(memory.holds(driver.key));
}

// Pieces of other keys can have any length. All properties of the other key are checked.
TEST_F(Mlx5Memory, AddressesAreTranslatedThroughTheMkeysOfKlmEntries)
{
	const std::uint32_t inner =
		make(context(MkeyMode::pages, 0, 8192), pages({0x200000, 0x300000}));
	const auto piece = [](Bytes &list, std::uint32_t length, std::uint32_t key,
			      std::uint64_t address) {
		const std::size_t at = list.size();
		list.resize(at + 16);
		hw::mlx5::store_be32(list.data(), at, length);
		hw::mlx5::store_be32(list.data(), at + 4, key);
		hw::mlx5::store_be64(list.data(), at + 8, address);
	};
	Bytes list;
	piece(list, 10, inner, 4090);
	piece(list, 0, inner, 0);
	piece(list, 6, driver.key, 0x400000);
	const std::uint32_t key = make(context(MkeyMode::pieces, 0x100, 16), list);
	ASSERT_NE(key, 0u);
	ASSERT_EQ(resolve(key, 0x102, 13), MemoryError::none);
	ASSERT_EQ(ranges.size(), 3u);
	EXPECT_EQ(ranges[0].address, 0x200000u + 4092);
	EXPECT_EQ(ranges[0].length, 4u);
	EXPECT_EQ(ranges[1].address, 0x300000u);
	EXPECT_EQ(ranges[1].length, 4u);
	EXPECT_EQ(ranges[2].address, 0x400000u);
	EXPECT_EQ(ranges[2].length, 5u);
	EXPECT_EQ(driver.command(Opcode::destroy_mkey, inner >> 8).status, Status::ok);
	EXPECT_EQ(resolve(key, 0x102, 13), MemoryError::invalid_key);
	EXPECT_EQ(resolve(key, 0x10a, 6), MemoryError::none) << "none of that key's";
}

// As with a memory window, the key with the pieces must have the remote rights, and the key of each
// piece the local rights.
TEST_F(Mlx5Memory, RemoteAccessThroughAKlmMkeyRequiresOnlyLocalRightsOfTheReferencedMkeys)
{
	MkeyContext given = context(MkeyMode::pages, 0, 4096);
	for (const auto *right : {&MkeyContext::remote_read, &MkeyContext::remote_write})
		right->set(given.bytes, 0);
	const std::uint32_t writable = make(given, pages({0x200000}));
	MkeyContext::local_write.set(given.bytes, 0);
	const std::uint32_t readable = make(given, pages({0x200000}));
	EXPECT_EQ(resolve(writable, 0, 8), MemoryError::permission);
	const auto window = [&](std::uint32_t inner) {
		Bytes list(16);
		hw::mlx5::store_be32(list.data(), 0, 4096);
		hw::mlx5::store_be32(list.data(), 4, inner);
		return make(context(MkeyMode::pieces, 0, 4096), list);
	};
	EXPECT_EQ(resolve(window(writable), 0, 8), MemoryError::none);
	EXPECT_EQ(resolve(window(writable), 0, 8, KeyAccess::remote_write), MemoryError::none);
	EXPECT_EQ(resolve(window(readable), 0, 8), MemoryError::none);
	EXPECT_EQ(resolve(window(readable), 0, 8, KeyAccess::remote_write),
		  MemoryError::permission);
}

// When a region's key is invalidated, the transport must end packets in flight that use it through
// a window (Engine::key_gone()).
TEST_F(Mlx5Memory, TransportIsNotifiedOfAnInvalidatedMkeyOnlyIfItWasAccessedThroughAKlmMkey)
{
	MemoryKeys &memory = driver.card.context()->memory;
	const std::uint32_t region = make(context(MkeyMode::pages, 0, 4096), pages({0x200000}));
	Bytes list(16);
	hw::mlx5::store_be32(list.data(), 0, 4096);
	hw::mlx5::store_be32(list.data(), 4, region);
	const std::uint32_t window = make(context(MkeyMode::pieces, 0, 4096), list);
	EXPECT_TRUE(memory.has_parts(window));
	EXPECT_FALSE(memory.has_parts(region));
	EXPECT_EQ(memory.invalidate(region, driver.pd, 0, false), MemoryError::none);
	EXPECT_FALSE(memory.take_lost_parts()) << "nothing has reached it by the window";
	memory.find(region >> 8)->free = false;
	EXPECT_EQ(resolve(window, 0, 8), MemoryError::none);
	EXPECT_EQ(memory.invalidate(region, driver.pd, 0, false), MemoryError::none);
	EXPECT_TRUE(memory.take_lost_parts());
	EXPECT_FALSE(memory.take_lost_parts());
	memory.find(region >> 8)->free = false;
	EXPECT_EQ(resolve(window, 0, 8), MemoryError::none);
	EXPECT_TRUE(memory.remove(region >> 8));
	EXPECT_TRUE(memory.take_lost_parts());
}

// A cycle of keys fails after a few steps.
TEST_F(Mlx5Memory, CyclicKlmMkeysFailTranslation)
{
	Bytes list(16);
	hw::mlx5::store_be32(list.data(), 0, 16);
	const std::uint32_t first = make(context(MkeyMode::pieces, 0, 16), list);
	MemoryKey *const key = driver.card.context()->memory.find(first >> 8);
	ASSERT_NE(key, nullptr);
	key->pieces[0].key = first;
	EXPECT_EQ(resolve(first, 0, 16), MemoryError::translation);
}

TEST_F(Mlx5Memory, OffsetSelectsTheEntryOfAnMkeyWithEqualSizedKlms)
{
	Bytes list(16 * 2);
	for (std::size_t at = 0; at < list.size(); at += 16) {
		hw::mlx5::store_be32(list.data(), at + 4, driver.key);
		hw::mlx5::store_be64(list.data(), at + 8, 0x200000 + 0x10000 * at);
	}
	const std::uint32_t key = make(context(MkeyMode::equal_pieces, 0x100, 0x3000), list);
	ASSERT_NE(key, 0u);
	ASSERT_EQ(resolve(key, 0x100 + 0xffc, 8), MemoryError::none);
	ASSERT_EQ(ranges.size(), 2u);
	EXPECT_EQ(ranges[0].address, 0x200ffcu);
	EXPECT_EQ(ranges[1].address, 0x300000u);
	EXPECT_EQ(ranges[1].length, 4u);
	EXPECT_EQ(resolve(key, 0x100 + 0x2000, 1), MemoryError::translation) << "a third piece";
}

// Empty pieces cost nothing, however many there are.
TEST_F(Mlx5Memory, EmptyKlmEntriesAreSkipped)
{
	Bytes list(16 * 4096);
	for (std::size_t at = 0; at < list.size(); at += 16)
		hw::mlx5::store_be32(list.data(), at + 4, driver.key);
	hw::mlx5::store_be32(list.data(), 0, 1);
	hw::mlx5::store_be32(list.data(), list.size() - 16, 1);
	hw::mlx5::store_be64(list.data(), list.size() - 8, 0x300000);
	const std::uint32_t key = make(context(MkeyMode::pieces, 0, 2), list);
	ASSERT_NE(key, 0u);
	ASSERT_EQ(resolve(key, 0, 2), MemoryError::none);
	ASSERT_EQ(ranges.size(), 2u);
	EXPECT_EQ(ranges[1].address, 0x300000u);
}

// Requests on keys.
class Mlx5Umr : public Mlx5Memory
{
protected:
	std::uint32_t make_free_key(std::uint32_t octwords)
	{
		MkeyContext given = context(MkeyMode::pages, 0, 0);
		MkeyContext::free.set(given.bytes, 1);
		MkeyContext::umr_enable.set(given.bytes, 1);
		MkeyContext::octwords.set(given.bytes, octwords);
		return driver.make_key(given, 0, {});
	}
	// A request that makes a free key one for @pages of one page each.
	UpdateKey registration(std::uint32_t key, std::initializer_list<std::uint64_t> addresses)
	{
		Bytes list = pages(addresses);
		list.resize((list.size() + 63) & ~std::size_t{63});
		WqeUmr head{};
		WqeUmr::inline_list.set(head.bytes, 1);
		WqeUmr::fail_unless_free.set(head.bytes, 1);
		WqeUmr::octwords.set(head.bytes, static_cast<std::uint32_t>(list.size() / 16));
		WqeUmr::mask.set(head.bytes, umr::length | umr::page_size | umr::start |
						     umr::remote_read | umr::free | umr::variant);
		MkeyContext given = context(MkeyMode::pages, 0x5000, 4096 * addresses.size());
		MkeyContext::variant.set(given.bytes, key & 0xff);
		UpdateKey request;
		request.key = key;
		request.may_name_pages = true;
		const auto add = [&](std::span<const std::uint8_t> part) {
			const auto bytes = std::as_bytes(part);
			request.segments.insert(request.segments.end(), bytes.begin(), bytes.end());
		};
		add(head.bytes);
		add(given.bytes);
		add(list);
		return request;
	}
	MemoryError update(const UpdateKey &request)
	{
		return driver.card.context()->memory.update_key(
			request, {.key = request.key, .pd = driver.pd, .qpn = 99});
	}
	WqeUmr &head(UpdateKey &request)
	{
		return *reinterpret_cast<WqeUmr *>(request.segments.data());
	}
};

TEST_F(Mlx5Umr, UmrCanRegisterAFreeMkeyOnlyOnce)
{
	const std::uint32_t key = make_free_key(4);
	EXPECT_EQ(resolve(key, 0x5000, 8), MemoryError::invalid_key) << "it is free";
	UpdateKey request = registration(key + 1, {0x200000, 0x300000});
	ASSERT_EQ(update(request), MemoryError::none);
	EXPECT_EQ(resolve(key, 0x5000, 8), MemoryError::invalid_key) << "the variant has changed";
	ASSERT_EQ(resolve(key + 1, 0x6000, 8), MemoryError::none);
	EXPECT_EQ(ranges[0].address, 0x300000u);
	EXPECT_EQ(update(request), MemoryError::bad_request) << "it is free no more";
}

TEST_F(Mlx5Umr, PageListLongerThanTheCapacityOfTheMkeyIsRefused)
{
	const std::uint32_t key = make_free_key(2);
	UpdateKey request = registration(
		key, {1 << 12, 2 << 12, 3 << 12, 4 << 12, 5 << 12, 6 << 12, 7 << 12, 8 << 12});
	EXPECT_EQ(update(request), MemoryError::none) << "padded to 64 bytes";
	const std::uint32_t another = make_free_key(2);
	request = registration(another, {1 << 12, 2 << 12, 3 << 12, 4 << 12, 5 << 12, 6 << 12,
					 7 << 12, 8 << 12, 9 << 12});
	EXPECT_EQ(update(request), MemoryError::bounds);
	request = registration(another, {1 << 12});
	WqeUmr::has_offset.set(head(request).bytes, 1);
	WqeUmr::offset_high.set(head(request).bytes, 0xffffffff);
	EXPECT_EQ(update(request), MemoryError::bounds);
	EXPECT_EQ(resolve(another, 0x5000, 8), MemoryError::invalid_key) << "nothing has changed";
}

// A program that may post requests on keys must not reach pages by their addresses.
TEST_F(Mlx5Umr, UserProgramsCannotRegisterPageAddresses)
{
	const std::uint32_t key = make_free_key(4);
	UpdateKey request = registration(key, {0x200000});
	request.may_name_pages = false;
	EXPECT_EQ(update(request), MemoryError::permission);
	request = registration(key, {0x200000});
	WqeUmr::mask.set(head(request).bytes, WqeUmr::mask.get(head(request).bytes) | umr::pd);
	EXPECT_EQ(update(request), MemoryError::bad_request) << "nor another's domain";
	request.any_domain = true;
	EXPECT_EQ(update(request), MemoryError::none);
	const std::uint32_t pd = std::exchange(driver.pd, driver.pd + 1);
	EXPECT_EQ(update(registration(key, {0x200000})), MemoryError::protection_domain);
	driver.pd = pd;
}

TEST_F(Mlx5Umr, TruncatedRequestsAreRefused)
{
	const std::uint32_t key = make_free_key(4);
	UpdateKey request = registration(key, {0x200000});
	request.segments.resize(100);
	EXPECT_EQ(update(request), MemoryError::bad_request);
	request = registration(key, {0x200000});
	request.segments.resize(WqeUmr::size + MkeyContext::size + 16);
	EXPECT_EQ(update(request), MemoryError::bad_request) << "a list of 64 bytes in 16";
	EXPECT_EQ(update(registration(0x00ffff00, {0x200000})), MemoryError::invalid_key);
}

// The request of a queue pair for UMR requests names its list in memory.
TEST_F(Mlx5Umr, NonInlinePageListIsReadFromMemory)
{
	const auto cq = driver.make_cq(4);
	const auto qp = driver.make_qp(QpService::reg_umr, cq);
	driver.to_rts(qp, 0);
	const std::uint32_t key = make_free_key(4);
	UpdateKey request = registration(key, {});
	WqeUmr::inline_list.set(head(request).bytes, 0);
	WqeUmr::octwords.set(head(request).bytes, 4);
	const std::uint64_t list = driver.allocate(4096);
	hw::mlx5::store_be64(driver.bytes(list, 64), 0, 0x200000);
	MkeyContext::length.set(
		reinterpret_cast<std::uint8_t *>(request.segments.data()) + WqeUmr::size, 4096);
	Bytes wqe = TinyDriver::control(hw::mlx5::opcode_umr);
	hw::mlx5::WqeControl::immediate.set(wqe.data(), key);
	for (const std::byte byte : request.segments)
		wqe.push_back(static_cast<std::uint8_t>(byte));
	TinyDriver::add_data(wqe, list, 64, driver.key);
	driver.send(qp, 0, wqe);
	ASSERT_TRUE(driver.run_until_entry(cq, 0));
	const Cqe cqe = driver.entry(cq, 0);
	EXPECT_EQ(Cqe::opcode.get(cqe.bytes), static_cast<unsigned>(CqeOpcode::requester))
		<< "syndrome " << Cqe::syndrome.get(cqe.bytes);
	EXPECT_EQ(Cqe::wqe_opcode.get(cqe.bytes), hw::mlx5::opcode_umr);
	ASSERT_EQ(resolve(key, 0x5000, 8), MemoryError::none);
	EXPECT_EQ(ranges[0].address, 0x200000u);
}

TEST_F(Mlx5Umr, RemoteInvalidationRequiresTheRemoteInvalidateBitAndAMatchingPd)
{
	MemoryKeys &memory = driver.card.context()->memory;
	MkeyContext given = context(MkeyMode::pages, 0, 4096);
	const std::uint32_t kept = make(given, pages({0x200000}));
	MkeyContext::remote_invalidate.set(given.bytes, 1);
	const std::uint32_t gone = make(given, pages({0x200000}));
	EXPECT_EQ(memory.invalidate(kept, driver.pd, 99, true), MemoryError::bad_request);
	EXPECT_EQ(memory.invalidate(gone, driver.pd + 1, 99, true), MemoryError::protection_domain);
	EXPECT_EQ(memory.invalidate(gone ^ 1, driver.pd, 99, true), MemoryError::invalid_key);
	EXPECT_EQ(memory.invalidate(gone, driver.pd, 99, true), MemoryError::none);
	EXPECT_EQ(resolve(gone, 0, 8), MemoryError::invalid_key);
	EXPECT_EQ(resolve(kept, 0, 8), MemoryError::none);
}

} // namespace weft::mlx5::testing
