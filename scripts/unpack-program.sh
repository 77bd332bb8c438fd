#!/bin/sh
# Makes sure that there is a program of Debian for tests: PROGRAM PACKAGE. Prints the directory that has it: that of an
# installed one, else one in bin/PACKAGE, where Debian's package is unpacked without its documents. Nothing is installed,
# and no service started.
set -eu
cd "$(dirname "$0")/.."
program=$1 package=$2
PATH=$PATH:/usr/sbin
if command -v "$program" >/dev/null 2>&1; then
	dirname "$(command -v "$program")"
	exit 0
fi
dir=$PWD/bin/$package
find_program() { find "$dir" -path "*bin/$program" -type f 2>/dev/null | head -n 1; }
if [ -z "$(find_program)" ]; then
	command -v apt-get >/dev/null 2>&1 || { echo "unpack-program: install $package: this isn't a Debian or Ubuntu" >&2; exit 1; }
	echo "unpack-program: fetching Debian's $package" >&2
	mkdir -p "$dir"
	(cd "$dir" && { apt-get download -qq "$package" || { apt-get update -qq && apt-get download -qq "$package"; }; } >&2 2>&1 && dpkg-deb -x "$package"_*.deb . && rm -r "$package"_*.deb usr/share) # with examples in Go
fi
dirname "$(find_program)"
