// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mellanox_icm/command.hpp"

namespace weft::mellanox_icm
{

using hw::mlx4::Status;

Status Mailboxes::run(GuestMemory *guest, Command &command, std::size_t in_size,
		      std::size_t out_size, const std::function<Status()> &execute)
{
	if (in_size > hw::mlx4::mailbox_max || out_size > hw::mlx4::mailbox_max)
		return Status::bad_parameter;
	in_.resize(in_size);
	if (in_size &&
	    (!guest || !guest->read(command.in_param, std::as_writable_bytes(std::span(in_)))))
		return Status::bad_parameter;
	if (out_size && (!guest || !guest->covers(command.out_param, out_size, Access::write)))
		return Status::bad_parameter;
	out_.assign(out_size, 0);
	command.in = in_;
	command.out = out_;
	const Status status = execute();
	if (status == Status::ok && out_size)
		guest->write(command.out_param, std::as_bytes(std::span(out_)));
	return status;
}

} // namespace weft::mellanox_icm
