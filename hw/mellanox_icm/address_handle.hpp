// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the address handles of mlx4 and mthca. The address vector is copied into each
// datagram's descriptor. If modify_ah() replaces it at the same time, the copy is either the
// complete old vector or the complete new one (LOCK-04).
#pragma once
#include <kern/sequence_lock.hpp>
#include <rdma/ib_verbs.h>

namespace mellanox_icm
{

template<class Vector>
class AddressHandle
{
public:
	/* The vector in the card's format, and the attributes that the consumer has set. */
	struct Address {
		Vector vector;
		rdma_ah_attr attr;
	};

	AddressHandle(const Vector &vector, const rdma_ah_attr &attr) : vector_(vector), attr_(attr)
	{
	}

	/* Context of all functions: any. */
	void modify(const Vector &vector, const rdma_ah_attr &attr)
	{
		lock_.write([&] {
			vector_.store(vector);
			attr_.store(attr);
		});
	}
	void copy_vector(Vector &to) const
	{
		lock_.read([&] { vector_.load(to); });
	}
	void query(rdma_ah_attr &to) const
	{
		lock_.read([&] { attr_.load(to); });
	}
	Address address() const
	{
		Address copy;
		lock_.read([&] {
			vector_.load(copy.vector);
			attr_.load(copy.attr);
		});
		return copy;
	}

private:
	kern::SequenceLock lock_{KERN_LOCK_CLASS("mellanox.ah")};
	kern::SharedCopy<Vector> vector_;
	kern::SharedCopy<rdma_ah_attr> attr_;
};

} // namespace mellanox_icm
