// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the checks of the locking and context rules in debug builds (checks.hpp).
#include "checks.hpp"
#include <kern/atomic.hpp>
#include <kern/lock.hpp>
#include <kern/log.hpp>
#include <kern/memory.hpp>
#include <rdma/driver.hpp>
#include "verbs.hpp"

using namespace verbs;

#ifdef CONFIG_WEFT_DEBUG

namespace
{

constexpr const char *rule_names[] = {
	"LOCK-01",
	"LOCK-02",
	"LOCK-05",
	"LOCK-06",
	"LOCK-07",
	"LOCK-08",
	"NOTIFY-01",
	"NOTIFY-04",
	"LOCK-10",
	"use count",
	"what a driver owes",
};

using Observer = void (*)(int rule, const char *who, const char *what);
constinit kern::Atomic<Observer> observer;

/*
 * The method calls in progress, distributed over buckets by context, so that CPUs rarely contend.
 */
struct Bucket {
	kern::IrqSpinLock lock{KERN_LOCK_CLASS("verbs.checks")};
	MethodSection *first = nullptr;
};
constexpr unsigned int bucket_count = 64;
struct Buckets {
	Bucket by_context[bucket_count];
};
constinit kern::Static<Buckets> buckets;

Bucket &bucket_of(unsigned long context)
{
	return buckets->by_context[(context >> 6 ^ context >> 12 ^ context) % bucket_count];
}

bool same_driver(const ib_device &a, const ib_device &b)
{
	return a.ops.create_cq == b.ops.create_cq;
}

} // namespace

void verbs::init_checks()
{
	buckets.construct();
}

void verbs::exit_checks()
{
	buckets.destruct();
}

bool verbs::notify_observer(Rule rule, const char *who, const char *what)
{
	Observer notify = observer.load_acquire();

	if (notify)
		notify(static_cast<int>(rule), who, what);
	return notify;
}

void verbs::report_misuse(Rule rule, const ib_device *device, const char *who, const char *what)
{
	if (notify_observer(rule, who, what))
		return;
	kern_error("%s: %s: %s (%s)\n", device->name, who, what,
		   rule_names[static_cast<int>(rule)]);
	kern_warn_at(__FILE__, __LINE__, "a rule of the verbs has been broken");
}

void verbs::may_sleep(const ib_device *device, const char *function)
{
	if (!kern_may_sleep())
		report_misuse(Rule::lock_02, device, function, "called where nothing may sleep");
	else if (const char *method = MethodSection::current_atomic(device))
		report_misuse(Rule::lock_01, device, method, "calls a function that may sleep");
}

MethodSection::MethodSection(const ib_device *device, const char *method, Kind kind)
    : context_(kern_context()), device_(device), method_(method), kind_(kind)
{
	Bucket &bucket = bucket_of(context_);

	kern::Guard guard(bucket.lock);
	next_ = std::exchange(bucket.first, this);
}

MethodSection::~MethodSection()
{
	Bucket &bucket = bucket_of(context_);

	if (kern_context() != context_)
		report_misuse(Rule::lock_01, device_, method_,
			      "returned in another context than it was called in");
	kern::Guard guard(bucket.lock);
	MethodSection **link = &bucket.first;
	while (*link != this)
		link = &(*link)->next_;
	*link = next_;
}

template<class Matches>
const char *MethodSection::find(const ib_device *device, Matches matches)
{
	const unsigned long context = kern_context();
	Bucket &bucket = bucket_of(context);

	kern::Guard guard(bucket.lock);
	for (const MethodSection *section = bucket.first; section; section = section->next_)
		if (section->context_ == context && same_driver(*section->device_, *device) &&
		    matches(*section))
			return section->method_;
	return nullptr;
}

const char *MethodSection::current(const ib_device *device)
{
	return find(device, [](const MethodSection &) { return true; });
}

const char *MethodSection::current_atomic(const ib_device *device)
{
	return find(device,
		    [](const MethodSection &section) { return section.kind_ == Kind::atomic; });
}

void verbs::check_callback(const ib_device *device, const char *what)
{
	if (const char *method = MethodSection::current(device))
		report_misuse(Rule::lock_05, device, method, what);
}

void verbs::run_handler(ib_cq *cq, void *cq_context)
{
	const void *none = nullptr;
	const void *here = __builtin_frame_address(0);

	check_callback(cq->device, "runs a completion handler");
	const bool alone = __atomic_compare_exchange_n(&cq->in_handler, &none, here, false,
						       __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
	if (!alone)
		report_misuse(Rule::lock_06, cq->device, cq->res.owner,
			      "its CQ's completion handler runs twice at once");
	{
		/* The completion handler must not sleep (LOCK-07). */
		kern::NoSleepSection section;
		cq->checked_handler(cq, cq_context);
	}
	if (alone)
		__atomic_store_n(&cq->in_handler, nullptr, __ATOMIC_RELEASE);
}

extern "C" {

void ib_set_misuse_observer(void (*function)(int rule, const char *who, const char *what))
{
	observer.exchange(function);
}

int ib_checked_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			 const struct ib_send_wr **bad_wr)
{
	AtomicMethod section(qp->device, "post_send");
	return qp->device->ops.post_send(qp, wr, bad_wr);
}

int ib_checked_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr,
			 const struct ib_recv_wr **bad_wr)
{
	AtomicMethod section(qp->device, "post_recv");
	return qp->device->ops.post_recv(qp, wr, bad_wr);
}

int ib_checked_post_srq_recv(struct ib_srq *srq, const struct ib_recv_wr *wr,
			     const struct ib_recv_wr **bad_wr)
{
	AtomicMethod section(srq->device, "post_srq_recv");
	return srq->device->ops.post_srq_recv(srq, wr, bad_wr);
}

int ib_checked_poll_cq(struct ib_cq *cq, int num_entries, struct ib_wc *wc)
{
	AtomicMethod section(cq->device, "poll_cq");
	return cq->device->ops.poll_cq(cq, num_entries, wc);
}

int ib_checked_req_notify_cq(struct ib_cq *cq, enum ib_cq_notify_flags flags)
{
	AtomicMethod section(cq->device, "req_notify_cq");
	const int result = cq->device->ops.req_notify_cq(cq, flags);

	if (result >= 0 && !rdma::valid_notify_flags(flags))
		report_misuse(Rule::notify_01, cq->device, "req_notify_cq",
			      "accepts flags that do not fit together");
	if (result > 0 && !(flags & IB_CQ_REPORT_MISSED_EVENTS))
		report_misuse(Rule::notify_04, cq->device, "req_notify_cq",
			      "reports missed events unasked");
	return result;
}

int ib_checked_process_mad(struct ib_device *device, int process_mad_flags, u32 port_num,
			   const struct ib_wc *in_wc, const struct ib_grh *in_grh,
			   const struct ib_mad *in_mad, struct ib_mad *out_mad,
			   size_t *out_mad_size, u16 *out_mad_pkey_index)
{
	may_sleep(device, "ib_process_mad");
	return VERBS_CALL(device, process_mad, device, process_mad_flags, port_num, in_wc, in_grh,
			  in_mad, out_mad, out_mad_size, out_mad_pkey_index);
}
}

#endif

void verbs::refuse_from_callback(const char *name, const char *what)
{
	if (notify_observer(Rule::lock_08, name, what))
		return;
	kern_error("%s: cannot %s from within a callback\n", name, what);
	kern_warn_at(__FILE__, __LINE__, "an unregistration would wait for itself");
}
