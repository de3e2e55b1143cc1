// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Declares the functions of core/verbs that core/registry calls. When a device is registered, the
 * registry calls attach_device() and then each client's add. When the device is unregistered, it
 * calls each client's remove and then detach_device(). For an event, it calls
 * dispatch_affiliated(); if that returns false, it calls refresh_cache() and then the event
 * handlers.
 */
#pragma once
#include <kern/result.hpp>
#include <rdma/ib_verbs.h>

namespace verbs
{

/*
 * Create and destroy the work queues of the pollers. Called when the module is loaded and unloaded.
 * Context: process.
 */
kern::Result<> init();
void exit();

/* Initialise and clean up the state of resource tracking that does not belong to a device. */
void init_resource_tracking();
void exit_resource_tracking();

/*
 * Queries all constant properties of a device, and fills the cache. Errors: EINVAL if a mandatory
 * method is missing, or the number of ports or vectors is invalid; ENOMEM; the errors of the
 * driver. Context: process.
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
 * Passes an event of a CQ, QP or SRQ to its handler; returns false for other kinds of events.
 * Context: any.
 */
bool dispatch_affiliated(const ib_event &event);

/* Updates the cached values that an event of a port has changed (EVENT-02). Context: process. */
void refresh_cache(const ib_event &event);

/*
 * Marks a call of an asynchronous event handler, which must not sleep (LOCK-07). Has no effect
 * without CONFIG_WEFT_DEBUG.
 */
class HandlerSection
{
public:
	HandlerSection() = default;

private:
	kern::NoSleepSection no_sleep_;
};

} // namespace verbs
