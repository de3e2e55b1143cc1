// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/export.h>
#include "rnic.h"
#include "soft.h"

KERN_EXPORT(soft_create);
KERN_EXPORT(soft_destroy);
KERN_EXPORT(soft_set_behaviour);
KERN_EXPORT(soft_set_port);
KERN_EXPORT(soft_set_gid);
KERN_EXPORT(soft_set_pkey);
KERN_EXPORT(soft_connect);
KERN_EXPORT(soft_fail);
KERN_EXPORT(soft_fail_arms);
KERN_EXPORT(soft_interpose);
KERN_EXPORT(soft_calls);
KERN_EXPORT(soft_disturb);
KERN_EXPORT(soft_watch);
KERN_EXPORT(soft_complete);
KERN_EXPORT(soft_complete_late);
KERN_EXPORT(soft_hold_datagrams);
KERN_EXPORT(soft_lose_completions);
KERN_EXPORT(soft_addresses_lost);
KERN_EXPORT(soft_interrupts);
KERN_EXPORT(soft_missed_event_checks);
KERN_EXPORT(soft_posted_receives);
KERN_EXPORT(soft_events);
KERN_EXPORT(soft_create_rnic);
KERN_EXPORT(soft_stream);
