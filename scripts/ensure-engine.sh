#!/bin/sh
# Makes sure that a Docker engine answers. On Debian or Ubuntu, as root, it installs
# one and starts it; elsewhere it says what to do and exits 1.
set -eu

say() { echo "ensure-engine: $*" >&2; }
die() { say "$*"; exit 1; }

# `docker info` alone is no proof: some versions exit 0 without a server.
answers() {
    command -v docker >/dev/null 2>&1 && timeout 10 docker version --format '{{.Server.Version}}' >/dev/null 2>&1
}

wait_until_it_answers() {
    tries=0
    until answers; do
        tries=$((tries + 1))
        [ "$tries" -lt 30 ] || return 1
        sleep 1
    done
}

install_engine() {
    say "installing docker.io with apt-get (a minute or so)"
    log=$(mktemp)
    if ! { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        docker.io ca-certificates iptables; } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        rm -f "$log"
        die "apt-get could not install docker.io"
    fi
    rm -f "$log"
    # Debian 13 and later ship the command on its own.
    command -v docker >/dev/null 2>&1 ||
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq docker-cli >/dev/null 2>&1 ||
        die "apt-get could not install docker-cli"
}

start_engine() {
    say "starting the engine"
    if [ -d /run/systemd/system ]; then
        systemctl start docker || true
    elif [ -x /etc/init.d/docker ]; then
        service docker start >/dev/null 2>&1 || true
    fi
    if wait_for_init_system; then
        return
    fi
    say "no init system started it: running dockerd in the background, log in /var/log/dockerd.log"
    setsid dockerd >/var/log/dockerd.log 2>&1 </dev/null &
    wait_until_it_answers || die "dockerd doesn't answer; the end of its log: $(tail -n 3 /var/log/dockerd.log)"
}

# A daemon that an init system started gets a moment; one that isn't there, none.
wait_for_init_system() {
    answers && return
    pidof dockerd >/dev/null 2>&1 || return 1
    wait_until_it_answers
}

if answers; then
    say "engine $(docker version --format '{{.Server.Version}}') answers"
    exit 0
fi
[ -z "${DOCKER_HOST:-}" ] ||
    die "no engine answers at DOCKER_HOST=$DOCKER_HOST: check the address, or unset it to use the local engine"
[ "$(uname -s)" = Linux ] ||
    die "no engine answers: start Docker Desktop, or install it from https://docs.docker.com/get-docker/"
[ "$(id -u)" -eq 0 ] ||
    die "no engine answers for $(id -un): start it ('sudo systemctl start docker'), join its group ('sudo usermod -aG docker $(id -un)', then log in again), or install it ('sudo apt-get install docker.io')"
if ! command -v dockerd >/dev/null 2>&1 || ! command -v docker >/dev/null 2>&1; then
    command -v apt-get >/dev/null 2>&1 ||
        die "no engine is installed, and this isn't a Debian or Ubuntu: see https://docs.docker.com/engine/install/"
    install_engine
fi
start_engine
say "engine $(docker version --format '{{.Server.Version}}') answers"
