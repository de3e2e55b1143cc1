// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Checks the limits on the objects that users can create on a device: one user cannot take all of
// them, all users together cannot take those reserved for root, and objects created in a user's own
// user namespaces are charged to that user (Documentation/user-verbs.rst, "Bounds").
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/uverbs_probe/program.hpp"
#include "tests/uverbs_probe/provider.hpp"

namespace weft::uverbs
{

namespace
{

constexpr uid_t kSomebody = 65534, kSomebodyElse = 65533;
constexpr unsigned kChainMax = 24;

/* Another process, which calls a function and then waits for the end of this object. */
class Companion
{
public:
	/* @act is the function that the process calls. result() returns its result. */
	explicit Companion(const std::function<long()> &act)
	{
		std::array<int, 2> answers{}, go{};
		if (pipe(answers.data()) || pipe(go.data()))
			return;
		std::fflush(stdout);
		pid_ = fork();
		if (pid_ == 0) {
			close(go[1]);
			close(answers[0]);
			const long done = act();
			char byte;
			if (::write(answers[1], &done, sizeof(done)) == sizeof(done))
				(void)!::read(go[0], &byte, 1);
			if (at_end)
				at_end();
			std::fflush(stdout);
			_exit(failures() ? 1 : 0);
		}
		close(answers[1]);
		close(go[0]);
		answers_ = Descriptor(answers[0]);
		go_ = Descriptor(go[1]);
	}
	Companion(const Companion &) = delete;
	Companion &operator=(const Companion &) = delete;
	~Companion()
	{
		go_.reset();
		int status = 1;
		if (pid_ > 0)
			waitpid(pid_, &status, 0);
		expect("the status of another process", status, 0);
	}

	/* A function that the process calls before it exits. */
	static inline std::function<void()> at_end;

	pid_t pid() const { return pid_; }
	/* Waits for the result of the process. */
	long result()
	{
		long done = -1;
		expect("an answer of another process",
		       ::read(answers_.number(), &done, sizeof(done)), sizeof(done));
		return done;
	}

private:
	pid_t pid_ = -1;
	Descriptor answers_, go_;
};

ib_uverbs_query_device_resp limits_of_device()
{
	const Program program;
	ib_uverbs_query_device_resp limits{};

	expect("QUERY_DEVICE",
	       program.command(IB_USER_VERBS_CMD_QUERY_DEVICE, ib_uverbs_query_device{}, limits),
	       0);
	return limits;
}

/* Allocates objects until an error occurs, which must be the expected one. Returns their number. */
long take_all(const std::string &what, long expected, const std::function<long()> &take)
{
	long count = 0, error;

	while (!(error = take()))
		count++;
	expect(what + " beyond all that can be had", error, expected);
	return count;
}

long take_pds(const Program &program, long expected)
{
	std::uint32_t pd;
	return take_all("a PD", expected, [&] { return program.alloc_pd(pd); });
}

/* Allocates PDs as another user. They exist until the process exits. */
long take_pds_as(uid_t user)
{
	expect("setuid", error_of(setuid(user)), 0);
	static std::unique_ptr<const Program> program;
	program = std::make_unique<const Program>();
	return take_pds(*program, EDQUOT);
}

bool is_about(long got, long expected)
{
	return got > expected - expected / 8 && got < expected + expected / 8;
}

/*
 * One user gets about a half, the next about a half of the rest; root then gets all that the device
 * says that it has, except the few PDs of the kernel.
 */
void try_pds()
{
	const long all = limits_of_device().max_pd;
	Companion one([] { return take_pds_as(kSomebody); });
	const long of_one = one.result();
	expect("a half of the PDs for one user", is_about(of_one, all * 15 / 32), 1);
	Companion other([] { return take_pds_as(kSomebodyElse); });
	const long of_other = other.result();
	expect("a quarter of the PDs for the next user", is_about(of_other, all * 15 / 64), 1);
	const Program privileged;
	const long rest = take_pds(privileged, ENOMEM);
	expect("all PDs that the device has, with root's",
	       of_one + of_other + rest > all - 64 && of_one + of_other + rest <= all, 1);
}

/* Maps all UIDs of a namespace to the range of an unprivileged user, as newuidmap(1) does. */
bool map_users(pid_t pid)
{
	const std::string directory = "/proc/" + std::to_string(pid);
	const Descriptor map(::open((directory + "/uid_map").c_str(), O_WRONLY));
	const std::string users = "0 100000 65536";

	return ::write(map.number(), users.data(), users.size()) ==
	       static_cast<ssize_t>(users.size());
}

/*
 * All UIDs of a user's own namespace and the user outside of it share one quota. When they have
 * used it up, other users and root can still allocate as much as before.
 */
void try_user_namespace()
{
	const long all = limits_of_device().max_pd;
	std::array<int, 2> ready{}, mapped{};
	expect("pipes", pipe(ready.data()) || pipe(mapped.data()), 0);
	Companion contained([&] {
		char byte = 0;
		expect("setuid", error_of(setuid(kSomebody)), 0);
		expect("unshare", error_of(unshare(CLONE_NEWUSER)), 0);
		if (::write(ready[1], &byte, 1) != 1 || ::read(mapped[0], &byte, 1) != 1)
			return -1L;
		static std::vector<std::unique_ptr<Companion>> users;
		/*
		 * The last process ends first, because each has inherited the descriptors of the
		 * earlier ones.
		 */
		Companion::at_end = [] {
			while (!users.empty())
				users.pop_back();
		};
		long sum = 0;
		for (uid_t user = 0; user < 8; user++) {
			users.push_back(std::make_unique<Companion>([user] {
				Companion::at_end = nullptr;
				return take_pds_as(user);
			}));
			sum += users.back()->result();
		}
		return sum;
	});
	char byte = 0;
	expect("a namespace", ::read(ready[0], &byte, 1), 1);
	expect("its UIDs", map_users(contained.pid()), 1);
	expect("go", ::write(mapped[1], &byte, 1), 1);
	expect("a half of the PDs for all UIDs of a namespace",
	       is_about(contained.result(), all * 15 / 32), 1);
	Companion outside([] { return take_pds_as(kSomebody); });
	expect("a PD for the owner of the namespace", outside.result(), 0);
	Companion other([] { return take_pds_as(kSomebodyElse); });
	expect("a quarter of the PDs for another user", is_about(other.result(), all * 15 / 64), 1);
	const Program privileged;
	std::uint32_t pd;
	expect("a PD for root", privileged.alloc_pd(pd), 0);
	for (const int end : {ready[0], ready[1], mapped[0], mapped[1]})
		close(end);
}

/* Tests the limits of contexts and channels with a user who may open any number of files. */
void try_files()
{
	const rlimit open_files = {.rlim_cur = 8192, .rlim_max = 8192};
	expect("setrlimit", error_of(::setrlimit(RLIMIT_NOFILE, &open_files)), 0);
	Companion one([] {
		expect("setuid", error_of(setuid(kSomebody)), 0);
		static std::vector<Program> programs;
		const long contexts = take_all("a context", EDQUOT, [] {
			Program more(false);
			const long error = more.make_context();
			programs.push_back(std::move(more));
			return error;
		});
		/* Each channel has an event file, too. */
		static std::vector<Descriptor> channels;
		return take_all("a channel", EDQUOT,
				[] {
					channels.emplace_back();
					return programs.front().create_channel(channels.back());
				}) +
		       contexts;
	});
	expect("contexts and channels", is_about(one.result(), 8192 * 15 / 32), 1);
	const Program privileged;
	Descriptor channel;
	expect("a channel of root", privileged.create_channel(channel), 0);
}

/* A UD QP for multicast groups. */
struct Datagrams {
	Program program;
	std::uint32_t pd = 0, cq = 0, qp = 0;

	Datagrams()
	{
		expect("ALLOC_PD", program.alloc_pd(pd), 0);
		expect("CREATE_CQ", program.create_cq(-1, cq), 0);
		expect("CREATE_QP", program.create_qp(pd, cq, qp, kQpTypeUd), 0);
	}
	/* Attaches new QPs to a group until no more can be attached. */
	long fill_group(long expected) const
	{
		return take_all("a QP in a group", expected, [this] {
			std::uint32_t another = 0;
			expect("CREATE_QP", program.create_qp(pd, cq, another, kQpTypeUd), 0);
			return program.attach(another, 0xc000);
		});
	}
};

long fill_group_as(uid_t user)
{
	expect("setuid", error_of(setuid(user)), 0);
	static std::unique_ptr<const Datagrams> own;
	own = std::make_unique<const Datagrams>();
	return own->fill_group(EDQUOT);
}

/* A group's places are shared in the same way. */
void try_a_group()
{
	const long all = limits_of_device().max_mcast_qp_attach;
	Companion one([] { return fill_group_as(kSomebody); });
	const long of_one = one.result();
	expect("a half of a group for one user", of_one, (all - all / 16 + 1) / 2);
	Companion other([] { return fill_group_as(kSomebodyElse); });
	const long of_other = other.result();
	expect("a part of the rest for the next", of_other, (all - all / 16 - of_one + 1) / 2);
	const Datagrams privileged;
	expect("all of the rest for root", privileged.fill_group(ENOMEM), all - of_one - of_other);
}

/* Computes the hash of the card (MGID_HASH) for the table size that the driver configures. */
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

	for (std::uint32_t number = 0; found <= kChainMax; number++) {
		std::memcpy(gid.data() + 12, &number, sizeof(number));
		if (hash(gid) != 0x123)
			continue;
		found++;
		if (found <= kChainMax)
			failed |= own.program.attach(own.qp, 0xc000, gid);
	}
	expect("as many groups of a chain as programs may begin", failed, 0);
	expect("a group more in the chain", own.program.attach(own.qp, 0xc000, gid), ENOMEM);
	gid[15] ^= 1;
	expect("a group elsewhere", own.program.attach(own.qp, 0xc000, gid), 0);
}

/*
 * A user with unlimited locked memory registers 16 MiB of small pages repeatedly, up to half of the
 * page table. The table has four entries for each page of the host's memory, or 2^20.
 */
void try_memory()
{
	constexpr std::size_t bytes = 16 << 20;
	constexpr long entries = bytes / 4096;
	const long host_pages = sysconf(_SC_PHYS_PAGES);
	long table = 1 << 20;
	while (table < 4 * host_pages)
		table *= 2;
	const rlimit unlimited = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
	expect("setrlimit", error_of(::setrlimit(RLIMIT_MEMLOCK, &unlimited)), 0);
	Companion user([] {
		expect("setuid", error_of(setuid(kSomebody)), 0);
		static const Program kProgram;
		std::uint32_t pd = 0, region;
		expect("ALLOC_PD", kProgram.alloc_pd(pd), 0);
		void *const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
					  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		expect("madvise", error_of(madvise(memory, bytes, MADV_NOHUGEPAGE)), 0);
		return take_all("a region", EDQUOT, [&] {
			return kProgram.register_memory(pd, memory, bytes, region);
		});
	});
	const long got = user.result() * entries;
	expect("a half of the table of pages for one user", got >= table * 7 / 16, 1);
}

/* Registers a page as often as possible. */
long take_regions(const Program &program, std::uint32_t pd)
{
	void *const page =
		mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	std::uint32_t region;
	return take_all("a region", ENOMEM,
			[&] { return program.register_memory(pd, page, 4096, region); });
}

} // namespace

void try_shares()
{
	try_pds();
	try_user_namespace();
	try_files();
	try_a_group();
	try_memory();
	Companion user([] {
		expect("setuid", error_of(setuid(kSomebody)), 0);
		try_chain();
		return 0L;
	});
	expect("a chain of groups", user.result(), 0);
}

void try_control_group()
{
	const Program one, other;
	Program third(false);
	std::uint32_t first = 0, pd = 0;

	expect("a context more than the control group may have", third.make_context(), EAGAIN);
	expect("ALLOC_PD", one.alloc_pd(first), 0);
	expect("ALLOC_PD", one.alloc_pd(pd), 0);
	expect("ALLOC_PD", other.alloc_pd(pd), 0);
	expect("a PD more than the control group may have", other.alloc_pd(pd), EAGAIN);
	expect("DEALLOC_PD", one.dealloc_pd(first), 0);
	expect("a PD in place of another", other.alloc_pd(pd), 0);
	expect("a PD more", one.alloc_pd(pd), EAGAIN);
	std::puts("ready");
	std::fflush(stdout);
	(void)!std::getchar();
}

void try_limits()
{
	/* Objects of each type that the kernel itself may use. */
	constexpr long kernel = 64;
	const auto limits = limits_of_device();
	const Program program;
	std::uint32_t pd = 0, cq = 0, made = 0, domain = 0, number = 0;
	const auto check = [](const std::string &what, long got, long stated) {
		expect("as many " + what + " as are announced", got >= stated - kernel, 1);
		if (got < stated - kernel)
			std::printf("%ld of %ld %s\n", got, stated, what.c_str());
	};

	expect("ALLOC_PD", program.alloc_pd(pd), 0);
	expect("CREATE_CQ", program.create_cq(-1, cq), 0);
	{
		const Program own;
		std::uint32_t its_pd = 0;
		expect("ALLOC_PD", own.alloc_pd(its_pd), 0);
		check("regions", take_regions(own, its_pd), limits.max_mr);
	}
	{
		const Program own;
		check("CQs", take_all("a CQ", ENOMEM, [&] { return own.create_cq(-1, made); }),
		      limits.max_cq);
	}
	{
		const Program own;
		expect("ALLOC_PD", own.alloc_pd(pd), 0);
		expect("CREATE_CQ", own.create_cq(-1, cq), 0);
		check("QPs", take_all("a QP", ENOMEM, [&] { return own.create_qp(pd, cq, made); }),
		      limits.max_qp);
	}
	{
		const Program own;
		expect("ALLOC_PD", own.alloc_pd(pd), 0);
		expect("CREATE_CQ", own.create_cq(-1, cq), 0);
		expect("OPEN_XRCD", own.open_domain(-1, O_CREAT, domain), 0);
		check("SRQs",
		      take_all("an SRQ", ENOMEM,
			       [&] { return own.create_xrc_srq(pd, domain, cq, made, number); }),
		      limits.max_srq);
	}
}

} // namespace weft::uverbs
