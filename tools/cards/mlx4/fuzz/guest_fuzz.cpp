// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Fuzzes an emulated ConnectX-2 with the accesses of a malicious guest (malicious_guest.hpp).
#include <algorithm>
#include <cstdint>
#include <span>

#include <spdlog/spdlog.h>

#include "cards/mlx4/limits.hpp"
#include "cards/mlx4/tests/tiny_driver.hpp"
#include "cards/hca/transport.hpp"
#include "bus/pci/testing/malicious_guest.hpp"

namespace weft::mlx4::testing
{
namespace
{

using hw::mlx4::AddressPathLayout;
using hw::mlx4::MptEntry;
using hw::mlx4::QpContext;
using weft::testing::Input;

constexpr Opcode kOpcodes[] = {
	Opcode::query_dev_cap, Opcode::query_fw,    Opcode::query_adapter,   Opcode::init_hca,
	Opcode::close_hca,     Opcode::init_port,   Opcode::close_port,      Opcode::query_hca,
	Opcode::set_port,      Opcode::sw2hw_mpt,   Opcode::query_mpt,       Opcode::hw2sw_mpt,
	Opcode::write_mtt,     Opcode::map_eq,      Opcode::sw2hw_eq,        Opcode::hw2sw_eq,
	Opcode::query_eq,      Opcode::sw2hw_cq,    Opcode::hw2sw_cq,        Opcode::query_cq,
	Opcode::rst2init_qp,   Opcode::init2rtr_qp, Opcode::rtr2rts_qp,      Opcode::rts2rts_qp,
	Opcode::sqerr2rts_qp,  Opcode::to_err_qp,   Opcode::rts2sqd_qp,      Opcode::sqd2rts_qp,
	Opcode::to_rst_qp,     Opcode::query_qp,    Opcode::conf_special_qp, Opcode::mad_ifc,
	Opcode::read_mcg,      Opcode::write_mcg,   Opcode::mgid_hash,       Opcode::modify_cq,
	Opcode::init2init_qp,  Opcode::sync_tpt,    Opcode::diag_rprt,       Opcode::nop,
	Opcode::mod_stat_cfg,  Opcode::sw2hw_srq,   Opcode::hw2sw_srq,       Opcode::query_srq,
	Opcode::sqd2sqd_qp,    Opcode::arm_srq,     Opcode::query_port,      Opcode::sense_port,
	Opcode::set_node,      Opcode::run_fw,      Opcode::unmap_icm,       Opcode::map_icm,
	Opcode::unmap_icm_aux, Opcode::map_icm_aux, Opcode::set_icm_size,    Opcode::unmap_fa,
	Opcode::map_fa,
};

// Subject - the functions that MaliciousGuest requires.
class Subject
{
public:
	static constexpr std::uint64_t kMemorySize = TinyDriver::kMemorySize;
	static constexpr std::uint64_t kBarSizes[6] = {hw::mlx4::bar0::size, 0, limits::kUarSize, 0,
						       limits::kMsixBarSize};

	Subject() : driver_(1, [](CardContext &context) { return make_transport(context); }) {}

	void start()
	{
		driver_.bring_up_events();
		cq_ = driver_.create_cq(TinyDriver::kFirstCq, 6);
		scratch_ = driver_.allocate(kScratch);
		everything_ = driver_.make_buffer(kScratch);
		MptEntry mpt{};
		std::uint8_t *const e = mpt.bytes;
		MptEntry::region.set(e, 1);
		for (const auto &right :
		     {MptEntry::local_read, MptEntry::local_write, MptEntry::remote_read,
		      MptEntry::remote_write, MptEntry::remote_atomic, MptEntry::bind_enable})
			right.set(e, 1);
		MptEntry::mem_key.set(e, hw::mlx4::mpt_key(kKey));
		MptEntry::pd.set(e, kPd);
		MptEntry::length.set(e, kScratch);
		MptEntry::entity_size.set(e, 12);
		MptEntry::mtt_offset.set(e, everything_.mtt_offset);
		driver_.command(Opcode::sw2hw_mpt, kKey >> 8, 0, mpt.bytes);
		driver_.command(Opcode::conf_special_qp, 128);
		CardPort &port = *driver_.context().port(1);
		port.info().lid = std::uint16_t{1};
		port.info().set_state(ib::PortState::active);
	}

	bool comes_back()
	{
		driver_.peers[0]->disable();
		driver_.start_over();
		return driver_.command(Opcode::query_fw, 0, 0, {}, 0x100).status == Status::ok;
	}

	weft::testing::FakeHost &host() { return driver_.host; }
	Card &card() { return driver_.card; }
	std::uint64_t scratch() const { return scratch_; }
	std::uint64_t everything() const { return everything_.bus; }
	std::span<std::byte> table(bool which)
	{
		return driver_.host.memory(
			driver_.icm_bus(which ? TinyDriver::kDmptBase : TinyDriver::kMttBase),
			which ? 64 * 64 : 512);
	}
	static Opcode any_opcode(std::uint8_t choice)
	{
		return kOpcodes[choice % std::size(kOpcodes)];
	}
	void raw(Opcode opcode, std::uint32_t modifier, std::uint32_t op_modifier, std::uint64_t in,
		 std::uint64_t out, bool event, std::uint16_t token)
	{
		driver_.raw(opcode, modifier, op_modifier, in, out, event, token);
	}
	static std::uint32_t qpn(std::uint8_t choice)
	{
		return choice & 0x40 ? 128 + choice % 8 : TinyDriver::kFirstQp + choice % 4;
	}
	void ring(std::uint32_t qpn)
	{
		driver_.host.write<std::uint32_t>(2, 4096 * TinyDriver::kUarPage + 0x14,
						  __builtin_bswap32(qpn << 8));
	}
	void end(std::uint32_t qpn, bool by_error)
	{
		driver_.command(by_error ? Opcode::to_err_qp : Opcode::to_rst_qp, qpn);
	}
	void arm(Input &input)
	{
		const auto next = static_cast<std::uint32_t>(1 + input.take<std::uint8_t>() % 2);
		driver_.arm(cq_, next, input.take<std::uint8_t>());
	}
	void consume(Input &input) { driver_.set_consumer(cq_, input.take<std::uint32_t>()); }
	void set_port_active()
	{
		driver_.context().port(1)->info().set_state(ib::PortState::active);
	}
	void set_cable(bool in) { in ? driver_.peers[0]->enable() : driver_.peers[0]->disable(); }

	void create_qp(std::uint32_t qpn, Input &input)
	{
		constexpr ServiceType services[] = {ServiceType::rc, ServiceType::uc,
						    ServiceType::ud, ServiceType::xrc};
		const ServiceType service =
			qpn >= 128 ? ServiceType::mlx : services[input.take<std::uint8_t>() % 4];
		Mailbox mailbox(hw::mlx4::qp_mailbox_size);
		std::uint8_t *const c = mailbox.data() + hw::mlx4::qp_mailbox_context;
		QpContext::service_type.set(c, static_cast<std::uint32_t>(service));
		QpContext::pd.set(c, kPd);
		QpContext::uar_page.set(c, TinyDriver::kUarPage);
		QpContext::send_cqn.set(c, cq_.number);
		QpContext::receive_cqn.set(c, cq_.number);
		QpContext::log_sq_size.set(c, 3);
		QpContext::log_sq_stride.set(c, 3);
		QpContext::log_rq_size.set(c, 3);
		QpContext::log_rq_stride.set(c, 1);
		QpContext::reserved_lkey.set(c, 1);
		QpContext::fast_register.set(c, 1);
		for (const auto &right :
		     {QpContext::remote_read, QpContext::remote_write, QpContext::remote_atomic})
			right.set(c, 1);
		QpContext::mtt_offset.set(c, everything_.mtt_offset + 8 * (qpn % 8));
		QpContext::doorbell_record.set(c, everything_.bus + 0xf000 + 4 * (qpn % 8));
		input.mutate(mailbox);
		driver_.command(Opcode::rst2init_qp, qpn, 0, mailbox);

		Mailbox next(hw::mlx4::qp_mailbox_size);
		std::uint8_t *const n = next.data() + hw::mlx4::qp_mailbox_context;
		QpContext::mtu.set(n, 1 + input.take<std::uint8_t>() % 5);
		QpContext::log_max_message.set(n, 30);
		QpContext::remote_qpn.set(n, Subject::qpn(input.take<std::uint8_t>()));
		QpContext::rra_max.set(n, 2);
		QpContext::sra_max.set(n, 2);
		QpContext::retry_count.set(n, 1);
		QpContext::rnr_retry.set(n, 1);
		QpContext::min_rnr_timer.set(n, 1);
		std::uint8_t *const path = n + QpContext::primary_path;
		AddressPathLayout::remote_lid.set(path, 1); // the port itself
		AddressPathLayout::ack_timeout.set(path, 1);
		AddressPathLayout::sched_queue.set(path, 0x83);
		input.mutate(next);
		driver_.command(Opcode::init2rtr_qp, qpn, 0, next);
		driver_.command(Opcode::rtr2rts_qp, qpn, 0, next);
	}

	// Writes a send WQE with a valid control segment, and a receive WQE, and rings the
	// doorbell.
	void post(std::uint32_t qpn, Input &input)
	{
		QueuePair *const qp = driver_.context().queue_pair(qpn);
		if (!qp)
			return;
		const std::uint64_t base = everything_.bus + 4096 * (qpn % 8);
		const std::uint32_t index = input.take<std::uint8_t>() % 32;
		Mailbox wqe(128);
		std::ranges::copy(input.take(112), wqe.begin() + 16);
		const std::uint8_t opcode = input.take<std::uint8_t>() & 0x1f;
		wqe[3] = opcode;
		wqe[0] = index & 8 ? 0x80 : 0;
		wqe[7] = static_cast<std::uint8_t>(1 + input.take<std::uint8_t>() % 9);
		wqe[11] = 0x0c | (input.take<std::uint8_t>() & 0x33);
		write(base + qp->send_queue.wqe_offset(index) % 4096, wqe);
		Mailbox receive(32);
		hw::mlx4::store_be32(receive.data(), 0, input.take<std::uint16_t>());
		hw::mlx4::store_be32(receive.data(), 4, kKey);
		hw::mlx4::store_be64(receive.data(), 8, input.take<std::uint16_t>());
		write(base + qp->receive_queue.wqe_offset(index) % 4096, receive);
		Mailbox counter(4);
		hw::mlx4::store_be32(counter.data(), 0, input.take<std::uint8_t>());
		write(everything_.bus + 0xf000 + 4 * (qpn % 8), counter);
		ring(qpn);
	}

private:
	static constexpr std::size_t kScratch = weft::testing::kMaliciousScratch;
	static constexpr std::uint32_t kPd = 7;
	static constexpr std::uint32_t kKey = 20 << 8;

	void write(std::uint64_t address, std::span<const std::uint8_t> bytes)
	{
		std::ranges::copy(std::as_bytes(bytes),
				  driver_.host.memory(address, bytes.size()).begin());
	}

	TinyDriver driver_;
	TinyDriver::Cq cq_;
	std::uint64_t scratch_ = 0;
	TinyDriver::Buffer everything_{};
};

} // namespace
} // namespace weft::mlx4::testing

extern "C" int LLVMFuzzerInitialize(int *, char ***)
{
	spdlog::set_level(spdlog::level::off);
	return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	static weft::testing::MaliciousGuest<weft::mlx4::testing::Subject> guest;
	guest.run(weft::testing::Input({data, size}));
	return 0;
}
