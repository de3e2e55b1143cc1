// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Implements the life cycle of an open umad device file, and the commands for its agents. */
#include "file.hpp"
#include <kern/nospec.hpp>
#include <kern/user.hpp>
#include "port.hpp"

namespace umad
{

namespace
{

constinit kern::FileKind<File> kind;

} // namespace

kern::FileKind<File> &file_kind()
{
	return kind;
}

kern::Result<kern::Ref<File>> File::create(Port &port, kern_file &native)
{
	return kern::adopt_ref(new (kern::Gfp::kernel_account) File(port, native));
}

File::File(Port &owner, kern_file &native) : owner_(kern::Ref<Port>::share(owner)), native_(native)
{
}

File::~File()
{
	kern::List<Unread, &Unread::node> left;
	{
		kern::Guard guard(lock_);
		left.splice_back(unread_);
	}
	while (Unread *message = left.pop_front())
		kern::destroy(message);
}

void File::become(State next)
{
	{
		kern::Guard guard(agents_lock_);
		if (state() >= next)
			return;
		state_.store_release(static_cast<u8>(next));
		for (kern::Owned<Agent> &agent : agents_)
			agent.reset();
	}
	readers_.wake_all();
}

void File::leave_device()
{
	become(State::device_gone);
}

void File::release()
{
	become(State::closed);
	/*
	 * This must be the last access to the port, because the removal of the port waits for it.
	 */
	owner_->forget(*this);
	/* Drop the reference that Port::open() took for the file. */
	kern::Ref<File>::adopt(this);
}

size_t File::header_size() const
{
	const Form now = form();
	return now == Form::open_long || now == Form::settled_long ? sizeof(abi::Header)
								   : abi::header_without_pkey;
}

void File::settle(bool with_pkey)
{
	if (form() >= Form::settled_short)
		return;
	const Form settled =
		with_pkey || form() == Form::open_long ? Form::settled_long : Form::settled_short;
	form_.store_release(static_cast<u8>(settled));
}

kern::Result<> File::control(unsigned int command, u64 argument)
{
	switch (command) {
	case abi::register_agent:
		return register_agent(argument);
	case abi::register_agent2:
		return register_agent2(argument);
	case abi::unregister_agent: {
		u32 id;
		KERN_TRY(kern::copy_in(&id, argument, sizeof(id)));
		return remove_agent(id);
	}
	case abi::enable_pkey:
		return enable_pkey();
	default:
		return kern::Error{-ENOSYS};
	}
}

kern::Result<> File::enable_pkey()
{
	kern::Guard guard(agents_lock_);
	if (form() >= Form::settled_short)
		return kern::Error{-EINVAL};
	form_.store_release(static_cast<u8>(Form::open_long));
	return {};
}

kern::Result<u32> File::add_agent(const Registration &what, bool with_pkey)
{
	kern::Guard guard(agents_lock_);
	if (state() != State::opened)
		return kern::Error{-EPIPE};
	for (u32 id = 0; id < agents_max; id++) {
		if (agents_[id])
			continue;
		agents_[id] =
			KERN_TRY(Agent::create(*this, owner_->ib(), owner_->number(), id, what));
		settle(with_pkey);
		return id;
	}
	return kern::Error{-ENOMEM};
}

kern::Result<> File::remove_agent(u32 id)
{
	kern::Guard guard(agents_lock_);
	if (id >= agents_max)
		return kern::Error{-EINVAL};
	kern::Owned<Agent> &agent = agents_[kern::index_nospec(id, agents_max)];
	if (!agent)
		return kern::Error{-EINVAL};
	/*
	 * The agent is destroyed with the lock held, so that the removal of the port waits for it.
	 */
	agent.reset();
	return {};
}

kern::Result<> File::answer_agent(u64 to, u32 id)
{
	const kern::Result<> copied = kern::copy_out(to, &id, sizeof(id));
	if (!copied)
		kern::ignore(remove_agent(id)); // the program may have removed the agent itself
	return copied;
}

kern::Result<> File::register_agent(u64 argument)
{
	abi::RegisterAgent asked;

	KERN_TRY(kern::copy_in(&asked, argument, sizeof(asked)));
	Registration what{
		.qpn = asked.qpn, .flags = 0, .request = {}, .rmpp_version = asked.rmpp_version};
	what.request.mgmt_class = asked.mgmt_class;
	what.request.mgmt_class_version = asked.mgmt_class_version;
	__builtin_memcpy(what.request.oui, asked.oui, sizeof(asked.oui));
	__builtin_memcpy(what.request.method_mask, asked.method_mask, sizeof(asked.method_mask));
	const u32 id = KERN_TRY(add_agent(what, false));
	return answer_agent(argument + __builtin_offsetof(abi::RegisterAgent, id), id);
}

kern::Result<> File::register_agent2(u64 argument)
{
	abi::RegisterAgent2 asked;

	KERN_TRY(kern::copy_in(&asked, argument, sizeof(asked)));
	if (asked.flags & ~abi::user_rmpp) {
		/* Return the supported flags to the program. */
		const u32 known = abi::user_rmpp;
		KERN_TRY(kern::copy_out(argument + __builtin_offsetof(abi::RegisterAgent2, flags),
					&known, sizeof(known)));
		return kern::Error{-EINVAL};
	}
	if (asked.oui >> 24)
		return kern::Error{-EINVAL};
	Registration what{.qpn = asked.qpn,
			  .flags = asked.flags & abi::user_rmpp ? u32{IB_MAD_USER_RMPP} : 0,
			  .request = {},
			  .rmpp_version = asked.rmpp_version};
	what.request.mgmt_class = asked.mgmt_class;
	what.request.mgmt_class_version = asked.mgmt_class_version;
	for (unsigned int i = 0; i < sizeof(what.request.oui); i++)
		what.request.oui[i] = static_cast<u8>(asked.oui >> (16 - 8 * i));
	__builtin_memcpy(what.request.method_mask, asked.method_mask, sizeof(asked.method_mask));
	const u32 id = KERN_TRY(add_agent(what, true));
	return answer_agent(argument + __builtin_offsetof(abi::RegisterAgent2, id), id);
}

unsigned int File::poll(kern::Poll &poll)
{
	poll.wait(readers_);
	if (state() != State::opened)
		return KERN_POLL_ERROR;
	kern::Guard guard(lock_);
	return KERN_POLL_WRITABLE | (unread_.empty() ? 0 : KERN_POLL_READABLE);
}

} // namespace umad
