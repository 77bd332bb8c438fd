#!/bin/sh
# Runs an example on a real file and shows what came of it. `make demo` has built
# aod and the base image by now.
set -eu
example=examples/capsules/csv-report
out=aod-output/demo

echo
echo "A table of sales goes in. Its statistics are printed as JSON, and a chart is written:"
echo
echo "  bin/aod run $example --file table=$example/input/sales.csv --set group_by=region --out $out"
echo
bin/aod run "$example" --file table="$example/input/sales.csv" --set group_by=region --out "$out"
echo
echo "Its output files are in $(pwd)/$out:"
ls -l "$out"
echo
echo "In the browser: bin/aod serve --units examples/capsules, and beside it bin/aod ui"
echo "Next: bin/aod init my-capsule && bin/aod run ./my-capsule"
