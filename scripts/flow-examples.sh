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
    --file scans="$flows/scans/input/truncated.png" --file tables="$flows/scans/input/words.csv" \
    --file tables="$flows/digest/input/sales.csv" >"$work/printed"
says "$work/printed" '"unread": ?1'
[ "$(find "$work/charts" -type f | wc -l)" -eq 2 ] || { ls -lR "$work"; exit 1; }

echo "== $flows/letter, which is never good enough, and a person's word"
{
    for _ in 1 2 3; do
        echo '- text: The ferry!'
        echo '- tool_calls: [{name: final_answer, arguments: {mark: 2, remarks: [greet them first]}}]'
    done
} >"$work/answers.yaml"
printf 'providers: {made-up: {kind: script, answers: answers.yaml}}\nmodels: {gpt-4o-mini: {use: [made-up/any]}, gpt-4o: {use: [made-up/any]}}\n' >"$work/models.yaml"
bin/aod run --quiet --units examples/capsules "$flows/letter" --models "$work/models.yaml" --set topic="the late ferry" \
    --answer approve=approve >"$work/printed"
says "$work/printed" '"decided_by": ?"a person"'
