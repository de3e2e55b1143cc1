// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#pragma once

namespace weft
{

// What is behind a descriptor that somebody else made.
enum class DescriptorKind {
	Event,  // an eventfd
	Pipe,   // an end of a pipe; a FIFO of a file system is Other
	Socket, // of any family; and what holds sockets as one does (io_uring)
	Other,
};

// Asks the kernel alone: of a file, its file system may be a process of whoever made it, and answer
// when it pleases. Other if it cannot be known.
DescriptorKind kind_of(int fd);

// Whether the kernel itself has the pages of the file @fd, and brings none that it lacks from a
// program of somebody's (FUSE) or from another machine: who touches one would wait for them, which
// are other machines' cards, too. So are files in memory (no others can have seals), files of a
// disk, and those of the file system that this program's own files are on. A file system that is
// not known must not be asked: its program may answer when it pleases.
bool is_of_the_kernel(int fd);

// Has the socket @fd receive nothing any more, from whom it may be connected to, so that no
// descriptor comes with it or after it. False if that cannot be had: it is no stream socket of this
// machine that is connected, or something waits in it.
bool make_send_only(int fd);

} // namespace weft
