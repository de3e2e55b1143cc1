// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "file.hpp"
#include "command.hpp"
#include "table.hpp"

namespace rdma_ucm
{

namespace
{

constinit kern::FileKind<File> kind;

} // namespace

kern::FileKind<File> &file_kind()
{
	return kind;
}

kern::Result<kern::Owned<File>> File::create(kern_file &native, const kern_user &user)
{
	auto share = KERN_TRY(table().enter(user));
	return kern::adopt(new (kern::Gfp::kernel_account) File(native, std::move(share)));
}

kern::Result<kern::Owned<Event>> File::next_event()
{
	while (true) {
		if (kern::Owned<Event> event = table().pop(*this))
			return event;
		if (!kern_file_waits(&native_))
			return kern::Error{-EAGAIN};
		KERN_TRY(readers_.wait_interruptible([&] { return table().has_unread(*this); }));
	}
}

kern::Result<size_t> File::write(u64 from, size_t count)
{
	KERN_TRY(run_command(*this, from, count));
	return count;
}

unsigned int File::poll(kern::Poll &poll)
{
	poll.wait(readers_);
	return table().has_unread(*this) ? KERN_POLL_READABLE : 0;
}

void File::release()
{
	/*
	 * Destroy all IDs of the file. Requests that arrive meanwhile belong to a listener among
	 * them. IDs that other tasks are destroying no longer belong to the file.
	 */
	while (kern::Ref<Id> id = table().claim_any(*this))
		Id::end(std::move(id));
	kern::destroy(this);
}

} // namespace rdma_ucm
