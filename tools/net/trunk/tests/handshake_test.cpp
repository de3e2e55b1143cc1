// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that only peers with the same key accept each other, and that unsuitable key files are
// refused.
#include "net/trunk/handshake.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::trunk
{

namespace
{

using Progress = Handshake::Progress;

Key key_of(std::uint8_t fill)
{
	return Key(SecretBytes(Key::kLeastBytes, std::byte{fill}));
}

Frame frame_of(const Buffer &bytes)
{
	FrameHeader header;
	std::memcpy(&header, bytes.data(), sizeof(header));
	return {header.type, std::span(bytes).subspan(sizeof(header))};
}

// Two ends, and the second one's result for the first one's hello after @change.
struct Pair {
	Key key = key_of(1), other_key = key_of(1);
	Handshake connects{Kind::infiniband, Role::connects, "west", key};
	Handshake listens{Kind::infiniband, Role::listens, "west", other_key};
	std::vector<Buffer> from_connects, from_listens;
};

// Returns the number of occurrences, in memory of this process that core files contain, of the
// bytes whose complement is @inverted. The bytes themselves would be found in the argument.
std::size_t occurrences_in_core_files(const std::array<unsigned char, Key::kLeastBytes> &inverted)
{
	constexpr std::size_t chunk_bytes = 1 << 20, most_bytes = std::size_t{1} << 28;
	const auto is_found = [&](const unsigned char *at) {
		for (std::size_t i = 0; i < inverted.size(); ++i)
			if (at[i] != static_cast<unsigned char>(~inverted[i]))
				return false;
		return true;
	};
	const int memory = ::open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	std::ifstream regions("/proc/self/smaps");
	std::vector<unsigned char> chunk(chunk_bytes);
	std::size_t begin = 0, end = 0, found = 0;
	for (std::string line; std::getline(regions, line);) {
		std::size_t from = 0, to = 0;
		if (std::sscanf(line.c_str(), "%zx-%zx ", &from, &to) == 2) {
			begin = from;
			end = to;
		}
		// The address sanitizer has huge regions, which contain no data of programs.
		if (!line.starts_with("VmFlags:") || line.find(" rd") == std::string::npos ||
		    line.find(" dd") != std::string::npos || end - begin > most_bytes)
			continue;
		for (std::size_t at = begin; at < end; at += chunk_bytes / 2) {
			const auto got =
				::pread(memory, chunk.data(), std::min(chunk_bytes, end - at),
					static_cast<off_t>(at));
			for (std::size_t i = 0;
			     got > 0 && i + inverted.size() <= static_cast<std::size_t>(got); ++i)
				// The second half of a chunk is the first half of the next one.
				if ((i < chunk_bytes / 2 || at + chunk_bytes >= end) &&
				    is_found(chunk.data() + i)) {
					++found;
					// Otherwise, the next chunks would contain it.
					std::memset(chunk.data() + i, 0, inverted.size());
				}
			if (at + chunk_bytes >= end)
				break;
		}
	}
	::close(memory);
	return found;
}

} // namespace

TEST(TrunkHandshake, PeersWithTheSameKeyAcceptEachOther)
{
	Pair pair;
	EXPECT_EQ(pair.listens.take(frame_of(pair.connects.hello()), pair.from_listens),
		  Progress::goes_on);
	EXPECT_TRUE(pair.from_listens.empty())
		<< "a listener proves nothing to an unauthenticated client";
	EXPECT_EQ(pair.connects.take(frame_of(pair.listens.hello()), pair.from_connects),
		  Progress::goes_on);
	ASSERT_EQ(pair.from_connects.size(), 1u);
	EXPECT_EQ(pair.listens.take(frame_of(pair.from_connects[0]), pair.from_listens),
		  Progress::done);
	ASSERT_EQ(pair.from_listens.size(), 1u);
	EXPECT_EQ(pair.connects.take(frame_of(pair.from_listens[0]), pair.from_connects),
		  Progress::done);
	const SessionKeys &a = pair.connects.session_keys(), &b = pair.listens.session_keys();
	EXPECT_EQ(a.sending.bytes, b.receiving.bytes);
	EXPECT_EQ(b.sending.bytes, a.receiving.bytes);
	EXPECT_NE(a.sending.bytes, a.receiving.bytes);
}

// The same shared key does not lead to the same session keys, because of the random numbers and
// public keys in the hellos. The proofs authenticate these.
TEST(TrunkHandshake, EachConnectionHasNewSessionKeys)
{
	const auto key_of_connection = [] {
		Pair pair;
		pair.listens.take(frame_of(pair.connects.hello()), pair.from_listens);
		pair.connects.take(frame_of(pair.listens.hello()), pair.from_connects);
		pair.listens.take(frame_of(pair.from_connects.at(0)), pair.from_listens);
		return pair.listens.session_keys().sending.bytes;
	};
	EXPECT_NE(key_of_connection(), key_of_connection());
}

TEST(TrunkHandshake, HandshakeIsRefusedIfThePublicKeyInAHelloWasReplacedInTransit)
{
	Pair pair;
	Buffer replaced = pair.connects.hello();
	replaced[sizeof(FrameHeader) + offsetof(HelloBody, public_key)] ^= std::byte{1};
	pair.listens.take(frame_of(replaced), pair.from_listens);
	pair.connects.take(frame_of(pair.listens.hello()), pair.from_connects);
	EXPECT_EQ(pair.listens.take(frame_of(pair.from_connects.at(0)), pair.from_listens),
		  Progress::refused);
	EXPECT_EQ(pair.listens.reason(), Reason::key);
	EXPECT_TRUE(pair.from_listens.empty());
}

TEST(TrunkHandshake, PeerWithADifferentKeyIsRefused)
{
	const Key key = key_of(1), other = key_of(2);
	Handshake connects(Kind::infiniband, Role::connects, "west", other);
	Handshake listens(Kind::infiniband, Role::listens, "west", key);
	std::vector<Buffer> proof, none;
	listens.take(frame_of(connects.hello()), none);
	connects.take(frame_of(listens.hello()), proof);
	EXPECT_EQ(listens.take(frame_of(proof.at(0)), none), Progress::refused);
	EXPECT_EQ(listens.reason(), Reason::key);
	EXPECT_TRUE(none.empty());
}

// An end without the key returns what it receives, or what it received on another connection.
TEST(TrunkHandshake, ReflectedOrReplayedProofOfTheSharedKeyIsRefused)
{
	const Key key = key_of(1);
	Handshake connects(Kind::infiniband, Role::connects, "west", key);
	Handshake listens(Kind::infiniband, Role::listens, "west", key);
	std::vector<Buffer> proof, none;
	listens.take(frame_of(connects.hello()), none);
	connects.take(frame_of(listens.hello()), proof);
	EXPECT_EQ(connects.take(frame_of(proof.at(0)), none), Progress::refused);
	EXPECT_EQ(connects.reason(), Reason::key);

	Handshake again(Kind::infiniband, Role::listens, "west", key);
	again.take(frame_of(connects.hello()), none);
	EXPECT_EQ(again.take(frame_of(proof.at(0)), none), Progress::refused);
	EXPECT_EQ(again.reason(), Reason::key);
}

TEST(TrunkHandshake, RefusalReportsWhichFieldOfTheHelloDoesNotMatch)
{
	const Key key = key_of(1);
	const Buffer good = Handshake(Kind::infiniband, Role::connects, "west", key).hello();
	const auto reason_for = [&](auto &&change) {
		Buffer hello = good;
		change(hello);
		Handshake listens(Kind::infiniband, Role::listens, "west", key);
		std::vector<Buffer> answers;
		const auto progress = listens.take(frame_of(hello), answers);
		EXPECT_TRUE(answers.empty());
		return progress == Progress::refused ? listens.reason() : Reason::none;
	};
	const auto set = [](std::size_t at, std::uint8_t value) {
		return [=](Buffer &hello) {
			hello[sizeof(FrameHeader) + at] = static_cast<std::byte>(value);
		};
	};
	EXPECT_EQ(reason_for(set(0, 'w')), Reason::none) << "the hello is good as it is";
	EXPECT_EQ(reason_for(set(0, 'x')), Reason::protocol);
	EXPECT_EQ(reason_for(set(9, kVersion + 1)), Reason::version);
	EXPECT_EQ(reason_for([&](Buffer &hello) {
			  set(9, 1)(hello);
			  hello.resize(sizeof(FrameHeader) + 76);
		  }),
		  Reason::version)
		<< "version 1 has no public key";
	EXPECT_EQ(reason_for([&](Buffer &hello) {
			  set(9, 2)(hello);
			  hello.resize(sizeof(FrameHeader) + offsetof(HelloBody, kind));
		  }),
		  Reason::version)
		<< "version 2 has no kind";
	EXPECT_EQ(reason_for([&](Buffer &hello) {
			  set(9, kVersion + 1)(hello);
			  hello.resize(sizeof(FrameHeader) + 10);
		  }),
		  Reason::version)
		<< "whatever else the other version says";
	EXPECT_EQ(reason_for(set(10, static_cast<std::uint8_t>(Role::listens))), Reason::role);
	EXPECT_EQ(reason_for(set(10, 3)), Reason::protocol);
	constexpr std::size_t kind = offsetof(HelloBody, kind);
	EXPECT_EQ(reason_for(set(kind, static_cast<std::uint8_t>(Kind::ethernet))), Reason::kind);
	EXPECT_EQ(reason_for(set(kind, 0)), Reason::protocol);
	EXPECT_EQ(reason_for(set(kind + 1, 1)), Reason::protocol);
	EXPECT_EQ(reason_for(set(11, 3)), Reason::name);
	EXPECT_EQ(reason_for(set(11, 255)), Reason::name);
	EXPECT_EQ(reason_for(set(12, 'e')), Reason::name);
	EXPECT_EQ(reason_for([](Buffer &hello) { hello.pop_back(); }), Reason::protocol);
	EXPECT_EQ(reason_for([](Buffer &hello) { hello.resize(sizeof(FrameHeader)); }),
		  Reason::protocol);
}

TEST(TrunkHandshake, HandshakeFramesOutOfOrderAreRefused)
{
	const Key key = key_of(1);
	std::vector<Buffer> none;
	Handshake early(Kind::infiniband, Role::listens, "west", key);
	EXPECT_EQ(early.take(frame_of(make_frame(FrameType::proof, ProofBody{})), none),
		  Progress::refused);
	Handshake twice(Kind::infiniband, Role::listens, "west", key);
	const Buffer hello = Handshake(Kind::infiniband, Role::connects, "west", key).hello();
	EXPECT_EQ(twice.take(frame_of(hello), none), Progress::goes_on);
	EXPECT_EQ(twice.take(frame_of(hello), none), Progress::refused);
	Handshake other(Kind::infiniband, Role::listens, "west", key);
	EXPECT_EQ(other.take(frame_of(make_frame(FrameType::alive)), none), Progress::refused);
	EXPECT_EQ(other.reason(), Reason::protocol);
}

TEST(TrunkHandshake, RefusalReportsBothProtocolVersions)
{
	const Key key = key_of(1);
	Buffer hello = Handshake(Kind::infiniband, Role::connects, "west", key).hello();
	hello[sizeof(FrameHeader) + 9] = std::byte{1};
	Handshake listens(Kind::infiniband, Role::listens, "west", key);
	std::vector<Buffer> none;
	EXPECT_EQ(listens.take(frame_of(hello), none), Progress::refused);
	EXPECT_THAT(listens.why(),
		    ::testing::HasSubstr("(this one version 3, the peer version 1)"));
}

// RFC 4231, test case 3. Its key of 20 bytes is padded with zeroes, as in HMAC.
TEST(TrunkKey, AuthenticationCodeOfDataIsItsHmacSha256)
{
	SecretBytes bytes(20, std::byte{0xaa});
	bytes.resize(Key::kLeastBytes);
	const std::vector<std::byte> data(25, std::byte{0xdd});
	const Mac mac = Key(std::move(bytes)).authenticate({data, data});
	EXPECT_EQ(mac[0], std::byte{0x77});
	EXPECT_EQ(mac[1], std::byte{0x3e});
	EXPECT_EQ(mac[30], std::byte{0x65});
	EXPECT_EQ(mac[31], std::byte{0xfe});
}

TEST(TrunkKey, DifferentKeysHaveDifferentFingerprints)
{
	EXPECT_EQ(key_of(1).fingerprint(), key_of(1).fingerprint());
	EXPECT_NE(key_of(1).fingerprint(), key_of(2).fingerprint());
}

// Core files may be copied to where others can read them.
TEST(TrunkKey, KeyIsExcludedFromCoreDumps)
{
	std::array<unsigned char, Key::kLeastBytes> bytes{}, inverted{};
	ASSERT_EQ(::getrandom(bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
	const std::string file = std::string(::testing::TempDir()) + "/trunk-key-in-core." +
				 std::to_string(::getpid());
	const int opened = ::open(file.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
	ASSERT_EQ(::write(opened, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
	::close(opened);
	std::ranges::transform(bytes, inverted.begin(), [](unsigned char byte) {
		return static_cast<unsigned char>(~byte);
	});
	EXPECT_NE(occurrences_in_core_files(inverted), 0u) << "the test finds the bytes";
	::explicit_bzero(bytes.data(), bytes.size());
	EXPECT_EQ(occurrences_in_core_files(inverted), 0u);
	const Key key = Key::load(file);
	Key moved = Key::load(file);
	const Key other(std::move(moved));
	EXPECT_EQ(key.fingerprint(), other.fingerprint());
	EXPECT_EQ(occurrences_in_core_files(inverted), 0u);
	::unlink(file.c_str());
}

TEST(TrunkKey, KeyFilesOfInvalidSizeModeOwnerOrTypeAreRefused)
{
	const auto directory = std::filesystem::path(::testing::TempDir()) /
			       ("trunk-key." + std::to_string(::getpid()));
	std::filesystem::create_directory(directory);
	const auto file = directory / "key";
	const auto write = [&](std::size_t size, mode_t mode) {
		std::ofstream(file, std::ios::trunc) << std::string(size, 'k');
		::chmod(file.c_str(), mode);
	};
	const auto error = [&]() -> std::string {
		try {
			Key::load(file);
		} catch (const std::invalid_argument &reason) {
			return reason.what();
		}
		return "";
	};
	EXPECT_THAT(error(), ::testing::HasSubstr("No such file"));
	write(32, 0600);
	EXPECT_EQ(error(), "");
	write(32, 0640);
	EXPECT_THAT(error(), ::testing::HasSubstr("chmod 600"));
	// Only root can make such a file.
	if (::geteuid() == 0) {
		constexpr uid_t nobody = 65534;
		write(32, 0600);
		ASSERT_EQ(::chown(file.c_str(), nobody, nobody), 0);
		EXPECT_THAT(error(),
			    ::testing::HasSubstr("it belongs to user 65534; it must belong "
						 "to the user who runs weftd"));
		ASSERT_EQ(::chown(file.c_str(), 0, 0), 0);
	}
	write(31, 0600);
	EXPECT_THAT(error(), ::testing::HasSubstr("32 to 1024 bytes"));
	write(1025, 0600);
	EXPECT_THAT(error(), ::testing::HasSubstr("32 to 1024 bytes"));
	std::filesystem::remove(file);
	ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
	EXPECT_THAT(error(), ::testing::HasSubstr("no regular file"));
	std::filesystem::remove_all(directory);
}

} // namespace weft::trunk
