#!/bin/sh
# Tests the example of an agent elsewhere: starts it at a free port, holds it against the
# contract's rules, and runs the unit that stands for it and a capsule that calls that unit,
# in a copy with the agent's address in it.
set -eu
example=examples/remote-agent

if ! command -v python3 >/dev/null; then
    echo "== $example is left out, since it needs python3"
    exit 0
fi
work=$(mktemp -d)
python3 "$example/agent.py" --port 0 >"$work/said" &
agent=$!
trap 'kill "$agent" 2>/dev/null || true; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

tries=0
until address=$(sed -n 's/^listening on //p' "$work/said") && [ -n "$address" ]; do
    tries=$((tries + 1))
    if [ "$tries" -gt 100 ] || ! kill -0 "$agent" 2>/dev/null; then
        echo "$example/agent.py doesn't start"
        exit 1
    fi
    sleep 0.1
done

echo "== $example/agent.py and the contract's rules"
verdicts=$(bin/aod check-agent "$address=WORD_STATS") || {
    echo "$verdicts"
    exit 1
}
echo "$verdicts" | tail -n 1
bin/aod validate "$example/unit" "$example/reading-time"
bin/aod validate --units "$example" "$example/reading-plan"
cp -R "$example/unit" "$example/reading-time" "$example/reading-plan" "$work"
sed -i.before "s|http://127.0.0.1:8000|$address|" "$work/unit/agent.yaml"
rm "$work/unit/agent.yaml.before"

echo "== $example/unit, where no engine answers"
DOCKER_HOST=unix:///nonexistent.sock bin/aod test --quiet "$work/unit"
echo "== $example/reading-time, which calls it"
bin/aod test --quiet "$work/reading-time"
echo "== $example/reading-plan, a flow that calls it, where no engine answers"
DOCKER_HOST=unix:///nonexistent.sock bin/aod test --quiet "$work/reading-plan"
