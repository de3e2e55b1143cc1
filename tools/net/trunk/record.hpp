// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Encrypts and authenticates the frames of a trunk. After the handshake, both ends of a trunk send
// records of one or more complete frames, encrypted and authenticated with ChaCha20-Poly1305 (RFC
// 8439). Each direction has its own key, which is new for each connection. The nonce is the number
// of the record, which is not sent. A record that is forged, altered, repeated, omitted or out of
// order therefore fails to authenticate.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>

#include <ib/endian.hpp>

#include "net/trunk/frame.hpp"

struct evp_cipher_ctx_st; // EVP_CIPHER_CTX

namespace weft::trunk
{

// Precedes each record, and is authenticated with it.
struct RecordHeader {
	ib::be32 bytes; // length of the encrypted frames and the tag
};
static_assert(sizeof(RecordHeader) == 4);

constexpr std::size_t kTagBytes = 16;
// Maximum size of the frames in a record; the largest frame fits.
constexpr std::size_t kMostRecord = sizeof(FrameHeader) + kMostBody;
constexpr std::size_t kMostRecordOnWire = sizeof(RecordHeader) + kMostRecord + kTagBytes;

// Encrypts one direction of one connection. It is overwritten when destroyed.
struct SessionKey {
	std::array<std::byte, 32> bytes{};

	SessionKey() = default;
	SessionKey(const SessionKey &) = default;
	SessionKey &operator=(const SessionKey &) = default;
	~SessionKey();
};

// OpenSSL's state of one direction, with the key.
struct CipherContextDeleter {
	void operator()(evp_cipher_ctx_st *context) const;
};
using CipherContext = std::unique_ptr<evp_cipher_ctx_st, CipherContextDeleter>;

class RecordSealer
{
public:
	explicit RecordSealer(const SessionKey &key);

	// Appends one record to @wire, with as many frames from the front of @frames as fit.
	// Returns the total size of these frames. @frames must not be empty, and no frame may be
	// larger than kMostRecord.
	std::size_t seal(std::deque<Buffer> &frames, Buffer &wire);

private:
	CipherContext context_;
	std::uint64_t number_ = 0;
};

class RecordOpener
{
public:
	explicit RecordOpener(const SessionKey &key);

	// Decrypts the body of a record in place. Returns the frames, or nothing if the body is not
	// the peer's next record.
	std::optional<std::span<std::byte>> open(const RecordHeader &header,
						 std::span<std::byte> body);

private:
	CipherContext context_;
	std::uint64_t number_ = 0;
};

} // namespace weft::trunk
