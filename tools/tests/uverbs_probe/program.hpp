// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Calls /dev/infiniband/uverbs0 without a library: it writes commands in the layout of the kernel's
 * uapi headers, not of the headers from which weft's module is built. Therefore a wrong layout in
 * weft's headers is detected.
 */
#pragma once
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include <rdma/ib_user_verbs.h>
#include <rdma/mlx4-abi.h>

namespace weft::uverbs
{

inline constexpr const char *kNode = "/dev/infiniband/uverbs0";
inline constexpr const char *kUmadNode = "/dev/infiniband/umad0";
inline constexpr std::uint8_t kQpTypeRc = 2, kQpTypeUc = 3, kQpTypeUd = 4, kQpTypeXrcInitiator = 9,
			      kQpTypeXrcTarget = 10;

/*
 * Prints a result that differs from the expected one. The exit status shows whether there were any.
 */
void expect(const std::string &what, long got, long expected);
int failures();

using MulticastGid = std::array<std::uint8_t, 16>;

/* A descriptor that is closed with its owner. */
class Descriptor
{
public:
	Descriptor() = default;
	explicit Descriptor(int number) : number_(number) {}
	Descriptor(Descriptor &&other) noexcept : number_(other.number_) { other.number_ = -1; }
	Descriptor &operator=(Descriptor &&other) noexcept;
	~Descriptor() { reset(); }

	int number() const { return number_; }
	void reset();

private:
	int number_ = -1;
};

/* Returns 0, or the errno of a failed call. */
inline long error_of(long result)
{
	return result < 0 ? errno : 0;
}

/* A process that has opened the node. */
class Program
{
public:
	/* Creates a context unless @context is false. */
	explicit Program(bool context = true);

	/* Executes GET_CONTEXT. Returns 0 or an errno. */
	long make_context();
	int number() const { return file_.number(); }
	int events() const { return events_.number(); }
	void close() { file_.reset(); }
	void close_events() { events_.reset(); }

	/*
	 * Writes bytes unchanged. Returns 0 or an errno; EPROTO if another number of bytes was
	 * written.
	 */
	long write(const void *bytes, std::size_t size) const;
	/*
	 * Executes a plain command: `request` without the header, with the address of the response
	 * filled in if there is one, followed by `driver`. The response is stored in `answer`.
	 */
	template<class Request, class Answer>
	long command(unsigned number, Request request, Answer &answer) const
	{
		request.response = reinterpret_cast<std::uintptr_t>(&answer);
		return plain(number, &request, sizeof(request), sizeof(answer));
	}
	template<class Request>
	long command(unsigned number, const Request &request) const
	{
		return plain(number, &request, sizeof(request), 0);
	}
	long plain(unsigned number, const void *request, std::size_t size,
		   std::size_t answer) const;

	/* Memory for rings and doorbell records, larger than all requested ones. */
	static std::uint64_t ring();
	static std::uint64_t doorbells();

	/*
	 * Some libraries have their own PD for objects without a PD of the program, and name memory
	 * by keys. The key is 0, which belongs to no region, if the region cannot be registered.
	 * The region of a ring begins at address 0.
	 */
	struct Domain {
		std::once_flag made;
		std::uint32_t handle = 0, number = 0;
	};
	const Domain &own_domain() const;
	std::uint32_t register_ring(std::uint32_t pd, std::uint64_t ring) const;

	/*
	 * These return 0 or an errno. `made` is set to the handle or descriptor, and `number` to
	 * the card's number.
	 */
	long alloc_pd(std::uint32_t &made) const;
	long alloc_pd(std::uint32_t &made, std::uint32_t &number) const;
	long dealloc_pd(std::uint32_t handle) const;
	long create_channel(Descriptor &made) const;
	long create_cq(int channel, std::uint32_t &made) const;
	long destroy_cq(std::uint32_t handle, ib_uverbs_destroy_cq_resp &answer) const;
	long create_qp(std::uint32_t pd, std::uint32_t cq, std::uint32_t &made,
		       std::uint8_t type = kQpTypeRc) const;
	long create_qp(std::uint32_t pd, std::uint32_t cq, std::uint32_t &made,
		       std::uint32_t &number, std::uint8_t type = kQpTypeRc) const;
	/* Attaches a QP to a multicast group with this LID. */
	long attach(std::uint32_t qp, std::uint16_t lid,
		    const MulticastGid &gid = {0xff, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
					       1}) const;
	long destroy_qp(std::uint32_t handle) const;
	/* Moves a QP to a state with the attributes in @mask, which all have small values. */
	long modify_qp(std::uint32_t handle, std::uint64_t state, std::uint32_t mask) const;
	long modify_qp(const ib_uverbs_modify_qp &request) const
	{
		return command(IB_USER_VERBS_CMD_MODIFY_QP, request);
	}
	/* Resizes a CQ into a ring at this address. */
	long resize_cq(std::uint32_t handle, std::uint32_t entries, std::uint64_t ring) const;
	/* Opens an XRC domain for a file, or for none. @flags are those of open(2). */
	long open_domain(int file, int flags, std::uint32_t &made) const;
	/* Creates an SRQ in a domain. `number` is set to its number. */
	long create_xrc_srq(std::uint32_t pd, std::uint32_t xrcd, std::uint32_t cq,
			    std::uint32_t &made, std::uint32_t &number) const;
	long destroy_srq(std::uint32_t handle) const;
	long register_memory(std::uint32_t pd, void *start, std::size_t length,
			     std::uint32_t &made) const;
	/* @flags specify what changes (IBV_REREG_MR_…). */
	long register_again(std::uint32_t handle, std::uint32_t flags, std::uint32_t pd,
			    void *start, std::size_t length) const;
	long deregister_memory(std::uint32_t handle) const;

private:
	Descriptor file_;
	Descriptor events_;
	std::unique_ptr<Domain> domain_ = std::make_unique<Domain>();
};

/*
 * The tests of invalid requests, of the ioctl() interface, of limits, of random commands, of exits
 * during each command, and of the order of destruction.
 */
void try_refusals();
void try_methods();
void try_shares();
/*
 * Runs in a control group whose rdma.max allows two contexts and three objects. Prints "ready" when
 * all are allocated, and exits after a line of input.
 */
void try_control_group();
/* Checks that root can make as many objects as the device announces. */
void try_limits();
void try_random(std::uint64_t seed, unsigned long count);
/* Makes random requests for agents and MADs. */
void try_random_mads(std::uint64_t seed, unsigned long count, unsigned path_mask);
/* Writes MADs that end within their headers, for an agent whose RMPP is the kernel's. */
void try_short_mads(std::uint64_t seed, unsigned long count);
void try_deaths(std::uint64_t seed, unsigned long times);
/*
 * Calls a method with arbitrary errors. Its output goes to `room`, which has 512 bytes, or to an
 * invalid address.
 */
void call_at_random(const Program &program, std::mt19937_64 &random, void *room);
void try_ends();
/* Tests XRC domains and their sharing. */
void try_domains();
/*
 * Prints "ready", waits until the device has been removed and a line of input has arrived, and
 * checks the remaining objects.
 */
void outlive_device();
/* Does the same as outlive_device() with a thousand objects. */
void outlive_with_many();
/* Creates an object of each kind, prints "ready", and exits after a line of input. */
void stay();
/* Does the same as stay() with a QP in a multicast group, and destroys nothing at the exit. */
void stay_in_group();
/*
 * Tests of MADs: invalid requests, responses, limits and closing; and the counterpart of
 * outlive_device().
 */
void try_mads();
void outlive_port();

} // namespace weft::uverbs
