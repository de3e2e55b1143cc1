// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// How the two ends of a trunk prove to each other that they have the same key, without sending it.
//
// Each end sends a hello with a random number, its role and the trunk's name. Each then proves that
// it has the key with an HMAC of its role and both hellos. The end that connected goes first, so
// the end that listens proves nothing to a client without the key. The random numbers make each
// proof valid for this connection only, and the role makes an end's proof useless to its
// counterpart.
#pragma once

#include <string>
#include <vector>

#include "net/trunk/frame.hpp"
#include "net/trunk/key.hpp"

namespace weft::trunk
{

using Nonce = std::array<std::byte, kNonceBytes>;

class Handshake
{
public:
	// @key outlives it. @nonce: random, new for each connection.
	Handshake(Role role, const std::string &name, const Key &key, const Nonce &nonce);

	// The first frame to send.
	Buffer hello() const { return make_frame(FrameType::hello, own_); }

	enum class Progress { goes_on, done, refused };
	// Takes the peer's next frame and appends the frames that answer it. After `refused` the
	// owner closes the connection.
	Progress take(const Frame &frame, std::vector<Buffer> &answers);
	// Why it is refused.
	Reason reason() const { return reason_; }

private:
	Progress take_hello(std::span<const std::byte> body, std::vector<Buffer> &answers);
	Progress take_proof(std::span<const std::byte> body, std::vector<Buffer> &answers);
	Progress refuse(Reason reason);
	Mac proof_of(Role role) const;
	Buffer own_proof() const;

	const Key &key_;
	HelloBody own_{}, peer_{};
	bool greeted_ = false; // peer_ was received
	Reason reason_ = Reason::none;
};

} // namespace weft::trunk
