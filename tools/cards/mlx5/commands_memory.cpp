// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the commands that create, query and destroy memory keys.
#include "cards/mlx5/core.hpp"

namespace weft::mlx5
{

using hw::mlx5::MkeyContext;
using hw::mlx5::Status;

Status Commands::create_mkey(Command &command)
{
	const std::uint8_t *const in = command.in.data();
	std::uint32_t index = 0;
	switch (core_.memory.create(in + hw::mlx5::context_offset,
				    hw::mlx5::mkey_actual_octwords.get(in),
				    command.in.subspan(hw::mlx5::pages_offset), index)) {
	case MemoryKeys::Created::done:
		hw::mlx5::object_number.set(command.out.data(), index);
		return Status::ok;
	case MemoryKeys::Created::bad_parameter:
		return Status::bad_parameter;
	case MemoryKeys::Created::limit:
		break;
	}
	return Status::exceeds_limit;
}

Status Commands::query_mkey(Command &command)
{
	const MemoryKey *const key =
		core_.memory.find(hw::mlx5::object_number.get(command.in.data()));
	if (!key)
		return Status::bad_resource;
	std::uint8_t *const out = command.out.data() + hw::mlx5::context_offset;
	MkeyContext::free.set(out, key->free);
	MkeyContext::mode_high.set(out, static_cast<std::uint32_t>(key->mode) >> 2);
	MkeyContext::mode_low.set(out, static_cast<std::uint32_t>(key->mode));
	MkeyContext::umr_enable.set(out, key->umr);
	MkeyContext::atomic.set(out, key->rights.remote_atomic);
	MkeyContext::remote_write.set(out, key->rights.remote_write);
	MkeyContext::remote_read.set(out, key->rights.remote_read);
	MkeyContext::local_write.set(out, key->rights.local_write);
	MkeyContext::local_read.set(out, key->rights.local_read);
	MkeyContext::qpn.set(out, key->qpn);
	MkeyContext::variant.set(out, key->variant);
	MkeyContext::length64.set(out, key->whole_space);
	MkeyContext::remote_invalidate.set(out, key->remote_invalidate);
	MkeyContext::pd.set(out, key->pd);
	MkeyContext::start.set(out, key->start);
	MkeyContext::length.set(out, key->length);
	MkeyContext::octwords.set(out, key->octwords);
	MkeyContext::log_page_size.set(out, key->page_shift);
	return Status::ok;
}

// The guest may reuse the pages when the command has completed, so packets in flight must not read
// them any more.
Status Commands::destroy_mkey(Command &command)
{
	const std::uint32_t index = hw::mlx5::object_number.get(command.in.data());
	if (!core_.memory.remove(index))
		return Status::bad_resource;
	core_.transport->key_gone(index);
	return Status::ok;
}

} // namespace weft::mlx5
