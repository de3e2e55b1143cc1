// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Checks which open files share an XRC domain, and how long the domain and its target QPs exist.
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <future>

#include "tests/uverbs_probe/program.hpp"

namespace weft::uverbs
{

namespace
{

constexpr const char *kFileName = "/tmp/weft-xrc-domain";
constexpr const char *kOtherName = "/tmp/weft-xrc-domain-2";
constexpr const char *kMountName = "/tmp/weft-xrc-mount";
constexpr const char *kMountedName = "/tmp/weft-xrc-mount/domain";

long close_domain(const Program &program, std::uint32_t handle)
{
	return program.command(IB_USER_VERBS_CMD_CLOSE_XRCD,
			       ib_uverbs_close_xrcd{.xrcd_handle = handle});
}

struct Target {
	std::uint32_t handle, number;
};

long create_target(const Program &program, std::uint32_t domain, Target &made)
{
	ib_uverbs_create_qp request{};
	ib_uverbs_create_qp_resp answer{};

	request.pd_handle = domain;
	request.qp_type = kQpTypeXrcTarget;
	const long error = program.command(IB_USER_VERBS_CMD_CREATE_QP, request, answer);
	made = {answer.qp_handle, answer.qpn};
	return error;
}

long open_target(const Program &program, std::uint32_t domain, std::uint32_t number, Target &made,
		 std::uint8_t type = kQpTypeXrcTarget)
{
	ib_uverbs_open_qp request{};
	ib_uverbs_create_qp_resp answer{};

	request.pd_handle = domain;
	request.qpn = number;
	request.qp_type = type;
	const long error = program.command(IB_USER_VERBS_CMD_OPEN_QP, request, answer);
	made = {answer.qp_handle, answer.qpn};
	return error;
}

/*
 * Returns the number of the peer's QP that the kernel reports for the handle, or a negative errno.
 */
long state_of(const Program &program, std::uint32_t handle)
{
	ib_uverbs_query_qp_resp answer{};
	const long error = program.command(
		IB_USER_VERBS_CMD_QUERY_QP,
		ib_uverbs_query_qp{.response = 0, .qp_handle = handle, .attr_mask = 0}, answer);

	return error ? -error : answer.qp_state;
}

void try_one_program()
{
	const Program program;
	std::uint32_t domain, other, pd, cq, srq, number;
	ib_uverbs_destroy_cq_resp read;
	Target target, again;

	expect("OPEN_XRCD without a file", program.open_domain(-1, 0, domain), 0);
	expect("another one", program.open_domain(-1, O_CREAT, other), 0);
	expect("a descriptor that is closed", program.open_domain(1000, O_CREAT, pd), EBADF);
	expect("a target", create_target(program, domain, target), 0);
	expect("a domain with a target", close_domain(program, domain), EBUSY);
	expect("the target of another domain", open_target(program, other, target.number, again),
	       EINVAL);
	expect("a target that is none", open_target(program, domain, 77, again), EINVAL);
	expect("a QP that is no target",
	       open_target(program, domain, target.number, again, kQpTypeRc), EINVAL);
	expect("the target once more", open_target(program, domain, target.number, again), 0);
	expect("its number", again.number, target.number);
	expect("the first handle goes", program.destroy_qp(target.handle), 0);
	expect("the QP is still there", state_of(program, again.handle), 0);
	expect("the last handle goes", program.destroy_qp(again.handle), 0);
	expect("and with it the QP", open_target(program, domain, target.number, again), EINVAL);

	expect("ALLOC_PD", program.alloc_pd(pd), 0);
	expect("CREATE_CQ", program.create_cq(-1, cq), 0);
	expect("an XRC SRQ without a domain", program.create_xrc_srq(pd, 99, cq, srq, number),
	       ENOENT);
	expect("a PD for its domain", program.create_xrc_srq(pd, pd, cq, srq, number), EINVAL);
	expect("an XRC SRQ without a CQ", program.create_xrc_srq(pd, domain, 99, srq, number),
	       ENOENT);
	expect("an XRC SRQ", program.create_xrc_srq(pd, domain, cq, srq, number), 0);
	expect("its number is said", number != 0, 1);
	expect("a domain with an SRQ", close_domain(program, domain), EBUSY);
	expect("a CQ with an SRQ", program.destroy_cq(cq, read), EBUSY);
	expect("DESTROY_SRQ", program.destroy_srq(srq), 0);
	expect("DESTROY_CQ", program.destroy_cq(cq, read), 0);
	expect("CLOSE_XRCD", close_domain(program, domain), 0);
	expect("twice", close_domain(program, domain), ENOENT);
	/* Closing the file destroys the other SRQ and the PD. */
}

void try_a_file()
{
	const Descriptor file(::open(kFileName, O_CREAT | O_RDWR, 0600));
	::unlink(kOtherName);
	expect("a second name", error_of(::link(kFileName, kOtherName)), 0);
	const Descriptor by_other_name(::open(kOtherName, O_RDONLY));
	const Program heir;
	std::uint32_t domain, shared;
	Target target, inherited;

	expect("a domain that is not there", heir.open_domain(file.number(), 0, domain), EAGAIN);
	{
		const Program maker;
		expect("a new domain", maker.open_domain(file.number(), O_CREAT | O_EXCL, domain),
		       0);
		expect("only a new one",
		       heir.open_domain(by_other_name.number(), O_CREAT | O_EXCL, shared), EINVAL);
		expect("by the file's other name",
		       heir.open_domain(by_other_name.number(), 0, shared), 0);
		expect("a target", create_target(maker, domain, target), 0);
		expect("another program opens it",
		       open_target(heir, shared, target.number, inherited), 0);
	}
	expect("the QP outlives its maker", state_of(heir, inherited.handle), 0);
	expect("and so does the domain", close_domain(heir, shared), EBUSY);
	expect("the last handle goes", heir.destroy_qp(inherited.handle), 0);
	expect("the last one closes it", close_domain(heir, shared), 0);
	expect("it is no more", heir.open_domain(file.number(), 0, shared), EAGAIN);
	::unlink(kFileName);
	::unlink(kOtherName);
}

/* An XRC domain keeps the file system of its file in use, even if no process has the file open. */
void try_a_mount()
{
	::mkdir(kMountName, 0700);
	expect("a file system", error_of(::mount("weft", kMountName, "tmpfs", 0, nullptr)), 0);
	{
		const Program program;
		std::uint32_t domain;
		Descriptor file(::open(kMountedName, O_CREAT | O_RDWR, 0600));
		expect("a domain of its file", program.open_domain(file.number(), O_CREAT, domain),
		       0);
		file.reset();
		expect("it is in use", error_of(::umount(kMountName)), EBUSY);
		expect("the domain goes", close_domain(program, domain), 0);
	}
	expect("it is not in use", error_of(::umount(kMountName)), 0);
	::rmdir(kMountName);
}

/* A page that is missing until the test provides it. */
class Lazy
{
public:
	Lazy() : file_(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC)))
	{
		if (!there())
			return;
		uffdio_api api = {.api = UFFD_API, .features = 0, .ioctls = 0};
		expect("UFFDIO_API", error_of(ioctl(file_.number(), UFFDIO_API, &api)), 0);
		uffdio_register its = {.range = {.start = page(), .len = 4096},
				       .mode = UFFDIO_REGISTER_MODE_MISSING,
				       .ioctls = 0};
		expect("UFFDIO_REGISTER", error_of(ioctl(file_.number(), UFFDIO_REGISTER, &its)),
		       0);
	}
	~Lazy() { munmap(memory_, 8192); }

	bool there() const { return file_.number() >= 0; }
	/* The page before it is present. */
	std::uint64_t page() const { return reinterpret_cast<std::uintptr_t>(memory_) + 4096; }
	void await() const
	{
		pollfd waiting = {.fd = file_.number(), .events = POLLIN, .revents = 0};
		expect("somebody waits for the page", ::poll(&waiting, 1, 20000), 1);
	}
	void give(const void *content) const
	{
		uffdio_copy copy = {.dst = page(),
				    .src = reinterpret_cast<std::uintptr_t>(content),
				    .len = 4096,
				    .mode = 0,
				    .copy = 0};
		expect("UFFDIO_COPY", error_of(ioctl(file_.number(), UFFDIO_COPY, &copy)), 0);
	}

private:
	void *const memory_ =
		mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const Descriptor file_;
};

/*
 * A program that waits in a command for its own memory does not block others with the same domain.
 */
void try_a_program_that_waits()
{
	const Descriptor file(::open(kFileName, O_CREAT | O_RDWR, 0600));
	const Lazy lazy;
	const Program slow, other;
	std::uint32_t domain, shared, pd, cq, srq, number;
	Target target;

	/* The small test kernels have no such pages. */
	if (!lazy.there())
		return;
	expect("a domain", slow.open_domain(file.number(), O_CREAT, domain), 0);
	expect("the same", other.open_domain(file.number(), 0, shared), 0);
	expect("ALLOC_PD", slow.alloc_pd(pd), 0);
	expect("CREATE_CQ", slow.create_cq(-1, cq), 0);
	expect("an XRC SRQ", slow.create_xrc_srq(pd, domain, cq, srq, number), 0);
	expect("a target", create_target(other, shared, target), 0);

	/* The part of the command that the driver reads begins at the start of the page. */
	struct Command {
		ib_uverbs_cmd_hdr header;
		ib_uverbs_resize_cq request;
	};
	ib_uverbs_resize_cq_resp answer{};
	Command command{};
	command.header = {IB_USER_VERBS_CMD_RESIZE_CQ,
			  (sizeof(Command) + sizeof(mlx4_ib_resize_cq)) / 4, sizeof(answer) / 4};
	command.request.response = reinterpret_cast<std::uintptr_t>(&answer);
	command.request.cq_handle = cq;
	command.request.cqe = 100;
	auto *const begin = reinterpret_cast<char *>(lazy.page()) - sizeof(command);
	std::memcpy(begin, &command, sizeof(command));
	auto resizing = std::async(std::launch::async, [&] {
		return slow.write(begin, sizeof(command) + sizeof(mlx4_ib_resize_cq));
	});
	lazy.await();
	auto ending =
		std::async(std::launch::async, [&] { return other.destroy_qp(target.handle); });
	expect("the target ends meanwhile",
	       ending.wait_for(std::chrono::seconds(20)) == std::future_status::ready, 1);

	static mlx4_ib_resize_cq driver[4096 / sizeof(mlx4_ib_resize_cq)];
	driver[0].buf_addr = Program::ring();
	lazy.give(driver);
	expect("RESIZE_CQ", resizing.get(), 0);
	expect("DESTROY_QP", ending.get(), 0);
	::unlink(kFileName);
}

} // namespace

void try_domains()
{
	try_a_program_that_waits();
	try_one_program();
	try_a_file();
	try_a_mount();
}

} // namespace weft::uverbs
