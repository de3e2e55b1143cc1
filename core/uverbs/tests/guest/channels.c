// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Checks the rules of completion channels (CHAN-01 to CHAN-06) with stock libibverbs: three CQs on
 * all of the device's vectors share one channel, each with a QP that is connected to itself. The
 * program also checks its memory after a fork. It prints each failed check, and its exit status is
 * 1 if there is one.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CQS = 3, LONG_MS = 20000 };

static int failures;

static void expect(const char *what, long got, long expected)
{
	if (got == expected)
		return;
	printf("FAILED %s: %ld, expected %ld (%s)\n", what, got, expected, strerror(errno));
	failures++;
}

static void *need(void *pointer, const char *what)
{
	if (!pointer) {
		perror(what);
		exit(2);
	}
	return pointer;
}

static void done(int status, const char *what)
{
	if (status) {
		errno = status;
		perror(what);
		exit(2);
	}
}

struct end {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static struct ibv_comp_channel *channel;
static struct end ends[CQS];
static char memory[4096] __attribute__((aligned(4096)));

static void connect_to_itself(struct ibv_qp *qp)
{
	struct ibv_port_attr port;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};

	done(ibv_query_port(context, 1, &port), "ibv_query_port");
	done(ibv_modify_qp(qp, &attr,
			   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	     "to INIT");
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
				    .path_mtu = IBV_MTU_2048,
				    .dest_qp_num = qp->qp_num,
				    .max_dest_rd_atomic = 1,
				    .min_rnr_timer = 12,
				    .ah_attr = {.dlid = port.lid, .port_num = 1}};
	done(ibv_modify_qp(qp, &attr,
			   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				   IBV_QP_MIN_RNR_TIMER),
	     "to RTR");
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				    .timeout = 14,
				    .retry_cnt = 7,
				    .rnr_retry = 7,
				    .max_rd_atomic = 1};
	done(ibv_modify_qp(qp, &attr,
			   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				   IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
	     "to RTS");
}

static void make_end(struct end *end, int vector)
{
	end->cq = need(ibv_create_cq(context, 16, end, channel, vector), "ibv_create_cq");
	struct ibv_qp_init_attr wanted = {.send_cq = end->cq,
					  .recv_cq = end->cq,
					  .cap = {4, 4, 1, 1, 0},
					  .qp_type = IBV_QPT_RC,
					  .sq_sig_all = 1};
	end->qp = need(ibv_create_qp(pd, &wanted), "ibv_create_qp");
	connect_to_itself(end->qp);
}

static void arm(const struct end *end)
{
	done(ibv_req_notify_cq(end->cq, 0), "ibv_req_notify_cq");
}

static void complete_one(const struct end *end)
{
	struct ibv_sge sge = {(uintptr_t)memory, 8, mr->lkey};
	struct ibv_send_wr request = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE},
			   *bad;

	request.wr.rdma.remote_addr = (uintptr_t)memory + 64;
	request.wr.rdma.rkey = mr->rkey;
	done(ibv_post_send(end->qp, &request, &bad), "ibv_post_send");
}

/* Polls one completion without waiting for an event. */
static void take_one(const struct end *end)
{
	struct ibv_wc wc;
	int got;

	while ((got = ibv_poll_cq(end->cq, 1, &wc)) == 0)
		;
	expect("a completion", got == 1 && wc.status == IBV_WC_SUCCESS, 1);
}

static int is_readable(int wait_ms)
{
	struct pollfd waiting = {.fd = channel->fd, .events = POLLIN};

	return poll(&waiting, 1, wait_ms) == 1 && waiting.revents == POLLIN;
}

/* Returns the end to which the next event belongs, or NULL if no event can be read at once. */
static struct end *read_event(void)
{
	struct ibv_cq *cq;
	void *whose;

	if (ibv_get_cq_event(channel, &cq, &whose))
		return NULL;
	expect("the event's CQ to be its context's", cq == ((struct end *)whose)->cq, 1);
	return whose;
}

/*
 * CHAN-02, CHAN-04: one channel serves CQs of any vector; each event is reported once, and only for
 * armed CQs.
 */
static void try_one_channel(void)
{
	int seen[CQS] = {};

	expect("an event of what is not armed", is_readable(0), 0);
	complete_one(&ends[0]);
	take_one(&ends[0]);
	expect("a completion of what is not armed to be told", is_readable(0), 0);
	for (int i = 0; i < CQS; i++) {
		arm(&ends[i]);
		/* Arming twice causes only one event. */
		arm(&ends[i]);
		complete_one(&ends[i]);
	}
	for (int i = 0; i < CQS; i++) {
		expect("an event to come", is_readable(LONG_MS), 1);
		struct end *whose = need(read_event(), "an event");
		seen[whose - ends]++;
		ibv_ack_cq_events(whose->cq, 1);
		take_one(whose);
	}
	for (int i = 0; i < CQS; i++)
		expect("events of a CQ", seen[i], 1);
	expect("one more event", is_readable(0), 0);
	errno = 0;
	expect("the read of one more", read_event() == NULL && errno == EAGAIN, 1);
}

/* --- several readers: each event is one reader's --- */

static int number_of_syscall(pid_t thread)
{
	char path[64], text[64] = "";
	FILE *file;
	int number = -1;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", thread);
	file = fopen(path, "r");
	if (!file)
		return -1;
	if (fgets(text, sizeof(text), file) && sscanf(text, "%d", &number) != 1)
		number = -1; /* "running" */
	fclose(file);
	return number;
}

/* Waits until a thread sleeps within that system call. */
static void wait_asleep(const atomic_int *thread, int syscall_number)
{
	while (atomic_load(thread) == 0 || number_of_syscall(atomic_load(thread)) != syscall_number)
		usleep(1000);
}

struct reader {
	pthread_t thread;
	atomic_int id;
	struct end *got;
};

static void *read_one(void *context_)
{
	struct reader *reader = context_;

	atomic_store(&reader->id, (int)syscall(SYS_gettid));
	reader->got = read_event();
	return NULL;
}

static void try_several_readers(void)
{
	static struct reader all[CQS];
	int seen[CQS] = {};

	fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) & ~O_NONBLOCK);
	for (int i = 0; i < CQS; i++) {
		done(pthread_create(&all[i].thread, NULL, read_one, &all[i]), "pthread_create");
		wait_asleep(&all[i].id, SYS_read);
	}
	for (int i = 0; i < CQS; i++) {
		arm(&ends[i]);
		complete_one(&ends[i]);
	}
	for (int i = 0; i < CQS; i++) {
		pthread_join(all[i].thread, NULL);
		need(all[i].got, "a reader's event");
		seen[all[i].got - ends]++;
		ibv_ack_cq_events(all[i].got->cq, 1);
		take_one(all[i].got);
	}
	for (int i = 0; i < CQS; i++)
		expect("readers of a CQ's event", seen[i], 1);
	fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK);
}

/* CHAN-04: a program that wants a signal gets it. */
static void try_signal(void)
{
	const struct timespec longest = {.tv_sec = LONG_MS / 1000};
	sigset_t wanted;

	sigemptyset(&wanted);
	sigaddset(&wanted, SIGIO);
	sigprocmask(SIG_BLOCK, &wanted, NULL);
	fcntl(channel->fd, F_SETOWN, getpid());
	fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_ASYNC);
	arm(&ends[1]);
	complete_one(&ends[1]);
	expect("SIGIO", sigtimedwait(&wanted, NULL, &longest), SIGIO);
	fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) & ~O_ASYNC);
	expect("whose it was", read_event() == &ends[1], 1);
	ibv_ack_cq_events(ends[1].cq, 1);
	take_one(&ends[1]);
}

/* --- CHAN-05: the library waits for the acknowledgement, and not the kernel --- */

static atomic_int destroyer;
static atomic_int destroyed;

static void *destroy(void *cq)
{
	atomic_store(&destroyer, (int)syscall(SYS_gettid));
	expect("ibv_destroy_cq", ibv_destroy_cq(cq), 0);
	atomic_store(&destroyed, 1);
	return NULL;
}

static void try_destruction(void)
{
	struct end *end = &ends[2];
	pthread_t thread;

	arm(end);
	complete_one(end);
	expect("an event to come", is_readable(LONG_MS), 1);
	expect("whose it is", read_event() == end, 1);
	take_one(end);
	/* One event is read. Another one is not, and is dropped when the CQ is destroyed. */
	arm(end);
	complete_one(end);
	expect("an event that nobody reads", is_readable(LONG_MS), 1);
	take_one(end);
	done(ibv_destroy_qp(end->qp), "ibv_destroy_qp");
	done(pthread_create(&thread, NULL, destroy, end->cq), "pthread_create");
	wait_asleep(&destroyer, SYS_futex);
	expect("an event of what the kernel has no more", is_readable(0), 0);
	expect("an end before the acknowledgement", atomic_load(&destroyed), 0);
	ibv_ack_cq_events(end->cq, 1);
	pthread_join(thread, NULL);
}

/*
 * --- after a fork, memory that the device uses stays with the parent, whichever process writes
 * first ---
 */

static void try_fork(void)
{
	int hold[2];
	char byte;

	expect("pipe", pipe(hold), 0);
	const pid_t child = fork();
	if (child == 0) {
		close(hold[1]);
		/* The child writes to its copy, which no other process sees. */
		memory[0] = 3;
		_exit(read(hold[0], &byte, 1) == 0 ? 0 : 1);
	}
	/* Both processes share the page; a write of the parent must not give it a copy. */
	memory[0] = 2;
	memory[64] = 0;
	complete_one(&ends[0]);
	take_one(&ends[0]);
	expect("what the device read and wrote", memory[64], 2);
	close(hold[1]);
	close(hold[0]);
	expect("the child", waitpid(child, NULL, 0), child);
}

int main(void)
{
	struct ibv_device **devices = need(ibv_get_device_list(NULL), "ibv_get_device_list");

	context = need(ibv_open_device(need(devices[0], "a device")), "ibv_open_device");
	pd = need(ibv_alloc_pd(context), "ibv_alloc_pd");
	mr = need(ibv_reg_mr(pd, memory, sizeof(memory),
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE),
		  "ibv_reg_mr");
	channel = need(ibv_create_comp_channel(context), "ibv_create_comp_channel");
	fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK);
	expect("the device's vectors", context->num_comp_vectors, 2);
	for (int vector = 0; vector < CQS; vector++)
		make_end(&ends[vector], vector % context->num_comp_vectors);
	/* CHAN-01 */
	errno = 0;
	expect("a vector that there is not",
	       ibv_create_cq(context, 16, NULL, channel, context->num_comp_vectors) == NULL &&
		       errno == EINVAL,
	       1);
	errno = 0;
	expect("the end of a channel with CQs", ibv_destroy_comp_channel(channel), EBUSY);

	try_one_channel();
	try_several_readers();
	try_signal();
	try_fork();
	try_destruction();
	return failures ? 1 : 0;
}
