// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Parses Netlink requests, and writes the responses.
//
//	message.begin(type);
//	message.put(DEV_INDEX, device.index);		// u8, u32, u64 or text
//	{
//		kern::netlink::Nest nest(message, RES_SUMMARY);
//		…
//	}
//	message.end();
//	return message.full() ? … : …;			// after the first item without space, all others are omitted
#pragma once
#include <kern/abi/netlink.h>
#include <kern/errno.h>
#include <kern/result.hpp>

namespace kern::netlink
{

/* A reference to a network namespace. */
class Net
{
public:
	explicit Net(kern_net *native) : native_(native) {}
	Net(Net &&other) noexcept : native_(std::exchange(other.native_, nullptr)) {}
	Net &operator=(Net &&) = delete;
	~Net()
	{
		if (native_)
			kern_net_put(native_);
	}

	u64 number() const { return kern_net_number(native_); }

private:
	kern_net *native_;
};

class Request
{
public:
	explicit Request(const kern_netlink_request *native) : native_(native) {}

	u16 type() const { return native_->type; }
	bool may_administer() const { return kern_netlink_may_administer(native_); }
	/* Returns the number of the network namespace of the program's socket. */
	u64 net() const { return native_->net; }
	/* See kern_netlink_net_of(). */
	Result<Net> net_of(u32 descriptor) const
	{
		kern_net *found;
		const int status = kern_netlink_net_of(native_, descriptor, &found);
		if (status)
			return Error{status};
		return Net(found);
	}
	/* Reads a number. Returns false if the attribute is absent or too short. */
	template<class Number>
	bool get(u16 attribute, Number &number) const
	{
		unsigned int size;
		const void *data = kern_netlink_find(native_, attribute, &size);
		if (!data || size < sizeof(number))
			return false;
		__builtin_memcpy(&number, data, sizeof(number));
		return true;
	}
	bool has(u16 attribute) const
	{
		unsigned int size;
		return kern_netlink_find(native_, attribute, &size);
	}
	/*
	 * Reads a text, with or without a terminating 0 byte. Returns false if the attribute is
	 * absent or does not fit.
	 */
	template<size_t capacity>
	bool get(u16 attribute, char (&text)[capacity]) const
	{
		unsigned int size;
		const auto *data =
			static_cast<const char *>(kern_netlink_find(native_, attribute, &size));
		if (!data)
			return false;
		unsigned int length = 0;
		while (length < size && data[length])
			length++;
		if (length >= capacity)
			return false;
		__builtin_memcpy(text, data, length);
		text[length] = '\0';
		return true;
	}

private:
	const kern_netlink_request *native_;
};

class Message
{
public:
	explicit Message(kern_netlink_message *native) : native_(native) {}
	Message(const Message &) = delete;
	Message &operator=(const Message &) = delete;

	void begin(u16 type)
	{
		begun_ = kern_netlink_begin(native_, type);
		full_ = full_ || !begun_;
	}
	void end()
	{
		if (begun_)
			kern_netlink_end(native_, begun_);
		begun_ = nullptr;
	}
	void put(u16 type, u8 value) { put(type, &value, sizeof(value)); }
	void put(u16 type, u32 value) { put(type, &value, sizeof(value)); }
	void put(u16 type, u64 value)
	{
		full_ = full_ || !kern_netlink_put_u64(native_, type, value);
	}
	void put(u16 type, const char *text)
	{
		put(type, text, static_cast<unsigned int>(__builtin_strlen(text)) + 1);
	}
	void put(u16 type, const void *data, unsigned int size)
	{
		full_ = full_ || !kern_netlink_put(native_, type, data, size);
	}

	bool full() const { return full_; }
	/*
	 * mark() returns the current end of the message. rewind() truncates the message to such an
	 * end, if something did not fit.
	 */
	const void *mark() const { return kern_netlink_mark(native_); }
	void rewind(const void *mark)
	{
		kern_netlink_rewind(native_, mark);
		full_ = false;
	}

private:
	friend class Nest;
	kern_netlink_message *native_;
	void *begun_ = nullptr;
	bool full_ = false;
};

/* All attributes that are added while this object exists are nested in one attribute. */
class Nest
{
public:
	/* flagged: sets the flag NLA_F_NESTED, which not all readers expect. */
	Nest(Message &message, u16 type, bool flagged = false)
	    : message_(message),
	      native_(message.full_ ? nullptr : kern_netlink_nest(message.native_, type, flagged))
	{
		message.full_ = message.full_ || !native_;
	}
	~Nest()
	{
		if (native_)
			kern_netlink_end_nest(message_.native_, native_);
	}
	Nest(const Nest &) = delete;
	Nest &operator=(const Nest &) = delete;

private:
	Message &message_;
	void *native_;
};

} // namespace kern::netlink
