# Asks in Anthropic's Messages, as a stream, with nothing but curl and jq. AOD has put the
# address into ANTHROPIC_BASE_URL, and a placeholder into ANTHROPIC_API_KEY.
set -eu
events=/tmp/events

fail() { # fail TYPE MESSAGE
    jq -n --arg type "$1" --arg message "$2" '{error: {type: $type, message: $message}}' > /io/output.json
    exit 1
}

status=$(jq '{
    model: "claude-sonnet-4-5", max_tokens: 500, stream: true,
    messages: [{role: "user", content: .prompt}]
}' /io/input.json | curl -sS --no-buffer -o "$events" -w '%{http_code}' --data-binary @- \
    -H "content-type: application/json" -H "anthropic-version: 2023-06-01" -H "x-api-key: $ANTHROPIC_API_KEY" \
    "$ANTHROPIC_BASE_URL/v1/messages") || fail Unreachable "curl ended with $?"
[ "$status" = 200 ] || fail ModelError "$status: $(jq -r .error.message "$events")"

# A stream is lines; those that begin with "data:" are JSON.
sed -n 's/^data: *//p' "$events" | jq -s '
    (.[] | select(.type == "error") | error(.error.message)),
    [.[] | select(.type == "content_block_delta") | .delta.text // empty] as $pieces
    | {text: ($pieces | join("")), pieces: ($pieces | length),
       stopped: (map(select(.type == "message_delta"))[-1].delta.stop_reason // "cut off")}
' > /io/output.json || fail ModelError "the stream ended with an error"
