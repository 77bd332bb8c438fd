# AOD. `make help` lists what there is; the two that matter first are demo and test.

GO      ?= go
LINTER  ?= golangci-lint
LINTVER := v2.15.0
ARCHES  := amd64 arm64
INITS   := $(ARCHES:%=runtime/initbin/bin/aod-init-linux-%)
LINES   := $(ARCHES:%=runtime/initbin/bin/aod-line-linux-%)
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

.PHONY: demo
demo: build base ## build aod and the base image, run csv-report: prints a table's statistics, writes chart.svg
	@sh scripts/demo.sh

.PHONY: build
build: $(INITS) $(LINES) ## build the one static binary, bin/aod
	@sh scripts/ensure-go.sh
	@mkdir -p bin
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o bin/aod ./cmd/aod

PREFIX ?= /usr/local

.PHONY: install
install: build ## copy bin/aod to PREFIX/bin (PREFIX is /usr/local), or to DESTDIR below that
	install -d "$(DESTDIR)$(PREFIX)/bin"
	install -m 755 bin/aod "$(DESTDIR)$(PREFIX)/bin/aod"

# What runs in a sandbox beside its program are programs of their own that are embedded
# into aod. The Go tool knows by itself whether they are up to date.
.PHONY: $(INITS)
$(INITS): runtime/initbin/bin/aod-init-linux-%:
	@sh scripts/ensure-go.sh
	@CGO_ENABLED=0 GOOS=linux GOARCH=$* $(GO) build -trimpath -ldflags "-s -w -buildid=" -o $@ ./cmd/aod-init

.PHONY: $(LINES)
$(LINES): runtime/initbin/bin/aod-line-linux-%:
	@sh scripts/ensure-go.sh
	@CGO_ENABLED=0 GOOS=linux GOARCH=$* $(GO) build -trimpath -ldflags "-s -w -buildid=" -o $@ ./cmd/aod-line

.PHONY: init
init: $(INITS) $(LINES) ## build what runs in sandboxes, for every architecture

.PHONY: engine
engine: ## make sure that a Docker engine answers
	@sh scripts/ensure-engine.sh

.PHONY: base
base: build engine ## make the base image aod/base, and Debian below it
	@sh scripts/bootstrap-debian.sh
	@bin/aod build base

.PHONY: image
image: build ## build the image aod/server, which holds bin/aod and nothing else
	docker build -t aod/server --label org.opencontainers.image.version=$(VERSION) .

.PHONY: test
test: base ## run every test, with the race detector, against the real engine
	@sh scripts/ensure-cgo.sh
	AOD_TEST_DOCKER=require $(GO) test -race -shuffle=on -timeout 20m ./...
	$(GO) test -C tools/bench -race -shuffle=on ./...

.PHONY: test-short
test-short: init ## run the tests that need no engine
	DOCKER_HOST=unix:///nonexistent.sock $(GO) test -short ./...
	$(GO) test -C tools/bench ./...

.PHONY: examples
examples: base ## validate and test every example
	bin/aod validate --units examples/au examples/capsules/*
	@for dir in examples/capsules/*/; do echo "== $$dir"; bin/aod test --quiet --units examples/au $$dir || exit 1; done
	@sh scripts/au-examples.sh
	@sh scripts/remote-example.sh
	@sh scripts/foreign-examples.sh

.PHONY: lint
lint: init ## run the linters (installs golangci-lint when it is missing)
	@sh scripts/ensure-lint.sh $(LINTVER)
	PATH="$$PATH:$$($(GO) env GOPATH)/bin" $(LINTER) run ./...
	cd tools/bench && PATH="$$PATH:$$($(GO) env GOPATH)/bin" $(LINTER) run --disable depguard ./...
	$(GO) mod tidy -diff
	$(GO) mod tidy -C tools/bench -diff

.PHONY: check
check: lint test examples ## everything that CI runs
	@sh scripts/check-leaks.sh

.PHONY: bench
bench: base ## time aod beside docker run and the floor, and write docs/performance.md
	$(GO) build -C tools/bench -o ../../bin/bench .
	bin/bench -write docs/performance.md

.PHONY: count
count: ## count lines, sizes of files and functions, tests and comments
	@$(GO) run ./tools/count

.PHONY: soak
soak: base ## 200 runs in a row, some killed, some failing: nothing may be left
	@sh scripts/soak.sh $(RUNS)

.PHONY: fuzz
fuzz: init ## fuzz every parser of foreign bytes for a little while each
	@sh scripts/fuzz.sh $(FUZZTIME)

.PHONY: clean
clean: ## remove what was built here
	rm -rf bin aod-output $(INITS) $(LINES)
