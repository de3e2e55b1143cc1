// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the command interface: queue and mailboxes, the order of initialisation, capabilities, and
// the health registers.
#include <functional>

#include "cards/mlx5/limits.hpp"
#include "cards/mlx5/tests/tiny_driver.hpp"

namespace weft::mlx5::testing
{

using hw::mlx5::CommandBlock;
using hw::mlx5::CommandEntry;
using hw::mlx5::Delivery;
using hw::mlx5::Eqe;
using hw::mlx5::EventType;
using hw::mlx5::HcaCap;
namespace segment = hw::mlx5::segment;

class Mlx5Commands : public ::testing::Test
{
public:
	TinyDriver driver;

	Answer query_cap(std::uint32_t kind, bool current)
	{
		return driver.command(Opcode::query_hca_cap, Bytes(16),
				      HcaCap::offset + HcaCap::size, kind << 1 | current);
	}
	Status set_cap(std::uint32_t kind, const Bytes &page)
	{
		return driver
			.command(Opcode::set_hca_cap,
				 TinyDriver::input_with(HcaCap::offset + HcaCap::size,
							HcaCap::offset, page),
				 16, kind << 1)
			.status;
	}
};

TEST_F(Mlx5Commands, InitializationSegmentDescribesTheCommandInterface)
{
	EXPECT_EQ(driver.read(segment::interface_revision) >> 16, 5u);
	EXPECT_EQ(driver.read(segment::initializing), 0u);
	EXPECT_EQ(segment::log_queue_size.of(driver.read(segment::command_queue_low)), 5u);
	EXPECT_EQ(segment::log_queue_stride.of(driver.read(segment::command_queue_low)), 6u);
	EXPECT_EQ(segment::nic_interface.of(driver.read(segment::command_queue_low)),
		  hw::mlx5::nic_interface::disabled);
	driver.set_command_queue();
	EXPECT_EQ(driver.read(segment::command_queue_low) & 0xfff, 0x056u)
		<< "an address does not change what the card says of the queue";
}

TEST_F(Mlx5Commands, NoCommandIsExecutedBeforeTheQueueAddressIsSet)
{
	driver.prepare(Bytes(16), 16);
	driver.ring(1);
	EXPECT_EQ(driver.answer(16).delivery, 0xff);
}

// Longer outputs are in a chain of blocks, and each byte arrives in its place.
TEST_F(Mlx5Commands, LongOutputsAreWrittenToTheMailboxChain)
{
	driver.enable();
	const Answer answer = query_cap(HcaCap::kind_general, true);
	ASSERT_EQ(answer.status, Status::ok);
	const std::uint8_t *const page = answer.out.data() + HcaCap::offset;
	EXPECT_EQ(hw::mlx5::load_be32(page, 0x48) & 0xff, 12u) << "the smallest page";
	EXPECT_EQ(hw::mlx5::load_be32(page, 0x8c) & 0xffff, limits::kEqs);
	EXPECT_EQ(hw::mlx5::load_be32(page, 0x44) & 0xf, 0xfu) << "RC, UC, UD, XRC";
}

// An entry or a block with an error keeps the command from being executed.
TEST_F(Mlx5Commands, InvalidCommandEntriesAreRefused)
{
	driver.set_command_queue();
	const struct {
		const char *what;
		Delivery delivery;
		std::function<void(std::uint8_t *entry)> spoil;
	} cases[] = {
		{"type", Delivery::bad_type, [](auto *e) { CommandEntry::type.set(e, 6); }},
		{"input length", Delivery::bad_input_length,
		 [](auto *e) { CommandEntry::input_length.set(e, 7); }},
		{"input above the limit", Delivery::bad_input_length,
		 [](auto *e) {
			 CommandEntry::input_length.set(
				 e, static_cast<std::uint32_t>(limits::kMostInput + 1));
		 }},
		{"output length", Delivery::bad_output_length,
		 [](auto *e) { CommandEntry::output_length.set(e, 7); }},
		{"output above the limit", Delivery::bad_output_length,
		 [](auto *e) {
			 CommandEntry::output_length.set(
				 e, static_cast<std::uint32_t>(limits::kMostOutput + 1));
		 }},
		{"input pointer", Delivery::bad_input_pointer,
		 [](auto *e) { CommandEntry::input_block.set(e, TinyDriver::kInput + 64); }},
		{"input pointer out of memory", Delivery::bad_input_pointer,
		 [](auto *e) { CommandEntry::input_block.set(e, 1ull << 40); }},
		{"output pointer", Delivery::bad_output_pointer,
		 [](auto *e) { CommandEntry::output_block.set(e, 0); }},
		{"token", Delivery::bad_token, [](auto *e) { CommandEntry::token.set(e, 1); }},
		{"block number", Delivery::bad_block_number,
		 [this](auto *) {
			 CommandBlock::number.set(
				 driver.bytes(TinyDriver::kInput, CommandBlock::size), 1);
		 }},
		{"a chain that is too short", Delivery::bad_input_pointer,
		 [](auto *e) { CommandEntry::input_length.set(e, 16 + 512 + 1); }},
	};
	for (const auto &test : cases) {
		Bytes in(64);
		hw::mlx5::InputHead::opcode.set(in.data(),
						static_cast<std::uint32_t>(Opcode::enable_hca));
		driver.prepare(in, 64);
		test.spoil(driver.bytes(TinyDriver::kCommandQueue, 64));
		driver.ring(1);
		EXPECT_EQ(driver.answer(64).delivery, static_cast<std::uint8_t>(test.delivery))
			<< test.what;
	}
	EXPECT_EQ(driver.command(Opcode::query_issi, 0, 0x70).status, Status::bad_system_state)
		<< "no entry has enabled the card";
}

TEST_F(Mlx5Commands, InitialisationCommandsOutOfOrderAreRefused)
{
	driver.set_command_queue();
	EXPECT_EQ(driver.command(Opcode::init_hca).status, Status::bad_system_state);
	EXPECT_EQ(driver.command(Opcode::enable_hca).status, Status::ok);
	EXPECT_EQ(driver.command(Opcode::alloc_pd).status, Status::bad_system_state);
	EXPECT_EQ(driver.command(Opcode::init_hca).status, Status::ok);
	EXPECT_EQ(driver.command(Opcode::init_hca).status, Status::bad_system_state);
	EXPECT_EQ(driver.command(Opcode::alloc_pd).status, Status::ok);
	EXPECT_EQ(driver.command(Opcode::teardown_hca).status, Status::ok);
	EXPECT_EQ(driver.command(Opcode::alloc_pd).status, Status::bad_system_state);
	EXPECT_EQ(driver.command(Opcode::init_hca).status, Status::ok) << "without a reset";
	EXPECT_EQ(driver.command(Opcode::disable_hca).status, Status::ok);
	EXPECT_EQ(driver.command(Opcode::init_hca).status, Status::bad_system_state);
}

// The counter shows a developer which requests of a new driver the card does not support.
TEST_F(Mlx5Commands, RefusedCommandsAndRefusedCapabilityQueriesAreCountedAsUnsupported)
{
	driver.enable();
	EXPECT_EQ(driver.command(static_cast<Opcode>(0x92f)).status, Status::bad_opcode);
	EXPECT_EQ(query_cap(7, true).status, Status::bad_parameter);
	EXPECT_EQ(driver.card.unsupported().count(), 2u);
	EXPECT_EQ(name_of(RequestKind::command, 0x92f), "SET_FLOW_TABLE_ROOT");
	EXPECT_EQ(name_of(RequestKind::command, 0xfff), "unknown");
	EXPECT_EQ(name_of(RequestKind::command, 0x100), "QUERY_HCA_CAP");
	EXPECT_EQ(name_of(RequestKind::capabilities, 7), "flow tables");
	EXPECT_EQ(driver.command(Opcode::query_issi, 0, 0x70).status, Status::ok);
	EXPECT_EQ(driver.card.unsupported().count(), 2u);
}

TEST_F(Mlx5Commands, CommandsWithShortInputsOrOutputsAreRefused)
{
	driver.bring_up();
	EXPECT_EQ(driver.command(Opcode::create_cq, Bytes(64)).status, Status::bad_input_length);
	EXPECT_EQ(driver.command(Opcode::query_issi, 0, 16).status, Status::bad_output_length);
}

// iPXE's driver uses the first 256 bytes of a page.
TEST_F(Mlx5Commands, QueryHcaCapAndSetHcaCapAcceptACapabilityPageTruncatedTo256Bytes)
{
	constexpr std::size_t least_query = HcaCap::offset + HcaCap::least;
	driver.enable();
	const auto query = [this](std::size_t size) {
		return driver.command(Opcode::query_hca_cap, Bytes(16), size,
				      HcaCap::kind_general << 1 | 1);
	};
	const Answer whole = query_cap(HcaCap::kind_general, true);
	const Answer part = query(least_query);
	ASSERT_EQ(part.status, Status::ok);
	EXPECT_TRUE(std::equal(part.out.begin(), part.out.end(), whole.out.begin()));
	EXPECT_EQ(query(least_query - 4).status, Status::bad_output_length);

	Bytes page(part.out.begin() + HcaCap::offset, part.out.end());
	page[0x13] = 10; // log_max_qp
	const auto set = [this](const Bytes &in) {
		return driver
			.command(Opcode::set_hca_cap,
				 TinyDriver::input_with(HcaCap::offset + in.size(), HcaCap::offset,
							in),
				 16, HcaCap::kind_general << 1)
			.status;
	};
	EXPECT_EQ(set(page), Status::ok);
	EXPECT_EQ(query(least_query).out[HcaCap::offset + 0x13], 10);
	page.resize(page.size() - 4);
	EXPECT_EQ(set(page), Status::bad_input_length);
}

// iPXE's driver has space for a part of the port's context.
TEST_F(Mlx5Commands, QueryHcaVportContextReturnsATruncatedContextIfTheOutputIsShort)
{
	using hw::mlx5::VportContext;
	driver.bring_up();
	const auto query = [this](std::size_t size) {
		return driver.command(Opcode::query_hca_vport_context, 0, size);
	};
	const Answer whole = query(VportContext::size), part = query(VportContext::least);
	ASSERT_EQ(whole.status, Status::ok);
	ASSERT_EQ(part.status, Status::ok);
	EXPECT_TRUE(std::equal(part.out.begin(), part.out.end(), whole.out.begin()));
	EXPECT_EQ(query(VportContext::least - 4).status, Status::bad_output_length);
}

// iPXE's driver sends 16 as the length of these commands, and the context in the mailbox.
TEST_F(Mlx5Commands, QpTransitionsAcceptAnInputLengthOf16BytesIfTheContextIsInTheMailbox)
{
	using hw::mlx5::QpContext;
	driver.bring_up();
	const auto qp = driver.make_qp(hw::mlx5::QpService::ud, driver.make_cq(4));
	const auto transition = [&](Opcode opcode, bool mailbox) {
		Bytes in(hw::mlx5::qp_command::size);
		hw::mlx5::InputHead::opcode.set(in.data(), static_cast<std::uint32_t>(opcode));
		hw::mlx5::object_number.set(in.data(), qp.number);
		std::uint8_t *const context = in.data() + hw::mlx5::qp_command::context;
		hw::mlx5::PathLayout::port.set(context + QpContext::primary_path, 1);
		QpContext::qkey.set(context, 0x1234);
		driver.prepare(in, 16);
		std::uint8_t *const entry = driver.bytes(TinyDriver::kCommandQueue, 64);
		CommandEntry::input_length.set(entry, 16);
		if (!mailbox)
			CommandEntry::input_block.set(entry, 0);
		driver.ring(1);
		return driver.answer(16).status;
	};
	EXPECT_EQ(transition(Opcode::rst2init_qp, false), Status::bad_input_length);
	for (const Opcode step : {Opcode::rst2init_qp, Opcode::init2rtr_qp, Opcode::rtr2rts_qp})
		EXPECT_EQ(transition(step, true), Status::ok);
	const auto out = driver.command(Opcode::query_qp, qp.number,
					hw::mlx5::qp_command::context + QpContext::size)
				 .out;
	const std::uint8_t *const context = out.data() + hw::mlx5::qp_command::context;
	EXPECT_EQ(QpContext::state.get(context), 3u) << "RTS";
	EXPECT_EQ(QpContext::qkey.get(context), 0x1234u);
}

// Linux sends an atomic page that is zero except for one field. A card that applied the whole page
// would disable atomic operations.
TEST_F(Mlx5Commands, SetHcaCapChangesOnlyFieldsThatADriverMayChange)
{
	driver.enable();
	Bytes page(HcaCap::size);
	page[8] = 0x40; // results in the host's byte order
	EXPECT_EQ(set_cap(HcaCap::kind_atomic, page), Status::ok);
	const Answer atomic = query_cap(HcaCap::kind_atomic, true);
	EXPECT_EQ(atomic.out[HcaCap::offset + 8] >> 6, 1);
	EXPECT_EQ(hw::mlx5::load_be32(atomic.out.data(), HcaCap::offset + 0x10), 0xfu);

	Answer general = query_cap(HcaCap::kind_general, true);
	page.assign(general.out.begin() + HcaCap::offset, general.out.end());
	page[0x13] = 18; // log_max_qp: more than there are
	EXPECT_EQ(set_cap(HcaCap::kind_general, page), Status::bad_parameter);
	page[0x13] = 10;
	EXPECT_EQ(set_cap(HcaCap::kind_general, page), Status::ok);
	EXPECT_EQ(query_cap(HcaCap::kind_general, true).out[HcaCap::offset + 0x13], 10);
	EXPECT_EQ(query_cap(HcaCap::kind_general, false).out[HcaCap::offset + 0x13],
		  limits::kLogQps);
}

TEST_F(Mlx5Commands, OneDoorbellWriteExecutesEachValidCommandEntryWhoseBitIsSet)
{
	driver.enable();
	Bytes in(16);
	hw::mlx5::InputHead::opcode.set(in.data(), static_cast<std::uint32_t>(Opcode::nop));
	for (const unsigned slot : {0u, 7u, 31u})
		driver.prepare(in, 16, slot);
	driver.ring(1u << 0 | 1u << 7 | 1u << 31 | 1u << 3 /* not prepared */);
	driver.host.loop().poll();
	for (const unsigned slot : {0u, 7u, 31u})
		EXPECT_EQ(driver.answer(16, slot).delivery, 0) << slot;
}

// Drivers poll for the commands that create and destroy this event queue, so only commands in
// between are reported.
TEST_F(Mlx5Commands, CommandCompletionsAreReportedByEvents)
{
	driver.bring_up();
	std::uint64_t entries = 0;
	const std::uint32_t eqn = driver.make_eq(
		4, 1ull << static_cast<unsigned>(EventType::command_done), 3, entries);
	ASSERT_NE(eqn, 0u);
	const auto event = [&](unsigned index) {
		return driver.host.object<Eqe>(entries + 64 * index);
	};
	EXPECT_EQ(Eqe::owner.get(event(0).bytes), 1u) << "CREATE_EQ itself";
	Bytes in(16);
	hw::mlx5::InputHead::opcode.set(in.data(), static_cast<std::uint32_t>(Opcode::nop));
	driver.prepare(in, 16, 9);
	driver.ring(1u << 9);
	ASSERT_EQ(Eqe::owner.get(event(0).bytes), 0u);
	EXPECT_EQ(Eqe::type.get(event(0).bytes), static_cast<unsigned>(EventType::command_done));
	EXPECT_EQ(Eqe::commands.get(event(0).bytes), 1u << 9);
	EXPECT_EQ(driver.host.take_interrupts(3), 0u) << "it is not armed";
	driver.write(std::uint64_t{driver.uar} * 4096 + hw::mlx5::uar::eq_doorbell_arm, eqn << 24);
	EXPECT_EQ(driver.host.take_interrupts(3), 1u) << "armed with an entry in it";
	EXPECT_EQ(driver.command(Opcode::destroy_eq, eqn).status, Status::ok);
	EXPECT_EQ(Eqe::owner.get(event(1).bytes), 1u) << "DESTROY_EQ itself";
}

TEST_F(Mlx5Commands, HealthRegistersReportThatTheCardHasFailed)
{
	driver.bring_up();
	EXPECT_NE(driver.read(segment::health_counter) & 0xffffff, 0u);
	EXPECT_EQ(driver.read(segment::health_counter) >> 24, 0u);
	EXPECT_NE(driver.read(segment::health_firmware), 0xffffffffu);
	driver.card.break_down();
	EXPECT_EQ(driver.read(segment::health_counter) >> 24, hw::mlx5::health::unrecoverable);
	EXPECT_EQ(driver.read(segment::health_flags), segment::health_fatal);
	EXPECT_EQ(segment::health_syndrome_code.of(driver.read(segment::health_syndrome)),
		  hw::mlx5::health::unrecoverable);
	driver.prepare(Bytes(16), 16);
	driver.ring(1);
	EXPECT_EQ(driver.answer(16).delivery, 0xff) << "it executes nothing any more";

	EXPECT_EQ(segment::nic_interface.of(driver.read(segment::command_queue_low)),
		  hw::mlx5::nic_interface::disabled);

	// With a new command queue the card starts again.
	driver.bring_up();
	EXPECT_EQ(driver.read(segment::health_counter) >> 24, 0u);
	EXPECT_EQ(segment::nic_interface.of(driver.read(segment::command_queue_low)),
		  hw::mlx5::nic_interface::full);
	driver.write(segment::command_queue_low, 1u << 8);
	EXPECT_EQ(segment::nic_interface.of(driver.read(segment::command_queue_low)),
		  hw::mlx5::nic_interface::disabled);
}

TEST_F(Mlx5Commands, HealthCounterOfAFrozenCardDoesNotIncrementUntilReset)
{
	driver.card.freeze();
	const std::uint32_t frozen = driver.read(segment::health_counter);
	driver.host.loop().run_until([] { return false; }, std::chrono::milliseconds(30));
	EXPECT_EQ(driver.read(segment::health_counter), frozen);
	driver.card.reset(PciReset::function_level);
	EXPECT_TRUE(driver.host.loop().run_until(
		[&] { return driver.read(segment::health_counter) != frozen; }));
}

TEST_F(Mlx5Commands, PdsXrcDomainsAndUarsCannotBeFreedTwice)
{
	driver.bring_up();
	for (const auto &[alloc, dealloc] : {std::pair{Opcode::alloc_pd, Opcode::dealloc_pd},
					     std::pair{Opcode::alloc_xrcd, Opcode::dealloc_xrcd},
					     std::pair{Opcode::alloc_uar, Opcode::dealloc_uar}}) {
		const std::uint32_t number = driver.command(alloc).number();
		EXPECT_EQ(driver.command(dealloc, number).status, Status::ok);
		EXPECT_EQ(driver.command(dealloc, number).status, Status::bad_resource);
		EXPECT_NE(driver.command(alloc).number(), number) << "not again at once";
	}
	EXPECT_EQ(driver.command(Opcode::dealloc_pd, 0xffffff).status, Status::bad_resource);
}

} // namespace weft::mlx5::testing
