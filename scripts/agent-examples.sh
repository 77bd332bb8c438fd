#!/bin/sh
# Runs the wrapped agents of examples/agents that can be had here: programs of coreutils, Python
# and Debian, and the agent of an SDK, as they are. Their models answer from a file. The others are
# only validated: their packages come from registries that a build may not reach.
set -eu
agents=examples/agents
work=$(mktemp -d)
export AOD_DATA="$work/data"
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

says() { # FILE PATTERN
    grep -Eq -- "$2" "$1" && return
    echo "agent-examples: nothing matches $2 in:"
    cat "$1"
    exit 1
}

bin/aod validate "$agents"/*/ >"$work/printed" 2>&1 || {
    cat "$work/printed"
    exit 1
}

cat >"$work/models.yaml" <<'END'
providers: {desk: {kind: script, answers: answers.yaml}}
models: {gpt-4o-mini: {use: [desk/any]}}
END
printf '{repeat: true, answers: [{text: The harbour burned in 1715.}]}\n' >"$work/answers.yaml"

echo "== $agents/word-tool, of coreutils"
bin/aod run --quiet "$agents/word-tool" --set message="The ferry is late. The FERRY!" >"$work/printed"
says "$work/printed" '2 ferry.*2 the.*1 is.*1 late'

echo "== $agents/py-report, from file to file"
bin/aod run --quiet "$agents/py-report" --input '{"title": "Days", "numbers": [1, 2, 6]}' >"$work/printed"
says "$work/printed" '"largest": ?6,.*"mean": ?3(\.0)?,.*"median": ?2,'

for agent in debgpt debgpt-ask openai-cli; do
    echo "== $agents/$agent, of Debian"
    bin/aod run --quiet "$agents/$agent" --models "$work/models.yaml" --set message="When did the harbour burn?" >"$work/printed" 2>"$work/log" || {
        cat "$work/log"
        exit 1
    }
    says "$work/printed" 'The harbour burned in 1715'
done

echo "== $agents/debgpt-edit: a file of a project is changed, and the change brought back"
printf '{repeat: true, answers: [{reasoning: It was long ago., text: The harbour burned in 1715.}]}\n' >"$work/answers.yaml"
mkdir "$work/project"
project="$work/project"
echo "harbor burn 1715" >"$project/notes.txt"
git -C "$project" init -q
git -C "$project" add notes.txt
bin/aod agent run --quiet "$agents/debgpt-edit" --models "$work/models.yaml" -m "Mend the grammar." --set path=notes.txt --workspace "$project" --json >"$work/record.json" 2>"$work/log" || {
    cat "$work/log"
    exit 1
}
run=$(sed -n 's/^{"id":"\([^"]*\)".*/\1/p' "$work/record.json")
bin/aod diff "$run" >"$work/printed"
says "$work/printed" '^M notes.txt 28 B'
bin/aod diff "$run" --patch >"$work/patch"
git -C "$project" apply --check "$work/patch"
cp -r "$project" "$work/edited"
echo "and more" >>"$work/edited/notes.txt"
if bin/aod apply "$run" --dir "$work/edited" 2>"$work/printed"; then
    echo "agent-examples: a change went over an edited file"
    exit 1
fi
says "$work/printed" 'notes.txt: was changed'
says "$work/edited/notes.txt" 'and more'
bin/aod apply "$run" --dir "$project" 2>"$work/printed"
says "$project/notes.txt" '^The harbour burned in 1715\.$'
bin/aod apply "$run" --dir "$project" 2>"$work/printed"
says "$work/printed" 'applied already'

# allowed copies an agent, and permits it what it asks for.
allowed() { # NAME
    rm -rf "$work/$1"
    cp -R "$agents/$1" "$work/$1"
    sed 's/approval: ask/approval: allow/' "$agents/$1/agent.yaml" >"$work/$1/agent.yaml"
}

echo "== $agents/stream-json, which writes a file if it is permitted"
cat >"$work/answers.yaml" <<'END'
repeat: true
answers:
  - tool_calls: [{name: write_file, arguments: {path: ferry.txt, content: It is late.}}]
  - text: I wrote it down.
END
allowed stream-json
bin/aod run --quiet "$work/stream-json" --models "$work/models.yaml" --set message="Write it down" >"$work/printed"
says "$work/printed" 'I wrote it down'

if ! command -v go >/dev/null; then
    echo "== $agents/acp is left out, since it needs go to build the agent"
    exit 0
fi
echo "== $agents/acp, with a permission and without"
allowed acp
CGO_ENABLED=0 GOBIN="$work/acp" go install -trimpath -ldflags '-s -w' github.com/coder/acp-go-sdk/example/agent@v0.13.0
bin/aod run --quiet "$work/acp" --set message="Mend it" >"$work/printed"
says "$work/printed" 'updated the configuration'
cp "$agents/acp/agent.yaml" "$work/acp/agent.yaml"
bin/aod run --quiet "$work/acp" --set message="Mend it" >"$work/printed" 2>"$work/log"
says "$work/printed" 'you prefer not to make that change'
