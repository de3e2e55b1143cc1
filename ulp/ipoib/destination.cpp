// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "destination.hpp"

#include <kern/time.hpp>

namespace ipoib
{
namespace
{

/* After an attempt that failed, the next packet tries again, but not at once. */
constexpr u64 retry_after_ns = 1'000'000'000;

u32 drop_all(kern_skb_queue &queue)
{
	u32 count = 0;
	while (sk_buff *skb = kern_skb_dequeue(&queue)) {
		kern_skb_drop(skb);
		count++;
	}
	return count;
}

} // namespace

kern::Owned<Handle> Handle::create(ib_pd *pd, rdma_ah_attr &where)
{
	ib_ah *ah = rdma_create_ah(pd, &where, 0);
	if (rdma::is_err(ah))
		return {};
	auto made = kern::make<Handle>(kern::Gfp::atomic | kern::Gfp::no_warn, ah);
	if (made.ok())
		return made.take();
	rdma_destroy_ah(ah, 0);
	return {};
}

Destination::~Destination()
{
	if (handle_)
		table_.rest(std::move(handle_));
}

/* After the last reader. */
void Destination::drop_reference()
{
	kern::Ref<Destination>::adopt(this).reset();
}

DestinationTable::~DestinationTable()
{
	remove_all();
	kern::rcu::barrier();
	end_rested(0);
}

u32 DestinationTable::bucket_of(const HardwareAddress &address)
{
	/* What differs between peers of a subnet: the low half of the GID, and the QP number. */
	u64 low;
	__builtin_memcpy(&low, address.gid.raw + 8, sizeof(low));
	const u64 mixed = (low ^ address.qpn()) * 0x9e3779b97f4a7c15;
	return static_cast<u32>(mixed >> 54);
}
static_assert(DestinationTable::buckets == 1u << (64 - 54));

Destination *DestinationTable::find(const HardwareAddress &address) const
{
	Destination *entry = __atomic_load_n(&heads_[bucket_of(address)], __ATOMIC_CONSUME);
	while (entry && !entry->address_.same_peer(address))
		entry = __atomic_load_n(&entry->next_, __ATOMIC_CONSUME);
	return entry;
}

Destination *DestinationTable::find_locked(const HardwareAddress &address)
{
	return find(address);
}

kern::Ref<Destination> DestinationTable::get(const HardwareAddress &address)
{
	kern::Guard guard(lock_);
	Destination *entry = find_locked(address);
	return entry ? kern::Ref<Destination>::share(*entry) : kern::Ref<Destination>();
}

DestinationTable::Action DestinationTable::wait(const HardwareAddress &address, sk_buff *skb,
						kern::Ref<Destination> &destination)
{
	kern::Guard guard(lock_);
	Destination *entry = find_locked(address);
	if (!entry) {
		if (count_ >= capacity)
			return Action::drop;
		auto made = kern::make_ref<Destination>(kern::Gfp::atomic | kern::Gfp::no_warn,
							*this, address);
		if (!made.ok())
			return Action::drop;
		entry = made.take().release();
		Destination *&head = heads_[bucket_of(address)];
		entry->next_ = head;
		__atomic_store_n(&head, entry, __ATOMIC_RELEASE);
		count_++;
	}
	destination = kern::Ref<Destination>::share(*entry);
	if (entry->ah_)
		return Action::send;
	if (entry->waiting_.length >= waiting_max)
		return Action::drop;
	if (entry->resolving_) {
		kern_skb_enqueue(&entry->waiting_, skb);
		return Action::wait;
	}
	if (kern::now_ns() < entry->retry_at_)
		return Action::drop;
	entry->resolving_ = true;
	kern_skb_enqueue(&entry->waiting_, skb);
	return Action::resolve;
}

bool DestinationTable::begin_refresh(Destination &destination)
{
	kern::Guard guard(lock_);
	if (!destination.stale_ || destination.resolving_)
		return false;
	__atomic_store_n(&destination.stale_, false, __ATOMIC_RELAXED);
	destination.resolving_ = true;
	return true;
}

void DestinationTable::doubt(Destination &destination)
{
	kern::Guard guard(lock_);
	if (destination.ah_ && !destination.resolving_)
		__atomic_store_n(&destination.stale_, true, __ATOMIC_RELAXED);
}

bool DestinationTable::path_of(const Destination &destination, sa_path_rec &path)
{
	kern::Guard guard(lock_);
	if (!destination.path_)
		return false;
	path = *destination.path_;
	return true;
}

kern_skb_queue DestinationTable::resolved(Destination &destination, kern::Owned<Handle> handle,
					  kern::Owned<sa_path_rec> path)
{
	kern_skb_queue waiting{};
	kern::Owned<Handle> former;
	{
		kern::Guard guard(lock_);
		destination.resolving_ = false;
		if (handle) {
			__atomic_store_n(&destination.ah_, handle->ah, __ATOMIC_RELEASE);
			former = std::exchange(destination.handle_, std::move(handle));
			std::swap(destination.path_, path);
		} else if (!destination.ah_) {
			destination.retry_at_ = kern::now_ns() + retry_after_ns;
		}
		std::swap(waiting, destination.waiting_);
	}
	if (former) {
		kern::rcu::synchronize();
		rest(std::move(former));
	}
	return waiting;
}

void DestinationTable::rest(kern::Owned<Handle> handle)
{
	kern::Guard guard(lock_);
	resting_.push_back(*handle.release());
}

void DestinationTable::end_rested(unsigned rounds)
{
	{
		kern::Guard guard(lock_);
		for (Handle &handle : resting_)
			handle.rounds++;
	}
	const auto next = [&] {
		kern::Guard guard(lock_);
		Handle *longest = resting_.front();
		return kern::Owned<Handle>::adopt(
			longest && longest->rounds > rounds ? resting_.pop_front() : nullptr);
	};
	while (next())
		;
}

template<class Condition>
u32 DestinationTable::remove_if(Condition condition)
{
	u32 dropped = 0;
	for (Destination *&head : heads_) {
		kern::Guard guard(lock_);
		for (Destination **place = &head; Destination *entry = *place;) {
			if (!condition(*entry)) {
				place = &entry->next_;
				continue;
			}
			__atomic_store_n(place, entry->next_, __ATOMIC_RELEASE);
			count_--;
			__atomic_store_n(&entry->removed_, true, __ATOMIC_RELAXED);
			dropped += drop_all(entry->waiting_);
			entry->deferred_.call(kern::method<&Destination::drop_reference>, entry);
		}
	}
	return dropped;
}

u32 DestinationTable::remove(const HardwareAddress &address)
{
	return remove_if(
		[&](const Destination &entry) { return entry.address_.same_peer(address); });
}

u32 DestinationTable::remove_all()
{
	return remove_if([](const Destination &) { return true; });
}

u32 DestinationTable::remove_unused(unsigned rounds)
{
	return remove_if([=](Destination &entry) {
		entry.idle_rounds_ = __atomic_exchange_n(&entry.touched_, false, __ATOMIC_RELAXED)
					     ? 0
					     : static_cast<u8>(entry.idle_rounds_ + 1);
		return !entry.resolving_ && entry.idle_rounds_ >= rounds;
	});
}

void DestinationTable::mark_stale()
{
	for (Destination *&head : heads_) {
		/* The head is read under the lock: what it was before may be freed. */
		kern::Guard guard(lock_);
		for (Destination *entry = head; entry; entry = entry->next_)
			if (entry->ah_)
				__atomic_store_n(&entry->stale_, true, __ATOMIC_RELAXED);
	}
}

} // namespace ipoib
