/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Declares netlink requests of programs, and the responses to them. */
#pragma once
#include <kern/abi/net.h>

KERN_C_BEGIN

struct module;

/*
 * A request of a program. Its attributes are not validated. Attributes that are not read are
 * ignored.
 */
struct kern_netlink_request {
	u16 type;
	const void *attributes;
	unsigned int length;
	const void *native;
	u64 net; /* number of the network namespace of the program's socket */
};
/* Returns the first attribute of a type and its size; NULL if there is none. */
const void *kern_netlink_find(const struct kern_netlink_request *request, u16 type,
			      unsigned int *size);
/* Returns true if the sender has CAP_NET_ADMIN. Context: that of the request. */
bool kern_netlink_may_administer(const struct kern_netlink_request *request);
/*
 * Returns the network namespace of a descriptor of the program, held until kern_net_put(). The
 * program must have CAP_NET_ADMIN in the user namespace that owns it. Returns 0; -EBADF; -EINVAL if
 * it is not a network namespace; -EPERM. Context: that of the request.
 */
int kern_netlink_net_of(const struct kern_netlink_request *request, u32 descriptor,
			struct kern_net **net);

/*
 * A response. All functions that add to it return false, without adding anything, if there is no
 * space.
 */
struct kern_netlink_message;
/*
 * Begins a message of a type. All that is added until kern_netlink_end() belongs to it. Returns
 * NULL if there is no space.
 */
void *kern_netlink_begin(struct kern_netlink_message *message, u16 type);
void kern_netlink_end(struct kern_netlink_message *message, void *begun);
bool kern_netlink_put(struct kern_netlink_message *message, u16 type, const void *data,
		      unsigned int size);
/* Adds an aligned value, with a padding attribute of type 0 if necessary. */
bool kern_netlink_put_u64(struct kern_netlink_message *message, u16 type, u64 value);
/* Begins a nested attribute. @flagged: with the flag NLA_F_NESTED. */
void *kern_netlink_nest(struct kern_netlink_message *message, u16 type, bool flagged);
void kern_netlink_end_nest(struct kern_netlink_message *message, void *nest);
/* mark() returns the current end of the message. rewind() truncates the message to such an end. */
const void *kern_netlink_mark(const struct kern_netlink_message *message);
void kern_netlink_rewind(struct kern_netlink_message *message, const void *mark);

/*
 * Handlers of the requests of a protocol. They run in process context, and in parallel; only a
 * single dump does not run in parallel with itself.
 *
 * dumps: returns 1 if dump shall handle a request for all objects, 0 if answer shall, or a negative
 * errno.
 *
 * answer: returns 0 or a negative errno. An acknowledgement is sent if it was requested.
 *
 * dump: called repeatedly with an empty message. @place is zero the first time, and then as the
 * previous call left it. Returns 1 if there is more, 0 when the dump is complete.
 */
struct kern_netlink_ops {
	int (*dumps)(const struct kern_netlink_request *request);
	int (*answer)(const struct kern_netlink_request *request,
		      struct kern_netlink_message *message);
	int (*dump)(const struct kern_netlink_request *request,
		    struct kern_netlink_message *message, unsigned long place[4]);
};

/*
 * Registers a netlink protocol in every network namespace. Only one protocol can be registered. The
 * module is held as long as a program has a socket of the protocol. Returns 0; -EBUSY if the
 * protocol number is used by another module, or a protocol is registered already; -ENOMEM.
 */
int kern_netlink_create(unsigned int protocol, const struct kern_netlink_ops *ops,
			struct module *module);
void kern_netlink_destroy(void);

KERN_C_END
