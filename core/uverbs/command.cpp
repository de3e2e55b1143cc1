// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the code that all uverbs commands share: it parses the header, and checks sizes and
// trailing data. The order of the checks determines the errors that existing programs expect.
#include "methods.hpp"

namespace uverbs
{

kern::Result<> Call::respond(const void *response, size_t size) const
{
	return answer_in(response_, room_, response, size);
}

class Framing
{
public:
	explicit Framing(Call &call) : call_(call) {}

	/* Runs a command that was written into the file. */
	kern::Result<> run(u64 from, size_t count);
	/* Runs a command that was passed in the attributes of a method. */
	kern::Result<> run(u32 word, Attributes::Place in, Attributes::Place out);

private:
	/* Looks up a command by the first word of its header. */
	kern::Result<const Command *> find(u32 word) const;
	kern::Result<> read_plain(const Command &command, const abi::Header &header, u64 from,
				  size_t count);
	kern::Result<> read_extended(const Command &command, const abi::Header &header, u64 from,
				     size_t count);
	/* Copies the core's part of the request. Bytes after it must be zero. */
	kern::Result<> take_request(const Command &command, u64 from, size_t size);
	kern::Result<> carry_out(const Command &command)
	{
		KERN_TRY(call_.present.check(command.needs));
		return command.run(call_);
	}

	Call &call_;
};

kern::Result<const Command *> Framing::find(u32 word) const
{
	if (word & ~(abi::extended_flag | abi::number_mask))
		return kern::Error{-EINVAL};
	const Command *command = find_command(word & abi::number_mask, word & abi::extended_flag);
	if (!command)
		return kern::Error{-EOPNOTSUPP};
	if (command->method != always && call_.present.device) {
		size_t method;
		__builtin_memcpy(&method,
				 reinterpret_cast<const char *>(&call_.file.device().ops) +
					 command->method,
				 sizeof(method));
		if (!method)
			return kern::Error{-EOPNOTSUPP};
	}
	return command;
}

kern::Result<> Framing::take_request(const Command &command, u64 from, size_t size)
{
	const size_t known = size < command.request ? size : command.request;

	KERN_TRY(kern::copy_in(call_.request_, from, known));
	return kern::check_zero(from + known, size - known);
}

kern::Result<> Framing::read_plain(const Command &command, const abi::Header &header, u64 from,
				   size_t count)
{
	constexpr size_t word = 4;
	const size_t in = header.in_words * word, out = header.out_words * word;
	size_t size = count;

	if (in != size)
		return kern::Error{-EINVAL};
	/* Old libraries specify a size for this command that omits its last 8 bytes. */
	const size_t least = sizeof(header) + command.request;
	const bool short_of_reserved =
		command.number == abi::destroy_cq && size == least - sizeof(u64);
	if (size < least && !short_of_reserved)
		return kern::Error{-ENOSPC};
	if (out < command.response)
		return kern::Error{-ENOSPC};
	/*
	 * Those libraries pass the complete request in memory, only with the wrong size, so it can
	 * be read completely.
	 */
	const size_t core = command.request;
	KERN_TRY(take_request(command, from + sizeof(header), core));
	size = short_of_reserved ? 0 : size - sizeof(header) - core;

	if (command.response) {
		call_.response_ = call_.request<abi::ResponseOnly>().response;
		call_.room_ = command.response;
	}
	call_.set_driver_parts(from + sizeof(header) + core, size,
			       call_.response_ + command.response, out - command.response);
	return {};
}

kern::Result<> Framing::read_extended(const Command &command, const abi::Header &header, u64 from,
				      size_t count)
{
	constexpr size_t word = 8;
	constexpr size_t headers = sizeof(abi::Header) + sizeof(abi::ExtendedHeader);
	abi::ExtendedHeader extended;

	if (count < headers)
		return kern::Error{-EINVAL};
	KERN_TRY(kern::copy_in(&extended, from + sizeof(header), sizeof(extended)));
	const size_t in = header.in_words * word, out = header.out_words * word;
	const size_t driver_in = extended.driver_in_words * word,
		     driver_out = extended.driver_out_words * word;
	if (in + driver_in != count - headers)
		return kern::Error{-EINVAL};
	if (in < command.least_request)
		return kern::Error{-ENOSPC};
	if (extended.reserved)
		return kern::Error{-EINVAL};
	if (extended.response) {
		if (!out && !driver_out)
			return kern::Error{-EINVAL};
		if (out < command.response)
			return kern::Error{-ENOSPC};
	} else if (out || driver_out) {
		return kern::Error{-EINVAL};
	}
	KERN_TRY(take_request(command, from + headers, in));
	call_.response_ = extended.response;
	call_.room_ = out;
	call_.set_driver_parts(from + headers + in, driver_in, extended.response + out, driver_out);
	return {};
}

kern::Result<> Framing::run(u64 from, size_t count)
{
	abi::Header header;

	if (count < sizeof(header))
		return kern::Error{-EINVAL};
	KERN_TRY(kern::copy_in(&header, from, sizeof(header)));
	const Command *const command = KERN_TRY(find(header.command));
	KERN_TRY(command->extended ? read_extended(*command, header, from, count)
				   : read_plain(*command, header, from, count));
	return carry_out(*command);
}

kern::Result<> Framing::run(u32 word, Attributes::Place in, Attributes::Place out)
{
	const Command *const command = KERN_TRY(find(word));

	/* The address of the response in a plain request is ignored here. */
	if (in.size < command->least_request || out.size < command->response)
		return kern::Error{-ENOSPC};
	KERN_TRY(take_request(*command, in.address, in.size));
	call_.response_ = out.address;
	call_.room_ = out.size;
	return carry_out(*command);
}

kern::Result<> run_command(File &file, u64 from, size_t count, Present present)
{
	Call call(file, present);

	return Framing(call).run(from, count);
}

kern::Result<> methods::invoke_write(Call &call, const Attributes &attributes)
{
	using namespace abi::invoke_write;

	KERN_TRY(Framing(call).run(static_cast<u32>(attributes.number(command)),
				   attributes.place(core_in), attributes.place(core_out)));
	if (attributes.has(core_out))
		kern::ignore(attributes.answered(core_out));
	return {};
}

} // namespace uverbs
