#!/bin/sh
# Installs Chromium, in which the page is tested, where it is missing.
set -eu
if command -v chromium >/dev/null 2>&1; then
	exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "installing Chromium for the tests of the page ..."
	apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null
	exit 0
fi
echo "the page is tested in Chromium: install it, as chromium" >&2
exit 1
