// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides simulated programs that have /dev/infiniband/rdma_cm open. The replacement for rdma_cm
// (fake.hpp) serves them.
#pragma once
#include <kern/kunit_fixture.hpp>
#include <kern/kunit_process.hpp>
#include <kern/thread.hpp>
#include <kern/time.hpp>
#include <kern/user.hpp>
#include "../table.hpp"
#include "fake.hpp"

namespace ucm_fixture
{

using kern::kunit::eventually;

using kern::kunit::Test;
namespace abi = rdma_ucm::abi;

/* The users of these tests. */
constexpr kern_user root = {.id = 0, .privileged = true},
		    somebody = {.id = 1000, .privileged = false};

/* An address that is not mapped. */
constexpr u64 nowhere = 4096;

/* The table, and the memory of the programs. */
class Bench
{
public:
	/* @ids and @memberships are the limits for all programs together. */
	explicit Bench(u32 ids = rdma_ucm::Table::ids_max,
		       u32 memberships = rdma_ucm::Table::memberships_max);
	~Bench();

	bool ok() const { return ok_ && memory.address(); }
	/* Addresses from which requests are written, and to which responses are written. */
	u64 requests() const { return memory.address(); }
	u64 answers() const { return memory.address() + kern::page_size; }

	kern::kunit::Process process;
	kern::kunit::Mapping memory{process ? 2 * kern::page_size : 0};

private:
	bool ok_ = false;
};

/* A process that has opened the node without blocking. Calls return 0 or a negative errno. */
class Program
{
public:
	explicit Program(Bench &bench, const kern_user &user = root);
	~Program() { close(); }
	Program(const Program &) = delete;
	Program &operator=(const Program &) = delete;

	bool ok() const { return file_ != nullptr; }
	rdma_ucm::File &file() { return *file_; }
	void close();

	/* Writes the first @written bytes of the header and the request. */
	long write(abi::Header header, const void *request, std::size_t written);
	template<class Request>
	long command(u32 number, const Request &request)
	{
		return write({.command = number, .in = sizeof(request), .out = 0}, &request,
			     sizeof(abi::Header) + sizeof(request));
	}
	/*
	 * Sends a command with a response, which is written to @to or, if that is 0, to answers().
	 */
	template<class Request, class Answer>
	long ask(u32 number, Request request, Answer &answer, u64 to = 0)
	{
		request.response = to ? to : bench_.answers();
		const long done =
			write({.command = number, .in = sizeof(request), .out = sizeof(answer)},
			      &request, sizeof(abi::Header) + sizeof(request));
		if (!done && !kern::copy_in(&answer, bench_.answers(), sizeof(answer)))
			return -EFAULT;
		return done;
	}

	/* Creates an ID with a device and a path; @cm is set to rdma_cm's ID. */
	long create(u32 &id, u64 uid, fake::Cm **cm = nullptr, u16 ps = RDMA_PS_TCP);
	long listen(u32 id, s32 backlog)
	{
		return command(abi::listen, abi::Listen{.id = id, .backlog = backlog});
	}
	long accept(u32 id, u64 uid);
	/* @read returns the number of the ID's events that have been read. */
	long destroy(u32 id, u32 &read) { return end(abi::destroy_id, id, read); }
	long leave(u32 membership, u32 &read) { return end(abi::leave_mcast, membership, read); }
	/* 239.0.0.last_byte. */
	long join(u32 id, u64 uid, u8 last_byte, u32 &membership, u64 to = 0);
	long read(abi::Event &event, u64 to = 0)
	{
		return ask(abi::get_event, abi::GetEvent{}, event, to);
	}

private:
	long end(u32 number, u32 id, u32 &read);

	Bench &bench_;
	kern::kunit::OpenedFile native_{false};
	rdma_ucm::File *file_ = nullptr;
};

} // namespace ucm_fixture
