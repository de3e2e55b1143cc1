// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Measures the costs of the kernel's part of user verbs and user MADs, through stock libibverbs and
 * the node /dev/infiniband/umad0, with the same program on each stack.
 *
 * The command `counts` is for a guest whose clock is its instruction counter, so that a tick of the
 * time-stamp counter is an instruction. The program replaces the C library's ioctl() and write(),
 * which libibverbs calls, and counts the kernel's instructions in them. While the CPU is idle
 * because a command waits for the card, the clock continues; /proc/timer_list reports for how long.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <rdma/ib_user_mad.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { KIB = 1024, MIB = 1024 * 1024 };

static void fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static void *need(void *pointer, const char *what)
{
	if (!pointer)
		fail(what);
	return pointer;
}

static void done(int status, const char *what)
{
	if (status)
		fail(what);
}

static inline uint64_t ticks(void)
{
	uint64_t ticks;

	__asm__ volatile("rdtsc; shl $32, %%rdx; or %%rdx, %%rax"
			 : "=a"(ticks)
			 :
			 : "rdx", "cc", "memory");
	return ticks;
}

/* Ticks that this program has spent in counted system calls. */
static uint64_t inside;

/* libibverbs calls these functions instead of those of the C library. */
int ioctl(int file, unsigned long request, ...)
{
	va_list arguments;
	uint64_t begin;
	void *argument;
	long status;

	va_start(arguments, request);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	begin = ticks();
	status = syscall(SYS_ioctl, file, request, argument);
	inside += ticks() - begin;
	return (int)status;
}

ssize_t write(int file, const void *bytes, size_t size)
{
	const uint64_t begin = ticks();
	const ssize_t status = syscall(SYS_write, file, bytes, size);

	inside += ticks() - begin;
	return status;
}

ssize_t read(int file, void *bytes, size_t size)
{
	const uint64_t begin = ticks();
	const ssize_t status = syscall(SYS_read, file, bytes, size);

	inside += ticks() - begin;
	return status;
}

/* Returns the time that CPU 0 has been idle. */
static uint64_t idle(void)
{
	static char text[64 * KIB];
	const int file = open("/proc/timer_list", O_RDONLY);
	const char *found;
	size_t size = 0;
	ssize_t got;

	while ((got = syscall(SYS_read, file, text + size, sizeof(text) - 1 - size)) > 0)
		size += (size_t)got;
	close(file);
	text[size] = 0;
	found = strstr(text, ".idle_sleeptime");
	if (!found)
		fail("idle_sleeptime");
	return strtoull(strchr(found, ':') + 1, NULL, 10);
}

struct resources {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char *memory;
	int umad;
	uint32_t agent;
};

static struct ibv_qp *new_qp(struct resources *resources)
{
	struct ibv_qp_init_attr wanted = {.send_cq = resources->cq,
					  .recv_cq = resources->cq,
					  .cap = {16, 16, 1, 1, 0},
					  .qp_type = IBV_QPT_RC};

	return need(ibv_create_qp(resources->pd, &wanted), "ibv_create_qp");
}

/* Allocates memory, and touches each of its 4 KiB pages. */
static char *new_memory(size_t size)
{
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		fail("mmap");
	madvise(memory, size, MADV_NOHUGEPAGE);
	memset(memory, 1, size);
	return memory;
}

/* --- the operations that are counted; each undoes its changes --- */

static void reg_mr(struct resources *resources, size_t size)
{
	struct ibv_mr *mr = need(ibv_reg_mr(resources->pd, resources->memory, size,
					    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE),
				 "ibv_reg_mr");

	done(ibv_dereg_mr(mr), "ibv_dereg_mr");
}

static void reg_4k(struct resources *resources)
{
	reg_mr(resources, 4 * KIB);
}

static void reg_1m(struct resources *resources)
{
	reg_mr(resources, MIB);
}

static void reg_64m(struct resources *resources)
{
	reg_mr(resources, 64 * MIB);
}

static void cq(struct resources *resources)
{
	struct ibv_cq *made =
		need(ibv_create_cq(resources->context, 100, NULL, NULL, 0), "ibv_create_cq");

	done(ibv_destroy_cq(made), "ibv_destroy_cq");
}

static void qp(struct resources *resources)
{
	done(ibv_destroy_qp(new_qp(resources)), "ibv_destroy_qp");
}

/* Requests the NodeInfo of the neighbour, which is a switch, by a directed route. */
static void umad(struct resources *resources)
{
	static uint32_t tid;
	struct {
		struct ib_user_mad_hdr header;
		uint8_t mad[256];
	} record = {.header = {.id = resources->agent, .timeout_ms = 1000}};
	struct pollfd waiting = {.fd = resources->umad, .events = POLLIN};

	record.mad[0] = 1;    /* base version */
	record.mad[1] = 0x81; /* directed routes */
	record.mad[2] = 1;
	record.mad[3] = 1; /* Get */
	record.mad[7] = 1; /* hops */
	tid++;
	memcpy(record.mad + 12, &tid, sizeof(tid));
	record.mad[17] = 0x11;            /* NodeInfo */
	memset(record.mad + 32, 0xff, 4); /* DrSLID and DrDLID: permissive */
	record.mad[128 + 1] = 1;          /* out of port 1 */
	record.header.lid = 0xffff;
	if (write(resources->umad, &record, sizeof(record)) != sizeof(record))
		fail("write of a MAD");
	const uint64_t begin = ticks();
	poll(&waiting, 1, 5000);
	inside += ticks() - begin;
	if (read(resources->umad, &record, sizeof(record)) < 0)
		fail("read of a MAD");
	if (record.header.status)
		errno = (int)record.header.status, fail("a MAD");
}

static void send_one(struct resources *resources)
{
	struct ibv_sge sge = {(uintptr_t)resources->memory, 8, resources->mr->lkey};
	struct ibv_send_wr request = {.sg_list = &sge,
				      .num_sge = 1,
				      .opcode = IBV_WR_RDMA_WRITE,
				      .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	request.wr.rdma.remote_addr = (uintptr_t)resources->memory + 64;
	request.wr.rdma.rkey = resources->mr->rkey;
	done(ibv_post_send(resources->qp, &request, &bad), "ibv_post_send");
}

static void take_one(struct resources *resources)
{
	struct ibv_wc wc;
	int got;

	while ((got = ibv_poll_cq(resources->cq, 1, &wc)) == 0)
		;
	if (got < 0 || wc.status != IBV_WC_SUCCESS)
		fail("a completion");
}

/*
 * A program that sleeps until its event arrives. All that the kernel does is counted, including
 * sleep and wakeup.
 */
static void event_slept_for(struct resources *resources)
{
	struct ibv_cq *from;
	void *context;

	done(ibv_req_notify_cq(resources->cq, 0), "ibv_req_notify_cq");
	send_one(resources);
	done(ibv_get_cq_event(resources->channel, &from, &context), "ibv_get_cq_event");
	ibv_ack_cq_events(from, 1);
	take_one(resources);
}

/* --- counting --- */

/* Instructions that the kernel needs for @times calls of @what. */
static uint64_t counted(struct resources *resources, void (*what)(struct resources *), int times)
{
	const uint64_t slept = idle();

	inside = 0;
	for (int i = 0; i < times; i++)
		what(resources);
	const uint64_t within = inside;

	return within - (idle() - slept);
}

static int ascending(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The median of several rounds; a tick of the clock falls into few of them. */
static void count(struct resources *resources, const char *name, void (*what)(struct resources *),
		  int times)
{
	enum { ROUNDS = 9 };
	uint64_t taken[ROUNDS];

	what(resources);
	for (int round = 0; round < ROUNDS; round++)
		taken[round] = counted(resources, what, times) / (uint64_t)times;
	qsort(taken, ROUNDS, sizeof(*taken), ascending);
	printf("figure %s %lu\n", name, (unsigned long)taken[ROUNDS / 2]);
	fflush(stdout);
}

/*
 * Counts from the interrupt to the return of read(), without a sleeping task. The program polls for
 * its completion, and reads the clock until there is a gap, which is the time of the interrupt.
 * Then it reads the event.
 */
static void count_event(struct resources *resources)
{
	enum { ROUNDS = 200, SPIN = 4000000, UNSEEN = 200 };
	uint64_t smallest = UINT64_MAX;
	struct ibv_cq *from;
	void *context;

	for (int round = 0; round < ROUNDS; round++) {
		uint64_t unseen = 0, before, now;

		done(ibv_req_notify_cq(resources->cq, 0), "ibv_req_notify_cq");
		send_one(resources);
		const uint64_t begin = before = ticks();
		while (before - begin < SPIN) {
			now = ticks();
			if (now - before > UNSEEN)
				unseen += now - before;
			before = now;
		}
		inside = 0;
		done(ibv_get_cq_event(resources->channel, &from, &context), "ibv_get_cq_event");
		ibv_ack_cq_events(from, 1);
		if (unseen && unseen + inside < smallest)
			smallest = unseen + inside;
		take_one(resources);
	}
	printf("figure user.insn-event %lu\n", (unsigned long)smallest);
}

static void connect_to_itself(struct resources *resources)
{
	struct ibv_port_attr port;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};

	done(ibv_query_port(resources->context, 1, &port), "ibv_query_port");
	done(ibv_modify_qp(resources->qp, &attr,
			   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	     "to INIT");
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
				    .path_mtu = IBV_MTU_2048,
				    .dest_qp_num = resources->qp->qp_num,
				    .max_dest_rd_atomic = 1,
				    .min_rnr_timer = 12,
				    .ah_attr = {.dlid = port.lid, .port_num = 1}};
	done(ibv_modify_qp(resources->qp, &attr,
			   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				   IBV_QP_MIN_RNR_TIMER),
	     "to RTR");
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				    .timeout = 14,
				    .retry_cnt = 7,
				    .rnr_retry = 7,
				    .max_rd_atomic = 1};
	done(ibv_modify_qp(resources->qp, &attr,
			   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				   IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
	     "to RTS");
}

static struct ibv_context *open_device(void)
{
	struct ibv_device **devices = need(ibv_get_device_list(NULL), "ibv_get_device_list");
	struct ibv_context *context =
		need(ibv_open_device(need(devices[0], "a device")), "ibv_open_device");

	ibv_free_device_list(devices);
	return context;
}

static void counts(void)
{
	struct ib_user_mad_reg_req request = {.qpn = 0};
	struct resources resources = {.context = open_device()};

	resources.pd = need(ibv_alloc_pd(resources.context), "ibv_alloc_pd");
	resources.memory = new_memory(64 * MIB);
	resources.channel =
		need(ibv_create_comp_channel(resources.context), "ibv_create_comp_channel");
	resources.cq = need(ibv_create_cq(resources.context, 100, NULL, resources.channel, 0),
			    "ibv_create_cq");
	resources.qp = new_qp(&resources);
	resources.mr = need(ibv_reg_mr(resources.pd, resources.memory, 4 * KIB,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE),
			    "ibv_reg_mr");
	connect_to_itself(&resources);
	resources.umad = open("/dev/infiniband/umad0", O_RDWR);
	if (resources.umad < 0)
		fail("umad0");
	done(ioctl(resources.umad, IB_USER_MAD_ENABLE_PKEY), "IB_USER_MAD_ENABLE_PKEY");
	done(ioctl(resources.umad, IB_USER_MAD_REGISTER_AGENT, &request),
	     "IB_USER_MAD_REGISTER_AGENT");
	resources.agent = request.id;

	count(&resources, "user.insn-reg-4k", reg_4k, 20);
	count(&resources, "user.insn-reg-1m", reg_1m, 10);
	count(&resources, "user.insn-reg-64m", reg_64m, 1);
	count(&resources, "user.insn-cq", cq, 20);
	count(&resources, "user.insn-qp", qp, 20);
	count(&resources, "user.insn-umad", umad, 20);
	count(&resources, "user.insn-event-slept", event_slept_for, 20);
	count_event(&resources);
}

/* --- memory --- */

/* KiB of memory that the kernel uses, without the memory of this program. */
static long kernels_memory(void)
{
	char line[128];
	long free = 0, own = 0;
	FILE *file = need(fopen("/proc/meminfo", "r"), "meminfo");

	while (fgets(line, sizeof(line), file))
		sscanf(line, "MemFree: %ld", &free);
	fclose(file);
	file = need(fopen("/proc/self/status", "r"), "status");
	while (fgets(line, sizeof(line), file))
		sscanf(line, "VmRSS: %ld", &own);
	fclose(file);
	return -free - own;
}

/*
 * Prints the kernel's bytes for each object of a kind. A first object is created before, because it
 * may allocate shared memory.
 */
static void memory(void)
{
	enum { CONTEXTS = 200, QPS = 900, MRS = 8000 };
	static struct ibv_context *contexts[CONTEXTS];
	static struct ibv_qp *qps[QPS];
	static struct ibv_mr *mrs[MRS];
	const struct rlimit files = {4096, 4096};
	struct resources resources = {.context = open_device()};
	long before;

	done(setrlimit(RLIMIT_NOFILE, &files), "RLIMIT_NOFILE");
	resources.pd = need(ibv_alloc_pd(resources.context), "ibv_alloc_pd");
	resources.cq = need(ibv_create_cq(resources.context, 100, NULL, NULL, 0), "ibv_create_cq");
	resources.memory = new_memory(4 * KIB);

	before = kernels_memory();
	for (int i = 0; i < CONTEXTS; i++)
		contexts[i] = open_device();
	printf("figure user.memory-context %ld\n", (kernels_memory() - before) * KIB / CONTEXTS);
	for (int i = 0; i < CONTEXTS; i++)
		ibv_close_device(contexts[i]);

	before = kernels_memory();
	for (int i = 0; i < QPS; i++)
		qps[i] = new_qp(&resources);
	printf("figure user.memory-qp %ld\n", (kernels_memory() - before) * KIB / QPS);
	for (int i = 0; i < QPS; i++)
		ibv_destroy_qp(qps[i]);

	before = kernels_memory();
	for (int i = 0; i < MRS; i++)
		mrs[i] = need(
			ibv_reg_mr(resources.pd, resources.memory, 4 * KIB, IBV_ACCESS_LOCAL_WRITE),
			"ibv_reg_mr");
	printf("figure user.memory-mr %ld\n", (kernels_memory() - before) * KIB / MRS);
	for (int i = 0; i < MRS; i++)
		ibv_dereg_mr(mrs[i]);
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "counts") == 0)
		counts();
	else if (argc == 2 && strcmp(argv[1], "memory") == 0)
		memory();
	else
		return 2;
	return 0;
}
