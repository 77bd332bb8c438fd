#!/bin/sh
# Runs the tables of the sandbox, of hostile programs and of handoffs on other engines than the
# one that answers here: Debian 13's Docker and Debian 12's Podman, from the mirror that apt uses.
# Each is started beside this machine's engine, with files, a network and a socket of its own
# below one directory; all of it is gone afterwards. Prints a table for docs/engines.md.
#
#   sh scripts/test-engines.sh [ENGINE...]     here docker-trixie podman-bookworm, by default all
#
# AOD_ENGINES_COMMAND runs a command on each engine instead, such as bash to look at one, and
# AOD_ENGINES_LOGS names a directory for what the tests said.
#
# It needs root, mmdebstrap, and this machine's engine, from which it takes the images.
set -eu
cd "$(dirname "$0")/.."
[ "$#" -gt 0 ] || set -- here docker-trixie podman-bookworm

say() { echo "test-engines: $*" >&2; }
die() { say "$*"; exit 1; }

[ "$(id -u)" -eq 0 ] || die "starting engines needs root"
for program in mmdebstrap unshare ip docker go; do
	command -v "$program" >/dev/null 2>&1 || die "$program is missing"
done

# Short, since the paths of sockets are bounded.
work=$(mktemp -d /tmp/ae.XXXXXX)
mkdir "$work/t"
engine= # the process of the one that runs
stop() {
	[ -n "$engine" ] || return 0
	docker ps -aq 2>/dev/null | xargs -r docker rm -f >/dev/null 2>&1 || true
	kill "$engine" 2>/dev/null || true
	wait "$engine" 2>/dev/null || true
	engine=
}
trap 'stop; rm -rf --one-file-system "$work"' EXIT
trap 'exit 130' INT TERM

# mirrors SUITE prints the sources of a suite, from the mirror that this machine's apt uses.
mirrors() {
	# shellcheck disable=SC2016 # apt's own fields, not the shell's
	main=$(apt-get indextargets --format '$(ORIGIN) $(REPO_URI) $(CODENAME)' 'Created-By: Packages' |
		awk '$1 == "Debian" && $3 ~ /^[a-z]+$/ { print $2; exit }')
	[ -n "$main" ] || die "apt has no Debian mirror: see 'apt-get indextargets'"
	echo "deb $main $1 main"
	echo "deb $main $1-updates main"
}

# root NAME SUITE PACKAGES makes a system with an engine in it.
root() {
	say "making $1: $2 with $3"
	mirrors "$2" | mmdebstrap --quiet --variant=apt --include="$3" "$2" "$work/$1" - >"$work/$1.log" 2>&1 ||
		{ tail -n 20 "$work/$1.log" >&2; die "$1 could not be made"; }
	# The kernel's tables may be known to one of the two commands alone.
	if iptables --version 2>/dev/null | grep -q legacy; then
		chroot "$work/$1" update-alternatives --set iptables /usr/sbin/iptables-legacy >/dev/null 2>&1 || true
	fi
	mkdir -p "$work/$1$work/t"
}

# start NAME COMMAND... starts the engine of a system, which then is the one that is asked. What it
# mounts and its network are seen by nobody else; the tests' files have the same path there.
start() {
	name=$1
	shift
	DOCKER_HOST=unix://$work/t/$name.sock
	export DOCKER_HOST
	# shellcheck disable=SC2016 # for the inner shell
	unshare --mount --net --propagation slave sh -c '
		set -e
		root=$1 shared=$2
		shift 2
		ip link set lo up
		mount --bind "$root" "$root"
		mount --rbind /proc "$root/proc"
		mount -t sysfs sysfs "$root/sys"
		mount --rbind /sys/fs/cgroup "$root/sys/fs/cgroup"
		mount --rbind /dev "$root/dev"
		mount -t tmpfs tmpfs "$root/run"
		mount -t tmpfs tmpfs "$root/tmp" && mkdir -p "$root$shared"
		mount --rbind "$shared" "$root$shared"
		# Not chroot alone: who enters a container later would stand in the root of all mounts.
		cd "$root"
		mkdir -p before
		pivot_root . before
		umount --lazy /before
		exec "$@"
	' sh "$work/$name" "$work/t" "$@" >"$work/$name.out" 2>&1 &
	engine=$!
	tries=0
	until docker version >/dev/null 2>&1; do
		tries=$((tries + 1))
		[ "$tries" -lt 60 ] && kill -0 "$engine" 2>/dev/null ||
			{ tail -n 20 "$work/$name.out" >&2; die "$name doesn't answer"; }
		sleep 1
	done
}

# images NAME gives the engine the images that the tests stand on: it has no way to a registry.
images() {
	# shellcheck disable=SC2046 # one word a name
	env -u DOCKER_HOST docker save debian:trixie-slim \
		$(env -u DOCKER_HOST docker images --format '{{.Repository}}:{{.Tag}}' aod/base) | docker load >"$work/$1.images"
}

docker_trixie() {
	root docker-trixie trixie docker.io,docker-cli,mount,iptables,ca-certificates
	start docker-trixie /usr/sbin/dockerd --host "unix://$work/t/docker-trixie.sock" --data-root /var/lib/docker
	images docker-trixie
}

podman_bookworm() {
	root podman-bookworm bookworm podman,runc,mount,netavark,aardvark-dns,iptables,jq,ca-certificates
	etc=$work/podman-bookworm/etc/containers
	plain=$work/podman-bookworm/usr/local/lib/plain
	mkdir -p "$etc" "$plain"
	# Podman asks for so many processes and open files that a machine may not be able to grant them.
	cat >"$plain/runc" <<'EOF'
#!/bin/sh
before=
for word; do
	case $before in --bundle | -b)
		jq '(.process.rlimits // empty) |= map(select(.hard < 500000 or (.type | IN("RLIMIT_NOFILE", "RLIMIT_NPROC") | not)))' \
			"$word/config.json" >"$word/config.new" && mv "$word/config.new" "$word/config.json"
		;;
	esac
	before=$word
done
exec /usr/sbin/runc "$@"
EOF
	chmod 755 "$plain/runc"
	cat >"$etc/containers.conf" <<'EOF'
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[engine.runtimes]
runc = ["/usr/local/lib/plain/runc"]
EOF
	printf '[storage]\ndriver = "overlay"\nrunroot = "/run/containers/storage"\ngraphroot = "/var/lib/containers/storage"\n' >"$etc/storage.conf"
	printf 'unqualified-search-registries = ["docker.io"]\n' >"$etc/registries.conf"
	[ -e "$etc/policy.json" ] || printf '{"default": [{"type": "insecureAcceptAnything"}]}\n' >"$etc/policy.json"
	start podman-bookworm /usr/bin/podman system service --time=0 "unix://$work/t/podman-bookworm.sock"
	images podman-bookworm
}

# table NAME TESTS PACKAGE... runs tests and prints how many passed, failed and were left out.
table() {
	log=$work/$1-$2.json
	tests=$3
	name=$1 table=$2
	shift 3
	TMPDIR=$work/t AOD_TEST_DOCKER=require go test -count=1 -timeout 40m -json -run "$tests" "$@" >"$log" 2>"$log.err" || true
	grep '"Action":"fail"' "$log" | sed -n 's/.*"Package":"\([^"]*\)","Test":"\([^"]*\)".*/\1 \2/p' >"$log.failed" || true
	[ ! -s "$log.failed" ] || { say "$name, $table: failed:"; cat "$log.failed" >&2; }
	[ -z "${AOD_ENGINES_LOGS:-}" ] || cp "$log" "$AOD_ENGINES_LOGS/"
	count() { grep '"Test":' "$log" | grep -c "\"Action\":\"$1\"" || true; }
	echo "$(count pass) passed, $(count fail) failed, $(count skip) left out"
}

# measure NAME runs all tables on the engine that is asked.
measure() {
	about=$(docker version --format '{{(index .Server.Components 0).Name}} {{.Server.Version}}, API {{.Server.APIVersion}}' | sed 's/^Engine/Docker/; s/^Podman Engine/Podman/')
	say "$1: $about"
	sandbox=$(table "$1" sandbox '^(TestTheSandboxFromInside|TestLimitsEndAsOutcomes|TestALogFloodIsCut|TestAFloodWaitsForItsReaders|TestTheEndOfARunIsTheEndOfItsProcesses|TestTheUserOfAnImageDoesNotCount|TestATimeoutKillsTheWholeTree|TestCancellingEndsTheRun|TestUsageIsCounted|TestASandboxFromInside|TestLimitsBite|TestMountsAreAsTheSpecSays)$' ./orchestrator ./runtime/docker)
	hostile=$(table "$1" hostile '^(TestHostileResultsAreOutcomes|TestWhatIsNotNamedAndNoFileStaysBehind|TestDeliveryNeverLeavesTheOutputDirectory)$' ./orchestrator)
	handoff=$(table "$1" handoff '^(TestHandoffs|TestHandoffsOfAnAttachedRun|TestACapsuleReachesNobodyElse)$' ./orchestrator ./cmd/aod)
	echo "| $1 | $about | $sandbox | $hostile | $handoff |" >>"$work/table"
}

make -s init
for name; do
	case $name in
	here) ;;
	docker-trixie) docker_trixie ;;
	podman-bookworm) podman_bookworm ;;
	*) die "there is no engine $name: here, docker-trixie, podman-bookworm" ;;
	esac
	if [ -n "${AOD_ENGINES_COMMAND:-}" ]; then
		TMPDIR=$work/t sh -c "$AOD_ENGINES_COMMAND" || say "$name: the command ended with $?"
	else
		measure "$name"
	fi
	stop
	unset DOCKER_HOST
done
[ -e "$work/table" ] || exit 0
echo "| engine | what it says of itself | sandbox | hostile | handoff |"
echo "|---|---|---|---|---|"
cat "$work/table"
