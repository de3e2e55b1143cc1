// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Determines what kind of file a descriptor from another process refers to, without blocking.
#pragma once

namespace weft
{

// Kind of a descriptor that another program made.
enum class DescriptorKind {
	event,  // an eventfd
	pipe,   // an end of a pipe; a FIFO of a file system is Other
	socket, // a socket of any family, or an object that holds sockets as one does (io_uring)
	other,
};

// Uses only information of the kernel: the file system of a file may be a process of the sender,
// which may delay its reply. Returns `other` if the kind cannot be determined.
DescriptorKind kind_of(int fd);

// Returns true if the kernel itself holds the pages of the file @fd and fetches none from a user's
// program (FUSE) or another host: a thread that touches such a page would wait, and delay the cards
// of other guests. True for files in memory (no others can have seals), files on a disk, and files
// on the file system of this program's own files. Unknown file systems must not be queried: their
// program may take as long as it likes to answer.
bool is_of_the_kernel(int fd);

// Shuts down the receiving half of the socket @fd, so that no descriptor is received from it any
// more. Returns false if that is not possible: it is no connected local stream socket, or data
// waits in it.
bool make_send_only(int fd);

} // namespace weft
