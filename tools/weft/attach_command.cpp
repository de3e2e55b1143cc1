// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "weft/attach_command.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>

#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "attach/protocol.hpp"
#include "base/printable.hpp"
#include "base/unix_listener.hpp"

namespace weft::cli
{

namespace
{

using Words = std::vector<std::string>;

// Exit statuses of a command that cannot be run, as a shell returns them.
constexpr int kNotExecutable = 126;
constexpr int kNotFound = 127;

constexpr char kPreload[] = "LD_PRELOAD";

// Returns the path of the library, in an installed package or in a tree's build directory.
std::filesystem::path library()
{
	const auto own = std::filesystem::read_symlink("/proc/self/exe").parent_path();
	const auto path = own.parent_path() / "lib/weft/libibumad.so.3";
	if (!std::filesystem::exists(path))
		throw std::runtime_error(path.string() + " is missing");
	return path;
}

FileDescriptor connect_to_server(const std::filesystem::path &path)
{
	try {
		return connect_unix(path, UnixListener::Type::messages);
	} catch (const std::system_error &error) {
		throw std::runtime_error(fmt::format(
			"no weftd serves {} ({}); start a lab with `weft lab up`, or name its --socket-dir",
			path.parent_path().string(), error.code().message()));
	}
}

// Throws std::runtime_error if programs cannot be attached to the node.
void check_node(const std::filesystem::path &socket, const std::string &node)
{
	attach::Request request{};
	request.version = attach::kVersion;
	request.kind = attach::Kind::describe;
	if (node.size() >= sizeof(request.node))
		throw std::runtime_error("there is no node '" + node + "'");
	node.copy(request.node, sizeof(request.node) - 1);
	const FileDescriptor connection = connect_to_server(socket);
	attach::Description answer{};
	if (::send(connection.get(), &request, sizeof(request), MSG_NOSIGNAL) !=
		    static_cast<ssize_t>(sizeof(request)) ||
	    ::recv(connection.get(), &answer, sizeof(answer), MSG_WAITALL) !=
		    static_cast<ssize_t>(sizeof(answer)))
		throw std::runtime_error("weftd has ended, or has another version");
	if (answer.error)
		throw std::runtime_error(fmt::format(
			"there is no node '{}' to attach programs to: they run on switches and on "
			"hosts with an InfiniBand card or of the model endpoint",
			node));
}

// Executes the command in this process.
[[noreturn]] void execute(Words command)
{
	std::vector<char *> pointers;
	for (auto &word : command)
		pointers.push_back(word.data());
	pointers.push_back(nullptr);
	::execvp(pointers[0], pointers.data());
	const int error = errno;
	std::cerr << "weft: " << printable(command[0]) << ": " << std::strerror(error) << '\n';
	std::exit(error == ENOENT ? kNotFound : kNotExecutable);
}

void attach_program(const std::filesystem::path &socket_directory, const std::string &node,
		    const Words &command)
{
	const auto socket = std::filesystem::absolute(socket_directory / attach::kSocketName);
	check_node(socket, node);
	std::string preload = library().string();
	if (const char *const before = std::getenv(kPreload); before && *before)
		preload += std::string(":") + before;
	::setenv(kPreload, preload.c_str(), 1);
	::setenv(attach::kSocketVariable, socket.c_str(), 1);
	::setenv(attach::kNodeVariable, node.c_str(), 1);
	execute(command);
}

} // namespace

void add_attach(CLI::App &app, const std::filesystem::path &socket_directory,
		std::vector<GuestCommand> &guest_commands)
{
	auto *command = app.add_subcommand(
		"attach", "run a program of this host that uses libibumad as if on a node");
	command->footer("The program finds one device, weft0, whose ports are the node's.\n"
			"Example: weft attach node1 -- ibnetdiscover");
	auto node = std::make_shared<std::string>();
	auto words = std::make_shared<Words>();
	command->add_option("NODE", *node, "a host or a switch of the lab")->required();
	command->add_option("COMMAND", *words, "the program and its arguments");
	guest_commands.push_back({command, 1, words.get()});
	command->callback([&socket_directory, node, words] {
		if (words->empty())
			throw UsageError("weft attach needs a COMMAND\nTry 'weft attach --help'.");
		attach_program(socket_directory, *node, *words);
	});
}

} // namespace weft::cli
