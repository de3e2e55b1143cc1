// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Sends UDP datagrams as fast as the socket accepts them, or counts those that arrive. The
 * program's own cost is so small that the result is the cost of the kernel.
 *
 *	datagrams send ADDRESS BYTES COUNT	COUNT datagrams of BYTES to ADDRESS, port 9000; the last ones carry a mark, after
 *						which the receiver ends
 *	datagrams receive			prints "COUNT NANOSECONDS" of the received datagrams, from first to last
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { port = 9000, batch = 32, largest = 2048, last_ones = 64 };
static const char last_mark = 'L';

static long long now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ll + time.tv_nsec;
}

static int open_socket(struct sockaddr_in *address)
{
	const int buffer = 4 << 20;
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		err(1, "socket");
	address->sin_family = AF_INET;
	address->sin_port = htons(port);
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof(buffer)))
		err(1, "SO_RCVBUFFORCE");
	return fd;
}

static void prepare(struct mmsghdr *messages, struct iovec *vectors, char *data, size_t bytes)
{
	for (int i = 0; i < batch; i++) {
		vectors[i] = (struct iovec){data + i * largest, bytes};
		messages[i].msg_hdr = (struct msghdr){.msg_iov = &vectors[i], .msg_iovlen = 1};
	}
}

static void send_all(int fd, struct mmsghdr *messages, long count)
{
	while (count > 0) {
		const int sent = sendmmsg(fd, messages, count < batch ? count : batch, 0);
		if (sent < 0)
			err(1, "sendmmsg");
		count -= sent;
	}
}

static void send_datagrams(const char *to, size_t bytes, long count)
{
	static char data[batch * largest];
	struct mmsghdr messages[batch] = {0};
	struct iovec vectors[batch];
	struct sockaddr_in address = {0};
	const int fd = open_socket(&address);

	if (bytes < 1 || bytes > largest || inet_pton(AF_INET, to, &address.sin_addr) != 1)
		errx(2, "an address, and 1 to %d bytes", largest);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)))
		err(1, "connect");
	prepare(messages, vectors, data, bytes);
	send_all(fd, messages, count);
	/* The mark is sent several times, because the receiver's socket buffer may be full. */
	memset(data, last_mark, sizeof(data));
	for (int i = 0; i < last_ones; i++) {
		usleep(5000);
		/* The receiver has read an earlier mark and exited. */
		if (sendmmsg(fd, messages, 1, 0) < 0 && errno == ECONNREFUSED)
			break;
	}
}

static void receive_datagrams(void)
{
	static char data[batch * largest];
	struct mmsghdr messages[batch] = {0};
	struct iovec vectors[batch];
	struct sockaddr_in address = {.sin_addr.s_addr = htonl(INADDR_ANY)};
	const int fd = open_socket(&address);
	long long first = 0, last = 0;
	long count = 0;

	if (bind(fd, (struct sockaddr *)&address, sizeof(address)))
		err(1, "bind");
	prepare(messages, vectors, data, largest);
	for (;;) {
		const int got = recvmmsg(fd, messages, batch, MSG_WAITFORONE, NULL);
		if (got < 0)
			err(1, "recvmmsg");
		int ended = 0;
		for (int i = 0; i < got; i++)
			ended |= data[i * largest] == last_mark;
		if (ended)
			break;
		last = now();
		if (!first)
			first = last;
		count += got;
	}
	printf("%ld %lld\n", count, last - first);
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "send"))
		send_datagrams(argv[2], strtoul(argv[3], NULL, 0), strtol(argv[4], NULL, 0));
	else if (argc == 2 && !strcmp(argv[1], "receive"))
		receive_datagrams();
	else
		errx(2, "usage: datagrams send ADDRESS BYTES COUNT | datagrams receive");
	return 0;
}
