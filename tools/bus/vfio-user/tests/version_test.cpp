// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests VFIO_USER_VERSION, by which a client negotiates the version and the capabilities.
#include <nlohmann/json.hpp>

#include "bus/vfio-user/tests/fixture.hpp"

namespace weft::vfio_user
{
namespace
{

class Version : public ServerTest
{
protected:
	static nlohmann::json data(const FakeClient::Reply &reply)
	{
		const auto *text = reinterpret_cast<const char *>(reply.payload.data());
		return nlohmann::json::parse(text + sizeof(VersionHeader),
					     text + reply.payload.size() - 1);
	}
	FakeClient::Reply propose(const Bytes &payload)
	{
		return client().call(Command::version, payload);
	}
};

// The reply to QEMU's proposal is version 0.1 with the capabilities that both sides have.
TEST_F(Version, QemuVersionRequestIsAccepted)
{
	const auto reply = client().greet();
	EXPECT_EQ(reply.error(), 0u);
	EXPECT_EQ(reply.as<VersionHeader>().major, 0);
	EXPECT_EQ(reply.as<VersionHeader>().minor, 1);
	EXPECT_EQ(reply.payload.back(), std::byte{0});
	const auto capabilities = data(reply)["capabilities"];
	EXPECT_EQ(capabilities["max_data_xfer_size"], 1048576);
	EXPECT_EQ(capabilities["max_dma_maps"], kMaxDmaMaps);
	EXPECT_EQ(capabilities["max_msg_fds"], 16);
	EXPECT_EQ(capabilities["pgsizes"], 4096);
	EXPECT_EQ(capabilities["write_multiple"], true);
	EXPECT_FALSE(capabilities.contains("twin_socket"));
}

// The reply contains only capabilities that were proposed, with values not above the proposed ones.
TEST_F(Version, ReplyHasASubsetOfTheProposedCapabilities)
{
	const auto reply = propose(bytes_of(
		VersionHeader{0, 0},
		R"({"capabilities":{"max_data_xfer_size":4096,"write_multiple":false,"x":1}})"));
	EXPECT_EQ(reply.as<VersionHeader>().minor, 0);
	EXPECT_EQ(data(reply),
		  nlohmann::json::parse(R"({"capabilities":{"max_data_xfer_size":4096}})"));
}

// The version data is optional. A later minor version is answered with the server's own.
TEST_F(Version, RequestWithoutCapabilitiesIsAccepted)
{
	const auto reply = propose(bytes_of(VersionHeader{0, 7}));
	EXPECT_EQ(reply.error(), 0u);
	EXPECT_EQ(reply.as<VersionHeader>().minor, 1);
	EXPECT_TRUE(data(reply)["capabilities"].empty());
}

// Another major version is not supported, so the server closes the connection.
TEST_F(Version, RequestForAnotherMajorVersionClosesTheConnection)
{
	client().send(Command::version, bytes_of(VersionHeader{1, 0}));
	EXPECT_TRUE(client().wait_closed());
}

// Malformed version data is refused, and the client may try again.
TEST_F(Version, MalformedCapabilitiesAreRefused)
{
	const VersionHeader header{0, 1};
	std::string deep(100000, '[');
	EXPECT_EQ(propose(bytes_of(header, "{\"capabilities\":")).error(), EINVAL);
	EXPECT_EQ(propose(bytes_of(header, "[]")).error(), EINVAL);
	EXPECT_EQ(propose(bytes_of(header, "")).error(), EINVAL);
	EXPECT_EQ(propose(bytes_of(header, R"({"capabilities":7})")).error(), EINVAL);
	EXPECT_EQ(propose(bytes_of(header, '{', '}')).error(), EINVAL) << "no terminating zero";
	EXPECT_EQ(propose(bytes_of(header, deep)).error(), EINVAL);
	EXPECT_EQ(propose(bytes_of(std::uint16_t{0})).error(), EINVAL);
	EXPECT_EQ(propose({}).error(), EINVAL);
	EXPECT_EQ(client().greet().error(), 0u);
}

// Valid data is refused because of its size before it is parsed: deeply nested data of the full
// length would overflow the stack of any code that copies it. A proposal of the largest size is
// accepted.
TEST_F(Version, OversizedCapabilitiesAreRefused)
{
	const VersionHeader header{0, 1};
	constexpr std::size_t deep = 400000;
	EXPECT_EQ(propose(bytes_of(header, R"({"capabilities":{"x":)" + std::string(deep, '[') +
						   std::string(deep, ']') + "}}"))
			  .error(),
		  EINVAL);
	const std::string head = R"({"capabilities":{"x":)", tail = "}}";
	const auto of_size = [&](std::size_t size) {
		const std::size_t room =
			size - head.size() - tail.size() - 1; // and the terminating zero
		return head + std::string(room / 2, '[') + std::string(room % 2, ' ') +
		       std::string(room / 2, ']') + tail;
	};
	EXPECT_EQ(propose(bytes_of(header, of_size(kMaxVersionData + 1))).error(), EINVAL);
	EXPECT_EQ(propose(bytes_of(header, of_size(kMaxVersionData))).error(), 0u);
}

// Capability values of the wrong type do no harm.
TEST_F(Version, CapabilitiesOfTheWrongTypeAreIgnored)
{
	const auto reply = propose(bytes_of(
		VersionHeader{0, 1},
		R"({"capabilities":{"max_data_xfer_size":"x","write_multiple":3,"max_dma_maps":-1}})"));
	EXPECT_EQ(reply.error(), 0u);
	EXPECT_TRUE(data(reply)["capabilities"].empty());
}

// VERSION comes first, and only once.
TEST_F(Version, VersionRequestMustComeFirstAndOnlyOnce)
{
	EXPECT_EQ(client().call(Command::reset).error(), EINVAL);
	EXPECT_EQ(client().greet().error(), 0u);
	EXPECT_EQ(client().greet().error(), EINVAL);
	EXPECT_EQ(client().call(Command::reset).error(), 0u);
}

} // namespace
} // namespace weft::vfio_user
