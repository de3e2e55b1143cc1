// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "hca.hpp"
#include <kern/bits.hpp>
#include <kern/log.hpp>
#include "cq.hpp"
#include "group_format.hpp"
#include "qp.hpp"
#include "srq.hpp"

/* The module's parameter (module.c). */
extern "C" {
unsigned int weft_infinihost_completion_vectors = ~0u;
}

namespace infinihost {

namespace {

using hw::mellanox::Eqe;
using hw::mellanox::EventType;

constexpr u32 special_qps = 4;
/* Half a megabyte: room for the events of nearly four thousand QPs, each with a CQ of its own (Eq::room()). */
constexpr u32 log_async_events = 14;
constexpr u32 log_completion_events = 13;
/* What the subnet manager may do to a port before the first of it has been heard of. */
constexpr u32 most_port_events = 256;

constexpr u64 event_bit(EventType type)
{
	return u64{1} << static_cast<unsigned int>(type);
}

} // namespace

Hca::Hca(kern::pci::Device pci, const kern::Mmio &bar0, const kern::Mmio &uar, FailureListener &listener)
    : pci_(pci), bar0_(bar0), uar_(uar), listener_(listener), cq_table_lock_(KERN_LOCK_CLASS("infinihost.cq_table"))
{
}

kern::Result<kern::Owned<Hca>> Hca::create(kern::pci::Device pci, const kern::Mmio &bar0, const kern::Mmio &uar, FailureListener &listener)
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
	multicast_ = TRY(MulticastGroups::create(*commands_, layout_[IcmRegion::mcg], marked_group));
	return create_ports();
}

kern::Result<> Hca::start_firmware()
{
	auto mailbox = TRY(commands_->mailbox());
	TRY(commands_->execute_out({.opcode = wire::Opcode::query_fw}, mailbox));
	firmware_ = TRY(parse_firmware(mailbox.bytes(), bar0_.size()));
	// Whether the card has memory of its own, which it would then want to keep contexts in: that mode is not driven here.
	auto memory = TRY(commands_->mailbox());
	const auto enabled = commands_->execute_out({.opcode = wire::opcode::enable_lam}, memory);
	if (enabled || enabled.error() != -EAGAIN) {
		kern_dev_error(dma_device(), "the card is not in memory-free mode\n");
		return kern::Error{enabled ? -EOPNOTSUPP : enabled.error()};
	}
	if (firmware_.pages) {
		firmware_area_ = TRY(PageArea::create(dma_device(), size_t{firmware_.pages} * 4096));
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
		kern_dev_error(dma_device(), "%u bytes of user access regions do not fit the card's BAR 2 of %#lx\n",
			       capabilities_.uar_bytes, uar_.size());
		return kern::Error{-EPROTO};
	}
	layout_ = TRY(lay_out_icm(capabilities_, {}));
	special_base_ = kern::align_up(capabilities_.reserved_qps, special_qps);
	return {};
}

kern::Result<> Hca::map_icm()
{
	const u64 pages = TRY(commands_->execute({.opcode = wire::Opcode::set_icm_size, .in_param = layout_.total_bytes}));
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
		tables_[static_cast<int>(region)] = TRY(IcmTable::create(*commands_, dma_device(), layout_[region], reserved));
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
	const auto base = [&](wire::Field64 field, IcmRegion region) { field.set(in, layout_[region].base); };
	const auto log = [&](wire::Field field, IcmRegion region) { field.set(in, layout_[region].log_entries); };

	Init::flags.set(in, capabilities_.has(wire::dev_lim_flag::av_port_check) ? Init::flag_av_port_check : 0);
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
	records_ = TRY(Records::create(table(IcmRegion::uarc), uar_page() << layout_.log_uarc_pages, layout_.log_uarc_pages));
	own_pd_ = TRY(Number::create(*pdns_));
	own_key_ = TRY(ProtectionEntry::create(*this, own_pd_.value(), IB_ACCESS_LOCAL_WRITE));
	return {};
}

kern::Result<> Hca::create_event_queues()
{
	const u32 eqs = 1u << layout_[IcmRegion::eqc].log_entries;
	const u32 available = eqs - capabilities_.reserved_eqs;
	const u32 completions =
		weft_infinihost_completion_vectors < kern_cpu_count() ? weft_infinihost_completion_vectors : kern_cpu_count();
	const u32 wanted = completions + 1;
	if (completions)
		if (auto vectors = kern::pci::InterruptVectors::create(pci_, 2, wanted < available ? wanted : available))
			interrupts_ = vectors.take();
	const bool msix = interrupts_.count();
	u32 pin = 0;
	if (!msix) {
		interrupts_ = TRY(kern::pci::InterruptVectors::create_line(pci_));
		pin = TRY(query_interrupt_pin());
	}

	vectors_ = TRY(kern::make_array<kern::Owned<EventVector<Eq>>>(kern::Gfp::kernel, msix ? interrupts_.count() : 2));
	const EqResources resources{*commands_, dma_device(), own_memory(), table(IcmRegion::eqc), bar0_, firmware_, *this};
	for (unsigned int i = 0; i < vectors_.size(); i++) {
		vectors_[i] = TRY(EventVector<Eq>::create(resources, capabilities_.reserved_eqs + i, msix ? i : pin, !msix,
							  i ? log_completion_events : log_async_events));
		if (!msix)
			continue;
		TRY(vectors_[i]->request(interrupts_.irq(i), i ? "weft_infinihost-completion" : "weft_infinihost-async"));
		if (i)
			vectors_[i]->set_cpu((i - 1) % kern_cpu_count());
	}
	if (!msix)
		TRY(request_line(pin));

	// Its own events are the answers of commands.
	own_events_ = TRY(async_eq().room().take(CommandInterface::max_slots + num_ports() * most_port_events));

	using enum hw::mellanox::EventType;
	const u64 events = event_bit(eq_overflow) | event_bit(path_migrated) | event_bit(communication_established) |
			   event_bit(sq_drained) | event_bit(cq_error) | event_bit(wq_catastrophic) | event_bit(path_migration_failed) |
			   event_bit(local_catastrophic) | event_bit(port_change) | event_bit(command) | event_bit(wq_invalid_request) |
			   event_bit(wq_access_violation) | event_bit(srq_catastrophic) | event_bit(srq_last_wqe) | event_bit(srq_limit);
	TRY(commands_->execute({.opcode = wire::Opcode::map_eq, .in_modifier = async_eq().number(), .in_param = events}));
	for (const auto &vector : vectors_)
		vector->eq().arm();
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

kern::Result<> Hca::request_line(u32 pin)
{
	line_ = TRY(kern::make<InterruptLine<Eq>>(kern::Gfp::kernel, vectors_, bar0_, firmware_.clear_interrupt_offset + (pin < 32 ? 4 : 0),
						  1u << (pin & 31)));
	TRY(line_->request(interrupts_.irq(0), "weft_infinihost"));
	kern_dev_info(dma_device(), "no MSI-X; all queues share the interrupt pin\n");
	return {};
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
	port_commands_ = TRY(kern::make<PortCommands>(kern::Gfp::kernel, *commands_, capabilities_));
	for (u32 port = 1; port <= num_ports(); port++) {
		ports_[port - 1] = TRY(Port::create(*commands_, *port_commands_, port, capabilities_.port, log_max_message));
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
			kern::ignore(commands_->execute({.opcode = wire::Opcode::conf_special_qp, .op_modifier = static_cast<u8>(kind)}));
	commands_->use_polling();
	if (vectors_.size() && vectors_[0])
		kern::ignore(commands_->execute({.opcode = wire::Opcode::map_eq,
						 .in_modifier = wire::map_eq_unmap.mask() | async_eq().number(),
						 .in_param = ~u64{0}}));
	line_.reset();
	own_events_ = {};
	vectors_ = {};
	interrupts_ = {};
	own_key_ = {};
	records_.reset();
	if (stage_ >= Stage::running)
		kern::ignore(commands_->execute_closing({.opcode = wire::Opcode::close_hca}));
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

void Hca::synchronize_events()
{
	for (const auto &vector : vectors_)
		vector->synchronize();
	if (line_)
		line_->synchronize();
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
	static constexpr const char *names[icm_regions] = {"QPC", "EQPC", "RDB", "EEC", "EEEC",	       "SRQC", "CQC",
							   "EQC", "MCG",  "MPT", "MTT", "UAR scratch", "UARC"};
	for (unsigned int i = 0; i < icm_regions; i++)
		out.print("%s: 2^%u entries of %u bytes at %#lx, %zu bytes resident\n", names[i], layout_.extent[i].log_entries,
			  layout_.extent[i].entry_bytes, layout_.extent[i].base, tables_[i] ? tables_[i]->resident_bytes() : size_t{0});
	for (const auto &vector : vectors_)
		out.print("EQ %u: vector %u, %lu interrupts, %lu events\n", vector->eq().number(), vector->eq().vector(),
			  vector->eq().interrupts(), vector->eq().events());
	for (u32 port = 1; port <= num_ports(); port++) {
		if (const auto counters = ports_[port - 1]->counters())
			out.print("port %u: sent %lu packets, %lu words, received %lu packets, %lu words\n", port,
				  counters.value().xmit_packets.value(), counters.value().xmit_data.value(),
				  counters.value().rcv_packets.value(), counters.value().rcv_data.value());
	}
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
		commands_->completed(static_cast<u16>(Eqe::command_token.get(eqe)), static_cast<u8>(Eqe::command_status.get(eqe)),
				     Eqe::command_out_param.get(eqe));
		break;
	case EventType::port_change: {
		const bool active = Eqe::subtype.get(eqe) == hw::mellanox::port_change_subtype::active;
		// Two bits, of the four that the family has.
		port_event(active ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR, Eqe::port.get(eqe) & 3);
		break;
	}
	case EventType::local_catastrophic:
		listener_.card_failed("the card reports an internal error");
		break;
	case EventType::eq_overflow:
		listener_.card_failed("an event queue has overflowed");
		break;
	default:
		object_event(type, Eqe::number.get(eqe));
	}
}

void Hca::port_event(ib_event_type type, u32 port)
{
	if (port < 1 || port > num_ports() || !ports_[port - 1])
		return;
	ports_[port - 1]->changed(1u << type);
}

/* Events of a QP, CQ or SRQ. One for an object that is gone was on its way when it went. */
void Hca::object_event(EventType type, u32 number)
{
	const auto qp_event = [&](ib_event_type event) {
		Qp *qp = find_qp(number);
		if (qp && qp->number() == number && qp->verbs().event_handler)
			rdma::dispatch(event, &qp->verbs());
	};
	const auto srq_event = [&](ib_event_type event) {
		Srq *srq = find_srq(number);
		if (srq && srq->verbs().event_handler)
			rdma::dispatch(event, &srq->verbs());
	};
	switch (type) {
	case EventType::path_migrated:
		return qp_event(IB_EVENT_PATH_MIG);
	case EventType::communication_established:
		return qp_event(IB_EVENT_COMM_EST);
	case EventType::sq_drained:
		return qp_event(IB_EVENT_SQ_DRAINED);
	case EventType::wq_catastrophic:
		return qp_event(IB_EVENT_QP_FATAL);
	case EventType::path_migration_failed:
		return qp_event(IB_EVENT_PATH_MIG_ERR);
	case EventType::wq_invalid_request:
		return qp_event(IB_EVENT_QP_REQ_ERR);
	case EventType::wq_access_violation:
		return qp_event(IB_EVENT_QP_ACCESS_ERR);
	case EventType::srq_last_wqe:
		return qp_event(IB_EVENT_QP_LAST_WQE_REACHED);
	case EventType::srq_catastrophic:
		return srq_event(IB_EVENT_SRQ_ERR);
	case EventType::srq_limit:
		return srq_event(IB_EVENT_SRQ_LIMIT_REACHED);
	case EventType::cq_error: {
		Cq *cq = find_cq(number);
		if (cq && cq->verbs().event_handler)
			rdma::dispatch(IB_EVENT_CQ_ERR, &cq->verbs());
		return;
	}
	default:
		kern_dev_warning_limited(dma_device(), "event of unknown type %#x\n", static_cast<u32>(type));
	}
}

} // namespace infinihost
