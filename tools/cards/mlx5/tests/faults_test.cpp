// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests fault injection: each injected fault is visible to a driver, and occurs as often as
// requested.
#include "cards/mellanox_icm/faults.hpp"
#include "cards/mlx5/limits.hpp"
#include "cards/mlx5/tests/tiny_driver.hpp"

namespace weft::mlx5::testing
{

using hw::mlx5::Cqe;
using hw::mlx5::Eqe;
using hw::mlx5::EventType;
using hw::mlx5::HcaCap;

class Mlx5Faults : public ::testing::Test
{
public:
	void SetUp() override
	{
		driver.bring_up();
		driver.set_port_active();
		cq = driver.make_cq(5);
		std::tie(one, two) = driver.make_pair(cq);
	}
	void arm(Fault fault, std::uint32_t count = 1) { driver.card.faults().arm(fault, count); }
	// Posts a NOP, which occupies a block of the queue, and returns its completion entry.
	Cqe complete()
	{
		index = driver.send(one, index, TinyDriver::control(0));
		return driver.entry(cq, entries++);
	}
	// Returns the next event of a QP, which must be @two.
	Eqe event()
	{
		driver.card.context()->events.raise(EventType::communication_established,
						    two.number);
		return driver.host.object<Eqe>(driver.async_entries + 64 * events++);
	}
	Status nop() { return driver.command(Opcode::nop).status; }

	TinyDriver driver;
	TinyDriver::Cq cq;
	TinyDriver::Qp one, two;
	std::uint32_t index = 0, entries = 0, events = 0;
};

TEST_F(Mlx5Faults, EachInjectedCqeFaultCorruptsOnlyTheCqeFieldNamedByTheFault)
{
	arm(Fault::cqe_number);
	Cqe cqe = complete();
	EXPECT_NE(Cqe::qpn.get(cqe.bytes), one.number);
	EXPECT_NE(Cqe::srqn.get(cqe.bytes), 0u) << "the index that programs know it by";
	EXPECT_EQ(Cqe::wqe_counter.get(cqe.bytes), 0u);
	arm(Fault::cqe_index);
	cqe = complete();
	EXPECT_EQ(Cqe::qpn.get(cqe.bytes), one.number);
	EXPECT_NE(Cqe::wqe_counter.get(cqe.bytes), 1u);
	arm(Fault::cqe_opcode);
	cqe = complete();
	EXPECT_EQ(Cqe::opcode.get(cqe.bytes), 9u);
	arm(Fault::cqe_owner);
	cqe = complete();
	EXPECT_EQ(Cqe::owner.get(cqe.bytes), 1u) << "entries of the first round have a clear one";
	cqe = complete();
	EXPECT_EQ(Cqe::qpn.get(cqe.bytes), one.number) << "it is over";
	EXPECT_EQ(Cqe::wqe_counter.get(cqe.bytes), 4u);
	EXPECT_EQ(Cqe::opcode.get(cqe.bytes), 0u);
	EXPECT_EQ(Cqe::owner.get(cqe.bytes), 0u);
}

TEST_F(Mlx5Faults, EachInjectedEqeFaultCorruptsTheEqeFieldThatTheFaultIsNamedAfter)
{
	arm(Fault::eqe_number);
	Eqe entry = event();
	EXPECT_EQ(Eqe::owner.get(entry.bytes), 0u);
	EXPECT_NE(Eqe::number.get(entry.bytes), two.number);
	arm(Fault::eqe_type);
	entry = event();
	EXPECT_EQ(Eqe::type.get(entry.bytes), 0xeeu);
	EXPECT_EQ(Eqe::number.get(entry.bytes), two.number);
	arm(Fault::eqe_owner);
	entry = event();
	EXPECT_EQ(Eqe::owner.get(entry.bytes), 1u) << "an event that looks like none";
	entry = event();
	EXPECT_EQ(Eqe::owner.get(entry.bytes), 0u);
	EXPECT_EQ(Eqe::number.get(entry.bytes), two.number);
}

TEST_F(Mlx5Faults, InjectedCommandFaultsLeaveACommandUncompletedOrReturnAWrongStatus)
{
	arm(Fault::command_lost);
	driver.prepare(Bytes(16), 16);
	driver.ring(1);
	EXPECT_EQ(driver.answer(16).delivery, 0xff) << "the entry is still the card's";
	arm(Fault::command_status);
	EXPECT_EQ(static_cast<unsigned>(nop()), 0xbdu);
	EXPECT_EQ(nop(), Status::ok);
	arm(Fault::command_nth, 3);
	EXPECT_EQ(nop(), Status::ok);
	EXPECT_EQ(nop(), Status::ok);
	EXPECT_EQ(static_cast<unsigned>(nop()), 0xbdu);
	EXPECT_EQ(nop(), Status::ok);
	EXPECT_EQ(driver.card.faults().struck(Fault::command_lost), 1u);
	EXPECT_EQ(driver.card.faults().struck(Fault::command_status), 1u);
	EXPECT_EQ(driver.card.faults().struck(Fault::command_nth), 1u);
}

TEST_F(Mlx5Faults, InjectedCommandFaultRaisesTheCommandCompletionEventTwice)
{
	std::uint64_t entries_of_commands = 0;
	ASSERT_NE(driver.make_eq(4, 1ull << 0x0a, 3, entries_of_commands), 0u);
	const auto reported = [&] {
		unsigned count = 0;
		while (Eqe::owner.get(
			       driver.host.object<Eqe>(entries_of_commands + 64 * count).bytes) ==
		       0)
			++count;
		return count;
	};
	const unsigned before = reported();
	EXPECT_EQ(nop(), Status::ok);
	EXPECT_EQ(reported(), before + 1);
	arm(Fault::command_twice);
	EXPECT_EQ(nop(), Status::ok);
	EXPECT_EQ(reported(), before + 3);
}

TEST_F(Mlx5Faults, CapabilityFaultMakesTheCardReportInconsistentCapabilities)
{
	const auto query = [&](std::uint32_t kind) {
		return driver
			.command(Opcode::query_hca_cap, Bytes(16), HcaCap::offset + HcaCap::size,
				 kind << 1)
			.out;
	};
	const Bytes sound = query(HcaCap::kind_general), atomic = query(HcaCap::kind_atomic);
	arm(Fault::capabilities);
	EXPECT_EQ(query(HcaCap::kind_atomic), atomic) << "only the general ones contradict";
	EXPECT_NE(query(HcaCap::kind_general), sound);
	EXPECT_EQ(query(HcaCap::kind_general), sound);
}

TEST_F(Mlx5Faults, SpuriousInterruptReachesAsyncAndCompletionVectors)
{
	for (unsigned vector = 0; vector < limits::kVectors; ++vector)
		driver.host.take_interrupts(vector);
	driver.card.interrupt_idly();
	EXPECT_EQ(driver.host.take_interrupts(0), 1u);
	EXPECT_EQ(driver.host.take_interrupts(limits::kVectors - 1), 1u);
	arm(Fault::interrupt);
	EXPECT_EQ(nop(), Status::ok);
	EXPECT_EQ(driver.host.take_interrupts(limits::kVectors - 1), 1u);
}

TEST_F(Mlx5Faults, InjectedSrqFaultFailsTheSrqAndRaisesAnSrqCatastrophicEvent)
{
	const auto pool = driver.make_rmp();
	TinyDriver::Qp target;
	ASSERT_EQ(driver.try_qp(QpService::rc, cq, target, true, 0, 0, pool.number).status,
		  Status::ok);
	driver.to_rts(target, one.number);
	const auto sender = driver.make_qp(QpService::rc, cq);
	driver.to_rts(sender, target.number);
	driver.receive(pool, 0, driver.allocate(4096), 64);
	arm(Fault::srq_list);
	driver.send(sender, 0, TinyDriver::control(TinyDriver::kSend, false));
	EXPECT_TRUE(driver.card.context()->shared_receive_queue(pool.number)->failed());
	unsigned found = 0;
	for (unsigned i = 0; i < 4; ++i) {
		const Eqe entry = driver.host.object<Eqe>(driver.async_entries + 64 * i);
		found += Eqe::owner.get(entry.bytes) == 0 &&
			 Eqe::type.get(entry.bytes) ==
				 static_cast<unsigned>(EventType::srq_catastrophic) &&
			 Eqe::number.get(entry.bytes) == pool.number;
	}
	EXPECT_EQ(found, 1u);
}

} // namespace weft::mlx5::testing
