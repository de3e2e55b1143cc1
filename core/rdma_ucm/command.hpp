// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Dispatches commands. A program writes them into the file, one with each write().
 *
 * One table lists all commands, with the sizes of request and response (command_table.cpp). Before
 * a command runs, common code checks the sizes of request and response, that the request's bytes
 * beyond the known members are zero, that the ID belongs to the file, and that the ID has a device
 * if the command needs one. A command gets its complete request in kernel memory, padded with
 * zeroes if the program's request was shorter. Its response is written after all locks have been
 * released.
 */
#pragma once
#include "file.hpp"

namespace rdma_ucm
{

/* Sizes of the largest request and of the largest response. */
inline constexpr size_t max_request = 296, max_answer = 272;

/* A running command. */
class Call
{
public:
	explicit Call(File &opened) : file(opened) {}

	File &file;

	template<class T>
	const T &request() const
	{
		static_assert(sizeof(T) <= max_request);
		return *reinterpret_cast<const T *>(request_);
	}
	/* Size of the response buffer. */
	size_t response_space() const { return response_space_; }
	/* Writes as much of the response as fits into the program's buffer. Errors: EFAULT. */
	template<class T>
	kern::Result<> respond(u64 to, const T &answer) const
	{
		return respond(to, &answer, sizeof(answer));
	}

private:
	friend kern::Result<> run_command(File &file, u64 from, size_t count);
	kern::Result<> respond(u64 to, const void *answer, size_t size) const;

	alignas(8) std::byte request_[max_request] = {};
	size_t response_space_ = 0;
};

struct Command {
	/*
	 * Size of the request, minimum size that a program may write, and minimum size of the
	 * response buffer.
	 */
	u16 request;
	u16 least_request;
	u16 least_answer;
	/* nullptr for a number without a command. */
	kern::Result<> (*run)(Call &call);
};

/* Returns nullptr if the number is too large. */
const Command *find_command(u32 number);

/*
 * Runs a command of `count` bytes in the program's memory. Context: process, the program's. Errors:
 * EINVAL for invalid sizes, numbers and IDs; ENOSYS for a number without a command; EOPNOTSUPP for
 * a tail that is not zero; ENOSPC if the response buffer is too small; EFAULT; those of the
 * command.
 */
kern::Result<> run_command(File &file, u64 from, size_t count);

} // namespace rdma_ucm
