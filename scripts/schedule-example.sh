#!/bin/sh
# Has a server start an example flow, with its files, at a time and by hand.
set -eu
work=$(mktemp -d)
export AOD_DATA="$work/data" AOD_LISTEN=127.0.0.1:0 AOD_HISTORY=0
server=
trap 'kill "$server" 2>/dev/null && wait "$server" 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

fail() { # MESSAGE
    echo "schedule-example: $1"
    cat "$work/serve.log"
    exit 1
}

ended() { # SCHEDULE: prints how its last run ended, once it has
    tries=0
    while :; do
        outcome=$(bin/aod ps -a --schedule "$1" -n 1 --json | jq -r '.outcome // empty')
        [ -z "$outcome" ] || { echo "$outcome"; return; }
        tries=$((tries + 1))
        [ "$tries" -lt 600 ] || fail "$1 has no run that ended"
        sleep 0.2
    done
}

for unit in pdf-text csv-report; do # a server builds without a network
    bin/aod build --quiet "examples/capsules/$unit" >/dev/null
done
bin/aod serve --units examples/capsules --units examples/flows 2>"$work/serve.log" &
server=$!
tries=0
until bin/aod units >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ "$tries" -lt 150 ] || fail "the server doesn't answer"
    sleep 0.2
done

echo "== examples/schedules, twice"
bin/aod schedule apply -f examples/schedules/harbour.yaml
[ "$(bin/aod schedule apply -f examples/schedules/harbour.yaml | grep -c '^unchanged')" -eq 2 ] || fail "they are changed again"
bin/aod schedule next morning-digest -n 2

echo "== the flow by hand, with the files of its schedule"
bin/aod schedule run morning-digest --quiet --out "$work/out" >"$work/printed" || fail "the flow failed"
grep -q '"pages": *3' "$work/printed" || fail "no digest"

echo "== the flow at its time"
for seconds in 2 10 50; do # on a busy machine, the first may be over before the server hears of it
    bin/aod schedule add soon --unit digest --at "$(date -u -d "+$seconds seconds" +%Y-%m-%dT%H:%M:%S)" \
        --file report=examples/flows/digest/input/report.pdf --file sales=examples/flows/digest/input/sales.csv && break
done
[ "$(ended soon)" = success ] || fail "the flow failed"
bin/aod schedule history soon
