// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests queue pairs, completion queues and shared receive queues: their commands and data transfer.
#include "cards/mlx5/limits.hpp"
#include "cards/mlx5/tests/tiny_driver.hpp"
#include "hw/mellanox_icm/cqe.hpp"

namespace weft::mlx5::testing
{

using hw::mellanox_icm::CqeSyndrome;
using hw::mellanox_icm::WqeOpcode;
using hw::mlx5::Cqe;
using hw::mlx5::CqeOpcode;
using hw::mlx5::Eqe;
using hw::mlx5::EventType;
using hw::mlx5::QpContext;

namespace
{

constexpr auto kSend = static_cast<std::uint32_t>(WqeOpcode::send);
constexpr auto kWrite = static_cast<std::uint32_t>(WqeOpcode::rdma_write);

std::uint32_t code(CqeOpcode opcode)
{
	return static_cast<std::uint32_t>(opcode);
}

} // namespace

class Mlx5Queues : public ::testing::Test
{
public:
	void SetUp() override
	{
		driver.bring_up();
		driver.set_port_active();
	}
	Eqe async_event(unsigned index)
	{
		return driver.host.object<Eqe>(driver.async_entries + 64 * index);
	}

	TinyDriver driver;
};

TEST_F(Mlx5Queues, InvalidStateTransitionsAreRefused)
{
	const auto cq = driver.make_cq(4);
	const auto qp = driver.make_qp(QpService::rc, cq);
	const auto state = [&] {
		const Answer answer = driver.command(Opcode::query_qp, qp.number, 0x200);
		return QpContext::state.get(answer.out.data() + hw::mlx5::qp_command::context);
	};
	EXPECT_EQ(state(), 0u);
	EXPECT_EQ(driver.transition(Opcode::init2rtr_qp, qp, qp.number), Status::bad_qp_state);
	EXPECT_EQ(driver.transition(Opcode::rst2init_qp, qp, qp.number), Status::ok);
	EXPECT_EQ(driver.transition(Opcode::rst2init_qp, qp, qp.number), Status::bad_qp_state);
	EXPECT_EQ(driver.transition(Opcode::init2init_qp, qp, qp.number), Status::ok);
	EXPECT_EQ(driver.transition(Opcode::init2rtr_qp, qp, qp.number), Status::ok);
	EXPECT_EQ(driver.transition(Opcode::rtr2rts_qp, qp, qp.number), Status::ok);
	EXPECT_EQ(state(), 3u);
	EXPECT_EQ(driver.command(Opcode::to_err_qp, qp.number).status, Status::ok);
	EXPECT_EQ(state(), 6u);
	EXPECT_EQ(driver.command(Opcode::to_rst_qp, qp.number).status, Status::ok);
	EXPECT_EQ(state(), 0u);
	EXPECT_EQ(driver.command(Opcode::to_err_qp, qp.number).status, Status::ok);
	EXPECT_EQ(state(), 6u);
	EXPECT_EQ(driver.command(Opcode::destroy_qp, qp.number).status, Status::ok);
	EXPECT_EQ(driver.command(Opcode::destroy_qp, qp.number).status, Status::bad_resource);
}

TEST_F(Mlx5Queues, UnsupportedQueuePairTypesAreRefused)
{
	const auto cq = driver.make_cq(4);
	TinyDriver::Qp qp;
	constexpr auto raw_ethernet = static_cast<QpService>(9);
	EXPECT_EQ(driver.try_qp(raw_ethernet, cq, qp).status, Status::bad_parameter);
	EXPECT_EQ(driver.card.unsupported().count(), 1u);
	EXPECT_EQ(name_of(RequestKind::queue_pair_type, 9), "raw Ethernet");
	EXPECT_EQ(driver.try_qp(QpService::rc, TinyDriver::Cq{.number = 9999}, qp).status,
		  Status::bad_resource);
}

// Only one QP can have a special number on a port. A reset releases the number.
TEST_F(Mlx5Queues, SecondQp1OfAPortIsRefusedUntilTheFirstIsReset)
{
	const auto cq = driver.make_cq(4);
	const auto first = driver.make_qp(QpService::qp1, cq);
	const auto second = driver.make_qp(QpService::qp1, cq);
	EXPECT_EQ(driver.transition(Opcode::rst2init_qp, first, 0), Status::ok);
	EXPECT_EQ(driver.transition(Opcode::rst2init_qp, second, 0), Status::resource_busy);
	EXPECT_EQ(driver.command(Opcode::to_rst_qp, first.number).status, Status::ok);
	EXPECT_EQ(driver.transition(Opcode::rst2init_qp, second, 0), Status::ok);
}

// Requests have one or more blocks, and may wrap around. The completion contains the index of the
// first block.
TEST_F(Mlx5Queues, MultiBlockWqesWrapAroundTheQueue)
{
	const auto cq = driver.make_cq(6);
	const auto [one, two] = driver.make_pair(cq);
	const std::uint64_t data = driver.allocate(8192), place = driver.allocate(8192);
	std::uint32_t index = 0, completions = 0;
	for (unsigned round = 0; round < 12; ++round) {
		// 9 segments of 16 bytes: two control ones, and seven pieces: three blocks.
		Bytes wqe = TinyDriver::control(kWrite);
		TinyDriver::add_remote(wqe, place, driver.key);
		for (unsigned piece = 0; piece < 7; ++piece) {
			std::fill_n(driver.bytes(data + 64 * piece, 64), 64,
				    static_cast<std::uint8_t>(16 * round + piece));
			TinyDriver::add_data(wqe, data + 64 * piece, 64, driver.key);
		}
		const std::uint32_t first = index;
		index = driver.send(one, index, wqe);
		ASSERT_EQ(index, first + 3);
		ASSERT_TRUE(driver.run_until_entry(cq, completions)) << round;
		const Cqe cqe = driver.entry(cq, completions++);
		EXPECT_EQ(Cqe::opcode.get(cqe.bytes), code(CqeOpcode::requester)) << round;
		EXPECT_EQ(Cqe::wqe_counter.get(cqe.bytes), first);
		EXPECT_EQ(Cqe::wqe_opcode.get(cqe.bytes), kWrite);
		EXPECT_EQ(Cqe::qpn.get(cqe.bytes), one.number);
		for (unsigned piece = 0; piece < 7; ++piece)
			EXPECT_EQ(*driver.bytes(place + 64 * piece + 63, 1), 16 * round + piece);
		driver.store(cq.record, completions);
	}
}

TEST_F(Mlx5Queues, UnknownOpcodesFailWithALocalQpError)
{
	const auto cq = driver.make_cq(4);
	const auto [one, two] = driver.make_pair(cq);
	driver.send(one, 0, TinyDriver::control(0x77, false));
	ASSERT_TRUE(driver.run_until_entry(cq, 0));
	const Cqe cqe = driver.entry(cq, 0);
	EXPECT_EQ(Cqe::opcode.get(cqe.bytes), code(CqeOpcode::requester_error));
	EXPECT_EQ(Cqe::syndrome.get(cqe.bytes), 2u) << "local QP operation";
}

// A request that is larger than what the doorbell record has posted is not read.
TEST_F(Mlx5Queues, SendWqeThatExtendsPastTheDoorbellRecordCounterCompletesWithAnError)
{
	using hw::mlx5::WqeControl;
	const auto cq = driver.make_cq(4);
	const auto [one, two] = driver.make_pair(cq);
	Bytes wqe = TinyDriver::control(kWrite);
	WqeControl::units.set(wqe.data(), 9); // three blocks
	std::ranges::copy(wqe, driver.bytes(one.send, wqe.size()));
	driver.store(one.record + 4, 1);
	driver.ring_send(one);
	ASSERT_TRUE(driver.run_until_entry(cq, 0));
	const Cqe cqe = driver.entry(cq, 0);
	EXPECT_EQ(Cqe::opcode.get(cqe.bytes), code(CqeOpcode::requester_error));
	EXPECT_EQ(Cqe::wqe_counter.get(cqe.bytes), 0u);
}

TEST_F(Mlx5Queues, ReceiveCqeHasTheLengthAndWqeIndex)
{
	const auto cq = driver.make_cq(4);
	const auto [one, two] = driver.make_pair(cq);
	const std::uint64_t data = driver.allocate(4096), place = driver.allocate(4096);
	*driver.bytes(data, 1) = 0xab;
	driver.receive(two, 0, place, 4096);
	Bytes wqe = TinyDriver::control(kSend, false);
	TinyDriver::add_data(wqe, data, 100, driver.key);
	driver.send(one, 0, wqe);
	ASSERT_TRUE(driver.run_until_entry(cq, 0));
	const Cqe cqe = driver.entry(cq, 0);
	EXPECT_EQ(Cqe::opcode.get(cqe.bytes), code(CqeOpcode::responder_send));
	EXPECT_EQ(Cqe::byte_count.get(cqe.bytes), 100u);
	EXPECT_EQ(Cqe::qpn.get(cqe.bytes), two.number);
	EXPECT_EQ(*driver.bytes(place, 1), 0xab);
}

// QP1 has another number on the card, but packets name it by 1 at both ends. Other QPs may send on
// its behalf.
TEST_F(Mlx5Queues, PacketsBetweenQp1sHaveSourceAndDestinationQpNumberOne)
{
	using hw::mlx5::WqeDatagram;
	const auto cq = driver.make_cq(4);
	const auto qp1 = driver.make_qp(QpService::qp1, cq);
	TinyDriver::Qp other;
	ASSERT_EQ(driver.try_qp(QpService::ud, cq, other, true, 0, 2).status,
		  Status::bad_parameter);
	ASSERT_EQ(driver.try_qp(QpService::ud, cq, other, true, 0, 1).status, Status::ok);
	driver.to_rts(qp1, 0);
	driver.to_rts(other, 0);
	const std::uint64_t data = driver.allocate(4096), place = driver.allocate(4096);
	Bytes wqe = TinyDriver::control(kSend, false);
	WqeDatagram address{};
	WqeDatagram::qkey.set(address.bytes, TinyDriver::kQkey);
	WqeDatagram::extended.set(address.bytes, 1);
	WqeDatagram::qpn.set(address.bytes, 1);
	WqeDatagram::dlid.set(address.bytes, TinyDriver::kLid);
	wqe.insert(wqe.end(), address.bytes, address.bytes + sizeof(address.bytes));
	TinyDriver::add_data(wqe, data, 256, driver.key);
	unsigned index = 0;
	for (const TinyDriver::Qp &sender : {qp1, other}) {
		driver.receive(qp1, index, place, 4096);
		driver.send(sender, 0, wqe);
		ASSERT_TRUE(driver.run_until_entry(cq, index));
		const Cqe cqe = driver.entry(cq, index++);
		EXPECT_EQ(Cqe::opcode.get(cqe.bytes), code(CqeOpcode::responder_send));
		EXPECT_EQ(Cqe::qpn.get(cqe.bytes), qp1.number);
		EXPECT_EQ(Cqe::source_qpn.get(cqe.bytes), 1u);
		EXPECT_EQ(Cqe::source_lid.get(cqe.bytes), TinyDriver::kLid);
		EXPECT_EQ(Cqe::byte_count.get(cqe.bytes), 40u + 256u) << "with the GRH's room";
		EXPECT_EQ(Cqe::pkey.get(cqe.bytes), 0xffffu) << "the key itself, not its index";
	}
}

// Returns a large send to a queue pair of the same card, with a header of four bytes, as ib_ipoib
// posts it.
Bytes lso_request(const TinyDriver &driver, const TinyDriver::Qp &qp, std::uint64_t data,
		  std::uint32_t length)
{
	using hw::mlx5::WqeDatagram;
	using hw::mlx5::WqeOffload;
	Bytes wqe = TinyDriver::control(static_cast<std::uint32_t>(WqeOpcode::lso));
	WqeDatagram address{};
	WqeDatagram::qkey.set(address.bytes, TinyDriver::kQkey);
	WqeDatagram::extended.set(address.bytes, 1);
	WqeDatagram::qpn.set(address.bytes, qp.number);
	WqeDatagram::dlid.set(address.bytes, TinyDriver::kLid);
	wqe.insert(wqe.end(), address.bytes, address.bytes + sizeof(address.bytes));
	WqeOffload offload{};
	WqeOffload::mss.set(offload.bytes, 100);
	WqeOffload::header_size.set(offload.bytes, 4);
	wqe.insert(wqe.end(), offload.bytes, offload.bytes + WqeOffload::header);
	wqe.insert(wqe.end(), {0xde, 0xad, 0xbe, 0xef});
	wqe.resize((wqe.size() + 15) & ~std::size_t{15});
	TinyDriver::add_data(wqe, data, length, driver.key);
	return wqe;
}

// A large send becomes packets with the same header.
TEST_F(Mlx5Queues, LsoSendsAreSegmented)
{
	const auto cq = driver.make_cq(4);
	TinyDriver::Qp qp;
	ASSERT_EQ(driver.try_qp(QpService::ud, cq, qp, true, QpContext::ipoib_offload).status,
		  Status::ok);
	driver.to_rts(qp, 0);
	const std::uint64_t data = driver.allocate(4096), place = driver.allocate(8192);
	for (unsigned i = 0; i < 3; ++i)
		driver.receive(qp, i, place + 1024 * i, 1024);
	driver.send(qp, 0, lso_request(driver, qp, data, 250));
	ASSERT_TRUE(driver.run_until_entry(cq, 3));
	const std::uint32_t sizes[] = {104, 104, 54};
	unsigned received = 0;
	for (unsigned i = 0; i < 4; ++i) {
		const Cqe cqe = driver.entry(cq, i);
		if (Cqe::opcode.get(cqe.bytes) == code(CqeOpcode::requester))
			continue;
		EXPECT_EQ(Cqe::byte_count.get(cqe.bytes), 40 + sizes[received]);
		EXPECT_EQ(driver.load(place + 1024 * received + 40), 0xdeadbeef);
		++received;
	}
	EXPECT_EQ(received, 3u);
}

// The length is checked before the data is read.
TEST_F(Mlx5Queues, LsoSendOfMoreThan256KibFailsWithALengthError)
{
	const auto cq = driver.make_cq(4);
	constexpr std::uint32_t most = 256 << 10;
	std::uint32_t index = 0;
	for (const auto &[length, syndrome] : {std::pair{most, CqeSyndrome::local_protection},
					       std::pair{most + 1, CqeSyndrome::local_length}}) {
		TinyDriver::Qp qp;
		ASSERT_EQ(
			driver.try_qp(QpService::ud, cq, qp, true, QpContext::ipoib_offload).status,
			Status::ok);
		driver.to_rts(qp, 0);
		const std::uint64_t outside = ~std::uint64_t{0} - (1 << 20);
		driver.send(qp, 0, lso_request(driver, qp, outside, length));
		ASSERT_TRUE(driver.run_until_entry(cq, index));
		const Cqe cqe = driver.entry(cq, index++);
		EXPECT_EQ(Cqe::opcode.get(cqe.bytes), code(CqeOpcode::requester_error));
		EXPECT_EQ(Cqe::syndrome.get(cqe.bytes), static_cast<std::uint32_t>(syndrome));
	}
}

TEST_F(Mlx5Queues, SendDoorbellOnAUarPageOtherThanThatOfTheQpIsDropped)
{
	const auto cq = driver.make_cq(4);
	const auto [one, two] = driver.make_pair(cq);
	const std::uint32_t right = driver.uar;
	driver.uar = driver.command(Opcode::alloc_uar).number();
	driver.send(one, 0, TinyDriver::control(0));
	EXPECT_EQ(Cqe::opcode.get(driver.entry(cq, 0).bytes), 0xfu);
	EXPECT_EQ(driver.card.context()->diagnostics.bad_doorbells, 1u);
	driver.uar = right;
	driver.ring_send(one);
	EXPECT_TRUE(driver.run_until_entry(cq, 0));
}

TEST_F(Mlx5Queues, CqOverrunRaisesACqErrorEventAndSetsTheStatusOfTheCq)
{
	const auto cq = driver.make_cq(1);
	const auto [one, two] = driver.make_pair(cq);
	std::uint32_t index = 0;
	for (unsigned i = 0; i < 3; ++i)
		index = driver.send(one, index, TinyDriver::control(0));
	const Eqe event = async_event(0);
	EXPECT_EQ(Eqe::type.get(event.bytes), static_cast<unsigned>(EventType::cq_error));
	EXPECT_EQ(Eqe::cq_error_number.get(event.bytes), cq.number);
	EXPECT_EQ(Eqe::cq_error_syndrome.get(event.bytes), Eqe::cq_overrun);
	const Answer query = driver.command(Opcode::query_cq, cq.number, 0x50);
	EXPECT_NE(hw::mlx5::CqContext::status.get(query.out.data() + 16), 0u);
}

// The last entry in the old buffer reports the change. Later completions are written to the new
// buffer, from the next index on.
TEST_F(Mlx5Queues, CqesAfterACqResizeAreWrittenToTheNewBuffer)
{
	using hw::mlx5::CqContext;
	auto cq = driver.make_cq(2);
	const auto [one, two] = driver.make_pair(cq);
	std::uint32_t index = driver.send(one, 0, TinyDriver::control(0));
	ASSERT_TRUE(driver.run_until_entry(cq, 0));
	const TinyDriver::Cq bigger{.number = cq.number,
				    .entries = driver.allocate(4096),
				    .record = cq.record,
				    .log_size = 5};
	for (unsigned i = 0; i < 32; ++i)
		*driver.bytes(bigger.entries + 64 * i + 63, 1) = 0xf1;
	CqContext context{};
	CqContext::log_size.set(context.bytes, bigger.log_size);
	Bytes in = TinyDriver::input_with(hw::mlx5::pages_offset, hw::mlx5::context_offset,
					  context.bytes);
	hw::mlx5::object_number.set(in.data(), cq.number);
	driver.append_pages(in, bigger.entries, 32 * 64);
	ASSERT_EQ(driver.command(Opcode::modify_cq, in, 16, hw::mlx5::ModifyCq::op_resize).status,
		  Status::ok);
	EXPECT_EQ(Cqe::opcode.get(driver.entry(cq, 1).bytes), code(CqeOpcode::resize));
	index = driver.send(one, index, TinyDriver::control(0));
	ASSERT_TRUE(driver.run_until_entry(bigger, 2));
	EXPECT_EQ(Cqe::opcode.get(driver.entry(cq, 2).bytes), 0xfu) << "nothing in the old one";
	// Two unread entries and the mark do not fit into two.
	CqContext::log_size.set(context.bytes, 1);
	in = TinyDriver::input_with(hw::mlx5::pages_offset, hw::mlx5::context_offset,
				    context.bytes);
	hw::mlx5::object_number.set(in.data(), cq.number);
	driver.append_pages(in, cq.entries, 4096);
	EXPECT_EQ(driver.command(Opcode::modify_cq, in, 16, hw::mlx5::ModifyCq::op_resize).status,
		  Status::bad_size);
}

TEST_F(Mlx5Queues, ArmedCqRaisesOneEvent)
{
	const auto cq = driver.make_cq(4);
	const auto [one, two] = driver.make_pair(cq);
	const auto arm = [&](std::uint32_t consumer) {
		const std::uint64_t place =
			std::uint64_t{driver.uar} * 4096 + hw::mlx5::uar::cq_doorbell;
		driver.write(place, consumer);
		driver.write(place + 4, cq.number);
	};
	const auto events = [&] { return driver.completion_events(); };
	arm(0);
	EXPECT_EQ(events(), 0u);
	std::uint32_t index = driver.send(one, 0, TinyDriver::control(0));
	EXPECT_EQ(events(), 1u);
	index = driver.send(one, index, TinyDriver::control(0));
	EXPECT_EQ(events(), 1u) << "it was not armed again";
	arm(1);
	EXPECT_EQ(events(), 2u) << "armed behind an entry that was not reported";
}

TEST_F(Mlx5Queues, RmpConsumesLinkedWqesAndRaisesLimitEvent)
{
	using hw::mlx5::RmpContext;
	using hw::mlx5::WqContext;
	namespace rmp = hw::mlx5::rmp_command;
	const std::uint64_t entries = driver.allocate(4096), record = driver.allocate(8, 8);
	RmpContext context{};
	std::uint8_t *const queue = context.bytes + RmpContext::work_queue;
	WqContext::pd.set(queue, driver.pd);
	WqContext::record.set(queue, record);
	WqContext::log_stride.set(queue, 5);
	WqContext::log_size.set(queue, 4);
	WqContext::limit.set(queue, 2);
	Bytes in = TinyDriver::input_with(rmp::pages, rmp::context, context.bytes);
	driver.append_pages(in, entries, 512);
	const Answer made = driver.command(Opcode::create_rmp, in);
	ASSERT_EQ(made.status, Status::ok);

	const auto cq = driver.make_cq(4);
	const std::uint64_t buffer = driver.allocate(4096), data = driver.allocate(4096);
	// Entries 0, 5, 9 in this order; the third is the last that is posted.
	const unsigned order[] = {0, 5, 9};
	for (unsigned i = 0; i < 3; ++i) {
		std::uint8_t *const entry = driver.bytes(entries + 32 * order[i], 32);
		hw::mlx5::store_be32(entry, 0, i < 2 ? order[i + 1] : 0);
		TinyDriver::put_data(entry + 16, buffer + 64 * i, 64, driver.key);
	}
	driver.store(record, 3);

	auto [one, two] = driver.make_pair(cq);
	// The second QP of the pair has its own queue, so it is changed to one that uses an SRQ.
	auto *const shared = driver.card.context()->queue_pair(two.number);
	shared->uses_srq = true;
	shared->has_receive_queue = false;
	shared->srqn = made.number();
	std::uint32_t index = 0;
	for (unsigned i = 0; i < 2; ++i) {
		*driver.bytes(data, 1) = static_cast<std::uint8_t>(0xa0 + i);
		Bytes wqe = TinyDriver::control(kSend, false);
		TinyDriver::add_data(wqe, data, 8, driver.key);
		index = driver.send(one, index, wqe);
		ASSERT_TRUE(driver.run_until_entry(cq, i));
		const Cqe cqe = driver.entry(cq, i);
		EXPECT_EQ(Cqe::wqe_counter.get(cqe.bytes), order[i]);
		EXPECT_EQ(Cqe::srqn.get(cqe.bytes), made.number());
		EXPECT_EQ(*driver.bytes(buffer + 64 * i, 1), 0xa0 + i);
	}
	const Eqe event = async_event(0);
	EXPECT_EQ(Eqe::type.get(event.bytes), static_cast<unsigned>(EventType::srq_limit));
	EXPECT_EQ(Eqe::number.get(event.bytes), made.number());
	EXPECT_EQ(driver.command(Opcode::destroy_xrc_srq, made.number()).status,
		  Status::bad_resource)
		<< "it is of the other kind";
	EXPECT_EQ(driver.command(Opcode::destroy_rmp, made.number()).status, Status::ok);
}

// The completion contains the index that the queue's owner has chosen, and goes to the queue's own
// completion queue.
TEST_F(Mlx5Queues, XrcSendsArriveInTheAddressedSrq)
{
	driver.xrc_domain = driver.command(Opcode::alloc_xrcd).number();
	const auto cq = driver.make_cq(4), receive_cq = driver.make_cq(4);
	const auto srq = driver.make_xrc_srq(receive_cq, 0x55);
	const auto one = driver.make_qp(QpService::xrc, cq);
	const auto two = driver.make_qp(QpService::xrc, cq);
	driver.to_rts(one, two.number);
	driver.to_rts(two, one.number);
	const std::uint64_t data = driver.allocate(4096), place = driver.allocate(4096);
	*driver.bytes(data, 1) = 0xab;
	driver.receive(srq, 0, place, 64);
	const auto send_to = [&](std::uint32_t srqn) {
		Bytes wqe = TinyDriver::control(kSend, false);
		wqe.resize(32);
		hw::mlx5::store_be32(wqe.data(), 16, srqn);
		TinyDriver::add_data(wqe, data, 8, driver.key);
		return wqe;
	};
	const std::uint32_t next = driver.send(one, 0, send_to(srq.number));
	ASSERT_TRUE(driver.run_until_entry(receive_cq, 0));
	Cqe cqe = driver.entry(receive_cq, 0);
	EXPECT_EQ(Cqe::opcode.get(cqe.bytes), code(CqeOpcode::responder_send));
	EXPECT_EQ(Cqe::srqn.get(cqe.bytes), 0x55u);
	EXPECT_EQ(Cqe::byte_count.get(cqe.bytes), 8u);
	EXPECT_EQ(*driver.bytes(place, 1), 0xab);

	driver.xrc_domain = driver.command(Opcode::alloc_xrcd).number();
	const auto outsider = driver.make_xrc_srq(receive_cq, 0x56);
	driver.receive(outsider, 0, place, 64);
	driver.send(one, next, send_to(outsider.number));
	ASSERT_TRUE(driver.run_until_entry(cq, 0));
	cqe = driver.entry(cq, 0);
	EXPECT_EQ(Cqe::opcode.get(cqe.bytes), code(CqeOpcode::requester_error));
	EXPECT_EQ(Cqe::syndrome.get(cqe.bytes), 0x12u) << "a queue of another domain";
}

TEST_F(Mlx5Queues, TotalNumberOfPagesOfAllQueuesIsLimited)
{
	PageBudget budget(3);
	const Bytes entries(8 * 8);
	PageList first, second;
	EXPECT_EQ(PageList::create(budget, {.bytes = 2 * 4096}, entries, first), std::nullopt);
	EXPECT_EQ(PageList::create(budget, {.bytes = 2 * 4096}, entries, second),
		  PageList::Problem::budget);
	first = PageList();
	EXPECT_EQ(PageList::create(budget, {.bytes = 3 * 4096}, entries, second), std::nullopt);
	EXPECT_EQ(PageList::create(budget, {.log_page_size = 20, .bytes = 1}, entries, first),
		  PageList::Problem::page_size);
	EXPECT_EQ(PageList::create(budget, {.bytes = 9 * 4096}, entries, first),
		  PageList::Problem::too_few_pages);
	EXPECT_EQ(PageList::create(budget, {.page_offset = 63, .bytes = 8 * 4096}, entries, first),
		  PageList::Problem::too_few_pages)
		<< "the offset takes some of the first page";
}

} // namespace weft::mlx5::testing
