// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/trunk/record.hpp"

#include <cassert>
#include <cstring>

#include <sodium.h>

namespace weft::trunk
{

namespace
{

static_assert(sizeof(SessionKey) == crypto_aead_chacha20poly1305_ietf_KEYBYTES);
static_assert(kTagBytes == crypto_aead_chacha20poly1305_ietf_ABYTES);

struct RecordNonce {
	std::uint8_t zero[4];
	ib::be64 number;
};
static_assert(sizeof(RecordNonce) == crypto_aead_chacha20poly1305_ietf_NPUBBYTES);

template<class T>
const unsigned char *raw(const T &object)
{
	return reinterpret_cast<const unsigned char *>(&object);
}

} // namespace

SessionKey::~SessionKey()
{
	sodium_memzero(bytes.data(), bytes.size());
}

std::size_t RecordSealer::seal(std::deque<Buffer> &frames, Buffer &wire)
{
	const std::size_t begin = wire.size();
	wire.resize(begin + sizeof(RecordHeader));
	std::size_t bytes = 0;
	do {
		const Buffer &frame = frames.front();
		assert(frame.size() <= kMostRecord);
		wire.insert(wire.end(), frame.begin(), frame.end());
		bytes += frame.size();
		frames.pop_front();
	} while (!frames.empty() && bytes + frames.front().size() <= kMostRecord);
	wire.resize(wire.size() + kTagBytes);

	const RecordHeader header{static_cast<std::uint32_t>(bytes + kTagBytes)};
	std::memcpy(wire.data() + begin, &header, sizeof(header));
	auto *const body =
		reinterpret_cast<unsigned char *>(wire.data() + begin + sizeof(RecordHeader));
	const RecordNonce nonce{{}, number_++};
	crypto_aead_chacha20poly1305_ietf_encrypt(body, nullptr, body, bytes, raw(header),
						  sizeof(header), nullptr, raw(nonce),
						  raw(key_.bytes));
	return bytes;
}

std::optional<std::span<std::byte>> RecordOpener::open(const RecordHeader &header,
						       std::span<std::byte> body)
{
	if (body.size() < kTagBytes)
		return std::nullopt;
	auto *const bytes = reinterpret_cast<unsigned char *>(body.data());
	const RecordNonce nonce{{}, number_++};
	if (crypto_aead_chacha20poly1305_ietf_decrypt(bytes, nullptr, nullptr, bytes, body.size(),
						      raw(header), sizeof(header), raw(nonce),
						      raw(key_.bytes)) != 0)
		return std::nullopt;
	return body.first(body.size() - kTagBytes);
}

} // namespace weft::trunk
