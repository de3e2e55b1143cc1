// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that clients are notified of events through each type of descriptor, without blocking.
#include "base/notifier.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <latch>
#include <system_error>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/descriptor_kind.hpp"

using weft::Notifier;
using weft::DescriptorKind;
using weft::FileDescriptor;
using weft::kind_of;
using weft::take_count;

namespace
{

FileDescriptor make_event(int flags = 0)
{
	return FileDescriptor(::eventfd(0, EFD_CLOEXEC | flags));
}

FileDescriptor duplicate(const FileDescriptor &fd)
{
	return FileDescriptor(::dup(fd.get()));
}

// Returns the read end and the write end of a pipe.
std::array<FileDescriptor, 2> make_pipe()
{
	int ends[2];
	EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
	return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

std::array<FileDescriptor, 2> make_pair(int type = SOCK_STREAM)
{
	int ends[2];
	EXPECT_EQ(::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends), 0);
	return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

std::uint64_t count_of(const FileDescriptor &event)
{
	std::uint64_t count = 0;
	EXPECT_EQ(::read(event.get(), &count, sizeof(count)), 8);
	return count;
}

// Each notification is counted, even thousands that are not read. A full counter is not changed.
TEST(Notifier, EventfdCountsEachNotification)
{
	const auto event = make_event();
	const auto notifier = Notifier::take(duplicate(event), Notifier::Kind::event);
	ASSERT_TRUE(notifier);
	for (int i = 0; i < 5000; ++i)
		notifier->ring();
	EXPECT_EQ(count_of(event), 5000u);
	ASSERT_EQ(::eventfd_write(event.get(), ~0ull - 1), 0);
	for (int i = 0; i < 5000; ++i)
		notifier->ring();
	EXPECT_GE(count_of(event), ~0ull - 1);
	notifier->ring();
	EXPECT_EQ(count_of(event), 1u);
}

// A thread that notifies uses little of the host's resources and no descriptor, so a daemon can
// have a thread for each of a thousand cards.
TEST(Notifier, ThousandThreadsNotifyAtOnceWithoutOpeningFileDescriptors)
{
	constexpr int thread_count = 1100;
	const auto event = make_event();
	const auto notifier = Notifier::take(duplicate(event), Notifier::Kind::event);
	ASSERT_TRUE(notifier);
	const auto next_descriptor = make_event().get();
	std::atomic<int> lacking = 0;
	{
		std::latch all_rang(thread_count);
		std::vector<std::jthread> threads;
		for (int i = 0; i < thread_count; ++i)
			threads.emplace_back([&] {
				try {
					notifier->ring();
				} catch (const std::system_error &) {
					++lacking;
				}
				all_rang.arrive_and_wait();
			});
		all_rang.wait();
		EXPECT_EQ(make_event().get(), next_descriptor);
	}
	EXPECT_EQ(lacking, 0);
	EXPECT_EQ(count_of(event), unsigned{thread_count});
}

// A message is written to a pipe as a whole, or not at all. The flags of the descriptor do not
// matter, because the peer can change them.
TEST(Notifier, EachMessageIsWrittenToAPipeCompletelyOrNotAtAll)
{
	const auto [reader, writer] = make_pipe();
	const auto notifier = Notifier::take(duplicate(writer), Notifier::Kind::channel);
	ASSERT_TRUE(notifier);
	const std::array<std::byte, 3000> message{};
	for (int i = 0; i < 1000; ++i)
		notifier->ring(message);
	EXPECT_FALSE(::fcntl(writer.get(), F_GETFL) & O_NONBLOCK);
	ASSERT_EQ(::fcntl(reader.get(), F_SETFL, O_NONBLOCK), 0);
	std::array<std::byte, 3000> read;
	std::size_t messages = 0;
	while (::read(reader.get(), read.data(), read.size()) == static_cast<ssize_t>(read.size()))
		++messages;
	EXPECT_EQ(errno, EAGAIN) << "a part of a message";
	EXPECT_GT(messages, 10u);
	EXPECT_LT(messages, 1000u);
}

// The same holds for a socket of a pair, whose other direction is then shut down.
TEST(Notifier, EachMessageIsWrittenToASocketCompletelyOrNotAtAll)
{
	auto [ours, theirs] = make_pair();
	const auto notifier = Notifier::take(duplicate(ours), Notifier::Kind::channel);
	ASSERT_TRUE(notifier);
	const std::array<std::byte, 3000> message{};
	for (int i = 0; i < 1000; ++i)
		notifier->ring(message);
	EXPECT_FALSE(::fcntl(ours.get(), F_GETFL) & O_NONBLOCK);
	std::array<std::byte, 3000> read;
	std::size_t messages = 0;
	ssize_t size;
	while ((size = ::recv(theirs.get(), read.data(), read.size(), MSG_DONTWAIT)) > 0) {
		ASSERT_EQ(size, static_cast<ssize_t>(read.size())) << "a part of a message";
		++messages;
	}
	EXPECT_GT(messages, 10u);
	EXPECT_LT(messages, 1000u);
	EXPECT_EQ(::send(theirs.get(), "x", 1, MSG_NOSIGNAL), -1);
	EXPECT_EQ(errno, EPIPE);
	theirs.reset();
	notifier->ring(message);
}

// Sockets with pending data or descriptors, listening sockets, datagram sockets and sockets of
// other families are refused.
TEST(Notifier, SocketMustBeAConnectedUnixStreamSocketWithoutPendingData)
{
	const auto [ours, theirs] = make_pair();
	ASSERT_EQ(::send(theirs.get(), "x", 1, 0), 1);
	const auto [datagrams, others] = make_pair(SOCK_DGRAM);
	const FileDescriptor listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
	const sockaddr_un nameless{AF_UNIX, {}};
	ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr *>(&nameless),
			 sizeof(sa_family_t)),
		  0);
	ASSERT_EQ(::listen(listener.get(), 1), 0);
	const FileDescriptor internet(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
	const FileDescriptor lonely(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
	for (const FileDescriptor *fd : {&ours, &datagrams, &listener, &internet, &lonely})
		EXPECT_FALSE(Notifier::take(duplicate(*fd), Notifier::Kind::channel));
}

// kind_of() identifies each descriptor, and Notifier::take() accepts only its own kind.
TEST(Notifier, FileDescriptorsOfTheWrongTypeAreRejected)
{
	const auto event = make_event();
	const auto [reader, writer] = make_pipe();
	const auto [socket, peer] = make_pair();
	const FileDescriptor memory(::memfd_create("pipe:[1]", MFD_CLOEXEC));
	const FileDescriptor timer(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
	EXPECT_EQ(kind_of(event.get()), DescriptorKind::event);
	EXPECT_EQ(kind_of(reader.get()), DescriptorKind::pipe);
	EXPECT_EQ(kind_of(socket.get()), DescriptorKind::socket);
	for (const int other : {memory.get(), timer.get(), -1})
		EXPECT_EQ(kind_of(other), DescriptorKind::other);

	for (const FileDescriptor *fd : {&reader, &writer, &socket, &memory, &timer})
		EXPECT_FALSE(Notifier::take(duplicate(*fd), Notifier::Kind::event));
	for (const FileDescriptor *fd : {&event, &reader, &memory, &timer})
		EXPECT_FALSE(Notifier::take(duplicate(*fd), Notifier::Kind::channel));
}

// Reading a count never blocks, whatever the flags of the descriptor are.
TEST(Notifier, ReadingAnEventfdCountDoesNotBlock)
{
	const auto event = make_event();
	EXPECT_FALSE(take_count(event.get()));
	ASSERT_EQ(::eventfd_write(event.get(), 7), 0);
	EXPECT_TRUE(take_count(event.get()));
	EXPECT_FALSE(take_count(event.get()));
	const auto single = make_event(EFD_SEMAPHORE);
	ASSERT_EQ(::eventfd_write(single.get(), 2), 0);
	EXPECT_TRUE(take_count(single.get()));
	EXPECT_TRUE(take_count(single.get()));
	EXPECT_FALSE(take_count(single.get()));
}

} // namespace
