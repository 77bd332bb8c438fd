#!/bin/sh
# Builds the programs of a release into dist/, from the last commit and not from what lies in
# this directory: a second build in another directory has to give the same bytes.
#
#   sh scripts/release.sh VERSION
#
# AOD_FRESH=1 compiles the second build without a cache; AOD_TARGETS names other targets.
set -eu
version=$1
targets=${AOD_TARGETS:-'linux/amd64 linux/arm64 darwin/amd64 darwin/arm64'}
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct HEAD)
export SOURCE_DATE_EPOCH CGO_ENABLED=0 GOFLAGS=
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

# build DIR: unpacks the commit below DIR and writes its programs to DIR/out.
build() {
	mkdir -p "$1/tree" "$1/out"
	git archive HEAD | tar -x -C "$1/tree"
	make -s -C "$1/tree" init
	for target in $targets; do
		(
			cd "$1/tree"
			GOOS=${target%/*} GOARCH=${target#*/} go build -trimpath -buildvcs=false \
				-ldflags "-s -w -buildid= -X main.version=$version" \
				-o "$1/out/aod-${target%/*}-${target#*/}" ./cmd/aod
		)
	done
	go run ./tools/sbom "$version" "$1"/out/aod-* "$1"/tree/runtime/initbin/bin/aod-* >"$work/sbom"
	mv "$work/sbom" "$1/out/aod.cdx.json"
	(cd "$1/out" && sha256sum aod* >SHA256SUMS)
}

build "$work/first"
if [ -n "${AOD_FRESH:-}" ]; then
	GOCACHE="$work/cache" build "$work/the-second-one"
else
	build "$work/the-second-one"
fi
if ! diff "$work/first/out/SHA256SUMS" "$work/the-second-one/out/SHA256SUMS" >&2; then
	echo "release: two builds of the same commit differ; nothing was written" >&2
	exit 1
fi
rm -rf dist
mv "$work/first/out" dist
touch -d "@$SOURCE_DATE_EPOCH" dist/*
ls -l dist
echo "two builds of $version gave the same bytes"
