#!/bin/sh
# Installs mypy, which checks the types of the Python library, where it is missing.
set -eu
if command -v mypy >/dev/null 2>&1; then
	exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "installing mypy for the types of the Python library ..."
	apt-get update -qq && apt-get install -y -qq --no-install-recommends mypy >/dev/null
	exit 0
fi
echo "the types of the Python library are checked by mypy: install it" >&2
exit 1
