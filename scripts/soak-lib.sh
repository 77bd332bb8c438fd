# What the soaks have in common: a server in a directory of their own, and what may be left of it.
# It is sourced at their beginning, in the root of the repository.
aod=$(pwd)/bin/aod
work=$(mktemp -d)
server=
ending() {
	[ -z "$server" ] || { kill "$server" 2>/dev/null && wait "$server" 2>/dev/null; } || true
	rm -rf "$work"
}
trap ending EXIT
trap 'exit 1' INT TERM
export AOD_DATA="$work/data"

serve() { # [FLAG...]: starts a server over the directory units, and sets server, url and token
	"$aod" serve --listen 127.0.0.1:0 --units units --log-level warn "$@" 2>served &
	server=$!
	until [ -s data/server/address ]; do kill -0 "$server" || { cat served >&2; exit 1; }; sleep 0.1; done
	url=$(cat data/server/address)
	token=$(cat data/server/token)
}

metric() { curl -sf -H "Authorization: Bearer $token" "$url/metrics" | sed -n "s/^$1 //p" | awk '{ printf "%d", $1 }'; }

active() { "$aod" ps --server "$url" --json 2>/dev/null | grep -c '"id"' || true; }

containers() { docker ps -aq --filter "label=aod.owner=$(cat data/server/owner)" | wc -l; }

end_server() { # ends it: it has warned of nothing, and no container is left
	kill "$server"
	wait "$server" || true
	server=
	! grep 'level=' served >&2 || exit 1
	left=$(containers)
	[ "$left" = 0 ] || { echo "$left containers are left" >&2; exit 1; }
}
