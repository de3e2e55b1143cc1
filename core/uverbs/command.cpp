// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The frame around a command: header, sizes, tails. The order of the checks is that in which stock programs know their errors.
#include "command.hpp"

namespace uverbs
{

kern::Result<> Call::respond(const void *response, size_t size) const
{
	const size_t told = room_ < size ? room_ : size;

	TRY(kern::copy_out(response_, response, told));
	/* The core's part of an extended response can be no longer than 16 bits count in words of eight. */
	static constexpr u64 zeros[8] = {};
	for (size_t at = told; at < room_;) {
		const size_t step = room_ - at < sizeof(zeros) ? room_ - at : sizeof(zeros);
		TRY(kern::copy_out(response_ + at, zeros, step));
		at += step;
	}
	return {};
}

class Framing {
public:
	Framing(Call &call, u64 from, size_t count) : call_(call), from_(from), count_(count) {}

	kern::Result<const Command *> read_header(Present present);
	kern::Result<> read_request(const Command &command)
	{
		return command.extended ? read_extended(command) : read_plain(command);
	}

private:
	kern::Result<> read_plain(const Command &command);
	kern::Result<> read_extended(const Command &command);
	/* The core's part; what the program says beyond what the core knows must be nothing. */
	kern::Result<> take_request(const Command &command, size_t at, size_t size);
	void set_driver_parts(u64 in, size_t inlen, u64 out, size_t outlen)
	{
		call_.udata = {.inbuf = inlen ? kern::user_pointer(in) : nullptr,
			       .outbuf = outlen ? kern::user_pointer(out) : nullptr,
			       .inlen = inlen,
			       .outlen = outlen,
			       .context = call_.file.context()};
	}

	Call &call_;
	const u64 from_;
	const size_t count_;
	abi::Header header_;
};

kern::Result<const Command *> Framing::read_header(Present present)
{
	if (count_ < sizeof(header_))
		return kern::Error{-EINVAL};
	TRY(kern::copy_in(&header_, from_, sizeof(header_)));
	if (header_.command & ~(abi::extended_flag | abi::number_mask))
		return kern::Error{-EINVAL};
	const Command *command = find_command(header_.command & abi::number_mask, header_.command & abi::extended_flag);
	if (!command)
		return kern::Error{-EOPNOTSUPP};
	if (command->method != always && present.device) {
		size_t method;
		__builtin_memcpy(&method, reinterpret_cast<const char *>(&call_.file.device().ops) + command->method, sizeof(method));
		if (!method)
			return kern::Error{-EOPNOTSUPP};
	}
	return command;
}

kern::Result<> Framing::take_request(const Command &command, size_t at, size_t size)
{
	const size_t known = size < command.request ? size : command.request;

	TRY(kern::copy_in(call_.request_, from_ + at, known));
	if (size == known)
		return {};
	const int zero = kern_user_is_zero(kern::user_pointer(from_ + at + known), size - known);
	TRY_ERRNO(zero);
	return zero ? kern::Result<>{} : kern::Error{-EOPNOTSUPP};
}

kern::Result<> Framing::read_plain(const Command &command)
{
	constexpr size_t word = 4;
	const size_t in = header_.in_words * word, out = header_.out_words * word;
	size_t size = count_;

	if (in != size)
		return kern::Error{-EINVAL};
	/* Old libraries say less of this one than they are to. */
	const size_t least = sizeof(header_) + command.request;
	const bool short_of_reserved = command.number == abi::destroy_cq && size == least - sizeof(u64);
	if (size < least && !short_of_reserved)
		return kern::Error{-ENOSPC};
	if (out < command.response)
		return kern::Error{-ENOSPC};
	/* They have it whole, and count it wrong. */
	const size_t core = command.request;
	TRY(take_request(command, sizeof(header_), core));
	size = short_of_reserved ? 0 : size - sizeof(header_) - core;

	if (command.response) {
		call_.response_ = call_.request<abi::ResponseOnly>().response;
		call_.room_ = command.response;
	}
	set_driver_parts(from_ + sizeof(header_) + core, size, call_.response_ + command.response, out - command.response);
	return {};
}

kern::Result<> Framing::read_extended(const Command &command)
{
	constexpr size_t word = 8;
	constexpr size_t headers = sizeof(abi::Header) + sizeof(abi::ExtendedHeader);
	abi::ExtendedHeader extended;

	if (count_ < headers)
		return kern::Error{-EINVAL};
	TRY(kern::copy_in(&extended, from_ + sizeof(header_), sizeof(extended)));
	const size_t in = header_.in_words * word, out = header_.out_words * word;
	const size_t driver_in = extended.driver_in_words * word, driver_out = extended.driver_out_words * word;
	if (in + driver_in != count_ - headers)
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
	TRY(take_request(command, headers, in));
	call_.response_ = extended.response;
	call_.room_ = out;
	set_driver_parts(from_ + headers + in, driver_in, extended.response + out, driver_out);
	return {};
}

kern::Result<> run_command(File &file, u64 from, size_t count, Present present)
{
	Call call(file);
	Framing framing(call, from, count);
	const Command *command = TRY(framing.read_header(present));

	TRY(framing.read_request(*command));
	if (command->needs != Needs::object && !present.device)
		return kern::Error{-EIO};
	if (command->needs == Needs::context && !present.context)
		return kern::Error{-EINVAL};
	return command->run(call);
}

} // namespace uverbs
