// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements process 1 of a test guest: it runs the host's commands, sends back their output as it
// is written, and reaps orphans.
//
// It exchanges frames over a virtio-serial port or a serial line. A frame is a Header followed by
// `size` bytes.
//   from the host:  run (a command for bash), execute (a program and its arguments, a NUL after each), put (path, NUL,
//                   contents), get (path), kill (signal: u32), start (Start, then as execute: a
//                   program that has standard input), input (bytes for its standard input; none:
//                   end of file), resize (Size of its terminal)
//   to the host:    ready (kernel release), out and err (output), exit (status: u32; 128 + n after signal n; for put
//                   and get the errno), taken (bytes received from the host so far: u32; on a
//                   serial line only), consumed (bytes of input that a program has read so
//                   far: u32)
// The host sends input for a program only as far as `consumed` permits: the agent holds at most 64
// KiB of it (INPUT_MOST of process.py). The host chooses the id of a command, which is in every
// frame about it.
//
// A User-Mode Linux serial line stops receiving for good if its buffer fills up: line_throttle()
// calls deactivate_fd(), and nothing enables the interrupt again. So the host never has more bytes
// in flight than the buffer holds; `taken` reports how many have left it.
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <vector>

namespace
{

enum class Type : uint32_t {
	run = 1,
	put,
	get,
	kill,
	execute,
	start,
	input,
	resize,
	ready = 16,
	out,
	err,
	exit,
	taken,
	consumed
};

enum class Input : uint32_t { none, pipe, terminal };

struct Size {
	uint16_t rows;
	uint16_t columns;
};

struct Start {
	Input input;
	Size size; // of the terminal
};

// Input taken by a program is reported in steps of so many bytes (the host's LINE_STEP).
constexpr uint32_t taken_step = 1024;
constexpr uint32_t consumed_step = 16384;
// One turn reads so often, 32 KiB each, so that output without end does not keep the agent from the
// host's frames.
constexpr int reads_in_a_turn = 2;
// More than a pipe holds.
constexpr int reads_at_the_end = 64;

struct Header {
	uint32_t size;
	uint32_t id;
	uint32_t type;
};

// A running or just ended command. Output may outlive it: a child that it left behind can hold the
// pipes.
struct Command {
	pid_t pid = -1;
	int out = -1;
	int err = -1;
	// Standard input: the write end of a pipe, or the master of a terminal; what is still to be
	// written to it, whether it ends then, and how much the host knows to be written.
	int in = -1;
	bool on_terminal = false;
	bool ends = false;
	std::string pending;
	uint32_t consumed = 0;
	uint32_t reported = 0;
};

[[noreturn]] void fail(const char *what)
{
	// The end of process 1 is a kernel panic, which ends the guest: the host sees both.
	fprintf(stderr, "weft-guest: agent: %s: %s\n", what, strerror(errno));
	_exit(1);
}

class Agent
{
public:
	explicit Agent(const char *port)
	{
		port_ = open(port, O_RDWR | O_CLOEXEC | O_NOCTTY);
		if (port_ < 0)
			fail(port);
		// In a UML guest it is a serial line, which would change the data.
		termios line;
		if (tcgetattr(port_, &line) == 0) {
			cfmakeraw(&line);
			if (tcsetattr(port_, TCSANOW, &line) != 0)
				fail("tcsetattr");
			is_line_ = true;
		}
		sigset_t child;
		sigemptyset(&child);
		sigaddset(&child, SIGCHLD);
		sigprocmask(SIG_BLOCK, &child, nullptr);
		child_events_ = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
		if (child_events_ < 0)
			fail("signalfd");
	}

	[[noreturn]] void serve()
	{
		utsname name{};
		uname(&name);
		send(0, Type::ready, name.release);
		for (;;)
			wait_and_handle();
	}

private:
	void send(uint32_t id, Type type, std::string_view data)
	{
		const Header header{static_cast<uint32_t>(data.size()), id,
				    static_cast<uint32_t>(type)};
		std::string frame(reinterpret_cast<const char *>(&header), sizeof(header));
		frame += data;
		for (size_t done = 0; done < frame.size();) {
			const ssize_t n = write(port_, frame.data() + done, frame.size() - done);
			if (n > 0)
				done += static_cast<size_t>(n);
			else if (errno != EINTR)
				fail("write to the host");
		}
	}

	void send_exit(uint32_t id, uint32_t status)
	{
		send(id, Type::exit, {reinterpret_cast<const char *>(&status), sizeof(status)});
	}

	void receive(void *buffer, size_t size)
	{
		for (size_t done = 0; done < size;) {
			const ssize_t n =
				read(port_, static_cast<char *>(buffer) + done, size - done);
			if (n > 0) {
				done += static_cast<size_t>(n);
				took(static_cast<uint32_t>(n));
			} else if (n == 0)
				pause_for_host();
			else if (errno != EINTR)
				fail("read from the host");
		}
	}

	void took(uint32_t size)
	{
		taken_ += size;
		if (!is_line_ || taken_ - reported_ < taken_step)
			return;
		reported_ = taken_;
		send(0, Type::taken,
		     {reinterpret_cast<const char *>(&reported_), sizeof(reported_)});
	}

	// read() gives 0 while the host has its end closed; it only reopens it after a reset of
	// ours.
	static void pause_for_host() { usleep(10'000); }

	void wait_and_handle()
	{
		std::vector<pollfd> fds{{port_, POLLIN, 0}, {child_events_, POLLIN, 0}};
		std::vector<uint32_t> owners;
		const auto watch = [&](uint32_t id, int fd, short events) {
			if (fd < 0)
				return;
			fds.push_back({fd, events, 0});
			owners.push_back(id);
		};
		for (auto &[id, command] : commands_) {
			watch(id, command.out, POLLIN);
			watch(id, command.err, POLLIN);
			if (!command.pending.empty())
				watch(id, command.in, POLLOUT);
		}
		if (poll(fds.data(), fds.size(), -1) < 0) {
			if (errno == EINTR)
				return;
			fail("poll");
		}
		for (size_t i = 2; i < fds.size(); i++) {
			if (!fds[i].revents)
				continue;
			if (fds[i].events == POLLOUT)
				write_input(owners[i - 2]);
			else
				forward(owners[i - 2], fds[i].fd, reads_in_a_turn);
		}
		if (fds[1].revents)
			reap();
		if (fds[0].revents & POLLIN)
			handle_frame();
		else if (fds[0].revents)
			pause_for_host();
	}

	void handle_frame()
	{
		Header header{};
		receive(&header, sizeof(header));
		std::string data(header.size, '\0');
		receive(data.data(), data.size());
		switch (static_cast<Type>(header.type)) {
		case Type::run:
			return run(header.id, {"bash", "-c", data.c_str(), nullptr});
		case Type::execute:
			return run(header.id, words_of(data));
		case Type::start:
			return start(header.id, data);
		case Type::input:
			return take_input(header.id, data);
		case Type::resize:
			return resize(header.id, data);
		case Type::put:
			return send_exit(header.id, put(data));
		case Type::get:
			return send_exit(header.id, get(header.id, data));
		case Type::kill:
			return kill_group(header.id, data);
		default:
			errno = EPROTO;
			fail("unknown frame from the host");
		}
	}

	static std::vector<const char *> words_of(const std::string &data)
	{
		std::vector<const char *> words;
		for (size_t at = 0; at < data.size(); at = data.find('\0', at) + 1)
			words.push_back(data.c_str() + at);
		words.push_back(nullptr);
		return words;
	}

	template<class T>
	static T read_from(const std::string &data)
	{
		T value{};
		if (data.size() < sizeof(value)) {
			errno = EPROTO;
			fail("short frame from the host");
		}
		memcpy(&value, data.data(), sizeof(value));
		return value;
	}

	void start(uint32_t id, const std::string &data)
	{
		const auto how = read_from<Start>(data);
		const std::string words = data.substr(sizeof(how));
		if (how.input == Input::terminal)
			return run_on_terminal(id, words_of(words), how.size);
		run(id, words_of(words), how.input == Input::pipe);
	}

	// In the child: the program has no signal blocked or ignored, whatever the agent does with
	// it, or was started with.
	[[noreturn]] static void become(const std::vector<const char *> &words)
	{
		sigset_t none;
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, nullptr);
		for (int number = 1; number < NSIG; ++number)
			signal(number, SIG_DFL);
		execvp(words[0], const_cast<char **>(words.data()));
		dprintf(2, "%s: %s\n", words[0], strerror(errno));
		_exit(127);
	}

	// words: with a null behind the last one.
	void run(uint32_t id, const std::vector<const char *> &words, bool with_input = false)
	{
		int in[2] = {-1, -1}, out[2], err[2];
		if (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC) ||
		    (with_input && pipe2(in, O_CLOEXEC)))
			fail("pipe");
		const pid_t pid = fork();
		if (pid < 0)
			fail("fork");
		if (pid == 0) {
			setsid();
			dup2(with_input ? in[0] : open("/dev/null", O_RDONLY), 0);
			dup2(out[1], 1);
			dup2(err[1], 2);
			become(words);
		}
		close(out[1]);
		close(err[1]);
		Command command;
		command.pid = pid;
		command.out = out[0];
		command.err = err[0];
		if (with_input) {
			close(in[0]);
			command.in = in[1];
		}
		add(id, std::move(command));
	}

	// Its terminal is the controlling one of its session, so that keys send signals, and its
	// end hangs it up.
	void run_on_terminal(uint32_t id, const std::vector<const char *> &words, Size size)
	{
		const int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
		if (master < 0 || grantpt(master) || unlockpt(master))
			fail("/dev/ptmx");
		const std::string name = ptsname(master);
		set_size(master, size);
		const pid_t pid = fork();
		if (pid < 0)
			fail("fork");
		if (pid == 0) {
			setsid();
			const int terminal = open(name.c_str(), O_RDWR);
			ioctl(terminal, TIOCSCTTY, 0);
			for (int fd = 0; fd < 3; fd++)
				dup2(terminal, fd);
			if (terminal > 2)
				close(terminal);
			become(words);
		}
		const int input = fcntl(master, F_DUPFD_CLOEXEC, 0);
		if (input < 0)
			fail("dup");
		Command command;
		command.pid = pid;
		command.out = master;
		command.in = input;
		command.on_terminal = true;
		add(id, std::move(command));
	}

	void add(uint32_t id, Command command)
	{
		for (const int fd : {command.out, command.err, command.in}) {
			if (fd >= 0)
				fcntl(fd, F_SETFL,
				      O_NONBLOCK | (fd == command.in && command.on_terminal ? O_RDWR
											    : 0));
		}
		commands_[id] = std::move(command);
	}

	static void set_size(int terminal, Size size)
	{
		const winsize wanted{size.rows, size.columns, 0, 0};
		ioctl(terminal, TIOCSWINSZ, &wanted);
	}

	void resize(uint32_t id, const std::string &data)
	{
		const auto found = commands_.find(id);
		if (found != commands_.end() && found->second.on_terminal && found->second.in >= 0)
			set_size(found->second.in, read_from<Size>(data));
	}

	void take_input(uint32_t id, const std::string &data)
	{
		const auto found = commands_.find(id);
		if (found == commands_.end())
			return; // it has ended meanwhile
		if (data.empty())
			found->second.ends = true;
		found->second.pending += data;
		write_input(id);
	}

	// Writes as much as the program takes now. Input for a program that has closed its end is
	// dropped: the host must not wait.
	void write_input(uint32_t id)
	{
		Command &command = commands_[id];
		while (!command.pending.empty()) {
			const ssize_t n = command.in < 0
						  ? static_cast<ssize_t>(command.pending.size())
						  : write(command.in, command.pending.data(),
							  command.pending.size());
			if (n < 0 && errno == EINTR)
				continue;
			if (n < 0 && errno == EAGAIN)
				break;
			if (n < 0) {
				close_input(command);
				continue;
			}
			command.pending.erase(0, static_cast<size_t>(n));
			command.consumed += static_cast<uint32_t>(n);
		}
		if (command.pending.empty() && command.ends)
			close_input(command);
		if (command.consumed != command.reported &&
		    (command.pending.empty() ||
		     command.consumed - command.reported >= consumed_step)) {
			command.reported = command.consumed;
			send(id, Type::consumed,
			     {reinterpret_cast<const char *>(&command.reported),
			      sizeof(command.reported)});
		}
	}

	static void close_input(Command &command)
	{
		if (command.in < 0)
			return;
		close(command.in);
		command.in = -1;
	}

	static uint32_t put(const std::string &data)
	{
		const size_t end = data.find('\0');
		if (end == std::string::npos)
			return EINVAL;
		FILE *file = fopen(data.c_str(), "w");
		if (!file)
			return static_cast<uint32_t>(errno);
		const size_t size = data.size() - end - 1;
		// fclose() reports errors of the last write.
		errno = 0;
		if (fwrite(data.data() + end + 1, 1, size, file) == size)
			return fclose(file) == 0 ? 0 : static_cast<uint32_t>(errno);
		const uint32_t error = errno ? static_cast<uint32_t>(errno) : EIO;
		fclose(file);
		return error;
	}

	uint32_t get(uint32_t id, const std::string &path)
	{
		FILE *file = fopen(path.c_str(), "r");
		if (!file)
			return static_cast<uint32_t>(errno);
		char buffer[65536];
		while (const size_t n = fread(buffer, 1, sizeof(buffer), file))
			send(id, Type::out, {buffer, n});
		const bool failed = ferror(file);
		fclose(file);
		return failed ? EIO : 0;
	}

	void kill_group(uint32_t id, const std::string &data)
	{
		uint32_t number = SIGKILL;
		if (data.size() == sizeof(number))
			memcpy(&number, data.data(), sizeof(number));
		const auto found = commands_.find(id);
		if (found == commands_.end() || found->second.pid <= 0)
			return;
		// A shell on a terminal gives each job a group of its own.
		if (const pid_t job = found->second.on_terminal ? tcgetpgrp(found->second.in) : -1;
		    job > 0 && job != found->second.pid)
			kill(-job, static_cast<int>(number));
		// It has no group yet if it has only just been forked.
		if (kill(-found->second.pid, static_cast<int>(number)) != 0)
			kill(found->second.pid, static_cast<int>(number));
	}

	// Sends on what can be read from one of a command's pipes now, by so many reads at most.
	void forward(uint32_t id, int fd, int reads)
	{
		Command &command = commands_[id];
		const Type type = fd == command.out ? Type::out : Type::err;
		char buffer[32768];
		for (;;) {
			if (reads-- == 0)
				return;
			const ssize_t n = read(fd, buffer, sizeof(buffer));
			if (n > 0) {
				if (command.pid > 0)
					send(id, type, {buffer, static_cast<size_t>(n)});
				continue;
			}
			if (n < 0 && errno == EAGAIN)
				return;
			if (n < 0 && errno == EINTR)
				continue;
			break;
		}
		close(fd);
		(type == Type::out ? command.out : command.err) = -1;
		forget_if_over(id);
	}

	void reap()
	{
		signalfd_siginfo info;
		while (read(child_events_, &info, sizeof(info)) > 0) {
		}
		int status;
		for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
			for (auto &[id, command] : commands_) {
				if (command.pid == pid) {
					ended(id, status);
					break;
				}
			}
		}
	}

	void ended(uint32_t id, int status)
	{
		for (const int fd : {commands_[id].out, commands_[id].err}) {
			if (fd >= 0)
				forward(id, fd, reads_at_the_end);
		}
		const auto found = commands_.find(id);
		found->second.pid = 0;
		// No other process may write to a program's terminal; processes that still run
		// there are hung up.
		close_input(found->second);
		found->second.pending.clear();
		if (found->second.on_terminal && found->second.out >= 0) {
			close(found->second.out);
			found->second.out = -1;
		}
		send_exit(id, static_cast<uint32_t>(WIFEXITED(status) ? WEXITSTATUS(status)
								      : 128 + WTERMSIG(status)));
		forget_if_over(id);
	}

	// A command is over when it was reaped and nothing holds its pipes any more.
	void forget_if_over(uint32_t id)
	{
		const Command &command = commands_[id];
		if (command.pid == 0 && command.out < 0 && command.err < 0)
			commands_.erase(id);
	}

	int port_;
	bool is_line_ = false;
	uint32_t taken_ = 0; // of what the host has sent
	uint32_t reported_ = 0;
	int child_events_;
	std::map<uint32_t, Command> commands_;
};

} // namespace

int main(int argc, char **argv)
{
	if (argc != 2) {
		fputs("usage: agent PORT\n", stderr);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	Agent(argv[1]).serve();
}
