#!/bin/sh
# Runs every fuzz target for a little while: scripts/fuzz.sh [TIME]
set -eu
time=${1:-20s}
for package in $(go list ./...); do
	for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
		echo "== $package $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 5x "$package"
	done
done
