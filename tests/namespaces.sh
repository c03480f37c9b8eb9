#!/bin/sh
# Several hosts on one machine: network namespaces PREFIX1, PREFIX2, ... with the addresses 10.77.0.1, 10.77.0.2, ...,
# each with one cable into the bridge of the namespace PREFIX-switch. Nothing is made outside of them. Needs root.
#
#   namespaces.sh up PREFIX N      makes them; after an error nothing is left
#   namespaces.sh down PREFIX      deletes them
#   namespaces.sh guard PREFIX N   makes them, says "up", and deletes them when its standard input ends
#   namespaces.sh cable PREFIX     as guard, for two hosts with nothing but one cable between them, and with the addresses
#                                  fd77::1 and fd77::2 as well
set -eu
command=$1 prefix=$2 count=${3:-0}
switch=$prefix-switch

down() {
    ip netns list 2> /dev/null | while read -r name rest; do
        case $name in
            "$switch") ip netns del "$name" ;;
            "$prefix"*[!0-9]*) ;;
            "$prefix"[0-9]*) ip netns del "$name" ;;
        esac
    done
}

up() {
    ip netns add "$switch"
    ip -n "$switch" link add bridge type bridge
    ip -n "$switch" link set bridge up
    number=1
    while [ "$number" -le "$count" ]; do
        host=$prefix$number
        ip netns add "$host"
        ip -n "$host" link set lo up
        ip -n "$host" link add eth0 type veth peer name "port$number" netns "$switch"
        ip -n "$host" addr add "10.77.0.$number/24" dev eth0
        ip -n "$host" link set eth0 up
        ip -n "$switch" link set "port$number" master bridge
        ip -n "$switch" link set "port$number" up
        number=$((number + 1))
    done
}

cable() {
    ip netns add "${prefix}1"
    ip netns add "${prefix}2"
    ip -n "${prefix}1" link add eth0 type veth peer name eth0 netns "${prefix}2"
    for number in 1 2; do
        host=$prefix$number
        ip -n "$host" link set lo up
        ip -n "$host" addr add "10.77.0.$number/24" dev eth0
        ip -n "$host" addr add "fd77::$number/64" dev eth0 nodad
        ip -n "$host" link set eth0 up
    done
}

case $command in
    up)
        trap 'down' EXIT
        up
        trap - EXIT
        ;;
    down) down ;;
    guard | cable)
        trap 'down' EXIT
        # What a terminal sends is not for this one: it ends after those that it looks after. Nor does it end where it
        # stands when nobody is there any more to hear that they are up.
        trap '' INT HUP QUIT TERM PIPE
        # The prefix has the number of the process that wants them: what is there already is of one that is gone.
        down || true
        if [ "$command" = cable ]; then cable; else up; fi
        echo up
        cat > /dev/null
        ;;
    *)
        echo "namespaces.sh: '$command' is not up, down, guard or cable" >&2
        exit 2
        ;;
esac
