// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the emulated InfiniHost III through its registers, commands and queues, as its driver uses
// them.
#include <algorithm>
#include <array>

#include "cards/hca/testing/recording_transport.hpp"
#include "cards/mthca/tests/tiny_driver.hpp"
#include "cards/mellanox_icm/queue_memory.hpp"
#include "net/fabric/local_access.hpp"

namespace weft::mthca::testing
{

using hw::mellanox_icm::Eqe;
using hw::mellanox_icm::EventType;
using hw::mellanox_icm::WqeData;
using hw::mellanox_icm::WqeOpcode;
using hw::mellanox_icm::WqeRemoteAddress;
using hw::mthca::CqContext;
using hw::mthca::Cqe;
using hw::mthca::QpContext;
using hw::mthca::QueryFw;
using hw::mthca::WqeNext;
namespace opcode = hw::mthca::opcode;
namespace uar = hw::mthca::uar;

class Mthca : public ::testing::Test
{
public:
	TinyDriver driver;
};

// Registers are reported by their bus addresses, which depend on where the guest has placed the
// BAR.
TEST_F(Mthca, QueryFwReturnsBusAddressesOfRegisters)
{
	const Result said = driver.command(Opcode::query_fw, 0, 0, {}, QueryFw::size);
	ASSERT_EQ(said.status, Status::ok);
	const std::uint64_t base = driver.host.bar_address(0);
	ASSERT_NE(base, 0u);
	EXPECT_EQ(QueryFw::clear_interrupt.get(said.out.data()), base + limits::kClearInterrupt);
	EXPECT_EQ(QueryFw::eq_arm.get(said.out.data()), base + limits::kEqArm);
	EXPECT_EQ(QueryFw::eq_ci_table.get(said.out.data()), base + limits::kEqConsumerIndexes);
	EXPECT_EQ(QueryFw::error_buffer.get(said.out.data()), base + limits::kErrorBuffer);
}

// Packets in flight must not read memory that the guest has removed.
TEST(MthcaMemory, RemovingGuestMemoryIsReportedToTheTransportEngine)
{
	constexpr std::uint64_t elsewhere = 1ull << 40;
	fabric::Fabric fabric;
	weft::testing::FakeHost host{1 << 20};
	hca::testing::RecordingTransport *transport = nullptr;
	Card card{{"test", 0x0002c90200000100, {&fabric.add_port("1"), &fabric.add_port("2")}},
		  [&](hca::Context &) {
			  auto made = std::make_unique<hca::testing::RecordingTransport>();
			  transport = made.get();
			  return made;
		  }};
	host.set_bus_master(true);
	host.plug(card);
	host.loop().poll();
	host.dma().map(elsewhere, 4096, true, true, MemoryMapping::allocate(4096));
	const unsigned before = transport->key_changes;
	ASSERT_TRUE(host.dma().unmap(elsewhere, 4096));
	card.memory_changed();
	EXPECT_EQ(transport->key_changes, before + 2)
		<< "no key holds for a moment, and then those that did";
	host.unplug();
}

// Programs may map and unmap pages of doorbell records often, so this must not require a check of
// all keys.
TEST(MthcaMemory, UnmappingADoorbellRecordPageInvalidatesNoKeys)
{
	hca::testing::RecordingTransport *transport = nullptr;
	TinyDriver driver(true, [&](hca::Context &) {
		auto made = std::make_unique<hca::testing::RecordingTransport>();
		transport = made.get();
		return made;
	});
	driver.bring_up();
	const unsigned before = transport->key_changes;
	const auto unmap = [&](std::uint64_t address, std::uint32_t pages) {
		EXPECT_EQ(driver.command(Opcode::unmap_icm, pages, 0, {}, 0, address).status,
			  Status::ok);
		return transport->key_changes - before;
	};
	EXPECT_EQ(unmap(TinyDriver::kUarcs + 4096 * TinyDriver::kUar, 1), 0u);
	EXPECT_EQ(unmap(TinyDriver::kUarcs - 4096, 2), 1u);
	EXPECT_EQ(unmap(TinyDriver::kUarcs + 4096ull * limits::kUarPages - 4096, 1), 1u);
	EXPECT_EQ(unmap(TinyDriver::kUarcs + 4096ull * limits::kUarPages - 4096, 2), 2u);
	EXPECT_EQ(unmap(TinyDriver::kMpts, 1), 3u);
	EXPECT_EQ(unmap(TinyDriver::kMtts, 1), 4u);
}

// The card has no memory of its own. Commands before initialisation and unsupported commands return
// an error.
TEST_F(Mthca, CommandsBeforeInitialisationAndUnsupportedCommandsAreRefused)
{
	EXPECT_EQ(driver.command(opcode::enable_lam, 0, 0, {}, 0).status, Status::no_local_memory);
	EXPECT_EQ(driver.command(opcode::query_dev_lim, 0, 0, {}, 0x100).status,
		  Status::bad_system_state);
	EXPECT_EQ(driver.command(Opcode::init_hca, 0, 0, driver.init().bytes).status,
		  Status::bad_system_state);
	EXPECT_EQ(driver.command(Opcode::query_port, 1, 0, {}, 0x100).status, Status::bad_opcode);
	driver.start_firmware();
	auto init = driver.init();
	hw::mthca::InitHca::log_qps.set(init.bytes, 24);
	EXPECT_EQ(driver.command(Opcode::init_hca, 0, 0, init.bytes).status, Status::exceeds_limit);
	init = driver.init();
	hw::mthca::InitHca::mcg_hash_size.set(init.bytes, 17);
	EXPECT_EQ(driver.command(Opcode::init_hca, 0, 0, init.bytes).status, Status::bad_parameter)
		<< "more than the table has";
	hw::mthca::InitHca::mcg_hash_size.set(init.bytes, 0);
	EXPECT_EQ(driver.command(Opcode::init_hca, 0, 0, init.bytes).status, Status::bad_parameter);
}

// A completed command is reported by an event with its token. An armed event queue raises one
// interrupt, at once if it already has an entry.
TEST_F(Mthca, CommandCompletionsAreReportedByEvents)
{
	driver.bring_up();
	EXPECT_EQ(driver.command(Opcode::nop, 0x1f, 0, {}, 0, 0, true).status, Status::ok);
	EXPECT_EQ(driver.host.take_interrupts(2), 1u);
	driver.command(Opcode::nop, 0x1f, 0, {}, 0, 0, true);
	EXPECT_EQ(driver.host.take_interrupts(2), 0u) << "not armed again";
	Eqe entry = driver.next_event();
	EXPECT_EQ(Eqe::type.get(entry.bytes), unsigned(EventType::command));
	EXPECT_EQ(Eqe::command_token.get(entry.bytes), TinyDriver::kToken);
	driver.arm_eq();
	EXPECT_EQ(driver.host.take_interrupts(2), 1u) << "the second is there already";
	driver.next_event();
	EXPECT_EQ(Eqe::type.get(driver.next_event().bytes), 0xffu);
	driver.arm_eq();
	EXPECT_EQ(driver.host.take_interrupts(2), 0u);
	// The queue wraps around: entries that the driver has consumed belong to the card again.
	for (unsigned i = 0; i < 40; ++i) {
		driver.command(Opcode::nop, 0x1f, 0, {}, 0, 0, true);
		ASSERT_EQ(Eqe::type.get(driver.next_event().bytes), unsigned(EventType::command))
			<< i;
	}
}

// All 32 bits of a key and the protection domain are checked, and a destroyed key is invalid.
TEST_F(Mthca, MemoryKeysAreValidUntilDestroyed)
{
	driver.bring_up();
	MemoryTable &memory = driver.context().memory;
	std::vector<BusRange> ranges;
	KeyUse use{
		.key = TinyDriver::kKey, .access = KeyAccess::remote_write, .pd = TinyDriver::kPd};
	ASSERT_EQ(memory.resolve(use, 0x123456789, 16, ranges), MemoryError::none);
	EXPECT_EQ(ranges.at(0).address, 0x123456789u);
	use.pd++;
	EXPECT_EQ(memory.resolve(use, 0, 1, ranges), MemoryError::protection_domain);
	use.pd--;
	use.key ^= 1;
	EXPECT_EQ(memory.resolve(use, 0, 1, ranges), MemoryError::invalid_key)
		<< "an older key of the same place";
	use.key ^= 1;
	EXPECT_EQ(driver.command(Opcode::hw2sw_mpt, TinyDriver::kKeyIndex & 0xff, 1).status,
		  Status::ok);
	EXPECT_EQ(memory.resolve(use, 0, 1, ranges), MemoryError::invalid_key);
	std::uint8_t nothing[64]{};
	EXPECT_EQ(driver.command(Opcode::sw2hw_mpt, 1, 0, nothing).status, Status::bad_resource)
		<< "lkey 0x100 ends lists";
}

// The page list of a region is specified by its ICM address, and the page size by its binary
// logarithm minus 12.
TEST_F(Mthca, MptEntrySpecifiesThePageListByItsIcmAddress)
{
	driver.bring_up();
	using Mpt = hw::mthca::MptEntry;
	Mpt mpt{};
	hw::mlx4::MptEntry::local_read.set(mpt.bytes, 1);
	hw::mlx4::MptEntry::region.set(mpt.bytes, 1);
	Mpt::log_page_size.set(mpt.bytes, 1);
	Mpt::mem_key.set(mpt.bytes, 0x21);
	Mpt::pd.set(mpt.bytes, TinyDriver::kPd);
	Mpt::start.set(mpt.bytes, 0x5000);
	Mpt::length.set(mpt.bytes, 0x4000);
	Mpt::mtt_address.set(mpt.bytes, TinyDriver::kMtts + 64);
	ASSERT_EQ(driver.command(Opcode::sw2hw_mpt, 0x21, 0, mpt.bytes).status, Status::ok);
	const std::uint64_t list = (8 << 20) + TinyDriver::kMtts + 64;
	driver.host.object<ib::be64>(list) = std::uint64_t{0x800001};
	driver.host.object<ib::be64>(list + 8) = std::uint64_t{0x600001};
	std::vector<BusRange> ranges;
	const KeyUse use{.key = 0x2100, .access = KeyAccess::local_read, .pd = TinyDriver::kPd};
	ASSERT_EQ(driver.context().memory.resolve(use, 0x5000, 0x2000, ranges), MemoryError::none);
	ASSERT_EQ(ranges.size(), 2u);
	EXPECT_EQ(ranges[0].address, 0x801000u);
	EXPECT_EQ(ranges[0].length, 0x1000u);
	EXPECT_EQ(ranges[1].address, 0x600000u);

	// The region may belong to a file that the program must not write.
	const auto queue = mellanox_icm::QueueBuffer::keyed(0x2100, TinyDriver::kPd, 0x5000);
	std::byte entry[32]{};
	EXPECT_TRUE(driver.context().memory.read(queue, 0, entry));
	EXPECT_FALSE(driver.context().memory.write(queue, 0, entry)) << "the key is for reading";
	EXPECT_FALSE(mellanox_icm::store_entry(driver.context().memory, queue, 0,
					       std::array<std::uint8_t, 32>{}));
}

// Armed faults occur as often as requested, where the driver can detect them.
TEST_F(Mthca, InjectedFaultsOccurTheRequestedNumberOfTimes)
{
	driver.bring_up();
	Faults &faults = driver.card.faults();
	faults.arm(Fault::command_status, 1);
	EXPECT_EQ(driver.command(Opcode::nop).status, Faults::kNoSuchStatus);
	EXPECT_EQ(driver.command(Opcode::nop).status, Status::ok);
	for (const auto opcode : {Opcode::query_fw, opcode::query_dev_lim}) {
		const auto sound = driver.command(opcode, 0, 0, {}, 0x100);
		faults.arm(Fault::capabilities, 1);
		EXPECT_NE(driver.command(opcode, 0, 0, {}, 0x100).out, sound.out);
		EXPECT_EQ(driver.command(opcode, 0, 0, {}, 0x100).out, sound.out);
	}
	faults.arm(Fault::command_twice, 1);
	driver.command(Opcode::nop, 0x1f, 0, {}, 0, 0, true);
	for (unsigned time = 0; time < 2; ++time)
		EXPECT_EQ(Eqe::type.get(driver.next_event().bytes), unsigned(EventType::command))
			<< time;
	EXPECT_EQ(Eqe::type.get(driver.next_event().bytes), 0xffu);
	driver.host.take_interrupts(0);
	driver.card.interrupt_idly();
	EXPECT_EQ(driver.host.take_interrupts(0), 1u);
}

// An untrusted guest can read its own node, but cannot change it or set a node description. The
// card itself answers the subnet manager, and notifies the driver of changes by a single event.
TEST(UntrustedMthca, DriverInAnUntrustedGuestCannotSetThePortGuidOrIsSmBitOrPkeyTable)
{
	TinyDriver driver(false);
	driver.bring_up();
	CardPort &port = *driver.context().port(1);
	const auto smp = [](ib::MadMethod method, std::uint16_t attribute) {
		ib::Smp made{};
		made.header.base_version = ib::mad_base_version;
		made.header.mgmt_class = static_cast<std::uint8_t>(ib::MgmtClass::subn_lid_routed);
		made.header.class_version = 1;
		made.header.method = static_cast<std::uint8_t>(method);
		made.header.attr_id = attribute;
		return made;
	};
	const auto by_driver = [&](ib::MadMethod method, std::uint16_t attribute) {
		const ib::Smp asked = smp(method, attribute);
		return driver
			.command(Opcode::mad_ifc, 1, 3,
				 {reinterpret_cast<const std::uint8_t *>(&asked), sizeof(asked)},
				 256)
			.status;
	};
	EXPECT_EQ(by_driver(ib::MadMethod::get, ib::attr_port_info), Status::ok);
	EXPECT_EQ(by_driver(ib::MadMethod::set, ib::attr_pkey_table), Status::bad_packet);

	hw::mthca::InitIb init{};
	hw::mthca::InitIb::mtu.set(init.bytes, static_cast<std::uint32_t>(ib::Mtu::mtu_2048));
	hw::mthca::InitIb::vls.set(init.bytes, 1);
	ASSERT_EQ(driver.command(opcode::init_ib, 1, 0, init.bytes).status, Status::ok);
	hw::mthca::InitIb::guid0_valid.set(init.bytes, 1);
	EXPECT_EQ(driver.command(opcode::init_ib, 1, 0, init.bytes).status, Status::bad_parameter);
	std::uint8_t capabilities[hw::mthca::SetIb::size]{};
	hw::mthca::SetIb::capability_mask.set(capabilities, ib::port_cap_is_sm | ib::port_cap_trap);
	ASSERT_EQ(driver.command(opcode::set_ib, 1, 0, capabilities).status, Status::ok);
	EXPECT_EQ(port.info().capability_mask, std::uint32_t{ib::port_cap_trap});

	port.info().set_state(ib::PortState::active);
	while (Eqe::type.get(driver.next_event().bytes) != 0xff) {
	}
	ib::Smp keys = smp(ib::MadMethod::set, ib::attr_pkey_table);
	keys.data[0] = keys.data[1] = 0xff;
	keys.data[2] = 0x80;
	keys.data[3] = 0x05;
	bool handled = false;
	EXPECT_TRUE(driver.context().management.wire_smp(1, keys, 1, handled));
	EXPECT_EQ(Eqe::type.get(driver.next_event().bytes), unsigned(EventType::port_change));
	EXPECT_EQ(Eqe::type.get(driver.next_event().bytes), 0xffu);
}

// An RC QP that is connected to itself: requests are linked and use doorbells, and completions
// contain WQE addresses.
class MthcaTraffic : public Mthca
{
public:
	static constexpr std::uint32_t kCqn = 0x010020, kQpn = 0x0e0020;
	static constexpr unsigned kLogCq = 3, kLogQueue = 3;
	static constexpr std::uint32_t kStride = 64, kCiRecord = 500, kArmRecord = 1,
				       kSendRecord = 2, kReceiveRecord = 499;

	void SetUp() override
	{
		driver.bring_up();
		cq = driver.allocate(32 << kLogCq);
		for (std::uint32_t i = 0; i < 1u << kLogCq; ++i)
			driver.host.object<Cqe>(cq + 32 * i).owner = Cqe::owner_bit;
		CqContext context{};
		CqContext::start.set(context.bytes, cq);
		CqContext::log_size.set(context.bytes, kLogCq);
		CqContext::uar_page.set(context.bytes, TinyDriver::kUar);
		CqContext::eqn.set(context.bytes, TinyDriver::kEqn);
		CqContext::pd.set(context.bytes, TinyDriver::kPd);
		CqContext::lkey.set(context.bytes, TinyDriver::kKey);
		CqContext::ci_record.set(context.bytes, kCiRecord);
		CqContext::arm_record.set(context.bytes, kArmRecord);
		ASSERT_EQ(driver.command(Opcode::sw2hw_cq, kCqn, 0, context.bytes).status,
			  Status::ok);

		receive_queue = driver.allocate(kStride << kLogQueue);
		send_queue = driver.allocate(kStride << kLogQueue);
		std::uint8_t mailbox[hw::mthca::qp_mailbox_size]{};
		std::uint8_t *const qp = mailbox + hw::mellanox_icm::qp_mailbox_context;
		for (const auto *size : {&QpContext::log_sq_size, &QpContext::log_rq_size})
			size->set(qp, kLogQueue);
		for (const auto *stride : {&QpContext::log_sq_stride, &QpContext::log_rq_stride})
			stride->set(qp, 2);
		QpContext::uar_page.set(qp, TinyDriver::kUar);
		QpContext::pd.set(qp, TinyDriver::kPd);
		QpContext::wqe_lkey.set(qp, TinyDriver::kKey);
		QpContext::send_cqn.set(qp, kCqn);
		QpContext::receive_cqn.set(qp, kCqn);
		hw::mellanox_icm::store_be32(qp, QpContext::send_base.offset,
					     static_cast<std::uint32_t>(send_queue));
		hw::mellanox_icm::store_be32(qp, QpContext::receive_base.offset,
					     static_cast<std::uint32_t>(receive_queue));
		QpContext::send_record.set(qp, kSendRecord);
		QpContext::receive_record.set(qp, kReceiveRecord);
		QpContext::remote_write.set(qp, 1);
		hw::mthca::PathLayout::port.set(qp + QpContext::primary_path, 1);
		ASSERT_EQ(driver.command(Opcode::rst2init_qp, kQpn, 0, mailbox).status, Status::ok);
		ASSERT_EQ(driver.command(Opcode::rst2init_qp, kQpn ^ 0x30000, 0, mailbox).status,
			  Status::bad_qp_state)
			<< "another number in the same place";
		QpContext::mtu.set(qp, static_cast<std::uint32_t>(ib::Mtu::mtu_4096));
		EXPECT_EQ(driver.command(Opcode::init2rtr_qp, kQpn, 0, mailbox).status,
			  Status::bad_parameter);
		QpContext::mtu.set(qp, static_cast<std::uint32_t>(ib::Mtu::mtu_1024));
		QpContext::log_max_message.set(qp, 31);
		QpContext::remote_qpn.set(qp, kQpn);
		hw::mthca::PathLayout::remote_lid.set(qp + QpContext::primary_path, 7);
		CardPort &port = *driver.context().port(1);
		port.info().lid = std::uint16_t{7};
		port.info().set_state(ib::PortState::active);
		ASSERT_EQ(driver.command(Opcode::init2rtr_qp, kQpn, 0, mailbox).status, Status::ok);
		ASSERT_EQ(driver.command(Opcode::rtr2rts_qp, kQpn, 0, mailbox).status, Status::ok);
	}
	void post_receive(WqeData piece)
	{
		const std::uint64_t wqe = receive_queue + kStride * (received++ % 8);
		driver.host.object<WqeData>(wqe + 16) = piece;
		driver.host.object<WqeData>(wqe + 32) = {0, hw::mthca::terminator_lkey, 0};
		driver.record(kReceiveRecord) = received;
	}
	// Writes a WQE, and its description in the previous one.
	void write_send(WqeOpcode code, WqeData piece,
			std::uint32_t flags = WqeNext::completion | WqeNext::always)
	{
		const std::uint64_t wqe = send_queue + kStride * (posted % 8),
				    before = send_queue + kStride * ((posted + 7) % 8);
		auto &own = driver.host.object<WqeNext>(wqe);
		own.flags = flags;
		driver.host.object<WqeData>(wqe + 16) = piece;
		auto &link = driver.host.object<WqeNext>(before);
		link.next_word = static_cast<std::uint32_t>(wqe) | static_cast<std::uint32_t>(code);
		link.size_word = WqeNext::doorbell | 2;
		++posted;
	}
	void ring(std::uint32_t first, std::uint32_t count, std::uint32_t page = TinyDriver::kUar)
	{
		driver.record(kSendRecord) = posted;
		const std::uint64_t place = uar::page_size * page + uar::send_doorbell;
		driver.write_be32(2, place,
				  count << 24 | (first & 0xffff) << 8 |
					  static_cast<std::uint32_t>(WqeOpcode::send));
		driver.write_be32(2, place + 4, kQpn << 8 | 2);
		settle();
	}
	void settle()
	{
		while (driver.host.loop().poll()) {
		}
	}
	std::optional<Cqe> poll()
	{
		auto &entry = driver.host.object<Cqe>(cq + 32 * (consumed % 8));
		if (entry.owner & Cqe::owner_bit)
			return std::nullopt;
		const Cqe got = entry;
		entry.owner = Cqe::owner_bit;
		driver.record(kCiRecord) = ++consumed;
		return got;
	}

	std::uint64_t cq = 0, send_queue = 0, receive_queue = 0;
	std::uint32_t consumed = 0;
	std::uint16_t posted = 0, received = 0;
};

// Each doorbell covers two requests, for twenty laps of the queue. The data of each lap arrives,
// and completions contain the WQE addresses.
TEST_F(MthcaTraffic, LinkedWqesWrapAroundTheQueue)
{
	const std::uint64_t from = driver.allocate(4096), to = driver.allocate(4096);
	for (unsigned round = 0; round < 20; ++round) {
		const std::uint16_t first = posted;
		for (unsigned i = 0; i < 2; ++i) {
			driver.host.object<std::uint64_t>(from + 8 * i) = round * 100 + i;
			post_receive({8, TinyDriver::kKey, to + 8 * i});
			write_send(WqeOpcode::send, {8, TinyDriver::kKey, from + 8 * i});
		}
		ring(first, 2);
		unsigned sends = 0, receives = 0;
		while (const auto cqe = poll()) {
			ASSERT_FALSE(cqe->is_error()) << round;
			EXPECT_EQ(cqe->qpn, kQpn);
			const bool is_send = cqe->is_send & Cqe::send_bit;
			const std::uint64_t base = is_send ? send_queue : receive_queue;
			EXPECT_EQ(cqe->wqe_address,
				  base + kStride * ((first + (is_send ? sends : receives)) % 8))
				<< round;
			++(is_send ? sends : receives);
		}
		EXPECT_EQ(sends, 2u);
		EXPECT_EQ(receives, 2u);
		EXPECT_EQ(driver.host.object<std::uint64_t>(to + 8), round * 100 + 1);
	}
}

// Each completion fault changes only its own field.
TEST_F(MthcaTraffic, EachInjectedCqeFaultCorruptsOnlyTheCqeFieldNamedByTheFault)
{
	const std::uint64_t data = driver.allocate(4096);
	const auto complete = [&](Fault fault) {
		driver.card.faults().arm(fault, 1);
		post_receive({8, TinyDriver::kKey, data});
		write_send(WqeOpcode::send, {8, TinyDriver::kKey, data}, WqeNext::always);
		ring(posted - 1u, 1);
		return poll();
	};
	const auto number = complete(Fault::cqe_number);
	ASSERT_TRUE(number);
	EXPECT_NE(number->qpn, kQpn);
	const auto place = complete(Fault::cqe_index);
	ASSERT_TRUE(place);
	EXPECT_EQ(place->qpn, kQpn);
	EXPECT_NE(place->wqe_address, receive_queue + kStride);
	const auto opcode = complete(Fault::cqe_opcode);
	ASSERT_TRUE(opcode);
	EXPECT_EQ(opcode->opcode, 0x1d);
	EXPECT_FALSE(complete(Fault::cqe_owner));
}

// Doorbells are ignored if they use another page than the QP's, decrease the index, or exceed the
// queue.
TEST_F(MthcaTraffic, InvalidDoorbellsAreIgnored)
{
	const std::uint64_t data = driver.allocate(4096);
	post_receive({8, TinyDriver::kKey, data});
	write_send(WqeOpcode::send, {8, TinyDriver::kKey, data});
	ring(0, 1, TinyDriver::kUar + 1);
	EXPECT_FALSE(poll());
	ring(0, 9);
	EXPECT_FALSE(poll()) << "a queue of eight";
	ring(0xffff, 1);
	EXPECT_FALSE(poll()) << "nothing new";
	EXPECT_EQ(driver.context().diagnostics.bad_doorbells, 3u);
	ring(0, 1);
	EXPECT_TRUE(poll());
}

// An armed queue raises one event for a completion, at once if the completion is already there.
TEST_F(MthcaTraffic, ArmedCqRaisesOneEvent)
{
	const std::uint64_t data = driver.allocate(4096);
	const auto arm = [this] {
		const std::uint64_t place = uar::page_size * TinyDriver::kUar + uar::cq_doorbell;
		driver.write_be32(2, place, 1u << 28 | uar::cq_arm_next << 24 | kCqn);
		driver.write_be32(2, place + 4, consumed);
	};
	const auto send = [&] {
		post_receive({8, TinyDriver::kKey, data});
		write_send(WqeOpcode::send, {8, TinyDriver::kKey, data}, WqeNext::always);
		ring(posted - 1u, 1);
	};
	const auto completion_events = [this] {
		unsigned events = 0;
		for (Eqe entry = driver.next_event(); Eqe::type.get(entry.bytes) != 0xff;
		     entry = driver.next_event())
			events += Eqe::type.get(entry.bytes) == unsigned(EventType::completion) &&
				  Eqe::number.get(entry.bytes) == kCqn;
		return events;
	};
	send();
	EXPECT_EQ(completion_events(), 0u) << "not armed";
	arm();
	EXPECT_EQ(completion_events(), 1u);
	ASSERT_TRUE(poll());
	EXPECT_FALSE(poll()) << "the send was not signalled";
	arm();
	send();
	send();
	EXPECT_EQ(completion_events(), 1u);
}

// In the error state every request is flushed, signaled or not, including requests that are posted
// later.
TEST_F(MthcaTraffic, ErrorStateFlushesEachRequest)
{
	post_receive({8, TinyDriver::kKey, 0x1000});
	post_receive({8, TinyDriver::kKey, 0x1000});
	ASSERT_EQ(driver.command(Opcode::to_err_qp, kQpn).status, Status::ok);
	settle();
	for (unsigned i = 0; i < 2; ++i) {
		const auto cqe = poll();
		ASSERT_TRUE(cqe);
		EXPECT_EQ(cqe->opcode, Cqe::receive_error);
		EXPECT_EQ(cqe->syndrome(), unsigned(hw::mellanox_icm::CqeSyndrome::flushed));
		EXPECT_EQ(cqe->wqe_address, receive_queue + kStride * i);
	}
	write_send(WqeOpcode::send, {8, TinyDriver::kKey, 0x1000}, WqeNext::always);
	ring(0, 1);
	const auto cqe = poll();
	ASSERT_TRUE(cqe);
	EXPECT_EQ(cqe->opcode, Cqe::send_error);
	EXPECT_EQ(cqe->is_send, Cqe::send_bit);
}

// A completion that does not fit puts the CQ into the error state, which raises one event, and then
// the QP. Entries that have not been polled stay.
TEST_F(MthcaTraffic, CqOverrunFailsTheCqAndTheQpAndRaisesOneEventForEach)
{
	const std::uint64_t data = driver.allocate(4096);
	const auto send = [&] {
		post_receive({8, TinyDriver::kKey, data});
		write_send(WqeOpcode::send, {8, TinyDriver::kKey, data}, WqeNext::always);
		ring(posted - 1u, 1);
	};
	for (unsigned i = 0; i < 1u << kLogCq; ++i)
		send();
	driver.record(kCiRecord) = ++consumed;
	send();
	EXPECT_EQ(Eqe::type.get(driver.next_event().bytes), 0xffu) << "one was polled";

	const auto first = driver.host.object<Cqe>(cq + 32);
	send();
	send();
	Eqe event = driver.next_event();
	EXPECT_EQ(Eqe::type.get(event.bytes), unsigned(EventType::cq_error));
	EXPECT_EQ(Eqe::number.get(event.bytes), kCqn);
	EXPECT_EQ(Eqe::syndrome.get(event.bytes), hw::mellanox_icm::cq_error_syndrome::overrun);
	event = driver.next_event();
	EXPECT_EQ(Eqe::type.get(event.bytes), unsigned(EventType::wq_catastrophic));
	EXPECT_EQ(Eqe::number.get(event.bytes), kQpn);
	EXPECT_EQ(Eqe::type.get(driver.next_event().bytes), 0xffu);
	EXPECT_EQ(driver.host.object<Cqe>(cq + 32).wqe_address, first.wqe_address);
	EXPECT_TRUE(driver.context().completion_queue(kCqn)->failed());
}

// After a resize the CQ continues in the new buffer at the next index. A size that is too small is
// refused, and the old buffer stays.
TEST_F(MthcaTraffic, FirstCqeAfterAResizeIsWrittenToTheNewBufferAtTheNextIndex)
{
	const std::uint64_t data = driver.allocate(4096);
	const auto send = [&] {
		post_receive({8, TinyDriver::kKey, data});
		write_send(WqeOpcode::send, {8, TinyDriver::kKey, data}, WqeNext::always);
		ring(posted - 1u, 1);
	};
	send();
	send();
	send();
	hw::mthca::ResizeCq resize{};
	const std::uint64_t larger = driver.allocate(32 << 4);
	for (unsigned i = 0; i < 16; ++i)
		driver.host.object<Cqe>(larger + 32 * i).owner = Cqe::owner_bit;
	hw::mthca::ResizeCq::start.set(resize.bytes, larger);
	hw::mthca::ResizeCq::lkey.set(resize.bytes, TinyDriver::kKey);
	hw::mthca::ResizeCq::log_size.set(resize.bytes, 1);
	EXPECT_EQ(driver.command(opcode::resize_cq, kCqn, 1, resize.bytes).status,
		  Status::bad_parameter)
		<< "three do not fit";
	hw::mthca::ResizeCq::log_size.set(resize.bytes, 4);
	ASSERT_EQ(driver.command(opcode::resize_cq, kCqn, 1, resize.bytes).status, Status::ok);
	send();
	EXPECT_EQ(driver.host.object<Cqe>(larger + 32 * 3).owner & Cqe::owner_bit, 0)
		<< "the fourth";
	EXPECT_NE(driver.host.object<Cqe>(larger).owner & Cqe::owner_bit, 0)
		<< "software moves the others";
}

// Each multicast member has a valid bit, and the list ends at the first entry without it.
TEST_F(Mthca, MulticastMemberListEndsAtTheFirstInvalidEntry)
{
	driver.bring_up();
	std::uint8_t entry[256]{};
	entry[hw::mthca::McgHeader::gid] = 0xff;
	hw::mellanox_icm::store_be32(entry, 0x20, 1u << 31 | 0x14);
	hw::mellanox_icm::store_be32(entry, 0x24, 1u << 31 | 0x020015);
	hw::mellanox_icm::store_be32(entry, 0x2c, 1u << 31 | 0x16);
	ib::Gid gid{};
	gid.raw[0] = 0xff;
	const auto hash = driver.context().multicast.hash(gid);
	ASSERT_LT(hash, 8u);
	ASSERT_EQ(driver.command(Opcode::write_mcg, hash, 0, entry).status, Status::ok);
	std::vector<Groups::Member> members;
	driver.context().groups.members(gid, members);
	ASSERT_EQ(members.size(), 2u);
	EXPECT_EQ(members[1].qpn, 0x020015u);
	EXPECT_FALSE(members[1].block_loopback);
}

// The card answers the subnet manager until the driver's QP0 can receive. Then the driver answers.
TEST_F(Mthca, CardAnswersSmpsUntilTheDriversQp0CanReceive)
{
	driver.bring_up();
	ib::Smp get{};
	get.header.base_version = 1;
	get.header.mgmt_class = static_cast<std::uint8_t>(ib::MgmtClass::subn_lid_routed);
	get.header.class_version = 1;
	get.header.method = static_cast<std::uint8_t>(ib::MadMethod::get);
	get.header.attr_id = std::uint16_t{0x11};
	bool handled = false;
	EXPECT_TRUE(driver.context().management.wire_smp(1, get, 1, handled));
	EXPECT_EQ(driver.command(Opcode::conf_special_qp, 16, 0).status, Status::ok);
	EXPECT_EQ(driver.command(Opcode::conf_special_qp, 19, 1).status, Status::bad_index)
		<< "GSI follows SMI";
	EXPECT_EQ(driver.command(Opcode::conf_special_qp, 18, 1).status, Status::ok);
	auto qp = std::make_unique<QueuePair>();
	qp->qpn = 16;
	qp->state = QpState::rtr;
	driver.context().queue_pairs.insert(16, std::move(qp));
	handled = true;
	EXPECT_FALSE(driver.context().management.wire_smp(1, get, 1, handled));
	EXPECT_FALSE(handled) << "it goes to QP0";
	driver.context().queue_pairs.remove(16);
}

// A program of the host that takes all MADs.
class Program final : public fabric::LocalReceiver
{
public:
	bool receive(const fabric::AddressedMad &mad) override
	{
		attributes.push_back(mad.mad.header.attr_id);
		return true;
	}
	void port_changed() override {}

	std::vector<std::uint16_t> attributes; // of the received MADs
};

// Once the driver's QP0 can receive, a TrapRepress is for the driver, which passes it to the card's
// agent. Programs of the host get only SMPs that the agent does not handle, such as SMInfo.
TEST_F(Mthca, ProgramOnTheEmulationHostReceivesSmInfoRequestsButNoTrapRepress)
{
	driver.bring_up();
	hw::mthca::InitIb init{};
	hw::mthca::InitIb::mtu.set(init.bytes, static_cast<std::uint32_t>(ib::Mtu::mtu_2048));
	hw::mthca::InitIb::vls.set(init.bytes, 1);
	for (const unsigned port : {1, 2})
		ASSERT_EQ(driver.command(opcode::init_ib, port, 0, init.bytes).status, Status::ok);
	ASSERT_EQ(driver.command(Opcode::conf_special_qp, TinyDriver::kSpecialQps, 0).status,
		  Status::ok);
	auto qp = std::make_unique<QueuePair>();
	qp->qpn = TinyDriver::kSpecialQps;
	qp->state = QpState::rtr;
	driver.context().queue_pairs.insert(TinyDriver::kSpecialQps, std::move(qp));
	const auto program = std::make_shared<Program>();
	const auto ports = driver.card.local_access();
	ports.at(0)->set_receiver(program);

	const auto send_to_port_1 = [&](ib::MadMethod method, std::uint16_t attribute) {
		ib::Mad smp{};
		smp.header.base_version = ib::mad_base_version;
		smp.header.mgmt_class = static_cast<std::uint8_t>(ib::MgmtClass::subn_lid_routed);
		smp.header.class_version = 1;
		smp.header.method = static_cast<std::uint8_t>(method);
		smp.header.attr_id = attribute;
		ports.at(1)->send_mad({}, 0, smp);
		while (driver.host.loop().poll()) {
		}
	};
	send_to_port_1(ib::MadMethod::trap_repress, ib::attr_sm_notice);
	EXPECT_TRUE(program->attributes.empty());
	send_to_port_1(ib::MadMethod::get, ib::attr_sm_info);
	EXPECT_EQ(program->attributes, std::vector<std::uint16_t>{ib::attr_sm_info});
	ports.at(0)->set_receiver(nullptr);
	driver.context().queue_pairs.remove(TinyDriver::kSpecialQps);
}

// A reset clears all state: the firmware's pages, ICM, and the error.
TEST_F(Mthca, ResetClearsAllState)
{
	driver.bring_up();
	using InitIb = hw::mthca::InitIb;
	const ib::Guid own = driver.context().port(1)->guid();
	InitIb init{};
	InitIb::guid0_valid.set(init.bytes, 1);
	InitIb::guid0.set(init.bytes, 0x1234);
	InitIb::mtu.set(init.bytes, static_cast<std::uint32_t>(ib::Mtu::mtu_2048));
	InitIb::vls.set(init.bytes, 1);
	ASSERT_EQ(driver.command(Opcode::init_port, 1, 0, init.bytes).status, Status::ok);
	ASSERT_NE(driver.context().port(1)->guid(), own);
	driver.card.break_down(0x03000bad);
	constexpr std::uint64_t broken = limits::kErrorBuffer + 4 * limits::kBreakdownDword;
	EXPECT_EQ(__builtin_bswap32(driver.host.read<std::uint32_t>(0, broken)), 0x03000badu);
	EXPECT_EQ(driver.host.read<std::uint32_t>(0, limits::kErrorBuffer), 0u)
		<< "drivers look at each word";
	driver.write_be32(0, hw::mthca::bar0::reset, 1);
	EXPECT_EQ(driver.host.read<std::uint32_t>(0, broken), 0u);
	EXPECT_EQ(driver.command(opcode::query_dev_lim, 0, 0, {}, 0x100).status,
		  Status::bad_system_state);
	EXPECT_EQ(driver.context().completion_queue(0x010020), nullptr);
	EXPECT_EQ(driver.context().port(1)->guid(), own)
		<< "and not what the last driver called it";
}

} // namespace weft::mthca::testing
