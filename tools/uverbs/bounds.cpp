// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// What one user may have of a device: so many of each, and no more, as another user still may
// (Documentation/user-verbs.rst, "Bounds").
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "uverbs/program.hpp"
#include "uverbs/provider.hpp"

namespace weft::uverbs
{

namespace
{

constexpr unsigned contexts_max = 256, pds_max = 4096, event_files_max = 2048,
		   attachments_max = 1024, chain_max = 24;

/* Whether another user can do so, who has nothing yet. */
template<class Act>
bool another_can(Act act)
{
	const pid_t child = fork();
	if (child == 0)
		_exit(setuid(65534) == 0 && act() ? 0 : 1);
	int status = 1;
	waitpid(child, &status, 0);
	return status == 0;
}

void try_contexts()
{
	std::vector<Program> programs(contexts_max);

	Program more(false);
	expect("a context more than a user may have", more.make_context(), EDQUOT);
	expect("a context of another user",
	       another_can([] { return Program(false).make_context() == 0; }), 1);
	programs.pop_back();
	expect("a context in place of another", more.make_context(), 0);
}

void try_pds()
{
	const Program one, other;
	std::uint32_t pd = 0;
	long failed = 0;

	for (unsigned i = 0; i < pds_max; i++)
		failed |= (i % 2 ? one : other).alloc_pd(pd);
	expect("as many PDs as a user may have, of two files", failed, 0);
	expect("a PD more", one.alloc_pd(pd), EDQUOT);
	expect("a PD of another user", another_can([] {
		       const Program own;
		       std::uint32_t made;
		       return own.alloc_pd(made) == 0;
	       }),
	       1);
	expect("DEALLOC_PD", other.dealloc_pd(0), 0);
	expect("a PD in place of another", one.alloc_pd(pd), 0);
	expect("a PD more", other.alloc_pd(pd), EDQUOT);
}

/* Each file has one for its asynchronous events. */
void try_event_files()
{
	const rlimit open_files = {.rlim_cur = event_files_max + 256,
				   .rlim_max = event_files_max + 256};
	expect("setrlimit", error_of(::setrlimit(RLIMIT_NOFILE, &open_files)), 0);
	const Program one, other;
	std::vector<Descriptor> channels(event_files_max - 2);
	long failed = 0;

	for (std::size_t i = 0; i < channels.size(); i++)
		failed |= (i % 2 ? one : other).create_channel(channels[i]);
	expect("as many channels as a user may have, of two files", failed, 0);
	Descriptor more;
	expect("a channel more", one.create_channel(more), EDQUOT);
	channels.pop_back();
	expect("a channel in place of another", one.create_channel(more), 0);
}

/* A UD QP, for groups. */
struct Datagrams {
	Program program;
	std::uint32_t pd = 0, cq = 0, qp = 0;

	Datagrams()
	{
		expect("ALLOC_PD", program.alloc_pd(pd), 0);
		expect("CREATE_CQ", program.create_cq(-1, cq), 0);
		expect("CREATE_QP", program.create_qp(pd, cq, qp, qp_type_ud), 0);
	}
};

void try_attachments()
{
	const Datagrams own;
	long failed = 0;

	const auto group = [](unsigned number) {
		return MulticastGid{0xff, 0x12, 0, static_cast<std::uint8_t>(number >> 8),
				    static_cast<std::uint8_t>(number)};
	};
	for (unsigned i = 0; i < attachments_max; i++)
		failed |= own.program.attach(own.qp, 0xc000, group(i));
	expect("as many attachments as a user may have", failed, 0);
	expect("an attachment more", own.program.attach(own.qp, 0xc000, group(attachments_max)),
	       EDQUOT);
	expect("one that is there", own.program.attach(own.qp, 0xc000, group(0)), 0);
}

/* So many of a user's QPs, of two files, are in one group; another's still find room there. */
void try_a_group()
{
	const Datagrams one, other;
	const unsigned group_max = Provider::of_node().members_of_a_group();
	std::vector<std::uint32_t> qps(group_max + 1);
	long failed = 0;

	for (unsigned i = 0; i <= group_max; i++) {
		const Datagrams &its = i % 2 ? one : other;
		expect("CREATE_QP", its.program.create_qp(its.pd, its.cq, qps[i], qp_type_ud), 0);
		if (i < group_max)
			failed |= its.program.attach(qps[i], 0xc000);
	}
	expect("as many in a group as a user may have", failed, 0);
	expect("a QP more in the group", other.program.attach(qps[group_max], 0xc000), EDQUOT);
	expect("another user's QP", another_can([] {
		       const Datagrams own;
		       return own.program.attach(own.qp, 0xc000) == 0;
	       }),
	       1);
}

/* The card's own function (MGID_HASH), over the places that the driver gives it. */
unsigned hash(const MulticastGid &gid)
{
	std::uint32_t value = 0x811c9dc5;

	for (const std::uint8_t byte : gid)
		value = (value ^ byte) * 0x01000193;
	return (value ^ value >> 16) % 4096;
}

void try_chain()
{
	const Datagrams own;
	MulticastGid gid{0xff, 0x12};
	unsigned found = 0;
	long failed = 0;

	for (std::uint32_t number = 0; found <= chain_max; number++) {
		std::memcpy(gid.data() + 12, &number, sizeof(number));
		if (hash(gid) != 0x123)
			continue;
		found++;
		if (found <= chain_max)
			failed |= own.program.attach(own.qp, 0xc000, gid);
	}
	expect("as many groups of a chain as programs may begin", failed, 0);
	expect("a group more in the chain", own.program.attach(own.qp, 0xc000, gid), ENOMEM);
	gid[15] ^= 1;
	expect("a group elsewhere", own.program.attach(own.qp, 0xc000, gid), 0);
}

} // namespace

void try_shares()
{
	try_contexts();
	try_pds();
	try_event_files();
	try_attachments();
	try_a_group();
	try_chain();
}

} // namespace weft::uverbs
