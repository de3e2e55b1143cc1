// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// A hostile guest: commands, doorbells, register accesses, queue and table contents in any order
// and with any content, memory that goes away, links that go down. What is wrong is found by the
// sanitizers; and whatever the guest did, the card must come back by a reset.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

#include <spdlog/spdlog.h>

#include "connectx/limits.hpp"
#include "connectx/tests/tiny_driver.hpp"
#include "hca/transport.hpp"

namespace weft::connectx::testing
{
namespace
{

using hw::connectx::AddressPathLayout;
using hw::connectx::MptEntry;
using hw::connectx::QpContext;

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

class Input
{
public:
	explicit Input(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
	bool empty() const { return bytes_.empty(); }
	template<typename T>
	T take()
	{
		T value{};
		const auto part = take(sizeof(T));
		std::memcpy(&value, part.data(), part.size());
		return value;
	}
	std::span<const std::uint8_t> take(std::size_t size)
	{
		const auto part = bytes_.first(std::min(size, bytes_.size()));
		bytes_ = bytes_.subspan(part.size());
		return part;
	}

private:
	std::span<const std::uint8_t> bytes_;
};

// Guest - a driver that does most things right, so that what it does wrong gets far.
class Guest
{
public:
	// Kept from input to input, because making it costs more than an input does.
	Guest() : driver_(1, [](CardContext &context) { return make_transport(context); }) {}

	// Of a machine that is as if made anew: brings the card up.
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
		MptEntry::mem_key.set(e, hw::connectx::mpt_key(kKey));
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

	void run(Input &input)
	{
		for (unsigned step = 0; step < 64 && !input.empty(); ++step) {
			act(input);
			driver_.host.loop().poll();
		}
		// Whatever has happened: a reset brings the card back. The next input begins with it.
		driver_.peers[0]->disable();
		driver_.start_over();
		if (driver_.command(Opcode::query_fw, 0, 0, {}, 0x100).status != Status::ok)
			std::abort();
	}

private:
	static constexpr std::size_t kScratch = 64 << 10;
	static constexpr std::uint32_t kPd = 7;
	static constexpr std::uint32_t kKey = 20 << 8;

	void act(Input &input)
	{
		switch (input.take<std::uint8_t>() % 12) {
		case 0:
			any_command(input);
			break;
		case 1: // queue and data content
		case 2: {
			const auto at = input.take<std::uint16_t>() % kScratch;
			const std::uint64_t place =
				input.take<std::uint8_t>() % 2 ? scratch_ : everything_.bus;
			write(place + at, input.take(64));
			break;
		}
		case 3: {
			const std::uint32_t qpn = pick_qp(input);
			driver_.host.write<std::uint32_t>(2, 4096 * TinyDriver::kUarPage + 0x14,
							  __builtin_bswap32(qpn << 8));
			break;
		}
		case 4:
			create_qp(input);
			break;
		case 5:
			post(input);
			break;
		case 6:
			any_access(input);
			break;
		case 7:
			edit_tables(input);
			break;
		case 8:
			disturb(input);
			break;
		case 9: {
			const auto next =
				static_cast<std::uint32_t>(1 + input.take<std::uint8_t>() % 2);
			driver_.arm(cq_, next, input.take<std::uint8_t>());
			break;
		}
		case 10:
			driver_.set_consumer(cq_, input.take<std::uint32_t>());
			break;
		case 11:
			if (input.take<std::uint8_t>() % 4 == 0)
				driver_.command(Opcode::to_err_qp, pick_qp(input));
			else
				driver_.command(Opcode::to_rst_qp, pick_qp(input));
			break;
		}
	}

	static std::uint32_t pick_qp(Input &input)
	{
		const std::uint8_t choice = input.take<std::uint8_t>();
		return choice & 0x40 ? 128 + choice % 8 : TinyDriver::kFirstQp + choice % 4;
	}

	void write(std::uint64_t address, std::span<const std::uint8_t> bytes)
	{
		const std::uint64_t room = TinyDriver::kMemorySize - address;
		const auto part = bytes.first(std::min<std::size_t>(bytes.size(), room));
		std::ranges::copy(std::as_bytes(part),
				  driver_.host.memory(address, part.size()).begin());
	}

	void any_command(Input &input)
	{
		const Opcode opcode = kOpcodes[input.take<std::uint8_t>() % std::size(kOpcodes)];
		const std::uint8_t shape = input.take<std::uint8_t>();
		std::uint32_t modifier = input.take<std::uint32_t>();
		if (shape & 1)
			modifier &= 0xff;
		const std::uint32_t op_modifier = shape & 2 ? input.take<std::uint8_t>() % 16 : 0;
		const std::uint64_t in = shape & 4 ? input.take<std::uint64_t>() : scratch_;
		const std::uint64_t out = shape & 8 ? input.take<std::uint64_t>() : scratch_ + 4096;
		if (!(shape & 16))
			write(scratch_, input.take(128));
		driver_.raw(opcode, modifier, op_modifier, in, out, shape & 32,
			    input.take<std::uint16_t>());
	}

	void create_qp(Input &input)
	{
		constexpr ServiceType services[] = {ServiceType::rc, ServiceType::uc,
						    ServiceType::ud, ServiceType::xrc};
		const std::uint32_t qpn = pick_qp(input);
		const ServiceType service =
			qpn >= 128 ? ServiceType::mlx : services[input.take<std::uint8_t>() % 4];
		Mailbox mailbox(hw::connectx::qp_mailbox_size);
		std::uint8_t *const c = mailbox.data() + hw::connectx::qp_mailbox_context;
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
		mutate(input, mailbox);
		driver_.command(Opcode::rst2init_qp, qpn, 0, mailbox);

		Mailbox next(hw::connectx::qp_mailbox_size);
		std::uint8_t *const n = next.data() + hw::connectx::qp_mailbox_context;
		QpContext::mtu.set(n, 1 + input.take<std::uint8_t>() % 5);
		QpContext::log_max_message.set(n, 30);
		QpContext::remote_qpn.set(n, pick_qp(input));
		QpContext::rra_max.set(n, 2);
		QpContext::sra_max.set(n, 2);
		QpContext::retry_count.set(n, 1);
		QpContext::rnr_retry.set(n, 1);
		QpContext::min_rnr_timer.set(n, 1);
		std::uint8_t *const path = n + QpContext::primary_path;
		AddressPathLayout::remote_lid.set(path, 1); // itself
		AddressPathLayout::ack_timeout.set(path, 1);
		AddressPathLayout::sched_queue.set(path, 0x83);
		mutate(input, next);
		driver_.command(Opcode::init2rtr_qp, qpn, 0, next);
		driver_.command(Opcode::rtr2rts_qp, qpn, 0, next);
	}

	// Now and then, one byte of a mailbox.
	static void mutate(Input &input, Mailbox &mailbox)
	{
		if (input.take<std::uint8_t>() % 4 == 0)
			mailbox[input.take<std::uint8_t>() % mailbox.size()] =
				input.take<std::uint8_t>();
	}

	// A send WQE that has its head right, and a receive WQE; then the doorbell.
	void post(Input &input)
	{
		const std::uint32_t qpn = pick_qp(input);
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
		hw::connectx::store_be32(receive.data(), 0, input.take<std::uint16_t>());
		hw::connectx::store_be32(receive.data(), 4, kKey);
		hw::connectx::store_be64(receive.data(), 8, input.take<std::uint16_t>());
		write(base + qp->receive_queue.wqe_offset(index) % 4096, receive);
		Mailbox counter(4);
		hw::connectx::store_be32(counter.data(), 0, input.take<std::uint8_t>());
		write(everything_.bus + 0xf000 + 4 * (qpn % 8), counter);
		driver_.host.write<std::uint32_t>(2, 4096 * TinyDriver::kUarPage + 0x14,
						  __builtin_bswap32(qpn << 8));
	}

	void any_access(Input &input)
	{
		static constexpr std::uint64_t sizes[] = {
			hw::connectx::bar0::size, 0, limits::kUarSize, 0, limits::kMsixBarSize};
		const unsigned bar = input.take<std::uint8_t>() % 3 * 2;
		const std::uint64_t offset = input.take<std::uint32_t>() % sizes[bar];
		const std::uint64_t length = std::min<std::uint64_t>(
			1 + input.take<std::uint8_t>() % 32, sizes[bar] - offset);
		if (input.take<std::uint8_t>() & 1) {
			std::vector<std::byte> data(length);
			driver_.card.region_read(bar, offset, data);
		} else {
			std::vector<std::byte> data(length);
			std::ranges::copy(std::as_bytes(input.take(length)), data.begin());
			driver_.card.region_write(bar, offset, data);
		}
	}

	// Straight into the tables that lie in the guest's memory.
	void edit_tables(Input &input)
	{
		const bool dmpt = input.take<std::uint8_t>() & 1;
		const std::uint64_t base =
			driver_.icm_bus(dmpt ? TinyDriver::kDmptBase : TinyDriver::kMttBase);
		const std::uint64_t offset = input.take<std::uint16_t>() % (dmpt ? 64 * 64 : 512);
		write(base + offset, input.take(8));
	}

	void disturb(Input &input)
	{
		auto &host = driver_.host;
		switch (input.take<std::uint8_t>() % 6) {
		case 0:
			host.set_bus_master(input.take<std::uint8_t>() & 1);
			break;
		case 1: // the machine takes its memory away under the card
			if (host.dma().unmap(0, TinyDriver::kMemorySize))
				driver_.card.memory_changed();
			break;
		case 2:
			driver_.peers[0]->enable();
			break;
		case 3:
			driver_.peers[0]->disable();
			break;
		case 4:
			driver_.context().port(1)->info().set_state(ib::PortState::active);
			break;
		case 5:
			host.set_msix_enabled(input.take<std::uint8_t>() & 1);
			break;
		}
	}

	TinyDriver driver_;
	TinyDriver::Cq cq_;
	std::uint64_t scratch_ = 0;
	TinyDriver::Buffer everything_{};
};

} // namespace
} // namespace weft::connectx::testing

extern "C" int LLVMFuzzerInitialize(int *, char ***)
{
	spdlog::set_level(spdlog::level::off);
	return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	weft::connectx::testing::Input input({data, size});
	static weft::connectx::testing::Guest guest;
	guest.start();
	guest.run(input);
	return 0;
}
