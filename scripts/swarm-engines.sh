#!/bin/sh
# Engines in network namespaces of this machine, as a Swarm of one manager and workers:
#
#   sh scripts/swarm-engines.sh up DIR N     # DIR/node-0.sock is the manager's, DIR/node-1.sock … those of N workers
#   sh scripts/swarm-engines.sh down DIR     # ends them, and removes DIR and all that they have made
#
# Engine I is at 10.219.7.1I. They have no way out, and the images that the machine's engine has of IMAGES. It wants root
# and dockerd; without them `up` says why, and exits with 3.
set -eu

net=10.219.7
images=${IMAGES:-aod/base aod/server}

skip() { echo "swarm-engines: $*" >&2; exit 3; }

name() { printf 'aodsw%s' "$1"; } # of a namespace

engine() { # I ARG…: docker with that engine
    i=$1
    shift
    DOCKER_HOST="unix://$dir/node-$i.sock" DOCKER_CONTEXT='' docker "$@"
}

namespace() { # I
    ip netns add "$(name "$1")"
    ip -n "$(name "$1")" link set lo up
}

# The bridge is in the manager's namespace: this machine's rules for what is forwarded don't count there.
network() {
    namespace 0
    ip -n "$(name 0)" link add name lan type bridge
    ip -n "$(name 0)" addr add "$net.10/24" dev lan
    ip -n "$(name 0)" link set lan up
    ip link add "$(name x)" type veth peer name ext netns "$(name 0)"
    ip -n "$(name 0)" link set ext master lan up
    ip addr add "$net.1/24" dev "$(name x)"
    ip link set "$(name x)" up
}

wire() { # I: the namespace of a worker, with an address
    namespace "$1"
    ip link add eth0 netns "$(name "$1")" type veth peer name "w$1" netns "$(name 0)"
    ip -n "$(name 0)" link set "w$1" master lan up
    ip -n "$(name "$1")" addr add "$net.1$1/24" dev eth0
    ip -n "$(name "$1")" link set eth0 up
}

start() { # I: the engine of a namespace; `ip netns exec` would hide the cgroups from it
    mkdir -p "$dir/$1"
    driver=$(docker info --format '{{.Driver}}')
    printf '{"storage-driver": "%s"}\n' "$driver" >"$dir/$1/daemon.json"
    setsid nsenter --net="/run/netns/$(name "$1")" unshare --uts sh -c "hostname node-$1; exec dockerd \"\$@\"" sh \
        --config-file "$dir/$1/daemon.json" --data-root "$dir/$1/data" --exec-root "$dir/$1/exec" \
        --pidfile "$dir/$1/pid" --host "unix://$dir/node-$1.sock" --bridge none --iptables=false \
        >"$dir/$1/log" 2>&1 </dev/null &
    tries=0
    until engine "$1" version >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ "$tries" -lt 150 ] || { tail -n 5 "$dir/$1/log" >&2; return 1; }
        sleep 0.2
    done
    # shellcheck disable=SC2086 # several
    docker save $images | engine "$1" load >/dev/null
}

up() {
    [ "$(id -u)" = 0 ] || skip "engines in network namespaces want root"
    for program in dockerd nsenter unshare ip docker; do
        command -v "$program" >/dev/null 2>&1 || skip "there is no $program"
    done
    ip link add "$(name x)" type veth peer name "$(name y)" 2>/dev/null || skip "no network can be made here"
    ip link del "$(name x)"
    mkdir -p "$dir"
    network
    start 0
    for i in $(seq 1 "$n"); do
        wire "$i"
        start "$i"
    done
    engine 0 swarm init --advertise-addr "$net.10" >/dev/null
    token=$(engine 0 swarm join-token -q worker)
    for i in $(seq 1 "$n"); do
        engine "$i" swarm join --advertise-addr "$net.1$i" --token "$token" "$net.10:2377" >/dev/null
    done
}

stop() { # I
    engine "$1" ps -aq 2>/dev/null | while read -r c; do engine "$1" rm -f "$c" >/dev/null 2>&1 || true; done
    pid=$(cat "$dir/$1/pid" 2>/dev/null) || pid=
    if [ -n "$pid" ]; then
        kill "$pid" 2>/dev/null || true
        tries=0
        while kill -0 "$pid" 2>/dev/null; do
            tries=$((tries + 1))
            [ "$tries" -lt 100 ] || { kill -9 "$pid" 2>/dev/null || true; break; }
            sleep 0.2
        done
    fi
}

down() {
    for state in "$dir"/*/exec; do
        [ -d "$state" ] || continue
        i=$(basename "$(dirname "$state")")
        engine "$i" swarm leave --force >/dev/null 2>&1 || true
        stop "$i"
    done
    awk -v dir="$dir/" 'index($2, dir) == 1 {print $2}' /proc/mounts | sort -r | while read -r at; do
        umount -l "$at" || true
    done
    for namespace in $(ip netns list | awk '/^aodsw[0-9]/ {print $1}'); do ip netns del "$namespace"; done
    ip link del "$(name x)" 2>/dev/null || true
    rm -rf "$dir"
}

action=$1
dir=$2
n=${3:-2}
"$action"
