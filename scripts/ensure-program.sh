#!/bin/sh
# Installs a program of Debian where it is missing: PROGRAM PACKAGE, and in words what it is for.
set -eu
program=$1 package=$2 purpose=$3
if command -v "$program" >/dev/null 2>&1; then
	exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "installing $package for $purpose ..."
	apt-get update -qq && apt-get install -y -qq --no-install-recommends "$package" >/dev/null
	exit 0
fi
echo "$purpose need $program: install it" >&2
exit 1
