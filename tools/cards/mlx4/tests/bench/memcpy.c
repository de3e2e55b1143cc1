// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Measures the host's best copy rate: copies BYTES of one buffer to another with memcpy for
 * SECONDS; prints bytes per microsecond.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	const size_t size = argc == 3 ? strtoul(argv[1], NULL, 0) : 0;
	const double limit = argc == 3 ? atof(argv[2]) : 0;
	char *from = malloc(size), *to = malloc(size);
	double begin, took;
	unsigned long count = 0;

	if (!size || !from || !to)
		return 1;
	memset(from, 1, size);
	memset(to, 2, size);
	begin = now();
	do {
		memcpy(to, from, size);
		/* Makes the compiler keep the copy, although nothing reads the result. */
		__asm__ volatile("" : : "r"(to) : "memory");
		count++;
		took = now() - begin;
	} while (took < limit);
	printf("%.0f\n", count * (double)size / took / 1e6);
	return 0;
}
