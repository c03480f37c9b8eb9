#!/bin/sh
# A Slurm of its own with COUNT nodes n1, n2, ..., all on this machine, in DIRECTORY; without systemd and cgroups. Says
# "up" when jobs can be started, with slurm.conf in DIRECTORY, and ends everything when its standard input ends; the
# directory goes with it.
#
#   slurm.sh DIRECTORY COUNT PORT   needs Debian's slurm-wlm and munge; ports from PORT on are used on 127.0.0.1
set -eu
directory=$1 count=$2 port=$3
PATH=$PATH:/usr/sbin
name=$(hostname -s) user=$(id -un)
daemons=

down() {
    # In the other order: nodes, their controller, munge.
    for daemon in $daemons; do kill "$daemon" 2> /dev/null || true; done
    for daemon in $daemons; do
        # What hangs is killed; what has ended is waited for by nobody else.
        (sleep 10; kill -9 "$daemon" 2> /dev/null) > /dev/null 2>&1 &
        wait "$daemon" 2> /dev/null || true
        kill $! 2> /dev/null || true
    done
    rm -rf "$directory"
}
trap down EXIT
trap '' INT HUP QUIT TERM PIPE

mkdir -p "$directory/state" "$directory/munge"
chmod 700 "$directory/munge"
head -c 128 /dev/urandom > "$directory/munge/key"
chmod 400 "$directory/munge/key"
cat > "$directory/slurm.conf" << END
ClusterName=weft
SlurmctldHost=$name(127.0.0.1)
SlurmctldPort=$port
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
AuthInfo=socket=$directory/munge/socket
StateSaveLocation=$directory/state
SlurmctldPidFile=$directory/slurmctld.pid
SlurmdSpoolDir=$directory/%n
SlurmdPidFile=$directory/%n.pid
TmpFS=$directory/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
NodeName=n[1-$count] NodeHostname=$name NodeAddr=127.0.0.1 Port=[$((port + 1))-$((port + count))] CPUs=4
PartitionName=all Nodes=ALL Default=YES State=UP
END
# Where nothing is said, slurmd looks for a cgroup of version 2 and systemd, and ends without.
echo CgroupPlugin=cgroup/v1 > "$directory/cgroup.conf"
export SLURM_CONF="$directory/slurm.conf"

start() {
    log=$directory/$1.log
    shift
    # Without our own input and output, whose ends others wait for.
    "$@" < /dev/null > "$log" 2>&1 &
    daemons="$! $daemons"
}
start munged munged --foreground --force --key-file "$directory/munge/key" --socket "$directory/munge/socket" \
    --pid-file "$directory/munge/pid" --log-file "$directory/munge/log" --seed-file "$directory/munge/seed"
tries=200
until [ -S "$directory/munge/socket" ]; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || { cat "$directory/munged.log" >&2; exit 1; }
    sleep 0.05
done
start slurmctld slurmctld -D -f "$SLURM_CONF"
number=1
while [ "$number" -le "$count" ]; do
    mkdir -p "$directory/n$number"
    start "n$number" slurmd -D -N "n$number" -f "$SLURM_CONF"
    number=$((number + 1))
done
tries=400
until [ "$(sinfo -h -N -t idle -o %N 2> /dev/null | wc -l)" -eq "$count" ]; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || { tail -n 5 "$directory"/*.log >&2; exit 1; }
    sleep 0.05
done
echo up
cat > /dev/null
