// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Shows the directory of a port: its attributes, and its tables with a file for each entry. */
#pragma once
#include <kern/log.hpp>
#include <kern/memory.hpp>
#include <kern/sysfs.hpp>
#include <rdma/ib_verbs.h>
#include "counters.hpp"
#include "hw_counters.hpp"
#include "port_counters.hpp"

namespace ib_sysfs
{

using kern::sysfs::Output;

/*
 * A table of a port: a directory in which file i has entry i. @Entry: prints the entry with this
 * index.
 */
template<kern::Result<> (*Entry)(ib_device &device, u32 port, int index, Output &out)>
class Table
{
public:
	Table(ib_device &device, u32 port) : device_(device), port_(port) {}

	/* Must be called once. Context: process. Errors: ENOMEM. */
	kern::Result<> start(const char *name, const kern::sysfs::Directory &parent, int entries)
	{
		directory_ = KERN_TRY(kern::sysfs::Directory::create(name, parent));
		entries_ = KERN_TRY(
			kern::make_array<One>(kern::Gfp::kernel, static_cast<size_t>(entries)));
		int index = 0;
		for (One &entry : entries_)
			KERN_TRY(entry.start(*this, index++));
		return {};
	}

private:
	class One
	{
	public:
		kern::Result<> start(Table &table, int index)
		{
			table_ = &table;
			index_ = index;
			kern_format(name_, sizeof(name_), "%d", index);
			return file_.add(name_, table.directory_);
		}

	private:
		kern::Result<> show(Output &out)
		{
			return Entry(table_->device_, table_->port_, index_, out);
		}

		Table *table_ = nullptr;
		int index_ = 0;
		char name_[8] = {};
		kern::sysfs::File file_{kern::method<&One::show>, this};
	};

	ib_device &device_;
	const u32 port_;
	kern::sysfs::Directory directory_;
	kern::OwnedArray<One> entries_;
};

kern::Result<> show_gid(ib_device &device, u32 port, int index, Output &out);
kern::Result<> show_pkey(ib_device &device, u32 port, int index, Output &out);
/*
 * Entries of the directory gid_attrs. Like in Linux, both functions return EINVAL for an entry that
 * does not have the attribute.
 */
kern::Result<> show_gid_type(ib_device &device, u32 port, int index, Output &out);
kern::Result<> show_gid_interface(ib_device &device, u32 port, int index, Output &out);

class Port
{
public:
	/* Context: process. Errors: ENOMEM. */
	static kern::Result<kern::Owned<Port>> create(ib_device &device, u32 number,
						      const kern::sysfs::Directory &ports);

	/*
	 * Shows the counters of the port that another module provides; nullptr removes them. Calls
	 * must not run in parallel. Context: process. Errors: ENOMEM; no counters are shown in this
	 * case.
	 */
	kern::Result<> show(const ib_port_counters *counters);

private:
	Port(ib_device &device, u32 number) : device_(device), number_(number) {}
	kern::Result<> start(const kern::sysfs::Directory &ports);

	/* Prints a value that is queried from the device on each read. */
	template<void (*Print)(const ib_port_attr &attr, Output &out)>
	kern::Result<> show(Output &out)
	{
		ib_port_attr attr;
		KERN_TRY_ERRNO(ib_query_port(&device_, number_, &attr));
		Print(attr, out);
		return {};
	}
	kern::Result<> link_layer(Output &out);

	static void state(const ib_port_attr &attr, Output &out);
	static void phys_state(const ib_port_attr &attr, Output &out);
	static void rate(const ib_port_attr &attr, Output &out);
	static void lid(const ib_port_attr &attr, Output &out) { out.print("0x%x\n", attr.lid); }
	static void sm_lid(const ib_port_attr &attr, Output &out)
	{
		out.print("0x%x\n", attr.sm_lid);
	}
	static void lid_mask_count(const ib_port_attr &attr, Output &out)
	{
		out.print("%u\n", attr.lmc);
	}
	static void sm_sl(const ib_port_attr &attr, Output &out) { out.print("%u\n", attr.sm_sl); }
	static void cap_mask(const ib_port_attr &attr, Output &out)
	{
		out.print("0x%08x\n", attr.port_cap_flags);
	}

	ib_device &device_;
	const u32 number_;
	char name_[12] = {};
	kern::sysfs::Directory directory_;
	kern::sysfs::File state_{kern::method<&Port::show<state>>, this};
	kern::sysfs::File phys_state_{kern::method<&Port::show<phys_state>>, this};
	kern::sysfs::File rate_{kern::method<&Port::show<rate>>, this};
	kern::sysfs::File lid_{kern::method<&Port::show<lid>>, this};
	kern::sysfs::File sm_lid_{kern::method<&Port::show<sm_lid>>, this};
	kern::sysfs::File lid_mask_count_{kern::method<&Port::show<lid_mask_count>>, this};
	kern::sysfs::File sm_sl_{kern::method<&Port::show<sm_sl>>, this};
	kern::sysfs::File cap_mask_{kern::method<&Port::show<cap_mask>>, this};
	kern::sysfs::File link_layer_{kern::method<&Port::link_layer>, this};
	Table<show_gid> gids_{device_, number_};
	Table<show_pkey> pkeys_{device_, number_};
	kern::sysfs::Directory gid_attributes_;
	Table<show_gid_type> gid_types_{device_, number_};
	Table<show_gid_interface> gid_interfaces_{device_, number_};
	Counters counters_{device_, number_};
	HwCounters hw_counters_{device_, number_};
	kern::Owned<PortCounters> others_;
};

} // namespace ib_sysfs
