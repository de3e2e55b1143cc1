// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests flow tables, the headers that they match, and the hashes of transport interfaces.
#include <cstring>
#include <string>

#include "cards/mlx5/flow_headers.hpp"
#include "cards/mlx5/steering.hpp"
#include "cards/mlx5/tests/raw_driver.hpp"

namespace weft::mlx5::testing
{

using hw::mlx5::FlowEntry;
using hw::mlx5::FlowGroup;
using hw::mlx5::FlowHeaders;
using hw::mlx5::FlowTableContext;
using hw::mlx5::HashFunction;
using hw::mlx5::TirContext;

namespace
{

std::span<const std::byte> as_payload(const Bytes &bytes)
{
	return std::as_bytes(std::span(bytes));
}

FlowHeaders protocol_of(std::uint32_t value)
{
	FlowHeaders headers{};
	FlowHeaders::protocol.set(headers.bytes, value);
	return headers;
}

Bytes ipv6(std::uint8_t protocol)
{
	Bytes packet(4 + 40 + 20);
	packet[0] = 0x86;
	packet[1] = 0xdd;
	packet[4] = 0x60;
	packet[10] = protocol;
	packet[11] = 64;
	packet[12] = 0xfe;
	packet[28] = 0xff;
	hw::mlx5::store_be32(packet.data(), 44, 1000 << 16 | 53);
	return packet;
}

} // namespace

class Mlx5Steering : public ::testing::Test
{
public:
	void SetUp() override
	{
		driver.bring_up();
		driver.set_port_active();
		const auto cq = driver.make_cq(4);
		const auto queue = driver.make_rq(cq.number);
		const std::uint32_t domain =
			driver.command(Opcode::alloc_transport_domain).number();
		for (std::uint32_t &tir : tirs)
			tir = driver.try_tir({.domain = domain, .rqn = queue.number}).number();
		table = driver.try_table(2, 4).number();
	}
	std::optional<std::uint32_t> steer(std::uint32_t root, const Bytes &packet)
	{
		return driver.card.context()->flows.steer(root, read_headers(as_payload(packet)));
	}

	RawDriver driver;
	std::uint32_t tirs[3]{};
	std::uint32_t table = 0;
	const Bytes tcp = RawDriver::ipv4(6, 1, 2, 3, 4);
	const Bytes udp = RawDriver::ipv4(17, 1, 2, 3, 4);
};

TEST(Mlx5Headers, Ipv4AndIpv6HeadersAreParsed)
{
	const auto four =
		read_headers(as_payload(RawDriver::ipv4(6, 0x0a000001, 0x0a000002, 80, 99)));
	EXPECT_EQ(FlowHeaders::ethertype.get(four.bytes), 0x0800u);
	EXPECT_EQ(FlowHeaders::ip_version.get(four.bytes), 4u);
	EXPECT_EQ(FlowHeaders::protocol.get(four.bytes), 6u);
	EXPECT_EQ(FlowHeaders::tcp_source.get(four.bytes), 80u);
	EXPECT_EQ(FlowHeaders::tcp_destination.get(four.bytes), 99u);
	EXPECT_EQ(hw::mlx5::load_be32(four.bytes, FlowHeaders::source + 12), 0x0a000001u);
	const auto six = read_headers(as_payload(ipv6(17)));
	EXPECT_EQ(FlowHeaders::ip_version.get(six.bytes), 6u);
	EXPECT_EQ(FlowHeaders::udp_source.get(six.bytes), 1000u);
	EXPECT_EQ(six.bytes[FlowHeaders::source], 0xfe);
	EXPECT_EQ(six.bytes[FlowHeaders::destination], 0xff);
	// A fragment has no ports.
	Bytes fragment = RawDriver::ipv4(6, 1, 2, 80, 99);
	fragment[10] = 0x20;
	const auto part = read_headers(as_payload(fragment));
	EXPECT_EQ(FlowHeaders::fragment.get(part.bytes), 1u);
	EXPECT_EQ(FlowHeaders::tcp_source.get(part.bytes), 0u);
}

TEST(Mlx5Headers, FieldsOfTruncatedHeadersAreParsedAsZero)
{
	for (const Bytes &whole : {RawDriver::ipv4(6, 1, 2, 3, 4), ipv6(17)})
		for (std::size_t size = 0; size <= whole.size(); ++size) {
			const Bytes packet(whole.begin(),
					   whole.begin() + static_cast<std::ptrdiff_t>(size));
			const auto headers = read_headers(as_payload(packet));
			const std::size_t least = whole[0] == 0x08 ? 24 : 44;
			EXPECT_EQ(FlowHeaders::ip_version.get(headers.bytes) != 0, size >= least);
			sum_of(as_payload(packet));
		}
	Bytes odd = RawDriver::ipv4(6, 1, 2, 3, 4);
	odd[4] = 0x4f; // a header longer than the packet
	EXPECT_EQ(FlowHeaders::tcp_source.get(read_headers(as_payload(odd)).bytes), 0u);
}

// A published test vector of receive-side scaling: 66.9.149.187:2794 to 161.142.100.80:1766.
TEST(Mlx5Hash, ToeplitzHashMatchesPublishedVectors)
{
	constexpr std::uint8_t key[] = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
					0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
					0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
					0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};
	HashRule rule{.function = HashFunction::toeplitz,
		      .selected = TirContext::source_address | TirContext::destination_address};
	std::copy(std::begin(key), std::end(key), rule.key.begin());
	const Bytes packet = RawDriver::ipv4(6, 0x420995bb, 0xa18e6450, 2794, 1766);
	const auto headers = read_headers(as_payload(packet));
	EXPECT_EQ(hash(rule, headers).value, 0x323e8fc2u);
	rule.selected |= TirContext::source_port | TirContext::destination_port;
	EXPECT_EQ(hash(rule, headers).value, 0x51ccc178u);
	// UDP packets are hashed by their addresses only, and IPv6 packets are not hashed.
	const auto other =
		read_headers(as_payload(RawDriver::ipv4(17, 0x420995bb, 0xa18e6450, 1, 2)));
	EXPECT_EQ(hash(rule, other).value, 0x323e8fc2u);
	EXPECT_EQ(hash(rule, read_headers(as_payload(ipv6(6)))).value, 0u);
	rule.symmetric = true;
	const auto back =
		read_headers(as_payload(RawDriver::ipv4(6, 0xa18e6450, 0x420995bb, 1766, 2794)));
	EXPECT_EQ(hash(rule, headers).value, hash(rule, back).value);
	rule.function = HashFunction::inverted_xor8;
	EXPECT_LT(hash(rule, headers).value, 256u);
	rule.function = HashFunction::none;
	EXPECT_EQ(hash(rule, headers).value, 0u);
}

TEST_F(Mlx5Steering, MatchingFlowEntryWithTheLowestIndexIsUsed)
{
	const FlowHeaders mask = protocol_of(0xff);
	const std::uint32_t some = driver.try_group(table, 0, 7, mask).number();
	const std::uint32_t any = driver.try_group(table, 8, 8, {}).number();
	ASSERT_EQ(driver.set_entry(table, 8, any, {}, tirs[2]), Status::ok);
	ASSERT_EQ(driver.set_entry(table, 3, some, protocol_of(6), tirs[0]), Status::ok);
	ASSERT_EQ(driver.set_entry(table, 4, some, protocol_of(17), tirs[1]), Status::ok);
	EXPECT_EQ(steer(table, tcp), tirs[0]);
	EXPECT_EQ(steer(table, udp), tirs[1]);
	EXPECT_EQ(steer(table, Bytes(4)), tirs[2]);
	EXPECT_EQ(steer(table + 1, tcp), std::nullopt);
	EXPECT_EQ(driver.end_flow(Opcode::delete_flow_table_entry, table, 3), Status::ok);
	EXPECT_EQ(driver.end_flow(Opcode::delete_flow_table_entry, table, 3), Status::bad_resource);
	EXPECT_EQ(steer(table, tcp), tirs[2]);

	// MODIFY changes the destination and the action of an entry.
	Bytes in = driver.entry_input(table, 4, some, {}, tirs[2]);
	FlowEntry::selected.set(in.data(), FlowEntry::select_destinations);
	EXPECT_EQ(driver.command(Opcode::set_flow_table_entry, in, 16, 1).status, Status::ok);
	EXPECT_EQ(steer(table, udp), tirs[2]);
	FlowEntry::selected.set(in.data(), FlowEntry::select_action);
	FlowEntry::action.set(in.data(), FlowEntry::drop);
	EXPECT_EQ(driver.command(Opcode::set_flow_table_entry, in, 16, 1).status, Status::ok);
	EXPECT_EQ(steer(table, udp), std::nullopt);
	FlowEntry::selected.set(in.data(), 8);
	EXPECT_EQ(driver.command(Opcode::set_flow_table_entry, in, 16, 1).status,
		  Status::bad_parameter);
	hw::mlx5::flow::index.set(in.data(), 5);
	FlowEntry::selected.set(in.data(), FlowEntry::select_action);
	EXPECT_EQ(driver.command(Opcode::set_flow_table_entry, in, 16, 1).status,
		  Status::bad_resource);
}

// Tables forward only to higher levels, so there is no loop.
TEST_F(Mlx5Steering, FlowTablesForwardOnlyToHigherLevels)
{
	const std::uint32_t above = driver.try_table(3, 0).number();
	const std::uint32_t group = driver.try_group(above, 0, 0, {}).number();
	ASSERT_EQ(driver.set_entry(above, 0, group, {}, tirs[0]), Status::ok);
	EXPECT_EQ(driver.try_table(3, 0, above).status, Status::bad_resource);
	EXPECT_EQ(driver.try_table(1, 0, 999).status, Status::bad_resource);
	const std::uint32_t below = driver.try_table(1, 0, table).number();
	EXPECT_EQ(steer(below, tcp), std::nullopt);
	const auto set_miss = [&](std::uint32_t number, std::uint32_t next) {
		Bytes in(hw::mlx5::flow::command_size);
		hw::mlx5::flow::table.set(in.data(), number);
		FlowTableContext::selected.set(in.data(), FlowTableContext::select_miss);
		std::uint8_t *const context = in.data() + FlowTableContext::offset;
		FlowTableContext::miss_action.set(context, next ? 1 : 0);
		FlowTableContext::miss_table.set(context, next);
		return driver.command(Opcode::modify_flow_table, std::move(in)).status;
	};
	EXPECT_EQ(set_miss(table, above), Status::ok);
	EXPECT_EQ(steer(below, tcp), tirs[0]);
	EXPECT_EQ(set_miss(above, table), Status::bad_resource);
	EXPECT_EQ(set_miss(table, 0), Status::ok);
	EXPECT_EQ(steer(below, tcp), std::nullopt);
	const std::uint32_t here = driver.try_group(table, 0, 0, {}).number();
	EXPECT_EQ(driver.set_entry(table, 0, here, {}, 0, below), Status::bad_resource);
	EXPECT_EQ(driver.set_entry(table, 0, here, {}, 0, table), Status::bad_resource);
	EXPECT_EQ(driver.set_entry(table, 0, here, {}, 0, above), Status::ok);
	EXPECT_EQ(steer(below, tcp), tirs[0]);
	EXPECT_EQ(driver.end_flow(Opcode::destroy_flow_table, above), Status::ok);
	EXPECT_EQ(driver.end_flow(Opcode::destroy_flow_table, above), Status::bad_resource);
	EXPECT_EQ(steer(below, tcp), std::nullopt);
	// A new table of a lower level with the number of the old one does not create a loop.
	for (unsigned i = 0; i < 2u << limits::kLogFlowTables; ++i)
		driver.try_table(1, 0, table);
	EXPECT_EQ(steer(below, tcp), std::nullopt);
}

TEST_F(Mlx5Steering, InvalidFlowTablesFlowGroupsAndFlowEntriesAreRefused)
{
	EXPECT_EQ(driver.try_table(limits::kMostFlowLevel + 1, 0).status, Status::bad_parameter);
	EXPECT_EQ(driver.try_table(1, limits::kLogFlowTableSize + 1).status, Status::bad_parameter);
	Bytes in(hw::mlx5::flow::command_size);
	hw::mlx5::flow::table_type.set(in.data(), 1);
	for (const Opcode opcode : {Opcode::create_flow_table, Opcode::modify_flow_table,
				    Opcode::destroy_flow_table, Opcode::set_flow_table_root,
				    Opcode::destroy_flow_group, Opcode::delete_flow_table_entry})
		EXPECT_EQ(driver.command(opcode, in).status, Status::bad_parameter);

	EXPECT_EQ(driver.try_group(999, 0, 0, {}).status, Status::bad_resource);
	EXPECT_EQ(driver.try_group(table, 1, 0, {}).status, Status::bad_index);
	EXPECT_EQ(driver.try_group(table, 0, 16, {}).status, Status::bad_index);
	const std::uint32_t group = driver.try_group(table, 0, 3, {}).number();
	EXPECT_EQ(driver.try_group(table, 3, 4, {}).status, Status::bad_index);
	FlowHeaders ethernet{}; // a MAC address, which no IPoIB packet has
	ethernet.bytes[0] = 1;
	EXPECT_EQ(driver.try_group(table, 4, 4, ethernet).status, Status::bad_parameter);
	Bytes inner(FlowGroup::size);
	hw::mlx5::flow::table.set(inner.data(), table);
	FlowGroup::first.set(inner.data(), 5);
	FlowGroup::last.set(inner.data(), 5);
	FlowGroup::criteria.set(inner.data(), 1);
	inner[FlowGroup::mask + 0x80] = 1;
	EXPECT_EQ(driver.command(Opcode::create_flow_group, inner).status, Status::bad_parameter);
	FlowGroup::criteria.set(inner.data(), 4);
	EXPECT_EQ(driver.command(Opcode::create_flow_group, inner).status, Status::bad_parameter);

	EXPECT_EQ(driver.set_entry(table, 4, group, {}, tirs[0]), Status::bad_index);
	EXPECT_EQ(driver.set_entry(table, 0, group + 1, {}, tirs[0]), Status::bad_resource);
	EXPECT_EQ(driver.set_entry(table, 0, group, {}, 999), Status::bad_resource);
	const auto refused = [&](const hw::mlx5::Field &field, std::uint32_t value) {
		Bytes entry = driver.entry_input(table, 0, group, {}, tirs[0]);
		field.set(entry.data(), value);
		return driver.command(Opcode::set_flow_table_entry, std::move(entry)).status;
	};
	EXPECT_EQ(refused(FlowEntry::action, 8), Status::bad_parameter);
	EXPECT_EQ(refused(FlowEntry::action, FlowEntry::drop), Status::bad_parameter);
	EXPECT_EQ(refused(FlowEntry::destinations, 0), Status::bad_parameter);
	EXPECT_EQ(refused(FlowEntry::destinations, 2), Status::bad_parameter);
	EXPECT_EQ(refused(FlowEntry::counters, 1), Status::bad_parameter);
	EXPECT_EQ(refused(FlowEntry::extended, 1), Status::bad_parameter);
	Bytes cut = driver.entry_input(table, 0, group, {}, tirs[0]);
	cut.resize(FlowEntry::list);
	EXPECT_EQ(driver.command(Opcode::set_flow_table_entry, cut).status,
		  Status::bad_input_length);
	EXPECT_EQ(driver.set_entry(table, 0, group, {}, tirs[0]), Status::ok);
	EXPECT_EQ(driver.set_entry(table, 0, group, {}, tirs[0]), Status::resource_busy);
	EXPECT_EQ(driver.end_flow(Opcode::destroy_flow_group, table, group), Status::resource_busy);
	EXPECT_EQ(driver.end_flow(Opcode::delete_flow_table_entry, table, 0), Status::ok);
	EXPECT_EQ(driver.end_flow(Opcode::destroy_flow_group, table, group), Status::ok);
	EXPECT_EQ(driver.end_flow(Opcode::destroy_flow_group, table, group), Status::bad_resource);

	const auto plain = driver.make_qp(QpService::ud, driver.make_cq(4));
	const auto underlay = driver.make_underlay();
	EXPECT_EQ(driver.set_root(table, plain.number), Status::bad_resource);
	EXPECT_EQ(driver.set_root(999, underlay.number), Status::bad_resource);
	EXPECT_EQ(driver.set_root(table, underlay.number), Status::ok);
	EXPECT_EQ(driver.set_root(0, underlay.number, false), Status::ok);
}

TEST_F(Mlx5Steering, FlowTablesAboveTheMaximumLevelOrSizeAreRefused)
{
	EXPECT_EQ(driver.try_table(limits::kMostFlowLevel, limits::kLogFlowTableSize).status,
		  Status::ok);
	EXPECT_EQ(driver.try_table(limits::kMostFlowLevel + 1, 0).status, Status::bad_parameter);
	EXPECT_EQ(driver.try_table(1, limits::kLogFlowTableSize + 1).status, Status::bad_parameter);
}

TEST_F(Mlx5Steering, NumbersOfFlowTablesGroupsAndEntriesAreLimited)
{
	const std::uint32_t large = driver.try_table(1, limits::kLogFlowTableSize).number();
	std::uint32_t first = 0;
	while (driver.try_group(large, 2048 + first, 2048 + first, {}).status == Status::ok)
		++first;
	EXPECT_EQ(first, 1u << limits::kLogFlowGroups);
	EXPECT_EQ(driver.try_group(large, 0, 2047, {}).status, Status::no_resources);
	EXPECT_EQ(driver.end_flow(Opcode::destroy_flow_table, large), Status::ok);
	const std::uint32_t again = driver.try_table(1, limits::kLogFlowTableSize).number();
	const std::uint32_t group = driver.try_group(again, 0, 2047, {}).number();
	std::uint32_t entries = 0;
	while (driver.set_entry(again, entries, group, {}, tirs[0]) == Status::ok)
		++entries;
	EXPECT_EQ(entries, 1u << limits::kLogFlowEntries);
	unsigned tables = 2;
	while (driver.try_table(1, 0).status == Status::ok)
		++tables;
	EXPECT_EQ(tables, 1u << limits::kLogFlowTables);
	// Destroying a table frees its number and its entries.
	EXPECT_EQ(driver.end_flow(Opcode::destroy_flow_table, again), Status::ok);
	const std::uint32_t last = driver.try_table(1, 4).number();
	const std::uint32_t room = driver.try_group(last, 0, 3, {}).number();
	EXPECT_EQ(driver.set_entry(last, 0, room, {}, tirs[0]), Status::ok);
}

} // namespace weft::mlx5::testing
