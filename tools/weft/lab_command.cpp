// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "weft/lab_command.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/printable.hpp"
#include "base/usage.hpp"
#include "weft/control_client.hpp"

namespace weft::cli
{

namespace
{

using Words = std::vector<std::string>;

std::filesystem::path own_directory()
{
	return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

// Returns the path of a program, in an installed package or in a tree's build/bin.
std::filesystem::path program_below(const std::string &name)
{
	const std::filesystem::path below = "tools/weft/" + name;
	const auto installed = own_directory().parent_path() / "lib/weft" / below;
	if (std::filesystem::exists(installed))
		return installed;
	return own_directory().parent_path().parent_path() / below;
}

// Executes a program in this process. Returns only by an exception.
[[noreturn]] void execute(const std::filesystem::path &program, const Words &words)
{
	Words arguments{program.string()};
	arguments.insert(arguments.end(), words.begin(), words.end());
	std::vector<char *> pointers;
	for (auto &argument : arguments)
		pointers.push_back(argument.data());
	pointers.push_back(nullptr);
	::execv(program.c_str(), pointers.data());
	throw std::runtime_error(program.string() + ": " + std::strerror(errno));
}

// Executes the session program, or another one that implements these commands.
[[noreturn]] void become(const std::string &name, const std::filesystem::path &socket_directory,
			 const Words &words)
{
	Words arguments{socket_directory.string()};
	arguments.insert(arguments.end(), words.begin(), words.end());
	execute(program_below(name), arguments);
}

[[noreturn]] void become_session(const std::filesystem::path &socket_directory, const Words &words)
{
	become("session/weft-session", socket_directory, words);
}

// Options that are passed to the session program (tools/weft/session/options.py). They are declared
// and checked only here.
class Passed
{
public:
	explicit Passed(CLI::App &app) : app_(app) {}

	// @name contains the name of the option's value, as in "--lab FILE".
	CLI::Option *text(const std::string &name, const std::string &description)
	{
		return add(with_value(name, description), Kind::text);
	}
	CLI::Option *number(const std::string &name, const std::string &description)
	{
		return add(with_value(name, description), Kind::number);
	}
	CLI::Option *flag(const std::string &name, const std::string &description)
	{
		return add(app_.add_flag(name, description), Kind::flag);
	}
	// Adds an option that may be given more than once.
	CLI::Option *list(const std::string &name, const std::string &description)
	{
		return add(with_value(name, description)->take_all(), Kind::list);
	}
	// Returns the options that the user has given.
	Words words() const
	{
		Words result;
		for (const auto &[option, kind] : options_) {
			std::string name = option->get_single_name();
			std::ranges::replace(name, '-', '_');
			for (const auto &value : option->results())
				result.push_back(name + passed(*option, kind, value));
		}
		return result;
	}

private:
	enum class Kind { text, number, flag, list };

	CLI::Option *with_value(const std::string &name, const std::string &description)
	{
		const auto space = name.find(' ');
		return app_.add_option(name.substr(0, space), description)
			->type_name(name.substr(space + 1));
	}
	CLI::Option *add(CLI::Option *option, Kind kind)
	{
		options_.emplace_back(option, kind);
		return option;
	}

	static std::string passed(const CLI::Option &option, Kind kind, const std::string &value)
	{
		switch (kind) {
		case Kind::text:
			break;
		case Kind::number:
			// Formats the number as in JSON; CLI11's range check accepts other
			// notations, and NaN.
			if (const double number = option.as<double>(); std::isfinite(number))
				return fmt::format(":={}", number);
			throw CLI::ValidationError(option.get_name(), value + " is not a number");
		case Kind::flag:
			return ":=" + value;
		case Kind::list:
			return "+=" + value;
		}
		return "=" + value;
	}

	CLI::App &app_;
	std::vector<std::pair<CLI::Option *, Kind>> options_;
};

// Adds the options for guests of hosts whose settings are not in the lab file.
std::shared_ptr<Passed> add_guest_options(CLI::App &app)
{
	auto passed = std::make_shared<Passed>(app);
	CLI::Option *const file = passed->text("--lab FILE", "the lab file, see weft-lab.toml(5)");
	file->check(CLI::ExistingFile);
	passed->text("--card MODEL",
		     "without a lab file: the model of the two hosts' cards, mlx5 (the "
		     "default with Debian's kernel and modules), mlx4 (otherwise) or mthca")
		->check(usage::one_of({"mlx4", "mlx5", "mthca"}))
		->excludes(file);
	passed->text("--kernel KERNEL",
		     "the guests' kernel: stock (Debian's), um (User-Mode Linux, in a "
		     "source tree), a bzImage, or the tree in which one was built");
	passed->text("--stack STACK",
		     "the RDMA stack: linux (Debian's modules, the default) or weft")
		->check(usage::one_of({"linux", "weft"}));
	passed->text("--modules DIR", "the directory of that bzImage's modules")
		->check(CLI::ExistingDirectory);
	passed->text("--initrd FILE", "an initramfs that is unpacked before weft's own")
		->check(CLI::ExistingFile);
	passed->text("--share DIR", "a directory that guests see as /share")
		->check(CLI::ExistingDirectory);
	passed->text("--append WORDS", "more parameters for the kernel's command line");
	passed->number("--cpus N", "CPUs of each guest")->check(usage::integer(1, 64));
	passed->text("--memory M", "memory of each guest, such as 768M or 2G");
	passed->text("--logs DIR", "the directory for the guests' consoles and weftd's log");
	passed->flag("--bare", "load no driver, and assign no address");
	passed->flag("--no-restart", "end the lab if weftd crashes, instead of restarting weftd");
	return passed;
}

// Options of a lab over several hosts.
void add_host_options(Passed &passed)
{
	CLI::Option *const hosts = passed.text(
		"--hosts FILE", "run each place of the lab on a host of this file, started by ssh");
	hosts->check(CLI::ExistingFile);
	passed.text("--ssh COMMAND", "the command that starts a program on a host (default: ssh -o "
				     "BatchMode=yes)")
		->needs(hosts);
	CLI::Option *const slurm = passed.flag(
		"--slurm", "run each place of the lab on a node of a Slurm job, started by srun");
	slurm->excludes(hosts);
	passed.number("-N,--nodes N", "number of the job's nodes (default: all of the allocation)")
		->check(usage::integer(1, 64))
		->needs(slurm);
	passed.text("--srun COMMAND", "srun, with options if needed (default: srun)")->needs(slurm);
	passed.text("--remote-weft PATH", "the program weft on the other hosts (default: weft)");
}

// Returns the arguments of the session program for `up` or `run`.
Words session_words(const std::string &command, const Passed &passed)
{
	// weftd is in weft's directory.
	const auto weftd = own_directory() / "weftd";
	Words words{command, "weftd=" + weftd.string(), "version=" WEFT_VERSION};
	const Words given = passed.words();
	words.insert(words.end(), given.begin(), given.end());
	return words;
}

} // namespace

namespace
{

std::string read_file(const std::string &file)
{
	std::ifstream stream(file);
	std::string text((std::istreambuf_iterator<char>(stream)), {});
	if (!stream)
		throw std::runtime_error("cannot read " + file);
	return text;
}

void apply(const std::filesystem::path &socket_directory, const std::string &file, bool dry_run,
	   bool as_json)
{
	const auto folder = std::filesystem::absolute(file).parent_path().string();
	const auto result = ControlClient(socket_directory)
				    .call("lab.apply", {{"source", file},
							{"folder", folder},
							{"text", read_file(file)},
							{"dry_run", dry_run}});
	if (as_json)
		std::cout << result.dump(2, ' ', true) << '\n';
	for (const auto &warning : result.at("warnings"))
		std::cerr << "weft: " << printable(warning.get<std::string>()) << '\n';
	for (const auto &line : result.at("changes"))
		if (!as_json)
			std::cout << printable(line.get<std::string>()) << '\n';
	std::cout << std::flush;
	// The session starts and stops the guests of hosts that were added or removed.
	if (dry_run || result.at("changes").empty() ||
	    !std::filesystem::exists(socket_directory / "lab.sock"))
		return;
	Words words{"settle", "--"};
	for (const auto &host : result.at("replaced"))
		words.push_back(host.get<std::string>());
	become_session(socket_directory, words);
}

void add_plan(CLI::App &lab, const bool &as_json)
{
	auto *plan = lab.add_subcommand(
		"plan", "print which place runs which nodes of a lab file, and the trunks");
	auto file = std::make_shared<std::string>();
	auto number = std::make_shared<unsigned>(0);
	auto places = std::make_shared<Words>();
	plan->add_option("FILE", *file, "the lab file, see weft-lab.toml(5)")
		->required()
		->check(CLI::ExistingFile);
	plan->add_option("--places", *number,
			 "for a lab file without places: their number; they are p1, p2 and so on")
		->type_name("N")
		->check(usage::integer(1, 64));
	plan->add_option("--place", *places, "print only this place; may be given again")
		->type_name("NAME")
		->take_all()
		->allow_extra_args(false);
	plan->callback([&as_json, file, number, places] {
		Words words{"--lab", *file, "--plan", as_json ? "json" : "text"};
		if (*number)
			words.insert(words.end(), {"--places", std::to_string(*number)});
		for (const auto &place : *places)
			words.insert(words.end(), {"--place", place});
		execute(own_directory() / "weftd", words);
	});
}

void add_join(CLI::App &lab, const std::filesystem::path &socket_directory)
{
	auto *join = lab.add_subcommand(
		"join", "serve one control socket for the weftds of several places");
	join->footer("Then fabric show, top, counters, capture, link and web show and change the "
		     "whole lab. It runs until Ctrl-C. PLACE=WHERE must be given for each place.");
	auto options = std::make_shared<Passed>(*join);
	auto file = std::make_shared<std::string>();
	auto places = std::make_shared<Words>();
	join->add_option("FILE", *file, "the lab file of these weftds")
		->required()
		->check(CLI::ExistingFile);
	join->add_option("PLACE=WHERE", *places,
			 "the socket directory of a place's weftd on this host, or a command that "
			 "runs `weft lab pipe` on the weftd's host")
		->required();
	options->number("--places N", "for a lab file without places: their number")
		->check(usage::integer(1, 64));
	join->callback([&socket_directory, options, file, places] {
		Words words = session_words("join", *options);
		words.insert(words.end(), {"lab=" + *file, "--"});
		words.insert(words.end(), places->begin(), places->end());
		become_session(socket_directory, words);
	});
	lab.add_subcommand("pipe", "connect standard input and output to weftd's control socket")
		->callback([&socket_directory] { become_session(socket_directory, {"pipe"}); });
}

} // namespace

void add_lab(CLI::App &app, const std::filesystem::path &socket_directory, const bool &as_json,
	     std::vector<GuestCommand> &guest_commands)
{
	auto *lab = app.add_subcommand("lab", "weftd and a guest for every host");
	lab->require_subcommand(1);

	auto *up = lab->add_subcommand("up", "start weftd and the guests, and bring up ib0");
	const auto up_options = add_guest_options(*up);
	add_host_options(*up_options);
	up->callback([&socket_directory, passed = up_options] {
		become_session(socket_directory, session_words("up", *passed));
	});

	auto *shell = lab->add_subcommand("shell", "run a command or a shell in a guest, as root");
	auto host = std::make_shared<std::string>();
	auto command = std::make_shared<Words>();
	shell->add_option("HOST", *host, "the host's name in the lab")->required();
	shell->add_option("COMMAND", *command, "the command; without one, a shell");
	guest_commands.push_back({shell, 1, command.get()});
	shell->callback([&socket_directory, host, command] {
		Words words{"shell", "host=" + *host, "--"};
		words.insert(words.end(), command->begin(), command->end());
		become_session(socket_directory, words);
	});

	auto *restart = lab->add_subcommand("restart", "restart guests, also if they have crashed");
	auto again = std::make_shared<Words>();
	restart->add_option("HOST", *again, "hosts' names in the lab")->required();
	restart->callback([&socket_directory, again] {
		Words words{"restart", "--"};
		words.insert(words.end(), again->begin(), again->end());
		become_session(socket_directory, words);
	});

	auto *upgrade = lab->add_subcommand(
		"upgrade", "replace the running weftd, and hot-plug the guests' cards again");
	auto program = std::make_shared<std::string>();
	upgrade->add_option("--weftd", *program,
			    "the new weftd (default: weftd in the directory of weft)")
		->type_name("BINARY")
		->check(CLI::ExistingFile);
	upgrade->callback([&socket_directory, program] {
		const auto wanted =
			program->empty() ? (own_directory() / "weftd").string() : *program;
		become_session(socket_directory, {"upgrade", "weftd=" + wanted});
	});

	lab->add_subcommand("check",
			    "print what guests' kernels have reported since the last check")
		->callback([&socket_directory] { become_session(socket_directory, {"check"}); });

	auto *console = lab->add_subcommand("console", "print a guest's console");
	auto printed = std::make_shared<std::string>();
	auto follow = std::make_shared<bool>(false);
	console->add_option("HOST", *printed, "the host's name in the lab")->required();
	console->add_flag("--follow,-f", *follow, "continue to print new output");
	console->callback([&socket_directory, printed, follow] {
		Words words{"console", "host=" + *printed};
		if (*follow)
			words.emplace_back("follow:=true");
		become_session(socket_directory, words);
	});

	auto *change =
		lab->add_subcommand("apply", "change the running lab to what a file describes");
	auto file = std::make_shared<std::string>();
	auto dry_run = std::make_shared<bool>(false);
	change->add_option("FILE", *file, "the lab file, see weft-lab.toml(5)")
		->required()
		->check(CLI::ExistingFile);
	change->add_flag("--dry-run", *dry_run, "only print the differences");
	change->callback([&socket_directory, &as_json, file, dry_run] {
		apply(socket_directory, *file, *dry_run, as_json);
	});

	add_plan(*lab, as_json);

	lab->add_subcommand("down", "stop the guests and weftd")->callback([&socket_directory] {
		become_session(socket_directory, {"down"});
	});

	auto *place = lab->add_subcommand(
		"place", "run a place of a lab over several hosts; `lab up --hosts` starts this");
	auto place_options = std::make_shared<Passed>(*place);
	place_options->flag("--slurm", "this is a task of srun");
	place->callback([&socket_directory, place_options] {
		become_session(socket_directory, session_words("place", *place_options));
	});

	add_join(*lab, socket_directory);
}

void add_topology(CLI::App &app, const std::filesystem::path &socket_directory)
{
	const std::vector<std::string> models{"mlx4",     "mlx5",     "mthca",
					      "amso1100", "endpoint", "example"};
	constexpr int most_hosts = 19455, most_switches = 4096, most_ports = 253;
	auto *topology = app.add_subcommand("topology", "print the lab file of a topology");
	topology->require_subcommand(1);
	topology->footer(
		"As in: weft topology torus --size 4x4 >lab.toml && weft lab up --lab lab.toml");
	const auto add = [&](const std::string &kind, const std::string &description) {
		auto *command = topology->add_subcommand(kind, description);
		auto passed = std::make_shared<Passed>(*command);
		command->callback([&socket_directory, kind, passed] {
			Words words{"topology", "kind=" + kind};
			const Words given = passed->words();
			words.insert(words.end(), given.begin(), given.end());
			become_session(socket_directory, words);
		});
		return passed;
	};
	const auto hosts = [&models](Passed &passed, const char *description) {
		passed.text("--model MODEL", "model of the hosts' cards (default: mlx4)")
			->check(usage::one_of(models));
		return passed.number("--hosts N", description)
			->check(usage::integer(1, most_hosts));
	};
	const auto fat_tree = add("fat-tree", "leaves and spines, with full bisection bandwidth");
	hosts(*fat_tree, "number of hosts")->required();
	fat_tree->number("--ports P", "ports of each switch (default: 36)")
		->check(usage::integer(4, most_ports));
	fat_tree->number("--each H", "hosts per leaf; each leaf has one link to each spine")
		->check(usage::integer(1, most_ports));
	fat_tree->number("--spines S", "number of spines; requires --each")
		->check(usage::integer(1, most_ports));
	const auto ring = add("ring", "switches in a circle");
	ring->number("--switches N", "number of switches")
		->required()
		->check(usage::integer(1, most_switches));
	hosts(*ring, "number of hosts (default: one per switch)");
	const auto torus = add("torus", "switches in a grid with wrap-around links");
	torus->text("--size SIZE", "dimensions, as in 4x4 or 4x4x2")->required();
	hosts(*torus, "number of hosts (default: one per switch)");
	hosts(*add("dragonfly", "fully linked groups of switches"), "number of hosts")->required();

	auto *import =
		topology->add_subcommand("import", "the topology of a subnet, from ibnetdiscover");
	auto file = std::make_shared<std::string>();
	import->add_option("FILE", *file, "the output of ibnetdiscover; - is standard input")
		->required();
	auto passed = std::make_shared<Passed>(*import);
	passed->text("--model MODEL", "model of the hosts' cards (default: mlx4)")
		->check(usage::one_of(models));
	import->callback([&socket_directory, file, passed] {
		Words words{"topology", "kind=import", "file=" + *file};
		const Words given = passed->words();
		words.insert(words.end(), given.begin(), given.end());
		become_session(socket_directory, words);
	});
}

void add_web(CLI::App &app, const std::filesystem::path &socket_directory)
{
	auto *web =
		app.add_subcommand("web", "the fabric in a browser, and metrics for Prometheus");
	web->footer("It prints its address. Programs of the same user may view it; changes need "
		    "--allow and the whole address.");
	const auto passed = std::make_shared<Passed>(*web);
	passed->text("--listen ADDRESS", "the address to listen on (default: 127.0.0.1)");
	passed->number("--port N", "the port (default: 8317); 0 is any that is free")
		->check(usage::integer(0, 65535));
	passed->list("--name NAME",
		     "another name of this host that browsers may use; may be given again");
	passed->list("--allow WHAT",
		     "what a page may do: faults, captures; reading: let every user of this "
		     "host read it; consoles: show guests' consoles to others; may be given again")
		->check(usage::one_of({"faults", "captures", "consoles", "reading"}));
	passed->number("--interval S", "polling interval in seconds (default: 1)")
		->check(usage::number(0.2, 3600));
	web->callback([&socket_directory, passed] {
		Words words{"weft=" + (own_directory() / "weft").string()};
		const Words given = passed->words();
		words.insert(words.end(), given.begin(), given.end());
		become("web/weft-web", find_lab(socket_directory), words);
	});
}

void add_run(CLI::App &app, const std::filesystem::path &socket_directory,
	     std::vector<GuestCommand> &guest_commands)
{
	auto *run = app.add_subcommand("run", "run a command in a lab that exists only for it");
	run->footer("The command follows --, as in: weft run --on node1 -- ping -c 3 10.1.0.2");
	const auto passed = add_guest_options(*run);
	add_host_options(*passed);
	passed->list("--on HOST", "the host to run it in; may be given again (default: all)");
	CLI::Option *const script =
		passed->text("--script FILE", "a script instead of COMMAND; - is standard input");
	passed->number("--timeout SECONDS", "seconds for the command")
		->check(usage::number(0.1, 1e6));
	passed->flag("--quiet", "print no progress");
	auto *deterministic = passed->flag(
		"--deterministic",
		"in virtual time, with User-Mode Linux guests: the same seed repeats the run, to "
		"the last packet");
	for (const char *const several : {"--hosts", "--slurm"})
		deterministic->excludes(run->get_option(several));
	passed->number("--processes N",
		       "run the places of the lab file in N processes (weftd); the "
		       "result does not depend on N")
		->needs(deterministic)
		->check(usage::integer(1, 64));
	passed->number("--seed S", "seed of all random choices (default: a new one each time)")
		->needs(deterministic)
		->check(usage::integer(0, 0xffffffff));
	passed->list("--at 'SECONDS WORDS'",
		     "a scheduled change, such as \"2.5 link down node1\"; may be given again")
		->needs(deterministic);
	passed->text("--capture FILE", "record all links into this file")->needs(deterministic);
	auto command = std::make_shared<Words>();
	run->add_option("COMMAND", *command, "a line for bash, or a command and its arguments");
	guest_commands.push_back({run, 0, command.get()});
	run->callback([&socket_directory, passed, script, command] {
		if (command->empty() == script->empty())
			throw cli::UsageError("weft run: give either a command after --, or "
					      "--script FILE\nTry 'weft run --help'.");
		Words words = session_words("run", *passed);
		words.push_back("--");
		words.insert(words.end(), command->begin(), command->end());
		become_session(socket_directory, words);
	});
}

void add_hunt(CLI::App &app, const std::filesystem::path &socket_directory)
{
	auto *hunt = app.add_subcommand(
		"hunt", "look for kernel bugs by random schedules, each repeated by its seed");
	hunt->require_subcommand(1);
	const auto add = [&](const std::string &name, const std::string &description,
			     const std::string &action, bool takes_file) {
		auto *command = hunt->add_subcommand(name, description);
		auto passed = std::make_shared<Passed>(*command);
		auto file = std::make_shared<std::string>();
		if (takes_file)
			command->add_option("FILE", *file, "the schedule, as a hunt writes it")
				->required()
				->check(CLI::ExistingFile);
		command->callback([&socket_directory, name, action, file, passed] {
			Words words = session_words("hunt", *passed);
			words.insert(words.end(),
				     {"action=" + action, "scenario=" + name, "file=" + *file});
			become_session(socket_directory, words);
		});
		return passed;
	};

	const auto kernel = [](Passed &passed) {
		passed.text("--kernel KERNEL",
			    "the guests' kernel: um-debug (the default), or the directory "
			    "of a User-Mode Linux kernel");
	};
	const auto scenario = [&](const std::string &name, const std::string &description) {
		auto passed = add(name, description, "run", false);
		kernel(*passed);
		passed->text("--card MODEL",
			     "the model of the cards: mlx4 (the default), mlx5 or mthca")
			->check(usage::one_of({"mlx4", "mlx5", "mthca"}));
		passed->number("--seeds N", "number of seeds (default: 100)")
			->check(usage::integer(1, 1000000));
		passed->number("--seed S", "the first seed (default: 0)")
			->check(usage::integer(0, 0xffffffff));
		passed->number("--jobs J", "labs that run at a time (default: one for each CPU)")
			->check(usage::integer(1, 256));
		passed->text("--out DIR", "the directory of the results (default: hunt-" + name +
						  "); a hunt that was interrupted continues there");
		return passed;
	};
	const auto random = [&](const std::string &name, const std::string &description) {
		auto passed = scenario(name, description);
		passed->text("--perturb", "seeds with perturbed scheduling: none, half (the "
					  "default, if the kernel has CONFIG_UML_PERTURB) or all")
			->check(CLI::IsMember({"none", "half", "all"}));
		return passed;
	};
	const auto with_stack = [](Passed &passed) {
		passed.text("--stack STACK", "the RDMA stack: linux (the default) or weft")
			->check(usage::one_of({"linux", "weft"}));
	};
	with_stack(*random("ipoib", "administration of IPoIB, with failing allocations and links"));
	with_stack(*random("cm", "connections of RDMA CM that are refused, lost and abandoned, "
				 "while interfaces and cards are removed"));
	random("verbs", "programs that use verbs and MADs, killed, with failing allocations, "
			"while cards and modules are removed");
	random("connected", "IPoIB in connected mode, with connections that break");
	random("nvme", "NVMe over RDMA: disks are written and read while connections break and "
		       "targets disappear");
	random("srp", "the same for SRP");
	random("rds", "reliable datagrams over RDMA, while connections break and cards are "
		      "removed");
	const auto walk = [&](const std::string &name, const std::string &description) {
		scenario(name, description)
			->number("--group G", "seeds that run one after the other in one lab "
					      "(default: 1); if it does not pass, each runs alone")
			->check(usage::integer(1, 100));
	};
	walk("probe", "bind a card's driver while each allocation fails in turn");
	walk("removal", "unbind a card's driver while each allocation fails in turn");
	const auto replay =
		add("replay", "run one schedule, and compare its report with the expected one",
		    "replay", true);
	kernel(*replay);
	replay->text("--logs DIR", "the directory for the guests' consoles and weftd's log");
	const auto reduce =
		add("reduce", "remove the steps of a schedule that its report does not need",
		    "reduce", true);
	kernel(*reduce);
	reduce->text("--out FILE", "the file for the shorter schedule")->required();
}

} // namespace weft::cli
