#!/bin/sh
# Installs tsc, which checks the types of the page's modules, where it is missing.
set -eu
if command -v tsc >/dev/null 2>&1; then
	exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "installing TypeScript for the types of the page's modules ..."
	apt-get update -qq && apt-get install -y -qq --no-install-recommends node-typescript >/dev/null
	exit 0
fi
echo "the types of the page's modules are checked by tsc: install it, of version 4.8 or newer" >&2
exit 1
