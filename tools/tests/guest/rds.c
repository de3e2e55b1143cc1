// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Exchanges reliable datagrams (RDS) between two guests. `rds serve ADDRESS` echoes each datagram
 * that it receives, until it is killed. `rds ask OWN-ADDRESS ADDRESS COUNT` sends COUNT datagrams
 * of many sizes, several at a time, and succeeds if each is echoed, in order and unchanged.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * A message larger than an RDS fragment, which is a page, is sent in several. Socket buffers must
 * hold all data in flight, because two programs that send without reading would wait for each
 * other.
 */
enum { port = 4000, most = 64 * 1024, window = 2, wait_ms = 60000 };

static unsigned char data[most], got[most];

static struct sockaddr_in address_of(const char *text)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};

	if (inet_pton(AF_INET, text, &address.sin_addr) != 1)
		errx(2, "%s is no address", text);
	return address;
}

static int open_socket(const char *own)
{
	const struct sockaddr_in address = address_of(own);
	const int made = socket(AF_RDS, SOCK_SEQPACKET, 0);

	if (made < 0)
		err(1, "socket");
	if (bind(made, (const struct sockaddr *)&address, sizeof(address)))
		err(1, "bind");
	return made;
}

static void wait_for(int from, short what)
{
	struct pollfd waiting = {.fd = from, .events = what};

	if (poll(&waiting, 1, wait_ms) != 1)
		errx(1, "nothing for a minute");
}

static void send_to(int to, const void *bytes, size_t size, const struct sockaddr_in *where)
{
	const ssize_t sent =
		sendto(to, bytes, size, 0, (const struct sockaddr *)where, sizeof(*where));

	if (sent != (ssize_t)size)
		err(1, "sendto");
}

/* The contents of a datagram depend on its number. */
static size_t fill(unsigned int number)
{
	const size_t size = number * 7919u % most + 1;

	for (size_t i = 0; i < size; i++)
		data[i] = (unsigned char)(number * 31 + i * 7 + (i >> 8));
	return size;
}

static void serve(const char *own)
{
	const int node = open_socket(own);

	printf("serving\n");
	fflush(stdout);
	for (;;) {
		struct sockaddr_in from;
		socklen_t length = sizeof(from);
		const ssize_t size =
			recvfrom(node, got, sizeof(got), 0, (struct sockaddr *)&from, &length);
		if (size < 0)
			err(1, "recvfrom");
		send_to(node, got, (size_t)size, &from);
	}
}

static void ask(const char *own, const char *other, unsigned int count)
{
	const struct sockaddr_in where = address_of(other);
	const int node = open_socket(own);
	unsigned int asked = 0;

	for (unsigned int answered = 0; answered < count; answered++) {
		while (asked < count && asked < answered + window) {
			const size_t size = fill(asked++);
			send_to(node, data, size, &where);
		}
		wait_for(node, POLLIN);
		const ssize_t size = recv(node, got, sizeof(got), 0);
		if (size != (ssize_t)fill(answered) || memcmp(data, got, (size_t)size) != 0)
			errx(1, "datagram %u is not what was sent", answered);
	}
	printf("answered %u\n", count);
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "serve") == 0)
		serve(argv[2]);
	else if (argc == 5 && strcmp(argv[1], "ask") == 0)
		ask(argv[2], argv[3], (unsigned int)atoi(argv[4]));
	else
		errx(2, "rds serve ADDRESS, or rds ask OWN-ADDRESS ADDRESS COUNT");
	return 0;
}
