// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "table.hpp"
#include "convert.hpp"

namespace rdma_ucm
{

namespace
{

/* Compares addresses in the same way as rdma_leave_multicast(). */
bool same(const rdma_sockaddr &one, const rdma_sockaddr &other)
{
	return __builtin_memcmp(&one, &other, size_of(one.family)) == 0;
}

} // namespace

void Table::become(Source &source, State next)
{
	if (KERN_WARN_ON(next <= source.state_))
		return;
	source.state_ = next;
	if (next == State::ended)
		source.of_user_ = {};
}

Source &Table::source_of(const Event &event)
{
	return event.membership ? static_cast<Source &>(*event.membership) : *event.id;
}

void Table::wake(File &file)
{
	file.readers_.wake();
	kern_file_signal(&file.native_);
}

kern::Result<> Table::add(Id &id)
{
	id.of_all_ = KERN_TRY(id_limit_.take());
	id.number_ = KERN_TRY(ids_.alloc(&id, 0, ids_max - 1));
	return {};
}

kern::Result<> Table::add(Membership &membership)
{
	membership.of_all_ = KERN_TRY(membership_limit_.take());
	membership.number_ = KERN_TRY(memberships_.alloc(&membership, 0, memberships_max - 1));
	return {};
}

kern::Result<> Table::publish(Id &id, File &file)
{
	kern::Guard guard(lock_);
	id.of_user_ = KERN_TRY(file.share_->ids.take());
	become(id, State::known);
	put_into(*kern::Ref<Id>::share(id).release(), file);
	return {};
}

kern::Result<> Table::publish(Membership &membership)
{
	kern::Guard guard(lock_);
	Id &id = *membership.id;
	if (id.state_ != State::known)
		return kern::Error{-ENOENT};
	for (const Membership &other : id.memberships_)
		if (same(other.address, membership.address))
			return kern::Error{-EADDRINUSE};
	membership.of_user_ = KERN_TRY(id.file_->share_->memberships.take());
	become(membership, State::known);
	id.memberships_.push_back(*kern::Ref<Membership>::share(membership).release());
	return {};
}

kern::Result<> Table::publish(kern::Owned<Event> &request)
{
	kern::Guard guard(lock_);
	Id &listener = *request->id, &fresh = *request->fresh;
	if (listener.state_ != State::known || listener.waiting_ >= listener.backlog_)
		return kern::Error{-ENOMEM};
	File &file = *listener.file_;
	kern::Result<kern::Charge> charge = file.share_->ids.take();
	if (!charge)
		return kern::Error{-ENOMEM};
	fresh.of_user_ = charge.take();
	listener.waiting_++;
	become(fresh, State::known);
	put_into(*kern::Ref<Id>::share(fresh).release(), file);
	Event &event = *request.release();
	event.record.uid = listener.uid_;
	event.record.id = fresh.number_;
	listener.events_.push_back(event);
	file.unread_.push_back(event);
	wake(file);
	return {};
}

kern::Result<Id *> Table::look_up(u32 number, const File &file)
{
	Id *id = ids_.load(number);

	if (!id || id->state_ != State::known)
		return kern::Error{-ENOENT};
	if (id->file_ != &file)
		return kern::Error{-EINVAL};
	return id;
}

kern::Result<kern::Ref<Id>> Table::find(u32 number, const File &file)
{
	kern::Guard guard(lock_);
	return kern::Ref<Id>::share(*KERN_TRY(look_up(number, file)));
}

kern::Ref<Id> Table::claim_locked(Id &id)
{
	if (id.state_ != State::known)
		return {};
	become(id, State::ended);
	/*
	 * The user's share is released now: the destruction takes time, and the file, which holds
	 * the share, may be closed meanwhile.
	 */
	for (Membership &membership : id.memberships_)
		membership.of_user_ = {};
	for (Event &event : id.events_)
		event.in_file.unlink();
	id.node.unlink();
	id.file_ = nullptr;
	return kern::Ref<Id>::adopt(&id);
}

kern::Ref<Membership> Table::claim_locked(Membership &membership)
{
	if (membership.state_ != State::known)
		return {};
	become(membership, State::ended);
	return kern::Ref<Membership>::adopt(&membership);
}

kern::Result<kern::Ref<Id>> Table::claim(u32 number, const File &file)
{
	kern::Guard guard(lock_);
	return claim_locked(*KERN_TRY(look_up(number, file)));
}

kern::Result<kern::Ref<Membership>> Table::claim_membership(u32 number, const File &file)
{
	kern::Guard guard(lock_);
	Membership *membership = memberships_.load(number);

	if (!membership || membership->state_ != State::known ||
	    membership->id->state_ != State::known)
		return kern::Error{-ENOENT};
	if (membership->id->file_ != &file)
		return kern::Error{-EINVAL};
	return claim_locked(*membership);
}

kern::Ref<Id> Table::claim_any(File &file)
{
	kern::Guard guard(lock_);
	Id *first = file.ids_.front();
	return first ? claim_locked(*first) : kern::Ref<Id>();
}

kern::Ref<Membership> Table::claim_any(Id &id)
{
	kern::Guard guard(lock_);
	for (Membership &membership : id.memberships_)
		if (kern::Ref<Membership> claimed = claim_locked(membership))
			return claimed;
	return {};
}

kern::Ref<Id> Table::claim(Id &id)
{
	kern::Guard guard(lock_);
	return claim_locked(id);
}

kern::Ref<Membership> Table::claim(Membership &membership)
{
	kern::Guard guard(lock_);
	return claim_locked(membership);
}

u32 Table::remove(Id &id, Events &unread)
{
	kern::Guard guard(lock_);
	unread.splice_back(id.events_);
	ids_.erase(id.number_);
	return id.read_;
}

u32 Table::remove(Membership &membership, Events &unread)
{
	kern::Guard guard(lock_);
	for (Event &event : membership.id->events_) {
		if (event.membership.get() != &membership)
			continue;
		event.in_file.unlink();
		event.in_id.unlink();
		unread.push_back(event);
	}
	membership.node.unlink();
	memberships_.erase(membership.number_);
	return membership.read_;
}

void Table::forget(Membership &membership)
{
	kern::Guard guard(lock_);
	if (membership.state_ != State::made)
		return;
	become(membership, State::ended);
	memberships_.erase(membership.number_);
}

kern::Result<u32> Table::move(u32 number, File &from, File &to)
{
	kern::Guard guard(lock_);
	Id &id = *KERN_TRY(look_up(number, from));

	if (&from == &to)
		return id.read_;
	if (&*from.share_ != &*to.share_)
		return kern::Error{-EACCES};
	migrate(id, to);
	/*
	 * IDs of unread requests move with the listener, so that the program finds them in the file
	 * from which it reads the events.
	 */
	for (Event &event : id.events_)
		if (event.fresh && event.fresh->file_ == &from)
			migrate(*event.fresh, to);
	wake(to);
	return id.read_;
}

void Table::put_into(Id &id, File &file)
{
	id.file_ = &file;
	file.ids_.push_back(id);
}

void Table::migrate(Id &id, File &to)
{
	id.node.unlink();
	put_into(id, to);
	for (Event &event : id.events_) {
		event.in_file.unlink();
		to.unread_.push_back(event);
	}
}

void Table::lose_device(Id &id)
{
	kern::Guard guard(lock_);
	if (id.lost.linked())
		return;
	lost_.push_back(*kern::Ref<Id>::share(id).release());
	removal_.queue();
}

void Table::end_lost()
{
	while (true) {
		kern::Ref<Id> id;
		{
			kern::Guard guard(lock_);
			id = kern::Ref<Id>::adopt(lost_.pop_front());
		}
		if (!id)
			return;
		id->end_cm();
	}
}

void Table::set_uid(Source &source, u64 uid)
{
	kern::Guard guard(lock_);
	source.uid_ = uid;
}

u32 Table::set_backlog(Id &listener, u32 backlog)
{
	kern::Guard guard(lock_);
	return std::exchange(listener.backlog_, backlog);
}

kern::Result<> Table::may_request(const Id &id)
{
	kern::Guard guard(lock_);
	if (id.unread_ >= Source::requested_max)
		return kern::Error{-ENOBUFS};
	return {};
}

void Table::push(kern::Owned<Event> &made)
{
	kern::Guard guard(lock_);
	Source &source = source_of(*made);
	if (source.state_ != State::known || made->id->state_ != State::known || !source.uid_ ||
	    source.unread_ >= Source::unread_max)
		return;
	Event &event = *made.release();
	File &file = *event.id->file_;
	source.unread_++;
	event.record.uid = source.uid_;
	event.record.id = source.number_;
	event.id->events_.push_back(event);
	file.unread_.push_back(event);
	wake(file);
}

kern::Owned<Event> Table::pop(File &file)
{
	kern::Guard guard(lock_);
	Event *event = file.unread_.pop_front();

	if (!event)
		return {};
	event->in_id.unlink();
	Source &source = source_of(*event);
	event->id->read_++;
	if (event->membership)
		event->membership->read_++;
	if (event->fresh)
		event->id->waiting_--;
	else
		source.unread_--;
	return kern::Owned<Event>::adopt(event);
}

void Table::put_back(kern::Owned<Event> &unread)
{
	kern::Guard guard(lock_);
	Source &source = source_of(*unread);
	unread->id->read_--;
	if (unread->membership)
		unread->membership->read_--;
	if (source.state_ != State::known || unread->id->state_ != State::known)
		return;
	Event &event = *unread.release();
	if (event.fresh) {
		event.id->waiting_++;
		/*
		 * The listener may have been moved meanwhile, so move the new ID to the same file.
		 */
		if (event.fresh->file_ && event.fresh->file_ != event.id->file_)
			migrate(*event.fresh, *event.id->file_);
	} else {
		source.unread_++;
	}
	event.id->events_.push_front(event);
	event.id->file_->unread_.push_front(event);
	wake(*event.id->file_);
}

bool Table::has_unread(const File &file)
{
	kern::Guard guard(lock_);
	return !file.unread_.empty();
}

} // namespace rdma_ucm
