// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines network interfaces and packets for C++. The functions are those of abi/netdev.h; this
// header adds inline helpers for C++.
//
//	class Interface { static int start_xmit(sk_buff *skb, net_device *dev) { auto &self = kern::netdev_owner<Interface>(dev); … } };
#pragma once
#include <kern/abi/netdev.h>

namespace kern
{

/* Returns the owner that was passed to kern_netdev_configure(). Context: any. */
template<class T>
T &netdev_owner(net_device *dev)
{
	return **reinterpret_cast<T **>(reinterpret_cast<char *>(dev) + KERN_NETDEV_PRIVATE);
}

/* Returns the beginning of a packet's data. */
inline u8 *skb_data(sk_buff *skb)
{
	return *reinterpret_cast<u8 **>(reinterpret_cast<char *>(skb) + KERN_OFFSETOF_sk_buff_data);
}

/* Returns the transmit queue that the network stack has chosen for a packet. */
inline u16 skb_queue(const sk_buff *skb)
{
	return *reinterpret_cast<const u16 *>(reinterpret_cast<const char *>(skb) +
					      KERN_OFFSETOF_sk_buff_queue_mapping);
}

/*
 * Holds the rtnl lock, which protects changes of interfaces, until the end of a block. May sleep.
 */
class [[nodiscard]] RtnlGuard
{
public:
	RtnlGuard() { kern_rtnl_lock(); }
	~RtnlGuard() { kern_rtnl_unlock(); }
	RtnlGuard(const RtnlGuard &) = delete;
	RtnlGuard &operator=(const RtnlGuard &) = delete;
};

/* A NAPI instance whose poll function is a member of the class that derives from this one. */
template<class T>
class Napi : public kern_napi
{
public:
	void add(net_device *dev, bool transmit)
	{
		kern_napi_add(
			dev, this,
			[](kern_napi *napi, int budget) {
				return static_cast<T *>(static_cast<Napi *>(napi))->poll(budget);
			},
			transmit);
	}
	/* Must be called while disabled. May sleep. */
	void del() { kern_napi_del(this); }
	void enable() { kern_napi_enable(this); }
	/* Waits until a running poll has returned. May sleep. */
	void disable() { kern_napi_disable(this); }
	/*
	 * Waits only until a running poll has completed; it may still arm its queue. This takes
	 * microseconds, while disable() takes a grace period. enable() must follow. May sleep.
	 */
	void pause() { kern_napi_pause(this); }
	bool schedule() { return kern_napi_schedule(this); }
	bool schedule_from_task() { return kern_napi_schedule_from_task(this); }
	bool complete_done(int work) { return kern_napi_complete_done(this, work); }
};

} // namespace kern
