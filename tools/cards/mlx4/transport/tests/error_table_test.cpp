// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Tests each row of the InfiniBand specification's error tables on queues of a ConnectX-2.
 */
#include <gtest/gtest.h>

#include "cards/mlx4/transport/tests/pair.hpp"
#include "cards/hca/testing/error_table.hpp"
#include "cards/mellanox_icm/codes.hpp"

namespace weft::mlx4::transport
{

using hca::SendOpcode;
using hca::Syndrome;
using hca::testing::ErrorCase;
using hca::testing::ErrorRow;
using hca::testing::Fault;
using hw::mlx4::MptEntry;

namespace
{

constexpr std::uint32_t kMessageBytes = 64;
constexpr std::uint32_t kOtherPd = 8;
/* Rights for Node::region(). */
constexpr std::uint32_t kLocalRead = 1, kLocalOnly = 3;

/* Executes one operation from a to b with one fault. */
class Operation : public ConnectedPair
{
public:
	explicit Operation(const ErrorCase &each)
	    : opcode(each.opcode), row(hca::testing::kErrorRows[each.row])
	{
	}

	const SendOpcode opcode;
	const ErrorRow &row;
	const bool atomic = (hca::testing::operation_bit(opcode) & hca::testing::kAtomics) != 0;

	Region from = a.region(8192), to = b.region(8192), received = b.region(8192);

	/* Returns a key that a SEND may invalidate, except for the fault of the row. */
	std::uint32_t key_to_invalidate()
	{
		const bool foreign = row.fault == Fault::invalidated_key_of_another_pd;
		const Region region = b.region(4096, kAllRights, foreign ? kOtherPd : 7);
		MptEntry entry{};
		MptEntry::region.set(entry.bytes,
				     row.fault != Fault::invalidated_key_of_a_type_1_window);
		MptEntry::fast_register_enable.set(
			entry.bytes, row.fault != Fault::invalidated_key_of_an_ordinary_region);
		MptEntry::remote_access_enable.set(entry.bytes, 1);
		MptEntry::remote_invalidate_enable.set(
			entry.bytes,
			row.fault != Fault::invalidated_key_not_open_to_the_remote_side);
		MptEntry::mem_key.set(entry.bytes, hw::mlx4::mpt_key(region.key));
		MptEntry::pd.set(entry.bytes, foreign ? kOtherPd : 7);
		b.write_mpt(region.key, entry);
		return row.fault == Fault::invalidated_key_unknown ? region.key ^ 1 : region.key;
	}

	std::optional<WqeData> local_piece()
	{
		const std::uint32_t bytes = atomic ? 8 : kMessageBytes;
		switch (row.fault) {
		case Fault::local_key_unknown:
			return WqeData{bytes, from.key ^ 1, from.address};
		case Fault::local_key_of_another_pd:
			return a.region(4096, kAllRights, kOtherPd).piece(0, bytes);
		case Fault::local_buffer_beyond_its_region:
			return from.piece(from.length - bytes + 1, bytes);
		case Fault::local_region_not_writable:
			return a.region(4096, kLocalRead).piece(0, bytes);
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
		case Fault::remote_key_of_another_pd:
			return {to.address, b.region(4096, kAllRights, kOtherPd).key, 0};
		case Fault::remote_range_beyond_its_region:
			/* The address is aligned, because alignment is checked first. */
			return {to.address + to.length - bytes + 8, to.key, 0};
		case Fault::remote_range_beyond_the_address_space:
			return {~std::uint64_t{0} - 10, to.key, 0};
		case Fault::remote_key_lacks_the_right: {
			const Region closed = b.region(4096, kLocalOnly);
			return {closed.address, closed.key, 0};
		}
		case Fault::remote_address_misaligned:
			return {to.address + 4, to.key, 0};
		default:
			return {to.address, to.key, 0};
		}
	}

	std::vector<std::byte> request()
	{
		WqeBuilder builder(mellanox_icm::wqe_opcode(opcode));
		const auto bit = hca::testing::operation_bit(opcode);
		if (!(bit & hca::testing::kSends))
			builder.add(remote());
		if (opcode == SendOpcode::masked_compare_swap)
			builder.add(WqeMaskedAtomic{1, 0, ~std::uint64_t{0}, ~std::uint64_t{0}});
		else if (atomic)
			builder.add(WqeAtomic{1, 0});
		if (row.fault == Fault::data_inside_the_request)
			builder.inline_bytes(8);
		else if (const auto piece = local_piece())
			builder.add(*piece);
		auto wqe = builder.done();
		if (opcode == SendOpcode::send_invalidate) {
			const ib::be32 key = key_to_invalidate();
			std::memcpy(wqe.data() + offsetof(WqeControl, immediate), &key, 4);
		}
		return wqe;
	}

	void post_receive()
	{
		switch (row.fault) {
		case Fault::no_receive:
			return;
		case Fault::receive_too_short:
			return b.post_receive(*qp_b, {received.piece(0, kMessageBytes - 1)});
		case Fault::receive_key_unknown:
			return b.post_receive(*qp_b, {{8192, received.key ^ 1, received.address}});
		case Fault::receive_key_of_another_pd:
			return b.post_receive(*qp_b,
					      {b.region(8192, kAllRights, kOtherPd).piece()});
		case Fault::receive_region_not_writable:
			return b.post_receive(*qp_b, {b.region(8192, kLocalRead).piece()});
		default:
			return b.post_receive(*qp_b, {received.piece()});
		}
	}

	void make_pair()
	{
		QpOptions options;
		options.rnr_retry = 0;
		if (row.requester == Syndrome::retry_exceeded)
			options.retry_count = 1;
		reconnect(options);
		if (row.fault == Fault::responder_in_init || row.fault == Fault::responder_in_rtr) {
			const QpOptions &same = options;
			b.destroy(*qp_b);
			qp_b = &b.create_qp(same, cq_b, cq_b);
			b.connect(*qp_b, a, *qp_a, same,
				  row.fault == Fault::responder_in_init ? QpState::init
									: QpState::rtr);
			a.connect(*qp_a, b, *qp_b, same);
		}
		if (row.fault == Fault::message_above_the_maximum)
			qp_a->log_max_message = 12;
		if (row.fault == Fault::remote_qp_lacks_the_right)
			qp_b->remote_read = qp_b->remote_write = qp_b->remote_atomic = false;
		post_receive();
		if (row.fault == Fault::responder_in_error)
			b.modify(*qp_b, QpState::err);
		settle();
		b.take_events();
	}
};

class ErrorTable : public Operation, public ::testing::WithParamInterface<ErrorCase>
{
protected:
	ErrorTable() : Operation(GetParam()) {}
};

/* The effect of a doorbell in a state of the requester (IBA 10.3.1, 10.8.2). */
enum class Effect : std::uint8_t { dropped, executed, executed_in_rts, flushed };

struct StateRow {
	QpState state;
	Effect effect;
};

constexpr StateRow kStateRows[] = {
	{QpState::init, Effect::dropped}, {QpState::rtr, Effect::dropped},
	{QpState::rts, Effect::executed}, {QpState::sqd, Effect::executed_in_rts},
	{QpState::err, Effect::flushed},
};

/* The first rows have no fault. */
constexpr ErrorCase good(SendOpcode opcode)
{
	const bool receives = hca::testing::operation_bit(opcode) & hca::testing::kWithReceive;
	return {opcode, receives ? 0u : 1u};
}

class RequesterStates : public Operation,
			public ::testing::WithParamInterface<std::tuple<SendOpcode, StateRow>>
{
protected:
	RequesterStates() : Operation(good(std::get<SendOpcode>(GetParam()))) {}

	void reach(QpState state)
	{
		if (state == QpState::init || state == QpState::rtr) {
			a.destroy(*qp_a);
			qp_a = &a.create_qp({}, cq_a, cq_a);
			b.destroy(*qp_b);
			qp_b = &b.create_qp({}, cq_b, cq_b);
			b.connect(*qp_b, a, *qp_a, {});
			a.connect(*qp_a, b, *qp_b, {}, state);
		} else if (state == QpState::sqd) {
			a.modify(*qp_a, QpState::sq_draining);
		} else if (state == QpState::err) {
			a.modify(*qp_a, QpState::err);
		}
		settle();
		ASSERT_EQ(qp_a->state, state);
	}
};

} // namespace

TEST_P(RequesterStates, SendDoorbellHasTheSpecifiedEffectInEachQpState)
{
	const auto [state, effect] = std::get<StateRow>(GetParam());
	reach(state);
	post_receive();
	a.post_send(*qp_a, request());
	settle();
	std::optional<Completion> sent = a.poll_cq(cq_a);
	if (effect == Effect::executed || effect == Effect::flushed) {
		ASSERT_TRUE(sent);
		EXPECT_EQ(sent->syndrome,
			  effect == Effect::flushed ? CqeSyndrome::flushed : CqeSyndrome::none);
	} else {
		EXPECT_FALSE(sent) << "completed in a state that sends nothing";
		if (state == QpState::init)
			a.modify(*qp_a, QpState::rtr);
		a.modify(*qp_a, QpState::rts);
		settle();
		sent = a.poll_cq(cq_a);
		EXPECT_EQ(sent.has_value(), effect == Effect::executed_in_rts);
	}
	const bool executed = effect == Effect::executed || effect == Effect::executed_in_rts;
	const auto received_one = b.poll_cq(cq_b);
	EXPECT_EQ(received_one.has_value(), executed && row.receive);
	if (effect != Effect::dropped)
		return;
	/* The next doorbell executes the request, which is still in the queue. */
	a.ring(*qp_a);
	settle();
	sent = a.poll_cq(cq_a);
	ASSERT_TRUE(sent);
	EXPECT_EQ(sent->syndrome, CqeSyndrome::none);
}

std::string state_case_name(const ::testing::TestParamInfo<RequesterStates::ParamType> &info)
{
	constexpr const char *states[] = {"reset", "init", "rtr", "rts", "sqer", "sqd", "err"};
	const StateRow &row = std::get<StateRow>(info.param);
	return std::string(hca::testing::operation_name(std::get<SendOpcode>(info.param))) +
	       "__in_" + states[static_cast<unsigned>(row.state)];
}

constexpr SendOpcode kOperations[] = {
	SendOpcode::send,
	SendOpcode::send_imm,
	SendOpcode::send_invalidate,
	SendOpcode::rdma_write,
	SendOpcode::rdma_write_imm,
	SendOpcode::rdma_read,
	SendOpcode::compare_swap,
	SendOpcode::fetch_add,
	SendOpcode::masked_compare_swap,
	SendOpcode::masked_fetch_add,
};
INSTANTIATE_TEST_SUITE_P(Reliable, RequesterStates,
			 ::testing::Combine(::testing::ValuesIn(kOperations),
					    ::testing::ValuesIn(kStateRows)),
			 state_case_name);

TEST_P(ErrorTable, RequesterAndResponderReportTheSpecifiedErrors)
{
	make_pair();
	const auto wqe = request();
	fill(b.bytes(to));
	const std::vector<std::byte> before(b.bytes(to).begin(), b.bytes(to).end());
	a.post_send(*qp_a, wqe);

	const Completion sent = wait(a, cq_a);
	EXPECT_TRUE(sent.is_send);
	EXPECT_EQ(sent.syndrome, mellanox_icm::cqe_syndrome(row.requester));
	EXPECT_EQ(qp_a->state, row.requester == Syndrome::none ? QpState::rts : QpState::err);

	if (row.receive) {
		const Completion completed = wait(b, cq_b);
		EXPECT_FALSE(completed.is_send);
		EXPECT_EQ(completed.syndrome, mellanox_icm::cqe_syndrome(*row.receive));
	}
	settle();
	EXPECT_FALSE(a.poll_cq(cq_a)) << "a second completion of the request";
	EXPECT_FALSE(b.poll_cq(cq_b)) << "a completion that is not due";
	EXPECT_EQ(qp_b->state == QpState::err, row.responder_fails);

	const std::vector<Event> events = b.take_events();
	EXPECT_EQ(events.size(), row.event ? 1u : 0u);
	for (const Event &event : events) {
		EXPECT_EQ(event.number, qp_b->qpn);
		EXPECT_EQ(event.type,
			  row.event ? mellanox_icm::event_type(*row.event) : event.type);
	}
	const bool too_late = atomic && row.requester == Syndrome::local_protection;
	if (row.requester != Syndrome::none && !too_late) {
		EXPECT_TRUE(same(b.bytes(to), before)) << "memory was changed";
	}
}

constexpr auto kCases = hca::testing::error_cases<hca::testing::kAllOperations>();
INSTANTIATE_TEST_SUITE_P(Reliable, ErrorTable, ::testing::ValuesIn(kCases),
			 [](const auto &each) { return hca::testing::case_name(each.param); });

} // namespace weft::mlx4::transport
