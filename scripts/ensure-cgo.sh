#!/bin/sh
# The race detector needs a C compiler; nothing that ships does.
set -eu
if command -v "$(go env CC)" >/dev/null 2>&1; then
	exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "installing gcc for the race detector ..."
	apt-get update -qq && apt-get install -y -qq --no-install-recommends gcc libc6-dev >/dev/null
	exit 0
fi
echo "the tests run with the race detector, which needs a C compiler: install gcc" >&2
exit 1
