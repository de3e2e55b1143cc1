// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "weft/lab_command.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <unistd.h>

#include <CLI/CLI.hpp>

namespace weft::cli
{

namespace
{

std::filesystem::path session_script()
{
	const char *directory = std::getenv("WEFT_SCRIPTS");
	return std::filesystem::path(directory ? directory : WEFT_SCRIPTS_DIRECTORY) /
	       "lab-session";
}

// Becomes scripts/lab-session; returns only to throw.
[[noreturn]] void become_session(const std::filesystem::path &socket_directory,
				 const std::vector<std::string> &words)
{
	const auto script = session_script();
	std::vector<std::string> arguments{script.string(), "--socket-dir",
					   socket_directory.string()};
	arguments.insert(arguments.end(), words.begin(), words.end());
	std::vector<char *> pointers;
	for (auto &argument : arguments)
		pointers.push_back(argument.data());
	pointers.push_back(nullptr);
	::execv(script.c_str(), pointers.data());
	throw std::runtime_error(script.string() + ": " + std::strerror(errno) +
				 "; WEFT_SCRIPTS may name weft's folder of scripts");
}

} // namespace

void add_lab(CLI::App &app, const std::filesystem::path &socket_directory)
{
	auto *lab = app.add_subcommand("lab", "weftd and a virtual machine for every host");
	lab->require_subcommand(1);

	auto *up = lab->add_subcommand("up", "start weftd and the machines, and bring up ib0");
	auto file = std::make_shared<std::string>();
	auto kernel = std::make_shared<std::string>("stock");
	up->add_option("--lab", *file, "the lab file, see weft-lab.toml(5)")
		->check(CLI::ExistingFile);
	up->add_option("--kernel", *kernel, "the machines' kernel: stock, plain or debug")
		->check(CLI::IsMember({"stock", "plain", "debug"}))
		->capture_default_str();
	up->callback([&socket_directory, file, kernel] {
		// weftd lies beside weft.
		const auto weftd =
			std::filesystem::read_symlink("/proc/self/exe").parent_path() / "weftd";
		std::vector<std::string> words{"up", "--weftd", weftd.string(), "--kernel",
					       *kernel};
		if (!file->empty())
			words.insert(words.end(),
				     {"--lab", std::filesystem::absolute(*file).string()});
		become_session(socket_directory, words);
	});

	auto *shell = lab->add_subcommand("shell", "run commands in a machine, as root");
	auto host = std::make_shared<std::string>();
	auto command = std::make_shared<std::vector<std::string>>();
	shell->add_option("HOST", *host, "the host's name in the lab")->required();
	shell->add_option("COMMAND", *command, "a command; without one, lines from the terminal");
	shell->positionals_at_end();
	shell->prefix_command();
	shell->callback([&socket_directory, shell, host, command] {
		std::vector<std::string> words{"shell", *host};
		words.insert(words.end(), command->begin(), command->end());
		const auto rest = shell->remaining();
		words.insert(words.end(), rest.begin(), rest.end());
		become_session(socket_directory, words);
	});

	lab->add_subcommand("down", "end the machines and weftd")->callback([&socket_directory] {
		become_session(socket_directory, {"down"});
	});
}

} // namespace weft::cli
