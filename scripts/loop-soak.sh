#!/bin/sh
# Runs an agent many times on a server, with a model that a script answers: each mends its
# answer once, and every tenth is cancelled while it asks. It proves that nothing is left, and
# that the server's memory and goroutines don't grow with the runs.
#
# usage: scripts/loop-soak.sh [RUNS]
set -eu
runs=${1:-2000}
. scripts/soak-lib.sh
cd "$work"

"$aod" init units/reader --template agent >/dev/null 2>&1
"$aod" init units/stuck --template agent >/dev/null 2>&1
sed -i.before 's/^model: .*/model: stuck/' units/stuck/agent.yaml
printf '%s\n' '- tool_calls: [{name: final_answer, arguments: {answer: In 1715., found: "no"}}]' \
	'- tool_calls: [{name: final_answer, arguments: {answer: In 1715., found: true, quotes: [It burnt down in 1715]}}]' >answers.yaml
echo '- {text: Never., pause: 1h}' >never.yaml
cat >aod.yaml <<END
providers:
  mends: {kind: script, answers: $work/answers.yaml}
  never: {kind: script, answers: $work/never.yaml}
models:
  gpt-4o-mini: {use: [mends/any], price: {input: 1, output: 1}}
  stuck: {use: [never/any]}
END
grep -q '^model: gpt-4o-mini' units/reader/agent.yaml

serve --config aod.yaml --pool 2

state() { # what may grow
	echo "$(metric go_goroutines) goroutines, $(($(metric process_resident_memory_bytes) / 1048576)) MiB"
}

one() { # N
	if [ $(($1 % 10)) = 0 ]; then
		id=$("$aod" run stuck --server "$url" --detach)
		until "$aod" runs --server "$url" "$id" | grep -Eq 'running'; do sleep 0.05; done
		"$aod" cancel --server "$url" "$id" >/dev/null 2>&1
		return
	fi
	"$aod" run reader --server "$url" --quiet >answer || { cat served >&2; exit 1; }
	grep -q 'In 1715' answer
}

i=0
while [ "$i" -lt "$runs" ]; do
	i=$((i + 1))
	one "$i"
	[ "$i" != $((runs / 2)) ] || { half=$(metric go_goroutines) && echo "after $i runs: $(state)"; }
done
until [ "$(active)" = 0 ]; do sleep 0.2; done
echo "after $runs runs: $(state)"
asked=$(metric 'aod_model_requests_total{model="gpt-4o-mini",provider="mends",rule="",status="200"}')
[ "$asked" = $((2 * (runs - runs / 10))) ] || { echo "$asked requests for $runs runs" >&2; exit 1; }
[ "$(metric go_goroutines)" -le $((half + 20)) ] || { echo "goroutines are left" >&2; exit 1; }
end_server
echo "loop-soak: $runs runs, $asked answers of models, nothing is left"
