// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "hca.hpp"
#include <kern/log.hpp>
#include "../mellanox/object_events.hpp"
#include "cq.hpp"
#include "group_format.hpp"
#include "qp.hpp"
#include "srq.hpp"

/* The module's parameter (module.c). */
extern "C" {
unsigned int weft_connectx_completion_vectors = ~0u;
}

namespace connectx
{

namespace
{

constexpr u32 special_qps = 8;
/* What the subnet manager may do to a port before the first of it has been heard of. */
constexpr u32 most_port_events = 256;

} // namespace

Hca::Hca(kern::pci::Device pci, const kern::Mmio &bar0, const kern::Mmio &uar,
	 FailureListener &listener)
    : pci_(pci), bar0_(bar0), uar_(uar), listener_(listener), doorbells_(pci.dev()),
      cq_table_lock_(KERN_LOCK_CLASS("connectx.cq_table"))
{
}

kern::Result<kern::Owned<Hca>> Hca::create(kern::pci::Device pci, const kern::Mmio &bar0,
					   const kern::Mmio &uar, FailureListener &listener)
{
	auto hca = TRY(kern::adopt(new (kern::Gfp::kernel) Hca(pci, bar0, uar, listener)));
	TRY(hca->start());
	return hca;
}

Hca::~Hca()
{
	stop();
}

kern::Result<> Hca::start()
{
	commands_ = TRY(
		CommandInterface::create(bar0_, dma_device(), HandOver::go_and_toggle, listener_));
	TRY(start_firmware());
	TRY(query_capabilities());
	TRY(map_icm());
	TRY(create_numbers());
	TRY(init_hca());
	TRY(create_event_queues());
	TRY(check_interrupt());
	TRY(commands_->execute(
		{.opcode = wire::Opcode::conf_special_qp, .in_modifier = special_base_}));
	stage_ = Stage::special_qps;
	multicast_ =
		TRY(MulticastGroups::create(*commands_, layout_[IcmRegion::mcg], counted_group));
	return create_ports();
}

kern::Result<> Hca::start_firmware()
{
	auto mailbox = TRY(commands_->mailbox());
	TRY(commands_->execute_out({.opcode = wire::Opcode::query_fw}, mailbox));
	firmware_ = TRY(parse_firmware(mailbox.bytes()));
	const u64 offset = firmware_.error_buffer_offset;
	const u64 bytes = u64{firmware_.error_buffer_dwords} * 4;
	if (bytes && (firmware_.error_buffer_bar != 0 || offset % 4 || offset > bar0_.size() ||
		      bytes > bar0_.size() - offset)) {
		kern_dev_error(dma_device(), "the error buffer lies outside BAR 0\n");
		return kern::Error{-EPROTO};
	}
	if (firmware_.pages) {
		firmware_area_ =
			TRY(PageArea::create(dma_device(), size_t{firmware_.pages} * 4096));
		TRY(firmware_area_.map(*commands_, wire::Opcode::map_fa));
		stage_ = Stage::firmware_mapped;
	}
	TRY(commands_->execute({.opcode = wire::Opcode::run_fw}));
	// Pages of 4 KiB, whatever the firmware thinks is best.
	auto config = TRY(commands_->mailbox());
	wire::ModStatCfg::log_page_size_valid.set(config.bytes(), 1);
	return commands_->execute_in({.opcode = wire::Opcode::mod_stat_cfg}, config);
}

kern::Result<> Hca::query_capabilities()
{
	auto mailbox = TRY(commands_->mailbox());
	TRY(commands_->execute_out({.opcode = wire::Opcode::query_dev_cap}, mailbox));
	capabilities_ = TRY(parse_capabilities(mailbox.bytes()));
	if (capabilities_.uar_bytes > uar_.size() ||
	    capabilities_.uar_bytes / wire::uar::page_size <= wire::uar::first_usable_page) {
		kern_dev_error(
			dma_device(),
			"%u bytes of user access regions do not fit the card's BAR 2 of %#lx\n",
			capabilities_.uar_bytes, uar_.size());
		return kern::Error{-EPROTO};
	}
	for (u32 port = 1; port <= capabilities_.num_ports; port++) {
		auto answer = TRY(commands_->mailbox());
		TRY(commands_->execute_out(
			{.opcode = wire::Opcode::query_port, .in_modifier = port}, answer));
		port_capabilities_[port - 1] = TRY(parse_port_capabilities(answer.bytes()));
	}
	layout_ = TRY(lay_out_icm(capabilities_, {}));
	special_base_ = kern::align_up(capabilities_.reserved_qps, special_qps);
	return {};
}

kern::Result<> Hca::map_icm()
{
	const u64 pages = TRY(commands_->execute(
		{.opcode = wire::Opcode::set_icm_size, .in_param = layout_.total_bytes}));
	if (pages > 1 << 16) {
		kern_dev_error(dma_device(), "the card wants %#lx auxiliary pages\n", pages);
		return kern::Error{-EPROTO};
	}
	if (pages) {
		auxiliary_area_ = TRY(PageArea::create(dma_device(), pages * 4096));
		TRY(auxiliary_area_.map(*commands_, wire::Opcode::map_icm_aux));
		stage_ = Stage::auxiliary_mapped;
	}
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
		// The card walks the whole of it.
		{IcmRegion::mcg, 1u << layout_[IcmRegion::mcg].log_entries},
	};
	for (const auto &[region, reserved] : plan)
		tables_[static_cast<int>(region)] =
			TRY(IcmTable::create(*commands_, dma_device(), layout_[region], reserved));

	const unsigned int log_mtts = layout_[IcmRegion::mtt].log_entries;
	mtt_entries_ = TRY(Buddy::create(log_mtts));
	const u32 first = TRY(mtt_entries_->allocate(kern::log2_ceil(capabilities_.reserved_mtts)));
	kern_assert(first == 0);
	(void)first;
	mtts_ = TRY(kern::make<MttTable>(kern::Gfp::kernel, table(IcmRegion::mtt), *mtt_entries_));
	return {};
}

kern::Result<> Hca::create_numbers()
{
	const auto count = [this](IcmRegion region) { return 1u << layout_[region].log_entries; };
	qpns_ = TRY(NumberAllocator::create(special_base_ + special_qps, count(IcmRegion::qpc)));
	cqns_ = TRY(NumberAllocator::create(capabilities_.reserved_cqs, count(IcmRegion::cqc)));
	srqns_ = TRY(NumberAllocator::create(capabilities_.reserved_srqs, count(IcmRegion::srqc)));
	mpts_ = TRY(NumberAllocator::create(capabilities_.reserved_mpts, count(IcmRegion::dmpt)));
	// Number 0 stands for no domain.
	pdns_ = TRY(NumberAllocator::create(capabilities_.reserved_pds + 1, 1 << 15));
	xrcdns_ = TRY(NumberAllocator::create(capabilities_.reserved_xrcds + 1, 1 << 15));
	// The kernel's own page is the first that one may ring by.
	uars_ = TRY(NumberAllocator::create(uar_page() + 1,
					    capabilities_.uar_bytes / wire::uar::page_size));
	qp_table_ = TRY(kern::make_array<QpEntry>(kern::Gfp::kernel, count(IcmRegion::qpc)));
	cq_table_ = TRY(kern::make_array<Cq *>(kern::Gfp::kernel, count(IcmRegion::cqc)));
	srq_table_ = TRY(kern::make_array<SrqEntry>(kern::Gfp::kernel, count(IcmRegion::srqc)));
	return {};
}

kern::Result<> Hca::init_hca()
{
	using Init = wire::InitHca;
	auto mailbox = TRY(commands_->mailbox());
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
	TRY(commands_->execute_in({.opcode = wire::Opcode::init_hca}, mailbox));
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
	TRY(events_.create(
		pci_, weft_connectx_completion_vectors, available,
		{"weft_connectx", "weft_connectx-async", "weft_connectx-completion"},
		{bar0_, firmware_.clear_interrupt_offset}, [this] { return query_interrupt_pin(); },
		make));
	// Its own events are the answers of commands.
	TRY(events_.take_own_room(CommandInterface::max_slots + num_ports() * most_port_events));
	u64 events = async_events;
	if (capabilities_.has(wire::dev_cap_flag::port_management_event))
		events |= event_bit(wire::EventType::port_management_change);
	TRY(commands_->execute({.opcode = wire::Opcode::map_eq,
				.in_modifier = async_eq().number(),
				.in_param = events}));
	events_.arm();
	return {};
}

kern::Result<u32> Hca::query_interrupt_pin()
{
	auto mailbox = TRY(commands_->mailbox());
	TRY(commands_->execute_out({.opcode = wire::Opcode::query_adapter}, mailbox));
	const u32 pin = wire::QueryAdapter::interrupt_pin.get(mailbox.bytes());
	// The register that clears it has a bit for each of 64, the first 32 in its second half.
	if (pin >= 64 || firmware_.clear_interrupt_bar != 0 ||
	    firmware_.clear_interrupt_offset % 8 ||
	    firmware_.clear_interrupt_offset > bar0_.size() - 8)
		return kern::Error{-EPROTO};
	return pin;
}

/* Commands by events from here on, beginning with one that does nothing else. */
kern::Result<> Hca::check_interrupt()
{
	TRY(commands_->use_events(firmware_.log_max_commands));
	TRY(commands_->execute({.opcode = wire::Opcode::nop, .in_modifier = 0x1f}));
	return {};
}

kern::Result<> Hca::create_ports()
{
	port_commands_ = TRY(kern::make<PortCommands>(kern::Gfp::kernel, *commands_));
	for (u32 port = 1; port <= num_ports(); port++) {
		const PortCapabilities &capabilities = port_capabilities_[port - 1];
		TRY(port_commands_->prepare(port, capabilities));
		ports_[port - 1] = TRY(Port::create(*commands_, *port_commands_, port, capabilities,
						    capabilities_.log_max_message));
		// The card's own agent answers the subnet manager: no QP0 of ours has to be there
		// first.
		TRY(ports_[port - 1]->open());
	}
	return {};
}

void Hca::stop()
{
	failure_work_.cancel();
	for (kern::Owned<Port> &port : ports_)
		port.reset();
	multicast_.reset();
	if (!commands_)
		return;
	// What these commands fail to do, the reset that comes before the card's next use does.
	if (stage_ == Stage::special_qps)
		kern::ignore(commands_->execute({.opcode = wire::Opcode::conf_special_qp}));
	commands_->use_polling();
	if (events_.begun())
		kern::ignore(commands_->execute(
			{.opcode = wire::Opcode::map_eq,
			 .in_modifier = wire::map_eq_unmap.mask() | async_eq().number()}));
	events_.stop();
	if (stage_ >= Stage::running)
		kern::ignore(commands_->execute_closing({.opcode = wire::Opcode::close_hca}));
	mtts_.reset();
	for (kern::Owned<IcmTable> &table : tables_)
		table.reset();
	if (stage_ >= Stage::auxiliary_mapped)
		kern::ignore(commands_->execute_closing({.opcode = wire::Opcode::unmap_icm_aux}));
	if (stage_ >= Stage::firmware_mapped)
		kern::ignore(commands_->execute_closing({.opcode = wire::Opcode::unmap_fa}));
}

void Hca::set_cq(u32 cqn, Cq *cq)
{
	kern::Guard guard(cq_table_lock_);
	kern::write_once(cq_table_[cqn], cq);
}

void Hca::tell_of_failure()
{
	// The card's interrupts have ended; one that was being served may still be in a handler.
	synchronize_events();
	kern::Guard guard(cq_table_lock_);
	for (Cq *cq : cq_table_)
		if (cq)
			cq->announce_failure();
}

void Hca::dump(kern::debugfs::Output &out)
{
	static constexpr const char *names[icm_regions] = {
		"QPC", "AuxC", "AltC", "RDMARC",  "SRQC",     "CQC",     "EQC",
		"MCG", "dMPT", "MTT",  "cMPT QP", "cMPT SRQ", "cMPT CQ", "cMPT EQ"};
	for (unsigned int i = 0; i < icm_regions; i++)
		out.print("%s: 2^%u entries of %u bytes at %#lx, %zu bytes resident\n", names[i],
			  layout_.extent[i].log_entries, layout_.extent[i].entry_bytes,
			  layout_.extent[i].base, tables_[i]->resident_bytes());
	events_.dump(out);
	for (u32 port = 1; port <= num_ports(); port++)
		ports_[port - 1]->dump(out);
	kern::Guard guard(cq_table_lock_);
	for (Cq *cq : cq_table_)
		if (cq)
			cq->dump(out);
}

void Hca::set_event_device(ib_device *device)
{
	for (u32 port = 1; port <= num_ports(); port++)
		ports_[port - 1]->set_device(device);
}

void Hca::completion_event(u32 cqn)
{
	// None: an event that was on its way when its CQ went.
	if (Cq *cq = find_cq(cqn)) [[likely]]
		cq->event();
}

void Hca::async_event(const u8 *entry)
{
	using wire::Eqe;
	// A copy, which the card cannot change between a look and the next.
	u8 eqe[sizeof(Eqe)];
	__builtin_memcpy(eqe, entry, sizeof(eqe));
	const auto type = static_cast<wire::EventType>(Eqe::type.get(eqe));
	switch (type) {
	case wire::EventType::command:
		commands_->completed(static_cast<u16>(Eqe::command_token.get(eqe)),
				     static_cast<u8>(Eqe::command_status.get(eqe)),
				     Eqe::command_out_param.get(eqe));
		break;
	case wire::EventType::port_change:
		port_event(Eqe::subtype.get(eqe) == wire::port_change_subtype::active
				   ? IB_EVENT_PORT_ACTIVE
				   : IB_EVENT_PORT_ERR,
			   Eqe::port.get(eqe));
		break;
	case wire::EventType::port_management_change:
		management_event(eqe);
		break;
	case wire::EventType::local_catastrophic:
		listener_.card_failed("the card reports an internal error");
		break;
	case wire::EventType::eq_overflow:
		listener_.card_failed("an event queue has overflowed");
		break;
	default:
		object_event(*this, type, Eqe::number.get(eqe));
	}
}

void Hca::port_event(ib_event_type type, u32 port)
{
	if (port < 1 || port > num_ports() || !ports_[port - 1])
		return;
	ports_[port - 1]->changed(1u << type);
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
	if (port < 1 || port > num_ports() || !ports_[port - 1])
		return;
	// Even a change that has no event may be one of the tables.
	ports_[port - 1]->changed(events);
}

} // namespace connectx
