// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides a card in a simulated guest, with a minimal driver, for tests. Packets to the port's own
// address stay inside the card.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <hw/mlx5/queues.hpp>
#include <ib/smp.hpp>

#include "bus/pci/testing/fake_host.hpp"
#include "cards/mlx5/card.hpp"
#include "cards/mlx5/card_context.hpp"
#include "net/fabric/fabric.hpp"

namespace weft::mlx5::testing
{

using hw::mlx5::Opcode;
using hw::mlx5::Status;
using Bytes = std::vector<std::uint8_t>;

// The result of a command.
struct Answer {
	std::uint8_t delivery = 0xff; // of hw::mlx5::Delivery
	Status status = Status::internal_error;
	Bytes out;

	std::uint32_t number() const { return hw::mlx5::object_number.get(out.data()); }
};

// Returns a LID-routed SMP without data.
inline ib::Smp lid_routed_smp(ib::MadMethod method, std::uint16_t attribute, std::uint32_t modifier)
{
	ib::Smp smp{};
	smp.header.base_version = ib::mad_base_version;
	smp.header.mgmt_class = static_cast<std::uint8_t>(ib::MgmtClass::subn_lid_routed);
	smp.header.class_version = 1;
	smp.header.method = static_cast<std::uint8_t>(method);
	smp.header.attr_id = attribute;
	smp.header.attr_mod = modifier;
	return smp;
}

class TinyDriver
{
public:
	static constexpr std::uint64_t kMemorySize = 16 << 20;
	static constexpr std::uint64_t kCommandQueue = 0x1000;
	// Addresses of the blocks of inputs and outputs, which are contiguous.
	static constexpr std::uint64_t kInput = 0x10000, kOutput = 0x80000;
	static constexpr std::uint64_t kFirstFree = 0x100000;
	static constexpr std::uint8_t kToken = 0x5a;
	static constexpr ib::Lid kLid = 5;

	static constexpr ib::Guid kGuid = 0x0002c90500000100;

	// Creates a card that is the only one in its fabric.
	explicit TinyDriver(bool trusted = true, unsigned ports = 1, bool enhanced_ipoib = false,
			    bool polled = false)
	    : own_fabric(std::make_unique<fabric::Fabric>()), port(own_fabric->add_port("test")),
	      port2(ports > 1 ? &own_fabric->add_port("test 2") : nullptr),
	      card({"test", kGuid, cables(), trusted, enhanced_ipoib, polled})
	{
		plug();
	}
	TinyDriver(fabric::Port &place, ib::Guid guid,
		   Environment &environment = Environment::host(), bool enhanced_ipoib = false,
		   bool polled = false)
	    : port(place), host(kMemorySize, 0, environment),
	      card({place.name(), guid, cables(), true, enhanced_ipoib, polled})
	{
		plug();
	}
	~TinyDriver() { host.unplug(); }
	void plug()
	{
		host.set_bus_master(true);
		host.set_msix_enabled(true);
		host.plug(card);
		host.loop().poll();
	}
	// Removes the card, whatever it is doing, and plugs it into a new guest.
	void plug_again()
	{
		host.unplug();
		host.clear_memory();
		free_ = kFirstFree;
		plug();
	}

	// Returns driver memory, which is never freed.
	std::uint64_t allocate(std::uint64_t size, std::uint64_t alignment = 4096)
	{
		free_ = (free_ + alignment - 1) & ~(alignment - 1);
		return std::exchange(free_, free_ + size);
	}
	std::uint32_t read(std::uint64_t offset)
	{
		return __builtin_bswap32(host.read<std::uint32_t>(0, offset));
	}
	void write(std::uint64_t offset, std::uint32_t value)
	{
		host.write(0, offset, __builtin_bswap32(value));
	}
	std::uint32_t load(std::uint64_t address)
	{
		return hw::mlx5::load_be32(bytes(address, 4), 0);
	}
	void store(std::uint64_t address, std::uint32_t value)
	{
		hw::mlx5::store_be32(bytes(address, 4), 0, value);
	}
	std::uint8_t *bytes(std::uint64_t address, std::size_t size)
	{
		return reinterpret_cast<std::uint8_t *>(host.memory(address, size).data());
	}

	/* --- commands --- */

	void set_command_queue()
	{
		write(hw::mlx5::segment::command_queue_high, 0);
		write(hw::mlx5::segment::command_queue_low, kCommandQueue);
	}
	// Writes entry @slot and the blocks of its chains; not the doorbell.
	void prepare(std::span<const std::uint8_t> in, std::size_t out_size, unsigned slot = 0)
	{
		using hw::mlx5::CommandEntry;
		std::uint8_t *const entry = bytes(kCommandQueue + 64 * slot, 64);
		std::fill_n(entry, 64, std::uint8_t{0});
		CommandEntry::type.set(entry, CommandEntry::type_pci);
		CommandEntry::input_length.set(entry, static_cast<std::uint32_t>(in.size()));
		CommandEntry::output_length.set(entry, static_cast<std::uint32_t>(out_size));
		const std::size_t head = std::min(in.size(), CommandEntry::inline_size);
		std::memcpy(entry + CommandEntry::inline_input, in.data(), head);
		CommandEntry::token.set(entry, kToken);
		entry[CommandEntry::status_byte] = CommandEntry::owner_card;
		if (chain(kInput, in.subspan(head)))
			CommandEntry::input_block.set(entry, kInput);
		const Bytes room(out_size > head ? out_size - CommandEntry::inline_size : 0);
		if (chain(kOutput, room))
			CommandEntry::output_block.set(entry, kOutput);
	}
	void ring(std::uint32_t slots)
	{
		write(hw::mlx5::segment::command_doorbell, slots);
		host.loop().poll();
	}
	// Executes a command on the object @number without running the card's loop, so packets in
	// flight do not move.
	Status command_at_once(Opcode opcode, std::uint32_t number)
	{
		Bytes in(16);
		hw::mlx5::InputHead::opcode.set(in.data(), static_cast<std::uint32_t>(opcode));
		hw::mlx5::object_number.set(in.data(), number);
		prepare(in, 16);
		write(hw::mlx5::segment::command_doorbell, 1);
		return answer(16).status;
	}
	// Reads entry @slot; delivery 0xff: the card has not answered.
	Answer answer(std::size_t out_size, unsigned slot = 0)
	{
		using hw::mlx5::CommandBlock;
		using hw::mlx5::CommandEntry;
		const std::uint8_t *const entry = bytes(kCommandQueue + 64 * slot, 64);
		Answer answer;
		const std::uint8_t status = entry[CommandEntry::status_byte];
		if (!(status & CommandEntry::owner_card))
			answer.delivery = status >> 1;
		answer.out.assign(entry + CommandEntry::inline_output,
				  entry + CommandEntry::inline_output + CommandEntry::inline_size);
		for (std::uint64_t block = kOutput; answer.out.size() < out_size; block += 1024) {
			const std::uint8_t *const data = bytes(block, CommandBlock::data_size);
			answer.out.insert(answer.out.end(), data, data + CommandBlock::data_size);
		}
		answer.out.resize(std::max<std::size_t>(out_size, hw::mlx5::OutputHead::size));
		answer.status =
			static_cast<Status>(hw::mlx5::OutputHead::status.get(answer.out.data()));
		return answer;
	}
	// Executes one command and waits for its completion.
	Answer command(Opcode opcode, Bytes in, std::size_t out_size = 16,
		       std::uint32_t op_modifier = 0)
	{
		in.resize(std::max<std::size_t>(in.size(), 16));
		hw::mlx5::InputHead::opcode.set(in.data(), static_cast<std::uint32_t>(opcode));
		hw::mlx5::InputHead::op_modifier.set(in.data(), op_modifier);
		prepare(in, out_size);
		ring(1);
		return answer(out_size);
	}
	Answer command(Opcode opcode, std::uint32_t number = 0, std::size_t out_size = 16)
	{
		Bytes in(16);
		hw::mlx5::object_number.set(in.data(), number);
		return command(opcode, std::move(in), out_size);
	}

	/* --- bringing the card up --- */

	void enable()
	{
		set_command_queue();
		ASSERT_EQ(command(Opcode::enable_hca).status, Status::ok);
	}
	void bring_up()
	{
		enable();
		ASSERT_EQ(command(Opcode::init_hca).status, Status::ok);
		uar = command(Opcode::alloc_uar).number();
		pd = command(Opcode::alloc_pd).number();
		key = make_key();
		async_taken = 0;
		async_eq = make_eq(kLogEq, ~std::uint64_t{0} & ~(1ull << 0x0a), 1, async_entries);
		completion_eq = make_eq(kLogEq, 0, 2, completion_entries);
	}
	// Resets everything except the cable.
	void start_over()
	{
		host.set_bus_master(true);
		host.set_msix_enabled(true);
		card.reset(PciReset::bus);
		host.loop().poll();
		host.clear_memory();
		free_ = kFirstFree;
	}
	void set_port_active()
	{
		CardPort &own = *card.context()->port(1);
		own.info().lid = lid;
		own.info().set_state(ib::PortState::active);
		own.managed().pkeys[0] = ib::pkey_default_full;
	}

	/* --- objects --- */

	static Bytes input_with(std::size_t size, std::size_t at,
				std::span<const std::uint8_t> context)
	{
		Bytes in(size);
		std::ranges::copy(context, in.begin() + static_cast<std::ptrdiff_t>(at));
		return in;
	}
	void append_pages(Bytes &in, std::uint64_t address, std::uint64_t size)
	{
		for (std::uint64_t at = 0; at < size; at += 4096) {
			in.resize(in.size() + 8);
			hw::mlx5::store_be64(in.data(), in.size() - 8, address + at);
		}
	}
	// Creates a key for all memory by bus addresses. Returns it in the form that work requests
	// use.
	std::uint32_t make_key()
	{
		using hw::mlx5::MkeyContext;
		MkeyContext context{};
		for (const auto *right : {&MkeyContext::local_read, &MkeyContext::local_write,
					  &MkeyContext::remote_read, &MkeyContext::remote_write,
					  &MkeyContext::atomic, &MkeyContext::length64})
			right->set(context.bytes, 1);
		MkeyContext::qpn.set(context.bytes, MkeyContext::any_qp);
		MkeyContext::variant.set(context.bytes, kVariant);
		MkeyContext::pd.set(context.bytes, pd);
		return make_key(context, 0, {});
	}
	std::uint32_t make_key(const hw::mlx5::MkeyContext &context, std::uint32_t octwords,
			       const Bytes &list)
	{
		Bytes in =
			input_with(hw::mlx5::pages_offset, hw::mlx5::context_offset, context.bytes);
		hw::mlx5::mkey_actual_octwords.set(in.data(), octwords);
		in.insert(in.end(), list.begin(), list.end());
		const Answer made = command(Opcode::create_mkey, std::move(in));
		return made.status == Status::ok
			       ? made.number() << 8 |
					 hw::mlx5::MkeyContext::variant.get(context.bytes)
			       : 0;
	}
	std::uint32_t make_eq(unsigned log_size, std::uint64_t events, unsigned vector,
			      std::uint64_t &entries)
	{
		using hw::mlx5::EqContext;
		const std::uint64_t size = std::uint64_t{hw::mlx5::Eqe::size} << log_size;
		entries = allocate(size);
		for (std::uint64_t at = 63; at < size; at += 64)
			*bytes(entries + at, 1) = 1;
		EqContext context{};
		EqContext::log_size.set(context.bytes, log_size);
		EqContext::uar_page.set(context.bytes, uar);
		EqContext::vector.set(context.bytes, vector);
		Bytes in =
			input_with(hw::mlx5::pages_offset, hw::mlx5::context_offset, context.bytes);
		hw::mlx5::eq_event_mask.set(in.data(), events);
		append_pages(in, entries, size);
		const Answer made = command(Opcode::create_eq, std::move(in));
		return made.status == Status::ok ? hw::mlx5::event_queue_number.get(made.out.data())
						 : 0;
	}
	struct Cq {
		std::uint32_t number = 0;
		std::uint64_t entries = 0;
		std::uint64_t record = 0;
		unsigned log_size = 0;
		bool large = false; // slots of 128 bytes, of which the second half is the entry
		std::uint64_t slot(std::uint32_t index) const
		{
			return entries + (large ? 128 : 64) * (index & ((1u << log_size) - 1));
		}
	};
	// @entry_size: as the context has it.
	Cq make_cq(unsigned log_size, unsigned entry_size = 0)
	{
		using hw::mlx5::CqContext;
		const bool large = entry_size != CqContext::entry_64;
		const std::uint64_t size = std::uint64_t{large ? 128u : 64u} << log_size;
		Cq cq{.entries = allocate(size),
		      .record = allocate(8, 8),
		      .log_size = log_size,
		      .large = large};
		for (std::uint64_t at = 63; at < size; at += 64)
			*bytes(cq.entries + at, 1) = 0xf1;
		CqContext context = cq_settings;
		CqContext::log_size.set(context.bytes, log_size);
		CqContext::entry_size.set(context.bytes, entry_size);
		CqContext::uar_page.set(context.bytes, uar);
		CqContext::eqn.set(context.bytes, completion_eq);
		CqContext::record.set(context.bytes, cq.record);
		Bytes in =
			input_with(hw::mlx5::pages_offset, hw::mlx5::context_offset, context.bytes);
		append_pages(in, cq.entries, size);
		const Answer made = command(Opcode::create_cq, std::move(in));
		cq.number = made.status == Status::ok ? made.number() : 0;
		return cq;
	}
	// Takes the asynchronous events, so that their queue never overflows.
	void take_async_events()
	{
		using hw::mlx5::Eqe;
		const auto owner = [&] {
			const std::uint64_t place = async_taken & ((1u << kLogEq) - 1);
			return Eqe::owner.get(host.object<Eqe>(async_entries + 64 * place).bytes);
		};
		while (owner() == (async_taken >> kLogEq & 1))
			++async_taken;
		write(std::uint64_t{uar} * hw::mlx5::uar::page_size + hw::mlx5::uar::eq_doorbell,
		      async_eq << 24 | (async_taken & 0xffffff));
	}
	// Returns entry @index of a CQ. Its opcode is 0xf until the card has written it.
	hw::mlx5::Cqe entry(const Cq &cq, std::uint32_t index)
	{
		return host.object<hw::mlx5::Cqe>(cq.slot(index) + (cq.large ? 64 : 0));
	}
	struct Qp {
		std::uint32_t number = 0;
		std::uint64_t receive = 0; // address of 2^kLogReceives entries of 64 bytes, or 0
		std::uint64_t send = 0;    // address of 2^kLogBlocks blocks of 64 bytes
		std::uint64_t record = 0;
	};
	static constexpr unsigned kLogReceives = 4, kLogBlocks = 4;
	// @srqn is the SRQ that the QP uses in place of its own receive queue, or 0.
	Answer try_qp(QpService service, const Cq &cq, Qp &qp, bool privileged = true,
		      std::uint32_t offload_mode = 0, std::uint32_t source = 0,
		      std::uint32_t srqn = 0)
	{
		using hw::mlx5::QpContext;
		constexpr std::uint64_t receive_bytes = 64 << kLogReceives;
		constexpr std::uint64_t size = receive_bytes + (64 << kLogBlocks);
		const bool own_queue = service != QpService::xrc && srqn == 0;
		const std::uint64_t buffer = allocate(size);
		qp.receive = own_queue ? buffer : 0;
		qp.send = own_queue ? buffer + receive_bytes : buffer;
		qp.record = allocate(8, 8);
		QpContext context{};
		QpContext::receive_type.set(context.bytes, own_queue ? QpContext::own_queue
							   : srqn    ? QpContext::shared_queue
								     : QpContext::no_queue);
		QpContext::srqn.set(context.bytes, srqn);
		QpContext::inline_receive.set(context.bytes, inline_receive);
		QpContext::inline_response.set(context.bytes, inline_response);
		QpContext::xrc_domain.set(context.bytes, xrc_domain);
		QpContext::service.set(context.bytes, static_cast<std::uint32_t>(service));
		QpContext::pd.set(context.bytes, pd);
		QpContext::log_rq_size.set(context.bytes, kLogReceives);
		QpContext::log_rq_stride.set(context.bytes, 2); // 64 bytes
		QpContext::log_sq_size.set(context.bytes, kLogBlocks);
		QpContext::reserved_lkey.set(context.bytes, privileged);
		QpContext::offload_mode.set(context.bytes, offload_mode);
		QpContext::datagram_source.set(context.bytes, source);
		QpContext::uar_page.set(context.bytes, uar);
		QpContext::user_index.set(context.bytes, QpContext::no_user_index);
		QpContext::send_cqn.set(context.bytes, cq.number);
		QpContext::receive_cqn.set(context.bytes, cq.number);
		QpContext::record.set(context.bytes, qp.record);
		Bytes in = input_with(hw::mlx5::pages_offset, hw::mlx5::qp_command::context,
				      context.bytes);
		append_pages(in, buffer, size);
		Answer made = command(Opcode::create_qp, std::move(in));
		qp.number = made.status == Status::ok ? made.number() : 0;
		return made;
	}
	Qp make_qp(QpService service, const Cq &cq, bool privileged = true)
	{
		Qp qp;
		EXPECT_EQ(try_qp(service, cq, qp, privileged).status, Status::ok);
		return qp;
	}
	// Executes a transition with all attributes that connect @qp to @peer through the port's
	// own LID.
	Status transition(Opcode opcode, const Qp &qp, std::uint32_t peer, unsigned number = 1,
			  std::uint32_t opt_mask = 0)
	{
		using hw::mlx5::PathLayout;
		using hw::mlx5::QpContext;
		QpContext context{};
		std::uint8_t *const path = context.bytes + QpContext::primary_path;
		PathLayout::port.set(path, number);
		PathLayout::remote_lid.set(path, peer_lid);
		PathLayout::ack_timeout.set(path, 14);
		QpContext::pd.set(context.bytes, pd);
		QpContext::mtu.set(context.bytes, 3);
		QpContext::log_max_message.set(context.bytes, 30);
		QpContext::remote_qpn.set(context.bytes, peer);
		QpContext::retry_count.set(context.bytes, 7);
		QpContext::rnr_retry.set(context.bytes, 7);
		QpContext::log_requester_reads.set(context.bytes, 2);
		QpContext::log_responder_reads.set(context.bytes, 2);
		QpContext::remote_read.set(context.bytes, 1);
		QpContext::remote_write.set(context.bytes, 1);
		QpContext::remote_atomic.set(context.bytes, 1);
		QpContext::qkey.set(context.bytes, kQkey);
		Bytes in = input_with(hw::mlx5::qp_command::size, hw::mlx5::qp_command::context,
				      context.bytes);
		hw::mlx5::object_number.set(in.data(), qp.number);
		hw::mlx5::qp_command::opt_mask.set(in.data(), opt_mask);
		return command(opcode, std::move(in)).status;
	}
	void to_rts(const Qp &qp, std::uint32_t peer)
	{
		for (const Opcode step :
		     {Opcode::rst2init_qp, Opcode::init2rtr_qp, Opcode::rtr2rts_qp})
			ASSERT_EQ(transition(step, qp, peer), Status::ok);
	}
	// Two queue pairs of a kind, connected to each other.
	std::pair<Qp, Qp> make_pair(const Cq &cq)
	{
		const Qp one = make_qp(QpService::rc, cq), two = make_qp(QpService::rc, cq);
		to_rts(one, two.number);
		to_rts(two, one.number);
		return {one, two};
	}
	// Posts @wqe at block @index of the send queue; it may wrap around. Returns the index after
	// it.
	std::uint32_t post(const Qp &qp, std::uint32_t index, Bytes wqe)
	{
		using hw::mlx5::WqeControl;
		WqeControl::index.set(wqe.data(), index);
		WqeControl::qpn.set(wqe.data(), qp.number);
		WqeControl::units.set(wqe.data(), static_cast<std::uint32_t>(wqe.size() / 16));
		constexpr std::size_t ring_bytes = 64 << kLogBlocks;
		for (std::size_t at = 0; at < wqe.size(); ++at)
			*bytes(qp.send + (64 * index + at) % ring_bytes, 1) = wqe[at];
		const std::uint32_t next =
			index + static_cast<std::uint32_t>((wqe.size() + 63) / 64);
		store(qp.record + 4, next & 0xffff);
		return next;
	}
	std::uint32_t send(const Qp &qp, std::uint32_t index, Bytes wqe)
	{
		const std::uint32_t next = post(qp, index, std::move(wqe));
		ring_send(qp);
		return next;
	}
	// Rings the doorbell without running the card's loop, so packets are sent and do not
	// arrive.
	void ring_at_once(const Qp &qp)
	{
		const std::uint64_t place =
			std::uint64_t{uar} * hw::mlx5::uar::page_size + hw::mlx5::uar::blue_flame;
		write(place, 0);
		write(place + 4, qp.number << 8);
	}
	void ring_send(const Qp &qp)
	{
		ring_at_once(qp);
		host.loop().poll();
	}
	void receive(const Qp &qp, std::uint32_t index, std::uint64_t address, std::uint32_t size)
	{
		const std::uint64_t place = qp.receive + 64 * (index & ((1u << kLogReceives) - 1));
		put_data(bytes(place, 16), address, size, key);
		put_data(bytes(place + 16, 16), 0, 0, hw::mlx5::WqeData::terminator_lkey);
		store(qp.record, (index + 1) & 0xffff);
	}
	// Shared receive queues of 2^kLogReceives entries of 64 bytes, linked in a circle.
	struct Srq {
		std::uint32_t number = 0;
		std::uint64_t entries = 0;
		std::uint64_t record = 0;
	};
	Srq make_rmp()
	{
		using hw::mlx5::WqContext;
		namespace rmp = hw::mlx5::rmp_command;
		Srq srq = srq_memory();
		hw::mlx5::RmpContext context{};
		std::uint8_t *const queue = context.bytes + hw::mlx5::RmpContext::work_queue;
		WqContext::pd.set(queue, pd);
		WqContext::record.set(queue, srq.record);
		WqContext::log_stride.set(queue, 6);
		WqContext::log_size.set(queue, kLogReceives);
		Bytes in = input_with(rmp::pages, rmp::context, context.bytes);
		append_pages(in, srq.entries, 64 << kLogReceives);
		return made_srq(Opcode::create_rmp, std::move(in), srq);
	}
	Srq make_xrc_srq(const Cq &cq, std::uint32_t user_index)
	{
		using hw::mlx5::XrcSrqContext;
		Srq srq = srq_memory();
		XrcSrqContext context{};
		XrcSrqContext::log_size.set(context.bytes, kLogReceives);
		XrcSrqContext::log_stride.set(context.bytes, 2); // 64 bytes
		XrcSrqContext::xrc_domain.set(context.bytes, xrc_domain);
		XrcSrqContext::cqn.set(context.bytes, cq.number);
		XrcSrqContext::user_index.set(context.bytes, user_index);
		XrcSrqContext::pd.set(context.bytes, pd);
		XrcSrqContext::record.set(context.bytes, srq.record);
		Bytes in =
			input_with(hw::mlx5::pages_offset, hw::mlx5::context_offset, context.bytes);
		append_pages(in, srq.entries, 64 << kLogReceives);
		return made_srq(Opcode::create_xrc_srq, std::move(in), srq);
	}
	void receive(const Srq &srq, std::uint32_t index, std::uint64_t address, std::uint32_t size)
	{
		const std::uint64_t place = srq.entries + 64 * (index & ((1u << kLogReceives) - 1));
		put_data(bytes(place + 16, 16), address, size, key);
		put_data(bytes(place + 32, 16), 0, 0, hw::mlx5::WqeData::terminator_lkey);
		store(srq.record, (index + 1) & 0xffff);
	}
	static void put_data(std::uint8_t *place, std::uint64_t address, std::uint32_t size,
			     std::uint32_t lkey)
	{
		hw::mlx5::store_be32(place, 0, size);
		hw::mlx5::store_be32(place, 4, lkey);
		hw::mlx5::store_be64(place, 8, address);
	}
	// Codes of send requests.
	static constexpr std::uint32_t kSendInvalidate = 0x01, kWrite = 0x08,
				       kWriteImmediate = 0x09, kSend = 0x0a, kSendImmediate = 0x0b,
				       kRead = 0x10, kCompareSwap = 0x11, kFetchAdd = 0x12,
				       kMaskedCompareSwap = 0x14, kMaskedFetchAdd = 0x15;
	// Segments of send requests.
	static Bytes control(std::uint32_t opcode, bool signalled = true)
	{
		Bytes wqe(16);
		hw::mlx5::WqeControl::opcode.set(wqe.data(), opcode);
		hw::mlx5::WqeControl::completion.set(wqe.data(),
						     signalled ? hw::mlx5::WqeControl::always : 0);
		return wqe;
	}
	static void add_data(Bytes &wqe, std::uint64_t address, std::uint32_t size,
			     std::uint32_t lkey)
	{
		wqe.resize(wqe.size() + 16);
		put_data(wqe.data() + wqe.size() - 16, address, size, lkey);
	}
	static void add_remote(Bytes &wqe, std::uint64_t address, std::uint32_t rkey)
	{
		wqe.resize(wqe.size() + 16);
		hw::mlx5::store_be64(wqe.data(), wqe.size() - 16, address);
		hw::mlx5::store_be32(wqe.data(), wqe.size() - 8, rkey);
	}
	// Returns the number of events that the card has raised for completions. None is consumed.
	unsigned completion_events()
	{
		using hw::mlx5::Eqe;
		unsigned count = 0;
		while (Eqe::owner.get(host.object<Eqe>(completion_entries + 64 * count).bytes) == 0)
			++count;
		return count;
	}
	bool run_until_entry(const Cq &cq, std::uint32_t index)
	{
		return host.loop().run_until(
			[&] { return hw::mlx5::Cqe::opcode.get(entry(cq, index).bytes) != 0xf; });
	}

	static constexpr std::uint8_t kVariant = 0x77;
	static constexpr std::uint32_t kQkey = 0x11111111;
	static constexpr unsigned kLogEq = 6;

	ib::Lid lid = kLid, peer_lid = kLid; // the port's, and that of the peers of queue pairs
	std::unique_ptr<fabric::Fabric> own_fabric;
	fabric::Port &port;
	fabric::Port *const port2 = nullptr; // of cards with two ports
	weft::testing::FakeHost host{kMemorySize};
	Card card;
	std::uint32_t uar = 0, pd = 0, key = 0;
	// Settings of all queue pairs and XRC queues that are created from now on, and the codes
	// for data in their completions.
	std::uint32_t xrc_domain = 0;
	std::uint32_t inline_receive = 0, inline_response = 0;
	// The same for completion queues, in addition to what make_cq() sets.
	hw::mlx5::CqContext cq_settings{};
	std::uint32_t async_eq = 0, completion_eq = 0, async_taken = 0;
	std::uint64_t async_entries = 0, completion_entries = 0;

private:
	std::vector<fabric::Port *> cables()
	{
		return port2 ? std::vector{&port, port2} : std::vector{&port};
	}
	Srq srq_memory()
	{
		Srq srq{.entries = allocate(64 << kLogReceives), .record = allocate(8, 8)};
		for (std::uint32_t i = 0; i < 1u << kLogReceives; ++i)
			store(srq.entries + 64 * i, (i + 1) & ((1u << kLogReceives) - 1));
		return srq;
	}
	Srq made_srq(Opcode opcode, Bytes in, Srq srq)
	{
		const Answer made = command(opcode, std::move(in));
		srq.number = made.status == Status::ok ? made.number() : 0;
		return srq;
	}
	// A chain of blocks that holds @data; false if there is none.
	bool chain(std::uint64_t place, std::span<const std::uint8_t> data)
	{
		using hw::mlx5::CommandBlock;
		std::uint32_t number = 0;
		for (std::size_t at = 0; at < data.size(); at += CommandBlock::data_size) {
			std::uint8_t *const block = bytes(place, CommandBlock::size);
			std::fill_n(block, std::size_t{CommandBlock::size}, std::uint8_t{0});
			const std::size_t step =
				std::min<std::size_t>(data.size() - at, CommandBlock::data_size);
			std::memcpy(block, data.data() + at, step);
			CommandBlock::number.set(block, number++);
			CommandBlock::token.set(block, kToken);
			place += 1024;
			if (at + step < data.size())
				CommandBlock::next.set(block, place);
		}
		return !data.empty();
	}

	std::uint64_t free_ = kFirstFree;
};

} // namespace weft::mlx5::testing
