# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
# NVMe over RDMA, for protocol.sh.
nqn=nqn.2014-08.org.nvmexpress:weft-hunt
nvmet=/sys/kernel/config/nvmet
initiator_modules="nvme_rdma nvme_fabrics nvme_core" target_modules="nvmet_rdma nvmet"
disks="/dev/nvme*n1"
# A request that is lost must not delay the steps after it for the usual 30 seconds.
mkdir -p /etc/modprobe.d
echo options nvme_core io_timeout=5 admin_timeout=10 >/etc/modprobe.d/hunt.conf

prepare() { ! is_target || modprobe brd rd_nr=1 rd_size=1024; }
serve() {
	configure $nvmet <<-END
		mkdir subsystems/$nqn
		write subsystems/$nqn/attr_allow_any_host 1
		mkdir subsystems/$nqn/namespaces/1
		write subsystems/$nqn/namespaces/1/device_path /dev/ram0
		write subsystems/$nqn/namespaces/1/device_uuid 7b0f2f2e-6a4c-4d0c-9c5e-3d6e0e1a0001
		write subsystems/$nqn/namespaces/1/enable 1
		mkdir ports/1
		write ports/1/addr_trtype rdma
		write ports/1/addr_adrfam ipv4
		write ports/1/addr_traddr 10.1.0.1
		write ports/1/addr_trsvcid 4420
		link $nvmet/subsystems/$nqn ports/1/subsystems/$nqn
	END
}
# The namespace disappears before the port, or with it.
disable() {
	configure $nvmet <<-END
		write subsystems/$nqn/namespaces/1/enable 0
	END
}
close_port() {
	configure $nvmet <<-END
		unlink ports/1/subsystems/$nqn
	END
}
withdraw() {
	configure $nvmet <<-END
		unlink ports/1/subsystems/$nqn
		rmdir ports/1
		rmdir subsystems/$nqn/namespaces/1
		rmdir subsystems/$nqn
	END
}

connections() { compgen -G "/sys/class/nvme/nvme*"; }
live() { grep -qx live "$1/state"; }
deletion() { echo "$1/delete_controller"; }
write_login() {
	"$@" "transport=rdma,traddr=10.1.0.1,trsvcid=4420,nqn=$nqn,nr_io_queues=1,queue_size=32,keep_alive_tmo=5,reconnect_delay=1,ctrl_loss_tmo=600,fast_io_fail_tmo=10" /dev/nvme-fabrics
}
reset() {
	! runs reset || return
	compgen -G "/sys/class/nvme/nvme*/reset_controller" | write_all 1 &
	echo $! >/run/hunt-reset.pid
}
rescan() { compgen -G "/sys/class/nvme/nvme*/rescan_controller" | write_all 1; }
