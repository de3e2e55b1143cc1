/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Stands in for libstdc++'s own header, which brings pthread.h and futex calls even when
 * -ffreestanding is given. What it leaves out, std::atomic::wait() and notify_*(), has no meaning
 * here: kern/waitqueue.hpp waits.
 */
#ifndef _GLIBCXX_ATOMIC_WAIT_H
#define _GLIBCXX_ATOMIC_WAIT_H 1
#include <bits/c++config.h>
#endif
