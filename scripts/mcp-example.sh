#!/bin/sh
# Runs somebody else's MCP server, the example `memory` of the official Go SDK, as a unit of
# the kind mcp: built on this machine, unmodified. State lives within a session and not between
# two.
set -eu
example=examples/mcp/memory

if ! command -v go >/dev/null; then
    echo "== $example is left out, since it needs go to build the server"
    exit 0
fi
work=$(mktemp -d)
export AOD_DATA="$work/data"
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
unit=$work/unit
cp -R "$example" "$unit"
CGO_ENABLED=0 GOBIN="$work" go install -trimpath -ldflags '-s -w' github.com/modelcontextprotocol/go-sdk/examples/server/memory@v1.8.0
mv "$work/memory" "$unit/server"

wants() { # TEXT FILE
    grep -q "$1" "$2" && return
    echo "$example: there is no $1 in what it said:"
    cat "$2"
    exit 1
}

echo "== $example"
bin/aod validate --quiet "$unit"
hello='{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"script","version":"1"}}}'
ready='{"jsonrpc":"2.0","method":"notifications/initialized"}'
create='{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"create_entities","arguments":{"entities":[{"name":"ferry","entityType":"ship","observations":["it is late"]}]}}}'
read='{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"read_graph","arguments":{}}}'
: >"$work/first"
{
    printf '%s\n' "$hello" "$ready" "$create"
    tries=0
    until grep -q '"id":2' "$work/first" || [ $tries -ge 300 ]; do # requests that come together are answered in any order
        tries=$((tries + 1))
        sleep 0.1
    done
    printf '%s\n' "$read"
} | bin/aod mcp run --quiet "$unit" >"$work/first" 2>"$work/log"
wants '"id":3.*it is late' "$work/first"
bin/aod mcp call --quiet "$unit" read_graph >"$work/second" 2>"$work/log"
wants '"entities":null' "$work/second"
