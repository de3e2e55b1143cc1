// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines owners of verbs objects, which destroy them in the right order.
 *
 *	auto pd = KERN_TRY(rdma::Pd::create(device));
 *	auto cq = KERN_TRY(rdma::CompletionQueue::create(device, this, entries, vector, IB_POLL_SOFTIRQ));
 *	auto qp = KERN_TRY(rdma::QueuePair::create(pd, cq, cq, attributes));
 *
 * PDs, CQs and SRQs are reference-counted, and each object holds the objects in which it was
 * created. So they are destroyed in the right order, regardless of the order of their owners. QPs,
 * MRs, AHs and MWs have one owner, which can be moved but not copied. All functions need process
 * context, except those for address handles.
 *
 * Modules that destroy their objects in steps, with other actions in between, do not use these
 * owners: IPoIB's queues and the special QPs for MADs define the order in their state machines.
 */
#pragma once
#include <utility>
#include <kern/ref.hpp>
#include <rdma/ib_verbs.h>

namespace rdma
{

/* Converts a pointer that may be an error pointer to a Result. */
template<class T>
kern::Result<T *> check(T *pointer)
{
	if (is_err(pointer))
		return kern::Error{ptr_err(pointer)};
	return pointer;
}

class Pd : public kern::RefCounted<Pd>
{
public:
	/* flags: enum ib_pd_flags. Errors: those of ib_alloc_pd(); ENOMEM. */
	static kern::Result<kern::Ref<Pd>> create(ib_device *device, unsigned int flags = 0)
	{
		auto *pd = KERN_TRY(check(ib_alloc_pd(device, flags)));
		auto owner = kern::adopt_ref(new (kern::Gfp::kernel) Pd(pd));
		if (!owner)
			ib_dealloc_pd(pd);
		return owner;
	}
	~Pd() { ib_dealloc_pd(pd_); }

	ib_pd *get() const { return pd_; }
	ib_device *device() const { return pd_->device; }
	u32 local_dma_lkey() const { return pd_->local_dma_lkey; }

private:
	explicit Pd(ib_pd *pd) : pd_(pd) {}
	ib_pd *pd_;
};

class CompletionQueue : public kern::RefCounted<CompletionQueue>
{
public:
	/* Creates a CQ that the midlayer polls. Errors: those of ib_alloc_cq(); ENOMEM. */
	static kern::Result<kern::Ref<CompletionQueue>> create(ib_device *device, void *context,
							       int entries, int vector,
							       ib_poll_context poll_context)
	{
		return own(KERN_TRY(
			check(ib_alloc_cq(device, context, entries, vector, poll_context))));
	}
	/* Creates a CQ that the consumer polls. Errors: those of ib_create_cq(); ENOMEM. */
	static kern::Result<kern::Ref<CompletionQueue>> create(ib_device *device,
							       ib_comp_handler handler,
							       void *context, unsigned int entries,
							       u32 vector = 0)
	{
		const ib_cq_init_attr attr = {.cqe = entries, .comp_vector = vector, .flags = 0};

		return own(KERN_TRY(check(ib_create_cq(device, handler, nullptr, context, &attr))));
	}
	~CompletionQueue() { end(cq_); }

	ib_cq *get() const { return cq_; }
	[[nodiscard]] int poll(int count, ib_wc *wcs) const { return ib_poll_cq(cq_, count, wcs); }
	int request_notification(ib_cq_notify_flags flags) const
	{
		return ib_req_notify_cq(cq_, flags);
	}
	int process_direct(int budget) const { return ib_process_cq_direct(cq_, budget); }

private:
	explicit CompletionQueue(ib_cq *cq) : cq_(cq) {}
	static kern::Result<kern::Ref<CompletionQueue>> own(ib_cq *cq)
	{
		auto owner = kern::adopt_ref(new (kern::Gfp::kernel) CompletionQueue(cq));
		if (!owner)
			end(cq);
		return owner;
	}
	static void end(ib_cq *cq)
	{
		if (cq->poller)
			ib_free_cq(cq);
		else
			ib_destroy_cq(cq);
	}
	ib_cq *cq_;
};

class SharedReceiveQueue : public kern::RefCounted<SharedReceiveQueue>
{
public:
	/* Creates an SRQ of type IB_SRQT_BASIC. Errors: those of ib_create_srq(); ENOMEM. */
	static kern::Result<kern::Ref<SharedReceiveQueue>> create(kern::Ref<Pd> pd,
								  ib_srq_init_attr &attr)
	{
		auto *srq = KERN_TRY(check(ib_create_srq(pd->get(), &attr)));
		auto owner = kern::adopt_ref(new (kern::Gfp::kernel)
						     SharedReceiveQueue(srq, std::move(pd)));
		if (!owner)
			ib_destroy_srq(srq);
		return owner;
	}
	~SharedReceiveQueue() { ib_destroy_srq(srq_); }

	ib_srq *get() const { return srq_; }
	[[nodiscard]] int post(const ib_recv_wr *wr, const ib_recv_wr **bad_wr = nullptr) const
	{
		return ib_post_srq_recv(srq_, wr, bad_wr);
	}

private:
	SharedReceiveQueue(ib_srq *srq, kern::Ref<Pd> pd) : pd_(std::move(pd)), srq_(srq) {}
	kern::Ref<Pd> pd_;
	ib_srq *srq_;
};

/*
 * The owner of an object that End::end() destroys, and of references to the objects in which it was
 * created. It cannot be copied, and is empty after a move.
 */
template<class T, class End, class... Parents>
class Owner
{
public:
	Owner() = default;
	explicit Owner(T *object, kern::Ref<Parents>... parents)
	    : parents_{std::move(parents)...}, object_(object)
	{
	}
	Owner(Owner &&other) noexcept
	    : parents_(std::move(other.parents_)), object_(std::exchange(other.object_, nullptr))
	{
	}
	Owner &operator=(Owner &&other) noexcept
	{
		std::swap(parents_, other.parents_);
		std::swap(object_, other.object_);
		return *this;
	}
	~Owner()
	{
		if (object_)
			End::end(object_);
	}

	T *get() const { return object_; }
	T *operator->() const { return object_; }
	explicit operator bool() const { return object_ != nullptr; }

private:
	/* Declared before the object, so they are dropped after it. */
	template<class... Refs>
	struct Held;
	template<class First, class... Rest>
	struct Held<First, Rest...> {
		First first{};
		Held<Rest...> rest{};
		Held() = default;
		explicit Held(First a, Rest... b) : first(std::move(a)), rest{std::move(b)...} {}
	};
	template<class Last>
	struct Held<Last> {
		Last last{};
		Held() = default;
		explicit Held(Last a) : last(std::move(a)) {}
	};

	Held<kern::Ref<Parents>...> parents_;
	T *object_ = nullptr;
};

/* Each of these destroys one kind of object. Context: process; any for address handles. */
struct QueuePairEnd {
	static void end(ib_qp *qp) { KERN_WARN_ON(ib_destroy_qp(qp)); }
};
struct MemoryRegionEnd {
	static void end(ib_mr *mr) { KERN_WARN_ON(ib_dereg_mr(mr)); }
};
struct MemoryWindowEnd {
	static void end(ib_mw *mw) { KERN_WARN_ON(ib_dealloc_mw(mw)); }
};
struct AddressHandleEnd {
	static void end(ib_ah *ah) { rdma_destroy_ah(ah, 0); }
};

class QueuePair
    : public Owner<ib_qp, QueuePairEnd, Pd, CompletionQueue, CompletionQueue, SharedReceiveQueue>
{
public:
	using Owner::Owner;

	/*
	 * Creates a QP. The CQs and the SRQ are separate arguments, and are set in `attr`, where
	 * the granted sizes are written back. A QP must have left its multicast groups before it is
	 * destroyed.
	 * Errors: those of ib_create_qp().
	 */
	static kern::Result<QueuePair> create(kern::Ref<Pd> pd, kern::Ref<CompletionQueue> send,
					      kern::Ref<CompletionQueue> recv,
					      ib_qp_init_attr &attr,
					      kern::Ref<SharedReceiveQueue> srq = {})
	{
		attr.send_cq = send->get();
		attr.recv_cq = recv->get();
		attr.srq = srq ? srq->get() : nullptr;
		auto *qp = KERN_TRY(check(ib_create_qp(pd->get(), &attr)));
		return QueuePair(qp, std::move(pd), std::move(send), std::move(recv),
				 std::move(srq));
	}

	u32 number() const { return get()->qp_num; }
	kern::Result<> modify(ib_qp_attr &attr, int mask) const
	{
		return kern::check(ib_modify_qp(get(), &attr, mask));
	}
	[[nodiscard]] int post_send(const ib_send_wr *wr, const ib_send_wr **bad_wr = nullptr) const
	{
		return ib_post_send(get(), wr, bad_wr);
	}
	[[nodiscard]] int post_recv(const ib_recv_wr *wr, const ib_recv_wr **bad_wr = nullptr) const
	{
		return ib_post_recv(get(), wr, bad_wr);
	}
};

class MemoryRegion : public Owner<ib_mr, MemoryRegionEnd, Pd>
{
public:
	using Owner::Owner;

	/* Creates a region of all DMA addresses. Errors: those of ib_get_dma_mr(). */
	static kern::Result<MemoryRegion> all(kern::Ref<Pd> pd, int access)
	{
		auto *mr = KERN_TRY(check(ib_get_dma_mr(pd->get(), access)));
		return MemoryRegion(mr, std::move(pd));
	}
	/* Creates a region for fast registration. Errors: those of ib_alloc_mr(). */
	static kern::Result<MemoryRegion> create(kern::Ref<Pd> pd, ib_mr_type type,
						 u32 max_segments)
	{
		auto *mr = KERN_TRY(check(ib_alloc_mr(pd->get(), type, max_segments)));
		return MemoryRegion(mr, std::move(pd));
	}
};

class MemoryWindow : public Owner<ib_mw, MemoryWindowEnd, Pd>
{
public:
	using Owner::Owner;

	/* Errors: those of ib_alloc_mw(). */
	static kern::Result<MemoryWindow> create(kern::Ref<Pd> pd, ib_mw_type type)
	{
		auto *mw = KERN_TRY(check(ib_alloc_mw(pd->get(), type)));
		return MemoryWindow(mw, std::move(pd));
	}
};

/* Context: any, unless its destruction drops the last reference to the PD. */
class AddressHandle : public Owner<ib_ah, AddressHandleEnd, Pd>
{
public:
	using Owner::Owner;

	/* flags: enum rdma_create_ah_flags. Errors: those of rdma_create_ah(). */
	static kern::Result<AddressHandle> create(kern::Ref<Pd> pd, rdma_ah_attr &attr,
						  u32 flags = 0)
	{
		auto *ah = KERN_TRY(check(rdma_create_ah(pd->get(), &attr, flags)));
		return AddressHandle(ah, std::move(pd));
	}
};

} // namespace rdma
