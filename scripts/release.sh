#!/bin/sh
# Builds a release into dist/, from the last commit and not from what lies in this directory: a
# second build in another directory has to give the same bytes.
#
#   sh scripts/release.sh VERSION
#
# Programs for Linux and macOS, the client for Windows, a Debian package and an image of the
# server for each architecture of Linux, an SBOM, and the digests of all of them.
#
# AOD_FRESH=1 compiles the second build without a cache; AOD_TARGETS names other targets.
set -eu
version=$1
targets=${AOD_TARGETS:-'linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64'}
if [ -n "$(git status --porcelain)" ]; then
	echo "release: there are changes that aren't committed, and a release is built from the last commit:" >&2
	git status --short >&2
	echo "release: commit them, or put them away (git stash --include-untracked)" >&2
	exit 1
fi
commit=$(git rev-parse HEAD)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct "$commit")
export SOURCE_DATE_EPOCH CGO_ENABLED=0 GOFLAGS=
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

# program OS/ARCH TREE OUT: builds the program of a target.
program() {
	os=${1%/*} arch=${1#*/} suffix=
	[ "$os" != windows ] || suffix=.exe
	(
		cd "$2"
		GOOS=$os GOARCH=$arch go build -trimpath -buildvcs=false \
			-ldflags "-s -w -buildid= -X main.version=$version" -o "$3/aod-$os-$arch$suffix" ./cmd/aod
		[ "$os" = linux ] || exit 0
		go run ./tools/deb "$version" "$arch" "$3/aod-$os-$arch" "$3/aod-$arch.deb"
		go run ./tools/image "$version" "$arch" "$3/aod-$os-$arch" "$3/aod-image-$arch.tar.gz"
	)
}

# build DIR: unpacks the commit below DIR and writes what it gives to DIR/out.
build() {
	mkdir -p "$1/tree" "$1/out"
	git archive "$commit" | tar -x -C "$1/tree"
	make -s -C "$1/tree" init
	for target in $targets; do
		program "$target" "$1/tree" "$1/out"
	done
	# The tools' words are those of the tree, and so is the SBOM of the programs alone.
	(cd "$1/tree" && go run ./tools/sbom "$version" \
		$(find "$1/out" -name 'aod-*-*' ! -name '*.gz' | sort) runtime/initbin/bin/aod-*) >"$work/sbom"
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
