#!/bin/sh
# Runs the session that README.md begins with, in a terminal of its own, and compares what it
# prints with what README.md shows; only figures may differ. bin/aod is built by now.
set -eu
root=$(pwd)
command -v script >/dev/null || { echo "readme-session: the program script is missing (package bsdutils)" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export AOD_DATA="$work/data"
export PATH="$root/bin:$PATH"
cp -r examples "$work"

# The session is the shell block before the console block, which shows what it prints.
awk -v run="$work/run" -v shown="$work/shown" '
	/^```sh$/ { in_block = "sh"; text = ""; next }
	/^```console$/ { in_block = "console"; printf "%s", text >run; next }
	/^```/ { if (in_block == "console") exit; in_block = ""; next }
	in_block == "sh" { text = text $0 "\n" }
	in_block == "console" { print >shown }' README.md
[ -s "$work/run" ] && [ -s "$work/shown" ] || { echo "readme-session: README.md shows no session" >&2; exit 1; }

# plain leaves out how a terminal moves and colours, and how large and quick things were.
plain() {
	tr '\r' '\n' | sed -E 's/\x1b\[[0-9;?]*[a-zA-Z]//g; s/([0-9]+m)?[0-9]+(\.[0-9]+)?(ms|s)?/#/g; s/ +$//'
}

cd "$work"
script -qec "sh ./run" /dev/null </dev/null >raw 2>&1 || { cat raw; exit 1; }
plain <raw >printed
plain <shown >wanted
while IFS= read -r line; do
	grep -qxF -- "$line" printed || { cat raw; echo "readme-session: not printed: $line" >&2; exit 1; }
done <wanted
echo "readme-session: README.md shows what is printed"
