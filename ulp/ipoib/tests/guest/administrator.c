// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Performs the actions of administration tests that need more than a shell: packet sockets,
 * hundreds of multicast groups, XDP. Prints "ok", or the name of the errno that Linux returned.
 *
 *	administrator packet IFACE raw|dgram LENGTH [HEXADDRESS]   sends zeros, by send() on a bound socket, or by sendto() an address
 *	administrator listen IFACE GROUP COUNT                     joins COUNT groups from GROUP on, reports that, and runs until it is killed
 *	administrator receive IFACE GROUP                          joins and prints the first datagram to port 4791
 *	administrator send IFACE GROUP COUNT                       sends a datagram to port 4791 of each of COUNT groups from GROUP on
 *	administrator checksums IFACE                              receives one UDP packet: prints "valid" if the interface has verified its checksum
 *	administrator xdp IFACE                                    attaches a program that passes all packets, reports that, and runs until it is killed
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { port = 4791, groups_a_socket = 20 /* net.ipv4.igmp_max_memberships */, address_max = 32 };

static int outcome(long result)
{
	puts(result < 0 ? strerrorname_np(errno) : "ok");
	fflush(stdout);
	return 0;
}

static int needs(long result, const char *what)
{
	if (result >= 0)
		return (int)result;
	fprintf(stderr, "%s: %s\n", what, strerrorname_np(errno));
	exit(2);
}

static int packet(int index, const char *kind, size_t length, const char *hex)
{
	/* A hardware address of InfiniBand is longer than the structure's. */
	union {
		struct sockaddr_ll ll;
		uint8_t bytes[sizeof(struct sockaddr_ll) - 8 + address_max];
	} to = {.ll = {.sll_family = AF_PACKET,
		       .sll_protocol = htons(ETH_P_IP),
		       .sll_ifindex = index}};
	static const uint8_t zeros[65536];
	const int fd = needs(
		socket(AF_PACKET, strcmp(kind, "raw") ? SOCK_DGRAM : SOCK_RAW, htons(ETH_P_IP)),
		"socket");

	if (!hex) {
		needs(bind(fd, (struct sockaddr *)&to.ll, sizeof(to.ll)), "bind");
		return outcome(send(fd, zeros, length, 0));
	}
	for (; hex[0] && hex[1] && to.ll.sll_halen < address_max; hex += 2) {
		unsigned int byte;

		if (sscanf(hex, "%2x", &byte) != 1)
			break;
		to.bytes[offsetof(struct sockaddr_ll, sll_addr) + to.ll.sll_halen++] =
			(uint8_t)byte;
	}
	return outcome(sendto(fd, zeros, length, 0, (struct sockaddr *)&to, sizeof(to)));
}

static struct in_addr group_at(const char *first, unsigned int number)
{
	return (struct in_addr){htonl(ntohl(inet_addr(first)) + number)};
}

static int listen_to(int index, const char *first, unsigned int count)
{
	int fd = -1;

	for (unsigned int i = 0; i < count; i++) {
		const struct ip_mreqn request = {.imr_multiaddr = group_at(first, i),
						 .imr_ifindex = index};

		if (i % groups_a_socket == 0)
			fd = needs(socket(AF_INET, SOCK_DGRAM, 0), "socket");
		if (setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof(request)) < 0)
			return outcome(-1);
	}
	outcome(0);
	return pause();
}

static int receive(int index, const char *group)
{
	const struct ip_mreqn request = {.imr_multiaddr = group_at(group, 0), .imr_ifindex = index};
	const struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(port)};
	const int fd = needs(socket(AF_INET, SOCK_DGRAM, 0), "socket");
	char text[64];

	needs(bind(fd, (const struct sockaddr *)&here, sizeof(here)), "bind");
	needs(setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof(request)), "join");
	puts("joined");
	fflush(stdout);
	printf("%.*s\n", (int)needs(recv(fd, text, sizeof(text), 0), "recv"), text);
	return 0;
}

static int send_to(int index, const char *first, unsigned int count)
{
	const struct ip_mreqn from = {.imr_ifindex = index};
	const int fd = needs(socket(AF_INET, SOCK_DGRAM, 0), "socket");

	needs(setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &from, sizeof(from)), "interface");
	for (unsigned int i = 0; i < count; i++) {
		const struct sockaddr_in to = {.sin_family = AF_INET,
					       .sin_port = htons(port),
					       .sin_addr = group_at(first, i)};

		if (sendto(fd, "hello", 5, 0, (const struct sockaddr *)&to, sizeof(to)) < 0)
			return outcome(-1);
	}
	return outcome(0);
}

static int checksums(int index)
{
	const struct sockaddr_ll here = {
		.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP), .sll_ifindex = index};
	const int fd = needs(socket(AF_PACKET, SOCK_DGRAM, htons(ETH_P_IP)), "socket"), on = 1;

	needs(setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &on, sizeof(on)), "auxdata");
	needs(bind(fd, (const struct sockaddr *)&here, sizeof(here)), "bind");
	puts("listening");
	fflush(stdout);
	for (;;) {
		struct sockaddr_ll from;
		struct iphdr header;
		struct iovec data = {&header, sizeof(header)};
		union {
			struct cmsghdr first;
			char bytes[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
		} control;
		struct msghdr message = {.msg_name = &from,
					 .msg_namelen = sizeof(from),
					 .msg_iov = &data,
					 .msg_iovlen = 1,
					 .msg_control = &control,
					 .msg_controllen = sizeof(control)};
		struct tpacket_auxdata found;

		needs(recvmsg(fd, &message, 0), "recvmsg");
		if (from.sll_pkttype == PACKET_OUTGOING || header.protocol != IPPROTO_UDP)
			continue;
		memcpy(&found, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(found));
		puts(found.tp_status & TP_STATUS_CSUM_VALID ? "valid" : "not looked at");
		return 0;
	}
}

static int xdp(int index)
{
	const struct bpf_insn pass[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = XDP_PASS},
		{.code = BPF_JMP | BPF_EXIT},
	};
	union bpf_attr program = {.prog_type = BPF_PROG_TYPE_XDP,
				  .insns = (uintptr_t)pass,
				  .insn_cnt = 2,
				  .license = (uintptr_t)"GPL"};
	long fd = syscall(SYS_bpf, BPF_PROG_LOAD, &program, sizeof(program));
	union bpf_attr link = {
		.link_create = {.attach_type = BPF_XDP, .flags = XDP_FLAGS_SKB_MODE}};

	if (fd < 0)
		return outcome(fd);
	link.link_create.prog_fd = (uint32_t)fd;
	link.link_create.target_ifindex = (uint32_t)index;
	fd = syscall(SYS_bpf, BPF_LINK_CREATE, &link, sizeof(link));
	outcome(fd);
	return fd < 0 ? 0 : pause();
}

int main(int argc, char **argv)
{
	const char *command = argc > 2 ? argv[1] : "";
	const int index = argc > 2 ? (int)if_nametoindex(argv[2]) : 0;

	if (argc > 2 && !index)
		return outcome(-1);
	if (!strcmp(command, "packet") && argc >= 5)
		return packet(index, argv[3], strtoul(argv[4], NULL, 0), argc > 5 ? argv[5] : NULL);
	if (!strcmp(command, "listen") && argc == 5)
		return listen_to(index, argv[3], (unsigned int)atoi(argv[4]));
	if (!strcmp(command, "receive") && argc == 4)
		return receive(index, argv[3]);
	if (!strcmp(command, "send") && argc == 5)
		return send_to(index, argv[3], (unsigned int)atoi(argv[4]));
	if (!strcmp(command, "checksums") && argc == 3)
		return checksums(index);
	if (!strcmp(command, "xdp") && argc == 3)
		return xdp(index);
	fprintf(stderr, "usage: see the head of administrator.c\n");
	return 2;
}
