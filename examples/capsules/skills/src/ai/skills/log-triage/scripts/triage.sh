#!/bin/sh
# Tell what matters in a log: triage.sh LOG
set -eu
awk '{ if (match($0, /DEBUG|INFO|WARN|ERROR/)) count[substr($0, RSTART, RLENGTH)]++ }
     END { for (level in count) print level, count[level] }' "$1" | sort
grep -n -m 5 ERROR "$1" || echo "no errors"
