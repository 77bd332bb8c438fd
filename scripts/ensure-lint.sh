#!/bin/sh
# Installs golangci-lint of the given version where it is missing.
set -eu
bin=$(go env GOPATH)/bin/golangci-lint
if "$bin" version 2>/dev/null | grep -q "${1#v}"; then
	exit 0
fi
echo "installing golangci-lint $1 (a minute or two, once) ..."
go install "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$1"
