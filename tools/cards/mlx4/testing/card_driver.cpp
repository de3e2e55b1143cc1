// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx4/testing/card_driver.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

namespace weft::mlx4::testing
{

using hw::mlx4::CqContext;
using hw::mlx4::EqContext;
using hw::mlx4::Eqe;
using hw::mlx4::InitHca;
using hw::mlx4::PageMapping;
using hw::mlx4::QpContext;
namespace bar0 = hw::mlx4::bar0;
namespace hcr = hw::mlx4::hcr;
namespace uar = hw::mlx4::uar;

namespace
{

constexpr std::size_t kMailbox = 4096;

// The contents of an output mailbox before its command.
const std::array<std::byte, kMailbox> kUntouched = [] {
	std::array<std::byte, kMailbox> bytes;
	bytes.fill(std::byte{0xee});
	return bytes;
}();

void must(const CardDriver::Result &result, const char *what)
{
	if (result.status != Status::ok)
		throw std::runtime_error(std::string(what) + " failed with status " +
					 std::to_string(static_cast<int>(result.status)));
}

} // namespace

CardDriver::CardDriver(weft::testing::Machine &machine) : machine_(machine)
{
	take_mailboxes();
}

void CardDriver::take_mailboxes()
{
	in_mailbox_ = allocate(kMailbox);
	out_mailbox_ = allocate(kMailbox);
}

void CardDriver::forget_memory()
{
	toggle_ = 0;
	next_free_ = kFirstFree;
	next_mtt_ = 0;
	take_mailboxes();
}

std::uint64_t CardDriver::allocate(std::uint64_t size, std::uint64_t alignment)
{
	next_free_ = (next_free_ + alignment - 1) & ~(alignment - 1);
	const std::uint64_t address = next_free_;
	next_free_ += size;
	if (next_free_ > kMemorySize)
		throw std::runtime_error("the test's guest memory is used up");
	return address;
}

CardDriver::Result CardDriver::raw(Opcode opcode, std::uint32_t in_modifier,
				   std::uint32_t op_modifier, std::uint64_t in_param,
				   std::uint64_t out_param, bool event, std::uint16_t token)
{
	std::array<std::uint8_t, hcr::size> registers{};
	hw::mlx4::store_be64(registers.data(), hcr::in_param, in_param);
	hw::mlx4::store_be32(registers.data(), hcr::in_modifier, in_modifier);
	hw::mlx4::store_be64(registers.data(), hcr::out_param, out_param);
	hcr::token.set(registers.data(), token);
	toggle_ ^= 1;
	hcr::go.set(registers.data(), 1);
	hcr::event.set(registers.data(), event);
	hcr::toggle.set(registers.data(), toggle_);
	hcr::op_modifier.set(registers.data(), op_modifier);
	hcr::opcode.set(registers.data(), static_cast<std::uint32_t>(opcode));
	for (std::size_t at = 0; at < hcr::size; at += 4) {
		std::uint32_t dword;
		std::memcpy(&dword, registers.data() + at, sizeof(dword));
		machine_.write(0, bar0::hcr + at, dword);
	}
	for (std::size_t at = 0; at < hcr::size; at += 4) {
		const auto dword = machine_.read<std::uint32_t>(0, bar0::hcr + at);
		std::memcpy(registers.data() + at, &dword, sizeof(dword));
	}
	if (hcr::go.get(registers.data()) || hcr::toggle.get(registers.data()) != toggle_)
		throw std::runtime_error("the command interface is stuck");
	return {static_cast<Status>(hcr::status.get(registers.data())),
		hw::mlx4::load_be64(registers.data(), hcr::out_param),
		{}};
}

CardDriver::Result CardDriver::command(Opcode opcode, std::uint32_t in_modifier,
				       std::uint32_t op_modifier, std::span<const std::uint8_t> in,
				       std::size_t out_size)
{
	const auto in_memory = machine_.memory(in_mailbox_, kMailbox);
	// Use memset() and memcpy() on whole blocks, because fuzzing spends most of its time here.
	std::memset(in_memory.data(), 0, kMailbox);
	std::ranges::copy(std::as_bytes(in), in_memory.begin());
	const auto out_memory = machine_.memory(out_mailbox_, kMailbox);
	std::memcpy(out_memory.data(), kUntouched.data(), kMailbox);
	Result result = raw(opcode, in_modifier, op_modifier, in.empty() ? 0 : in_mailbox_,
			    out_size ? out_mailbox_ : 0);
	result.out.resize(out_size);
	std::ranges::copy(out_memory.first(out_size),
			  std::as_writable_bytes(std::span(result.out)).begin());
	// A card must not write more than the command's output.
	if (std::memcmp(out_memory.data() + out_size, kUntouched.data(), kMailbox - out_size) != 0)
		throw std::runtime_error("the card wrote beyond its output mailbox");
	return result;
}

CardDriver::Result CardDriver::immediate(Opcode opcode, std::uint32_t in_modifier,
					 std::uint64_t value, std::uint32_t op_modifier)
{
	return raw(opcode, in_modifier, op_modifier, value, 0);
}

void CardDriver::map_icm(std::uint64_t icm, std::uint64_t bus, unsigned log_pages)
{
	PageMapping mapping{};
	PageMapping::virtual_address.set(mapping.bytes, icm);
	PageMapping::bus_address.set(mapping.bytes, bus);
	PageMapping::log_pages.set(mapping.bytes, log_pages);
	must(command(Opcode::map_icm, 1, 0, mapping.bytes), "MAP_ICM");
}

InitHca CardDriver::init_hca_mailbox() const
{
	InitHca init{};
	std::uint8_t *const in = init.bytes;
	InitHca::version.set(in, InitHca::version_value);
	InitHca::flags.set(in, InitHca::flag_ud_av_check);
	InitHca::qpc_base.set(in, kQpcBase);
	InitHca::log_qps.set(in, kLogQps);
	InitHca::cqc_base.set(in, kCqcBase);
	InitHca::log_cqs.set(in, kLogCqs);
	InitHca::srqc_base.set(in, kSrqcBase);
	InitHca::log_srqs.set(in, kLogSrqs);
	InitHca::eqc_base.set(in, kEqcBase);
	InitHca::log_eqs.set(in, kLogEqs);
	InitHca::dmpt_base.set(in, kDmptBase);
	InitHca::log_dmpts.set(in, kLogMpts);
	InitHca::mtt_base.set(in, kMttBase);
	InitHca::log_mcg_entry_size.set(in, 6);
	InitHca::log_mcg_hash_size.set(in, 7);
	InitHca::log_mcg_size.set(in, 8);
	InitHca::log_uars.set(in, 11);
	return init;
}

void CardDriver::bring_up()
{
	PageMapping lent{};
	PageMapping::bus_address.set(lent.bytes, allocate(16 * 4096, 16 * 4096));
	PageMapping::log_pages.set(lent.bytes, 4);
	must(command(Opcode::map_fa, 1, 0, lent.bytes), "MAP_FA");
	must(command(Opcode::run_fw), "RUN_FW");
	const Result size = immediate(Opcode::set_icm_size, 0, kIcmSize);
	must(size, "SET_ICM_SIZE");
	must(command(Opcode::map_icm_aux, 1, 0, lent.bytes), "MAP_ICM_AUX");
	icm_bus_ = allocate(kIcmSize, kIcmSize);
	map_icm(0, icm_bus_, 9);
	must(command(Opcode::init_hca, 0, 0, init_hca_mailbox().bytes), "INIT_HCA");
}

void CardDriver::bring_up_events()
{
	bring_up();
	async = create_eq(kAsyncEq, 6, 0);
	completions = create_eq(kCompletionEq, 6, 1);
	must(immediate(Opcode::map_eq, kAsyncEq, ~std::uint64_t{0}), "MAP_EQ");
	eq_doorbell(async, true);
	eq_doorbell(completions, true);
}

void CardDriver::write_mtt(std::uint64_t mtt_offset, std::uint64_t entry)
{
	machine_.object<ib::be64>(icm_bus_ + kMttBase + mtt_offset) = entry;
}

CardDriver::Buffer CardDriver::make_buffer(std::uint64_t size)
{
	const std::uint64_t pages = (size + 4095) / 4096;
	Buffer buffer{allocate(pages * 4096), next_mtt_, pages * 4096};
	for (std::uint64_t i = 0; i < pages; ++i) {
		write_mtt(next_mtt_, (buffer.bus + i * 4096) | hw::mlx4::MttEntry::present);
		next_mtt_ += hw::mlx4::MttEntry::size;
	}
	return buffer;
}

CardDriver::EventQueueMemory CardDriver::create_eq(std::uint32_t eqn, unsigned log_size,
						   unsigned vector)
{
	EventQueueMemory eq{eqn, make_buffer(32ull << log_size), log_size, 0};
	EqContext context{};
	EqContext::state.set(context.bytes, hw::mlx4::eq_state::fired);
	EqContext::log_size.set(context.bytes, log_size);
	EqContext::vector.set(context.bytes, vector);
	EqContext::mtt_offset.set(context.bytes, eq.buffer.mtt_offset);
	must(command(Opcode::sw2hw_eq, eqn, 0, context.bytes), "SW2HW_EQ");
	return eq;
}

std::optional<Eqe> CardDriver::poll(EventQueueMemory &eq)
{
	const std::uint32_t slot = eq.consumer & ((1u << eq.log_size) - 1);
	const auto entry = machine_.object<Eqe>(eq.buffer.bus + 32ull * slot);
	if (Eqe::owner.get(entry.bytes) != (eq.consumer >> eq.log_size & 1))
		return std::nullopt;
	++eq.consumer;
	return entry;
}

void CardDriver::eq_doorbell(const EventQueueMemory &eq, bool arm)
{
	machine_.write<std::uint32_t>(
		2, uar::eq_doorbell_offset(eq.number),
		__builtin_bswap32((arm ? 1u << 31 : 0) | (eq.consumer & 0xffffff)));
}

CqContext CardDriver::cq_context(const Cq &cq) const
{
	CqContext context{};
	CqContext::log_size.set(context.bytes, cq.log_size);
	CqContext::uar_page.set(context.bytes, kUarPage);
	CqContext::eqn.set(context.bytes, kCompletionEq);
	CqContext::mtt_offset.set(context.bytes, cq.buffer.mtt_offset);
	CqContext::doorbell_record.set(context.bytes, cq.record);
	return context;
}

CardDriver::Cq CardDriver::make_cq(std::uint32_t cqn, unsigned log_size)
{
	return {cqn, make_buffer(32ull << log_size), log_size, allocate(8, 8), 0};
}

CardDriver::Cq CardDriver::create_cq(std::uint32_t cqn, unsigned log_size)
{
	const Cq cq = make_cq(cqn, log_size);
	must(command(Opcode::sw2hw_cq, cqn, 0, cq_context(cq).bytes), "SW2HW_CQ");
	return cq;
}

void CardDriver::set_consumer(Cq &cq, std::uint32_t consumer)
{
	cq.consumer = consumer;
	machine_.object<ib::be32>(cq.record) = consumer & 0xffffff;
}

void CardDriver::arm(const Cq &cq, std::uint32_t command, std::uint32_t consumer)
{
	std::array<std::uint8_t, 8> doorbell{};
	uar::cq_doorbell_command.set(doorbell.data(), command);
	uar::cq_doorbell_cqn.set(doorbell.data(), cq.number);
	uar::cq_doorbell_consumer_index.set(doorbell.data(), consumer);
	std::uint64_t value;
	std::memcpy(&value, doorbell.data(), sizeof(value));
	machine_.write(2, uar::page_size * kUarPage + uar::cq_doorbell, value);
}

Mailbox CardDriver::qp_mailbox(const Cq &cq, ServiceType service)
{
	Mailbox mailbox(hw::mlx4::qp_mailbox_size);
	std::uint8_t *const context = mailbox.data() + hw::mlx4::qp_mailbox_context;
	QpContext::service_type.set(context, static_cast<std::uint32_t>(service));
	QpContext::pd.set(context, 7);
	QpContext::uar_page.set(context, kUarPage);
	QpContext::send_cqn.set(context, cq.number);
	QpContext::receive_cqn.set(context, cq.number);
	QpContext::log_sq_size.set(context, 4);
	QpContext::log_sq_stride.set(context, 2);
	QpContext::log_rq_size.set(context, 4);
	QpContext::log_rq_stride.set(context, 0);
	QpContext::mtt_offset.set(context, make_buffer(8192).mtt_offset);
	QpContext::doorbell_record.set(context, allocate(4, 4));
	return mailbox;
}

ib::Mad CardDriver::mad(ib::MgmtClass mgmt_class, ib::MadMethod method, std::uint16_t attribute,
			std::uint32_t modifier) const
{
	ib::Mad request{};
	request.header.base_version = ib::mad_base_version;
	request.header.mgmt_class = static_cast<std::uint8_t>(mgmt_class);
	request.header.class_version = 1;
	request.header.method = static_cast<std::uint8_t>(method);
	request.header.tid = std::uint64_t{0x1122334455667788};
	request.header.attr_id = attribute;
	request.header.attr_mod = modifier;
	return request;
}

ib::Mad CardDriver::ask(unsigned port, const ib::Mad &request, std::uint32_t op_modifier)
{
	const auto *const bytes = reinterpret_cast<const std::uint8_t *>(&request);
	const Result result =
		command(Opcode::mad_ifc, port, op_modifier, {bytes, sizeof(request)}, 256);
	must(result, "MAD_IFC");
	ib::Mad answer;
	std::memcpy(&answer, result.out.data(), sizeof(answer));
	return answer;
}

} // namespace weft::mlx4::testing
