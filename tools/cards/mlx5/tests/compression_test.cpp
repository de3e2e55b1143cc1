// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests CQE compression: several completions are written as a title and mini CQEs.
#include "cards/mlx5/limits.hpp"
#include "cards/mlx5/tests/tiny_driver.hpp"

namespace weft::mlx5::testing
{

using hw::mlx5::CqContext;
using hw::mlx5::Cqe;
using hw::mlx5::CqeOpcode;
using hw::mlx5::EventType;
using hw::mlx5::MiniCqe;

namespace
{

constexpr std::uint32_t kHeld = 0xf; // opcode of a slot that the card has not written

// A completion of a received message; @index is that of the receive request.
Cqe received(std::uint32_t index, std::uint32_t bytes, std::uint32_t qpn = 77)
{
	Cqe cqe{};
	Cqe::opcode.set(cqe.bytes, static_cast<std::uint32_t>(CqeOpcode::responder_send));
	Cqe::qpn.set(cqe.bytes, qpn);
	Cqe::wqe_counter.set(cqe.bytes, index);
	Cqe::byte_count.set(cqe.bytes, bytes);
	return cqe;
}

} // namespace

class Mlx5Compression : public ::testing::Test
{
public:
	void SetUp() override
	{
		driver.bring_up();
		driver.set_port_active();
	}
	void create(unsigned log_size, std::uint32_t mini_format = CqContext::mini_hash,
		    unsigned entry_size = CqContext::entry_64)
	{
		CqContext::compressed.set(driver.cq_settings.bytes, 1);
		CqContext::mini_format.set(driver.cq_settings.bytes, mini_format);
		cq = driver.make_cq(log_size, entry_size);
	}
	CompletionQueue &queue() { return *driver.card.context()->completion_queue(cq.number); }
	bool post(const Cqe &cqe, bool solicited = false) { return queue().post(cqe, solicited); }
	void post(unsigned first, unsigned count)
	{
		for (unsigned i = first; i < first + count; ++i)
			ASSERT_TRUE(post(received(i, 100 + i)));
	}
	std::uint32_t opcode(std::uint32_t index)
	{
		return Cqe::opcode.get(driver.entry(cq, index).bytes);
	}
	// Returns the number of completions of the session that begins at @index; 0 if there is
	// none.
	std::uint32_t session_size(std::uint32_t index)
	{
		const Cqe cqe = driver.entry(cq, index);
		return Cqe::format.get(cqe.bytes) == Cqe::compressed
			       ? Cqe::byte_count.get(cqe.bytes)
			       : 0;
	}
	// The mini CQE of completion @number of the session that begins at @title.
	MiniCqe mini(std::uint32_t title, unsigned number)
	{
		const unsigned array = number / MiniCqe::per_slot;
		const Cqe slot = driver.entry(cq, title + (array ? MiniCqe::per_slot * array : 1));
		MiniCqe out{};
		std::memcpy(out.bytes, slot.bytes + MiniCqe::size * (number % MiniCqe::per_slot),
			    MiniCqe::size);
		return out;
	}
	std::uint32_t mini_bytes(std::uint32_t title, unsigned number)
	{
		return MiniCqe::byte_count.get(mini(title, number).bytes);
	}
	unsigned events() { return driver.completion_events(); }

	TinyDriver driver;
	TinyDriver::Cq cq;
};

// Messages that arrive together. Later ones are not part of the session.
TEST_F(Mlx5Compression, ReceiveCqesThatArriveTogetherAreCompressed)
{
	create(4);
	const auto [one, two] = driver.make_pair(cq);
	const std::uint64_t data = driver.allocate(4096);
	std::uint32_t index = 0;
	const auto send = [&](std::uint32_t size) {
		driver.receive(two, index, data + 2048, 1024);
		Bytes wqe = TinyDriver::control(TinyDriver::kSend, false);
		TinyDriver::add_data(wqe, data, size, driver.key);
		index = driver.post(one, index, wqe);
	};
	for (const std::uint32_t size : {10u, 20u, 30u})
		send(size);
	driver.ring_send(one);
	ASSERT_TRUE(driver.run_until_entry(cq, 0));
	ASSERT_EQ(session_size(0), 3u);
	const Cqe title = driver.entry(cq, 0);
	EXPECT_EQ(Cqe::opcode.get(title.bytes), static_cast<unsigned>(CqeOpcode::responder_send));
	EXPECT_EQ(Cqe::qpn.get(title.bytes), two.number);
	EXPECT_EQ(Cqe::wqe_counter.get(title.bytes), 0u);
	EXPECT_EQ(Cqe::owner.get(title.bytes), 0u);
	for (unsigned i = 0; i < 3; ++i)
		EXPECT_EQ(mini_bytes(0, i), 10 * (i + 1));
	send(40);
	driver.ring_send(one);
	ASSERT_TRUE(driver.run_until_entry(cq, 3));
	EXPECT_EQ(session_size(3), 0u) << "a single completion is not compressed";
	EXPECT_EQ(Cqe::byte_count.get(driver.entry(cq, 3).bytes), 40u);
	EXPECT_EQ(Cqe::wqe_counter.get(driver.entry(cq, 3).bytes), 3u);
}

TEST_F(Mlx5Compression, CompressedSendCqesHaveTheirWqeIndexAndOpcode)
{
	create(4);
	const auto [one, two] = driver.make_pair(cq);
	const std::uint64_t data = driver.allocate(4096);
	std::uint32_t index = 0;
	for (const std::uint32_t opcode : {TinyDriver::kWrite, 0u, TinyDriver::kRead}) {
		Bytes wqe = TinyDriver::control(opcode);
		if (opcode) {
			TinyDriver::add_remote(wqe, data, driver.key);
			TinyDriver::add_data(wqe, data + 2048, 16, driver.key);
		}
		index = driver.post(one, index, wqe);
	}
	driver.ring_send(one);
	ASSERT_TRUE(driver.run_until_entry(cq, 0));
	ASSERT_EQ(session_size(0), 3u);
	const std::uint32_t opcodes[] = {TinyDriver::kWrite, 0, TinyDriver::kRead};
	for (unsigned i = 0; i < 3; ++i) {
		EXPECT_EQ(MiniCqe::wqe_counter.get(mini(0, i).bytes), i);
		EXPECT_EQ(MiniCqe::wqe_opcode.get(mini(0, i).bytes), opcodes[i]);
	}
	EXPECT_EQ(mini_bytes(0, 2), 16u) << "of the read";
}

// The title and the first eight mini CQEs are in the first two slots.
TEST_F(Mlx5Compression, SessionOf18CompletionsHasTitleInSlot0AndMiniCqeArraysInSlots1And8And16)
{
	create(5);
	post(0, 18);
	EXPECT_EQ(opcode(0), kHeld);
	driver.host.loop().poll();
	ASSERT_EQ(session_size(0), 18u);
	for (unsigned i = 0; i < 18; ++i)
		EXPECT_EQ(mini_bytes(0, i), 100 + i) << i;
	for (const unsigned unused : {2u, 7u, 9u, 15u, 17u})
		EXPECT_EQ(opcode(unused), kHeld) << unused;
	post(18, 1);
	driver.host.loop().poll();
	EXPECT_EQ(Cqe::byte_count.get(driver.entry(cq, 18).bytes), 118u);
}

TEST_F(Mlx5Compression, TitleCqeHasTheOwnerBitOfItsSlot)
{
	create(2);
	for (unsigned round = 0; round < 5; ++round) {
		post(2 * round, 2);
		driver.host.loop().poll();
		const Cqe title = driver.entry(cq, 2 * round);
		EXPECT_EQ(session_size(2 * round), 2u);
		EXPECT_EQ(Cqe::owner.get(title.bytes), 2 * round >> 2 & 1) << round;
		EXPECT_EQ(Cqe::wqe_counter.get(title.bytes), 2 * round);
		driver.store(cq.record, 2 * round + 2);
	}
}

TEST_F(Mlx5Compression, MiniCqesAreWrittenToTheSecondHalfOf128ByteSlots)
{
	create(4, CqContext::mini_hash, CqContext::entry_128);
	post(0, 10);
	driver.host.loop().poll();
	ASSERT_EQ(session_size(0), 10u);
	for (unsigned i = 0; i < 10; ++i)
		EXPECT_EQ(mini_bytes(0, i), 100 + i) << i;
	EXPECT_EQ(*driver.bytes(cq.slot(1), 1), 0) << "the first half is not used";
}

// A mini CQE has the hash or the checksum. Completions whose other fields differ are not compressed
// together.
TEST_F(Mlx5Compression, FormatSelectsTheFieldThatMiniCqesContain)
{
	for (const std::uint32_t format :
	     {CqContext::mini_hash, CqContext::mini_checksum, CqContext::mini_checksum_stride}) {
		const bool is_hash = format == CqContext::mini_hash;
		create(4, format);
		const auto with = [&](std::uint32_t index, std::uint32_t value, bool hash) {
			Cqe cqe = received(index, 8);
			(hash ? Cqe::hash : Cqe::checksum).set(cqe.bytes, value);
			return cqe;
		};
		ASSERT_TRUE(post(with(0, 0xa1, is_hash)));
		ASSERT_TRUE(post(with(1, 0xb2, is_hash)));
		driver.host.loop().poll();
		ASSERT_EQ(session_size(0), 2u) << format;
		const hw::mlx5::Field &field = is_hash ? MiniCqe::hash : MiniCqe::checksum;
		EXPECT_EQ(field.get(mini(0, 0).bytes), 0xa1u);
		EXPECT_EQ(field.get(mini(0, 1).bytes), 0xb2u);
		ASSERT_TRUE(post(with(2, 0xc3, !is_hash)));
		ASSERT_TRUE(post(with(3, 0xd4, !is_hash)));
		driver.host.loop().poll();
		EXPECT_EQ(session_size(2), 0u) << format;
		EXPECT_NE(opcode(3), kHeld);
	}
}

TEST_F(Mlx5Compression, CompletionThatCannotBeCompressedEndsTheCompressionSession)
{
	create(6);
	std::uint32_t next = 0;
	// Posts two completions that are compressed, and @other, which is not.
	const auto ended_by = [&](const Cqe &other, bool solicited = false) {
		post(0, 2);
		EXPECT_TRUE(post(other, solicited));
		driver.host.loop().poll();
		EXPECT_EQ(session_size(next), 2u);
		EXPECT_EQ(session_size(next + 2), 0u);
		EXPECT_NE(opcode(next + 2), kHeld);
		next += 3;
	};
	ended_by(received(2, 1, 78)); // of another queue pair
	ended_by(received(3, 1));     // a request is missing
	ended_by(received(2, 1), true);
	const auto changed = [](const hw::mlx5::Field &field, std::uint32_t value) {
		Cqe cqe = received(2, 1);
		field.set(cqe.bytes, value);
		return cqe;
	};
	const auto code = [](CqeOpcode opcode) { return static_cast<std::uint32_t>(opcode); };
	ended_by(changed(Cqe::source_lid, 9));
	ended_by(changed(Cqe::source_qpn, 9));
	ended_by(changed(Cqe::pkey, 9));
	ended_by(changed(Cqe::srqn, 9));
	ended_by(changed(Cqe::format, Cqe::inline_32));
	ended_by(changed(Cqe::opcode, code(CqeOpcode::requester)));
	ended_by(changed(Cqe::opcode, code(CqeOpcode::responder_send_imm)));
	ended_by(changed(Cqe::opcode, code(CqeOpcode::responder_send_invalidate)));
	ended_by(changed(Cqe::opcode, code(CqeOpcode::responder_error)));
}

TEST_F(Mlx5Compression, NumberOfCompletionsInACompressionSessionIsLimited)
{
	create(8);
	constexpr unsigned most = limits::kMostCompressed;
	post(0, most + 3);
	EXPECT_EQ(session_size(0), most) << "written when it was full";
	EXPECT_EQ(opcode(most), kHeld);
	driver.host.loop().poll();
	EXPECT_EQ(session_size(most), 3u);
	EXPECT_EQ(mini_bytes(0, most - 1), 100 + most - 1);
}

// The queue may also be smaller than a session.
TEST_F(Mlx5Compression, BufferedCompletionsCountTowardsOverrun)
{
	create(1);
	post(0, 2);
	EXPECT_EQ(session_size(0), 2u);
	EXPECT_FALSE(post(received(2, 1)));
	EXPECT_TRUE(queue().failed());
	create(2);
	post(0, 3);
	EXPECT_EQ(opcode(0), kHeld);
	post(3, 1);
	EXPECT_FALSE(post(received(4, 1)));
	EXPECT_EQ(session_size(0), 4u) << "what there was room for is written";
	EXPECT_TRUE(queue().failed());
}

// A driver removes the completions of a queue pair that it has destroyed.
TEST_F(Mlx5Compression, BufferedCompletionsAreWrittenBeforeACommandCompletes)
{
	create(4);
	post(0, 3);
	Bytes in(16);
	hw::mlx5::InputHead::opcode.set(in.data(), static_cast<std::uint32_t>(Opcode::nop));
	driver.prepare(in, 8);
	EXPECT_EQ(opcode(0), kHeld);
	driver.write(hw::mlx5::segment::command_doorbell, 1);
	EXPECT_EQ(session_size(0), 3u);
}

TEST_F(Mlx5Compression, ArmedCqRaisesOneEventForACompressionSession)
{
	create(4);
	queue().arm(false, 0);
	post(0, 3);
	EXPECT_EQ(events(), 0u) << "nothing to be found yet";
	driver.host.loop().poll();
	EXPECT_EQ(events(), 1u);
	EXPECT_EQ(session_size(0), 3u);
	queue().arm(false, 1);
	EXPECT_EQ(events(), 1u) << "the event was for all three";
	post(3, 2);
	driver.host.loop().poll();
	EXPECT_EQ(events(), 2u);
}

TEST_F(Mlx5Compression, DestroyingACqDropsItsBufferedCompletions)
{
	create(4);
	post(0, 3);
	EXPECT_EQ(driver.command(Opcode::destroy_cq, cq.number).status, Status::ok);
	create(4);
	post(0, 3);
	driver.host.unplug();
}

TEST_F(Mlx5Compression, CqFailsIfBufferedCompletionsCannotBeWrittenToItsBuffer)
{
	create(4);
	post(0, 3);
	driver.host.set_bus_master(false);
	driver.host.loop().poll();
	EXPECT_TRUE(queue().failed());
	EXPECT_FALSE(post(received(3, 1)));
}

TEST_F(Mlx5Compression, CqsWithInvalidCompressionSettingsAreRefused)
{
	create(4, 2);
	EXPECT_EQ(cq.number, 0u) << "a reserved format";
	CqContext::compression_layout.set(driver.cq_settings.bytes, 1);
	create(4);
	EXPECT_EQ(cq.number, 0u) << "the enhanced layout";
	driver.cq_settings = {};
	CqContext::collapsed.set(driver.cq_settings.bytes, 1);
	create(4);
	EXPECT_EQ(cq.number, 0u) << "a queue with one slot";
	driver.cq_settings = {};
	create(4, CqContext::mini_checksum_stride);
	ASSERT_NE(cq.number, 0u);
	const Answer query = driver.command(Opcode::query_cq, cq.number, 0x50);
	const std::uint8_t *const context = query.out.data() + hw::mlx5::context_offset;
	EXPECT_EQ(CqContext::compressed.get(context), 1u);
	EXPECT_EQ(CqContext::mini_format.get(context), CqContext::mini_checksum_stride);
}

TEST_F(Mlx5Compression, QueuesWithoutCompressionWriteEachCqeImmediately)
{
	cq = driver.make_cq(4);
	post(0, 3);
	for (unsigned i = 0; i < 3; ++i) {
		EXPECT_EQ(session_size(i), 0u);
		EXPECT_EQ(Cqe::byte_count.get(driver.entry(cq, i).bytes), 100 + i);
	}
}

} // namespace weft::mlx5::testing
