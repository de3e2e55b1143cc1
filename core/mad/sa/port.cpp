// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "port.hpp"

#include "query.hpp"

#include <kern/log.hpp>
#include <rdma/ib_cache.h>

namespace mad::sa
{

Port::Port(SpecialQp &gsi) : gsi_(gsi) {}

kern::Result<kern::Owned<Port>> Port::create(SpecialQp &gsi)
{
	auto port = KERN_TRY(kern::make<Port>(kern::Gfp::kernel, gsi));
	ib_mad_reg_req reports{};
	reports.mgmt_class = IB_MGMT_CLASS_SUBN_ADM;
	reports.mgmt_class_version = IB_SA_CLASS_VERSION;
	reports.method_mask[0] = 1ul << IB_MGMT_METHOD_REPORT;
	auto agent = KERN_TRY(kern::make<Agent>(kern::Gfp::kernel, gsi, &reports));
	agent->send_handler = Query::on_sent;
	agent->recv_handler = Query::on_answer;
	agent->rmpp_version = IB_MGMT_RMPP_VERSION;
	agent->context = port.get();
	KERN_TRY(gsi.add(*agent));
	port->agent_ = std::move(agent);
	port->refresh();
	return port;
}

Port::~Port()
{
	refresh_work_.cancel();
	groups_.close();
	informs_.close();
	if (agent_)
		gsi_.remove(*agent_);
}

kern::Ref<SmAddress> Port::sm_address()
{
	return sm_address_.with([](kern::Ref<SmAddress> &address) { return address; });
}

u64 Port::next_tid()
{
	const u32 low = __atomic_add_fetch(&last_tid_, 1, __ATOMIC_RELAXED);
	return u64{agent_->hi_tid} << 32 | low;
}

void Port::on_event(ib_event_type event)
{
	/*
	 * A new or restarted subnet manager does not have its predecessor's state (IBA 14.4.11).
	 */
	if (event == IB_EVENT_SM_CHANGE || event == IB_EVENT_CLIENT_REREGISTER ||
	    event == IB_EVENT_LID_CHANGE)
		__atomic_store_n(&rejoin_due_, 1, __ATOMIC_RELEASE);
	refresh_work_.reschedule(0);
}

/*
 * Returns the address of the subnet manager; empty if no SM is known, or its address cannot be
 * used. Errors: ENOMEM, and those of the driver.
 */
kern::Result<kern::Ref<SmAddress>> Port::find_manager()
{
	ib_port_attr attr;

	KERN_TRY_ERRNO(ib_query_port(device(), port_num(), &attr));
	if (attr.sm_lid == 0 || attr.state != IB_PORT_ACTIVE)
		return kern::Ref<SmAddress>{};
	/*
	 * The default partition may be anywhere in the P_Key table (IBA 10.9.2). If it is not in
	 * the table, the first entry is used.
	 */
	u16 pkey_index;
	if (ib_find_cached_pkey(device(), port_num(), IB_DEFAULT_PKEY_FULL, &pkey_index))
		pkey_index = 0;
	rdma_ah_attr where{};
	where.type = RDMA_AH_ATTR_TYPE_IB;
	rdma_ah_set_dlid(&where, attr.sm_lid);
	rdma_ah_set_sl(&where, attr.sm_sl);
	rdma_ah_set_port_num(&where, port_num());
	ib_ah *ah = rdma_create_ah(gsi_.pd(), &where, 0);
	if (rdma::is_err(ah))
		return kern::Error{rdma::ptr_err(ah)};
	/*
	 * The LMC of the SM's port is not known. This port's LMC is used instead, because usually
	 * all ports of a subnet have the same LMC.
	 */
	auto made =
		kern::make_ref<SmAddress>(kern::Gfp::kernel, ah, pkey_index, attr.sm_lid, attr.lmc);
	if (!made.ok())
		rdma_destroy_ah(ah, 0);
	return made;
}

/*
 * Queries the device for the SM's address. If that fails, it is retried later without another
 * event. Context: work queue.
 */
void Port::refresh()
{
	const bool is_forced = __atomic_exchange_n(&is_forced_, 0, __ATOMIC_RELAXED);
	auto found = find_manager();

	if (!found.ok()) {
		kern_warning_limited("%s port %u: no address of the subnet manager yet: %d\n",
				     device()->name, port_num(), found.error());
		refresh_work_.queue(back_off_.next_ms());
		/* Consumers that ask often must not delay the next attempt. */
		if (!is_forced)
			back_off_.failed();
		return;
	}
	back_off_.succeeded();
	kern::Ref<SmAddress> address = found.take();
	const bool reachable = static_cast<bool>(address);
	sm_address_.with([&](kern::Ref<SmAddress> &current) { std::swap(current, address); });
	/* The previous address is released here, outside the lock. */
	address.reset();

	if (reachable && __atomic_exchange_n(&rejoin_due_, 0, __ATOMIC_ACQ_REL)) {
		groups_.rejoin();
		informs_.renew();
	}
}

/*
 * Any sender with access to QP1 can send a report. Only reports from the SM's port are accepted,
 * because the SM is responsible for them (IBA 13.4.8.3), and a notice that the SM itself issues
 * must name the SM as issuer (IBA 14.2.5.1). While another SM takes over, the reports of one of the
 * two are lost; consumers subscribe again.
 */
bool Port::is_from_manager(const Receive &receive, const ib::Notice &notice)
{
	const kern::Ref<SmAddress> manager = sm_address();
	if (!manager || !manager->has_lid(receive.completion.slid))
		return false;
	const u16 trap = notice.trap_number.value();
	const bool its_own = (notice.generic_type & ib::Notice::generic_bit) &&
			     trap >= ib::trap_gid_in_service &&
			     trap <= ib::trap_mcast_group_deleted;
	return !its_own || manager->has_lid(notice.issuer_lid.value());
}

/*
 * A report that cannot be queued is not acknowledged, so the SA sends it again, and there may be
 * space then.
 */
void Port::on_report(const Receive &receive)
{
	const auto &report = *reinterpret_cast<const ib::SaMad *>(&receive.buffer.mad);
	if (report.header.attr_id != ib::attr_notice)
		return;
	const auto &notice = *reinterpret_cast<const ib::Notice *>(report.data);
	if (!is_from_manager(receive, notice)) {
		gsi_.count_unwanted();
		return;
	}
	if (auto taken = informs_.on_report(notice); !taken.ok())
		return;
	ib::Mad answer = receive.buffer.mad;
	answer.header.method = static_cast<std::uint8_t>(ib::MadMethod::report_resp);
	gsi_.reply(*agent_, receive, answer);
}

} // namespace mad::sa
