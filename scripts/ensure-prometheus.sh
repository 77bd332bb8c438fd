#!/bin/sh
# Makes sure that there are prometheus and promtool, and prints the directory that has them: that
# of an installed one, else bin/prometheus, where those of Debian's package are unpacked. Nothing
# is installed, and nothing started.
set -eu
cd "$(dirname "$0")/.."
if command -v prometheus >/dev/null 2>&1 && command -v promtool >/dev/null 2>&1; then
	dirname "$(command -v prometheus)"
	exit 0
fi
dir=$PWD/bin/prometheus
if [ ! -x "$dir/usr/bin/prometheus" ]; then
	command -v apt-get >/dev/null 2>&1 || { echo "ensure-prometheus: install prometheus: this isn't a Debian or Ubuntu" >&2; exit 1; }
	echo "ensure-prometheus: fetching Debian's" >&2
	mkdir -p "$dir"
	(cd "$dir" && apt-get download -qq prometheus >&2 && dpkg-deb -x prometheus_*.deb . && rm prometheus_*.deb)
fi
echo "$dir/usr/bin"
