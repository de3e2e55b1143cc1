// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests each row of the InfiniBand specification's error tables on queues of an InfiniHost: two
// queue pairs of one port, connected to each other.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

#include "cards/hca/testing/error_table.hpp"
#include "cards/mthca/tests/tiny_driver.hpp"
#include "cards/mellanox_icm/codes.hpp"

namespace weft::mthca::testing
{

using hca::testing::ErrorCase;
using hca::testing::ErrorRow;
using hca::testing::Fault;
using hca::testing::operation_bit;
using hw::mthca::CqContext;
using hw::mthca::Cqe;
using hw::mthca::QpContext;
using hw::mthca::WqeNext;
using hw::mellanox_icm::CqeSyndrome;
using hw::mellanox_icm::Eqe;
using hw::mellanox_icm::EventType;
using hw::mellanox_icm::WqeAtomic;
using hw::mellanox_icm::WqeData;
using hw::mellanox_icm::WqeRemoteAddress;
namespace uar = hw::mthca::uar;

namespace
{

constexpr std::uint32_t kMessageBytes = 64;
constexpr std::uint32_t kOtherPd = TinyDriver::kPd + 1;
constexpr unsigned kLogQueue = 3, kLogCq = 3;
constexpr std::uint32_t kStride = 64;

// The accesses that a key permits.
enum Rights : unsigned { kRead = 1, kLocalWrite = 2, kRemote = 4 };

struct Key {
	std::uint64_t address = 0;
	std::uint32_t key = 0;

	WqeData piece(std::uint64_t offset, std::uint32_t bytes) const
	{
		return {bytes, key, address + offset};
	}
};

// One end of the connection, as its driver uses it.
struct End {
	std::uint32_t qpn, cqn, ci_record, receive_record, send_record;
	std::uint64_t cq = 0, send_queue = 0, receive_queue = 0;
	std::uint32_t consumed = 0;
	std::uint8_t mailbox[hw::mthca::qp_mailbox_size]{};

	std::uint8_t *context() { return mailbox + hw::mellanox_icm::qp_mailbox_context; }
};

// One operation from the requester to the responder, with one fault.
class MthcaConnection : public ::testing::Test
{
public:
	explicit MthcaConnection(const ErrorCase &each, QpState requester_state = QpState::rts)
	    : opcode(each.opcode), row(hca::testing::kErrorRows[each.row]),
	      first_state(requester_state)
	{
	}

	const hca::SendOpcode opcode;
	const ErrorRow &row;
	const QpState first_state;
	const bool atomic = (operation_bit(opcode) & hca::testing::kAtomics) != 0;

	TinyDriver driver;
	End requester{0x0e0020, 0x010020, 500, 499, 2}, responder{0x0e0021, 0x010021, 501, 498, 3};

	Key make_key(unsigned rights = kRead | kLocalWrite | kRemote,
		     std::uint32_t pd = TinyDriver::kPd)
	{
		using Mpt = hw::mthca::MptEntry;
		using Family = hw::mlx4::MptEntry;
		const std::uint32_t index = next_key_++;
		const Key key{driver.allocate(8192), index << 8 | 0x77};
		Mpt mpt{};
		Family::physical.set(mpt.bytes, 1);
		Family::region.set(mpt.bytes, 1);
		Family::local_read.set(mpt.bytes, (rights & kRead) != 0);
		Family::local_write.set(mpt.bytes, (rights & kLocalWrite) != 0);
		for (const auto *right :
		     {&Family::remote_read, &Family::remote_write, &Family::remote_atomic})
			right->set(mpt.bytes, (rights & kRemote) != 0);
		Family::status.set(mpt.bytes, 0xf);
		Mpt::mem_key.set(mpt.bytes, 0x77000000 | index);
		Mpt::pd.set(mpt.bytes, pd);
		Mpt::start.set(mpt.bytes, key.address);
		Mpt::length.set(mpt.bytes, 8192);
		EXPECT_EQ(driver.command(Opcode::sw2hw_mpt, index, 0, mpt.bytes).status,
			  Status::ok);
		return key;
	}

	void make_end(End &end, const End &peer)
	{
		end.cq = driver.allocate(32 << kLogCq);
		for (std::uint32_t i = 0; i < 1u << kLogCq; ++i)
			driver.host.object<Cqe>(end.cq + 32 * i).owner = Cqe::owner_bit;
		CqContext cq{};
		CqContext::start.set(cq.bytes, end.cq);
		CqContext::log_size.set(cq.bytes, kLogCq);
		CqContext::uar_page.set(cq.bytes, TinyDriver::kUar);
		CqContext::eqn.set(cq.bytes, TinyDriver::kEqn);
		CqContext::pd.set(cq.bytes, TinyDriver::kPd);
		CqContext::lkey.set(cq.bytes, TinyDriver::kKey);
		CqContext::ci_record.set(cq.bytes, end.ci_record);
		CqContext::arm_record.set(cq.bytes, end.ci_record - 490);
		ASSERT_EQ(driver.command(Opcode::sw2hw_cq, end.cqn, 0, cq.bytes).status,
			  Status::ok);

		end.receive_queue = driver.allocate(kStride << kLogQueue);
		end.send_queue = driver.allocate(kStride << kLogQueue);
		std::uint8_t *const qp = end.context();
		for (const auto *size : {&QpContext::log_sq_size, &QpContext::log_rq_size})
			size->set(qp, kLogQueue);
		for (const auto *stride : {&QpContext::log_sq_stride, &QpContext::log_rq_stride})
			stride->set(qp, 2);
		QpContext::uar_page.set(qp, TinyDriver::kUar);
		QpContext::pd.set(qp, TinyDriver::kPd);
		QpContext::wqe_lkey.set(qp, TinyDriver::kKey);
		QpContext::send_cqn.set(qp, end.cqn);
		QpContext::receive_cqn.set(qp, end.cqn);
		hw::mellanox_icm::store_be32(qp, QpContext::send_base.offset,
					     static_cast<std::uint32_t>(end.send_queue));
		hw::mellanox_icm::store_be32(qp, QpContext::receive_base.offset,
					     static_cast<std::uint32_t>(end.receive_queue));
		QpContext::send_record.set(qp, end.send_record);
		QpContext::receive_record.set(qp, end.receive_record);
		const bool open = row.fault != Fault::remote_qp_lacks_the_right;
		for (const auto *right :
		     {&QpContext::remote_read, &QpContext::remote_write, &QpContext::remote_atomic})
			right->set(qp, open);
		using Path = hw::mthca::PathLayout;
		std::uint8_t *const path = qp + QpContext::primary_path;
		Path::port.set(path, 1);
		ASSERT_EQ(driver.command(Opcode::rst2init_qp, end.qpn, 0, end.mailbox).status,
			  Status::ok);
		QpContext::mtu.set(qp, static_cast<std::uint32_t>(ib::Mtu::mtu_1024));
		QpContext::log_max_message.set(
			qp, row.fault == Fault::message_above_the_maximum ? 12 : 31);
		QpContext::remote_qpn.set(qp, peer.qpn);
		QpContext::retry_count.set(qp, row.requester == Syndrome::retry_exceeded ? 1 : 7);
		Path::remote_lid.set(path, kLid);
		Path::ack_timeout.set(path, 10);
	}
	void to_rtr(End &end)
	{
		ASSERT_EQ(driver.command(Opcode::init2rtr_qp, end.qpn, 0, end.mailbox).status,
			  Status::ok);
	}
	void to_rts(End &end)
	{
		ASSERT_EQ(driver.command(Opcode::rtr2rts_qp, end.qpn, 0, end.mailbox).status,
			  Status::ok);
	}

	void SetUp() override
	{
		driver.bring_up();
		CardPort &port = *driver.context().port(1);
		port.info().lid = std::uint16_t{kLid};
		port.info().set_state(ib::PortState::active);
		from = make_key();
		to = make_key();
		received = make_key();
		make_end(requester, responder);
		make_end(responder, requester);
		if (first_state >= QpState::rtr)
			to_rtr(requester);
		if (first_state >= QpState::rts)
			to_rts(requester);
		post_receive();
		if (row.fault != Fault::responder_in_init) {
			to_rtr(responder);
			if (row.fault != Fault::responder_in_rtr)
				to_rts(responder);
		}
		if (row.fault == Fault::responder_in_error) {
			ASSERT_EQ(driver.command(Opcode::to_err_qp, responder.qpn).status,
				  Status::ok);
		}
		settle();
		while (Eqe::type.get(driver.next_event().bytes) != 0xff) {
		}
	}

	std::optional<WqeData> local_piece()
	{
		const std::uint32_t bytes = atomic ? 8 : kMessageBytes;
		switch (row.fault) {
		case Fault::local_key_unknown:
			return WqeData{bytes, from.key ^ 1, from.address};
		case Fault::local_key_of_another_pd:
			return make_key(kRead | kLocalWrite, kOtherPd).piece(0, bytes);
		case Fault::local_buffer_beyond_its_region:
			return from.piece(8192 - bytes + 1, bytes);
		case Fault::local_region_not_writable:
			return make_key(kRead).piece(0, bytes);
		case Fault::message_above_the_maximum:
			return from.piece(0, 4097);
		case Fault::atomic_buffer_of_4_bytes:
			return from.piece(0, 4);
		case Fault::atomic_buffer_of_7_bytes:
			return from.piece(0, 7);
		case Fault::atomic_buffer_of_9_bytes:
			return from.piece(0, 9);
		case Fault::atomic_buffer_of_16_bytes:
			return from.piece(0, 16);
		case Fault::no_local_buffer:
		case Fault::remote_key_unknown_for_no_bytes:
			return std::nullopt;
		default:
			return from.piece(0, bytes);
		}
	}
	WqeRemoteAddress remote()
	{
		const std::uint32_t bytes = atomic ? 8 : kMessageBytes;
		switch (row.fault) {
		case Fault::remote_key_unknown:
		case Fault::remote_key_unknown_for_no_bytes:
			return {to.address, to.key ^ 1, 0};
		case Fault::remote_key_of_another_pd: {
			const Key foreign = make_key(kRead | kLocalWrite | kRemote, kOtherPd);
			return {foreign.address, foreign.key, 0};
		}
		case Fault::remote_range_beyond_its_region:
			return {to.address + 8192 - bytes + 8, to.key, 0};
		case Fault::remote_range_beyond_the_address_space:
			return {~std::uint64_t{0} - 10, to.key, 0};
		case Fault::remote_key_lacks_the_right: {
			const Key closed = make_key(kRead | kLocalWrite);
			return {closed.address, closed.key, 0};
		}
		case Fault::remote_address_misaligned:
			return {to.address + 4, to.key, 0};
		default:
			return {to.address, to.key, 0};
		}
	}

	// The first request of the queue: the last WQE of the ring describes it.
	void post_send()
	{
		std::uint64_t at = requester.send_queue;
		const auto add = [&](const auto &segment) {
			std::memcpy(driver.host.memory(at, sizeof(segment)).data(), &segment,
				    sizeof(segment));
			at += sizeof(segment);
		};
		WqeNext own{};
		own.flags = WqeNext::completion | WqeNext::always;
		add(own);
		if (!(operation_bit(opcode) & hca::testing::kSends))
			add(remote());
		if (atomic)
			add(WqeAtomic{1, 0});
		if (row.fault == Fault::data_inside_the_request)
			add(WqeData{WqeData::inline_bit | 8, 0, 0});
		else if (const auto piece = local_piece())
			add(*piece);
		const auto units = static_cast<std::uint32_t>((at - requester.send_queue) / 16);
		const auto code = static_cast<std::uint32_t>(mellanox_icm::wqe_opcode(opcode));
		auto &link = driver.host.object<WqeNext>(requester.send_queue + kStride * 7);
		link.next_word = static_cast<std::uint32_t>(requester.send_queue) | code;
		link.size_word = WqeNext::doorbell | units;
		driver.record(requester.send_record) = 1;
		ring(units);
	}
	void ring(std::uint32_t units)
	{
		const auto code = static_cast<std::uint32_t>(mellanox_icm::wqe_opcode(opcode));
		const std::uint64_t place = uar::page_size * TinyDriver::kUar + uar::send_doorbell;
		driver.write_be32(2, place, 1u << 24 | code);
		driver.write_be32(2, place + 4, requester.qpn << 8 | units);
	}
	void post_receive()
	{
		WqeData piece = received.piece(0, 8192);
		switch (row.fault) {
		case Fault::no_receive:
			return;
		case Fault::receive_too_short:
			piece.byte_count = kMessageBytes - 1;
			break;
		case Fault::receive_key_unknown:
			piece.lkey = received.key ^ 1;
			break;
		case Fault::receive_key_of_another_pd:
			piece = make_key(kRead | kLocalWrite, kOtherPd).piece(0, 8192);
			break;
		case Fault::receive_region_not_writable:
			piece = make_key(kRead).piece(0, 8192);
			break;
		default:
			break;
		}
		driver.host.object<WqeData>(responder.receive_queue + 16) = piece;
		driver.host.object<WqeData>(responder.receive_queue +
					    32) = {0, hw::mthca::terminator_lkey, 0};
		driver.record(responder.receive_record) = 1;
	}

	void settle()
	{
		while (driver.host.loop().poll()) {
		}
	}
	std::optional<Cqe> poll(End &end)
	{
		auto &entry =
			driver.host.object<Cqe>(end.cq + 32 * (end.consumed % (1u << kLogCq)));
		if (entry.owner & Cqe::owner_bit)
			return std::nullopt;
		const Cqe got = entry;
		entry.owner = Cqe::owner_bit;
		driver.record(end.ci_record) = ++end.consumed;
		return got;
	}
	Cqe wait(End &end)
	{
		const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
		for (;;) {
			settle();
			if (const auto got = poll(end))
				return *got;
			if (std::chrono::steady_clock::now() > limit)
				break;
			std::this_thread::sleep_for(std::chrono::microseconds(50));
		}
		ADD_FAILURE() << "no completion came";
		return {};
	}
	static CqeSyndrome syndrome_of(const Cqe &cqe)
	{
		return cqe.is_error() ? static_cast<CqeSyndrome>(cqe.syndrome())
				      : CqeSyndrome::none;
	}
	QpState state(const End &end) { return driver.context().queue_pair(end.qpn)->state; }

	static constexpr std::uint16_t kLid = 7;
	Key from, to, received;

private:
	std::uint32_t next_key_ = 0x30;
};

class MthcaErrors : public MthcaConnection, public ::testing::WithParamInterface<ErrorCase>
{
protected:
	MthcaErrors() : MthcaConnection(GetParam()) {}
};

// The first row is a SEND without a fault.
class MthcaStates : public MthcaConnection, public ::testing::WithParamInterface<QpState>
{
protected:
	MthcaStates() : MthcaConnection({hca::SendOpcode::send, 0}, GetParam()) {}
};

// A doorbell before RTS does nothing (IBA 10.8.2). The next doorbell executes the request, which is
// still in the queue.
TEST_P(MthcaStates, SendDoorbellsBeforeTheRtsStateAreIgnored)
{
	post_send();
	if (first_state == QpState::init)
		to_rtr(requester);
	to_rts(requester);
	settle();
	EXPECT_FALSE(poll(requester));
	EXPECT_FALSE(poll(responder));
	ring(1);
	EXPECT_EQ(syndrome_of(wait(requester)), CqeSyndrome::none);
	EXPECT_EQ(syndrome_of(wait(responder)), CqeSyndrome::none);
}

INSTANTIATE_TEST_SUITE_P(Reliable, MthcaStates, ::testing::Values(QpState::init, QpState::rtr),
			 [](const auto &each) {
				 return each.param == QpState::init ? "init" : "rtr";
			 });

TEST_P(MthcaErrors, RequesterAndResponderReportTheSpecifiedErrors)
{
	const auto memory = driver.host.memory(to.address, 8192);
	std::ranges::fill(memory, std::byte{0x5a});
	post_send();
	const Cqe sent = wait(requester);
	EXPECT_TRUE(sent.is_send & Cqe::send_bit);
	EXPECT_EQ(syndrome_of(sent), mellanox_icm::cqe_syndrome(row.requester));
	EXPECT_EQ(state(requester), row.requester == Syndrome::none ? QpState::rts : QpState::err);
	if (row.receive) {
		const Cqe completed = wait(responder);
		EXPECT_FALSE(completed.is_send & Cqe::send_bit);
		EXPECT_EQ(syndrome_of(completed), mellanox_icm::cqe_syndrome(*row.receive));
	}
	settle();
	EXPECT_FALSE(poll(requester)) << "a second completion of the request";
	EXPECT_FALSE(poll(responder)) << "a completion that is not due";
	EXPECT_EQ(state(responder) == QpState::err, row.responder_fails);

	unsigned events = 0;
	for (Eqe event = driver.next_event(); Eqe::type.get(event.bytes) != 0xff;
	     event = driver.next_event()) {
		const auto type = static_cast<EventType>(Eqe::type.get(event.bytes));
		if (type == EventType::completion || type == EventType::command)
			continue;
		events++;
		EXPECT_EQ(Eqe::number.get(event.bytes), responder.qpn);
		EXPECT_EQ(type, row.event ? mellanox_icm::event_type(*row.event) : type);
	}
	EXPECT_EQ(events, row.event ? 1u : 0u);
	const bool too_late = atomic && row.requester == Syndrome::local_protection;
	if (row.requester != Syndrome::none && !too_late) {
		EXPECT_TRUE(std::ranges::all_of(memory, [](std::byte byte) {
			return byte == std::byte{0x5a};
		})) << "memory was changed";
	}
}

// This card has neither SEND with invalidate nor masked atomics.
constexpr hca::testing::Operations kOffered = hca::testing::kAllOperations &
					      ~hca::testing::kSendWithInvalidate &
					      ~operation_bit(hca::SendOpcode::masked_compare_swap) &
					      ~operation_bit(hca::SendOpcode::masked_fetch_add);
constexpr auto kCases = hca::testing::error_cases<kOffered>();
INSTANTIATE_TEST_SUITE_P(Reliable, MthcaErrors, ::testing::ValuesIn(kCases),
			 [](const auto &each) { return hca::testing::case_name(each.param); });

} // namespace
} // namespace weft::mthca::testing
