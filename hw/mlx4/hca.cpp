// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "hca.hpp"
#include <kern/log.hpp>
#include "cq.hpp"
#include "group_format.hpp"
#include "qp.hpp"
#include "srq.hpp"

/* The module parameter, which module.c declares. */
extern "C" {
unsigned int weft_mlx4_completion_vectors = ~0u;
}

namespace mlx4
{

namespace
{

constexpr u32 special_qps = 8;

} // namespace

Hca::Hca(kern::pci::Device pci, const kern::Mmio &bar0, const kern::Mmio &uar,
	 FailureListener &listener)
    : HcaBase(pci, bar0, uar, listener, KERN_LOCK_CLASS("mlx4.cq_table")), doorbells_(pci.dev())
{
}

Hca::Hca(const kern::Mmio &bar0, const kern::Mmio &uar, FailureListener &listener,
	 kern::Owned<CommandInterface> commands)
    : Hca(kern::pci::Device(nullptr), bar0, uar, listener)
{
	commands_ = std::move(commands);
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
	commands_ = KERN_TRY(
		CommandInterface::create(bar0_, dma_device(), GoBit::go_and_toggle, listener_));
	KERN_TRY(start_firmware());
	KERN_TRY(query_capabilities());
	KERN_TRY(map_icm());
	KERN_TRY(create_numbers());
	KERN_TRY(init_hca());
	KERN_TRY(create_event_queues());
	KERN_TRY(check_interrupt(firmware_.log_max_commands));
	KERN_TRY(commands_->execute(
		{.opcode = wire::Opcode::conf_special_qp, .in_modifier = special_base_}));
	stage_ = Stage::special_qps;
	multicast_ = KERN_TRY(
		MulticastGroups::create(*commands_, layout_[IcmRegion::mcg], counted_group));
	return create_ports();
}

kern::Result<> Hca::start_firmware()
{
	auto mailbox = KERN_TRY(commands_->mailbox());
	KERN_TRY(commands_->execute_out({.opcode = wire::Opcode::query_fw}, mailbox));
	firmware_ = KERN_TRY(parse_firmware(mailbox.bytes()));
	const u64 offset = firmware_.error_buffer_offset;
	const u64 bytes = u64{firmware_.error_buffer_dwords} * 4;
	if (bytes && (firmware_.error_buffer_bar != 0 || offset % 4 || offset > bar0_.size() ||
		      bytes > bar0_.size() - offset)) {
		kern_dev_error(dma_device(), "the error buffer is outside BAR 0\n");
		return kern::Error{-EPROTO};
	}
	KERN_TRY(run_firmware(firmware_.pages));
	// Use pages of 4 KiB, whatever the firmware prefers.
	auto config = KERN_TRY(commands_->mailbox());
	wire::ModStatCfg::log_page_size_valid.set(config.bytes(), 1);
	return commands_->execute_in({.opcode = wire::Opcode::mod_stat_cfg}, config);
}

kern::Result<> Hca::query_capabilities()
{
	auto mailbox = KERN_TRY(commands_->mailbox());
	KERN_TRY(commands_->execute_out({.opcode = wire::Opcode::query_dev_cap}, mailbox));
	capabilities_ = KERN_TRY(parse_capabilities(mailbox.bytes()));
	if (capabilities_.uar_bytes > uar_.size() ||
	    capabilities_.uar_bytes / wire::uar::page_size <= wire::uar::first_usable_page) {
		kern_dev_error(
			dma_device(),
			"%u bytes of user access regions do not fit the card's BAR 2 of %#lx\n",
			capabilities_.uar_bytes, uar_.size());
		return kern::Error{-EPROTO};
	}
	for (u32 port = 1; port <= capabilities_.num_ports; port++) {
		auto answer = KERN_TRY(commands_->mailbox());
		KERN_TRY(commands_->execute_out(
			{.opcode = wire::Opcode::query_port, .in_modifier = port}, answer));
		port_capabilities_[port - 1] = KERN_TRY(parse_port_capabilities(answer.bytes()));
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
		{IcmRegion::cmpt_qp, first_qpn},
		{IcmRegion::cmpt_srq, capabilities_.reserved_srqs},
		{IcmRegion::cmpt_cq, capabilities_.reserved_cqs},
		{IcmRegion::cmpt_eq, capabilities_.reserved_eqs},
		{IcmRegion::eqc, capabilities_.reserved_eqs},
		{IcmRegion::mtt, capabilities_.reserved_mtts},
		{IcmRegion::dmpt, capabilities_.reserved_mpts},
		{IcmRegion::qpc, first_qpn},
		{IcmRegion::auxc, first_qpn},
		{IcmRegion::altc, first_qpn},
		{IcmRegion::rdmarc, first_qpn},
		{IcmRegion::cqc, capabilities_.reserved_cqs},
		{IcmRegion::srqc, capabilities_.reserved_srqs},
		// The card reads all entries of this table.
		{IcmRegion::mcg, 1u << layout_[IcmRegion::mcg].log_entries},
	};
	for (const auto &[region, reserved] : plan)
		tables_[static_cast<int>(region)] = KERN_TRY(
			IcmTable::create(*commands_, dma_device(), layout_[region], reserved));

	return create_mtts(table(IcmRegion::mtt), layout_[IcmRegion::mtt].log_entries,
			   capabilities_.reserved_mtts);
}

kern::Result<> Hca::create_numbers()
{
	const auto count = [this](IcmRegion region) { return 1u << layout_[region].log_entries; };
	KERN_TRY(HcaBase::create_numbers(
		{.first_qpn = special_base_ + special_qps,
		 .qps = count(IcmRegion::qpc),
		 .cqs = count(IcmRegion::cqc),
		 .srqs = count(IcmRegion::srqc),
		 .mpts = count(IcmRegion::dmpt),
		 .uars = static_cast<u32>(capabilities_.uar_bytes / wire::uar::page_size)}));
	xrcdns_ = KERN_TRY(NumberAllocator::create(capabilities_.reserved_xrcds + 1, 1 << 15));
	srq_table_ =
		KERN_TRY(kern::make_array<SrqEntry>(kern::Gfp::kernel, count(IcmRegion::srqc)));
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

	Init::version.set(in, Init::version_value);
	Init::log_cache_line.set(in, kern::log2_ceil(kern::cache_line) - 4);
	Init::cache_line_valid.set(in, 1);
	Init::flags.set(in, Init::flag_ud_av_check |
				    (capabilities_.has(wire::dev_cap_flag::ipoib_checksum)
					     ? Init::flag_ipoib_checksum
					     : 0));
	base(Init::qpc_base, IcmRegion::qpc);
	log(Init::log_qps, IcmRegion::qpc);
	base(Init::srqc_base, IcmRegion::srqc);
	log(Init::log_srqs, IcmRegion::srqc);
	base(Init::cqc_base, IcmRegion::cqc);
	log(Init::log_cqs, IcmRegion::cqc);
	base(Init::altc_base, IcmRegion::altc);
	base(Init::auxc_base, IcmRegion::auxc);
	base(Init::eqc_base, IcmRegion::eqc);
	log(Init::log_eqs, IcmRegion::eqc);
	base(Init::rdmarc_base, IcmRegion::rdmarc);
	Init::log_reads_per_qp.set(in, layout_.log_reads_per_qp);
	base(Init::mcg_base, IcmRegion::mcg);
	Init::log_mcg_entry_size.set(in, kern::log2_ceil(layout_[IcmRegion::mcg].entry_bytes));
	Init::log_mcg_hash_size.set(in, layout_.log_mcg_hash);
	log(Init::log_mcg_size, IcmRegion::mcg);
	base(Init::dmpt_base, IcmRegion::dmpt);
	Init::memory_windows_enable.set(
		in, capabilities_.has(wire::dev_cap_flag::memory_windows) ||
			    capabilities_.has_bmme(wire::bmme_flag::type2_windows));
	log(Init::log_dmpts, IcmRegion::dmpt);
	base(Init::mtt_base, IcmRegion::mtt);
	base(Init::cmpt_base, IcmRegion::cmpt_qp);
	Init::log_uars.set(in, kern::log2_ceil(capabilities_.uar_bytes / wire::uar::page_size));
	KERN_TRY(commands_->execute_in({.opcode = wire::Opcode::init_hca}, mailbox));
	stage_ = Stage::running;
	return {};
}

kern::Result<> Hca::create_event_queues()
{
	const u32 available =
		(1u << layout_[IcmRegion::eqc].log_entries) - capabilities_.reserved_eqs;
	const EqResources resources{
		*commands_, dma_device(), *mtts_, table(IcmRegion::eqc), table(IcmRegion::cmpt_eq),
		uar_,       *this};
	const auto make = [&](u32 i, u32 vector, bool, u32 log_entries) {
		return EventVector<Eq>::create(resources, capabilities_.reserved_eqs + i, vector,
					       log_entries);
	};
	KERN_TRY(events_.create(
		pci_, weft_mlx4_completion_vectors, available,
		{"weft_mlx4", "weft_mlx4-async", "weft_mlx4-completion"},
		{bar0_, firmware_.clear_interrupt_offset}, [this] { return query_interrupt_pin(); },
		make));
	u64 events = async_events;
	if (capabilities_.has(wire::dev_cap_flag::port_management_event))
		events |= event_bit(wire::EventType::port_management_change);
	return start_events(events);
}

kern::Result<u32> Hca::query_interrupt_pin()
{
	if (firmware_.clear_interrupt_bar != 0 || firmware_.clear_interrupt_offset % 8 ||
	    firmware_.clear_interrupt_offset > bar0_.size() - 8)
		return kern::Error{-EPROTO};
	return query_pin();
}

kern::Result<> Hca::create_ports()
{
	port_commands_ = KERN_TRY(kern::make<PortCommands>(kern::Gfp::kernel, *commands_));
	for (u32 port = 1; port <= num_ports(); port++) {
		const PortCapabilities &capabilities = port_capabilities_[port - 1];
		KERN_TRY(port_commands_->prepare(port, capabilities));
		ports_[port - 1] =
			KERN_TRY(Port::create(*commands_, *port_commands_, port, capabilities,
					      capabilities_.log_max_message));
		// The card's own agent responds to the subnet manager, so the port can be enabled
		// before the driver's QP0 exists.
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
		kern::ignore(commands_->execute({.opcode = wire::Opcode::conf_special_qp}));
	stop_events(0);
	close();
	free_tables(tables_);
	unmap_firmware_areas();
}

void Hca::dump(kern::debugfs::Output &out)
{
	static constexpr const char *names[icm_regions] = {
		"QPC", "AuxC", "AltC", "RDMARC",  "SRQC",     "CQC",     "EQC",
		"MCG", "dMPT", "MTT",  "cMPT QP", "cMPT SRQ", "cMPT CQ", "cMPT EQ"};
	dump_tables(out, names, layout_, tables_);
	dump_objects(out);
}

u32 Hca::event_port(const u8 *eqe)
{
	return wire::Eqe::port.get(eqe);
}

bool Hca::own_event(wire::EventType type, const u8 *eqe)
{
	if (type != wire::EventType::port_management_change)
		return false;
	management_event(eqe);
	return true;
}

void Hca::management_event(const u8 *eqe)
{
	using wire::Eqe;
	const u32 port = Eqe::management_port.get(eqe);
	const u32 changed = Eqe::management_changed.get(eqe);
	u32 events = 0;
	switch (Eqe::subtype.get(eqe)) {
	case wire::port_management_subtype::guid_info:
		events = 1u << IB_EVENT_GID_CHANGE;
		break;
	case wire::port_management_subtype::pkey_table:
		events = 1u << IB_EVENT_PKEY_CHANGE;
		break;
	case wire::port_management_subtype::port_info:
		using namespace wire::port_info_changed;
		if (changed & (sm_lid | sm_sl))
			events |= 1u << IB_EVENT_SM_CHANGE;
		if (changed & gid_prefix)
			events |= 1u << IB_EVENT_GID_CHANGE;
		if (changed & lid)
			events |= 1u << IB_EVENT_LID_CHANGE;
		if (changed & client_reregister)
			events |= 1u << IB_EVENT_CLIENT_REREGISTER;
		break;
	}
	// The tables may have changed even if there is no event to report.
	port_event(events, port);
}

} // namespace mlx4
