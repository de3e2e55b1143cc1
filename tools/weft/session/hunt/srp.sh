# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
# SRP, for protocol.sh. A target and an initiator are identified by the GUIDs of their ports. A host learns its peer's from a hardware address of IPoIB.
initiator_modules="ib_srp" target_modules="ib_srpt"
disks="/dev/sd?"
tree=/sys/kernel/config/target
in_groups() { sed 's/\(....\)\(....\)\(....\)/\1:\2:\3:/'; }
own_guid=$(cut -d : -f 5- /sys/class/infiniband/*/ports/1/gids/0 | tr -d :)
[ "$hosts" = 1 ] || await "the peer did not answer" ping -q -c 1 -W 1 "$peer"
peer_guid=$(ip neighbour show "$peer" dev ib0 | sed -n 's/.*lladdr \([^ ]*\).*/\1/p' | cut -d : -f 13- | tr -d :)
if is_target; then
	target=$(in_groups <<<"$own_guid") initiator=$(in_groups <<<"$peer_guid")
	port=srpt/$target
	group=$port/$target
fi
mkdir -p /etc/modprobe.d
cat >/etc/modprobe.d/hunt.conf <<END
options ib_srp reconnect_delay=1 fast_io_fail_tmo=5 dev_loss_tmo=300
options ib_srpt srpt_service_guid=0x$own_guid
END

prepare() {
	modprobe sd_mod
	is_target || return
	configure $tree <<-END
		mkdir core/rd_mcp_0
		mkdir core/rd_mcp_0/disk
		write core/rd_mcp_0/disk/control rd_pages=256
		write core/rd_mcp_0/disk/enable 1
	END
}
serve() {
	configure $tree <<-END
		mkdir srpt
		mkdir $port
		mkdir $group
		mkdir $group/lun/lun_0
		link $tree/core/rd_mcp_0/disk $group/lun/lun_0/disk
		mkdir $group/acls/$initiator
		mkdir $group/acls/$initiator/lun_0
		link $tree/$group/lun/lun_0 $group/acls/$initiator/lun_0/disk
		write $group/enable 1
	END
}
disable() {
	configure $tree <<-END
		write $group/enable 0
	END
}
# Closes the initiator's sessions, and refuses new ones.
remove_initiator() {
	configure $tree <<-END
		unlink $group/acls/$initiator/lun_0/disk
		rmdir $group/acls/$initiator/lun_0
		rmdir $group/acls/$initiator
	END
}
withdraw() {
	configure $tree <<-END
		write $group/enable 0
		unlink $group/acls/$initiator/lun_0/disk
		rmdir $group/acls/$initiator/lun_0
		rmdir $group/acls/$initiator
		unlink $group/lun/lun_0/disk
		rmdir $group/lun/lun_0
		rmdir $group
		rmdir $port
		rmdir srpt
	END
}
release() {
	echo 1 >$dma
	is_target || return
	withdraw
	configure $tree <<-END
		rmdir core/rd_mcp_0/disk
		rmdir core/rd_mcp_0
	END
}

connections() { compgen -G "/sys/class/srp_remote_ports/port-*"; }
live() { grep -qx running "$1/state"; }
deletion() { echo "$1/delete"; }
write_login() {
	"$@" "id_ext=$peer_guid,ioc_guid=$peer_guid,dgid=fe80000000000000$peer_guid,pkey=ffff,service_id=$peer_guid,queue_size=32" \
		"$(compgen -G "/sys/class/infiniband_srp/srp-*-1/add_target")"
}
delete_disk() { compgen -G "/sys/block/sd?/device/delete" | write_all 1; }
rescan() { compgen -G "/sys/class/scsi_host/host*/scan" | write_all "- - -"; }
