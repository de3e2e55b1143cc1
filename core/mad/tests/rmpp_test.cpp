// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests RMPP's windows (IBA 13.6). The functions under test have no side effects, so the test
// module is linked with a copy of them.
#include "../rmpp.cpp"

#include <kern/kunit.hpp>

using kern::kunit::Test;
using namespace mad;

namespace
{

ib::RmppHeader data(u32 segment, unsigned flags = 0, u32 length = 0)
{
	ib::RmppHeader header{};
	header.version = ib::RmppHeader::current_version;
	header.type = ib::RmppHeader::data;
	header.time_flags = ib::RmppHeader::make_time_flags(0, ib::RmppHeader::active | flags);
	header.segment = segment;
	header.length_or_window = length;
	return header;
}

u32 send_window(RmppSender &sender)
{
	u32 sent = 0;
	for (; sender.next(); sent++)
		sender.sent();
	return sent;
}

/*
 * The sender sends one segment until the first ACK opens the window, and then as many as the window
 * permits.
 */
void mgmt_03_rmpp_sender_sends_no_segment_beyond_the_receivers_window(Test &test)
{
	RmppSender sender(10);
	std::uint8_t status = 0;

	EXPECT_EQ(send_window(sender), 1u);
	EXPECT_EQ(sender.on_ack(1, 5, status), RmppAck::progress);
	EXPECT_EQ(send_window(sender), 4u);
	EXPECT_EQ(sender.on_ack(3, 5, status), RmppAck::progress);
	EXPECT_EQ(send_window(sender), 0u);
	EXPECT_EQ(sender.on_ack(5, 100, status), RmppAck::progress);
	EXPECT_EQ(send_window(sender), 5u);
	EXPECT_EQ(sender.on_ack(10, 100, status), RmppAck::finished);
	EXPECT_EQ(status, 0);
}

/*
 * The number of segments that one ACK permits is bounded, whatever window the receiver announces.
 */
void mgmt_03_rmpp_sender_sends_at_most_its_own_maximum_window(Test &test)
{
	RmppSender sender(3 * rmpp_send_window);
	std::uint8_t status = 0;

	send_window(sender);
	EXPECT_EQ(sender.on_ack(1, ~0u, status), RmppAck::progress);
	EXPECT_EQ(send_window(sender), rmpp_send_window);
	EXPECT_EQ(sender.on_ack(1, ~0u, status), RmppAck::stale);
	EXPECT_EQ(send_window(sender), 0u);
	EXPECT_EQ(sender.on_ack(11, ~0u, status), RmppAck::progress);
	EXPECT_EQ(send_window(sender), 10u);
	EXPECT_EQ(status, 0);
}

/* Without an ACK, the sender continues with the first segment that is not acknowledged. */
void mgmt_03_rmpp_sender_resends_from_the_first_unacked_segment_if_no_ack_arrives(Test &test)
{
	RmppSender sender(8);
	std::uint8_t status = 0;

	send_window(sender);
	ASSERT_EQ(sender.on_ack(1, 8, status), RmppAck::progress);
	EXPECT_EQ(send_window(sender), 7u);
	EXPECT_EQ(sender.on_ack(4, 8, status), RmppAck::progress);
	sender.rewind();
	EXPECT_EQ(sender.next(), 5u);
	EXPECT_EQ(sender.on_ack(2, 8, status), RmppAck::stale);
	EXPECT_EQ(sender.on_ack(4, 8, status), RmppAck::stale);
	EXPECT_EQ(sender.acknowledged(), 4u);
	/* An ACK for segments that were sent before the rewind is accepted. */
	EXPECT_EQ(sender.on_ack(7, 8, status), RmppAck::progress);
	EXPECT_EQ(sender.next(), 8u);
}

void mgmt_03_rmpp_sender_rejects_invalid_acks_with_the_matching_rmpp_status(Test &test)
{
	std::uint8_t status = 0;
	RmppSender sender(4);

	send_window(sender);
	EXPECT_EQ(sender.on_ack(2, 4, status), RmppAck::violation);
	EXPECT_EQ(status, static_cast<std::uint8_t>(ib::rmpp_status_segment_too_big));
	EXPECT_EQ(sender.on_ack(1, 0, status), RmppAck::violation);
	EXPECT_EQ(status, static_cast<std::uint8_t>(ib::rmpp_status_new_window_too_small));
	EXPECT_EQ(sender.on_ack(~0u, ~0u, status), RmppAck::violation);
	EXPECT_EQ(status, static_cast<std::uint8_t>(ib::rmpp_status_segment_too_big));
}

/*
 * Segments are accepted in order. The first one, the last of a window and the last of the message
 * are acknowledged.
 */
void mgmt_03_rmpp_receiver_completes_a_message_whose_segments_arrive_in_order(Test &test)
{
	RmppReceiver receiver;

	auto receipt = receiver.on_data(data(1, ib::RmppHeader::first, 0), 4);
	EXPECT_TRUE(receipt.keep && receipt.acknowledge && !receipt.aborts());
	EXPECT_EQ(receiver.window_last(), 1 + rmpp_receive_window);
	for (u32 segment = 2; segment <= rmpp_receive_window; segment++) {
		receipt = receiver.on_data(data(segment), 4);
		EXPECT_TRUE(receipt.keep && !receipt.acknowledge);
	}
	receipt = receiver.on_data(data(rmpp_receive_window + 1), 4);
	EXPECT_TRUE(receipt.keep && receipt.acknowledge);
	receipt = receiver.on_data(data(rmpp_receive_window + 2, ib::RmppHeader::last, 33), 4);
	EXPECT_TRUE(receipt.keep && receipt.acknowledge);
	EXPECT_TRUE(receiver.complete());
	EXPECT_EQ(receiver.last_length(), 33u);
}

/*
 * Segments after a gap and repeated segments are dropped, and the receiver acknowledges what it has
 * received.
 */
void mgmt_03_rmpp_receiver_drops_out_of_order_segments(Test &test)
{
	RmppReceiver receiver;

	receiver.on_data(data(1, ib::RmppHeader::first), 4);
	const RmppReceipt dropped = {.keep = false, .acknowledge = true, .status = 0};
	EXPECT_TRUE(receiver.on_data(data(3), 4) == dropped);
	EXPECT_TRUE(receiver.on_data(data(1, ib::RmppHeader::first), 4) == dropped);
	EXPECT_EQ(receiver.received(), 1u);
	receiver.on_data(data(2, ib::RmppHeader::last, 4), 4);
	EXPECT_TRUE(receiver.on_data(data(2, ib::RmppHeader::last, 4), 4) == dropped);
	EXPECT_TRUE(receiver.on_data(data(3), 4) == dropped);
	EXPECT_TRUE(receiver.complete());
}

void mgmt_03_rmpp_receiver_rejects_invalid_segments_with_the_matching_rmpp_status(Test &test)
{
	const auto status_of = [](const ib::RmppHeader &header) {
		return RmppReceiver().on_data(header, 4).status;
	};
	constexpr auto first = ib::RmppHeader::first, last = ib::RmppHeader::last;

	EXPECT_EQ(status_of(data(0)),
		  static_cast<u8>(ib::rmpp_status_inconsistent_first_and_segment));
	EXPECT_EQ(status_of(data(2, first)),
		  static_cast<u8>(ib::rmpp_status_inconsistent_first_and_segment));
	EXPECT_EQ(status_of(data(1)),
		  static_cast<u8>(ib::rmpp_status_inconsistent_first_and_segment));
	EXPECT_EQ(status_of(data(1, first | last, 221)),
		  static_cast<u8>(ib::rmpp_status_inconsistent_last_and_length));
	EXPECT_EQ(status_of(data(1, first | last, 3)),
		  static_cast<u8>(ib::rmpp_status_inconsistent_last_and_length));
	EXPECT_EQ(status_of(data(rmpp_segments_max + 1)),
		  static_cast<u8>(ib::rmpp_status_resources_exhausted));
	EXPECT_EQ(status_of(data(1, first | last, 220)), 0);
}

} // namespace

KUNIT_SUITE(
	mad_rmpp, KUNIT_CASE(mgmt_03_rmpp_sender_sends_no_segment_beyond_the_receivers_window),
	KUNIT_CASE(mgmt_03_rmpp_sender_sends_at_most_its_own_maximum_window),
	KUNIT_CASE(mgmt_03_rmpp_sender_resends_from_the_first_unacked_segment_if_no_ack_arrives),
	KUNIT_CASE(mgmt_03_rmpp_sender_rejects_invalid_acks_with_the_matching_rmpp_status),
	KUNIT_CASE(mgmt_03_rmpp_receiver_completes_a_message_whose_segments_arrive_in_order),
	KUNIT_CASE(mgmt_03_rmpp_receiver_drops_out_of_order_segments),
	KUNIT_CASE(mgmt_03_rmpp_receiver_rejects_invalid_segments_with_the_matching_rmpp_status));
