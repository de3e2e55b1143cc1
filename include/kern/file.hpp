// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements files that programs open: nodes in /dev/infiniband, and anonymous files with only a
// descriptor.
//
//	class Channel {				// methods that the owner of a file may define:
//		kern::Result<size_t> read(u64 to, size_t count, bool wait);
//		kern::Result<size_t> write(u64 from, size_t count);
//		kern::Result<> control(unsigned int command, u64 argument);
//		unsigned int poll(kern::Poll &poll);
//		kern::Result<kern_mapping> map(u64 page_offset, size_t length);
//		void release();			// required; the last call
//	};
//	constinit kern::FileKind<Channel> kind;
//	KERN_TRY(kind.create());
//	auto file = KERN_TRY(kern::NewFile::create(kind, "[channel]", channel));	// its owner from now on
//	… file.descriptor() … file.install();					// or it is released
#pragma once
#include <utility>
#include <kern/abi/file.h>
#include <kern/device_class.hpp>
#include <kern/list.hpp>
#include <kern/lock.hpp>
#include <kern/ref.hpp>
#include <kern/wait_queue.hpp>

extern "C" struct module __this_module;

namespace kern
{

/* Adds wait queues to a poll of a file. */
class Poll
{
public:
	explicit Poll(kern_poll *native) : native_(native) {}
	void wait(WaitQueue &queue) { kern_poll_wait(native_, &queue.native()); }

private:
	kern_poll *native_;
};

template<class Owner>
class FileKind
{
public:
	constexpr FileKind() = default;
	FileKind(const FileKind &) = delete;
	FileKind &operator=(const FileKind &) = delete;

	/*
	 * Must be called before the first file is opened. @owner: the module that is held while a
	 * file is open; nullptr for a KUnit suite. Errors: ENOMEM.
	 */
	Result<> create(module *owner = &__this_module)
	{
		native_ = kern_file_kind_create(&kind_ops, owner);
		if (!native_)
			return Error{-ENOMEM};
		return {};
	}
	/* Must be called after the last file has been closed. */
	void destroy()
	{
		kern_file_kind_destroy(native_);
		native_ = nullptr;
	}
	kern_file_kind *native() const { return native_; }

private:
	static Owner &owner_of(void *owner) { return *static_cast<Owner *>(owner); }
	static long transferred(const Result<size_t> &result)
	{
		return result ? static_cast<long>(result.value()) : result.error();
	}
	static constexpr kern_file_ops make_ops()
	{
		kern_file_ops ops{};
		if constexpr (requires(Owner &o) { o.read(u64{}, size_t{}, true); })
			ops.read = [](void *o, u64 to, size_t count, bool wait) {
				return transferred(owner_of(o).read(to, count, wait));
			};
		if constexpr (requires(Owner &o) { o.write(u64{}, size_t{}); })
			ops.write = [](void *o, u64 from, size_t count) {
				return transferred(owner_of(o).write(from, count));
			};
		if constexpr (requires(Owner &o) { o.control(0u, u64{}); })
			ops.control = [](void *o, unsigned int command, u64 argument) {
				return owner_of(o).control(command, argument).error();
			};
		if constexpr (requires(Owner &o, Poll &p) { o.poll(p); })
			ops.poll = [](void *o, kern_poll *native) {
				Poll poll(native);
				return owner_of(o).poll(poll);
			};
		if constexpr (requires(Owner &o) { o.map(u64{}, size_t{}); })
			ops.map = [](void *o, u64 page_offset, size_t length,
				     kern_mapping *mapping) {
				Result<kern_mapping> answer = owner_of(o).map(page_offset, length);
				if (answer)
					*mapping = answer.value();
				return answer.error();
			};
		ops.release = [](void *o) { owner_of(o).release(); };
		return ops;
	}
	static constexpr kern_file_ops kind_ops = make_ops();

	kern_file_kind *native_ = nullptr;
};

/*
 * A new anonymous file. No program can use it before install(). If install() is not called, the
 * destructor drops the file.
 */
class NewFile
{
public:
	/*
	 * @name must stay valid. After success, the file owns the object, which release() destroys;
	 * after an error, the caller still owns it. Errors: EMFILE, ENFILE, ENOMEM. May sleep.
	 */
	template<class Owner>
	static Result<NewFile> create(const FileKind<Owner> &kind, const char *name, Owner *owner)
	{
		NewFile made;
		KERN_TRY_ERRNO(kern_file_create(kind.native(), name, owner, &made.native_));
		return made;
	}
	NewFile(NewFile &&other) noexcept : native_(std::exchange(other.native_, {})) {}
	NewFile &operator=(NewFile &&) = delete;
	~NewFile()
	{
		if (native_.file)
			kern_file_cancel(&native_);
	}

	int descriptor() const { return native_.descriptor; }
	kern_file *native() const { return native_.file; }
	/* Makes the file available to the program. */
	void install()
	{
		kern_file_install(&native_);
		native_ = {};
	}

private:
	NewFile() = default;
	kern_new_file native_{};
};

/* A reference to the inode of a descriptor of the calling process, or empty. May sleep. */
class Inode
{
public:
	Inode() = default;
	explicit Inode(int descriptor) { (void)kern_inode_get(descriptor, &native_); }
	Inode(Inode &&other) noexcept : native_(std::exchange(other.native_, {})) {}
	Inode &operator=(Inode &&other) noexcept
	{
		std::swap(native_, other.native_);
		return *this;
	}
	~Inode()
	{
		if (native_.inode)
			kern_inode_put(&native_);
	}

	explicit operator bool() const { return native_.inode != nullptr; }
	friend bool operator==(const Inode &one, const Inode &other)
	{
		return one.native_.inode == other.native_.inode;
	}

private:
	kern_inode native_{};
};

/*
 * The owner of the file that the calling process has open with this descriptor. The file is held as
 * long as this object exists. Empty if the process has no such file.
 */
template<class Owner>
class FileHold
{
public:
	FileHold(const FileKind<Owner> &kind, int descriptor)
	    : owner_(static_cast<Owner *>(kern_file_get(kind.native(), descriptor, &file_)))
	{
	}
	~FileHold()
	{
		if (owner_)
			kern_file_put(file_);
	}
	FileHold(const FileHold &) = delete;
	FileHold &operator=(const FileHold &) = delete;

	Owner *operator->() const { return owner_; }
	Owner *get() const { return owner_; }
	explicit operator bool() const { return owner_ != nullptr; }

private:
	kern_file *file_ = nullptr;
	Owner *owner_;
};

/*
 * The files that programs have opened on a device, which may be removed before they are closed. A
 * File is RefCounted, has a function leave_device(), after which it does not use the device, and
 * has a ListNode for this list.
 */
template<class File, ListNode File::*Member>
class OpenFiles
{
public:
	explicit OpenFiles(LockClass &lock_class) : lock_(lock_class) {}

	/*
	 * Adds an opened file and returns it, with a reference that the file drops in its
	 * release(). May sleep.
	 */
	File *add(Ref<File> file)
	{
		Guard guard(lock_);
		files_.push_back(*file);
		return file.release();
	}
	/* Called when a file has been closed and does not use the device any more. May sleep. */
	void forget(File &file)
	{
		Guard guard(lock_);
		(file.*Member).unlink();
	}
	/*
	 * Called when the device is being removed and the node can no longer be opened. Calls
	 * leave_device() of all files. May sleep.
	 */
	void leave_device()
	{
		while (true) {
			Ref<File> file;
			{
				Guard guard(lock_);
				File *first = files_.pop_front();
				if (!first)
					return;
				file = Ref<File>::share(*first);
			}
			file->leave_device();
		}
	}

private:
	Mutex lock_;
	List<File, Member> files_ KERN_GUARDED_BY(lock_);
};

/* Device numbers for the nodes of one kind, as many as kern::Node::limit. */
class NodeRegion
{
public:
	NodeRegion() = default;
	NodeRegion(const NodeRegion &) = delete;
	NodeRegion &operator=(const NodeRegion &) = delete;
	~NodeRegion()
	{
		if (major_)
			kern_node_region_unregister(major_, first_minor_);
	}

	/*
	 * Must be called only once. @name: as shown in /proc/devices; must stay valid. May sleep.
	 * Errors: EBUSY, ENOMEM.
	 */
	Result<> create(unsigned int major, unsigned int first_minor, const char *name)
	{
		KERN_TRY_ERRNO(kern_node_region_register(major, first_minor, name));
		major_ = major;
		first_minor_ = first_minor;
		return {};
	}

	unsigned int major() const { return major_; }
	unsigned int minor(unsigned int number) const { return first_minor_ + number; }

private:
	unsigned int major_ = 0;
	unsigned int first_minor_ = 0;
};

/* Operations that open a node by calling open() of its context. */
template<class Context, class Owner>
inline constexpr kern_node_ops node_ops = {
	.open = [](void *context, kern_file *file, void **owner) {
		Result<Owner *> made = static_cast<Context *>(context)->open(*file);
		if (made)
			*owner = made.value();
		return made.error();
	}};

/* A node in /dev/infiniband, with an entry in a class. */
class Node
{
public:
	static constexpr unsigned int limit = KERN_NODES;

	/*
	 * Context must have a member Result<Owner *> open(kern_file &file), which opens the node.
	 * @number must be less than limit. All else is as in ClassDevice::create().
	 */
	template<class Context, class Owner>
	static Result<Node> create(const DeviceClass &of, device *parent, const char *name,
				   std::span<const kern_class_file> files, const NodeRegion &region,
				   unsigned int number, const FileKind<Owner> &kind,
				   Context *context)
	{
		const kern_node_options options = {
			.ops = &node_ops<Context, Owner>,
			.context = context,
			.kind = kind.native(),
			.major = region.major(),
			.minor = region.minor(number),
		};
		kern_node *native =
			kern_node_create(of.native(), parent, name, files.data(),
					 static_cast<unsigned int>(files.size()), &options);
		if (const int error = pointer_error(native))
			return Error{error};
		return Node(native);
	}

	Node() = default;
	Node(Node &&other) noexcept : native_(std::exchange(other.native_, nullptr)) {}
	Node &operator=(Node &&other) noexcept
	{
		std::swap(native_, other.native_);
		return *this;
	}
	/*
	 * Removes the node. It can no longer be opened; open files stay open. Waits for running
	 * open() calls, and for reads of its files. May sleep.
	 */
	~Node()
	{
		if (native_)
			kern_node_remove(native_);
	}

	/* Announces the node to user space. Must be called only once. May sleep. */
	void announce() { kern_node_announce(native_); }

private:
	explicit Node(kern_node *native) : native_(native) {}

	kern_node *native_ = nullptr;
};

/* A node in /dev/infiniband that does not belong to a device, in the class misc. */
class MiscNode
{
public:
	/*
	 * Context must have a member Result<Owner *> open(kern_file &file), which opens the node.
	 * It may sleep, but not for long. @name and @abi_version must stay valid. @kind must be
	 * used for this node only. May sleep. Errors: ENOMEM, EEXIST, EBUSY.
	 */
	template<class Context, class Owner>
	static Result<MiscNode> create(const char *name, const char *abi_version,
				       const FileKind<Owner> &kind, Context *context)
	{
		kern_misc_node *native = kern_misc_node_create(
			name, abi_version, &node_ops<Context, Owner>, context, kind.native());
		if (const int error = pointer_error(native))
			return Error{error};
		return MiscNode(native);
	}

	MiscNode() = default;
	MiscNode(MiscNode &&other) noexcept : native_(std::exchange(other.native_, nullptr)) {}
	MiscNode &operator=(MiscNode &&other) noexcept
	{
		std::swap(native_, other.native_);
		return *this;
	}
	/*
	 * Removes the node. It can no longer be opened. Waits for running open() calls. May sleep.
	 */
	~MiscNode()
	{
		if (native_)
			kern_misc_node_remove(native_);
	}

	u32 major() const { return kern_misc_node_major(native_); }
	u32 minor() const { return kern_misc_node_minor(native_); }

private:
	explicit MiscNode(kern_misc_node *native) : native_(native) {}

	kern_misc_node *native_ = nullptr;
};

} // namespace kern
