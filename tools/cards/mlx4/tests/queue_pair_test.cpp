// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the fields that each queue pair command reads, and invalid command sequences.
#include <gtest/gtest.h>

#include "cards/mlx4/tests/tiny_driver.hpp"

namespace weft::mlx4::testing
{
namespace
{

using hw::mlx4::AddressPathLayout;
using hw::mlx4::QpContext;
namespace qp_opt = hw::mlx4::qp_opt;

constexpr std::uint32_t kQpn = TinyDriver::kFirstQp + 3;

class QueuePairTest : public ::testing::Test
{
public:
	QueuePairTest()
	{
		driver.bring_up_events();
		cq = driver.create_cq(TinyDriver::kFirstCq, 4);
		mailbox = driver.qp_mailbox(cq);
		rtr.resize(hw::mlx4::qp_mailbox_size);
		QpContext::mtu.set(context(rtr), 4);
		QpContext::remote_qpn.set(context(rtr), 0x123456);
		QpContext::next_receive_psn.set(context(rtr), 0xabcdef);
		QpContext::rra_max.set(context(rtr), 4);
		QpContext::min_rnr_timer.set(context(rtr), 12);
		std::uint8_t *path = context(rtr) + QpContext::primary_path;
		AddressPathLayout::remote_lid.set(path, 0x42);
		AddressPathLayout::sched_queue.set(path, 0x83);
		AddressPathLayout::sched_sl.set(path, 5);
		rts.resize(hw::mlx4::qp_mailbox_size);
		QpContext::next_send_psn.set(context(rts), 0x111111);
		QpContext::sra_max.set(context(rts), 3);
		QpContext::retry_count.set(context(rts), 7);
		QpContext::rnr_retry.set(context(rts), 6);
		AddressPathLayout::ack_timeout.set(context(rts) + QpContext::primary_path, 14);
	}
	static std::uint8_t *context(Mailbox &m) { return m.data() + hw::mlx4::qp_mailbox_context; }
	Status go(Opcode opcode, const Mailbox &m, std::uint32_t qpn = kQpn)
	{
		return driver.command(opcode, qpn, 0, m).status;
	}
	void to_rts()
	{
		ASSERT_EQ(go(Opcode::rst2init_qp, mailbox), Status::ok);
		ASSERT_EQ(go(Opcode::init2rtr_qp, rtr), Status::ok);
		ASSERT_EQ(go(Opcode::rtr2rts_qp, rts), Status::ok);
	}
	QueuePair &qp() { return *driver.context().queue_pair(kQpn); }
	Mailbox masked(std::uint32_t mask)
	{
		Mailbox m(hw::mlx4::qp_mailbox_size);
		hw::mlx4::qp_mailbox_opt_mask.set(m.data(), mask);
		return m;
	}

	TinyDriver driver;
	TinyDriver::Cq cq;
	Mailbox mailbox, rtr, rts;
};

TEST_F(QueuePairTest, RequiredQpFieldsAreSetByTransitionsEvenIfTheOptMaskIsZero)
{
	to_rts();
	EXPECT_EQ(qp().state, QpState::rts);
	EXPECT_EQ(qp().mtu, 4u);
	EXPECT_EQ(qp().remote_qpn, 0x123456u);
	EXPECT_EQ(qp().initial_receive_psn, 0xabcdefu);
	EXPECT_EQ(qp().log_responder_reads, 4u);
	EXPECT_EQ(qp().min_rnr_timer, 12u);
	EXPECT_EQ(qp().path.remote_lid, 0x42u);
	EXPECT_EQ(qp().path.sl, 5u);
	EXPECT_EQ(qp().path.port, 1u);
	EXPECT_EQ(qp().initial_send_psn, 0x111111u);
	EXPECT_EQ(qp().log_requester_reads, 3u);
	EXPECT_EQ(qp().retry_count, 7u);
	EXPECT_EQ(qp().rnr_retry, 6u);
	EXPECT_EQ(qp().path.ack_timeout, 14u);
}

TEST_F(QueuePairTest, Init2RtrAndRtr2RtsDoNotChangeFieldsSetByRst2Init)
{
	// Drivers leave these zero in INIT2RTR and RTR2RTS (seen: Linux).
	std::uint8_t *const c = context(mailbox);
	QpContext::reserved_lkey.set(c, 1);
	QpContext::qkey.set(c, 0x80010000);
	QpContext::remote_write.set(c, 1);
	AddressPathLayout::pkey_index.set(c + QpContext::primary_path, 9);
	const std::uint64_t record = QpContext::doorbell_record.get(c);
	to_rts();
	EXPECT_TRUE(qp().reserved_lkey);
	EXPECT_EQ(qp().qkey, 0x80010000u);
	EXPECT_TRUE(qp().remote_write);
	EXPECT_EQ(qp().path.pkey_index, 9u);
	EXPECT_EQ(qp().doorbell_record, record);
	EXPECT_EQ(qp().send_cqn, cq.number);
	EXPECT_EQ(qp().pd, 7u);
}

TEST_F(QueuePairTest, OptMaskSelectsTheFieldsThatATransitionChanges)
{
	to_rts();
	Mailbox m = masked(qp_opt::qkey | qp_opt::pkey_index | qp_opt::remote_read);
	QpContext::qkey.set(context(m), 0xb1b);
	AddressPathLayout::pkey_index.set(context(m) + QpContext::primary_path, 3);
	QpContext::remote_read.set(context(m), 1);
	QpContext::min_rnr_timer.set(context(m), 31); // not selected
	ASSERT_EQ(go(Opcode::rts2rts_qp, m), Status::ok);
	EXPECT_EQ(qp().qkey, 0xb1bu);
	EXPECT_EQ(qp().path.pkey_index, 3u);
	EXPECT_TRUE(qp().remote_read);
	EXPECT_EQ(qp().min_rnr_timer, 12u);
	EXPECT_EQ(qp().path.remote_lid, 0x42u);
}

TEST_F(QueuePairTest, InvalidTransitionsReturnBadQpState)
{
	EXPECT_EQ(go(Opcode::init2rtr_qp, rtr), Status::bad_qp_state);
	EXPECT_EQ(go(Opcode::to_err_qp, {}), Status::bad_qp_state);
	EXPECT_EQ(driver.command(Opcode::query_qp, kQpn, 0, {}, 0x100).status,
		  Status::bad_qp_state);
	ASSERT_EQ(go(Opcode::rst2init_qp, mailbox), Status::ok);
	EXPECT_EQ(go(Opcode::rst2init_qp, mailbox), Status::bad_qp_state);
	EXPECT_EQ(go(Opcode::rtr2rts_qp, rts), Status::bad_qp_state);
	EXPECT_EQ(go(Opcode::sqerr2rts_qp, rts), Status::bad_qp_state);
	ASSERT_EQ(go(Opcode::init2rtr_qp, rtr), Status::ok);
	EXPECT_EQ(go(Opcode::init2init_qp, mailbox), Status::bad_qp_state);
	ASSERT_EQ(go(Opcode::rtr2rts_qp, rts), Status::ok);
	EXPECT_EQ(go(Opcode::sqd2rts_qp, rts), Status::bad_qp_state);
}

TEST_F(QueuePairTest, TransportIsNotifiedOfEachQpStateTransition)
{
	to_rts();
	driver.command(Opcode::rts2sqd_qp, kQpn | hw::mlx4::sqd_event, 0, masked(0));
	EXPECT_TRUE(qp().sqd_event);
	go(Opcode::to_err_qp, {});
	go(Opcode::to_rst_qp, {});
	using Change = RecordingTransport::Change;
	EXPECT_EQ(driver.transport().created, std::vector<std::uint32_t>{kQpn});
	EXPECT_EQ(driver.transport().changes,
		  (std::vector<Change>{{kQpn, QpState::init, QpState::rtr},
				       {kQpn, QpState::rtr, QpState::rts},
				       {kQpn, QpState::rts, QpState::sq_draining},
				       {kQpn, QpState::sq_draining, QpState::err}}));
	EXPECT_EQ(driver.transport().destroyed, std::vector<std::uint32_t>{kQpn});
	EXPECT_EQ(driver.context().queue_pair(kQpn), nullptr);
}

TEST_F(QueuePairTest, QpNumbersThatDifferOnlyInHighBitsAreDifferentQps)
{
	// The table index has 10 bits; drivers choose the other bits freely.
	const std::uint32_t qpn = 0xabc000 | kQpn;
	ASSERT_EQ(go(Opcode::rst2init_qp, mailbox, qpn), Status::ok);
	EXPECT_NE(driver.context().queue_pair(qpn), nullptr);
	EXPECT_EQ(driver.context().queue_pair(kQpn), nullptr) << "an alias of it";
	EXPECT_EQ(go(Opcode::rst2init_qp, mailbox, kQpn), Status::bad_qp_state) << "same slot";
	EXPECT_EQ(go(Opcode::init2rtr_qp, rtr, kQpn), Status::bad_qp_state);
	EXPECT_EQ(go(Opcode::init2rtr_qp, rtr, qpn), Status::ok);
}

TEST_F(QueuePairTest, QueueWithTheLargerStrideIsFirstInTheBuffer)
{
	ASSERT_EQ(go(Opcode::rst2init_qp, mailbox), Status::ok); // SQ stride 64, RQ stride 16
	EXPECT_EQ(qp().send_queue.offset, 0u);
	EXPECT_EQ(qp().receive_queue.offset, 16u * 64);
	go(Opcode::to_rst_qp, {});
	QpContext::log_rq_stride.set(context(mailbox), 3);
	ASSERT_EQ(go(Opcode::rst2init_qp, mailbox), Status::ok); // RQ stride 128
	EXPECT_EQ(qp().receive_queue.offset, 0u);
	EXPECT_EQ(qp().send_queue.offset, 16u * 128);
	go(Opcode::to_rst_qp, {});
	QpContext::log_rq_stride.set(context(mailbox), 2);
	ASSERT_EQ(go(Opcode::rst2init_qp, mailbox), Status::ok); // equal
	EXPECT_EQ(qp().send_queue.offset, 0u);
}

TEST_F(QueuePairTest, ReceiveQueueFieldsAreIgnoredIfAnSrqIsUsed)
{
	hw::mlx4::SrqContext srq{};
	hw::mlx4::SrqContext::log_size.set(srq.bytes, 4);
	hw::mlx4::SrqContext::log_stride.set(srq.bytes, 1);
	ASSERT_EQ(driver.command(Opcode::sw2hw_srq, TinyDriver::kFirstSrq, 0, srq.bytes).status,
		  Status::ok);
	QpContext::srq_enable.set(context(mailbox), 1);
	QpContext::srqn.set(context(mailbox), TinyDriver::kFirstSrq);
	QpContext::log_rq_size.set(context(mailbox), 15);
	QpContext::log_rq_stride.set(context(mailbox), 4);
	ASSERT_EQ(go(Opcode::rst2init_qp, mailbox), Status::ok);
	EXPECT_FALSE(qp().receive_queue.present);
	EXPECT_EQ(qp().send_queue.offset, 0u);
	EXPECT_TRUE(qp().send_queue.present);
}

TEST_F(QueuePairTest, QpCreationThatRefersToInvalidObjectsIsRefused)
{
	const auto with = [&](auto &&change) {
		Mailbox m = mailbox;
		change(context(m));
		const Status status = go(Opcode::rst2init_qp, m);
		go(Opcode::to_rst_qp, {});
		return status;
	};
	EXPECT_EQ(go(Opcode::rst2init_qp, mailbox, 63), Status::bad_resource) << "reserved";
	EXPECT_EQ(with([](auto *c) { QpContext::service_type.set(c, 2); }), Status::bad_parameter);
	EXPECT_EQ(with([](auto *c) { QpContext::service_type.set(c, 7); }), Status::bad_parameter)
		<< "a special queue pair elsewhere than configured";
	EXPECT_EQ(with([](auto *c) { QpContext::send_cqn.set(c, 400); }), Status::bad_resource);
	EXPECT_EQ(with([](auto *c) { QpContext::receive_cqn.set(c, 0xffffff); }),
		  Status::bad_resource);
	EXPECT_EQ(with([](auto *c) { QpContext::srq_enable.set(c, 1); }), Status::bad_resource);
	EXPECT_EQ(with([](auto *c) { QpContext::uar_page.set(c, 0xffffff); }),
		  Status::bad_parameter);
	EXPECT_EQ(with([](auto *c) { QpContext::log_page_size.set(c, 63); }),
		  Status::bad_parameter);
	EXPECT_EQ(with([](auto *) {}), Status::ok);
	driver.immediate(Opcode::unmap_icm, 64, TinyDriver::kQpcBase);
	EXPECT_EQ(with([](auto *) {}), Status::icm_error);
}

TEST_F(QueuePairTest, RefusedTransitionChangesNothing)
{
	ASSERT_EQ(go(Opcode::rst2init_qp, mailbox), Status::ok);
	Mailbox bad = rtr;
	AddressPathLayout::sched_port.set(context(bad) + QpContext::primary_path, 1);
	EXPECT_EQ(go(Opcode::init2rtr_qp, bad), Status::bad_parameter) << "there is no port 2";
	EXPECT_EQ(qp().state, QpState::init);
	EXPECT_EQ(qp().remote_qpn, 0u);
	bad = rtr;
	QpContext::mtu.set(context(bad), 7);
	EXPECT_EQ(go(Opcode::init2rtr_qp, bad), Status::bad_parameter);
	bad = rtr;
	hw::mlx4::qp_mailbox_opt_mask.set(bad.data(), qp_opt::alternate_path);
	EXPECT_EQ(go(Opcode::init2rtr_qp, bad), Status::bad_parameter)
		<< "there is no path migration";
	EXPECT_TRUE(driver.transport().changes.empty());
}

TEST_F(QueuePairTest, QueryQpReturnsTheQpContext)
{
	to_rts();
	auto result = driver.command(Opcode::query_qp, kQpn, 0, {}, 0x100);
	ASSERT_EQ(result.status, Status::ok);
	std::uint8_t *const c = context(result.out);
	EXPECT_EQ(QpContext::state.get(c), 3u);
	EXPECT_EQ(QpContext::mtu.get(c), 4u);
	EXPECT_EQ(QpContext::remote_qpn.get(c), 0x123456u);
	EXPECT_EQ(QpContext::next_send_psn.get(c), 0x111111u);
	EXPECT_EQ(QpContext::next_receive_psn.get(c), 0xabcdefu);
	EXPECT_EQ(QpContext::retry_count.get(c), 7u);
	EXPECT_EQ(AddressPathLayout::remote_lid.get(c + QpContext::primary_path), 0x42u);
	EXPECT_EQ(AddressPathLayout::sched_sl.get(c + QpContext::primary_path), 5u);
	EXPECT_EQ(AddressPathLayout::ack_timeout.get(c + QpContext::primary_path), 14u);
}

TEST_F(QueuePairTest, SpecialQpsAreNumberedFromTheConfiguredBase)
{
	EXPECT_EQ(driver.command(Opcode::conf_special_qp, 132).status, Status::bad_index);
	EXPECT_EQ(driver.command(Opcode::conf_special_qp, 1024).status, Status::bad_index);
	ASSERT_EQ(driver.command(Opcode::conf_special_qp, 128).status, Status::ok);
	QpContext::service_type.set(context(mailbox), 3);
	EXPECT_EQ(go(Opcode::rst2init_qp, mailbox, 128), Status::bad_parameter) << "not MLX";
	QpContext::service_type.set(context(mailbox), 7);
	ASSERT_EQ(go(Opcode::rst2init_qp, mailbox, 128), Status::ok);
	EXPECT_EQ(go(Opcode::rst2init_qp, mailbox, 129), Status::bad_parameter) << "no port 2";
	ASSERT_EQ(go(Opcode::rst2init_qp, mailbox, 130), Status::ok);
	EXPECT_EQ(driver.context().special_queue_pair(1, 0)->qpn, 128u);
	EXPECT_EQ(driver.context().special_queue_pair(1, 1)->qpn, 130u);
	EXPECT_EQ(driver.context().queue_pair(130)->special, 1);
	EXPECT_EQ(driver.context().special_qps.kind(132), -1);
	EXPECT_EQ(driver.command(Opcode::conf_special_qp, 128).status, Status::resource_busy);
}

TEST_F(QueuePairTest, SendDoorbellReachesOnlyItsOwnQueuePair)
{
	to_rts();
	const auto ring = [&](std::uint32_t page, std::uint32_t qpn) {
		driver.host.write<std::uint32_t>(2, 4096ull * page + 0x14,
						 __builtin_bswap32(qpn << 8));
	};
	ring(TinyDriver::kUarPage, kQpn);
	EXPECT_EQ(driver.transport().doorbells, std::vector<std::uint32_t>{kQpn});
	ring(TinyDriver::kUarPage + 1, kQpn);
	ring(TinyDriver::kUarPage, kQpn + 1);
	ring(TinyDriver::kUarPage, kQpn + 1024);
	EXPECT_EQ(driver.transport().doorbells.size(), 1u);
	EXPECT_EQ(driver.context().diagnostics.bad_doorbells, 3u);
	EXPECT_EQ(driver.card.activity().send_doorbells, 4u);
}

} // namespace
} // namespace weft::mlx4::testing
