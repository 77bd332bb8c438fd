#!/bin/sh
# Tests the example that reaches a host by name: what it is refused, and a page of a server of this
# machine, which stands for the host, in a copy with the server's port in it.
set -eu
example=examples/network/fetch

bin/aod validate "$example"
echo "== $example"
bin/aod test --quiet "$example"
if ! command -v python3 >/dev/null; then
    echo "== the rest is left out, since it needs python3"
    exit 0
fi
work=$(mktemp -d)
mkdir "$work/shop"
echo '<title>Apples &amp; pears</title>' >"$work/shop/index.html"
python3 -u -m http.server --bind 127.0.0.1 --directory "$work/shop" 0 >"$work/said" 2>/dev/null &
shop=$!
trap 'kill "$shop" 2>/dev/null || true; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

tries=0
until port=$(sed -n 's/.* port \([0-9]*\) .*/\1/p' "$work/said") && [ -n "$port" ]; do
    tries=$((tries + 1))
    if [ "$tries" -gt 100 ] || ! kill -0 "$shop" 2>/dev/null; then
        echo "the server of the example doesn't start"
        exit 1
    fi
    sleep 0.1
done
cp -R "$example" "$work"
sed -i.before "s|:8088|:$port|" "$work/fetch/agent.yaml"
rm "$work/fetch/agent.yaml.before"

echo "== $example, at a host"
said=$(AOD_EGRESS_PRIVATE=shop.example=127.0.0.1 bin/aod run --quiet "$work/fetch" --set "url=http://shop.example:$port/")
case $said in
*'Apples & pears'*) ;;
*)
    echo "it says $said"
    exit 1
    ;;
esac
