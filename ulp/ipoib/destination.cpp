// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "destination.hpp"

#include <array>
#include <bit>
#include <kern/time.hpp>

namespace ipoib
{
namespace
{

/*
 * Time before the next attempt to resolve an address, after an attempt has failed. It also limits
 * how often the path of a destination is queried again, because a peer can cause this as often as
 * it likes, and each response creates an address handle.
 */
constexpr u64 retry_after_ns = 1'000'000'000;

/* The fields that same_peer() compares, as integers. */
struct Peer {
	explicit Peer(const HardwareAddress &address)
	{
		__builtin_memcpy(&qpn, &address, sizeof(qpn));
		qpn &= no_flags;
		__builtin_memcpy(&prefix, address.gid.raw, sizeof(prefix));
		__builtin_memcpy(&interface_id, address.gid.raw + 8, sizeof(interface_id));
	}
	bool is(const HardwareAddress &address) const
	{
		const Peer other(address);
		return qpn == other.qpn && interface_id == other.interface_id &&
		       prefix == other.prefix;
	}

	static constexpr u32 no_flags = std::bit_cast<u32>(std::array<u8, 4>{0, 0xff, 0xff, 0xff});
	u32 qpn; /* in network byte order */
	u64 prefix, interface_id;
};

/* Drops all packets of the queue. Returns their number. */
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

/* Called when the last RCU reader has finished. */
void Handle::retire()
{
	table_->retire(kern::Owned<Handle>::adopt(this));
}

Destination::~Destination()
{
	if (handle_)
		table_.retire(std::move(handle_));
}

/* Called when the last RCU reader has finished. */
void Destination::drop_reference()
{
	kern::Ref<Destination>::adopt(this).reset();
}

DestinationTable::~DestinationTable()
{
	remove_all();
	kern::rcu::barrier();
	destroy_retired(0);
}

DestinationTable::Secret DestinationTable::Secret::draw()
{
	return {kern::random_u64(), kern::random_u64(), kern::random_u64() | 1};
}

/*
 * Hashes all fields that identify a peer, because a peer chooses all of them. Each field is
 * combined with a secret before it is combined with another field, so that no field can cancel
 * another. The second multiplication is needed for addresses at equal distances. The results of the
 * first multiplication are at equal distances, too, and for one secret in two hundred, most buckets
 * would remain empty.
 */
u32 DestinationTable::bucket_of(const HardwareAddress &address) const
{
	const Peer peer(address);
	__extension__ using Wide = unsigned __int128;
	const auto folded_product = [](u64 one, u64 other) {
		const Wide product = Wide{one} * other;
		return static_cast<u64>(product ^ product >> 64);
	};
	const u64 mixed = folded_product(peer.interface_id ^ secret_.interface_id,
					 (peer.prefix ^ secret_.prefix) + peer.qpn * secret_.qpn);
	return static_cast<u32>(folded_product(mixed, secret_.qpn)) % buckets;
}

u32 DestinationTable::gid_bucket_of(const ib::Gid &gid) const
{
	return bucket_of(HardwareAddress::make(0, gid)) % gid_buckets;
}

Destination *DestinationTable::find(const HardwareAddress &address) const
{
	const Peer peer(address);
	Destination *entry = kern::rcu::dereference(heads_[bucket_of(address)]);
	while (entry && !peer.is(entry->address_))
		entry = kern::rcu::dereference(entry->next_);
	return entry;
}

Destination *DestinationTable::find_locked(const HardwareAddress &address)
{
	kern::rcu::ReadGuard reading;
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
	Destination *entry = find_locked(address) ?: create_locked(address);
	if (!entry)
		return Action::drop;
	destination = kern::Ref<Destination>::share(*entry);
	if (entry->ah_)
		return Action::send;
	if (entry->waiting_.length >= waiting_max)
		return Action::drop;
	const bool has_place = waiting_ < waiting_of_all_max;
	if (entry->resolving_) {
		if (!has_place)
			return Action::drop;
		kern_skb_enqueue(&entry->waiting_, skb);
		waiting_++;
		return Action::wait;
	}
	if (kern::now_ns() < entry->retry_at_)
		return Action::drop;
	entry->resolving_ = true;
	set_unresolved_locked(*entry, false);
	if (!has_place)
		return Action::drop_and_resolve;
	kern_skb_enqueue(&entry->waiting_, skb);
	waiting_++;
	return Action::resolve;
}

/* Returns nullptr if the table has no space for the destination, or if memory allocation fails. */
Destination *DestinationTable::create_locked(const HardwareAddress &address)
{
	if (!make_space_locked(address))
		return nullptr;
	auto made =
		kern::make_ref<Destination>(kern::Gfp::atomic | kern::Gfp::no_warn, *this, address);
	if (!made.ok())
		return nullptr;
	Destination *const entry = made.take().release();
	of_gid_[gid_bucket_of(address.gid)].push_back(*entry);
	Destination *&head = heads_[bucket_of(address)];
	entry->next_ = head;
	__atomic_store_n(&head, entry, __ATOMIC_RELEASE);
	count_++;
	return entry;
}

/*
 * Makes space for another destination with this GID; returns false if there is none. Any
 * destination may replace an unresolved one, as long as its GID has used no more than its share of
 * the entries. Above the share, it may only replace an unresolved destination with the same GID.
 */
bool DestinationTable::make_space_locked(const HardwareAddress &address)
{
	const u32 free = capacity - count_ + unresolved_count_;
	u32 of_gid = 0;
	Destination *unresolved = nullptr;
	for (Destination &other : of_gid_[gid_bucket_of(address.gid)]) {
		if (other.address_.gid != address.gid)
			continue;
		of_gid++;
		if (!unresolved && other.unresolved_.linked())
			unresolved = &other;
	}
	if (of_gid < (free + share - 1) / share) {
		if (count_ < capacity)
			return true;
		unresolved = unresolved_.front();
	}
	if (unresolved)
		remove_unresolved_locked(*unresolved);
	return unresolved;
}

/*
 * Removes a destination from the table, and drops the packets that wait for it. Returns the number
 * of dropped packets.
 */
u32 DestinationTable::take_out_locked(Destination **place)
{
	Destination &entry = **place;
	__atomic_store_n(place, entry.next_, __ATOMIC_RELEASE);
	entry.of_gid_.unlink();
	set_unresolved_locked(entry, false);
	count_--;
	__atomic_store_n(&entry.removed_, true, __ATOMIC_RELAXED);
	const u32 dropped = drop_all(entry.waiting_);
	waiting_ -= dropped;
	entry.deferred_.call(kern::method<&Destination::drop_reference>, &entry);
	return dropped;
}

/* Removes an unresolved destination, for which no packets wait. */
void DestinationTable::remove_unresolved_locked(Destination &destination)
{
	Destination **place = &heads_[bucket_of(destination.address_)];
	while (*place != &destination)
		place = &(*place)->next_;
	(void)take_out_locked(place);
}

/* Adds the destination to the list of unresolved destinations, or removes it. */
void DestinationTable::set_unresolved_locked(Destination &destination, bool unresolved)
{
	if (destination.unresolved_.linked() == unresolved)
		return;
	if (unresolved) {
		unresolved_.push_back(destination);
		unresolved_count_++;
	} else {
		destination.unresolved_.unlink();
		unresolved_count_--;
	}
}

u32 DestinationTable::longest()
{
	u32 longest = 0;
	for (Destination *&head : heads_) {
		kern::Guard guard(lock_);
		u32 length = 0;
		for (const Destination *entry = head; entry; entry = entry->next_)
			length++;
		longest = length > longest ? length : longest;
	}
	return longest;
}

bool DestinationTable::begin_refresh(Destination &destination)
{
	kern::Guard guard(lock_);
	const u64 now = kern::now_ns();
	if (!destination.stale_ || destination.resolving_ || now < destination.retry_at_)
		return false;
	__atomic_store_n(&destination.retry_at_, now + retry_after_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&destination.stale_, false, __ATOMIC_RELAXED);
	destination.resolving_ = true;
	return true;
}

void DestinationTable::mark_stale(Destination &destination)
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
			__atomic_store_n(&destination.retry_at_, kern::now_ns() + retry_after_ns,
					 __ATOMIC_RELAXED);
		}
		set_unresolved_locked(destination, !destination.ah_ && !destination.removed_);
		std::swap(waiting, destination.waiting_);
		waiting_ -= waiting.length;
	}
	if (former)
		retire_after_readers(std::move(former));
	return waiting;
}

void DestinationTable::retire(kern::Owned<Handle> handle)
{
	kern::Guard guard(lock_);
	retired_.push_back(*handle.release());
}

void DestinationTable::retire_after_readers(kern::Owned<Handle> handle)
{
	Handle *const retired = handle.release();
	retired->table_ = this;
	retired->deferred_.call(kern::method<&Handle::retire>, retired);
}

void DestinationTable::destroy_retired(unsigned rounds)
{
	{
		kern::Guard guard(lock_);
		for (Handle &handle : retired_)
			handle.rounds++;
	}
	const auto next = [&] {
		kern::Guard guard(lock_);
		Handle *longest = retired_.front();
		return kern::Owned<Handle>::adopt(
			longest && longest->rounds > rounds ? retired_.pop_front() : nullptr);
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
			dropped += take_out_locked(place);
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
		/*
		 * The head is read with the lock held, because the destination that was the head
		 * before may have been freed.
		 */
		kern::Guard guard(lock_);
		for (Destination *entry = head; entry; entry = entry->next_)
			if (entry->ah_ && !entry->address_.is_multicast())
				__atomic_store_n(&entry->stale_, true, __ATOMIC_RELAXED);
	}
}

} // namespace ipoib
