#!/bin/sh
# Checks that Go is there and new enough for go.mod. It installs nothing.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
wanted=$(awk '$1 == "go" { print $2; exit }' "$root/go.mod")

die() { echo "ensure-go: $*" >&2; exit 1; }

command -v go >/dev/null 2>&1 ||
    die "Go is missing: install Go $wanted or newer from https://go.dev/dl/ and put its bin directory into PATH"
# Asked within the module: a Go that is older, but able to fetch the one that go.mod
# names, answers as that one.
have=$(cd "$root" && go env GOVERSION 2>/dev/null | sed 's/^go//; s/[ -].*//')
oldest=$(printf '%s\n%s\n' "$wanted" "$have" | sort -V | head -n 1)
[ -n "$have" ] && [ "$oldest" = "$wanted" ] ||
    die "Go is too old ($(cd / && go version)): install Go $wanted or newer from https://go.dev/dl/"
