// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides a driver that misuses its card. A sequence of bytes determines what it does: the
// fuzzer's input, or bytes that a test generates from a seed.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <hw/mlx5/management.hpp>

#include "base/memory_mapping.hpp"
#include "bus/pci/testing/malicious_guest.hpp"
#include "cards/mlx5/limits.hpp"
#include "cards/mlx5/tests/raw_driver.hpp"

namespace weft::mlx5::testing
{

using hw::mlx5::MkeyContext;
using hw::mlx5::MkeyMode;
using hw::mlx5::RawState;
using hw::mlx5::WqeControl;
using hw::mlx5::WqeDatagram;
using hw::mlx5::WqeUmr;
namespace umr = hw::mlx5::umr;

inline constexpr Opcode kOpcodes[] = {
	Opcode::query_hca_cap,
	Opcode::set_hca_cap,
	Opcode::query_adapter,
	Opcode::query_pages,
	Opcode::manage_pages,
	Opcode::query_issi,
	Opcode::set_issi,
	Opcode::init_hca,
	Opcode::teardown_hca,
	Opcode::enable_hca,
	Opcode::disable_hca,
	Opcode::create_mkey,
	Opcode::query_mkey,
	Opcode::destroy_mkey,
	Opcode::create_eq,
	Opcode::destroy_eq,
	Opcode::query_eq,
	Opcode::create_cq,
	Opcode::destroy_cq,
	Opcode::query_cq,
	Opcode::modify_cq,
	Opcode::create_qp,
	Opcode::destroy_qp,
	Opcode::rst2init_qp,
	Opcode::init2rtr_qp,
	Opcode::rtr2rts_qp,
	Opcode::rts2rts_qp,
	Opcode::sqerr2rts_qp,
	Opcode::to_err_qp,
	Opcode::to_rst_qp,
	Opcode::query_qp,
	Opcode::sqd2rts_qp,
	Opcode::mad_ifc,
	Opcode::init2init_qp,
	Opcode::create_xrc_srq,
	Opcode::destroy_xrc_srq,
	Opcode::query_xrc_srq,
	Opcode::arm_xrc_srq,
	Opcode::query_hca_vport_context,
	Opcode::query_hca_vport_gid,
	Opcode::query_hca_vport_pkey,
	Opcode::query_vport_counter,
	Opcode::alloc_q_counter,
	Opcode::dealloc_q_counter,
	Opcode::query_q_counter,
	Opcode::alloc_pd,
	Opcode::dealloc_pd,
	Opcode::alloc_uar,
	Opcode::dealloc_uar,
	Opcode::access_register,
	Opcode::attach_to_mcg,
	Opcode::detach_from_mcg,
	Opcode::alloc_xrcd,
	Opcode::dealloc_xrcd,
	Opcode::alloc_transport_domain,
	Opcode::dealloc_transport_domain,
	Opcode::create_tir,
	Opcode::modify_tir,
	Opcode::destroy_tir,
	Opcode::create_sq,
	Opcode::modify_sq,
	Opcode::destroy_sq,
	Opcode::query_sq,
	Opcode::create_rq,
	Opcode::modify_rq,
	Opcode::destroy_rq,
	Opcode::query_rq,
	Opcode::create_rmp,
	Opcode::modify_rmp,
	Opcode::destroy_rmp,
	Opcode::query_rmp,
	Opcode::create_tis,
	Opcode::destroy_tis,
	Opcode::create_rqt,
	Opcode::modify_rqt,
	Opcode::destroy_rqt,
	Opcode::set_flow_table_root,
	Opcode::create_flow_table,
	Opcode::destroy_flow_table,
	Opcode::create_flow_group,
	Opcode::destroy_flow_group,
	Opcode::set_flow_table_entry,
	Opcode::delete_flow_table_entry,
	Opcode::modify_flow_table,
	static_cast<Opcode>(0x93d), // not modelled
};

// Opcodes of send requests: all that the card supports, UMR twice, and one that it does not
// support.
inline constexpr std::uint8_t kRequests[] = {0x00, 0x01, 0x08, 0x09, 0x0a, 0x0b, 0x0e, 0x10,
					     0x11, 0x12, 0x14, 0x15, 0x25, 0x25, 0x77};

// Masks of the fields that UMR requests change. Drivers register a key, bind a window, free a key,
// change its rights, or move it to another domain. The last two masks change everything, and only
// the list.
inline constexpr std::uint64_t kRights =
	umr::local_read | umr::local_write | umr::remote_read | umr::remote_write | umr::atomic;
inline constexpr std::uint64_t kUpdates[] = {
	umr::length | umr::page_size | umr::start | umr::variant | umr::free | kRights,
	umr::length | umr::start | umr::variant | umr::qpn | umr::free | kRights,
	umr::free,
	kRights,
	umr::pd | umr::free,
	~std::uint64_t{0},
	0,
};

inline constexpr QpService kServices[] = {QpService::rc,     QpService::uc,  QpService::ud,
					  QpService::xrc,    QpService::qp0, QpService::qp1,
					  QpService::reg_umr};

// MaliciousDriver - what MaliciousGuest asks for. Queue pairs are known by their places in qps_;
// packets to the port's own address do not leave the card.
class MaliciousDriver
{
	using Input = weft::testing::Input;

public:
	static constexpr std::uint64_t kMemorySize = TinyDriver::kMemorySize;
	// There is no BAR 2; writes to it are ignored.
	static constexpr std::uint64_t kBarSizes[6] = {limits::kRegistersSize, 0, 4096, 0,
						       limits::kMsixBarSize,   0};

	// Creates a driver whose card is the only one in its fabric, or whose cable leads to the
	// port of a victim with @lid. The victim's third QP receives datagrams. @meanwhile is
	// called when the victim may run. @polled: the card polls doorbells, and the input decides
	// when the driver maps the pages and whether it uses them.
	MaliciousDriver() = default;
	MaliciousDriver(fabric::Port &port, ib::Guid guid, ib::Lid lid,
			std::function<void()> meanwhile, Environment &environment,
			bool polled = false)
	    : driver_(port, guid, environment, polled), victim_lid_(lid),
	      meanwhile_(std::move(meanwhile)), polled_(polled)
	{
	}

	void start()
	{
		qps_ = {};
		driver_.bring_up();
		if (polled_)
			driver_.uar = driver_.command(Opcode::alloc_uar).number();
		if (victim_lid_)
			set_cable(true);
		scratch_ = driver_.allocate(weft::testing::kMaliciousScratch);
		everything_ = driver_.allocate(weft::testing::kMaliciousScratch);
		cq_ = driver_.make_cq(6);
		hw::mlx5::CqContext::compressed.set(driver_.cq_settings.bytes, 1);
		large_cq_ = driver_.make_cq(6, hw::mlx5::CqContext::entry_128);
		driver_.cq_settings = {};
		driver_.xrc_domain = driver_.command(Opcode::alloc_xrcd).number();
		pool_ = driver_.make_rmp();
		xrc_srq_ = driver_.make_xrc_srq(cq_, 5);
		make_keys();
		set_port_active();
		if (victim_lid_)
			connect_to_victim();
		sends_ = {};
		interface_ = driver_.make_interface(cq_.number);
	}

	bool comes_back()
	{
		set_cable(false);
		// The next input must not depend on whether this one has mapped the pages.
		if (polled_) {
			pages_.reset();
			driver_.card.reset(PciReset::host_gone);
		}
		driver_.start_over();
		driver_.set_command_queue();
		return driver_.command(Opcode::enable_hca).status == Status::ok;
	}

	weft::testing::FakeHost &host() { return driver_.host; }
	Card &card() { return driver_.card; }
	std::uint64_t scratch() const { return scratch_; }
	std::uint64_t everything() const { return everything_; }
	// Returns the command queue, or the memory of the QPs and their records.
	std::span<std::byte> table(bool which)
	{
		return driver_.host.memory(which ? everything_ + weft::testing::kMaliciousScratch
						 : TinyDriver::kCommandQueue,
					   4096);
	}
	static Opcode any_opcode(std::uint8_t choice)
	{
		return kOpcodes[choice % std::size(kOpcodes)];
	}
	// If @in is the scratch area, its bytes are the input, in a valid chain; otherwise @in is
	// the chain.
	void raw(Opcode opcode, std::uint32_t modifier, std::uint32_t op_modifier, std::uint64_t in,
		 std::uint64_t out, bool event, std::uint16_t token)
	{
		constexpr std::size_t lengths[] = {16, 0x50, 0x110, 0x120, 0x200, 0x1010};
		Bytes content(lengths[token % std::size(lengths)]);
		const bool chain = in != scratch_;
		if (!chain)
			std::copy_n(driver_.bytes(scratch_, content.size()), content.size(),
				    content.begin());
		hw::mlx5::InputHead::opcode.set(content.data(), static_cast<std::uint32_t>(opcode));
		hw::mlx5::InputHead::op_modifier.set(content.data(), op_modifier);
		hw::mlx5::store_be32(content.data(), 8, modifier);
		driver_.prepare(content, token & 0x100 ? 0x1010 : 0x200, token >> 12);
		std::uint8_t *const entry =
			driver_.bytes(TinyDriver::kCommandQueue + 64 * (token >> 12), 64);
		if (chain)
			hw::mlx5::CommandEntry::input_block.set(entry, in);
		if (out != scratch_ + 4096)
			hw::mlx5::CommandEntry::output_block.set(entry, out);
		driver_.ring(event ? ~std::uint32_t{0} : 1u << (token >> 12));
	}
	static std::uint32_t qpn(std::uint8_t choice) { return choice % 8; }
	void ring(std::uint32_t place) { ring(qps_[place]); }
	void end(std::uint32_t place, bool by_error)
	{
		if (sends_[place]) {
			driver_.modify(Opcode::modify_sq, qps_[place].number, RawState::ready,
				       by_error ? RawState::error : RawState::reset);
			return;
		}
		driver_.command(by_error ? Opcode::to_err_qp : Opcode::to_rst_qp,
				qps_[place].number);
	}
	void arm(Input &input)
	{
		if (polled_)
			use_page(input);
		const std::uint64_t page = std::uint64_t{driver_.uar} * 4096;
		driver_.write(page + hw::mlx5::uar::cq_doorbell,
			      std::uint32_t{input.take<std::uint8_t>()} << 24 |
				      input.take<std::uint8_t>());
		driver_.write(page + hw::mlx5::uar::cq_doorbell + 4, cq_.number);
		driver_.write(page + hw::mlx5::uar::eq_doorbell_arm,
			      driver_.completion_eq << 24 | input.take<std::uint8_t>());
	}
	void consume(Input &input)
	{
		const std::uint8_t choice = input.take<std::uint8_t>();
		if (choice & 0x80)
			use_gateway(input);
		driver_.store(choice & 1 ? large_cq_.record : cq_.record,
			      input.take<std::uint32_t>());
	}
	// Reads or writes a dword through the vendor-specific capability.
	void use_gateway(Input &input)
	{
		namespace gateway = hw::mlx5::gateway;
		constexpr std::uint32_t spaces[] = {2, 3, 3, 0xa, 7};
		constexpr std::uint32_t places[] = {0, 0x1000, 0xf0014, 0x100000, 0x100000, ~0u};
		const std::uint8_t choice = input.take<std::uint8_t>();
		const std::uint32_t place =
			places[choice % std::size(places)] + 4u * input.take<std::uint8_t>();
		Card &card = driver_.card;
		card.capability_write(gateway::semaphore, card.capability_read(gateway::counter));
		card.capability_write(gateway::control, spaces[choice % std::size(spaces)]);
		card.capability_write(gateway::data, input.take<std::uint32_t>());
		card.capability_write(gateway::address, choice & 0x80 ? place : place | 1u << 31);
		card.capability_read(gateway::data);
	}
	void set_port_active() { driver_.set_port_active(); }
	void set_cable(bool in) { in ? driver_.port.enable() : driver_.port.disable(); }

	void create_qp(std::uint32_t place, Input &input)
	{
		TinyDriver::Qp &qp = qps_[place];
		if (qp.number)
			driver_.command(sends_[place] ? Opcode::destroy_sq : Opcode::destroy_qp,
					qp.number);
		// The last kind is a send queue (SQ).
		const unsigned kind = input.take<std::uint8_t>() % (std::size(kServices) + 1);
		sends_[place] = kind == std::size(kServices);
		if (sends_[place]) {
			make_send_queue(place);
			return;
		}
		const QpService service = kServices[kind];
		const std::uint8_t shape = input.take<std::uint8_t>();
		const bool shares = (shape & 2) && service < QpService::xrc;
		driver_.peer_lid = any_lid(input);
		driver_.inline_receive = shape >> 3 & 3;
		driver_.inline_response = (shape >> 5 & 3) * 0x11u;
		driver_.try_qp(service, shape & 0x80 ? large_cq_ : cq_, qp, shape & 1,
			       shape & 4 ? hw::mlx5::QpContext::ipoib_offload : 0, 0,
			       shares ? pool_.number : 0);
		services_[place] = service;
		const std::uint32_t peer = qps_[input.take<std::uint8_t>() % 8].number;
		for (const Opcode step :
		     {Opcode::rst2init_qp, Opcode::init2rtr_qp, Opcode::rtr2rts_qp})
			driver_.transition(step, qp, peer);
	}

	// A send request, and a receive; then the records and the doorbell.
	void post(std::uint32_t place, Input &input)
	{
		const TinyDriver::Qp &qp = qps_[place];
		if (!qp.send)
			return;
		std::uint8_t request = kRequests[input.take<std::uint8_t>() % std::size(kRequests)];
		std::uint8_t shape = input.take<std::uint8_t>();
		// A short SEND is valid on most kinds of queue pairs, so it often reaches the
		// victim.
		if (victim_lid_ && (shape & 64)) {
			request = TinyDriver::kSend;
			shape = static_cast<std::uint8_t>((shape & ~4u) | 32);
		}
		Bytes wqe = TinyDriver::control(request);
		WqeControl::op_modifier.set(wqe.data(), shape & 1 ? 9 : input.take<std::uint8_t>());
		if (request == hw::mlx5::opcode_umr || request == 0x01)
			WqeControl::immediate.set(wqe.data(), any_key(input));
		if (services_[place] == QpService::xrc) {
			wqe.resize(wqe.size() + 16);
			hw::mlx5::store_be32(wqe.data(), 16,
					     shape & 2 ? xrc_srq_.number : pool_.number);
		}
		if (shape & 4) {
			const auto segments = input.take(16u * (input.take<std::uint8_t>() % 12));
			wqe.insert(wqe.end(), segments.begin(), segments.end());
			wqe.resize((wqe.size() + 15) & ~std::size_t{15});
		} else if (request == hw::mlx5::opcode_umr) {
			add_update(wqe, input);
		} else {
			add_operands(wqe, request, place, input);
		}
		for (unsigned pieces = shape >> 3 & 3; pieces && request != hw::mlx5::opcode_umr;
		     --pieces)
			TinyDriver::add_data(wqe, any_address(input),
					     shape & 32 ? 8 : any_length(input), any_key(input));
		post_receive(place, input);
		if (meanwhile_)
			meanwhile_();
		driver_.post(qp, driver_.load(qp.record + 4) & 0xffff, wqe);
		ring(qp);
	}

private:
	// Seven of eight lengths are below 4 KiB, because long messages take much time.
	static std::uint16_t any_length(Input &input)
	{
		const std::uint16_t length = input.take<std::uint16_t>();
		return length >> 13 == 7 ? length : length & 0x0fff;
	}
	void ring(const TinyDriver::Qp &qp)
	{
		if (!pages_) {
			driver_.ring_send(qp);
			return;
		}
		store_doorbell(driver_.uar, hw::mlx5::uar::blue_flame, qp.number << 8);
		driver_.host.loop().poll();
	}
	// Stores a second dword to a page that the driver has mapped.
	void store_doorbell(std::uint32_t page, std::uint32_t offset, std::uint32_t value)
	{
		const std::uint32_t dwords[2] = {0, __builtin_bswap32(value)};
		std::memcpy(pages_->data() + std::size_t{page} * hw::mlx5::uar::page_size + offset,
			    dwords, sizeof(dwords));
	}
	// Maps the pages, or writes to them: an arm word and its doorbell, or any value anywhere.
	void use_page(Input &input)
	{
		const std::uint8_t choice = input.take<std::uint8_t>();
		if (!pages_) {
			const PciMapping part = choice & 1 ? driver_.card.mapping(0) : PciMapping{};
			if (part.fd >= 0)
				pages_ = MemoryMapping::map_file(part.fd, 0, limits::kRegistersSize,
								 true);
			return;
		}
		if (choice & 2) {
			driver_.store(cq_.record + 4, input.take<std::uint32_t>());
			store_doorbell(driver_.uar, hw::mlx5::uar::cq_doorbell, cq_.number);
		} else {
			const std::uint32_t page = driver_.uar + (choice >> 2) % 4;
			store_doorbell(page, input.take<std::uint8_t>() * 16u,
				       input.take<std::uint32_t>());
		}
	}
	// Most kinds of queue pairs, connected to queue pairs of the victim. Numbers are assigned
	// in the order of creation, so the victim's first queue pairs have the same numbers.
	void connect_to_victim()
	{
		driver_.peer_lid = victim_lid_;
		driver_.inline_receive = driver_.inline_response = 0;
		for (std::uint32_t place = 0; place < qps_.size(); ++place) {
			TinyDriver::Qp &qp = qps_[place];
			services_[place] =
				place < kDatagramPlaces ? kServices[place] : QpService::ud;
			driver_.try_qp(services_[place], cq_, qp);
			for (const Opcode step :
			     {Opcode::rst2init_qp, Opcode::init2rtr_qp, Opcode::rtr2rts_qp})
				driver_.transition(step, qp, qps_[place % 2].number);
		}
		victim_datagram_qpn_ = qps_[2].number; // as in Victim
	}
	// Creates keys that UMR requests register, memory windows of both types, a region that only
	// windows can access, a list of parts of other keys, and the driver's key of all memory.
	void make_keys()
	{
		MkeyContext context{};
		for (const auto *field : {&MkeyContext::free, &MkeyContext::umr_enable,
					  &MkeyContext::remote_invalidate})
			field->set(context.bytes, 1);
		MkeyContext::qpn.set(context.bytes, MkeyContext::any_qp);
		MkeyContext::pd.set(context.bytes, driver_.pd);
		MkeyContext::octwords.set(context.bytes, 16);
		MkeyContext::log_page_size.set(context.bytes, 12);
		const auto make = [&](unsigned place, MkeyMode mode, std::uint32_t octwords,
				      const Bytes &list) {
			MkeyContext::mode_low.set(context.bytes, static_cast<std::uint32_t>(mode));
			keys_[place] = driver_.make_key(context, octwords, list);
		};
		make(kFreePages, MkeyMode::pages, 0, {});
		make(kFreePieces, MkeyMode::pieces, 0, {});
		make(kFreeEqualPieces, MkeyMode::equal_pieces, 0, {});
		MkeyContext::octwords.set(context.bytes, 1);
		make(kWindow2, MkeyMode::pieces, 0, {});
		MkeyContext::remote_invalidate.set(context.bytes, 0);
		make(kWindow1, MkeyMode::pieces, 0, {});

		MkeyContext::free.set(context.bytes, 0);
		for (const auto *field : {&MkeyContext::local_read, &MkeyContext::local_write})
			field->set(context.bytes, 1);
		MkeyContext::start.set(context.bytes, everything_);
		MkeyContext::length.set(context.bytes, weft::testing::kMaliciousScratch);
		MkeyContext::octwords.set(context.bytes, 8);
		Bytes list;
		driver_.append_pages(list, everything_, weft::testing::kMaliciousScratch);
		make(kRegion, MkeyMode::pages, 8, list);
		for (const auto *field :
		     {&MkeyContext::remote_read, &MkeyContext::remote_write, &MkeyContext::atomic})
			field->set(context.bytes, 1);
		list.clear();
		MkeyContext::octwords.set(context.bytes, 4);
		for (const unsigned part : {kRegion, kRegion, kWindow1, kFreePages})
			TinyDriver::add_data(list, everything_, 0x4000, keys_[part]);
		make(kList, MkeyMode::pieces, 4, list);
		keys_[kEverything] = driver_.key;
	}
	std::uint32_t any_key(Input &input)
	{
		const std::uint8_t choice = input.take<std::uint8_t>();
		// UMR requests give keys other variants.
		return keys_[choice % keys_.size()] ^ (choice >> 4 == 0xf ? 1 : 0);
	}
	ib::Lid any_lid(Input &input)
	{
		return victim_lid_ && (input.take<std::uint8_t>() & 3) ? victim_lid_
								       : TinyDriver::kLid;
	}
	std::uint64_t any_address(Input &input)
	{
		return everything_ + input.take<std::uint16_t>();
	}

	// The segments between the control segment and the data.
	void add_operands(Bytes &wqe, std::uint8_t request, std::uint32_t place, Input &input)
	{
		const QpService service = services_[place];
		if (service == QpService::ud || service == QpService::qp1) {
			WqeDatagram address{};
			WqeDatagram::qkey.set(address.bytes, TinyDriver::kQkey);
			WqeDatagram::extended.set(address.bytes, 1);
			const std::uint8_t choice = input.take<std::uint8_t>();
			std::uint32_t to = qps_[choice % 8].number;
			if (victim_lid_ && (choice & 0x18))
				to = victim_datagram_qpn_;
			else if (choice & 0x80)
				to = interface_.underlay.number;
			WqeDatagram::qpn.set(address.bytes, to);
			WqeDatagram::dlid.set(address.bytes, any_lid(input));
			wqe.insert(wqe.end(), address.bytes, address.bytes + sizeof(address.bytes));
			if (sends_[place])
				add_packet(wqe, input);
			return;
		}
		const bool atomic =
			request == 0x11 || request == 0x12 || request == 0x14 || request == 0x15;
		if (request != 0x08 && request != 0x09 && request != 0x10 && !atomic)
			return;
		const std::uint64_t address = any_address(input);
		TinyDriver::add_remote(wqe, atomic ? address & ~std::uint64_t{7} : address,
				       any_key(input));
		if (!atomic)
			return;
		const auto operands = input.take(request == 0x14 ? 32 : 16);
		wqe.insert(wqe.end(), operands.begin(), operands.end());
		wqe.resize((wqe.size() + 15) & ~std::size_t{15});
	}

	// The segments of a UMR request: registers a key, binds a window or takes either back.
	void add_update(Bytes &wqe, Input &input)
	{
		const std::uint8_t shape = input.take<std::uint8_t>();
		const std::uint8_t fields = input.take<std::uint8_t>();
		const unsigned octwords = shape >> 4;
		WqeUmr head{};
		WqeUmr::inline_list.set(head.bytes, !(shape & 1));
		WqeUmr::fail_unless_free.set(head.bytes, shape >> 1 & 1);
		WqeUmr::fail_if_free.set(head.bytes, shape >> 2 & 1);
		WqeUmr::has_offset.set(head.bytes, shape >> 3 & 1);
		WqeUmr::octwords.set(head.bytes, octwords);
		WqeUmr::offset_low.set(head.bytes, shape & 8 ? input.take<std::uint8_t>() % 20 : 0);
		WqeUmr::mask.set(head.bytes, kUpdates[fields % std::size(kUpdates)]);
		MkeyContext context{};
		const std::uint8_t rights = input.take<std::uint8_t>();
		unsigned bit = 0;
		for (const auto *field :
		     {&MkeyContext::local_read, &MkeyContext::local_write,
		      &MkeyContext::remote_read, &MkeyContext::remote_write, &MkeyContext::atomic,
		      &MkeyContext::remote_invalidate, &MkeyContext::free})
			field->set(context.bytes, rights >> bit++ & 1);
		MkeyContext::qpn.set(context.bytes,
				     rights & 0x80 ? qps_[fields % 8].number : MkeyContext::any_qp);
		MkeyContext::pd.set(context.bytes, driver_.pd);
		MkeyContext::start.set(context.bytes, any_address(input));
		MkeyContext::length.set(context.bytes, input.take<std::uint16_t>());
		MkeyContext::log_page_size.set(context.bytes,
					       fields & 0x80 ? input.take<std::uint8_t>() : 12);
		wqe.insert(wqe.end(), head.bytes, head.bytes + sizeof(head.bytes));
		wqe.insert(wqe.end(), context.bytes, context.bytes + sizeof(context.bytes));
		Bytes list;
		for (unsigned i = 0; i < octwords; ++i)
			// As two addresses of pages, or as a piece.
			if (fields & 0x40)
				driver_.append_pages(list, any_address(input) & ~0xfffull, 8192);
			else
				TinyDriver::add_data(list, any_address(input),
						     input.take<std::uint16_t>(), any_key(input));
		if (shape & 1) {
			std::ranges::copy(list, driver_.bytes(scratch_ + 8192, list.size()));
			TinyDriver::add_data(wqe, scratch_ + 8192,
					     static_cast<std::uint32_t>(list.size()),
					     any_key(input));
		} else {
			wqe.insert(wqe.end(), list.begin(), list.end());
		}
	}

	void make_send_queue(std::uint32_t place)
	{
		RawDriver::Queue queue;
		driver_.try_sq(cq_.number, interface_.tis, queue);
		driver_.modify(Opcode::modify_sq, queue.number, RawState::reset, RawState::ready);
		qps_[place] = queue.as_qp();
		services_[place] = QpService::ud;
	}
	// The segment of offloads, with the beginning of a packet.
	void add_packet(Bytes &wqe, Input &input)
	{
		using hw::mlx5::WqeOffload;
		const std::uint8_t shape = input.take<std::uint8_t>();
		Bytes header = RawDriver::ipv4(shape & 1 ? 6 : 17, 1, 2, shape, 4);
		const auto changed = input.take(shape >> 1 & 31);
		std::memcpy(header.data(), changed.data(), std::min(changed.size(), header.size()));
		const std::size_t offload = wqe.size();
		wqe.resize(offload + WqeOffload::header);
		std::uint8_t *const segment = wqe.data() + offload;
		// A segment of a few bytes divides a request into thousands of packets, and the
		// fuzzer prefers such inputs, which take most of its time.
		WqeOffload::mss.set(segment, 64u * input.take<std::uint8_t>());
		WqeOffload::l3_checksum.set(segment, shape >> 6 & 1);
		WqeOffload::l4_checksum.set(segment, shape >> 7);
		WqeOffload::header_size.set(segment, static_cast<std::uint32_t>(header.size()));
		wqe.insert(wqe.end(), header.begin(), header.end());
		wqe.resize((wqe.size() + 15) & ~std::size_t{15});
	}

	void post_receive(std::uint32_t place, Input &input)
	{
		const std::uint64_t address = any_address(input);
		const std::uint32_t size = input.take<std::uint16_t>();
		const TinyDriver::Qp &qp = qps_[place];
		if (sends_[place]) {
			const RawDriver::Queue &queue = interface_.queues[size & 1];
			driver_.post_receive(queue, driver_.load(queue.record) & 0xffff, address,
					     size);
			return;
		}
		if (qp.receive) {
			driver_.receive(qp, driver_.load(qp.record) & 0xffff, address, size);
			return;
		}
		const TinyDriver::Srq &srq = services_[place] == QpService::xrc ? xrc_srq_ : pool_;
		driver_.receive(srq, driver_.load(srq.record) & 0xffff, address, size);
	}

	enum Key : unsigned {
		kFreePages,
		kFreePieces,
		kFreeEqualPieces,
		kWindow1,
		kWindow2,
		kRegion,
		kList,
		kEverything,
		kKeys,
	};

	static constexpr std::uint32_t kDatagramPlaces = 6; // from here on

	RawDriver driver_;
	TinyDriver::Cq cq_, large_cq_;
	TinyDriver::Srq pool_, xrc_srq_;
	std::array<TinyDriver::Qp, 8> qps_;
	std::array<QpService, 8> services_{};
	std::array<bool, 8> sends_{}; // true for send queues (SQ)
	RawDriver::Interface interface_;
	std::array<std::uint32_t, kKeys> keys_{};
	std::uint64_t scratch_ = 0, everything_ = 0;
	const ib::Lid victim_lid_ = 0;
	std::uint32_t victim_datagram_qpn_ = 0;
	const std::function<void()> meanwhile_;
	const bool polled_ = false;
	std::shared_ptr<const MemoryMapping> pages_;
};

} // namespace weft::mlx5::testing
