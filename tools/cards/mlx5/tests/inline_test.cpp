// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests "scatter to CQE": short messages and responses to reads and atomics are stored in the CQE
// instead of memory.
#include "cards/mlx5/tests/tiny_driver.hpp"

namespace weft::mlx5::testing
{

using hw::mlx5::CqContext;
using hw::mlx5::Cqe;
using hw::mlx5::CqeOpcode;
using hw::mlx5::QpContext;

namespace
{

constexpr std::uint8_t kUnchanged = 0x5c;

} // namespace

class Mlx5Inline : public ::testing::Test
{
public:
	void SetUp() override
	{
		driver.bring_up();
		driver.set_port_active();
		driver.inline_receive = QpContext::receive_32_bytes;
		driver.inline_response = QpContext::response_32_bytes;
		from = driver.allocate(4096);
		to = driver.allocate(4096);
		for (unsigned i = 0; i < 256; ++i)
			*driver.bytes(from + i, 1) = static_cast<std::uint8_t>(i + 1);
		std::fill_n(driver.bytes(to, 4096), 4096, kUnchanged);
	}
	void connect(unsigned entry_size)
	{
		cq = driver.make_cq(4, entry_size);
		std::tie(one, two) = driver.make_pair(cq);
	}
	// The first queue pair sends @size bytes to the second, whose entry is returned.
	Cqe send(std::uint32_t size, std::uint32_t opcode = TinyDriver::kSend)
	{
		driver.receive(two, receives++, to, 256);
		Bytes wqe = TinyDriver::control(opcode, false);
		if (opcode == TinyDriver::kWriteImmediate)
			TinyDriver::add_remote(wqe, to, driver.key);
		TinyDriver::add_data(wqe, from, size, driver.key);
		index = driver.send(one, index, wqe);
		return next();
	}
	// The first QP reads @size bytes of the memory at @from, or executes an atomic on it.
	Cqe read(std::uint32_t size, std::uint32_t opcode = TinyDriver::kRead,
		 bool signalled = true)
	{
		Bytes wqe = TinyDriver::control(opcode, signalled);
		TinyDriver::add_remote(wqe, from, driver.key);
		if (opcode == TinyDriver::kFetchAdd)
			wqe.resize(wqe.size() + 16);
		TinyDriver::add_data(wqe, to, size, driver.key);
		index = driver.send(one, index, wqe);
		return signalled ? next() : Cqe{};
	}
	Cqe next()
	{
		EXPECT_TRUE(driver.run_until_entry(cq, entries));
		return driver.entry(cq, entries++);
	}
	bool memory_has(std::uint32_t size)
	{
		return std::equal(driver.bytes(from, size), driver.bytes(from, size) + size,
				  driver.bytes(to, size)) &&
		       *driver.bytes(to + size, 1) == kUnchanged;
	}
	bool memory_is_unchanged() { return *driver.bytes(to, 1) == kUnchanged; }
	// Returns true if the last entry contains the data.
	bool entry_has(const Cqe &cqe, std::uint32_t size)
	{
		const std::uint8_t *const data = Cqe::format.get(cqe.bytes) == Cqe::inline_64
							 ? driver.bytes(cq.slot(entries - 1), size)
							 : cqe.bytes;
		return std::equal(data, data + size, driver.bytes(from, size));
	}

	TinyDriver driver;
	TinyDriver::Cq cq;
	TinyDriver::Qp one, two;
	std::uint64_t from = 0, to = 0;
	std::uint32_t index = 0, receives = 0, entries = 0;
};

TEST_F(Mlx5Inline, ShortMessagesAreScatteredToTheCqe)
{
	connect(CqContext::entry_64);
	const Cqe cqe = send(32, TinyDriver::kSendImmediate);
	EXPECT_EQ(Cqe::opcode.get(cqe.bytes), static_cast<unsigned>(CqeOpcode::responder_send_imm));
	EXPECT_EQ(Cqe::format.get(cqe.bytes), Cqe::inline_32);
	EXPECT_EQ(Cqe::byte_count.get(cqe.bytes), 32u);
	EXPECT_EQ(Cqe::qpn.get(cqe.bytes), two.number);
	EXPECT_TRUE(entry_has(cqe, 32));
	EXPECT_TRUE(memory_is_unchanged());
}

TEST_F(Mlx5Inline, SendsAbove32BytesAndAllRdmaWritesAreScatteredToMemory)
{
	connect(CqContext::entry_64);
	Cqe cqe = send(0);
	EXPECT_EQ(Cqe::format.get(cqe.bytes), 0u) << "nothing to carry";
	cqe = send(32, TinyDriver::kWriteImmediate);
	EXPECT_EQ(Cqe::format.get(cqe.bytes), 0u) << "it names its memory";
	EXPECT_TRUE(memory_has(32));
	cqe = send(33);
	EXPECT_EQ(Cqe::format.get(cqe.bytes), 0u);
	EXPECT_EQ(Cqe::byte_count.get(cqe.bytes), 33u);
	EXPECT_TRUE(memory_has(33));
}

// Entries of 128 bytes have space for 64 bytes of data.
TEST_F(Mlx5Inline, LargeCqesContainUpTo64BytesOfData)
{
	driver.inline_receive = QpContext::receive_64_bytes;
	driver.inline_response = QpContext::response_64_bytes;
	connect(CqContext::entry_128);
	Cqe cqe = send(64);
	EXPECT_EQ(Cqe::format.get(cqe.bytes), Cqe::inline_64);
	EXPECT_TRUE(entry_has(cqe, 64));
	cqe = send(8);
	EXPECT_EQ(Cqe::format.get(cqe.bytes), Cqe::inline_32);
	EXPECT_TRUE(entry_has(cqe, 8));
	cqe = read(64);
	EXPECT_EQ(Cqe::format.get(cqe.bytes), Cqe::inline_64);
	EXPECT_TRUE(entry_has(cqe, 64));
	EXPECT_TRUE(memory_is_unchanged());
	send(65);
	EXPECT_TRUE(memory_has(65));
}

// With padding, too, drivers find the entry in the second half of its slot.
TEST_F(Mlx5Inline, PaddedCqesAreInTheSecondHalfOfTheirSlots)
{
	driver.inline_receive = QpContext::receive_64_bytes;
	connect(CqContext::entry_128_padded);
	const Cqe cqe = send(65);
	EXPECT_EQ(Cqe::byte_count.get(cqe.bytes), 65u);
	EXPECT_TRUE(memory_has(65));
	EXPECT_EQ(Cqe::format.get(send(64).bytes), Cqe::inline_64);
}

TEST_F(Mlx5Inline, ReadAndAtomicResultsAreScatteredToTheCqe)
{
	connect(CqContext::entry_64);
	Cqe cqe = read(17);
	EXPECT_EQ(Cqe::opcode.get(cqe.bytes), static_cast<unsigned>(CqeOpcode::requester));
	EXPECT_EQ(Cqe::byte_count.get(cqe.bytes), 17u);
	EXPECT_TRUE(entry_has(cqe, 17));
	cqe = read(8, TinyDriver::kFetchAdd);
	EXPECT_EQ(Cqe::format.get(cqe.bytes), Cqe::inline_32);
	EXPECT_TRUE(entry_has(cqe, 8));
	EXPECT_TRUE(memory_is_unchanged());
	read(33);
	EXPECT_TRUE(memory_has(33));
}

TEST_F(Mlx5Inline, UnsignalledReadResultsAreScatteredToMemory)
{
	connect(CqContext::entry_64);
	read(8, TinyDriver::kRead, false);
	EXPECT_TRUE(memory_has(8));
}

// The queue pair fails, because the data does not fit into its completion.
TEST_F(Mlx5Inline, ScatterBeyondTheSizeOfTheCqeFailsTheQueuePair)
{
	driver.inline_receive = QpContext::receive_64_bytes;
	connect(CqContext::entry_64);
	driver.receive(two, 0, to, 256);
	Bytes wqe = TinyDriver::control(TinyDriver::kSend, false);
	TinyDriver::add_data(wqe, from, 33, driver.key);
	driver.send(one, 0, wqe);
	EXPECT_EQ(driver.card.context()->queue_pair(two.number)->state, QpState::err);
	EXPECT_FALSE(driver.card.context()->completion_queue(cq.number)->failed());
}

TEST_F(Mlx5Inline, InvalidScatterToCqeCodesAreRefused)
{
	cq = driver.make_cq(4);
	driver.inline_receive = 3;
	TinyDriver::Qp qp;
	EXPECT_EQ(driver.try_qp(QpService::rc, cq, qp).status, Status::bad_parameter);
	driver.inline_receive = 0;
	driver.inline_response = QpContext::receive_32_bytes;
	EXPECT_EQ(driver.try_qp(QpService::rc, cq, qp).status, Status::bad_parameter);
}

} // namespace weft::mlx5::testing
