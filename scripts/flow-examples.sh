#!/bin/sh
# Tests the example flows, over the example capsules: their cases, and a flow with many files
# and one that a person decides.
set -eu
flows=examples/flows
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

says() { # FILE PATTERN
    grep -Eq -- "$2" "$1" && return
    echo "flow-examples: nothing matches $2 in:"
    cat "$1"
    exit 1
}

for dir in "$flows"/*/; do
    echo "== $dir"
    bin/aod validate --quiet --units examples/capsules "$dir"
    bin/aod test --quiet --units examples/capsules "$dir"
done

echo "== $flows/scans with three scans, of which one is broken"
bin/aod run --quiet --units examples/capsules "$flows/scans" --out "$work/charts" --file scans="$flows/scans/input/notice.png" \
    --file scans="$flows/scans/input/truncated.png" --file tables="$flows/scans/input/sales.csv" \
    --file tables=examples/capsules/research-brief/input/crossings.csv >"$work/printed"
says "$work/printed" '"unread": ?1'
[ "$(find "$work/charts" -type f | wc -l)" -eq 2 ] || { ls -lR "$work"; exit 1; }

echo "== $flows/letter, which is never good enough, and a person's word"
printf '{repeat: true, answers: [{text: The ferry!}]}\n' >"$work/drafts.yaml"
echo '{repeat: true, answers: [{tool_calls: [{name: final_answer, arguments: {mark: 2, remarks: [greet them first]}}]}]}' >"$work/marks.yaml"
cat >"$work/models.yaml" <<'END'
providers: {writer: {kind: script, answers: drafts.yaml}, critic: {kind: script, answers: marks.yaml}}
models: {gpt-4o-mini: {use: [writer/any]}, gpt-4o: {use: [critic/any]}}
END
bin/aod run --quiet --units examples/capsules "$flows/letter" --models "$work/models.yaml" --set topic="the late ferry" \
    --answer approve=approve >"$work/printed"
says "$work/printed" '"decided_by": ?"a person"'
