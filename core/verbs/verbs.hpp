// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Functions of core/verbs that core/registry calls. Registration: attach_device(), then the
 * clients' add. Unregistration: the clients' remove, then detach_device(). An event:
 * dispatch_affiliated(), and if that does not take it, refresh_cache() and then the handlers.
 */
#pragma once
#include <kern/result.hpp>
#include <rdma/ib_verbs.h>

namespace verbs
{

/*
 * Work queues of the polling contexts; once, when the module is loaded and unloaded. Context:
 * process.
 */
kern::Result<> init();
void exit();

/* Likewise, state of ib_resources.h that belongs to no device. */
void init_looks();
void exit_looks();

/*
 * Asks the driver for all that is constant about a device, and fills the cache. Errors: EINVAL for
 * a missing obligatory method, or port and vector counts that cannot be; ENOMEM; the driver's.
 * Context: process.
 */
kern::Result<> attach_device(ib_device &device);

/*
 * Reports leaked objects (LOCK-10), and frees the midlayer's part of a device. Context:
 * process.
 */
void detach_device(ib_device &device);

/*
 * Reports that @owner has not freed @count objects of a kind before its remove returned (LOCK-10).
 * Context: process.
 */
void report_leak(const ib_device &device, const char *kind, const char *owner, unsigned int count);

/*
 * Reports an unregistration that was refused because it would wait for itself (LOCK-08).
 * Context: process.
 */
void refuse_from_callback(const char *name, const char *what);

/*
 * An event of a CQ, QP or SRQ goes to its handler; false says that the event is of another kind.
 * Context: any.
 */
bool dispatch_affiliated(const ib_event &event);

/* Reads again what an event of a port says has changed (EVENT-02). Context: process. */
void refresh_cache(const ib_event &event);

/*
 * Begin and end of a call of an asynchronous event handler: it may not sleep (LOCK-07). Nothing
 * unless in a debug build.
 */
class HandlerSection
{
public:
	HandlerSection() = default;

private:
	kern::NoSleepSection no_sleep_;
};

} // namespace verbs
