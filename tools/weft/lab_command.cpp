// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "weft/lab_command.hpp"

#include <cerrno>
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

using Words = std::vector<std::string>;

std::filesystem::path own_directory()
{
	return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

// Where it lies from a package, and from a tree's build/bin.
std::filesystem::path session_program()
{
	const std::filesystem::path below = "tools/weft/session/weft-session";
	const auto installed = own_directory().parent_path() / "lib/weft" / below;
	if (std::filesystem::exists(installed))
		return installed;
	return own_directory().parent_path().parent_path() / below;
}

// Becomes the other half of these commands; returns only to throw.
[[noreturn]] void become_session(const std::filesystem::path &socket_directory, const Words &words)
{
	const auto session = session_program();
	Words arguments{session.string(), "--socket-dir", socket_directory.string()};
	arguments.insert(arguments.end(), words.begin(), words.end());
	std::vector<char *> pointers;
	for (auto &argument : arguments)
		pointers.push_back(argument.data());
	pointers.push_back(nullptr);
	::execv(session.c_str(), pointers.data());
	throw std::runtime_error(session.string() + ": " + std::strerror(errno));
}

// Options that are passed on as they are given.
class Passed
{
public:
	explicit Passed(CLI::App &app) : app_(app) {}

	CLI::Option *option(const std::string &name, const std::string &description)
	{
		options_.push_back({name, app_.add_option(name, description), true});
		return options_.back().option;
	}
	CLI::Option *flag(const std::string &name, const std::string &description)
	{
		options_.push_back({name, app_.add_flag(name, description), false});
		return options_.back().option;
	}
	Words words() const
	{
		Words result;
		for (const Each &each : options_)
			for (const auto &value : each.option->results())
				result.push_back(each.has_value ? each.name + "=" + value : each.name);
		return result;
	}

private:
	struct Each {
		std::string name;
		CLI::Option *option;
		bool has_value;
	};

	CLI::App &app_;
	std::vector<Each> options_;
};

// What a lab's machines are made of, for all hosts that the lab file says nothing of.
std::shared_ptr<Passed> add_machine_options(CLI::App &app)
{
	auto passed = std::make_shared<Passed>(app);
	passed->option("--lab", "the lab file, see weft-lab.toml(5)")->check(CLI::ExistingFile);
	passed->option("--kernel", "the machines' kernel: stock (Debian's), a bzImage, or the tree "
				   "in which one was built");
	passed->option("--modules", "the folder of that bzImage's modules")
		->check(CLI::ExistingDirectory);
	passed->option("--initrd", "an initramfs that is unpacked before weft's own")
		->check(CLI::ExistingFile);
	passed->option("--share", "a folder that the machines have as /share")
		->check(CLI::ExistingDirectory);
	passed->option("--append", "more words for the kernel's command line");
	passed->option("--cpus", "of each machine")->check(CLI::Range(1, 64));
	passed->option("--memory", "of each machine, as in 768M or 2G");
	passed->option("--logs", "the folder for the machines' consoles and weftd's log");
	passed->flag("--bare", "load no driver, and give ib0 no address");
	return passed;
}

// `up` or `run` with its options.
Words session_words(const std::string &command, const Passed &passed)
{
	// weftd lies beside weft.
	const auto weftd = own_directory() / "weftd";
	Words words{command, "--weftd", weftd.string()};
	const Words given = passed.words();
	words.insert(words.end(), given.begin(), given.end());
	return words;
}

} // namespace

void add_lab(CLI::App &app, const std::filesystem::path &socket_directory)
{
	auto *lab = app.add_subcommand("lab", "weftd and a virtual machine for every host");
	lab->require_subcommand(1);

	auto *up = lab->add_subcommand("up", "start weftd and the machines, and bring up ib0");
	up->callback([&socket_directory, passed = add_machine_options(*up)] {
		become_session(socket_directory, session_words("up", *passed));
	});

	auto *shell = lab->add_subcommand("shell", "run commands in a machine, as root");
	auto host = std::make_shared<std::string>();
	auto command = std::make_shared<Words>();
	shell->add_option("HOST", *host, "the host's name in the lab")->required();
	shell->add_option("COMMAND", *command, "a command; without one, lines from the terminal");
	shell->positionals_at_end();
	shell->prefix_command();
	shell->callback([&socket_directory, shell, host, command] {
		Words words{"shell", *host};
		words.insert(words.end(), command->begin(), command->end());
		const auto rest = shell->remaining();
		words.insert(words.end(), rest.begin(), rest.end());
		become_session(socket_directory, words);
	});

	lab->add_subcommand("down", "end the machines and weftd")->callback([&socket_directory] {
		become_session(socket_directory, {"down"});
	});
}

void add_run(CLI::App &app, const std::filesystem::path &socket_directory)
{
	auto *run = app.add_subcommand("run", "run a command in a lab that is there for it alone");
	run->footer("The command follows --, as in: weft run --on node1 -- ping -c 3 10.1.0.2");
	const auto passed = add_machine_options(*run);
	passed->option("--on", "the host that it runs in; may be given again (default: all)")
		->take_all();
	passed->option("--script", "a file of commands in place of COMMAND; - is standard input")
		->type_name("FILE");
	passed->option("--timeout", "seconds for the command")->check(CLI::Range(0.1, 1e6));
	passed->flag("--quiet", "say nothing of what the lab does");
	auto command = std::make_shared<Words>();
	run->add_option("COMMAND", *command, "a line for bash, or a command and its words");
	run->positionals_at_end();
	run->prefix_command();
	run->callback([&socket_directory, run, passed, command] {
		Words words = session_words("run", *passed);
		words.push_back("--");
		words.insert(words.end(), command->begin(), command->end());
		const auto rest = run->remaining();
		words.insert(words.end(), rest.begin(), rest.end());
		become_session(socket_directory, words);
	});
}

} // namespace weft::cli
