// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Dispatches commands. A program writes them into the file, one with each write().
 *
 * One table lists all commands, with the sizes of request and response (command_table.cpp). Before
 * a command runs, common code checks the sizes of request and response, that the request's bytes
 * beyond the known members are zero, and that the device and a context exist. A command gets its
 * complete request in kernel memory, padded with zeroes if the program's request was shorter.
 */
#pragma once
#include <kern/user.hpp>
#include <rdma/ib_verbs.h>
#include "abi.hpp"
#include "file.hpp"

namespace uverbs
{

/* Size of the largest request. */
inline constexpr size_t max_request = 120;

enum class Needs : u8 {
	/* The device, but no context: for GET_CONTEXT. */
	device,
	context,
	/* Neither: for commands that only destroy an object. */
	nothing,
};

/* Whether a context and the device exist when a call begins. */
struct Present {
	bool context;
	bool device;

	/* Errors: EIO if the device has been removed, EINVAL if there is no context. */
	kern::Result<> check(Needs needs) const
	{
		if (needs != Needs::nothing && !device)
			return kern::Error{-EIO};
		return needs == Needs::context && !context ? kern::Error{-EINVAL}
							   : kern::Result<>{};
	}
};

/* A running command or method. */
class Call
{
public:
	Call(File &opened, Present finds) : file(opened), present(finds) {}

	File &file;
	const Present present;
	/* Data that the driver and its library exchange. */
	ib_udata udata{};

	template<class T>
	const T &request() const
	{
		static_assert(sizeof(T) <= max_request);
		return *reinterpret_cast<const T *>(request_);
	}
	/*
	 * Writes the response; may be called once. An extended response is truncated to the
	 * program's buffer, or padded with zeroes if the buffer is larger. Errors: EFAULT.
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
	/* Sets the addresses and sizes of the driver's data in the program's memory. */
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
	/* The address and the size of the buffer for the core's response. */
	u64 response_ = 0;
	size_t room_ = 0;
};

struct Command {
	abi::Number number;
	bool extended;
	Needs needs;
	/*
	 * Size of the complete request. least_request is the minimum size that an extended command
	 * may have.
	 */
	u16 request;
	u16 least_request;
	/* Minimum size of the response buffer; 0 if there is no response. */
	u16 response;
	/* Offset in ib_device_ops of the method that the driver must have; or `always`. */
	u16 method;
	kern::Result<> (*run)(Call &call);
};
inline constexpr u16 always = 0xffff;

/* Returns nullptr if there is no such command. */
const Command *find_command(u32 number, bool extended);

/*
 * Runs a command of `count` bytes in the program's memory. Context: process, the program's. Errors:
 * those of Documentation/user-verbs.rst, and those of the command.
 */
kern::Result<> run_command(File &file, u64 from, size_t count, Present present);

} // namespace uverbs
