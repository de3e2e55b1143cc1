// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "tests/malicious_guest/intruder.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>

#include <hw/mlx4/cqe.hpp>
#include <ib/pma.hpp>
#include <ib/smp.hpp>

#include "cards/mlx4/transport/tests/wqe_builder.hpp"
#include "core/wire/headers.hpp"

namespace weft::malicious_guest
{

using mlx4::testing::CardDriver;
using mlx4::testing::Mailbox;
using mlx4::testing::Opcode;
using mlx4::testing::ServiceType;
using mlx4::transport::WqeBuilder;
using hw::mlx4::AddressPathLayout;
using hw::mlx4::Cqe;
using hw::mlx4::MptEntry;
using hw::mlx4::QpContext;
using hw::mlx4::Status;
using hw::mlx4::WqeControl;
using hw::mlx4::WqeData;
using hw::mlx4::WqeOpcode;

namespace
{

constexpr std::uint64_t kMemory = CardDriver::kMemorySize;
constexpr std::uint64_t kScratch = 512 << 10;
// The numbers that CONF_SPECIAL_QP assigns: QP0 first, and QP1 two numbers later.
constexpr std::uint32_t kSpecialQps = 128;
constexpr std::uint32_t kGsi = kSpecialQps + 2;
constexpr unsigned kLogSendQueue = 6;
constexpr std::uint32_t kSendQueue = 1u << kLogSendQueue;
constexpr unsigned kSendStride = 1024;
constexpr unsigned kLogCq = 8;
constexpr auto kTimeLimit = RemoteMachine::kTimeLimit;

} // namespace

Intruder::Intruder(IntruderOptions options) : options_(std::move(options)), random_(options_.seed)
{
	actions_ = {
		{"last-descriptors", Ending::loses_it, &Intruder::take_the_last_descriptors},
		{"giants", Ending::keeps, &Intruder::send_giants},
		{"all-memory", Ending::leaves, &Intruder::map_all_memory},
		{"splits", Ending::leaves, &Intruder::split_windows},
		{"truncated-memory", Ending::loses_it, &Intruder::truncate_memory},
		{"descriptors", Ending::keeps, &Intruder::take_descriptors},
		{"traps", Ending::keeps, &Intruder::trap_by_the_thousand},
		{"foreign-members", Ending::keeps, &Intruder::join_and_leave_for_others},
		{"foreign-pkeys", Ending::keeps, &Intruder::use_foreign_pkeys},
		{"vl15", Ending::keeps, &Intruder::send_vl15_to_data_qps},
		{"keys", Ending::keeps, &Intruder::guess_keys},
		{"anything", Ending::leaves, &Intruder::write_anything},
		{"all-paths", Ending::keeps, &Intruder::ask_for_all_paths},
		{"multicast-storms", Ending::keeps, &Intruder::send_to_everybody},
		{"broken-queues", Ending::leaves, &Intruder::break_queues},
		{"many-members", Ending::leaves, &Intruder::serve_many_members},
		{"ethernet-floods", Ending::keeps, &Intruder::flood_ethernet},
	};
}

Intruder::~Intruder() = default;

void Intruder::run()
{
	std::vector<Action *> round;
	for (unsigned turn = 0; turn < options_.turns; ++turn) {
		if (round.empty())
			round = draw_round();
		Action &action = *round.back();
		round.pop_back();
		try {
			if (!machine_)
				plug_in();
			carry_out(action);
		} catch (const std::exception &error) {
			throw std::runtime_error(std::string(action.name) + ", turn " +
						 std::to_string(turn) + ": " + error.what());
		}
	}
}

std::vector<Intruder::Action *> Intruder::draw_round()
{
	std::vector<Action *> round;
	for (Action &action : actions_)
		round.push_back(&action);
	std::ranges::shuffle(round, random_);
	// Its lack of descriptors must be logged before other actions fill the log.
	if (actions_.front().turns == 0)
		std::iter_swap(std::ranges::find(round, &actions_.front()), round.end() - 1);
	return round;
}

void Intruder::carry_out(Action &action)
{
	current_ = &action;
	bool hung_up = false;
	try {
		(this->*action.carry_out)();
		if (action.ending == Ending::loses_it)
			hung_up = machine_->client().wait_closed();
	} catch (const HungUp &) {
		hung_up = true;
	}
	if (hung_up != (action.ending == Ending::loses_it))
		throw std::runtime_error(hung_up ? "the daemon ended the connection"
						 : "the daemon did not end the connection");
	if (hung_up)
		count("cards-lost");
	++action.turns;
	if (action.ending != Ending::keeps)
		unplug();
}

void Intruder::unplug()
{
	driver_.reset();
	machine_.reset();
}

void Intruder::plug_in()
{
	const auto deadline = std::chrono::steady_clock::now() + kTimeLimit;
	// The card may still be busy with the previous client, and refuse this one.
	while (!machine_) {
		try {
			machine_ = std::make_unique<RemoteMachine>(options_.card, kMemory);
		} catch (const HungUp &) {
			if (std::chrono::steady_clock::now() > deadline)
				throw std::runtime_error("the card cannot be had again");
			std::this_thread::sleep_for(std::chrono::milliseconds(50));
		}
	}
	driver_ = std::make_unique<CardDriver>(*machine_);
	machine_->write(0, hw::mlx4::bar0::reset, __builtin_bswap32(hw::mlx4::bar0::reset_bit));
	driver_->bring_up_events();
	cq_ = driver_->create_cq(CardDriver::kFirstCq, kLogCq);
	const auto region = driver_->make_buffer(kScratch);
	scratch_ = region.bus;
	MptEntry mpt{};
	std::uint8_t *const e = mpt.bytes;
	MptEntry::region.set(e, 1);
	for (const auto &right :
	     {MptEntry::local_read, MptEntry::local_write, MptEntry::remote_read,
	      MptEntry::remote_write, MptEntry::remote_atomic})
		right.set(e, 1);
	MptEntry::mem_key.set(e, hw::mlx4::mpt_key(kKey));
	MptEntry::pd.set(e, kPd);
	MptEntry::length.set(e, kScratch);
	MptEntry::entity_size.set(e, 12);
	MptEntry::mtt_offset.set(e, region.mtt_offset);
	must(driver_->command(Opcode::sw2hw_mpt, kKey >> 8, 0, mpt.bytes), "SW2HW_MPT");
	must(driver_->command(Opcode::conf_special_qp, kSpecialQps), "CONF_SPECIAL_QP");
	must(driver_->command(Opcode::init_port, 1), "INIT_PORT");
	const ib::PortInfo info = await_active_port(1);
	lid_ = info.lid;
	manager_lid_ = info.sm_lid;
	special_ = create_queue(kGsi, ServiceType::mlx);
	completed_ = counted_ = 0;
}

void Intruder::must(const CardDriver::Result &result, const char *what)
{
	if (result.status != Status::ok)
		throw std::runtime_error(std::string(what) + " failed with status " +
					 std::to_string(static_cast<int>(result.status)));
}

void Intruder::must_refuse(const CardDriver::Result &result, const char *what)
{
	if (result.status == Status::ok)
		throw std::runtime_error(std::string(what) + " was carried out");
}

ib::PortInfo Intruder::await_active_port(unsigned port)
{
	const auto deadline = std::chrono::steady_clock::now() + kTimeLimit;
	const auto request = driver_->mad(ib::MgmtClass::subn_lid_routed, ib::MadMethod::get,
					  ib::attr_port_info, port);
	for (;;) {
		const ib::Mad answer = driver_->ask(port, request);
		ib::Smp smp;
		std::memcpy(&smp, &answer, sizeof(smp));
		const auto &info = ib::smp_attribute<ib::PortInfo>(smp);
		if (info.state() == ib::PortState::active)
			return info;
		if (std::chrono::steady_clock::now() > deadline)
			throw std::runtime_error("the port does not become active");
		std::this_thread::sleep_for(std::chrono::milliseconds(20));
	}
}

Intruder::Queue Intruder::create_queue(std::uint32_t qpn, ServiceType service,
				       std::uint16_t remote_lid, std::uint32_t remote_qpn,
				       unsigned port)
{
	must(driver_->command(Opcode::to_rst_qp, qpn, 2), "2RST_QP");
	Queue queue{qpn, driver_->make_buffer((std::uint64_t{kSendStride} << kLogSendQueue) + 4096),
		    0};
	Mailbox mailbox(hw::mlx4::qp_mailbox_size);
	std::uint8_t *const c = mailbox.data() + hw::mlx4::qp_mailbox_context;
	QpContext::service_type.set(c, static_cast<std::uint32_t>(service));
	QpContext::pd.set(c, kPd);
	QpContext::uar_page.set(c, CardDriver::kUarPage);
	QpContext::send_cqn.set(c, cq_.number);
	QpContext::receive_cqn.set(c, cq_.number);
	QpContext::log_sq_size.set(c, kLogSendQueue);
	QpContext::log_sq_stride.set(c, 6);
	QpContext::log_rq_size.set(c, 3);
	QpContext::log_rq_stride.set(c, 1);
	QpContext::mtt_offset.set(c, queue.buffer.mtt_offset);
	QpContext::doorbell_record.set(c, driver_->allocate(4, 4));
	QpContext::qkey.set(c, 0x0b1b);
	for (unsigned i = 0; i < kSendQueue; ++i)
		machine_->object<ib::be32>(queue.buffer.bus + std::uint64_t{i} * kSendStride) =
			WqeControl::owner_bit;
	must(driver_->command(Opcode::rst2init_qp, qpn, 0, mailbox), "RST2INIT_QP");

	Mailbox next(hw::mlx4::qp_mailbox_size);
	std::uint8_t *const n = next.data() + hw::mlx4::qp_mailbox_context;
	QpContext::mtu.set(n, static_cast<std::uint32_t>(ib::Mtu::mtu_2048));
	QpContext::log_max_message.set(n, service == ServiceType::ud ? 18 : 30);
	QpContext::remote_qpn.set(n, remote_qpn);
	QpContext::sra_max.set(n, 2);
	QpContext::rra_max.set(n, 2);
	QpContext::retry_count.set(n, 1);
	QpContext::rnr_retry.set(n, 1);
	std::uint8_t *const path = n + QpContext::primary_path;
	AddressPathLayout::remote_lid.set(path, remote_lid);
	AddressPathLayout::ack_timeout.set(path, 31);
	AddressPathLayout::sched_queue.set(path, 0x83 | (port - 1) << 6);
	must(driver_->command(Opcode::init2rtr_qp, qpn, 0, next), "INIT2RTR_QP");
	must(driver_->command(Opcode::rtr2rts_qp, qpn, 0, next), "RTR2RTS_QP");
	return queue;
}

void Intruder::post(Queue &queue, std::vector<std::byte> wqe)
{
	const std::uint64_t at =
		queue.buffer.bus + std::uint64_t{queue.posted % kSendQueue} * kSendStride;
	WqeControl control;
	std::memcpy(&control, wqe.data(), sizeof(control));
	std::uint32_t word = control.opcode_word & ~WqeControl::owner_bit;
	if (queue.posted >> kLogSendQueue & 1)
		word |= WqeControl::owner_bit;
	std::memcpy(machine_->memory(at + 4, wqe.size() - 4).data(), wqe.data() + 4,
		    wqe.size() - 4);
	machine_->object<ib::be32>(at) = word;
	++queue.posted;
	machine_->write<std::uint32_t>(
		2, hw::mlx4::uar::page_size * CardDriver::kUarPage + hw::mlx4::uar::send_doorbell,
		__builtin_bswap32(queue.qpn << 8));
	reap();
}

void Intruder::reap()
{
	for (;;) {
		const auto &entry = machine_->object<Cqe>(
			cq_.buffer.bus + sizeof(Cqe) * (cq_.consumer % (1u << kLogCq)));
		if (entry.owner() != ((cq_.consumer >> kLogCq & 1) != 0))
			return;
		if (entry.qpn() == kGsi) {
			if (entry.opcode() == hw::mlx4::cqe_opcode_error)
				throw std::runtime_error("a packet was not sent");
			++completed_;
		}
		driver_->set_consumer(cq_, cq_.consumer + 1);
	}
}

void Intruder::run_card()
{
	// The card's thread completes each command after its current work.
	for (int i = 0; i < 8; ++i)
		must(driver_->command(Opcode::nop), "NOP");
	reap();
}

ib::PortCountersExtended Intruder::counters_of(unsigned port)
{
	auto request = driver_->mad(ib::MgmtClass::perf, ib::MadMethod::get,
				    ib::attr_port_counters_extended);
	ib::PerfMad perf;
	std::memcpy(&perf, &request, sizeof(perf));
	ib::PortCountersExtended counters{};
	counters.port_select = static_cast<std::uint8_t>(port);
	std::memcpy(perf.data, &counters, sizeof(counters));
	std::memcpy(&request, &perf, sizeof(request));
	const ib::Mad answer = driver_->ask(port, request);
	std::memcpy(&perf, &answer, sizeof(perf));
	std::memcpy(&counters, perf.data, sizeof(counters));
	return counters;
}

void Intruder::await_packets(std::uint64_t before, std::uint64_t packets)
{
	const auto deadline = std::chrono::steady_clock::now() + kTimeLimit;
	std::uint64_t sent;
	while ((sent = packets_sent() - before) < packets)
		if (std::chrono::steady_clock::now() > deadline)
			throw std::runtime_error(std::to_string(sent) + " packets left where " +
						 std::to_string(packets) + " should");
	count("packets", sent);
}

void Intruder::send_raw_packet(std::uint16_t dlid, std::uint32_t dest_qp, std::uint16_t pkey,
			       bool vl15, std::span<const std::byte> payload)
{
	await_completions(special_.posted - kSendQueue + 1);
	packet::Headers headers;
	headers.lrh.set_vl(vl15 ? 15 : 0);
	headers.lrh.dlid = dlid;
	headers.lrh.slid = lid_;
	headers.bth.opcode = ib::opcode_ud_send_only;
	headers.bth.pkey = pkey;
	headers.bth.set_dest_qp(dest_qp);
	headers.deth.qkey = 0x80010000u;
	headers.deth.src_qp = 1u;
	std::array<std::uint8_t, 128> bytes{};
	unsigned length = 0;
	if (packet::build(headers, static_cast<unsigned>(payload.size()), bytes.data(),
			  bytes.size(), &length) != packet::Error::none)
		throw std::logic_error("a packet that cannot be built");
	const std::uint64_t at = scratch_ + (special_.posted % kSendQueue) * 4096;
	const auto place = machine_->memory(at, length + payload.size() + 4);
	std::memcpy(place.data(), bytes.data(), length);
	std::memcpy(place.data() + length, payload.data(), payload.size());
	WqeBuilder wqe(WqeOpcode::send, WqeControl::completion | (vl15 ? 1u << 17 : 0));
	wqe.add(WqeData{static_cast<std::uint32_t>(length + payload.size() + 4), kKey,
			at - scratch_});
	auto done = wqe.done();
	WqeControl control;
	std::memcpy(&control, done.data(), sizeof(control));
	control.immediate = std::uint32_t{dlid} << 16;
	std::memcpy(done.data(), &control, sizeof(control));
	post(special_, std::move(done));
}

void Intruder::await_completions(std::uint32_t number)
{
	const auto deadline = std::chrono::steady_clock::now() + kTimeLimit;
	for (reap(); static_cast<std::int32_t>(completed_ - number) < 0; run_card())
		if (std::chrono::steady_clock::now() > deadline)
			throw std::runtime_error("packets do not leave");
}

void Intruder::await_raw_packets()
{
	await_completions(special_.posted);
	count("packets", completed_ - counted_);
	counted_ = completed_;
}

} // namespace weft::malicious_guest
