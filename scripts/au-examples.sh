#!/bin/sh
# Tests the example Agentic Units: their cases, what their programs' parts do, that each
# keeps the specification's rules and gives on its sample what is expected. Confidences are
# left out of that: they differ a little from processor to processor. To hold a unit against the
# rules takes fifty sandboxes: one is, and with AOD_EXAMPLES, as in `make long`, all are.
set -eu
units=examples/au

comparable() { sed -E 's/"confidence": ?[0-9.]+/"confidence":0/g'; }

rules() { # UNIT SAMPLE
    echo "== $units/$1 and the specification's rules"
    verdicts=$(bin/aod au check "$units/$1" --quiet --sample "$units/$1/sample/$2") || {
        echo "$verdicts"
        exit 1
    }
    echo "$verdicts" | tail -n 1
}

same() { # UNIT SAMPLE
    echo "== $units/$1 on $2"
    got=$(bin/aod au run "$units/$1" --quiet --stdin "$units/$1/sample/$2" | comparable)
    want=$(comparable <"$units/$1/sample/expected.json")
    [ "$got" = "$want" ] && return
    echo "$units/$1: the sample gives something else than sample/expected.json:"
    echo "$got"
    exit 1
}

# What the model card doesn't take is refused before the unit is started.
refused() { # UNIT STDIN ARGS...
    unit=$1 stdin=$2
    shift 2
    code=0
    bin/aod au run "$units/$unit" --quiet --stdin "$units/$unit/$stdin" -- "$@" >/dev/null 2>&1 || code=$?
    [ "$code" -eq 2 ] && return
    echo "$units/$unit: $stdin $* was not refused (exit code $code)"
    exit 1
}

parts() { # UNIT
    if ! command -v python3 >/dev/null; then
        echo "== $units/$1: the tests of its parts are left out, since they need python3"
        return
    fi
    echo "== the parts of $units/$1"
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$units/$1/src" python3 -m unittest discover -q -s "$units/$1/tests"
}

bin/aod validate "$units"/*/
for dir in "$units"/*/; do
    echo "== $dir"
    bin/aod test --quiet "$dir"
done
parts ocr
parts pdf
for unit in echo:input.bin ocr:notice.png pdf:timetable.pdf; do
    same "${unit%:*}" "${unit#*:}"
    [ "$unit" = echo:input.bin ] || [ -n "${AOD_EXAMPLES:-}" ] || continue
    rules "${unit%:*}" "${unit#*:}"
done
refused ocr tests/data/list.png
refused ocr sample/notice.png --min-confidence high
refused ocr sample/notice.png --colour red
refused pdf tests/data/not-a.pdf
