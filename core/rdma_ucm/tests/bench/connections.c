// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Counts the instructions that connection establishment takes in the kernel. `connections ADDRESS
 * COUNT` makes COUNT connections of a guest with itself through /dev/infiniband/rdma_cm, without a
 * library and without queue pairs. So only the kernel's connection management is counted: both
 * ends, and the datagrams between them.
 *
 * `connections ADDRESS COUNT away` does the same with another guest, which runs `connections -
 * COUNT`. Each guest has only one end of each connection, so a user's limit allows twice as many
 * connections.
 *
 * The program is for a guest whose clock is its instruction counter: it measures elapsed time,
 * minus the CPU's idle time as reported by /proc/timer_list. This program's own share is small, and
 * the same on each stack.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <rdma/rdma_user_cm.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Events as librdmacm counts them. */
enum event {
	addr_resolved = 0,
	route_resolved = 2,
	connect_request = 4,
	connect_response = 5,
	established = 9,
	disconnected = 10,
	timewait_exit = 15
};
/* `window` is the number of connections that are established at a time and measured together. */
enum { reliable = 2, wait_ms = 5000, window = 64, few = 200, port = 7500 };
/*
 * QP numbers of the requesting and the answering end. They belong to no QP, and each connection has
 * its own pair.
 */
enum { asking_qps = 0x100000, answering_qps = 0x200000 };

static int node;

static unsigned long long ticks(void)
{
	unsigned long long low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory");
	return high << 32 | low;
}

/* The number behind a name in a file of /proc. */
static unsigned long long number_in(const char *path, const char *name)
{
	static char text[64 * 1024];
	const int file = open(path, O_RDONLY | O_CLOEXEC);
	size_t size = 0;
	ssize_t got;

	while ((got = read(file, text + size, sizeof(text) - 1 - size)) > 0)
		size += (size_t)got;
	close(file);
	text[size] = 0;
	const char *found = strstr(text, name);
	if (!found)
		errx(1, "%s has no %s", path, name);
	return strtoull(strchr(found, ':') + 1, NULL, 10);
}

static unsigned long long busy(void)
{
	const unsigned long long idle = number_in("/proc/timer_list", ".idle_sleeptime");

	return ticks() - idle;
}

/* Writes one command: its header and its request. The response goes to @answer. */
static void command(unsigned int number, const void *request, size_t size, size_t response_size,
		    const char *what)
{
	char message[1024];
	const struct rdma_ucm_cmd_hdr header = {.cmd = number, .in = size, .out = response_size};

	memcpy(message, &header, sizeof(header));
	memcpy(message + sizeof(header), request, size);
	if (write(node, message, sizeof(header) + size) < 0)
		err(1, "%s", what);
}

/* @number is reported with each event of the ID. A program that passes 0 wants no events. */
static unsigned int create_id(unsigned int number)
{
	struct rdma_ucm_create_id_resp answer = {};
	const struct rdma_ucm_create_id request = {.uid = number + 1,
						   .response = (unsigned long)&answer,
						   .ps = RDMA_PS_TCP,
						   .qp_type = reliable};

	command(RDMA_USER_CM_CMD_CREATE_ID, &request, sizeof(request), sizeof(answer), "create");
	return answer.id;
}

static struct rdma_ucm_event_resp next_event(void)
{
	struct rdma_ucm_event_resp answer = {};
	const struct rdma_ucm_get_event request = {.response = (unsigned long)&answer};

	do
		command(RDMA_USER_CM_CMD_GET_EVENT, &request, sizeof(request), sizeof(answer),
			"event");
	while (answer.event == timewait_exit);
	return answer;
}

static unsigned int number_of(struct rdma_ucm_event_resp event)
{
	return (unsigned int)event.uid - 1;
}

static struct rdma_ucm_event_resp await(enum event expected)
{
	const struct rdma_ucm_event_resp answer = next_event();

	if (answer.event != expected)
		errx(1, "event %u, status %d, where %u was expected", answer.event,
		     (int)answer.status, expected);
	return answer;
}

static struct rdma_ucm_conn_param param(unsigned int qp)
{
	return (struct rdma_ucm_conn_param){.qp_num = qp,
					    .responder_resources = 1,
					    .initiator_depth = 1,
					    .retry_count = 7,
					    .rnr_retry_count = 7,
					    .valid = 1};
}

static void accept_id(unsigned int id, const struct rdma_ucm_conn_param *with)
{
	struct rdma_ucm_accept request = {.id = id, .uid = 1};

	if (with)
		request.conn_param = *with;
	command(RDMA_USER_CM_CMD_ACCEPT, &request, sizeof(request), 0, "accept");
}

static void disconnect(unsigned int id)
{
	const struct rdma_ucm_disconnect request = {.id = id};

	command(RDMA_USER_CM_CMD_DISCONNECT, &request, sizeof(request), 0, "disconnect");
}

static void destroy(unsigned int id)
{
	struct rdma_ucm_destroy_id_resp answer;
	const struct rdma_ucm_destroy_id request = {.id = id, .response = (unsigned long)&answer};

	command(RDMA_USER_CM_CMD_DESTROY_ID, &request, sizeof(request), sizeof(answer), "destroy");
}

static void open_node(void)
{
	node = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
	if (node < 0)
		err(1, "/dev/infiniband/rdma_cm");
}

static void listen_for_all(void)
{
	const struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct rdma_ucm_bind_ip bind = {.id = create_id(0)};
	const struct rdma_ucm_listen listen = {.id = bind.id, .backlog = 1024};

	memcpy(&bind.addr, &any, sizeof(any));
	command(RDMA_USER_CM_CMD_BIND_IP, &bind, sizeof(bind), 0, "bind");
	command(RDMA_USER_CM_CMD_LISTEN, &listen, sizeof(listen), 0, "listen");
}

/* KiB of free memory in the guest, plus the memory of this program, which is not to be counted. */
static long long memory_left(void)
{
	return (long long)(number_in("/proc/meminfo", "MemFree") +
			   number_in("/proc/self/status", "VmRSS"));
}

/*
 * Accepts all requests, and destroys the IDs that the peer disconnects, until the program is
 * killed. If @all is not 0, it is the number of connections: then prints the memory for each
 * connection that stays established and for each that is destroyed, as in main().
 */
static void serve(unsigned int all)
{
	unsigned int made = 0, ended = 0;
	long long before = 0;

	for (unsigned int qp = answering_qps;;) {
		const struct rdma_ucm_event_resp event = next_event();
		if (event.event == connect_request) {
			const struct rdma_ucm_conn_param with = param(qp++);
			accept_id(event.id, &with);
		} else if (event.event == established && ++made == all) {
			printf("figure cm.memory-answering %lld\n",
			       (before - memory_left()) * 1024 / (all - 2 * few));
			fflush(stdout);
		} else if (event.event == disconnected) {
			disconnect(event.id);
			destroy(event.id);
			if (++ended == 2 * few)
				before = memory_left();
		}
	}
}

/* The server has printed the reason. */
static void lose_server(int)
{
	_exit(1);
}

static unsigned int *ids;

static void find_address(unsigned int number, const struct sockaddr_in *where)
{
	struct rdma_ucm_resolve_ip request = {.id = ids[number] = create_id(number),
					      .timeout_ms = wait_ms};

	memcpy(&request.dst_addr, where, sizeof(*where));
	command(RDMA_USER_CM_CMD_RESOLVE_IP, &request, sizeof(request), 0, "resolve address");
}

static void find_route(unsigned int number)
{
	const struct rdma_ucm_resolve_route request = {.id = ids[number], .timeout_ms = wait_ms};

	command(RDMA_USER_CM_CMD_RESOLVE_ROUTE, &request, sizeof(request), 0, "resolve route");
}

static void resolve(unsigned int from, unsigned int to, const struct sockaddr_in *where)
{
	unsigned int asked = from;

	while (asked < from + window && asked < to)
		find_address(asked++, where);
	for (unsigned int found = from; found < to;) {
		const struct rdma_ucm_event_resp event = next_event();
		if (event.event == addr_resolved) {
			find_route(number_of(event));
			continue;
		}
		if (event.event != route_resolved)
			errx(1, "event %u, status %d, where a route was expected", event.event,
			     (int)event.status);
		found++;
		if (asked < to)
			find_address(asked++, where);
	}
}

static void ask(unsigned int number)
{
	const struct rdma_ucm_connect request = {.conn_param = param(asking_qps + number),
						 .id = ids[number]};

	command(RDMA_USER_CM_CMD_CONNECT, &request, sizeof(request), 0, "connect");
}

static void connect_all(unsigned int from, unsigned int to)
{
	unsigned int asked = from;

	while (asked < from + window && asked < to)
		ask(asked++);
	for (unsigned int made = from; made < to; made++) {
		accept_id(ids[number_of(await(connect_response))], NULL);
		if (asked < to)
			ask(asked++);
	}
}

static void end_all(unsigned int from, unsigned int to)
{
	unsigned int asked = from;

	while (asked < from + window && asked < to)
		disconnect(ids[asked++]);
	for (unsigned int ended = from; ended < to; ended++) {
		destroy(ids[number_of(await(disconnected))]);
		if (asked < to)
			disconnect(ids[asked++]);
	}
}

/*
 * Prints the instructions that each connection from @from to @to needs to be resolved, established
 * and destroyed. Connections to be kept are not destroyed.
 */
static void count(const char *when, unsigned int from, unsigned int to,
		  const struct sockaddr_in *where, bool keep)
{
	const unsigned long long nothing = busy(), begun = busy();
	resolve(from, to, where);
	const unsigned long long found = busy();
	connect_all(from, to);
	const unsigned long long made = busy(), own = begun - nothing;

	printf("figure cm.insn-resolve%s %llu\n", when, (found - begun - own) / (to - from));
	printf("figure cm.insn-connect%s %llu\n", when, (made - found - own) / (to - from));
	if (!keep) {
		end_all(from, to);
		printf("figure cm.insn-disconnect%s %llu\n", when,
		       (busy() - made - own) / (to - from));
	}
	fflush(stdout);
}

/* Each process has a node of its own: one that another has opened is refused. */
static void start_server(void)
{
	int listens[2];
	char any;

	if (pipe(listens))
		err(1, "pipe");
	signal(SIGCHLD, lose_server);
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(listens[0]);
		open_node();
		listen_for_all();
		close(listens[1]);
		serve(0);
	}
	close(listens[1]);
	if (read(listens[0], &any, 1) != 0)
		err(1, "the listener");
}

int main(int argc, char **argv)
{
	struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons(port)};
	const unsigned int all = argc >= 3 ? (unsigned int)atoi(argv[2]) : 0;
	const bool away = argc == 4 && strcmp(argv[3], "away") == 0;

	if (all > 2 * few && argc == 3 && strcmp(argv[1], "-") == 0) {
		open_node();
		listen_for_all();
		serve(all);
	}
	if (all <= 2 * few || argc > 3 + away || inet_pton(AF_INET, argv[1], &where.sin_addr) != 1)
		errx(2, "connections ADDRESS COUNT [away], or connections - COUNT");
	ids = calloc(all + 2 * few, sizeof(*ids));
	if (!ids)
		err(1, "ids");
	if (!away)
		start_server();
	open_node();
	/* Warm up: some objects are created only once. */
	resolve(0, few, &where);
	connect_all(0, few);
	end_all(0, few);

	count(away ? "-asking" : "", few, 2 * few, &where, false);
	const long long before = memory_left();
	resolve(2 * few, all, &where);
	connect_all(2 * few, all);
	printf("figure cm.memory%s %lld\n", away ? "-asking" : "",
	       (before - memory_left()) * 1024 / (all - 2 * few));
	fflush(stdout);
	count(away ? "-asking-among-many" : "-among-many", all, all + few, &where, true);
	return 0;
}
