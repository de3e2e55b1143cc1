// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the verbs device that mlx4 and mthca register with the midlayer, and the methods that
// are the same for both.
#pragma once
#include <kern/log.hpp>
#include <kern/result.hpp>
#include <rdma/driver.hpp>
#include "event_queues.hpp"
#include "management.hpp"
#include "number_allocator.hpp"
#include "port.hpp"
#include "protection.hpp"

namespace mellanox_icm
{

/*
 * The parameter Verbs describes the verbs of a kind of card:
 *
 *	struct Verbs {
 *		using Hca = …, Ah = …, Cq = …, Mr = …, Qp = …, Srq = …, UserContext = …;
 *		static constexpr const char *device_name;	// with %d
 *		// CommonMethods::table and the card's own methods; devices refer to it.
 *		static const ib_device_ops operations;
 *		// The key for all memory that needs no region; 0 if the card has none.
 *		static u32 local_dma_lkey(const Hca &hca);
 *	};
 *
 * The midlayer allocates it, and requires ib_device as its first member.
 */
template<class Verbs>
struct IbDevice {
	using Hca = typename Verbs::Hca;

	ib_device ib;
	Hca *hca;
	bool registered;

	/*
	 * Allocates the device, and reads its GUIDs and description. May sleep. Errors: ENOMEM,
	 * those of commands.
	 */
	static kern::Result<IbDevice *> create(Hca &hca);
	static void destroy(IbDevice *device) { rdma::dealloc_device(device); }

	/* Registers the device. Clients may use it before this returns. */
	kern::Result<> start();
	/* Unregisters the device, which is not used afterwards. */
	void stop();
	/* Reports the failure of the card to all clients. Context: process. */
	void report_fatal();
	const char *name() const { return ib.name; }

	static IbDevice &of(ib_device *device) { return *rdma::device_of<IbDevice>(device); }
	static Hca &hca_of(const ib_device *device)
	{
		return *of(const_cast<ib_device *>(device)).hca;
	}
};

/*
 * The methods that are the same for all cards. Each one finds the driver's object and calls its
 * function. Short methods are defined in the table below.
 */
template<class Verbs>
struct CommonMethods {
	using Hca = typename Verbs::Hca;
	using Ah = typename Verbs::Ah;
	using Cq = typename Verbs::Cq;
	using Mr = typename Verbs::Mr;
	using Qp = typename Verbs::Qp;
	using Srq = typename Verbs::Srq;
	using UserContext = typename Verbs::UserContext;

	static Hca &hca_of(const ib_device *device) { return IbDevice<Verbs>::hca_of(device); }

	/* The last part of all create methods. Destroys an object that could not be started. */
	template<class Object, class Target, class Start>
	static int create(Target *target, Start start)
	{
		auto &state = Object::construct(target, hca_of(target->device), *target);
		const kern::Result<> started = start(state);
		if (!started)
			Object::destruct(target);
		return started.error();
	}

	/*
	 * Sets the attributes that are common to all cards, from the card's limits and tables. Each
	 * ring of the kernel is one block of memory, so its allocation may fail at a size at which
	 * a program's ring, which consists of pages, does not.
	 */
	static int query_device(Hca &hca, ib_device_attr &attr);
	static void get_dev_fw_str(ib_device *device, char *str);
	static int get_port_immutable(ib_device *device, u32 port, ib_port_immutable *immutable);
	static int query_gid(ib_device *device, u32 port, int index, ib_gid *gid);
	static int query_pkey(ib_device *device, u32 port, u16 index, u16 *pkey);
	static int create_ah(ib_ah *ah, rdma_ah_init_attr *init, ib_udata *);
	static int modify_ah(ib_ah *ah, rdma_ah_attr *attr);
	/*
	 * Response: the response to the card's user library about a domain; its constructor takes
	 * the domain's number.
	 */
	template<class Response>
	static int alloc_pd(ib_pd *pd, ib_udata *udata);

	/*
	 * The common methods. Each driver adds the methods that differ between cards or are
	 * optional.
	 */
	static constexpr ib_device_ops table = {
		.post_send = [](ib_qp *qp, const ib_send_wr *wr,
				const ib_send_wr **bad) { return Qp::of(qp).post_send(wr, bad); },
		.post_recv =
			[](ib_qp *qp, const ib_recv_wr *wr, const ib_recv_wr **bad) {
				return Qp::of(qp).post_receive(wr, bad);
			},
		.poll_cq = Cq::poll,
		.req_notify_cq = Cq::request_notify,
		.post_srq_recv = [](ib_srq *srq, const ib_recv_wr *wr,
				    const ib_recv_wr **bad) { return Srq::of(srq).post(wr, bad); },
		.peek_cq = [](ib_cq *cq, int count) { return Cq::of(cq).peek(count); },

		.create_ah = create_ah,
		.destroy_ah =
			[](ib_ah *ah, u32) {
				Ah::Object::destruct(ah);
				return 0;
			},
		.modify_ah = modify_ah,
		.query_ah =
			[](ib_ah *ah, rdma_ah_attr *attr) {
				Ah::of(ah).query(*attr);
				return 0;
			},

		.get_dev_fw_str = get_dev_fw_str,
		.get_port_immutable = get_port_immutable,
		.get_link_layer = [](ib_device *, u32) { return IB_LINK_LAYER_INFINIBAND; },
		.query_port =
			[](ib_device *device, u32 port, ib_port_attr *attr) {
				return hca_of(device).port(port).query(*attr).error();
			},
		.modify_port =
			[](ib_device *device, u32 port, int mask, ib_port_modify *change) {
				return hca_of(device).port(port).modify(mask, *change).error();
			},
		.query_gid = query_gid,
		.query_pkey = query_pkey,

		.dealloc_pd =
			[](ib_pd *pd, ib_udata *) {
				Pd::Object::destruct(pd);
				return 0;
			},

		.create_cq =
			[](ib_cq *cq, const ib_cq_init_attr *attr, ib_udata *udata) {
				return create<typename Cq::Object>(
					cq, [&](Cq &made) { return made.start(*attr, udata); });
			},
		.resize_cq =
			[](ib_cq *cq, int entries, ib_udata *udata) {
				return Cq::of(cq)
					.resize(static_cast<unsigned int>(entries), udata)
					.error();
			},
		.destroy_cq =
			[](ib_cq *cq, ib_udata *) {
				Cq::Object::destruct(cq);
				return 0;
			},

		.create_srq =
			[](ib_srq *srq, ib_srq_init_attr *attr, ib_udata *udata) {
				return create<typename Srq::Object>(
					srq, [&](Srq &made) { return made.start(*attr, udata); });
			},
		.modify_srq = [](ib_srq *srq, ib_srq_attr *attr, ib_srq_attr_mask mask,
				 ib_udata *) { return Srq::of(srq).modify(*attr, mask).error(); },
		.query_srq = [](ib_srq *srq,
				ib_srq_attr *attr) { return Srq::of(srq).query(*attr).error(); },
		.destroy_srq =
			[](ib_srq *srq, ib_udata *) {
				Srq::Object::destruct(srq);
				return 0;
			},

		.create_qp =
			[](ib_qp *qp, ib_qp_init_attr *attr, ib_udata *udata) {
				return create<typename Qp::Object>(
					qp, [&](Qp &made) { return made.start(*attr, udata); });
			},
		.modify_qp = [](ib_qp *qp, ib_qp_attr *attr, int mask,
				ib_udata *) { return Qp::of(qp).modify(*attr, mask).error(); },
		.query_qp =
			[](ib_qp *qp, ib_qp_attr *attr, int, ib_qp_init_attr *init) {
				return Qp::of(qp).query(*attr, *init).error();
			},
		.destroy_qp =
			[](ib_qp *qp, ib_udata *) {
				const u32 left = Qp::of(qp).stop();
				Qp::Object::destruct(qp);
				return static_cast<int>(left);
			},
		.detach_mcast =
			[](ib_qp *qp, const ib_gid *gid, u16) {
				return hca_of(qp->device)
					.multicast()
					.detach(*gid, Qp::of(qp).number())
					.error();
			},

		.get_dma_mr =
			[](ib_mr *mr, int access) {
				return create<typename Mr::Object>(
					mr, [&](Mr &own) { return own.start_dma(access); });
			},
		.reg_user_mr =
			[](ib_mr *mr, u64 start, u64 length, u64 iova, int access,
			   ib_udata *udata) {
				return create<typename Mr::Object>(mr, [&](Mr &own) {
					// The kernel itself may register a process's memory; then
					// there is no context.
					UserContext *const context =
						udata ? &UserContext::of(udata->context) : nullptr;
					return own.start_user(context, start, length, iova, access);
				});
			},
		.dereg_mr =
			[](ib_mr *mr, ib_udata *) {
				const kern::Result<> stopped = Mr::of(mr).stop();
				if (stopped)
					Mr::Object::destruct(mr);
				return stopped.error();
			},

		.alloc_ucontext =
			[](ib_ucontext *context, ib_udata *udata) {
				return create<typename UserContext::Object>(
					context,
					[&](UserContext &own) { return own.start(*udata); });
			},
		.dealloc_ucontext =
			[](ib_ucontext *context) { UserContext::Object::destruct(context); },
		.mmap =
			[](ib_ucontext *context, u64 page_offset, size_t length,
			   ib_user_mapping *mapping) {
				return UserContext::of(context)
					.map(page_offset, length, *mapping)
					.error();
			},

		.size_ib_ah = sizeof(typename Ah::Object),
		.size_ib_cq = sizeof(typename Cq::Object),
		.size_ib_mr = sizeof(typename Mr::Object),
		.size_ib_pd = sizeof(Pd::Object),
		.size_ib_qp = sizeof(typename Qp::Object),
		.size_ib_srq = sizeof(typename Srq::Object),
		.size_ib_ucontext = sizeof(typename UserContext::Object),
	};
};

/* Reads the board's name (QUERY_ADAPTER). It remains empty if the command fails. */
template<class Hca>
void read_board_id(Hca &hca, char (&name)[IB_BOARD_ID_MAX])
{
	using hw::mellanox_icm::QueryAdapter;
	static_assert(QueryAdapter::board_id_size < sizeof(name));
	auto mailbox = hca.commands().mailbox();

	if (!mailbox.ok() ||
	    !hca.commands()
		     .execute_out({.opcode = hw::mellanox_icm::Opcode::query_adapter},
				  mailbox.value())
		     .ok())
		return;
	for (size_t i = 0; i < QueryAdapter::board_id_size; i++) {
		const u8 character = mailbox.value().bytes()[QueryAdapter::board_id + (i ^ 3)];
		if (character < ' ' || character > '~')
			break;
		name[i] = static_cast<char>(character);
	}
}

template<class Verbs>
kern::Result<IbDevice<Verbs> *> IbDevice<Verbs>::create(Hca &hca)
{
	ib::Smp smp;
	KERN_TRY(get_attribute(hca.commands(), 1, ib::attr_node_info, 0, smp));
	const u64 node_guid = ib::smp_attribute<ib::NodeInfo>(smp).node_guid;
	KERN_TRY(get_attribute(hca.commands(), 1, ib::attr_node_description, 0, smp));

	IbDevice *device = rdma::alloc_device<IbDevice>();
	if (!device)
		return kern::Error{-ENOMEM};
	device->hca = &hca;
	device->ib.phys_port_cnt = hca.num_ports();
	device->ib.num_comp_vectors = static_cast<int>(hca.completion_vectors());
	device->ib.local_dma_lkey = Verbs::local_dma_lkey(hca);
	device->ib.node_guid = ib::be64(node_guid);
	device->ib.node_type = RDMA_NODE_IB_CA;
	__builtin_memcpy(device->ib.node_desc, smp.data, sizeof(device->ib.node_desc));
	read_board_id(hca, device->ib.board_id);
	ib_set_device_ops(&device->ib, &Verbs::operations);
	return device;
}

template<class Verbs>
kern::Result<> IbDevice<Verbs>::start()
{
	// Set the device before the midlayer queries the ports. The subnet manager may bring up a
	// port while clients are being added, and the midlayer would otherwise keep the former
	// state.
	hca->set_event_device(&ib);
	if (const int status = ib_register_device(&ib, Verbs::device_name, hca->dma_device())) {
		hca->set_event_device(nullptr);
		return kern::Error{status};
	}
	registered = true;
	return {};
}

template<class Verbs>
void IbDevice<Verbs>::stop()
{
	hca->set_event_device(nullptr);
	if (registered)
		ib_unregister_device(&ib);
	registered = false;
}

template<class Verbs>
void IbDevice<Verbs>::report_fatal()
{
	if (registered)
		rdma::dispatch(IB_EVENT_DEVICE_FATAL, &ib, 0);
	hca->announce_failure();
}

template<class Verbs>
int CommonMethods<Verbs>::query_device(Hca &hca, ib_device_attr &attr)
{
	const auto &cap = hca.capabilities();
	const auto &firmware = hca.firmware();
	// The number of objects is also limited by the entries that each one reserves for its
	// events (EventQueues).
	const auto objects = [](const NumberAllocator &numbers, u32 limit = ~0u) {
		const u32 count = numbers.end() - numbers.first();
		return static_cast<int>(count < limit ? count : limit);
	};
	const u32 async_entries = hca.events().async_entries_for_programs();
	const u32 completion_entries = hca.events().completion_entries_for_programs();
	ib::Smp smp;
	if (const auto got = get_attribute(hca.commands(), 1, ib::attr_node_info, 0, smp); !got)
		return got.error();
	const auto &info = ib::smp_attribute<ib::NodeInfo>(smp);

	attr.fw_ver = u64{firmware.major} << 32 | u64{firmware.minor} << 16 | firmware.subminor;
	attr.sys_image_guid = ib::be64(info.system_image_guid);
	attr.max_mr_size = ~u64{0};
	attr.page_size_cap = ~u64{4095};
	attr.vendor_id = info.vendor_id;
	attr.vendor_part_id = info.device_id;
	attr.hw_ver = info.revision;
	attr.max_qp = objects(hca.qpns(), async_entries / qp_events);
	attr.max_send_sge = static_cast<int>(cap.max_sq_sge);
	attr.max_recv_sge = static_cast<int>(cap.max_rq_sge);
	attr.max_cq = objects(hca.cqns(), async_entries < completion_entries / 2
						  ? async_entries
						  : completion_entries / 2);
	attr.max_cqe = (1 << cap.log_max_cq_size) - 1;
	attr.max_mr = objects(hca.mpts());
	attr.max_pd = objects(hca.pdns());
	attr.max_qp_rd_atom = 1 << hca.layout().log_reads_per_qp;
	attr.max_qp_init_rd_atom = 1 << cap.log_max_requester_reads;
	attr.max_res_rd_atom = attr.max_qp_rd_atom * attr.max_qp;
	attr.max_srq = objects(hca.srqns(), async_entries / srq_events);
	attr.max_srq_wr = (1 << cap.log_max_srq_size) - 1;
	attr.local_ca_ack_delay = static_cast<u8>(cap.local_ack_delay);
	attr.max_pkeys = static_cast<u16>(hca.port(1).capabilities().pkeys);
	attr.max_mcast_grp = static_cast<int>(hca.multicast().groups());
	attr.max_mcast_qp_attach = static_cast<int>(hca.multicast().members_per_group());
	attr.max_total_mcast_qp_attach = attr.max_mcast_grp * attr.max_mcast_qp_attach;
	attr.max_ah = 1 << 30;
	attr.device_cap_flags = IB_DEVICE_CURR_QP_STATE_MOD | IB_DEVICE_SHUTDOWN_PORT |
				IB_DEVICE_PORT_ACTIVE_EVENT | IB_DEVICE_SYS_IMAGE_GUID |
				IB_DEVICE_RC_RNR_NAK_GEN | IB_DEVICE_N_NOTIFY_CQ;
	return 0;
}

template<class Verbs>
void CommonMethods<Verbs>::get_dev_fw_str(ib_device *device, char *str)
{
	const auto &firmware = hca_of(device).firmware();
	kern_format(str, IB_FW_VERSION_NAME_MAX, "%u.%u.%u", firmware.major, firmware.minor,
		    firmware.subminor);
}

template<class Verbs>
int CommonMethods<Verbs>::get_port_immutable(ib_device *device, u32 port,
					     ib_port_immutable *immutable)
{
	const PortCapabilities &cap = hca_of(device).port(port).capabilities();
	immutable->pkey_tbl_len = static_cast<int>(cap.pkeys);
	immutable->gid_tbl_len = static_cast<int>(cap.gids);
	immutable->core_cap_flags = RDMA_CORE_PORT_IBA_IB;
	immutable->max_mad_size = ib::mad_bytes;
	return 0;
}

template<class Verbs>
int CommonMethods<Verbs>::query_gid(ib_device *device, u32 port, int index, ib_gid *gid)
{
	const auto got = hca_of(device).port(port).gid(static_cast<u32>(index));
	if (got)
		*gid = got.value();
	return got.error();
}

template<class Verbs>
int CommonMethods<Verbs>::query_pkey(ib_device *device, u32 port, u16 index, u16 *pkey)
{
	const auto got = hca_of(device).port(port).pkey(index);
	if (got)
		*pkey = got.value();
	return got.error();
}

template<class Verbs>
int CommonMethods<Verbs>::create_ah(ib_ah *ah, rdma_ah_init_attr *init, ib_udata *)
{
	const auto vector =
		Ah::build(hca_of(ah->device).capabilities(), pd_number(ah->pd), *init->ah_attr);
	if (vector)
		Ah::Object::construct(ah, vector.value(), *init->ah_attr);
	return vector.error();
}

template<class Verbs>
int CommonMethods<Verbs>::modify_ah(ib_ah *ah, rdma_ah_attr *attr)
{
	const auto vector = Ah::build(hca_of(ah->device).capabilities(), pd_number(ah->pd), *attr);
	if (vector)
		Ah::of_mutable(ah).modify(vector.value(), *attr);
	return vector.error();
}

template<class Verbs>
template<class Response>
int CommonMethods<Verbs>::alloc_pd(ib_pd *pd, ib_udata *udata)
{
	auto number = Number::create(hca_of(pd->device).pdns());
	if (!number)
		return number.error() == -ENOSPC ? -ENOMEM : number.error();
	if (udata) {
		const Response response{number.value().value()};
		if (const int error = ib_copy_to_udata(udata, &response, sizeof(response)))
			return error;
	}
	Pd::Object::construct(pd, Pd{number.take()});
	return 0;
}

} // namespace mellanox_icm
