// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that the server splits the byte stream into messages: headers are checked, messages may
// arrive in fragments, and file descriptors stay with their message.
#include "bus/vfio-user/tests/fixture.hpp"

namespace weft::vfio_user
{
namespace
{

class Stream : public GreetedTest
{
protected:
	static Bytes read_request(std::uint16_t id, std::uint64_t offset)
	{
		return bytes_of(Header{id, 9, 32, 0, 0}, RegionAccess{offset, 0, 4});
	}
};

// A message may arrive in pieces of any size, and several messages may arrive at once.
TEST_F(Stream, FragmentedAndBatchedMessagesAreParsed)
{
	for (std::byte byte : read_request(77, 0)) {
		client().send_raw({&byte, 1});
		loop_.poll();
	}
	EXPECT_EQ(client().receive().header.id, 77);

	Bytes batch;
	constexpr unsigned many = 5000;
	for (unsigned i = 0; i < many; ++i) {
		const auto request = read_request(static_cast<std::uint16_t>(i), 4 * i);
		batch.insert(batch.end(), request.begin(), request.end());
	}
	client().send_raw(batch);
	for (unsigned i = 0; i < many; ++i) {
		const auto reply = client().receive();
		ASSERT_EQ(reply.header.id, i);
		ASSERT_EQ(reply.as<RegionAccess>().offset, 4u * i);
	}
}

// The client chooses the identifiers. Replies repeat them, whatever they are.
TEST_F(Stream, RepliesHaveTheIdentifierOfTheRequest)
{
	for (std::uint16_t id : {0, 5, 5, 0xffff}) {
		client().send_raw(read_request(id, 0));
		EXPECT_EQ(client().receive().header.id, id);
	}
}

// An invalid header closes the connection, because nothing after it could be trusted.
TEST_F(Stream, InvalidHeaderClosesTheConnection)
{
	const Header headers[] = {
		{1, 9, 15, 0, 0},
		{1, 9, 0, 0, 0},
		{1, 9, kMaxMessage + 1, 0, 0},
		{1, 9, ~0u, 0, 0},
		{1, 9, 32, kFlagTypeReply, 0},
		{1, 9, 32, 2, 0},
		{1, 9, 32, 15, 0},
	};
	for (const Header &header : headers) {
		client().send_raw(bytes_of(header, RegionAccess{0, 0, 4}));
		EXPECT_TRUE(client().wait_closed())
			<< "size " << header.size << " flags " << header.flags;
		connect().greet();
	}
}

// Descriptors belong to the message with which they were sent, even if it arrives in pieces or with
// other messages.
TEST_F(Stream, FileDescriptorsBelongToTheMessageThatTheyWereSentWith)
{
	const auto file = make_memory(3 * 4096);
	const auto map = [](std::uint64_t page) {
		return bytes_of(Header{9, 2, 48, 0, 0},
				DmaMap{32, 3, page * 4096, page * 4096, 4096});
	};
	client().send_raw(read_request(1, 0));
	client().send_raw(map(0), {file.get()});
	client().send_raw(map(1));
	const auto split = map(2);
	client().send_raw(std::span(split).first(20), {file.get()});
	client().send_raw(std::span(split).subspan(20));
	client().send_raw(read_request(2, 0));
	for (int i = 0; i < 5; ++i)
		EXPECT_EQ(client().receive().error(), 0u);
	auto &memory = device_.host().dma();
	EXPECT_TRUE(memory.read_as<int>(0));
	EXPECT_FALSE(memory.read_as<int>(4096)) << "that mapping came without a descriptor";
	EXPECT_TRUE(memory.read_as<int>(8192));
}

// More descriptors than a message can have close the connection, and none of them leaks.
TEST_F(Stream, NumberOfFileDescriptorsPerMessageIsLimited)
{
	const auto before = ::dup(0);
	::close(before);
	{
		const auto event = make_event();
		const std::vector<int> many(kMaxMessageFds + 1, event.get());
		client().send(Command::set_irqs, Bytes(20), many);
		EXPECT_TRUE(client().wait_closed());

		connect().greet();
		const std::vector<int> some(kMaxMessageFds, event.get());
		const auto request = bytes_of(Header{1, 10, kMaxMessage, 0, 0}, Bytes(64));
		client().send_raw(std::span(request).first(16), some);
		for (int i = 0; i < 8; ++i) {
			try {
				client().send_raw(std::span(request).subspan(16, 1), some);
				loop_.poll();
			} catch (const testing::FakeClient::HungUp &) {
				break;
			}
		}
		EXPECT_TRUE(client().wait_closed());
		client().close();
	}
	const auto after = ::dup(0);
	::close(after);
	EXPECT_LE(after, before);
}

} // namespace
} // namespace weft::vfio_user
