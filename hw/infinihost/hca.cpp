// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "hca.hpp"
#include <kern/bits.hpp>
#include <kern/log.hpp>
#include "../mellanox/object_events.hpp"
#include "cq.hpp"
#include "group_format.hpp"
#include "qp.hpp"
#include "srq.hpp"

/* The module's parameter (module.c). */
extern "C" {
unsigned int weft_infinihost_completion_vectors = ~0u;
}

namespace infinihost
{

namespace
{

using hw::mellanox::Eqe;
using hw::mellanox::EventType;

constexpr u32 special_qps = 4;
/* What the subnet manager may do to a port before the first of it has been heard of. */
constexpr u32 most_port_events = 256;

} // namespace

Hca::Hca(kern::pci::Device pci, const kern::Mmio &bar0, const kern::Mmio &uar,
	 FailureListener &listener)
    : pci_(pci), bar0_(bar0), uar_(uar), listener_(listener),
      cq_table_lock_(KERN_LOCK_CLASS("infinihost.cq_table"))
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
	commands_ = TRY(CommandInterface::create(bar0_, dma_device(), HandOver::go, listener_));
	TRY(start_firmware());
	TRY(query_capabilities());
	TRY(map_icm());
	TRY(create_numbers());
	TRY(init_hca());
	TRY(create_own_objects());
	TRY(create_event_queues());
	TRY(check_interrupt());
	TRY(configure_special_qps());
	multicast_ =
		TRY(MulticastGroups::create(*commands_, layout_[IcmRegion::mcg], marked_group));
	return create_ports();
}

kern::Result<> Hca::start_firmware()
{
	auto mailbox = TRY(commands_->mailbox());
	TRY(commands_->execute_out({.opcode = wire::Opcode::query_fw}, mailbox));
	firmware_ = TRY(parse_firmware(mailbox.bytes(), bar0_.size()));
	// Whether the card has memory of its own, which it would then want to keep contexts in:
	// that mode is not driven here.
	auto memory = TRY(commands_->mailbox());
	const auto enabled = commands_->execute_out({.opcode = wire::opcode::enable_lam}, memory);
	if (enabled || enabled.error() != -EAGAIN) {
		kern_dev_error(dma_device(), "the card is not in memory-free mode\n");
		return kern::Error{enabled ? -EOPNOTSUPP : enabled.error()};
	}
	if (firmware_.pages) {
		firmware_area_ =
			TRY(PageArea::create(dma_device(), size_t{firmware_.pages} * 4096));
		TRY(firmware_area_.map(*commands_, wire::Opcode::map_fa));
		stage_ = Stage::firmware_mapped;
	}
	TRY(commands_->execute({.opcode = wire::Opcode::run_fw}));
	return {};
}

kern::Result<> Hca::query_capabilities()
{
	auto mailbox = TRY(commands_->mailbox());
	TRY(commands_->execute_out({.opcode = wire::opcode::query_dev_lim}, mailbox));
	capabilities_ = TRY(parse_capabilities(mailbox.bytes()));
	if (capabilities_.uar_bytes > uar_.size()) {
		kern_dev_error(
			dma_device(),
			"%u bytes of user access regions do not fit the card's BAR 2 of %#lx\n",
			capabilities_.uar_bytes, uar_.size());
		return kern::Error{-EPROTO};
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
		{IcmRegion::eqc, 1u << layout_[IcmRegion::eqc].log_entries},
		{IcmRegion::mtt, capabilities_.reserved_mtts},
		{IcmRegion::mpt, capabilities_.reserved_mpts},
		{IcmRegion::qpc, first_qpn},
		{IcmRegion::eqpc, first_qpn},
		{IcmRegion::rdb, first_qpn},
		{IcmRegion::cqc, capabilities_.reserved_cqs},
		{IcmRegion::srqc, capabilities_.reserved_srqs},
		// The card walks the whole of it.
		{IcmRegion::mcg, 1u << layout_[IcmRegion::mcg].log_entries},
		{IcmRegion::uarc, 0},
	};
	for (const auto &[region, reserved] : plan)
		tables_[static_cast<int>(region)] =
			TRY(IcmTable::create(*commands_, dma_device(), layout_[region], reserved));

	mtt_entries_ = TRY(Buddy::create(layout_[IcmRegion::mtt].log_entries));
	const u32 first = TRY(mtt_entries_->allocate(kern::log2_ceil(capabilities_.reserved_mtts)));
	kern_assert(first == 0);
	(void)first;
	mtts_ = TRY(kern::make<MttTable>(kern::Gfp::kernel, table(IcmRegion::mtt), *mtt_entries_,
					 wire::log_mtt_segment));
	return {};
}

kern::Result<> Hca::create_numbers()
{
	const auto count = [this](IcmRegion region) { return 1u << layout_[region].log_entries; };
	qpns_ = TRY(NumberAllocator::create(special_base_ + special_qps, count(IcmRegion::qpc)));
	cqns_ = TRY(NumberAllocator::create(capabilities_.reserved_cqs, count(IcmRegion::cqc)));
	srqns_ = TRY(NumberAllocator::create(capabilities_.reserved_srqs, count(IcmRegion::srqc)));
	mpts_ = TRY(NumberAllocator::create(capabilities_.reserved_mpts, count(IcmRegion::mpt)));
	// Number 0 stands for no domain.
	pdns_ = TRY(NumberAllocator::create(capabilities_.reserved_pds + 1, 1 << 15));
	// The kernel's own is the first that one may ring by.
	uars_ = TRY(NumberAllocator::create(uar_page() + 1,
					    capabilities_.uar_bytes / wire::uar::page_size));
	qp_table_ = TRY(kern::make_array<QpEntry>(kern::Gfp::kernel, count(IcmRegion::qpc)));
	cq_table_ = TRY(kern::make_array<Cq *>(kern::Gfp::kernel, count(IcmRegion::cqc)));
	srq_table_ = TRY(kern::make_array<Srq *>(kern::Gfp::kernel, count(IcmRegion::srqc)));
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
	TRY(commands_->execute_in({.opcode = wire::Opcode::init_hca}, mailbox));
	stage_ = Stage::running;
	return {};
}

kern::Result<> Hca::create_own_objects()
{
	records_ = TRY(Records::create(table(IcmRegion::uarc), uar_page() << layout_.log_uarc_pages,
				       layout_.log_uarc_pages));
	own_pd_ = TRY(Number::create(*pdns_));
	own_key_ = TRY(open_all_memory(*this, own_pd_.value(), IB_ACCESS_LOCAL_WRITE));
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
	TRY(events_.create(
		pci_, weft_infinihost_completion_vectors, available,
		{"weft_infinihost", "weft_infinihost-async", "weft_infinihost-completion"},
		{bar0_, firmware_.clear_interrupt_offset}, [this] { return query_interrupt_pin(); },
		make));
	// Its own events are the answers of commands.
	TRY(events_.take_own_room(CommandInterface::max_slots + num_ports() * most_port_events));
	TRY(commands_->execute({.opcode = wire::Opcode::map_eq,
				.in_modifier = async_eq().number(),
				.in_param = async_events}));
	events_.arm();
	return {};
}

kern::Result<u32> Hca::query_interrupt_pin()
{
	auto mailbox = TRY(commands_->mailbox());
	TRY(commands_->execute_out({.opcode = wire::Opcode::query_adapter}, mailbox));
	const u32 pin = wire::QueryAdapter::interrupt_pin.get(mailbox.bytes());
	// The register that clears it has a bit for each of 64, the first 32 in its second half.
	if (pin >= 64)
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

kern::Result<> Hca::configure_special_qps()
{
	TRY(commands_->execute({.opcode = wire::Opcode::conf_special_qp,
				.in_modifier = special_qpn(false, 1),
				.op_modifier = wire::special_smi}));
	stage_ = Stage::special_qps;
	TRY(commands_->execute({.opcode = wire::Opcode::conf_special_qp,
				.in_modifier = special_qpn(true, 1),
				.op_modifier = wire::special_gsi}));
	return {};
}

kern::Result<> Hca::create_ports()
{
	port_commands_ =
		TRY(kern::make<PortCommands>(kern::Gfp::kernel, *commands_, capabilities_));
	for (u32 port = 1; port <= num_ports(); port++) {
		ports_[port - 1] = TRY(Port::create(*commands_, *port_commands_, port,
						    capabilities_.port, log_max_message));
		// Until a QP0 of ours listens the card's own agent may answer the subnet manager.
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
		for (const u32 kind : {wire::special_smi, wire::special_gsi})
			kern::ignore(commands_->execute({.opcode = wire::Opcode::conf_special_qp,
							 .op_modifier = static_cast<u8>(kind)}));
	commands_->use_polling();
	if (events_.begun())
		kern::ignore(commands_->execute(
			{.opcode = wire::Opcode::map_eq,
			 .in_modifier = wire::map_eq_unmap.mask() | async_eq().number(),
			 .in_param = ~u64{0}}));
	events_.stop();
	own_key_ = {};
	records_.reset();
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
		"QPC", "EQPC", "RDB", "EEC", "EEEC",        "SRQC", "CQC",
		"EQC", "MCG",  "MPT", "MTT", "UAR scratch", "UARC"};
	for (unsigned int i = 0; i < icm_regions; i++)
		out.print("%s: 2^%u entries of %u bytes at %#lx, %zu bytes resident\n", names[i],
			  layout_.extent[i].log_entries, layout_.extent[i].entry_bytes,
			  layout_.extent[i].base,
			  tables_[i] ? tables_[i]->resident_bytes() : size_t{0});
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
	// A copy, which the card cannot change between a look and the next.
	u8 eqe[sizeof(Eqe)];
	__builtin_memcpy(eqe, entry, sizeof(eqe));
	const auto type = static_cast<EventType>(Eqe::type.get(eqe));
	switch (type) {
	case EventType::command:
		commands_->completed(static_cast<u16>(Eqe::command_token.get(eqe)),
				     static_cast<u8>(Eqe::command_status.get(eqe)),
				     Eqe::command_out_param.get(eqe));
		break;
	case EventType::port_change: {
		const bool active =
			Eqe::subtype.get(eqe) == hw::mellanox::port_change_subtype::active;
		// Two bits, of the four that the family has.
		port_event(active ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR,
			   Eqe::port.get(eqe) & 3);
		break;
	}
	case EventType::local_catastrophic:
		listener_.card_failed("the card reports an internal error");
		break;
	case EventType::eq_overflow:
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

} // namespace infinihost
