// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Determines what kind of file a descriptor from another process refers to. The functions do not
// block, even if that process delays access to the file.
#pragma once

namespace weft
{

// Kind of a descriptor that another program has created.
enum class DescriptorKind {
	event,  // an eventfd
	pipe,   // an end of a pipe; a FIFO of a file system is `other`
	socket, // a socket of any family, or an object that can contain sockets (io_uring)
	other,
};

// Returns the kind of @fd, or `other` if it cannot be determined. Uses only information of the
// kernel, because a file's file system may be a process of the sender, which may delay its reply.
DescriptorKind kind_of(int fd);

// Returns true if the kernel itself provides the pages of the file @fd, and does not fetch them
// from a user's program (FUSE) or another host. A thread that touches a page of such a file would
// wait, and delay the cards of other guests. True for files in memory (no other files can have
// seals), files on a disk, and files on the file system of this program's own files. Other file
// systems are not queried, because their program may delay its answer without limit.
bool is_of_the_kernel(int fd);

// Shuts down the receiving half of the socket @fd, so that no descriptor can be received from it
// any more. Returns false if that is not possible, because @fd is not a connected local stream
// socket or has unread data.
bool make_send_only(int fd);

} // namespace weft
