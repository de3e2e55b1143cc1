// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "command.hpp"
#include <kern/user.hpp>

namespace rdma_ucm
{

kern::Result<> Call::respond(u64 to, const void *answer, size_t size) const
{
	return kern::copy_out(to, answer, response_space_ < size ? response_space_ : size);
}

kern::Result<> run_command(File &file, u64 from, size_t count)
{
	abi::Header header;

	if (count < sizeof(header))
		return kern::Error{-EINVAL};
	KERN_TRY(kern::copy_in(&header, from, sizeof(header)));
	const size_t in = header.in;
	if (in > count - sizeof(header))
		return kern::Error{-EINVAL};
	const Command *command = find_command(header.command);
	if (!command)
		return kern::Error{-EINVAL};
	if (!command->run)
		return kern::Error{-ENOSYS};
	if (in < command->least_request)
		return kern::Error{-EINVAL};
	if (header.out < command->least_answer)
		return kern::Error{-ENOSPC};

	Call call(file);
	const size_t known = in < command->request ? in : command->request;
	from += sizeof(header);
	KERN_TRY(kern::copy_in(call.request_, from, known));
	KERN_TRY(kern::check_zero(from + known, in - known));
	call.response_space_ = header.out;
	return command->run(call);
}

} // namespace rdma_ucm
