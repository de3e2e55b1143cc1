// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "child.hpp"
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <kern/sim/failure.hpp>
#include <kern/sim/memory.hpp>
#include <kern/sim/reset.hpp>
#include <kern/sim/scheduler.hpp>
#include "run.hpp"

namespace explore
{

namespace
{

/* A memfd, which a child process writes and its parent reads. */
class Channel
{
public:
	Channel() : fd_(memfd_create("weft-explore", MFD_CLOEXEC))
	{
		if (fd_ < 0)
			throw std::system_error(errno, std::generic_category(), "memfd_create");
	}
	~Channel() { close(fd_); }
	Channel(const Channel &) = delete;
	Channel &operator=(const Channel &) = delete;

	int fd() const { return fd_; }
	void rewind() { lseek(fd_, 0, SEEK_SET); }
	void put(const void *from, std::size_t size)
	{
		if (::write(fd_, from, size) != static_cast<ssize_t>(size))
			_exit(3);
	}
	void put(std::uint64_t value) { put(&value, sizeof(value)); }
	void put(const std::string &text)
	{
		put(text.size());
		put(text.data(), text.size());
	}
	bool get(void *to, std::size_t size)
	{
		return ::read(fd_, to, size) == static_cast<ssize_t>(size);
	}
	std::uint64_t number()
	{
		std::uint64_t value;
		return get(&value, sizeof(value)) ? value : 0;
	}
	std::string text()
	{
		std::string text(number(), '\0');
		get(text.data(), text.size());
		return text;
	}
	std::string all()
	{
		const off_t size = lseek(fd_, 0, SEEK_END);
		std::string text(static_cast<std::size_t>(size), '\0');
		rewind();
		get(text.data(), text.size());
		return text;
	}

private:
	int fd_;
};

/* The current run, for the report if the child fails. */
struct Attempt {
	Channel *out = nullptr;
	std::uint64_t seed = 0;
	const sim::Recorder *recorder = nullptr;
	Explored done;
	bool reported = false;
} attempt;

/*
 * Returns a list of the code that each task runs between two switches. Of several equal entries in
 * a row, lists the first one and the number of the others. Also lists each allocation that was made
 * to fail.
 */
std::string interleaving()
{
	std::string text, last;
	unsigned int same = 0;
	const auto end_of_same = [&] {
		if (same)
			text += "  … and " + std::to_string(same) + " more such\n";
		same = 0;
	};

	for (const sim::Stretch &stretch : sim::scheduler().stretches()) {
		const std::string what = std::to_string(stretch.steps) +
					 (stretch.steps == 1 ? " step" : " steps") + ", until " +
					 sim::describe(stretch.to) + "\n";
		if (stretch.name + what == last) {
			same++;
			continue;
		}
		end_of_same();
		last = stretch.name + what;
		text += "  " + stretch.name + " (" + std::to_string(stretch.fiber) + "), " + what;
	}
	end_of_same();
	if (!text.empty())
		for (const void *caller : sim::memory::failed_by_choice())
			text += "  an allocation fails in " + sim::where(caller) + "\n";
	return text;
}

void report(const std::string &title, const std::string &detail)
{
	if (attempt.reported)
		_exit(1);
	attempt.reported = true;
	Channel &out = *attempt.out;
	out.put(attempt.done.runs);
	out.put(attempt.done.steps);
	out.put(attempt.done.skipped);
	out.put(std::uint64_t{1});
	out.put(attempt.seed);
	out.put(title);
	out.put(detail);
	out.put(sim::messages());
	const sim::Plan &plan = attempt.recorder->plan();
	out.put(plan.size());
	out.put(plan.data(), plan.size() * sizeof(sim::Decision));
	out.put(interleaving());
	_exit(1);
}

/* Called when a sanitizer terminates the process. */
void on_death()
{
	if (__asan_report_present())
		report(std::string("AddressSanitizer: ") + __asan_get_report_description(),
		       "at " + sim::where(__asan_get_report_pc()));
	report("undefined behaviour", "");
}

/*
 * The runtimes of the two sanitizers have separate lists of callbacks under the same name, and the
 * linker resolves the name to the first one.
 */
void report_deaths()
{
	using Setter = void (*)(void (*)());

	__sanitizer_set_death_callback(on_death);
	void *second = dlopen("libubsan.so.1", RTLD_NOW | RTLD_NOLOAD);
	if (auto *set = second ? reinterpret_cast<Setter>(
					 dlsym(second, "__sanitizer_set_death_callback"))
			       : nullptr)
		set(on_death);
}

Explored read(Channel &in, Channel &errors)
{
	Explored explored;

	in.rewind();
	explored.runs = in.number();
	explored.steps = in.number();
	explored.skipped = in.text();
	if (in.number() == 0)
		return explored;
	Failure failure;
	failure.seed = in.number();
	failure.title = in.text();
	failure.detail = in.text();
	failure.messages = in.text();
	failure.plan.resize(in.number());
	in.get(failure.plan.data(), failure.plan.size() * sizeof(sim::Decision));
	failure.interleaving = in.text();
	failure.report = errors.all();
	explored.failure = std::move(failure);
	return explored;
}

Explored in_child(const std::function<void()> &body)
{
	Channel out, errors;

	const pid_t child = fork();
	if (child < 0)
		throw std::system_error(errno, std::generic_category(), "fork");
	if (child == 0) {
		dup2(errors.fd(), STDERR_FILENO);
		attempt.out = &out;
		sim::on_failure(report);
		report_deaths();
		body();
		out.put(attempt.done.runs);
		out.put(attempt.done.steps);
		out.put(attempt.done.skipped);
		out.put(std::uint64_t{0});
		_exit(0);
	}
	int status;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (!WIFEXITED(status) || WEXITSTATUS(status) > 1)
		throw std::runtime_error(
			"a run ended its process, which is a defect of weft-explore: " +
			errors.all());
	Explored explored = read(out, errors);
	if (explored.failure.has_value() != (WEXITSTATUS(status) == 1))
		throw std::runtime_error(
			"a run ended its process without a word, which is a defect of weft-explore: " +
			errors.all());
	return explored;
}

void run_one(const sim::Case &one, sim::Strategy &strategy, const Limits &limits)
{
	sim::Recorder recorder(strategy);

	attempt.seed = strategy.seed();
	attempt.recorder = &recorder;
	const Run done = run(one, recorder, limits.steps);
	attempt.done.runs++;
	attempt.done.steps = std::max(attempt.done.steps, done.steps);
	attempt.done.skipped = done.skipped;
}

} // namespace

Explored explore_seeds(const sim::Case &one, std::uint64_t first, std::uint64_t last,
		       const Limits &limits)
{
	return in_child([&] {
		using Clock = std::chrono::steady_clock;
		const auto end = Clock::now() + std::chrono::duration<double>(limits.seconds);
		/*
		 * The length of an undisturbed run, in choices, limits the positions at which other
		 * runs are disturbed.
		 */
		run_one(one, *sim::strategy_of_plan(0, {}), limits);
		const std::uint64_t length = sim::scheduler().choices();
		attempt.done.runs = 0;
		for (std::uint64_t seed = first;
		     seed <= last && Clock::now() < end && attempt.done.skipped.empty(); seed++)
			run_one(one, *sim::strategy_of_seed(seed, length), limits);
	});
}

Explored follow_plan(const sim::Case &one, std::uint64_t seed, const sim::Plan &plan,
		     const Limits &limits)
{
	return in_child([&] {
		sim::scheduler().record_stretches(true);
		run_one(one, *sim::strategy_of_plan(seed, plan), limits);
	});
}

} // namespace explore

/*
 * Leak detection is off, because the simulation itself reports leaks for each run. Mismatched
 * deallocation is not checked, because virtual destructors free memory of kern_alloc(). The
 * quarantine is large enough for one run; a larger one would cost time.
 */
extern "C" const char *__asan_default_options();
extern "C" const char *__asan_default_options()
{
	return "detect_leaks=0:alloc_dealloc_mismatch=0:detect_stack_use_after_return=0:quarantine_size_mb=8:max_malloc_fill_size=0:print_legend=0:"
	       "print_full_thread_history=0:malloc_context_size=10";
}
