// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Creates the kernel's socket of a netlink protocol in each network namespace, passes requests to
// C++ code, and builds the responses (include/kern/abi/netlink.h).
#include <linux/export.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/netlink.h>
#include <linux/sched/signal.h>
#include <net/net_namespace.h>
#include <net/netlink.h>
#include <net/netns/generic.h>
#include <net/sock.h>
#include <kern/abi/netlink.h>
#include "net.h"

struct kern_netlink_message {
	struct sk_buff *skb;
	u32 port;
	u32 sequence;
	u16 flags;
};

/* The protocol. Only one can be registered. */
static const struct kern_netlink_ops *answers;
static unsigned int protocol_number;
static struct module *owner;
static DEFINE_MUTEX(in_use);

struct end {
	struct sock *socket;
};
static unsigned int end_id;

static struct kern_netlink_request request_of(const struct sk_buff *skb,
					      const struct nlmsghdr *header)
{
	return (struct kern_netlink_request){
		.type = header->nlmsg_type,
		.attributes = nlmsg_attrdata(header, 0),
		.length = nlmsg_attrlen(header, 0),
		.native = skb,
		.net = kern_native_net_number(sock_net(skb->sk)),
	};
}

const void *kern_netlink_find(const struct kern_netlink_request *request, u16 type,
			      unsigned int *size)
{
	const struct nlattr *found = nla_find(request->attributes, request->length, type);

	if (!found)
		return NULL;
	*size = nla_len(found);
	return nla_data(found);
}
EXPORT_SYMBOL_GPL(kern_netlink_find);

bool kern_netlink_may_administer(const struct kern_netlink_request *request)
{
	return netlink_capable(request->native, CAP_NET_ADMIN);
}
EXPORT_SYMBOL_GPL(kern_netlink_may_administer);

int kern_netlink_net_of(const struct kern_netlink_request *request, u32 descriptor,
			struct kern_net **net)
{
	struct net *named = get_net_ns_by_fd(descriptor);

	if (IS_ERR(named))
		return PTR_ERR(named);
	if (!netlink_ns_capable(request->native, named->user_ns, CAP_NET_ADMIN)) {
		put_net(named);
		return -EPERM;
	}
	*net = (struct kern_net *)named;
	return 0;
}
EXPORT_SYMBOL_GPL(kern_netlink_net_of);

void *kern_netlink_begin(struct kern_netlink_message *message, u16 type)
{
	return nlmsg_put(message->skb, message->port, message->sequence, type, 0, message->flags);
}
EXPORT_SYMBOL_GPL(kern_netlink_begin);

void kern_netlink_end(struct kern_netlink_message *message, void *begun)
{
	nlmsg_end(message->skb, begun);
}
EXPORT_SYMBOL_GPL(kern_netlink_end);

bool kern_netlink_put(struct kern_netlink_message *message, u16 type, const void *data,
		      unsigned int size)
{
	return nla_put(message->skb, type, size, data) == 0;
}
EXPORT_SYMBOL_GPL(kern_netlink_put);

bool kern_netlink_put_u64(struct kern_netlink_message *message, u16 type, u64 value)
{
	return nla_put_u64_64bit(message->skb, type, value, 0) == 0;
}
EXPORT_SYMBOL_GPL(kern_netlink_put_u64);

void *kern_netlink_nest(struct kern_netlink_message *message, u16 type, bool flagged)
{
	return flagged ? nla_nest_start(message->skb, type)
		       : nla_nest_start_noflag(message->skb, type);
}
EXPORT_SYMBOL_GPL(kern_netlink_nest);

void kern_netlink_end_nest(struct kern_netlink_message *message, void *nest)
{
	nla_nest_end(message->skb, nest);
}
EXPORT_SYMBOL_GPL(kern_netlink_end_nest);

const void *kern_netlink_mark(const struct kern_netlink_message *message)
{
	return skb_tail_pointer(message->skb);
}
EXPORT_SYMBOL_GPL(kern_netlink_mark);

void kern_netlink_rewind(struct kern_netlink_message *message, const void *mark)
{
	nlmsg_trim(message->skb, mark);
}
EXPORT_SYMBOL_GPL(kern_netlink_rewind);

static int dump(struct sk_buff *skb, struct netlink_callback *callback)
{
	const struct kern_netlink_request request = request_of(callback->skb, callback->nlh);
	struct kern_netlink_message part = {
		.skb = skb,
		.port = NETLINK_CB(callback->skb).portid,
		.sequence = callback->nlh->nlmsg_seq,
		.flags = NLM_F_MULTI,
	};
	int more = answers->dump(&request, &part, (unsigned long *)callback->args);

	/* If there is more to dump, the messages in the buffer are sent first. */
	return more < 0 ? more : more ? skb->len : 0;
}

static int answer(struct sk_buff *skb, struct nlmsghdr *header,
		  const struct kern_netlink_request *request)
{
	const u32 port = NETLINK_CB(skb).portid;
	struct kern_netlink_message message = {
		.skb = nlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL),
		.port = port,
		.sequence = header->nlmsg_seq,
	};
	int status;

	if (!message.skb)
		return -ENOMEM;
	status = answers->answer(request, &message);
	if (status || !message.skb->len) {
		nlmsg_free(message.skb);
		return status;
	}
	return nlmsg_unicast(((struct end *)net_generic(sock_net(skb->sk), end_id))->socket,
			     message.skb, port);
}

static int receive_one(struct sk_buff *skb, struct nlmsghdr *header, struct netlink_ext_ack *ack)
{
	const struct kern_netlink_request request = request_of(skb, header);
	struct netlink_dump_control control = {.dump = dump, .module = owner};

	/*
	 * A message may contain thousands of requests, so the sender must be killable between them.
	 */
	cond_resched();
	if (fatal_signal_pending(current))
		return -EINTR;
	if (header->nlmsg_flags & NLM_F_DUMP) {
		const int dumps = answers->dumps(&request);

		if (dumps < 0)
			return dumps;
		if (dumps)
			return netlink_dump_start(
				((struct end *)net_generic(sock_net(skb->sk), end_id))->socket, skb,
				header, &control);
	}
	return answer(skb, header, &request);
}

static void receive(struct sk_buff *skb)
{
	netlink_rcv_skb(skb, receive_one);
}

/*
 * Called whenever a network namespace is created, not only when the module is loaded, so it must
 * not be __net_init.
 */
static int begin_namespace(struct net *net)
{
	struct netlink_kernel_cfg options = {.input = receive};
	struct end *end = net_generic(net, end_id);

	end->socket = __netlink_kernel_create(net, protocol_number, owner, &options);
	/*
	 * netlink_kernel_create() returns no error code. Nearly always, another socket uses the
	 * protocol number.
	 */
	return end->socket ? 0 : -EBUSY;
}

static void end_namespace(struct net *net)
{
	netlink_kernel_release(((struct end *)net_generic(net, end_id))->socket);
}

static struct pernet_operations namespaces = {
	.init = begin_namespace,
	.exit = end_namespace,
	.id = &end_id,
	.size = sizeof(struct end),
};

int kern_netlink_create(unsigned int protocol, const struct kern_netlink_ops *ops,
			struct module *module)
{
	int status = -EBUSY;

	mutex_lock(&in_use);
	if (!answers) {
		answers = ops;
		protocol_number = protocol;
		owner = module;
		status = register_pernet_subsys(&namespaces);
		if (status)
			answers = NULL;
	}
	mutex_unlock(&in_use);
	return status;
}
EXPORT_SYMBOL_GPL(kern_netlink_create);

void kern_netlink_destroy(void)
{
	mutex_lock(&in_use);
	unregister_pernet_subsys(&namespaces);
	answers = NULL;
	mutex_unlock(&in_use);
}
EXPORT_SYMBOL_GPL(kern_netlink_destroy);
