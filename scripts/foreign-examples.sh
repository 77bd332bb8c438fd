#!/bin/sh
# Runs the programs of others, examples/foreign, as they are: a capsule with a bridge, libraries
# and a loop of tool calls of its own, which calls another one; a client of POST /execute; an
# agent of the HTTP contract.
set -eu
root=$(pwd)
foreign=$root/examples/foreign

if ! command -v python3 >/dev/null; then
    echo "== $foreign is left out, since it needs python3"
    exit 0
fi
work=$(mktemp -d)
export AOD_DATA="$work/data"
server= agent=
ending() {
    for pid in $server $agent; do
        kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null || true
    done
    rm -rf "$work"
}
trap ending EXIT
trap 'exit 1' INT TERM

fail() {
    echo "foreign-examples: $1:"
    shift
    cat "$@"
    exit 1
}

# says wants a line that matches in a file.
says() { # FILE PATTERN
    grep -Eq -- "$2" "$1" || fail "nothing matches $2" "$1"
}

# await wants a command to succeed within a minute.
await() {
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ "$tries" -lt 600 ] || fail "in vain: $*" "$work/said"
        sleep 0.1
    done
}

echo "== examples/foreign/capsules/proof-reader: 20 turns, a refused call, two calls with files"
bin/aod validate "$foreign"/capsules/*
# It names a model, and brings one of its own where the environment has none.
printf 'env: {OPENAI_API_BASE: ""}\n' >"$work/own-model.yaml"
printf 'unit: {proof-reader: {env: {OPENAI_API_BASE: ""}}}\n' >"$work/aod.yaml"
bin/aod run "$foreign/capsules/proof-reader" --unit-config "$work/own-model.yaml" --file source_document="$foreign/letter.txt" \
    --set user_prompt="Mend it" --out "$work/out" >"$work/printed" 2>"$work/said" || fail "it failed" "$work/said"
says "$work/printed" '"turns": ?20'
says "$work/printed" 'Before: 34 words.* After: 34 words.* could not be asked'
says "$work/out/clean.txt" '^Some have several of them,$'
says "$work/said" 'look_up: error: "proof-reader" may not call "dictionary"'
says "$work/said" '^warning: a handoff had fields .* ignores: "caller"$'
! grep -q 'every call' "$work/said" || fail "not every call was refused" "$work/said"

echo "== the same with OPENAI_API_BASE as AOD gives it, and its model's name as an alias"
printf 'providers: {made-up: {kind: script, answers: answers.yaml}}\nmodels: {scripted: {use: [made-up/any]}}\n' >"$work/models.yaml"
awk 'BEGIN { print "- tool_calls: [{name: count_words, arguments: {}}]\n- tool_calls: [{name: look_up, arguments: {word: gallimaufry}}]" }
    { $1 = $1; print "- tool_calls: [{name: read_line, arguments: {number: " NR "}}]"
      print "- tool_calls: [{name: fix_line, arguments: {number: " NR ", text: \"" toupper(substr($0, 1, 1)) substr($0, 2) "\"}}]" }
    END { print "- tool_calls: [{name: count_words, arguments: {}}]\n- text: It is clean." }' "$foreign/letter.txt" >"$work/answers.yaml"
bin/aod run "$foreign/capsules/proof-reader" --models "$work/models.yaml" --file source_document="$foreign/letter.txt" \
    --set user_prompt="Mend it" --out "$work/alias" >"$work/printed" 2>"$work/said" || fail "it failed" "$work/said"
says "$work/printed" '"turns": ?20'
says "$work/printed" 'It is clean'
cmp "$work/out/clean.txt" "$work/alias/clean.txt" || fail "another text" "$work/said"
bin/aod runs "$(bin/aod runs --limit 1 --json | sed -n 's/.*"id": *"\([^"]*\)".*/\1/p' | head -n 1)" --models >"$work/printed"
says "$work/printed" '^20 model calls, '

echo "== examples/foreign/client, and a server that asks for no token, as the standard's clients know none"
bin/aod serve --config "$work/aod.yaml" --listen 127.0.0.1:0 --no-auth --units "$foreign/capsules" --file-roots "$foreign" 2>"$work/said" &
server=$!
await test -s "$AOD_DATA/server/address"
url=$(cat "$AOD_DATA/server/address")
ask() { python3 "$foreign/client/client.py" "$url" "$@" >"$work/printed" 2>"$work/told"; }
ask word-counter "{\"file\": \"$foreign/letter.txt\"}" || fail "the client failed" "$work/told" "$work/said"
says "$work/printed" '"words": ?34'
says "$work/printed" '^first file: report.txt$'
ask proof-reader "{\"user_prompt\": \"Mend it\", \"source_document\": \"$foreign/letter.txt\"}" || fail "the client failed" "$work/told" "$work/said"
says "$work/printed" '"turns": ?20'
says "$work/printed" '^first file: clean.txt$'
refused() { # PATTERN CAPSULE INPUT
    pattern=$1
    shift
    ! ask "$@" || fail "it was taken: $*" "$work/printed"
    says "$work/told" '^session None failed: '
    says "$work/told" "$pattern"
}
refused 'failed with exit code 1' word-counter "{\"file\": \"none.txt\"}"
says "$work/told" "^FileNotFoundError: .*none.txt"
refused 'may not be taken from this host' word-counter "{\"file\": \"/etc/passwd\"}"
refused 'breaks the contract' word-counter '{"file": 7}'
refused 'no unit' nobody '{}'

echo "== examples/foreign/agent, whose last event has no task_type"
python3 "$foreign/agent/agent.py" 0 >"$work/listening" 2>"$work/said" &
agent=$!
await test -s "$work/listening"
address=$(sed -n 's/^listening on //p' "$work/listening")
bin/aod check-agent "$address=TURN_ROUND" >"$work/verdicts" || true
[ "$(sed -n 's/^FAIL *\([a-z-]*\).*/\1/p' "$work/verdicts")" = stream-terminal-task-type ] || fail "check-agent" "$work/verdicts"
cp -R "$foreign/agent/unit" "$work"
sed -i.before "s|http://127.0.0.1:8000|$address|" "$work/unit/agent.yaml"
bin/aod run "$work/unit" --set text=abc >"$work/printed" 2>"$work/said" || fail "the unit failed" "$work/said"
says "$work/printed" '"text": ?"cba"'
echo "== examples/foreign/line-counter, whose card has the required fields and no others"
printf 'a\nb\n' | bin/aod au run "$foreign/line-counter" --stdin - --quiet >"$work/printed" || fail "the unit failed" "$work/printed"
says "$work/printed" '"lines": ?2'
echo "foreign-examples: all of them run"
