// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Fuzzes an emulated InfiniHost with the accesses of a malicious guest (malicious_guest.hpp).
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include <spdlog/spdlog.h>

#include "cards/hca/transport.hpp"
#include "cards/mthca/limits.hpp"
#include "cards/mthca/tests/tiny_driver.hpp"
#include "bus/pci/testing/malicious_guest.hpp"

namespace weft::mthca::testing
{
namespace
{

using hw::mthca::CqContext;
using hw::mthca::PathLayout;
using hw::mthca::QpContext;
using hw::mthca::ServiceType;
using hw::mthca::WqeNext;
using hw::mellanox_icm::WqeData;
using weft::testing::Input;
namespace opcode = hw::mthca::opcode;
namespace uar = hw::mthca::uar;

constexpr Opcode kOpcodes[] = {
	opcode::query_dev_lim, opcode::enable_lam,   opcode::init_ib,     opcode::close_ib,
	opcode::set_ib,        opcode::resize_cq,    Opcode::query_fw,    Opcode::query_adapter,
	Opcode::init_hca,      Opcode::close_hca,    Opcode::sw2hw_mpt,   Opcode::query_mpt,
	Opcode::hw2sw_mpt,     Opcode::write_mtt,    Opcode::map_eq,      Opcode::sw2hw_eq,
	Opcode::hw2sw_eq,      Opcode::query_eq,     Opcode::sw2hw_cq,    Opcode::hw2sw_cq,
	Opcode::query_cq,      Opcode::rst2init_qp,  Opcode::init2rtr_qp, Opcode::rtr2rts_qp,
	Opcode::rts2rts_qp,    Opcode::sqerr2rts_qp, Opcode::to_err_qp,   Opcode::rts2sqd_qp,
	Opcode::sqd2rts_qp,    Opcode::to_rst_qp,    Opcode::query_qp,    Opcode::conf_special_qp,
	Opcode::mad_ifc,       Opcode::read_mcg,     Opcode::write_mcg,   Opcode::mgid_hash,
	Opcode::init2init_qp,  Opcode::sync_tpt,     Opcode::nop,         Opcode::sw2hw_srq,
	Opcode::hw2sw_srq,     Opcode::query_srq,    Opcode::sqd2sqd_qp,  Opcode::arm_srq,
	Opcode::run_fw,        Opcode::unmap_icm,    Opcode::map_icm,     Opcode::unmap_icm_aux,
	Opcode::map_icm_aux,   Opcode::set_icm_size, Opcode::unmap_fa,    Opcode::map_fa,
};

// Subject - the functions that MaliciousGuest requires. The card's ports are cabled to each other.
class Subject
{
public:
	static constexpr std::uint64_t kMemorySize = TinyDriver::kMemorySize;
	static constexpr std::uint64_t kBarSizes[6] = {hw::mthca::bar0::size, 0, limits::kUarSize,
						       0, limits::kMsixBarSize};

	void start()
	{
		std::ranges::fill(rung_, 0);
		driver_.bring_up();
		scratch_ = driver_.allocate(weft::testing::kMaliciousScratch);
		everything_ = driver_.allocate(weft::testing::kMaliciousScratch);
		const std::uint64_t cq = driver_.allocate(32 << kLogCq);
		for (std::uint32_t i = 0; i < 1u << kLogCq; ++i)
			driver_.host.memory(cq + 32 * i + 31, 1)[0] = std::byte{0x80};
		CqContext context{};
		CqContext::start.set(context.bytes, cq);
		CqContext::log_size.set(context.bytes, kLogCq);
		CqContext::uar_page.set(context.bytes, TinyDriver::kUar);
		CqContext::eqn.set(context.bytes, TinyDriver::kEqn);
		CqContext::pd.set(context.bytes, TinyDriver::kPd);
		CqContext::lkey.set(context.bytes, TinyDriver::kKey);
		CqContext::cqn.set(context.bytes, kCqn);
		CqContext::ci_record.set(context.bytes, kIndexRecord);
		CqContext::arm_record.set(context.bytes, kArmRecord);
		driver_.command(Opcode::sw2hw_cq, kCqn, 0, context.bytes);
		driver_.command(Opcode::conf_special_qp, TinyDriver::kSpecialQps, 0);
		driver_.command(Opcode::conf_special_qp, TinyDriver::kSpecialQps + 2, 1);
		set_port_active();
	}

	bool comes_back()
	{
		set_cable(false);
		driver_.start_over();
		return driver_.command(Opcode::query_fw, 0, 0, {}, 0x100).status == Status::ok;
	}

	weft::testing::FakeHost &host() { return driver_.host; }
	Card &card() { return driver_.card; }
	std::uint64_t scratch() const { return scratch_; }
	std::uint64_t everything() const { return everything_; }
	// Returns the page lists or the doorbell records.
	std::span<std::byte> table(bool which)
	{
		const std::uint64_t records = TinyDriver::kUarcs + (TinyDriver::kUar << 12);
		return driver_.host.memory(driver_.icm_bus(which ? records : TinyDriver::kMtts),
					   which ? uar::page_size : 512);
	}
	static Opcode any_opcode(std::uint8_t choice)
	{
		return kOpcodes[choice % std::size(kOpcodes)];
	}
	void raw(Opcode opcode, std::uint32_t modifier, std::uint32_t op_modifier, std::uint64_t in,
		 std::uint64_t out, bool event, std::uint16_t token)
	{
		driver_.submit(opcode, modifier, op_modifier, in, out, event, token);
	}
	static std::uint32_t qpn(std::uint8_t choice)
	{
		return choice & 0x40 ? TinyDriver::kSpecialQps + choice % 4 : kFirstQp + choice % 4;
	}
	// Rings a doorbell for the requests between the end of the previous doorbell and the number
	// in the record.
	void ring(std::uint32_t qpn)
	{
		const std::uint64_t place = uar::page_size * TinyDriver::kUar + uar::send_doorbell;
		const std::uint32_t first = rung_[qpn % 8],
				    end = driver_.record(send_record(qpn)) & 0xffff;
		driver_.write_be32(
			2, place,
			(end - first) << 24 | first << 8 |
				static_cast<std::uint32_t>(hw::mellanox_icm::WqeOpcode::send));
		driver_.write_be32(2, place + 4, qpn << 8 | 2);
		rung_[qpn % 8] = end;
	}
	void end(std::uint32_t qpn, bool by_error)
	{
		driver_.command(by_error ? Opcode::to_err_qp : Opcode::to_rst_qp, qpn);
		if (!by_error)
			rung_[qpn % 8] = 0;
	}
	void arm(Input &input)
	{
		const std::uint64_t place = uar::page_size * TinyDriver::kUar + uar::cq_doorbell;
		driver_.write_be32(2, place,
				   std::uint32_t{input.take<std::uint8_t>()} << 24 | kCqn);
		driver_.write_be32(2, place + 4, input.take<std::uint8_t>());
	}
	void consume(Input &input) { driver_.record(kIndexRecord) = input.take<std::uint32_t>(); }
	void set_port_active()
	{
		for (unsigned number = 1; number <= 2; ++number) {
			CardPort &port = *driver_.context().port(number);
			port.info().lid = static_cast<std::uint16_t>(number);
			port.info().set_state(ib::PortState::active);
		}
	}
	void set_cable(bool in)
	{
		for (fabric::Port *port : {&driver_.port1, &driver_.port2})
			in ? port->enable() : port->disable();
	}

	void create_qp(std::uint32_t qpn, Input &input)
	{
		constexpr ServiceType services[] = {ServiceType::rc, ServiceType::uc,
						    ServiceType::ud};
		const bool special = qpn < kFirstQp;
		const ServiceType service =
			special ? ServiceType::mlx : services[input.take<std::uint8_t>() % 3];
		std::vector<std::uint8_t> mailbox(hw::mthca::qp_mailbox_size);
		std::uint8_t *const c = mailbox.data() + hw::mthca::qp_mailbox_context;
		QpContext::service_type.set(c, static_cast<std::uint32_t>(service));
		QpContext::pd.set(c, TinyDriver::kPd);
		QpContext::uar_page.set(c, TinyDriver::kUar);
		QpContext::send_cqn.set(c, kCqn);
		QpContext::receive_cqn.set(c, kCqn);
		QpContext::wqe_lkey.set(c, TinyDriver::kKey);
		for (const auto *size : {&QpContext::log_sq_size, &QpContext::log_rq_size})
			size->set(c, kLogQueue);
		for (const auto *stride : {&QpContext::log_sq_stride, &QpContext::log_rq_stride})
			stride->set(c, kLogStride - 4);
		for (const auto &right :
		     {QpContext::remote_read, QpContext::remote_write, QpContext::remote_atomic})
			right.set(c, 1);
		hw::mellanox_icm::store_be32(c, QpContext::send_base.offset,
					     static_cast<std::uint32_t>(send_ring(qpn)));
		hw::mellanox_icm::store_be32(c, QpContext::receive_base.offset,
					     static_cast<std::uint32_t>(receive_ring(qpn)));
		QpContext::send_record.set(c, send_record(qpn));
		QpContext::receive_record.set(c, receive_record(qpn));
		PathLayout::port.set(c + QpContext::primary_path, special ? 1 + qpn % 2 : 1);
		input.mutate(mailbox);
		driver_.command(Opcode::rst2init_qp, qpn, 0, mailbox);

		QpContext::mtu.set(c, 1 + input.take<std::uint8_t>() % 5);
		QpContext::log_max_message.set(c, 30);
		QpContext::remote_qpn.set(c, Subject::qpn(input.take<std::uint8_t>()));
		QpContext::rra_max.set(c, 2);
		QpContext::sra_max.set(c, 2);
		QpContext::retry_count.set(c, 1);
		QpContext::min_rnr_timer.set(c, 1);
		std::uint8_t *const path = c + QpContext::primary_path;
		PathLayout::remote_lid.set(path, 1 + input.take<std::uint8_t>() % 2);
		PathLayout::ack_timeout.set(path, 1);
		PathLayout::rnr_retry.set(path, 1);
		input.mutate(mailbox);
		driver_.command(Opcode::init2rtr_qp, qpn, 0, mailbox);
		driver_.command(Opcode::rtr2rts_qp, qpn, 0, mailbox);
	}

	// Writes a send WQE with its description in the previous one, and a receive WQE; then
	// updates the records and rings the doorbell.
	void post(std::uint32_t qpn, Input &input)
	{
		const std::uint32_t index = driver_.record(send_record(qpn)) & 0xffff;
		const std::uint64_t own = send_ring(qpn) + place(index),
				    before = send_ring(qpn) + place(index - 1);
		std::ranges::copy(std::as_bytes(input.take(112)),
				  driver_.host.memory(own + 16, 112).begin());
		driver_.host.object<WqeNext>(own).flags =
			input.take<std::uint8_t>() | WqeNext::completion;
		auto &link = driver_.host.object<WqeNext>(before);
		link.next_word =
			static_cast<std::uint32_t>(own) | (input.take<std::uint8_t>() & 0x1f);
		link.size_word = WqeNext::doorbell | (input.take<std::uint8_t>() & 0x4f);
		auto &received = driver_.record(receive_record(qpn));
		driver_.host.object<WqeData>(receive_ring(qpn) + place(received) +
					     16) = {input.take<std::uint16_t>(), TinyDriver::kKey,
						    everything_ + input.take<std::uint16_t>()};
		received = received + 1;
		driver_.record(send_record(qpn)) = index + 1;
		ring(qpn);
	}

private:
	static constexpr unsigned kLogCq = 6, kLogQueue = 3, kLogStride = 7;
	static constexpr std::uint32_t kCqn = 0x21, kFirstQp = 0x20, kIndexRecord = 500,
				       kArmRecord = 100;
	static_assert(kFirstQp > TinyDriver::kSpecialQps + 3);

	static std::uint32_t send_record(std::uint32_t qpn) { return qpn % 8; }
	static std::uint32_t receive_record(std::uint32_t qpn) { return 400 + qpn % 8; }
	static std::uint64_t place(std::uint32_t index)
	{
		return std::uint64_t{index % (1u << kLogQueue)} << kLogStride;
	}
	std::uint64_t send_ring(std::uint32_t qpn) const
	{
		return everything_ + (std::uint64_t{qpn % 8} << 12);
	}
	std::uint64_t receive_ring(std::uint32_t qpn) const { return send_ring(qpn) + 2048; }

	TinyDriver driver_;
	std::uint64_t scratch_ = 0, everything_ = 0;
	std::uint32_t rung_[8] = {};
};

} // namespace
} // namespace weft::mthca::testing

extern "C" int LLVMFuzzerInitialize(int *, char ***)
{
	spdlog::set_level(spdlog::level::off);
	return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	static weft::testing::MaliciousGuest<weft::mthca::testing::Subject> guest;
	guest.run(weft::testing::Input({data, size}));
	return 0;
}
