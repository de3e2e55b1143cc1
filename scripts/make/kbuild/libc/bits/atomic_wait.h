/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Replaces libstdc++'s own header, which includes pthread.h and calls futex even with
 * -ffreestanding. What it leaves out, std::atomic::wait() and notify_*(), has no meaning in the
 * kernel: code uses kern/wait_queue.hpp.
 */
#ifndef _GLIBCXX_ATOMIC_WAIT_H
#define _GLIBCXX_ATOMIC_WAIT_H 1
#include <bits/c++config.h>
#endif
