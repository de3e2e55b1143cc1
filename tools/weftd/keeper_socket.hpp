// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Connects weftd to its keeper: the program that has started weftd, and that holds the connections
// of the cards' clients open while weftd is replaced (weftd(1), "RESTART").
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/loop.hpp"
#include "bus/pci/keeper.hpp"

namespace weft::weftd
{

class LabRuntime;

class KeeperSocket final : public pci::Keeper
{
public:
	// Maximum number of messages for one card that the program may send before the card's
	// connection.
	static constexpr std::size_t kMostRestored = 512;

	// Takes ownership of @fd, which must be a connected socket of type SOCK_SEQPACKET. Throws
	// std::system_error if it is not.
	explicit KeeperSocket(int fd);
	~KeeperSocket() override;

	void connected(const std::string &name, const std::string &id, int socket) override;
	void received(const std::string &name, const pci::Message &message) override;
	void gone(const std::string &name, const std::string &id) override;

	// Serves the clients that the program passes on, until end(). @runtime is used on @loop.
	void begin(Loop &loop, LabRuntime &runtime);
	void end();

private:
	void send(std::string_view what, const std::string &name,
		  const std::vector<std::span<const std::byte>> &parts,
		  const std::vector<int> &fds);
	void receive(LabRuntime &runtime);
	// @cut is true if the record or its descriptors were truncated, because they are longer
	// than any valid ones.
	void take(LabRuntime &runtime, std::string_view record, std::vector<FileDescriptor> fds,
		  bool cut);
	void keep(const std::string &name, std::string_view message,
		  std::vector<FileDescriptor> fds);
	void refuse(const std::string &name, std::string_view reason);

	// Messages that the program has sent for a client whose connection follows.
	struct Setup {
		std::vector<pci::KeptMessage> messages;
		bool refused = false; // true if a part of it was invalid
	};

	const FileDescriptor socket_;
	Loop *loop_ = nullptr;
	std::unique_ptr<Watch> watch_;
	std::map<std::string, Setup, std::less<>> setup_; // indexed by card
};

} // namespace weft::weftd
