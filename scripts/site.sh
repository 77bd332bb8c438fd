#!/bin/sh
# Makes a site of the guides: index, search, and the table that says which page to read. Nothing of
# it is asked of any server but the one that it lies on; it works from a disk as well.
#
#   sh scripts/site.sh [DIRECTORY]      dist/site by default
#
# Hugo is fetched and built by the Go tool, and linked into nothing of ours.
set -eu
cd "$(dirname "$0")/.."
hugo=github.com/gohugoio/hugo@v0.157.0
out=$(mkdir -p "${1:-dist/site}" && cd "${1:-dist/site}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
cp -R tools/site/. "$work"

# page SOURCE NAME puts a page in: its first heading becomes its title, and it knows its source.
page() {
	mkdir -p "$(dirname "$work/content/$2")"
	awk -v source="$1" '
		NR == 1 && sub(/^# /, "") { gsub(/["\\]/, "\\\\&"); gsub(/`/, ""); printf "---\ntitle: \"%s\"\nsource: %s\n---\n", $0, source; next }
		NR == 1 { printf "---\ntitle: %s\nsource: %s\n---\n", source, source }
		{ print }
	' "$1" >"$work/content/$2"
}

for source in docs/*.md docs/adr/*.md; do
	name=${source#docs/}
	[ "$name" != README.md ] || name=_index.md
	page "$source" "$name"
done
for source in README.md ARCHITECTURE.md CHANGELOG.md SECURITY.md; do
	page "$source" "project/$(echo "$source" | tr 'A-Z' 'a-z')"
done
printf -- '---\ntitle: Decisions\nsource: docs/adr\n---\n' >"$work/content/adr/_index.md"
printf -- '---\ntitle: The project\nsource: .\n---\n' >"$work/content/project/_index.md"

CGO_ENABLED=0 GOFLAGS= go run "$hugo" --quiet --source "$work" --destination "$work/public" --noBuildLock
for file in index.html search-index.js search.js capsules.html adr.html; do
	[ -s "$work/public/$file" ] || [ -s "$work/public/${file%.html}/index.html" ] || { echo "site: it has no $file" >&2; exit 1; }
done
rm -rf "$out"
mv "$work/public" "$out"
echo "the site of $(find "$out" -name '*.html' | wc -l) pages is in $out"
