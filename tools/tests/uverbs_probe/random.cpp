// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Issues random uverbs commands from several threads on the same open file. The test passes if the
// kernel's log contains no report.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/uverbs_probe/callers.hpp"
#include "tests/uverbs_probe/program.hpp"

namespace weft::uverbs
{

namespace
{

using Random = std::mt19937_64;

constexpr std::uint32_t kExtended = IB_USER_VERBS_CMD_FLAG_EXTENDED;
constexpr unsigned kCallsOfARound = 100, kNumbers = 60;
constexpr std::uint8_t kQpTypes[] = {kQpTypeRc, kQpTypeUc, kQpTypeUd, kQpTypeXrcInitiator,
				     kQpTypeXrcTarget};
char memory[4 * 4096] __attribute__((aligned(4096)));

struct Answer {
	std::uint32_t words[128];
};

/*
 * Executes a command or method with arbitrary errors. @number selects the command if it is not
 * empty.
 */
void call_wrongly(const Program &program, Random &random, int number = -1)
{
	static Answer answer;
	std::uint64_t request[20];

	/*
	 * Small numbers are used as handles, sizes and flags. The address of the response is valid
	 * in half of the cases.
	 */
	for (std::uint64_t &word : request) {
		const std::uint64_t any = random();
		word = any % 4 == 0   ? any
		       : any % 4 == 1 ? any % 8
		       : any % 4 == 2 ? (any % 8) << 32 | any % 5
				      : 0;
	}
	if (random() % 2)
		request[0] = reinterpret_cast<std::uintptr_t>(&answer);
	if (number < 0 && random() % 2)
		return call_at_random(program, random, &answer);
	const auto command =
		static_cast<unsigned>(number < 0 ? static_cast<int>(random() % kNumbers) : number);
	const std::size_t size = random() % 18 * 8;
	if (random() % 4) {
		program.plain(command, request, size, random() % 64 * 4);
		return;
	}
	std::uint64_t bytes[24] = {};
	const ib_uverbs_cmd_hdr header = {command | kExtended, static_cast<std::uint16_t>(size / 8),
					  static_cast<std::uint16_t>(random() % 40)};
	std::memcpy(bytes, &header, sizeof(header));
	bytes[1] = reinterpret_cast<std::uintptr_t>(&answer);
	std::memcpy(bytes + 3, request, size);
	program.write(bytes, 24 + size);
}

/*
 * Executes a valid command on an object with any handle, which another thread may create or destroy
 * at the same time.
 */
void call_rightly(const Program &program, Random &random)
{
	const auto any = [&random] { return static_cast<std::uint32_t>(random() % 32); };
	ib_uverbs_destroy_cq_resp read;
	std::uint32_t made, number;

	switch (random() % 16) {
	case 0:
		program.alloc_pd(made);
		break;
	case 1:
		program.dealloc_pd(any());
		break;
	case 2:
		program.create_cq(-1, made);
		break;
	case 3:
		program.destroy_cq(any(), read);
		break;
	case 4:
	case 5:
		program.create_qp(any(), any(), made, kQpTypes[random() % std::size(kQpTypes)]);
		break;
	case 6:
		program.destroy_qp(any());
		break;
	case 7:
		program.create_xrc_srq(any(), any(), any(), made, number);
		break;
	case 8:
		program.destroy_srq(any());
		break;
	case 9:
		program.register_memory(any(), memory, 1 + random() % sizeof(memory), made);
		break;
	case 10:
		program.register_again(any(), static_cast<std::uint32_t>(random() % 8), any(),
				       memory, 1 + random() % sizeof(memory));
		break;
	case 11:
		program.deregister_memory(any());
		break;
	case 12:
		program.attach(any(), 0xc000);
		break;
	case 13:
		program.modify_qp(any(), random() % 8,
				  static_cast<std::uint32_t>(random() % (1 << 21)));
		break;
	case 14:
		program.resize_cq(any(), static_cast<std::uint32_t>(random() % 64),
				  Program::ring());
		break;
	default:
		program.open_domain(-1, 0, made);
	}
}

void call(const Program &program, Random &random)
{
	if (random() % 2)
		call_rightly(program, random);
	else
		call_wrongly(program, random);
}

} // namespace

void try_random(std::uint64_t seed, unsigned long count)
{
	/* Descriptors that calls create have higher numbers than this one. */
	const int first = dup(0);
	std::unique_ptr<Program> program;

	call_from_threads(
		seed, count / (kCallers * kCallsOfARound), kCallsOfARound,
		[&] { program = std::make_unique<Program>(); },
		[&](Random &random) { call(*program, random); },
		[&] {
			program.reset();
			close_range(static_cast<unsigned>(first) + 1, ~0u, 0);
		});
	::close(first);
}

/* Kills programs while they execute a command, each number in turn and random ones. */
void try_deaths(std::uint64_t seed, unsigned long times)
{
	for (unsigned long i = 0; i < times; i++) {
		for (int number = -1; number < static_cast<int>(kNumbers); number++) {
			int ready[2], status;
			if (pipe(ready)) {
				expect("pipe", errno, 0);
				return;
			}
			const pid_t victim = fork();
			if (victim == 0) {
				Random random(seed + i);
				const Program program;
				for (int made = 0; made < 40; made++)
					call_rightly(program, random);
				for (bool notified = false;; notified = true) {
					if (!notified && ::write(ready[1], "", 1) != 1)
						_exit(1);
					if (number < 0)
						call(program, random);
					else
						call_wrongly(program, random, number);
				}
			}
			char byte;
			::close(ready[1]);
			expect("a victim to work", ::read(ready[0], &byte, 1), 1);
			usleep(static_cast<useconds_t>(
				(seed + i * 7 + static_cast<unsigned long>(number + 1) * 131) %
				1500));
			kill(victim, SIGKILL);
			waitpid(victim, &status, 0);
			expect("a victim that was killed",
			       WIFSIGNALED(status) ? WTERMSIG(status) : 0, SIGKILL);
			::close(ready[0]);
		}
	}
}

} // namespace weft::uverbs
