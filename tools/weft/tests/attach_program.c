// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Uses libibumad in ways that the stock programs do not. attach_test.py compiles this program and
// runs it attached to nodes. The first argument selects an action, whose results the program
// prints.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/umad.h>

enum {
	mad_bytes = 256,
	senders = 4,
	sends_each = 200,
	answer_timeout_ms = 20000,
	short_timeout_ms = 300,
	directed_route = 0x81,
	lid_routed = 0x01,
	performance = 0x04,
	vendor_first = 0x30, // the first class of the range with RMPP
	get = 1,
	get_response = 0x81,
	node_info = 0x11,
	class_port_info = 0x01,
	gsi_qkey = (int)0x80010000,
};

static void fail(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

static void say(const char *text)
{
	printf("%s\n", text);
	fflush(stdout);
}

static int open_port(void)
{
	if (umad_init() < 0)
		fail("umad_init");
	int port = umad_open_port(NULL, 0);
	if (port < 0) {
		errno = -port;
		fail("umad_open_port");
	}
	return port;
}

// An agent that receives only responses.
static int add_agent(int port, int mgmt_class)
{
	int agent = umad_register(port, mgmt_class, 1, 0, NULL);
	if (agent < 0)
		fail("umad_register");
	return agent;
}

static void *new_mad(void)
{
	void *umad = umad_alloc(1, umad_size() + mad_bytes);
	if (!umad)
		fail("umad_alloc");
	return umad;
}

// SubnGet(NodeInfo) of the program's own node, by a directed route without hops.
static int send_query(int port, int agent, uint32_t number)
{
	void *umad = new_mad();
	uint8_t *mad = umad_get_mad(umad);
	mad[0] = 1;
	mad[1] = directed_route;
	mad[2] = 1;
	mad[3] = get;
	number = htobe32(number);
	memcpy(mad + 12, &number, sizeof(number));
	mad[17] = node_info;
	memset(mad + 32, 0xff, 4); // the permissive LIDs
	umad_set_addr(umad, 0xffff, 0, 0, 0);
	int status = umad_send(port, agent, umad, mad_bytes, answer_timeout_ms, 0);
	umad_free(umad);
	return status;
}

// Receives a MAD. Returns the number of the query, or a negative errno.
static int64_t receive(int port, int timeout_ms)
{
	void *umad = new_mad();
	int length = mad_bytes;
	int agent = umad_recv(port, umad, &length, timeout_ms);
	uint32_t number;
	memcpy(&number, (uint8_t *)umad_get_mad(umad) + 12, sizeof(number));
	int64_t result = agent < 0 ? agent : (int64_t)be32toh(number);
	if (agent >= 0 && (umad_status(umad) || ((uint8_t *)umad_get_mad(umad))[3] != get_response))
		result = -EPROTO;
	umad_free(umad);
	return result;
}

static int query(int port, int agent, uint32_t number)
{
	return send_query(port, agent, number) == 0 && receive(port, answer_timeout_ms) == number;
}

struct sender {
	pthread_t thread;
	int port, agent;
	uint32_t first;
};

static void *send_queries(void *argument)
{
	const struct sender *sender = argument;
	for (uint32_t i = 0; i < sends_each; ++i)
		if (send_query(sender->port, sender->agent, sender->first + i))
			fail("umad_send");
	return NULL;
}

// Several threads send, and one waits by epoll on the port's descriptor. Each response must arrive
// once.
static void with_threads(void)
{
	static uint8_t seen[senders * sends_each];
	int port = open_port(), agent = add_agent(port, directed_route);
	int epoll = epoll_create1(0);
	struct epoll_event event = {.events = EPOLLIN};
	if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, umad_get_fd(port), &event))
		fail("epoll_ctl");
	if (epoll_wait(epoll, &event, 1, 0) != 0 || receive(port, 0) != -EAGAIN)
		say("readable too early");
	struct sender all[senders];
	for (int i = 0; i < senders; ++i) {
		all[i] = (struct sender){
			.port = port, .agent = agent, .first = (uint32_t)i * sends_each};
		if (pthread_create(&all[i].thread, NULL, send_queries, &all[i]))
			fail("pthread_create");
	}
	for (int count = 0; count < senders * sends_each;) {
		if (epoll_wait(epoll, &event, 1, answer_timeout_ms) != 1)
			fail("epoll_wait");
		int64_t number;
		while ((number = receive(port, 0)) >= 0) {
			if (number >= senders * sends_each || seen[number]++)
				say("a response twice, or of no query");
			++count;
		}
		if (number != -EAGAIN)
			fail("umad_recv");
	}
	for (int i = 0; i < senders; ++i)
		pthread_join(all[i].thread, NULL);
	if (epoll_wait(epoll, &event, 1, 0) != 0)
		say("readable when all has been received");
	say("threads: all responses");
}

static int ends_well(pid_t child)
{
	int status;
	return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// One child uses its parent's port and then its own port, and another executes an attached program.
static void with_children(char **command)
{
	int port = open_port(), agent = add_agent(port, directed_route);
	if (!query(port, agent, 1))
		fail("the parent's query");
	pid_t child = fork();
	if (child == 0) {
		int own = open_port();
		_exit(query(port, agent, 2) && query(own, add_agent(own, directed_route), 3) ? 0
											     : 1);
	}
	if (!ends_well(child))
		say("the child's queries failed");
	if ((child = fork()) == 0) {
		execvp(command[0], command);
		_exit(127);
	}
	if (!ends_well(child))
		say("the command failed");
	// The exits of the children have not closed the parent's port.
	if (!query(port, agent, 4))
		fail("the parent's query after the children");
	say("children: done");
}

static void *receive_forever(void *argument)
{
	for (;;)
		receive(*(int *)argument, 0);
	return NULL;
}

// Calls fork() while another thread is in the library, and uses the library in the child.
static void fork_beside_a_thread(void)
{
	int port = open_port(), agent = add_agent(port, directed_route);
	pthread_t thread;
	if (pthread_create(&thread, NULL, receive_forever, &port))
		fail("pthread_create");
	for (int i = 0; i < 300; ++i) {
		pid_t child = fork();
		if (child == 0) {
			alarm(10);
			_exit(send_query(port, agent, 1) == 0 ? 0 : 1);
		}
		if (!ends_well(child)) {
			say("a child could not send");
			exit(1);
		}
	}
	say("fork beside a thread: done");
	_exit(0);
}

// Registers the maximum number of agents of a port, one for every class of the second vendor range.
static void take_all_agents(void)
{
	int port = open_port();
	unsigned count = 0;
	for (int i = 0; i < UMAD_CA_MAX_AGENTS; ++i) {
		struct umad_reg_attr wanted = {.mgmt_class = (uint8_t)(vendor_first + i),
					       .mgmt_class_version = 1,
					       .oui = 0x1405,
					       .method_mask = {1 << get}};
		uint32_t agent;
		int error = umad_register2(port, &wanted, &agent);
		if (error) {
			errno = error;
			fail("umad_register2");
		}
		++count;
	}
	struct umad_reg_attr more = {.mgmt_class = directed_route, .mgmt_class_version = 1};
	uint32_t agent;
	printf("agents: %u, and one more: %s\n", count,
	       strerrorname_np(umad_register2(port, &more, &agent)));
	fflush(stdout);
	pause();
}

// Registers for requests of a class with both functions of libibumad.
static void register_class(int mgmt_class, int method)
{
	int port = open_port();
	long methods[16 / sizeof(long)] = {1L << method};
	struct umad_reg_attr wanted = {.mgmt_class = (uint8_t)mgmt_class,
				       .mgmt_class_version = 1,
				       .method_mask = {(uint64_t)1 << method}};
	uint32_t agent;
	int first = umad_register(port, mgmt_class, 1, 0, methods);
	if (first >= 0)
		umad_unregister(port, first);
	int second = umad_register2(port, &wanted, &agent);
	printf("umad_register: %s, umad_register2: %s\n",
	       first < 0 ? strerrorname_np(-first) : "registered",
	       second ? strerrorname_np(second) : "registered");
	fflush(stdout);
	if (!second)
		pause();
}

// Waits for a MAD until the lab has stopped.
static void wait_for_a_mad(const char *how)
{
	int port = open_port(), agent = add_agent(port, lid_routed);
	void *umad = new_mad();
	int length = mad_bytes;
	say("waits");
	struct pollfd ready = {.fd = umad_get_fd(port), .events = POLLIN};
	if (strcmp(how, "recv") == 0)
		printf("umad_recv: %s\n", strerrorname_np(-umad_recv(port, umad, &length, -1)));
	else if (strcmp(how, "umad_poll") == 0)
		printf("umad_poll: %s\n", strerrorname_np(-umad_poll(port, -1)));
	else if (poll(&ready, 1, -1) == 1)
		printf("poll: %s\n", (ready.revents & POLLHUP) != 0 ? "POLLHUP" : "no POLLHUP");
	printf("then: %s %s", strerrorname_np(-umad_recv(port, umad, &length, 0)),
	       strerrorname_np(-umad_poll(port, 0)));
	umad_set_addr(umad, 1, 0, 0, 0);
	int sent = umad_send(port, agent, umad, mad_bytes, 100, 0);
	struct umad_reg_attr wanted = {.mgmt_class = performance, .mgmt_class_version = 1};
	uint32_t another;
	printf(" %s, register: %s %s", strerrorname_np(-sent),
	       strerrorname_np(-umad_register(port, performance, 1, 0, NULL)),
	       strerrorname_np(umad_register2(port, &wanted, &another)));
	printf(", open: %s\n", strerrorname_np(-umad_open_port(NULL, 0)));
}

// Becomes the port's subnet manager, and waits until it is available.
static void become_manager(void)
{
	char path[256];
	int error = umad_get_issm_path(NULL, 0, path, sizeof(path));
	if (error) {
		errno = -error;
		fail("umad_get_issm_path");
	}
	say("waits");
	int file = open(path, O_RDONLY);
	if (file < 0)
		printf("open: %s\n", strerrorname_np(errno));
	else
		say("is the manager");
	fflush(stdout);
	if (file >= 0)
		pause();
}

// Sends requests of a class forever, as many at a time as the port accepts. MADs of performance
// management use a lane with flow control.
static void flood(int lid, int timeout_ms, int retries, int mgmt_class)
{
	int port = open_port(), agent = add_agent(port, mgmt_class), smp = mgmt_class == lid_routed;
	uint32_t sent = 0;
	void *umad = new_mad(), *received = new_mad();
	for (;;) {
		uint8_t *mad = umad_get_mad(umad);
		mad[0] = 1;
		mad[1] = mgmt_class;
		mad[2] = 1;
		mad[3] = get;
		uint32_t number = htobe32(++sent);
		memcpy(mad + 12, &number, sizeof(number));
		mad[17] = smp ? node_info : class_port_info;
		umad_set_addr(umad, lid, !smp, 0, smp ? 0 : gsi_qkey);
		if (umad_send(port, agent, umad, mad_bytes, timeout_ms, retries))
			fail("umad_send");
		int length = mad_bytes;
		umad_recv(port, received, &length, 0);
	}
}

// A request for ClassPortInfo of performance management, or for NodeInfo by a directed route with
// one hop.
static void *new_request(int lid, int mgmt_class, uint32_t number)
{
	void *umad = new_mad();
	uint8_t *mad = umad_get_mad(umad);
	int smp = mgmt_class == directed_route;
	mad[0] = 1;
	mad[1] = mgmt_class;
	mad[2] = 1;
	mad[3] = get;
	mad[7] = smp;
	number = htobe32(number);
	memcpy(mad + 12, &number, sizeof(number));
	mad[17] = smp ? node_info : class_port_info;
	if (smp) {
		memset(mad + 32, 0xff, 4); // the permissive LIDs
		mad[129] = 1;
	}
	umad_set_addr(umad, lid, !smp, 0, smp ? 0 : gsi_qkey);
	return umad;
}

// Sends a request and frees it. Prints the status with which the send is returned, or 0 if there is
// a response.
static void print_status(const char *what, int port, int agent, void *request, int timeout_ms)
{
	int length = mad_bytes;
	void *umad = new_mad();
	if (umad_send(port, agent, request, mad_bytes, timeout_ms, 0))
		fail("umad_send");
	if (umad_recv(port, umad, &length, answer_timeout_ms) < 0)
		fail("umad_recv");
	printf("%s: %s\n", what, strerrorname_np(umad_status(umad)));
	umad_free(umad);
	umad_free(request);
}

// Sends MADs whose source or sender is not the program's own, and then responses that no program
// has requested, forever.
static void forge(int lid)
{
	int port = open_port(), smi = add_agent(port, directed_route),
	    gsi = add_agent(port, performance);
	void *request = new_request(lid, performance, 1);
	umad_get_mad_addr(request)->path_bits = 0x7f;
	print_status("path bits", port, gsi, request, answer_timeout_ms);
	request = new_request(lid, performance, 2);
	umad_set_pkey(request, 99);
	print_status("P_Key index", port, gsi, request, answer_timeout_ms);
	request = new_request(lid, performance, 3);
	umad_get_mad_addr(request)->grh_present = 1;
	umad_get_mad_addr(request)->gid_index = 99;
	print_status("GID index", port, gsi, request, answer_timeout_ms);
	print_status("SMP from QP1", port, gsi, new_request(0xffff, directed_route, 4),
		     answer_timeout_ms);
	request = new_request(0xffff, directed_route, 5);
	((uint8_t *)umad_get_mad(request))[6] = 1; // the SMP has not passed the first hop
	print_status("route that begins elsewhere", port, smi, request, short_timeout_ms);
	fflush(stdout);
	for (uint32_t number = 0;; ++number) {
		void *response = new_request(lid, performance, number);
		uint8_t *mad = umad_get_mad(response);
		mad[3] = get_response;
		mad[11] = (uint8_t)(number >> 8); // of the high half, which identifies an agent
		if (umad_send(port, gsi, response, mad_bytes, 0, 0))
			fail("umad_send");
		umad_free(response);
	}
}

// Prints the high half of its transaction IDs, and waits for a line of input. Then it prints which
// response it has received, of three requests: the first one was answered before, the second one is
// for an unused LID, and the third one is sent after the line. The numbers are the low halves of
// the transaction IDs.
static void await_responses(int lid, int unused)
{
	enum { never_ms = 600000 };
	int port = open_port(), agent = add_agent(port, performance), length = mad_bytes;
	void *umad = new_mad();
	uint32_t high;
	if (umad_send(port, agent, new_request(lid, performance, 1), mad_bytes, answer_timeout_ms,
		      0) ||
	    umad_recv(port, umad, &length, answer_timeout_ms) < 0)
		fail("the first request");
	memcpy(&high, (uint8_t *)umad_get_mad(umad) + 8, sizeof(high));
	if (umad_send(port, agent, new_request(unused, performance, 2), mad_bytes, never_ms, 0))
		fail("umad_send");
	printf("%u\n", be32toh(high));
	fflush(stdout);
	getchar();
	if (umad_send(port, agent, new_request(lid, performance, 3), mad_bytes, answer_timeout_ms,
		      0))
		fail("umad_send");
	printf("response %d\n", (int)receive(port, answer_timeout_ms));
}

// Sends responses to the requests of await_responses(), which was attached to another node. Its
// own request then gets a response, so the forged ones have arrived.
static void forge_responses(int lid, uint32_t high)
{
	int port = open_port(), agent = add_agent(port, performance);
	high = htobe32(high);
	for (uint32_t number = 1; number <= 3; ++number) {
		void *response = new_request(lid, performance, number);
		uint8_t *mad = umad_get_mad(response);
		mad[3] = get_response;
		memcpy(mad + 8, &high, sizeof(high));
		if (umad_send(port, agent, response, mad_bytes, 0, 0))
			fail("umad_send");
		umad_free(response);
	}
	print_status("own request", port, agent, new_request(lid, performance, 4),
		     answer_timeout_ms);
}

// SubnAdmGetTable(NodeRecord) of all nodes. Returns the bytes of the answer, or a negative errno.
static int get_all_nodes(int port, int agent, int manager)
{
	static uint8_t number;
	enum { most = 1 << 20, sa_class = 3, sa_version = 2, get_table = 0x12 };
	void *umad = umad_alloc(1, umad_size() + most);
	if (!umad)
		fail("umad_alloc");
	uint8_t *mad = umad_get_mad(umad);
	mad[0] = 1;
	mad[1] = sa_class;
	mad[2] = sa_version;
	mad[3] = get_table;
	mad[15] = ++number; // a repeated number would get no response for ten seconds
	mad[17] = node_info;
	umad_set_addr(umad, manager, 1, 0, gsi_qkey);
	if (umad_send(port, agent, umad, mad_bytes, answer_timeout_ms, 0))
		fail("umad_send");
	int length = most;
	int result = umad_recv(port, umad, &length, answer_timeout_ms);
	umad_free(umad);
	return result < 0 ? result : length;
}

// Tests a message that is passed as a file, with and without a free descriptor.
static void without_descriptors(int manager)
{
	int port = open_port(), agent = umad_register(port, 3, 2, 1, NULL);
	if (agent < 0)
		fail("umad_register");
	struct rlimit before, none;
	if (getrlimit(RLIMIT_NOFILE, &before))
		fail("getrlimit");
	none = before;
	none.rlim_cur = (rlim_t)umad_get_fd(port) + 1;
	setrlimit(RLIMIT_NOFILE, &none);
	int result = get_all_nodes(port, agent, manager);
	setrlimit(RLIMIT_NOFILE, &before);
	printf("without a descriptor: %s\n", result < 0 ? strerrorname_np(-result) : "received");
	printf("with one: %d bytes\n", get_all_nodes(port, agent, manager));
}

int main(int count, char **words)
{
	const char *what = count > 1 ? words[1] : "";
	if (strcmp(what, "threads") == 0)
		with_threads();
	else if (strcmp(what, "children") == 0 && count > 2)
		with_children(words + 2);
	else if (strcmp(what, "fork") == 0)
		fork_beside_a_thread();
	else if (strcmp(what, "agents") == 0)
		take_all_agents();
	else if (strcmp(what, "register") == 0 && count > 3)
		register_class((int)strtol(words[2], NULL, 0), atoi(words[3]));
	else if (strcmp(what, "wait") == 0 && count > 2)
		wait_for_a_mad(words[2]);
	else if (strcmp(what, "manager") == 0)
		become_manager();
	else if (strcmp(what, "flood") == 0 && count > 4)
		flood(atoi(words[2]), atoi(words[3]), atoi(words[4]), lid_routed);
	else if (strcmp(what, "flood-performance") == 0 && count > 2)
		flood(atoi(words[2]), answer_timeout_ms, 0, performance);
	else if (strcmp(what, "forge") == 0 && count > 2)
		forge(atoi(words[2]));
	else if (strcmp(what, "await-responses") == 0 && count > 3)
		await_responses(atoi(words[2]), atoi(words[3]));
	else if (strcmp(what, "forge-responses") == 0 && count > 3)
		forge_responses(atoi(words[2]), (uint32_t)strtoul(words[3], NULL, 10));
	else if (strcmp(what, "descriptors") == 0 && count > 2)
		without_descriptors(atoi(words[2]));
	else
		return 2;
	return 0;
}
