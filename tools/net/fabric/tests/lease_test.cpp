// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that a revoked lease makes memory unreadable at once, and waits for active readers.
#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "net/fabric/packet.hpp"

namespace weft::fabric
{

namespace
{

using Memory = std::vector<std::byte>;

Payload lent(const Memory &memory, const std::shared_ptr<Lease> &lease)
{
	Payload payload;
	/* The payload has two parts that share one hold. */
	const std::span<const std::byte> bytes(memory);
	payload.append(bytes.first(memory.size() / 2), lease);
	payload.append(bytes.subspan(memory.size() / 2), lease);
	return payload;
}

} // namespace

/*
 * Leased bytes can be read until the lease ends, and not afterwards, neither through the payload
 * nor through its parts.
 */
TEST(MemoryLease, PayloadIsUnreadableAfterItsMemoryLeaseWasRevoked)
{
	const Memory memory(1000, std::byte{1}), other(10, std::byte{2});
	auto lease = std::make_shared<Lease>(nullptr), kept = std::make_shared<Lease>(nullptr);
	Payload payload = lent(memory, lease);
	EXPECT_EQ(lease.use_count(), 2) << "one count for a payload, whatever its pieces";
	payload.append(other, kept);
	const Payload part = payload.slice(900, 110);
	Memory copy(1010);
	EXPECT_EQ(payload.copy_to(copy), copy.size());
	EXPECT_EQ(copy[999], std::byte{1});
	EXPECT_EQ(copy[1000], std::byte{2});
	EXPECT_EQ(part.size(), 110u);

	lease->end();
	lease->end();
	EXPECT_EQ(payload.copy_to(copy), 0u);
	EXPECT_EQ(part.copy_to(copy), 0u);
	EXPECT_FALSE(payload.for_each([](auto) { FAIL(); }));
	EXPECT_EQ(payload.size(), 1010u) << "headers still tell of it";
	kept->end(); /* no reader is left */
}

/*
 * Ending a lease releases its memory on the owner's thread, even if packets still refer to the
 * lease. Unmapping guest memory takes long, and packets are destroyed on the threads of other
 * guests.
 */
TEST(MemoryLease, RevocationFreesTheMemoryEvenIfPacketsReferToIt)
{
	auto memory = std::make_shared<Memory>(100, std::byte{1});
	const std::weak_ptr<Memory> alive = memory;
	auto lease = std::make_shared<Lease>(memory);
	Payload payload = lent(*memory, lease);
	memory.reset();
	EXPECT_FALSE(alive.expired());
	lease->end();
	EXPECT_TRUE(alive.expired());
	Memory copy(100);
	EXPECT_EQ(payload.copy_to(copy), 0u);
}

/* end() waits for readers that are active when the lease ends. */
TEST(MemoryLease, RevocationWaitsForActiveReaders)
{
	constexpr unsigned rounds = 200;
	for (unsigned i = 0; i < rounds; i++) {
		Memory memory(4096, std::byte{1});
		auto lease = std::make_shared<Lease>(nullptr);
		std::atomic<unsigned> started{0};
		auto read = [&, payload = lent(memory, lease)] {
			Memory copy(memory.size());
			started++;
			started.notify_all();
			while (payload.copy_to(copy) != 0)
				ASSERT_EQ(std::ranges::count(copy, std::byte{1}), 4096) << "torn";
		};
		std::thread one(read), two(read);
		for (unsigned seen; (seen = started.load()) < 2;)
			started.wait(seen);
		lease->end();
		std::ranges::fill(memory, std::byte{2});
		one.join();
		two.join();
	}
}

} // namespace weft::fabric
