#!/bin/sh
# Makes the image that everything of AOD stands on, debian:trixie-slim, if the engine
# doesn't have it: pulled where a registry is in reach, built from the mirror that
# this machine's apt uses where none is.
#
# usage: scripts/bootstrap-debian.sh [IMAGE]
#
#   AOD_PULL_SECONDS  how long a pull may take before the mirror is tried (default 20; 0: no pull)
set -eu

image=${1:-debian:trixie-slim}
suite=trixie
pull_seconds=${AOD_PULL_SECONDS:-20}

say() { echo "bootstrap-debian: $*" >&2; }
die() { say "$*"; exit 1; }

have_image() { docker image inspect "$image" >/dev/null 2>&1; }

pull() {
    [ "$pull_seconds" -gt 0 ] || return 1
    say "pulling $image (at most $pull_seconds s)"
    timeout "$pull_seconds" docker pull --quiet "$image" >/dev/null 2>&1 || return 1
    say "pulled $image"
}

ensure_mmdebstrap() {
    command -v mmdebstrap >/dev/null 2>&1 && return
    command -v apt-get >/dev/null 2>&1 ||
        die "no registry in reach, and this isn't a Debian or Ubuntu: get $image onto this engine with 'docker load' or from a registry"
    [ "$(id -u)" -eq 0 ] ||
        die "no registry in reach: run 'sudo apt-get install mmdebstrap debian-archive-keyring', then this again"
    say "installing mmdebstrap"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        mmdebstrap debian-archive-keyring; } >"$work/apt.log" 2>&1 || { cat "$work/apt.log" >&2; die "apt-get could not install mmdebstrap"; }
}

# apt_mirror PATTERN prints the first repository of Debian's that apt knows and that
# the pattern fits. It is read from apt, so a machine's own mirror is used.
apt_mirror() {
    # shellcheck disable=SC2016 # apt's own fields, not the shell's
    apt-get indextargets --format '$(ORIGIN) $(REPO_URI) $(CODENAME)' 'Created-By: Packages' |
        awk -v pattern="$1" '$1 == "Debian" && $3 ~ pattern { print $2; exit }'
}

sources() {
    main=$(apt_mirror '^[a-z]+$')
    [ -n "$main" ] || die "apt has no Debian mirror: see 'apt-get indextargets', or get $image from a registry"
    echo "deb $main $suite main"
    echo "deb $main $suite-updates main"
    security=$(apt_mirror '^[a-z]+-security$')
    [ -z "$security" ] || echo "deb $security $suite-security main"
}

# What the official slim image leaves out, now and in later installs.
slim_rules() {
    cat <<'EOF'
path-exclude=/usr/share/doc/*
path-include=/usr/share/doc/*/copyright
path-exclude=/usr/share/man/*
path-exclude=/usr/share/groff/*
path-exclude=/usr/share/info/*
path-exclude=/usr/share/linda/*
path-exclude=/usr/share/lintian/*
path-exclude=/usr/share/locale/*
path-include=/usr/share/locale/locale.alias
EOF
}

# apt inside the image keeps neither packages nor its caches.
apt_rules() {
    cat <<'EOF'
DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb /var/cache/apt/archives/partial/*.deb /var/cache/apt/*.bin || true"; };
APT::Update::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb /var/cache/apt/archives/partial/*.deb /var/cache/apt/*.bin || true"; };
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
Acquire::Languages "none";
Acquire::GzipIndexes "true";
APT::AutoRemove::SuggestsImportant "false";
EOF
}

build() {
    sources >"$work/sources.list"
    slim_rules >"$work/aod-slim"
    apt_rules >"$work/aod-clean"
    includes=
    ! grep -q ' https:' "$work/sources.list" || includes=--include=ca-certificates
    say "building $suite from $(awk 'NR == 1 { print $2 }' "$work/sources.list") (about half a minute)"
    # shellcheck disable=SC2016,SC2086 # "$1" is for the hook's shell; no includes, no word
    mmdebstrap --quiet --variant=minbase $includes --format=tar \
        --dpkgopt="$work/aod-slim" \
        --essential-hook="copy-in $work/aod-clean /etc/apt/apt.conf.d" \
        --customize-hook='rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/* "$1"/var/log/* "$1"/var/cache/debconf/*-old "$1"/etc/hostname "$1"/etc/resolv.conf' \
        "$suite" "$work/root.tar" - <"$work/sources.list" >"$work/mmdebstrap.log" 2>&1 ||
        { tail -n 20 "$work/mmdebstrap.log" >&2; die "mmdebstrap failed"; }
}

import() {
    docker import \
        --change 'CMD ["bash"]' \
        --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
        --change "LABEL org.opencontainers.image.title=debian org.opencontainers.image.version=$suite aod.bootstrap=mmdebstrap" \
        "$work/root.tar" "$image" >/dev/null
    say "made $image"
}

command -v docker >/dev/null 2>&1 || die "the docker command is missing: run scripts/ensure-engine.sh"
docker version >/dev/null 2>&1 || die "the engine doesn't answer: run scripts/ensure-engine.sh"
if have_image; then
    say "$image is there"
    exit 0
fi
if pull; then
    exit 0
fi
say "no registry gave $image"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
ensure_mmdebstrap
build
import
