// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Checks the lifetimes of objects: files are closed in any order with all their objects, programs
// are killed, and a device is removed.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <vector>

#include "tests/uverbs_probe/program.hpp"

namespace weft::uverbs
{

namespace
{

/* One object of each kind, with their dependencies. */
struct Made {
	std::uint32_t pd, cq, qp, datagrams, mr;
	Descriptor channel;
	char *uar;
};
char memory[8192] __attribute__((aligned(4096)));

/* IBV_EVENT_DEVICE_FATAL, of the library's header. */
constexpr std::uint32_t kDeviceFatal = 8;

Made make(const Program &program)
{
	Made made{};

	expect("ALLOC_PD", program.alloc_pd(made.pd), 0);
	expect("CREATE_COMP_CHANNEL", program.create_channel(made.channel), 0);
	expect("CREATE_CQ", program.create_cq(made.channel.number(), made.cq), 0);
	expect("CREATE_QP", program.create_qp(made.pd, made.cq, made.qp), 0);
	expect("CREATE_QP", program.create_qp(made.pd, made.cq, made.datagrams, kQpTypeUd), 0);
	/* The card identifies the group by its GID, so it attaches the QP once. */
	for (const std::uint16_t lid : {0xc000, 0xc001})
		expect("ATTACH_MCAST", program.attach(made.datagrams, lid), 0);
	expect("REG_MR", program.register_memory(made.pd, memory, sizeof(memory), made.mr), 0);
	void *mapped = mmap(nullptr, 4096, PROT_WRITE, MAP_SHARED, program.number(), 0);
	expect("mmap of the UAR", mapped == MAP_FAILED ? errno : 0, 0);
	made.uar = static_cast<char *>(mapped);
	return made;
}

/* The ways in which a program may end: which file it closes first, and whether it closes them. */
void leave(Program program, Made made, unsigned how)
{
	if (how & 1)
		program.close_events();
	if (how & 2)
		made.channel.reset();
	if (how & 4)
		program.close();
	if (how & 8)
		munmap(made.uar, 4096);
}

} // namespace

void try_ends()
{
	for (unsigned how = 0; how < 16; how++) {
		Program program;
		Made made = make(program);
		char *const uar = made.uar;
		leave(std::move(program), std::move(made), how);
		if (!(how & 8))
			munmap(uar, 4096);
	}

	/* The exits of the parent and of the child do not affect each other. */
	const Program program;
	Made made = make(program);
	const pid_t child = fork();
	if (child == 0)
		_exit(0);
	int status;
	waitpid(child, &status, 0);
	expect("a child that ends leaves the parent's QP alone", program.destroy_qp(made.qp), 0);

	/* Children are killed while they create objects. */
	for (int i = 0; i < 8; i++) {
		int ready[2];
		if (pipe(ready))
			return;
		const pid_t victim = fork();
		if (victim == 0) {
			for (;;) {
				const Program own;
				const Made all = make(own);
				if (::write(ready[1], "", 1) < 0)
					_exit(1);
				munmap(all.uar, 4096);
			}
		}
		char byte;
		expect("a victim to work", ::read(ready[0], &byte, 1), 1);
		kill(victim, SIGKILL);
		waitpid(victim, &status, 0);
		::close(ready[0]);
		::close(ready[1]);
	}
}

namespace
{

/* Waits until the test that started this program writes a line. */
void wait_for_a_line()
{
	char line[16];

	std::puts("ready");
	std::fflush(stdout);
	if (!std::fgets(line, sizeof(line), stdin))
		expect("a line to go on", 0, 1);
}

} // namespace

void stay()
{
	const Program program;
	const Made made = make(program);

	wait_for_a_line();
	munmap(made.uar, 4096);
}

void stay_in_group()
{
	const Program program;
	std::uint32_t pd, cq, qp;

	expect("ALLOC_PD", program.alloc_pd(pd), 0);
	expect("CREATE_CQ", program.create_cq(-1, cq), 0);
	expect("CREATE_QP", program.create_qp(pd, cq, qp, kQpTypeUd), 0);
	expect("ATTACH_MCAST", program.attach(qp, 0xc000), 0);
	wait_for_a_line();
}

void outlive_device()
{
	const Program program;
	const Program without(false);
	Made made = make(program);
	char line[16];
	ib_uverbs_async_event_desc event{};
	ib_uverbs_destroy_cq_resp answer;
	std::uint32_t handle;

	/* Accesses the page, so that the kernel has to remove it from the mapping. */
	volatile auto *uar = reinterpret_cast<volatile std::uint32_t *>(made.uar);
	(void)uar[0];
	wait_for_a_line();

	expect("a command after the device", program.alloc_pd(handle), EIO);
	expect("a first command after the device", without.alloc_pd(handle), EIO);
	expect("opened again", error_of(open(kNode, O_RDWR)), ENOENT);
	const std::string again = "/proc/self/fd/" + std::to_string(program.number());
	expect("opened again by its descriptor", error_of(open(again.c_str(), O_RDWR)), ENXIO);

	/* The mapping no longer leads to registers. */
	uar[5] = 0x5eed;
	expect("a mapping is nobody's memory", uar[5], 0x5eed);
	expect("mmap after the device",
	       mmap(nullptr, 4096, PROT_WRITE, MAP_SHARED, program.number(), 0) == MAP_FAILED
		       ? errno
		       : 0,
	       EIO);

	/* There may be earlier events of the port. */
	do
		expect("an asynchronous event", ::read(program.events(), &event, sizeof(event)),
		       sizeof(event));
	while (event.event_type != kDeviceFatal && !failures());
	fcntl(program.events(), F_SETFL, O_NONBLOCK);
	expect("the device's end is the last",
	       error_of(::read(program.events(), &event, sizeof(event))), EAGAIN);
	pollfd waiting = {.fd = made.channel.number(), .events = POLLIN, .revents = 0};
	expect("poll of the channel", ::poll(&waiting, 1, 0), 1);
	expect("its answer", waiting.revents, POLLERR);
	expect("read of the channel", error_of(::read(made.channel.number(), line, 8)), EIO);

	/* Objects are destroyed as usual. */
	expect("a PD that is used", program.dealloc_pd(made.pd), EBUSY);
	expect("DESTROY_QP", program.destroy_qp(made.qp), 0);
	expect("DESTROY_QP", program.destroy_qp(made.datagrams), 0);
	expect("DESTROY_CQ", program.destroy_cq(made.cq, answer), 0);
	expect("DEREG_MR", program.deregister_memory(made.mr), 0);
	expect("DEALLOC_PD", program.dealloc_pd(made.pd), 0);
	munmap(made.uar, 4096);
}

void outlive_with_many()
{
	constexpr unsigned pds = 250, regions = 250, cqs = 250, qps = 250;
	const Program program;
	std::vector<std::uint32_t> pd(pds), mr(regions), cq(cqs), qp(qps);
	ib_uverbs_destroy_cq_resp answer;

	for (unsigned i = 0; i < pds; i++) {
		expect("ALLOC_PD", program.alloc_pd(pd[i]), 0);
		expect("REG_MR", program.register_memory(pd[i], memory, sizeof(memory), mr[i]), 0);
		expect("CREATE_CQ", program.create_cq(-1, cq[i]), 0);
		expect("CREATE_QP", program.create_qp(pd[i], cq[i / 2], qp[i]), 0);
	}
	wait_for_a_line();
	expect("a command after the device", program.alloc_pd(pd[0]), EIO);
	pd[0] = 0;
	for (unsigned i = 0; i < pds; i++) {
		expect("a PD that is used", program.dealloc_pd(pd[i]), EBUSY);
		expect("DESTROY_QP", program.destroy_qp(qp[i]), 0);
		expect("DEREG_MR", program.deregister_memory(mr[i]), 0);
		expect("DEALLOC_PD", program.dealloc_pd(pd[i]), 0);
	}
	for (const std::uint32_t one : cq)
		expect("DESTROY_CQ", program.destroy_cq(one, answer), 0);
}

} // namespace weft::uverbs
