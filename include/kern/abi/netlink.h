/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Netlink requests of programs, and the responses to them. */
#pragma once
#include <kern/abi/net.h>

KERN_C_BEGIN

struct module;

/* A request of a program. Its attributes are not validated; those that are not read are ignored. */
struct kern_netlink_request {
	u16 type;
	const void *attributes;
	unsigned int length;
	const void *native;
	u64 net; /* the number of the network namespace of the program's socket */
};
/* Returns the first attribute of a type, and its bytes; NULL if there is none. */
const void *kern_netlink_find(const struct kern_netlink_request *request, u16 type,
			      unsigned int *size);
/* Returns true if the sender has CAP_NET_ADMIN. Context: that of the request. */
bool kern_netlink_may_administer(const struct kern_netlink_request *request);
/*
 * The network namespace that a descriptor of the program's is of, if the program may administer
 * that, too: CAP_NET_ADMIN in the user namespace that owns it. Held until kern_net_put(). 0;
 * -EBADF, -EINVAL for what is no network namespace, -EPERM. Context: that of the question.
 */
int kern_netlink_net_of(const struct kern_netlink_request *request, u32 descriptor,
			struct kern_net **net);

/*
 * A reply. All functions that add something to it return false, and add nothing, if it does not
 * fit.
 */
struct kern_netlink_message;
/*
 * Begins a message of a type, which contains everything that is added from now on. Returns NULL if
 * there is no space for it.
 */
void *kern_netlink_begin(struct kern_netlink_message *message, u16 type);
void kern_netlink_end(struct kern_netlink_message *message, void *begun);
bool kern_netlink_put(struct kern_netlink_message *message, u16 type, const void *data,
		      unsigned int size);
/* Aligns the value, with padding in an attribute of type 0. */
bool kern_netlink_put_u64(struct kern_netlink_message *message, u16 type, u64 value);
/* Begins a nested attribute; said: with the flag NLA_F_NESTED. */
void *kern_netlink_nest(struct kern_netlink_message *message, u16 type, bool said);
void kern_netlink_end_nest(struct kern_netlink_message *message, void *nest);
/* Returns the present end, and truncates the message to such an end. */
const void *kern_netlink_mark(const struct kern_netlink_message *message);
void kern_netlink_rewind(struct kern_netlink_message *message, const void *mark);

/*
 * Handlers of a protocol's requests. All run in process context, concurrently, but each dump only
 * once at a time. dumps: returns 1 if a request for all objects goes to dump, 0 if to answer, or a
 * negative errno. answer: 0 or a negative errno; an acknowledgement follows if requested. dump:
 * called repeatedly, with an empty message and place as it was left (zeroes at first), as long as
 * it returns 1 for more; 0 when complete.
 */
struct kern_netlink_ops {
	int (*dumps)(const struct kern_netlink_request *request);
	int (*answer)(const struct kern_netlink_request *request,
		      struct kern_netlink_message *message);
	int (*dump)(const struct kern_netlink_request *request,
		    struct kern_netlink_message *message, unsigned long place[4]);
};

/*
 * Registers the kernel's end of a netlink protocol in every network namespace. One protocol at a
 * time. The module is held as long as a program has a socket of it. Returns 0; EBUSY if the
 * protocol is used by another module, or this is in use; ENOMEM.
 */
int kern_netlink_create(unsigned int protocol, const struct kern_netlink_ops *ops,
			struct module *module);
void kern_netlink_destroy(void);

KERN_C_END
