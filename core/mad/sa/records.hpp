/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Converts between the unpacked records of rdma/ib_sa.h and the packed ones of include/ib/sa.hpp.
 * All functions can be called in any context.
 */
#pragma once

#include <ib/sa.hpp>
#include <rdma/ib_sa.h>

namespace mad::sa
{

void pack(const sa_path_rec &from, ib::PathRecord &to);
void unpack(const ib::PathRecord &from, sa_path_rec &to);
void pack(const ib_sa_mcmember_rec &from, ib::McMemberRecord &to);
void unpack(const ib::McMemberRecord &from, ib_sa_mcmember_rec &to);
void pack(const ib_sa_service_rec &from, ib::ServiceRecord &to);
void unpack(const ib::ServiceRecord &from, ib_sa_service_rec &to);
void unpack(const ib::Notice &from, ib_sa_notice &to);
/* ib::ClassPortInfo and ib_class_port_info have the same layout. */
inline void unpack(const ib::ClassPortInfo &from, ib_class_port_info &to)
{
	static_assert(sizeof(from) == sizeof(to));
	__builtin_memcpy(&to, &from, sizeof(to));
}

/* The GID types of the verbs and of the specification both consist of the same 16 bytes. */
inline ib::Gid to_gid(const ib_gid &gid)
{
	ib::Gid result;
	__builtin_memcpy(result.raw, gid.raw, sizeof(result.raw));
	return result;
}

inline ib_gid from_gid(const ib::Gid &gid)
{
	ib_gid result;
	__builtin_memcpy(result.raw, gid.raw, sizeof(result.raw));
	return result;
}

} // namespace mad::sa
