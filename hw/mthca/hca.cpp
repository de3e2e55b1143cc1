// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "hca.hpp"
#include <kern/log.hpp>
#include "cq.hpp"
#include "group_format.hpp"
#include "qp.hpp"
#include "srq.hpp"

/* The module parameter, which module.c declares. */
extern "C" {
unsigned int weft_mthca_completion_vectors = ~0u;
}

namespace mthca
{

namespace
{

constexpr u32 special_qps = 4;

} // namespace

Hca::Hca(kern::pci::Device pci, const kern::Mmio &bar0, const kern::Mmio &uar,
	 FailureListener &listener)
    : HcaBase(pci, bar0, uar, listener, KERN_LOCK_CLASS("mthca.cq_table"))
{
}

Hca::Hca(const kern::Mmio &bar0, const kern::Mmio &uar, FailureListener &listener, Parts parts)
    : Hca(kern::pci::Device(nullptr), bar0, uar, listener)
{
	commands_ = std::move(parts.commands);
	qp_table_ = std::move(parts.qp_table);
	cqns_ = std::move(parts.cqns);
	capabilities_.reserved_uars = parts.reserved_uars;
}

kern::Result<kern::Owned<Hca>> Hca::create(kern::pci::Device pci, const kern::Mmio &bar0,
					   const kern::Mmio &uar, FailureListener &listener)
{
	auto hca = KERN_TRY(kern::adopt(new (kern::Gfp::kernel) Hca(pci, bar0, uar, listener)));
	KERN_TRY(hca->start());
	return hca;
}

Hca::~Hca()
{
	stop();
}

kern::Result<> Hca::start()
{
	commands_ = KERN_TRY(CommandInterface::create(bar0_, dma_device(), GoBit::go, listener_));
	KERN_TRY(start_firmware());
	KERN_TRY(query_capabilities());
	KERN_TRY(map_icm());
	KERN_TRY(create_numbers());
	KERN_TRY(init_hca());
	KERN_TRY(create_own_objects());
	KERN_TRY(create_event_queues());
	KERN_TRY(check_interrupt(firmware_.log_max_commands));
	KERN_TRY(configure_special_qps());
	multicast_ = KERN_TRY(
		MulticastGroups::create(*commands_, layout_[IcmRegion::mcg], marked_group));
	return create_ports();
}

kern::Result<> Hca::start_firmware()
{
	auto mailbox = KERN_TRY(commands_->mailbox());
	KERN_TRY(commands_->execute_out({.opcode = wire::Opcode::query_fw}, mailbox));
	firmware_ = KERN_TRY(parse_firmware(mailbox.bytes(), bar0_.size()));
	// ENABLE_LAM succeeds if the card has its own memory, in which it would store contexts.
	// That mode is not supported.
	auto memory = KERN_TRY(commands_->mailbox());
	const auto enabled = commands_->execute_out({.opcode = wire::opcode::enable_lam}, memory);
	if (enabled || enabled.error() != -EAGAIN) {
		kern_dev_error(dma_device(), "the card is not in memory-free mode\n");
		return kern::Error{enabled ? -EOPNOTSUPP : enabled.error()};
	}
	return run_firmware(firmware_.pages);
}

kern::Result<> Hca::query_capabilities()
{
	auto mailbox = KERN_TRY(commands_->mailbox());
	KERN_TRY(commands_->execute_out({.opcode = wire::opcode::query_dev_lim}, mailbox));
	capabilities_ = KERN_TRY(parse_capabilities(mailbox.bytes()));
	if (capabilities_.uar_bytes > uar_.size()) {
		kern_dev_error(
			dma_device(),
			"%u bytes of user access regions do not fit the card's BAR 2 of %#lx\n",
			capabilities_.uar_bytes, uar_.size());
		return kern::Error{-EPROTO};
	}
	layout_ = KERN_TRY(lay_out_icm(capabilities_,
				       {.log_mtts = mellanox_icm::log_mtts_for(
						kern_ram_pages(), capabilities_.log_max_mtts)}));
	special_base_ = kern::align_up(capabilities_.reserved_qps, special_qps);
	return {};
}

kern::Result<> Hca::map_icm()
{
	KERN_TRY(size_icm(layout_.total_bytes));
	const u32 first_qpn = special_base_ + special_qps;
	const struct {
		IcmRegion region;
		u32 reserved;
	} plan[] = {
		{IcmRegion::eqc, 1u << layout_[IcmRegion::eqc].log_entries},
		{IcmRegion::mtt, capabilities_.reserved_mtts},
		{IcmRegion::mpt, capabilities_.reserved_mpts},
		{IcmRegion::qpc, first_qpn},
		{IcmRegion::eqpc, first_qpn},
		{IcmRegion::rdb, first_qpn},
		{IcmRegion::cqc, capabilities_.reserved_cqs},
		{IcmRegion::srqc, capabilities_.reserved_srqs},
		// The card reads all entries of this table.
		{IcmRegion::mcg, 1u << layout_[IcmRegion::mcg].log_entries},
		{IcmRegion::uarc, 0},
	};
	for (const auto &[region, reserved] : plan)
		tables_[static_cast<int>(region)] = KERN_TRY(
			IcmTable::create(*commands_, dma_device(), layout_[region], reserved));

	return create_mtts(table(IcmRegion::mtt), layout_[IcmRegion::mtt].log_entries,
			   capabilities_.reserved_mtts, wire::log_mtt_segment);
}

kern::Result<> Hca::create_numbers()
{
	const auto count = [this](IcmRegion region) { return 1u << layout_[region].log_entries; };
	KERN_TRY(HcaBase::create_numbers(
		{.first_qpn = special_base_ + special_qps,
		 .qps = count(IcmRegion::qpc),
		 .cqs = count(IcmRegion::cqc),
		 .srqs = count(IcmRegion::srqc),
		 .mpts = count(IcmRegion::mpt),
		 .uars = static_cast<u32>(capabilities_.uar_bytes / wire::uar::page_size)}));
	srq_table_ = KERN_TRY(kern::make_array<Srq *>(kern::Gfp::kernel, count(IcmRegion::srqc)));
	return {};
}

kern::Result<> Hca::init_hca()
{
	using Init = wire::InitHca;
	auto mailbox = KERN_TRY(commands_->mailbox());
	u8 *const in = mailbox.bytes();
	const auto base = [&](wire::Field64 field, IcmRegion region) {
		field.set(in, layout_[region].base);
	};
	const auto log = [&](wire::Field field, IcmRegion region) {
		field.set(in, layout_[region].log_entries);
	};

	Init::flags.set(in, capabilities_.has(wire::dev_lim_flag::av_port_check)
				    ? Init::flag_av_port_check
				    : 0);
	base(Init::qpc_base, IcmRegion::qpc);
	log(Init::log_qps, IcmRegion::qpc);
	base(Init::eec_base, IcmRegion::eec);
	base(Init::srqc_base, IcmRegion::srqc);
	log(Init::log_srqs, IcmRegion::srqc);
	base(Init::cqc_base, IcmRegion::cqc);
	log(Init::log_cqs, IcmRegion::cqc);
	base(Init::eqpc_base, IcmRegion::eqpc);
	base(Init::eeec_base, IcmRegion::eeec);
	base(Init::eqc_base, IcmRegion::eqc);
	log(Init::log_eqs, IcmRegion::eqc);
	base(Init::rdb_base, IcmRegion::rdb);
	base(Init::mcg_base, IcmRegion::mcg);
	Init::log_mcg_entry_size.set(in, kern::log2_ceil(layout_[IcmRegion::mcg].entry_bytes));
	Init::mcg_hash_size.set(in, 1u << (layout_[IcmRegion::mcg].log_entries - 1));
	log(Init::log_mcg_size, IcmRegion::mcg);
	base(Init::mpt_base, IcmRegion::mpt);
	log(Init::log_mpts, IcmRegion::mpt);
	base(Init::mtt_base, IcmRegion::mtt);
	log(Init::log_uars, IcmRegion::uar_scratch);
	Init::log_uarc_pages.set(in, layout_.log_uarc_pages);
	base(Init::uar_scratch_base, IcmRegion::uar_scratch);
	base(Init::uarc_base, IcmRegion::uarc);
	KERN_TRY(commands_->execute_in({.opcode = wire::Opcode::init_hca}, mailbox));
	stage_ = Stage::running;
	return {};
}

kern::Result<> Hca::create_own_objects()
{
	records_ = KERN_TRY(Records::create(table(IcmRegion::uarc),
					    uar_page() << layout_.log_uarc_pages,
					    layout_.log_uarc_pages));
	own_pd_ = KERN_TRY(Number::create(*pdns_));
	own_key_ = KERN_TRY(open_all_memory(*this, own_pd_.value(), IB_ACCESS_LOCAL_WRITE));
	return {};
}

kern::Result<> Hca::create_event_queues()
{
	const u32 available =
		(1u << layout_[IcmRegion::eqc].log_entries) - capabilities_.reserved_eqs;
	const EqResources resources{*commands_, dma_device(), own_memory(), table(IcmRegion::eqc),
				    bar0_,      firmware_,    *this};
	const auto make = [&](u32 i, u32 vector, bool by_pin, u32 log_entries) {
		return EventVector<Eq>::create(resources, capabilities_.reserved_eqs + i, vector,
					       by_pin, log_entries);
	};
	KERN_TRY(events_.create(
		pci_, weft_mthca_completion_vectors, available,
		{"weft_mthca", "weft_mthca-async", "weft_mthca-completion"},
		{bar0_, firmware_.clear_interrupt_offset}, [this] { return query_pin(); }, make));
	return start_events(async_events);
}

kern::Result<> Hca::configure_special_qps()
{
	KERN_TRY(commands_->execute({.opcode = wire::Opcode::conf_special_qp,
				     .in_modifier = special_qpn(false, 1),
				     .op_modifier = wire::special_smi}));
	stage_ = Stage::special_qps;
	KERN_TRY(commands_->execute({.opcode = wire::Opcode::conf_special_qp,
				     .in_modifier = special_qpn(true, 1),
				     .op_modifier = wire::special_gsi}));
	return {};
}

kern::Result<> Hca::create_ports()
{
	port_commands_ =
		KERN_TRY(kern::make<PortCommands>(kern::Gfp::kernel, *commands_, capabilities_));
	for (u32 port = 1; port <= num_ports(); port++) {
		ports_[port - 1] = KERN_TRY(Port::create(*commands_, *port_commands_, port,
							 capabilities_.port, log_max_message));
		// Until the driver's QP0 is ready, the card's own agent responds to the subnet
		// manager.
		KERN_TRY(ports_[port - 1]->open());
	}
	return {};
}

void Hca::stop()
{
	stop_ports();
	if (!commands_)
		return;
	// If these commands fail, the reset before the next use of the card has the same effect.
	if (stage_ == Stage::special_qps)
		for (const u32 kind : {wire::special_smi, wire::special_gsi})
			kern::ignore(commands_->execute({.opcode = wire::Opcode::conf_special_qp,
							 .op_modifier = static_cast<u8>(kind)}));
	stop_events(~u64{0});
	own_key_ = {};
	records_.reset();
	close();
	free_tables(tables_);
	unmap_firmware_areas();
}

void Hca::dump(kern::debugfs::Output &out)
{
	static constexpr const char *names[icm_regions] = {
		"QPC", "EQPC", "RDB", "EEC", "EEEC",        "SRQC", "CQC",
		"EQC", "MCG",  "MPT", "MTT", "UAR scratch", "UARC"};
	dump_tables(out, names, layout_, tables_);
	dump_objects(out);
}

u32 Hca::event_port(const u8 *eqe)
{
	// This card has only two of the family's four bits.
	return hw::mellanox_icm::Eqe::port.get(eqe) & 3;
}

bool Hca::own_event(hw::mellanox_icm::EventType, const u8 *)
{
	return false;
}

} // namespace mthca
