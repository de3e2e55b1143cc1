// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Commands: what a program writes into the file, one command in each write.
 *
 * One table lists all commands, with the sizes of request and response (command_table.cpp). Common
 * checks are done once, before a command runs: sizes and their consistency, tails that must be
 * zero, and whether device and context exist. A command receives its complete request in kernel
 * memory, padded with zeroes if the program's was shorter.
 */
#pragma once
#include <kern/user.hpp>
#include <rdma/ib_verbs.h>
#include "abi.hpp"
#include "file.hpp"

namespace uverbs
{

/* The largest request that the core knows. */
inline constexpr size_t max_request = 120;

enum class Needs : u8 {
	/* Only the device: GET_CONTEXT. */
	device,
	context,
	/* Only the object that it destroys, or nothing. */
	nothing,
};

/* The context and device that a call finds. */
struct Present {
	bool context;
	bool device;

	/* Errors: EIO, EINVAL. */
	kern::Result<> check(Needs needs) const
	{
		if (needs != Needs::nothing && !device)
			return kern::Error{-EIO};
		return needs == Needs::context && !context ? kern::Error{-EINVAL}
							   : kern::Result<>{};
	}
};

/* A command, or a method, that runs. */
class Call
{
public:
	Call(File &opened, Present finds) : file(opened), present(finds) {}

	File &file;
	const Present present;
	/* Data between the driver and its library. */
	ib_udata udata{};

	template<class T>
	const T &request() const
	{
		static_assert(sizeof(T) <= max_request);
		return *reinterpret_cast<const T *>(request_);
	}
	/*
	 * May be called once. An extended response is cut to the program's buffer, and padded with
	 * zeroes if that is larger. Errors: EFAULT.
	 */
	template<class T>
	kern::Result<> respond(const T &response) const
	{
		return respond(&response, sizeof(response));
	}
	/* Returns the number of bytes of an extended response for which the program has space. */
	template<class T>
	u32 response_length() const
	{
		return static_cast<u32>(room_ < sizeof(T) ? room_ : sizeof(T));
	}
	/* Addresses and sizes in the program's memory. */
	void set_driver_parts(u64 in, size_t inlen, u64 out, size_t outlen)
	{
		udata = {.inbuf = inlen ? kern::user_pointer(in) : nullptr,
			 .outbuf = outlen ? kern::user_pointer(out) : nullptr,
			 .inlen = inlen,
			 .outlen = outlen,
			 .context = file.context()};
	}

private:
	friend class Framing;
	kern::Result<> respond(const void *response, size_t size) const;

	alignas(8) std::byte request_[max_request] = {};
	/* The address of the core's response, and its length. */
	u64 response_ = 0;
	size_t room_ = 0;
};

struct Command {
	abi::Number number;
	bool extended;
	Needs needs;
	/*
	 * Size of the request that the core knows; for an extended command, least_request is the
	 * minimum size.
	 */
	u16 request;
	u16 least_request;
	/* Minimum size of the response buffer; 0 if there is no response. */
	u16 response;
	/* Offset in ib_device_ops of the method that the command requires; or `always`. */
	u16 method;
	kern::Result<> (*run)(Call &call);
};
inline constexpr u16 always = 0xffff;

/* Returns nullptr if there is no such command. */
const Command *find_command(u32 number, bool extended);

/*
 * Executes a command of `count` bytes in the program's memory. Context: process, the program's.
 * Errors: those of Documentation/user-verbs.rst, and those of the command.
 */
kern::Result<> run_command(File &file, u64 from, size_t count, Present present);

} // namespace uverbs
