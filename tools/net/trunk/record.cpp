// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/trunk/record.hpp"

#include <cassert>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <sodium.h>

namespace weft::trunk
{

namespace
{

struct RecordNonce {
	std::uint8_t zero[4];
	ib::be64 number;
};
// The sizes of RFC 8439.
static_assert(sizeof(SessionKey) == 32 && sizeof(RecordNonce) == 12 && kTagBytes == 16);

template<class T>
const unsigned char *raw(const T &object)
{
	return reinterpret_cast<const unsigned char *>(&object);
}

unsigned char *raw(std::byte *bytes)
{
	return reinterpret_cast<unsigned char *>(bytes);
}

// OpenSSL's functions fail if there is no memory, or if the host's configuration of OpenSSL does
// not permit the cipher; EVP_DecryptFinal_ex() also if the data is not authentic.
void require(int done)
{
	if (done == 1)
		return;
	char reason[256];
	ERR_error_string_n(ERR_get_error(), reason, sizeof(reason));
	throw std::runtime_error(std::string("OpenSSL: ") + reason);
}

// OpenSSL is several times faster than libsodium on processors with AVX-512.
CipherContext make_context(const SessionKey &key, bool encrypts)
{
	CipherContext context(EVP_CIPHER_CTX_new());
	if (!context)
		throw std::bad_alloc();
	require(EVP_CipherInit_ex(context.get(), EVP_chacha20_poly1305(), nullptr, raw(key.bytes),
				  nullptr, encrypts));
	return context;
}

// Begins the record with this number, and adds its header, which is authenticated.
void begin_record(EVP_CIPHER_CTX *context, const RecordHeader &header, std::uint64_t number)
{
	const RecordNonce nonce{{}, number};
	int done;
	require(EVP_CipherInit_ex(context, nullptr, nullptr, nullptr, raw(nonce), -1));
	require(EVP_CipherUpdate(context, nullptr, &done, raw(header), sizeof(header)));
}

} // namespace

SessionKey::~SessionKey()
{
	sodium_memzero(bytes.data(), bytes.size());
}

void CipherContextDeleter::operator()(EVP_CIPHER_CTX *context) const
{
	EVP_CIPHER_CTX_free(context);
}

RecordSealer::RecordSealer(const SessionKey &key) : context_(make_context(key, true)) {}

std::size_t RecordSealer::seal(std::deque<Buffer> &frames, Buffer &wire)
{
	std::size_t count = 0, bytes = 0;
	do {
		bytes += frames[count++].size();
		assert(bytes <= kMostRecord);
	} while (count < frames.size() && bytes + frames[count].size() <= kMostRecord);

	const RecordHeader header{static_cast<std::uint32_t>(bytes + kTagBytes)};
	const std::size_t begin = wire.size();
	wire.resize(begin + sizeof(header) + bytes + kTagBytes);
	std::byte *at = wire.data() + begin;
	std::memcpy(at, &header, sizeof(header));
	at += sizeof(header);
	begin_record(context_.get(), header, number_++);
	int done;
	for (; count != 0; count--) {
		const Buffer &frame = frames.front();
		require(EVP_EncryptUpdate(context_.get(), raw(at), &done,
					  reinterpret_cast<const unsigned char *>(frame.data()),
					  static_cast<int>(frame.size())));
		at += frame.size();
		frames.pop_front();
	}
	require(EVP_EncryptFinal_ex(context_.get(), raw(at), &done));
	require(EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_GET_TAG, kTagBytes, at));
	return bytes;
}

RecordOpener::RecordOpener(const SessionKey &key) : context_(make_context(key, false)) {}

std::optional<std::span<std::byte>> RecordOpener::open(const RecordHeader &header,
						       std::span<std::byte> body)
{
	if (body.size() < kTagBytes)
		return std::nullopt;
	const auto frames = body.first(body.size() - kTagBytes);
	begin_record(context_.get(), header, number_++);
	require(EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_SET_TAG, kTagBytes,
				    body.data() + frames.size()));
	int done;
	require(EVP_DecryptUpdate(context_.get(), raw(frames.data()), &done, raw(frames.data()),
				  static_cast<int>(frames.size())));
	if (EVP_DecryptFinal_ex(context_.get(), raw(frames.data()), &done) != 1)
		return std::nullopt;
	return frames;
}

} // namespace weft::trunk
