// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Queries another node through libibmad, which calls libibumad. attach_test.py compiles this
// program and runs it attached to a node. The arguments are the LID and the port GUID of the other
// node. The program prints the results of its queries.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <infiniband/mad.h>

enum { timeout_ms = 20000, short_timeout_ms = 100 };

static void fail(const char *what)
{
	printf("%s failed\n", what);
	exit(1);
}

int main(int count, char **words)
{
	int classes[] = {IB_SMI_CLASS, IB_SMI_DIRECT_CLASS, IB_SA_CLASS, IB_PERFORMANCE_CLASS};
	uint8_t data[IB_MAD_SIZE];
	if (count < 3)
		return 2;
	int lid = atoi(words[1]);
	uint64_t guid = strtoull(words[2], NULL, 0);

	struct ibmad_port *port = mad_rpc_open_port(NULL, 0, classes, 4);
	if (!port)
		fail("mad_rpc_open_port");
	ib_portid_t self = {0}, peer = {0};
	ibmad_gid_t gid;
	int number;
	if (ib_resolve_self_via(&self, &number, &gid, port))
		fail("ib_resolve_self_via");
	printf("own LID %d, port %d\n", self.lid, number);

	ib_portid_set(&peer, lid, 0, 0);
	if (!smp_query_via(data, &peer, IB_ATTR_NODE_DESC, 0, timeout_ms, port))
		fail("a query by LID");
	printf("by LID: %.64s\n", (char *)data);
	ib_portid_t neighbour = {.drpath = {.cnt = 1, .p = {0, 1}}};
	if (!smp_query_via(data, &neighbour, IB_ATTR_NODE_DESC, 0, timeout_ms, port))
		fail("a query by a directed route");
	printf("by a directed route: %.64s\n", (char *)data);

	ib_portid_set(&peer, lid, 1, IB_DEFAULT_QP1_QKEY);
	if (!pma_query_via(data, &peer, 1, timeout_ms, IB_GSI_PORT_COUNTERS, port))
		fail("a query of counters");
	printf("packets: %s\n", mad_get_field(data, 0, IB_PC_RCV_PKTS_F) ? "some" : "none");

	ib_portid_t found = {0};
	if (ib_resolve_guid_via(&found, &guid, NULL, timeout_ms, port) < 0)
		fail("a path query");
	printf("by a path query: LID %d\n", found.lid);

	ib_portid_set(&peer, 999, 0, 0); // no port has this LID
	printf("of an unused LID: %s\n",
	       smp_query_via(data, &peer, IB_ATTR_NODE_DESC, 0, short_timeout_ms, port)
		       ? "an answer"
		       : "no answer");
	mad_rpc_close_port(port);
	return 0;
}
