#!/bin/sh
# Several hosts on one machine: network namespaces PREFIX1, PREFIX2, ... with the addresses 10.77.0.1, 10.77.0.2, ...,
# each with one cable into the bridge of the namespace PREFIX-switch. Nothing is made outside of them. Needs root.
#
#   namespaces.sh up PREFIX N      makes them; after an error nothing is left
#   namespaces.sh down PREFIX      deletes them
#   namespaces.sh guard PREFIX N   makes them, says "up", and deletes them when its standard input ends
set -eu
command=$1 prefix=$2 count=${3:-0}
switch=$prefix-switch

down() {
    ip netns list | while read -r name rest; do
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

case $command in
    up)
        trap 'down' EXIT
        up
        trap - EXIT
        ;;
    down) down ;;
    guard)
        trap 'down' EXIT
        # What a terminal sends is not for this one: it ends after those that it looks after.
        trap '' INT HUP QUIT TERM
        up
        echo up
        cat > /dev/null
        ;;
    *)
        echo "namespaces.sh: '$command' is not up, down or guard" >&2
        exit 2
        ;;
esac
