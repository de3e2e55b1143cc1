// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// A malicious guest of a ConnectX-5.
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <spdlog/spdlog.h>

#include "bus/pci/testing/hostile_guest.hpp"
#include "cards/mlx5/limits.hpp"
#include "cards/mlx5/tests/tiny_driver.hpp"

namespace weft::mlx5::testing
{
namespace
{

using hw::mlx5::MkeyContext;
using hw::mlx5::WqeControl;
using weft::testing::Input;

constexpr Opcode kOpcodes[] = {
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
	Opcode::alloc_pd,
	Opcode::dealloc_pd,
	Opcode::alloc_uar,
	Opcode::dealloc_uar,
	Opcode::access_register,
	Opcode::attach_to_mcg,
	Opcode::detach_from_mcg,
	Opcode::alloc_xrcd,
	Opcode::dealloc_xrcd,
	Opcode::create_rmp,
	Opcode::modify_rmp,
	Opcode::destroy_rmp,
	Opcode::query_rmp,
	static_cast<Opcode>(0x92f), // not modelled
};

// Codes of send requests: all that the card has, and one that it does not have.
constexpr std::uint8_t kRequests[] = {0x00, 0x01, 0x08, 0x09, 0x0a, 0x0b, 0x10,
				      0x11, 0x12, 0x14, 0x15, 0x25, 0x77};

constexpr QpService kServices[] = {QpService::rc,     QpService::uc,  QpService::ud,
				   QpService::xrc,    QpService::qp0, QpService::qp1,
				   QpService::reg_umr};

// Subject - what HostileGuest asks for. Queue pairs are known by their places in qps_; packets to
// the port's own address stay inside the card.
class Subject
{
public:
	static constexpr std::uint64_t kMemorySize = TinyDriver::kMemorySize;
	// There is no BAR 2; the card drops what is written to one.
	static constexpr std::uint64_t kBarSizes[6] = {limits::kRegistersSize, 0, 4096, 0,
						       limits::kMsixBarSize,   0};

	void start()
	{
		qps_ = {};
		driver_.bring_up();
		scratch_ = driver_.allocate(weft::testing::kHostileScratch);
		everything_ = driver_.allocate(weft::testing::kHostileScratch);
		cq_ = driver_.make_cq(6);
		MkeyContext context{};
		for (const auto *field : {&MkeyContext::free, &MkeyContext::umr_enable,
					  &MkeyContext::remote_invalidate})
			field->set(context.bytes, 1);
		MkeyContext::qpn.set(context.bytes, MkeyContext::any_qp);
		MkeyContext::pd.set(context.bytes, driver_.pd);
		MkeyContext::octwords.set(context.bytes, 16);
		MkeyContext::log_page_size.set(context.bytes, 12);
		for (unsigned i = 0; i < keys_.size(); ++i) {
			MkeyContext::mode_low.set(context.bytes,
						  1 + i); // pages, pieces, equal ones
			keys_[i] = driver_.make_key(context, 0, {});
		}
		set_port_active();
	}

	bool comes_back()
	{
		set_cable(false);
		driver_.start_over();
		driver_.set_command_queue();
		return driver_.command(Opcode::enable_hca).status == Status::ok;
	}

	weft::testing::FakeHost &host() { return driver_.host; }
	Card &card() { return driver_.card; }
	std::uint64_t scratch() const { return scratch_; }
	std::uint64_t everything() const { return everything_; }
	// The command queue; and what the queue pairs and their records are in.
	std::span<std::byte> table(bool which)
	{
		return driver_.host.memory(which ? everything_ + weft::testing::kHostileScratch
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
	void ring(std::uint32_t place) { driver_.ring_send(qps_[place]); }
	void end(std::uint32_t place, bool by_error)
	{
		driver_.command(by_error ? Opcode::to_err_qp : Opcode::to_rst_qp,
				qps_[place].number);
	}
	void arm(Input &input)
	{
		const std::uint64_t page = std::uint64_t{driver_.uar} * 4096;
		driver_.write(page + hw::mlx5::uar::cq_doorbell,
			      std::uint32_t{input.take<std::uint8_t>()} << 24 |
				      input.take<std::uint8_t>());
		driver_.write(page + hw::mlx5::uar::cq_doorbell + 4, cq_.number);
		driver_.write(page + hw::mlx5::uar::eq_doorbell_arm,
			      driver_.completion_eq << 24 | input.take<std::uint8_t>());
	}
	void consume(Input &input) { driver_.store(cq_.record, input.take<std::uint32_t>()); }
	void set_port_active() { driver_.set_port_active(); }
	void set_cable(bool in) { in ? driver_.port.enable() : driver_.port.disable(); }

	void create_qp(std::uint32_t place, Input &input)
	{
		TinyDriver::Qp &qp = qps_[place];
		if (qp.number)
			driver_.command(Opcode::destroy_qp, qp.number);
		const QpService service =
			kServices[input.take<std::uint8_t>() % std::size(kServices)];
		driver_.try_qp(service, cq_, qp, input.take<std::uint8_t>() & 1);
		const std::uint32_t peer = qps_[input.take<std::uint8_t>() % 8].number;
		for (const Opcode step :
		     {Opcode::rst2init_qp, Opcode::init2rtr_qp, Opcode::rtr2rts_qp})
			driver_.transition(step, qp, peer);
	}

	// A send request with random segments, and a receive; then the records and the doorbell.
	void post(std::uint32_t place, Input &input)
	{
		const TinyDriver::Qp &qp = qps_[place];
		if (!qp.send)
			return;
		const std::uint8_t request =
			kRequests[input.take<std::uint8_t>() % std::size(kRequests)];
		Bytes wqe = TinyDriver::control(request);
		if (request == hw::mlx5::opcode_umr || request == 0x01)
			WqeControl::immediate.set(wqe.data(),
						  keys_[input.take<std::uint8_t>() % keys_.size()]);
		const auto segments = input.take(16u * (input.take<std::uint8_t>() % 12));
		wqe.insert(wqe.end(), segments.begin(), segments.end());
		wqe.resize((wqe.size() + 15) & ~std::size_t{15});
		if (input.take<std::uint8_t>() & 1)
			TinyDriver::add_data(wqe, everything_ + input.take<std::uint16_t>(),
					     input.take<std::uint16_t>(), driver_.key);
		driver_.receive(qp, driver_.load(qp.record) & 0xffff,
				everything_ + input.take<std::uint16_t>(),
				input.take<std::uint16_t>());
		driver_.send(qp, driver_.load(qp.record + 4) & 0xffff, wqe);
	}

private:
	TinyDriver driver_;
	TinyDriver::Cq cq_;
	std::array<TinyDriver::Qp, 8> qps_;
	std::array<std::uint32_t, 3> keys_{};
	std::uint64_t scratch_ = 0, everything_ = 0;
};

} // namespace
} // namespace weft::mlx5::testing

extern "C" int LLVMFuzzerInitialize(int *, char ***)
{
	spdlog::set_level(spdlog::level::off);
	return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	static weft::testing::HostileGuest<weft::mlx5::testing::Subject> guest;
	guest.run(weft::testing::Input({data, size}));
	return 0;
}
