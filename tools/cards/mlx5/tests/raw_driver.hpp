// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Extends TinyDriver with the objects and datagrams of enhanced IPoIB.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <hw/mlx5/raw_queues.hpp>
#include <hw/mlx5/steering.hpp>

#include "cards/mlx5/tests/tiny_driver.hpp"

namespace weft::mlx5::testing
{

class RawDriver : public TinyDriver
{
public:
	RawDriver() : TinyDriver(true, 1, true) {}
	RawDriver(fabric::Port &place, ib::Guid guid, Environment &environment, bool polled = false)
	    : TinyDriver(place, guid, environment, true, polled)
	{
	}

	static constexpr unsigned kLogEntries = 4; // of receive queues, 64 bytes each

	struct Queue {
		std::uint32_t number = 0;
		std::uint64_t entries = 0;
		std::uint64_t record = 0;
		// For TinyDriver::post() and send().
		Qp as_qp() const { return {.number = number, .send = entries, .record = record}; }
	};

	/* --- queues --- */

	// Input of CREATE_RQ for the memory of @queue.
	Bytes rq_input(std::uint32_t cqn, const Queue &queue, std::uint32_t counter_set = 0)
	{
		using hw::mlx5::RqContext;
		using hw::mlx5::WqContext;
		RqContext context{};
		RqContext::cqn.set(context.bytes, cqn);
		RqContext::counter_set.set(context.bytes, counter_set);
		std::uint8_t *const work_queue = context.bytes + RqContext::work_queue;
		WqContext::log_size.set(work_queue, kLogEntries);
		return work_queue_input(context.bytes, work_queue, queue);
	}
	Answer try_rq(std::uint32_t cqn, Queue &queue, std::uint32_t counter_set = 0)
	{
		queue.entries = allocate(64 << kLogEntries);
		queue.record = allocate(8, 8);
		return made(Opcode::create_rq, rq_input(cqn, queue, counter_set), queue);
	}
	Queue make_rq(std::uint32_t cqn, std::uint32_t counter_set = 0)
	{
		Queue queue;
		EXPECT_EQ(try_rq(cqn, queue, counter_set).status, Status::ok);
		return queue;
	}
	// @tis 0: none.
	Bytes sq_input(std::uint32_t cqn, std::uint32_t tis, const Queue &queue)
	{
		using hw::mlx5::SqContext;
		using hw::mlx5::WqContext;
		SqContext context{};
		SqContext::cqn.set(context.bytes, cqn);
		SqContext::tis_count.set(context.bytes, tis ? 1 : 0);
		SqContext::tis.set(context.bytes, tis);
		std::uint8_t *const work_queue = context.bytes + SqContext::work_queue;
		WqContext::uar_page.set(work_queue, uar);
		WqContext::log_size.set(work_queue, kLogBlocks);
		return work_queue_input(context.bytes, work_queue, queue);
	}
	Answer try_sq(std::uint32_t cqn, std::uint32_t tis, Queue &queue)
	{
		queue.entries = allocate(64 << kLogBlocks);
		queue.record = allocate(8, 8);
		return made(Opcode::create_sq, sq_input(cqn, tis, queue), queue);
	}
	Queue make_sq(std::uint32_t cqn, std::uint32_t tis)
	{
		Queue queue;
		EXPECT_EQ(try_sq(cqn, tis, queue).status, Status::ok);
		return queue;
	}
	// MODIFY_RQ or MODIFY_SQ.
	Status modify(Opcode opcode, std::uint32_t number, hw::mlx5::RawState from,
		      hw::mlx5::RawState to)
	{
		namespace raw = hw::mlx5::raw_command;
		Bytes in(raw::size);
		hw::mlx5::object_number.set(in.data(), number);
		raw::current_state.set(in.data(), static_cast<std::uint32_t>(from));
		hw::mlx5::RqContext::state.set(in.data() + raw::context,
					       static_cast<std::uint32_t>(to));
		return command(opcode, std::move(in)).status;
	}
	void ready(Opcode opcode, std::uint32_t number)
	{
		EXPECT_EQ(modify(opcode, number, hw::mlx5::RawState::reset,
				 hw::mlx5::RawState::ready),
			  Status::ok);
	}
	void post_receive(const Queue &queue, std::uint32_t index, std::uint64_t address,
			  std::uint32_t size)
	{
		const std::uint64_t place =
			queue.entries + 64 * (index & ((1u << kLogEntries) - 1));
		put_data(bytes(place, 16), address, size, key);
		put_data(bytes(place + 16, 16), 0, 0, hw::mlx5::WqeData::terminator_lkey);
		store(queue.record, (index + 1) & 0xffff);
	}

	/* --- interfaces and tables of queues --- */

	// The underlay queue pair, which has no memory.
	Qp make_underlay()
	{
		using hw::mlx5::QpContext;
		QpContext context{};
		QpContext::service.set(context.bytes, static_cast<std::uint32_t>(QpService::ud));
		QpContext::offload_mode.set(context.bytes, QpContext::enhanced_ipoib);
		const Answer answer =
			command(Opcode::create_qp,
				input_with(hw::mlx5::pages_offset, hw::mlx5::qp_command::context,
					   context.bytes));
		EXPECT_EQ(answer.status, Status::ok);
		return {.number = answer.number()};
	}
	Answer try_tis(std::uint32_t domain, std::uint32_t underlay_qpn)
	{
		using hw::mlx5::TisContext;
		TisContext context{};
		TisContext::transport_domain.set(context.bytes, domain);
		TisContext::underlay_qpn.set(context.bytes, underlay_qpn);
		return command(Opcode::create_tis,
			       input_with(hw::mlx5::raw_command::tis_size,
					  hw::mlx5::raw_command::context, context.bytes));
	}
	// A TIR for one queue, or for a table if @rqt is not 0; @hash of addresses and TCP ports.
	struct Tir {
		std::uint32_t domain = 0;
		std::uint32_t rqn = 0;
		std::uint32_t rqt = 0;
		std::uint32_t hash = 0;
		bool symmetric = false;
	};
	Answer try_tir(const Tir &tir)
	{
		using hw::mlx5::TirContext;
		TirContext context{};
		TirContext::kind.set(context.bytes,
				     tir.rqt ? TirContext::indirect : TirContext::direct);
		TirContext::rqn.set(context.bytes, tir.rqn);
		TirContext::rqt.set(context.bytes, tir.rqt);
		TirContext::hash.set(context.bytes, tir.hash);
		TirContext::symmetric.set(context.bytes, tir.symmetric);
		TirContext::selected.set(context.bytes, TirContext::source_address |
								TirContext::destination_address |
								TirContext::source_port |
								TirContext::destination_port);
		TirContext::transport_domain.set(context.bytes, tir.domain);
		for (std::size_t i = 0; i < TirContext::key_size; ++i)
			context.bytes[TirContext::key + i] = static_cast<std::uint8_t>(37 * i + 11);
		return command(Opcode::create_tir,
			       input_with(hw::mlx5::raw_command::size,
					  hw::mlx5::raw_command::context, context.bytes));
	}
	Status modify_tir(std::uint32_t number, std::uint32_t bitmask)
	{
		Bytes in(hw::mlx5::raw_command::size);
		hw::mlx5::object_number.set(in.data(), number);
		hw::mlx5::raw_command::bitmask_low.set(in.data(), bitmask);
		return command(Opcode::modify_tir, std::move(in)).status;
	}
	// @claimed: the size of the list according to the command; 0: its real size.
	Answer try_rqt(std::uint32_t most, const std::vector<std::uint32_t> &list,
		       std::uint32_t claimed = 0)
	{
		Bytes in = rqt_input(list, claimed);
		hw::mlx5::RqtContext::most.set(in.data() + hw::mlx5::raw_command::context, most);
		return command(Opcode::create_rqt, std::move(in));
	}
	Status modify_rqt(std::uint32_t number, const std::vector<std::uint32_t> &list,
			  std::uint32_t bitmask = hw::mlx5::raw_command::rqt_set_list)
	{
		Bytes in = rqt_input(list, 0);
		hw::mlx5::object_number.set(in.data(), number);
		hw::mlx5::raw_command::bitmask_low.set(in.data(), bitmask);
		return command(Opcode::modify_rqt, std::move(in)).status;
	}

	/* --- flow tables --- */

	Answer try_table(std::uint32_t level, std::uint32_t log_size, std::uint32_t miss = 0)
	{
		using hw::mlx5::FlowTableContext;
		Bytes in(hw::mlx5::flow::command_size);
		std::uint8_t *const context = in.data() + FlowTableContext::offset;
		FlowTableContext::level.set(context, level);
		FlowTableContext::log_size.set(context, log_size);
		FlowTableContext::miss_action.set(context, miss ? 1 : 0);
		FlowTableContext::miss_table.set(context, miss);
		return command(Opcode::create_flow_table, std::move(in));
	}
	Answer try_group(std::uint32_t table, std::uint32_t first, std::uint32_t last,
			 const hw::mlx5::FlowHeaders &mask)
	{
		using hw::mlx5::FlowGroup;
		Bytes in = input_with(FlowGroup::size, FlowGroup::mask, mask.bytes);
		hw::mlx5::flow::table.set(in.data(), table);
		FlowGroup::first.set(in.data(), first);
		FlowGroup::last.set(in.data(), last);
		FlowGroup::criteria.set(in.data(), 1);
		return command(Opcode::create_flow_group, std::move(in));
	}
	// An entry that forwards to @tir, or to @next_table if that is not 0.
	Bytes entry_input(std::uint32_t table, std::uint32_t index, std::uint32_t group,
			  const hw::mlx5::FlowHeaders &value, std::uint32_t tir,
			  std::uint32_t next_table = 0)
	{
		using hw::mlx5::FlowEntry;
		Bytes in = input_with(FlowEntry::list + 8, FlowEntry::value, value.bytes);
		hw::mlx5::flow::table.set(in.data(), table);
		hw::mlx5::flow::index.set(in.data(), index);
		FlowEntry::group.set(in.data(), group);
		FlowEntry::action.set(in.data(), FlowEntry::forward);
		FlowEntry::destinations.set(in.data(), 1);
		std::uint8_t *const to = in.data() + FlowEntry::list;
		FlowEntry::destination_kind.set(to, next_table ? FlowEntry::to_table
							       : FlowEntry::to_tir);
		FlowEntry::destination.set(to, next_table ? next_table : tir);
		return in;
	}
	Status set_entry(std::uint32_t table, std::uint32_t index, std::uint32_t group,
			 const hw::mlx5::FlowHeaders &value, std::uint32_t tir,
			 std::uint32_t next_table = 0)
	{
		return command(Opcode::set_flow_table_entry,
			       entry_input(table, index, group, value, tir, next_table))
			.status;
	}
	Status set_root(std::uint32_t table, std::uint32_t underlay_qpn, bool connect = true)
	{
		Bytes in(hw::mlx5::flow::command_size);
		hw::mlx5::flow::table.set(in.data(), table);
		hw::mlx5::FlowTableRoot::underlay_qpn.set(in.data(), underlay_qpn);
		return command(Opcode::set_flow_table_root, std::move(in), 16, !connect).status;
	}
	// DESTROY_FLOW_TABLE, or the same of a group or of an entry.
	Status end_flow(Opcode opcode, std::uint32_t table, std::uint32_t number = 0)
	{
		Bytes in(hw::mlx5::flow::command_size);
		hw::mlx5::flow::table.set(in.data(), table);
		if (opcode == Opcode::destroy_flow_group)
			hw::mlx5::FlowGroup::number.set(in.data(), number);
		if (opcode == Opcode::delete_flow_table_entry)
			hw::mlx5::flow::index.set(in.data(), number);
		return command(opcode, std::move(in)).status;
	}

	// An underlay queue pair whose packets go to one of two queues, selected by a flow group
	// and a hash.
	struct Interface {
		Qp underlay;
		Queue queues[2];
		std::uint32_t tis = 0;
	};
	Interface make_interface(std::uint32_t cqn)
	{
		using hw::mlx5::FlowHeaders;
		Interface made;
		made.underlay = make_underlay();
		for (const Opcode step :
		     {Opcode::rst2init_qp, Opcode::init2rtr_qp, Opcode::rtr2rts_qp})
			transition(step, made.underlay, 0);
		for (Queue &queue : made.queues) {
			try_rq(cqn, queue);
			ready(Opcode::modify_rq, queue.number);
		}
		const std::uint32_t domain = command(Opcode::alloc_transport_domain).number();
		made.tis = try_tis(domain, made.underlay.number).number();
		const std::uint32_t rqt =
			try_rqt(2, {made.queues[0].number, made.queues[1].number}).number();
		const std::uint32_t hashed =
			try_tir({.domain = domain, .rqt = rqt, .hash = 2}).number();
		const std::uint32_t direct =
			try_tir({.domain = domain, .rqn = made.queues[1].number}).number();
		FlowHeaders mask{}, value{};
		FlowHeaders::ip_version.set(mask.bytes, 0xf);
		FlowHeaders::ip_version.set(value.bytes, 4);
		const std::uint32_t table = try_table(1, 1).number();
		const std::uint32_t ipv4 = try_group(table, 0, 0, mask).number();
		const std::uint32_t any = try_group(table, 1, 1, {}).number();
		set_entry(table, 0, ipv4, value, hashed);
		set_entry(table, 1, any, {}, direct);
		set_root(table, made.underlay.number);
		return made;
	}

	/* --- datagrams --- */

	// Data that datagrams send.
	std::uint64_t data = 0;
	void fill(std::uint32_t size)
	{
		data = allocate(size);
		for (std::uint32_t i = 0; i < size; ++i)
			*bytes(data + i, 1) = static_cast<std::uint8_t>(i * 7 + 1);
	}
	// Encapsulation, IPv4 header and the next 20 bytes.
	static Bytes ipv4(std::uint8_t protocol, std::uint32_t source, std::uint32_t destination,
			  std::uint32_t source_port, std::uint32_t destination_port)
	{
		Bytes header(4 + 20 + 20);
		header[0] = 0x08;
		header[4] = 0x45;
		header[12] = 64;
		header[13] = protocol;
		hw::mlx5::store_be32(header.data(), 16, source);
		hw::mlx5::store_be32(header.data(), 20, destination);
		hw::mlx5::store_be32(header.data(), 24, source_port << 16 | destination_port);
		return header;
	}
	// A request that sends @header, and @size bytes of the data, to @qpn at the port's own
	// address.
	Bytes datagram(std::uint32_t qpn, const Bytes &header, std::uint32_t size)
	{
		using hw::mlx5::WqeDatagram;
		using hw::mlx5::WqeOffload;
		if (data == 0)
			fill(4096);
		Bytes wqe = control(kSend);
		WqeDatagram address{};
		WqeDatagram::qkey.set(address.bytes, kQkey);
		WqeDatagram::extended.set(address.bytes, 1);
		WqeDatagram::qpn.set(address.bytes, qpn);
		WqeDatagram::dlid.set(address.bytes, lid);
		wqe.insert(wqe.end(), address.bytes, address.bytes + sizeof(address.bytes));
		const std::size_t offload = wqe.size();
		wqe.resize(offload + WqeOffload::header);
		WqeOffload::header_size.set(wqe.data() + offload,
					    static_cast<std::uint32_t>(header.size()));
		wqe.insert(wqe.end(), header.begin(), header.end());
		wqe.resize((wqe.size() + 15) & ~std::size_t{15});
		add_data(wqe, data, size, key);
		return wqe;
	}

	/* --- registers --- */

	static Bytes register_read(std::uint32_t number, std::uint32_t port_number = 1)
	{
		using hw::mlx5::AccessRegister;
		Bytes in(AccessRegister::data + 4);
		AccessRegister::number.set(in.data(), number);
		AccessRegister::port.set(in.data() + AccessRegister::data, port_number);
		return in;
	}

private:
	Bytes work_queue_input(std::span<std::uint8_t> context, std::uint8_t *work_queue,
			       const Queue &queue)
	{
		using hw::mlx5::WqContext;
		WqContext::type.set(work_queue, WqContext::cyclic);
		WqContext::pd.set(work_queue, pd);
		WqContext::record.set(work_queue, queue.record);
		WqContext::log_stride.set(work_queue, 6);
		Bytes in = input_with(hw::mlx5::raw_command::pages, hw::mlx5::raw_command::context,
				      context);
		append_pages(in, queue.entries, 64 << kLogEntries);
		return in;
	}
	Answer made(Opcode opcode, Bytes in, Queue &queue)
	{
		Answer answer = command(opcode, std::move(in));
		queue.number = answer.status == Status::ok ? answer.number() : 0;
		return answer;
	}
	static Bytes rqt_input(const std::vector<std::uint32_t> &list, std::uint32_t claimed)
	{
		Bytes in(hw::mlx5::raw_command::size + 4 * list.size());
		const auto size = static_cast<std::uint32_t>(list.size());
		hw::mlx5::RqtContext::size.set(in.data() + hw::mlx5::raw_command::context,
					       claimed ? claimed : size);
		for (std::size_t i = 0; i < list.size(); ++i)
			hw::mlx5::store_be32(in.data(), hw::mlx5::raw_command::size + 4 * i,
					     list[i]);
		return in;
	}
};

} // namespace weft::mlx5::testing
