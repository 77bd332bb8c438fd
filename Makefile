# AOD. `make help` lists what there is; the two that matter first are demo and test.

GO      ?= go
# SQLite, translated from C, has no goroutine of its own, nor have the compression and the reading of
# a pattern: watching each of their reads takes half of the time of some tests, and finds nothing.
# What a debugger wants is a seventh of the time to compile, and a sixth of the time to link.
UNRACED := modernc.org/... compress/flate regexp/syntax
RACE    := -race -ldflags=-w -gcflags=all=-dwarf=false $(UNRACED:%=-gcflags='%=-dwarf=false -race=false')
# What runs without the detector is built as the program is, for each way to build compiles all anew.
PLAIN   := CGO_ENABLED=0 GOFLAGS="$(shell $(GO) env GOFLAGS) -trimpath"
# The detector sleeps for a second at the end of each program, unless it is told not to.
export GORACE ?= atexit_sleep_ms=0
# Tests wait for containers a fifth of their time: one package more than there are cores is tested at once.
SLOTS   ?= $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN) + 1 )))
# Most tests of a package wait for the engine or the disk, too.
ATONCE  ?= $(shell echo $$(( 2 * $$(getconf _NPROCESSORS_ONLN) )))
# A container takes 0.4 s of a processor: the tests make about 1,170.
CONTAINERS ?= 1300
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

.PHONY: release
release: ## build a release from the last commit, twice, into dist: programs, packages, images, digests, an SBOM
	@sh scripts/ensure-go.sh
	@sh scripts/release.sh "$$(git describe --tags --always)"

PREFIX ?= /usr/local

.PHONY: install
install: build ## copy bin/aod to PREFIX/bin (PREFIX is /usr/local), or to DESTDIR below that
	install -d "$(DESTDIR)$(PREFIX)/bin"
	install -m 755 bin/aod "$(DESTDIR)$(PREFIX)/bin/aod"

.PHONY: wheel
wheel: ## build the Python library as a wheel, into dist, with Python alone
	@python3 sdk/python/build_wheel.py dist

# What runs in a sandbox beside its program are programs of their own that are embedded
# into aod. The Go tool knows by itself whether they are up to date.
.PHONY: $(INITS)
$(INITS): runtime/initbin/bin/aod-init-linux-%:
	@sh scripts/ensure-go.sh
	@CGO_ENABLED=0 GOOS=linux GOARCH=$* $(GO) build -trimpath -buildvcs=false -ldflags "-s -w -buildid=" -o $@ ./cmd/aod-init

.PHONY: $(LINES)
$(LINES): runtime/initbin/bin/aod-line-linux-%:
	@sh scripts/ensure-go.sh
	@CGO_ENABLED=0 GOOS=linux GOARCH=$* $(GO) build -trimpath -buildvcs=false -ldflags "-s -w -buildid=" -o $@ ./cmd/aod-line

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

# Each wait in a test has a bound of its own. That of a package is for what waits for ever, on the slowest machine.
.PHONY: test
test: base ## run every test, with the race detector, against the real engine
	@sh scripts/ensure-cgo.sh
	@sh scripts/ensure-program.sh chromium chromium "the tests of the page"
	promtool=$$(sh scripts/unpack-program.sh promtool prometheus) && \
		nginx=$$(sh scripts/unpack-program.sh nginx nginx) && caddy=$$(sh scripts/unpack-program.sh caddy caddy) && \
		AOD_TEST_PROMTOOL=$$promtool/promtool AOD_TEST_NGINX=$$nginx/nginx AOD_TEST_CADDY=$$caddy/caddy \
		AOD_TEST_DOCKER=require sh scripts/count-containers.sh $(CONTAINERS) \
		$(GO) test $(RACE) -vet=off -p $(SLOTS) -parallel $(ATONCE) -shuffle=on -timeout 2h ./...
	$(GO) test -C tools/bench $(RACE) -vet=off -shuffle=on ./...
	$(PLAIN) $(GO) test -C tools/sdks -vet=off -shuffle=on ./...
	$(PLAIN) $(GO) test -C tools/openapi -vet=off -shuffle=on ./...

.PHONY: test-short
test-short: init ## run the tests that need no engine
	DOCKER_HOST=unix:///nonexistent.sock $(GO) test -short ./...
	$(GO) test -C tools/bench ./...

# Examples mostly wait, for containers and for packages of Debian: twice as many are run at a time as there are
# cores, those that take longest first. What each prints stays together.
CAPSULES := $(patsubst examples/capsules/%/,capsule-%,$(wildcard examples/capsules/*/))
SCRIPTED := $(patsubst scripts/%.sh,%,$(wildcard scripts/*-examples.sh scripts/*-example.sh))
LONGEST  := au-examples agent-examples foreign-examples capsule-ocr capsule-pdf-text
EXAMPLES := $(LONGEST) $(filter-out $(LONGEST),$(SCRIPTED) $(CAPSULES))
.PHONY: examples $(EXAMPLES)
examples: base ## validate and test every example
	@bin/aod validate --quiet --units examples/au examples/capsules/*
	@$(MAKE) --no-print-directory -j $$(( 2 * $$(getconf _NPROCESSORS_ONLN) )) --output-sync=target $(EXAMPLES)

# An image that several have is built once, for the first of them.
capsule-picture-notes: au-examples
capsule-openai-client: agent-examples
capsule-analyst capsule-research-brief flow-examples: capsule-ocr capsule-pdf-text
capsule-workflow schedule-example: capsule-pdf-text

# Agents whose models are scripts show that repetitions come to the same.
REPEATED := harbour skills

$(CAPSULES): capsule-%:
	@echo "== examples/capsules/$*"
	@bin/aod test --quiet $(if $(filter $*,$(REPEATED)),--repeat 2 --jobs 2) --units examples/au examples/capsules/$*

$(SCRIPTED):
	@sh scripts/$@.sh

# Of what isn't run here, the types are checked, which is ten times as fast as to compile it; `make release`
# compiles for every system.
.PHONY: systems
systems: init ## check the types of all for macOS, with its tests, and of the command for Windows
	$(PLAIN) $(GO) run ./tools/typecheck -tests darwin/arm64 ./...
	$(PLAIN) $(GO) run ./tools/typecheck windows/amd64 ./cmd/aod

.PHONY: lint
lint: init systems ## run the linters (installs golangci-lint when it is missing)
	@$(PLAIN) sh scripts/ensure-lint.sh $(LINTVER)
	$(PLAIN) PATH="$$PATH:$$($(GO) env GOPATH)/bin" $(LINTER) run ./...
	cd tools/bench && $(PLAIN) PATH="$$PATH:$$($(GO) env GOPATH)/bin" $(LINTER) run --disable depguard ./...
	$(GO) mod tidy -diff
	$(GO) mod tidy -C tools/bench -diff
	$(GO) mod tidy -C tools/sdks -diff
	$(GO) mod tidy -C tools/openapi -diff

.PHONY: types
types: ## check the types of the Python library and of the page's modules (installs mypy, tsc from Debian when missing)
	@sh scripts/ensure-program.sh mypy mypy "the types of the Python library"
	cd sdk/python && mypy --python-version 3.11 aod build_wheel.py
	@sh scripts/ensure-program.sh tsc node-typescript "the types of the page's modules"
	tsc --allowJs --checkJs --strict --noEmit --target es2022 --lib es2022,dom,dom.iterable orchestrator/web/static/*.js

PICTURES ?= dist/pictures

.PHONY: pictures
pictures: base ## have Chromium draw every page of the server into PICTURES, light and dark, wide and narrow; page.png is docs/page.png
	@sh scripts/ensure-program.sh chromium chromium "the tests of the page"
	AOD_PICTURES="$(abspath $(PICTURES))" AOD_TEST_DOCKER=require $(PLAIN) $(GO) test -vet=off -count=1 \
		-run 'TestEveryPageInABrowser|TestTheTourOfThePage' ./orchestrator/web

.PHONY: check
check: lint types count test examples ## everything that CI runs
	@sh scripts/check-leaks.sh

.PHONY: bench
bench: base ## time aod beside docker run and the floor, and write docs/performance.md
	$(GO) build -C tools/bench -o ../../bin/bench .
	bin/bench -write docs/performance.md

.PHONY: schedules
schedules: init ## measure 10,000 schedules that idle, and 1,000 that are due in one second
	AOD_CROWD=1 $(GO) test ./orchestrator -run TestACrowdOfSchedules -v -count=1 -timeout 20m

.PHONY: count
count: ## count lines, sizes of files, functions and types, tests and comments; fails above a bound
	@$(GO) run ./tools/count

.PHONY: soak
soak: base ## 200 runs by command, then an hour of 1,000 hostile and good ones by a server: nothing may be left or grow
	@sh scripts/soak.sh $(if $(RUNS),$$(( $(RUNS) / 5 )))
	@sh scripts/soak-server.sh $(RUNS)

.PHONY: flow-load
flow-load: base build ## a map of 1000 beside 8 clients, 1000 questions that are open for five minutes over a kill
	@sh scripts/flow-load.sh

.PHONY: mcp-soak
mcp-soak: base build ## 20 MCP clients that come and go for ten minutes, 2,000 calls (RUNS): nothing may be left or grow
	@sh scripts/mcp-soak.sh $(RUNS)

.PHONY: agent-soak
agent-soak: base build ## 1,000 runs of wrapped agents (RUNS), 200 sessions, 200 applies: nothing may be left or grow
	@sh scripts/session-soak.sh $(RUNS)

.PHONY: loop-soak
loop-soak: base build ## 2,000 runs of agents (RUNS) that ask a model, every tenth cancelled: nothing may be left or grow
	@sh scripts/loop-soak.sh $(RUNS)

.PHONY: kill
kill: base ## kill a server 20 times while it has runs, flows, handoffs and conversations: nothing may be lost or done twice
	AOD_TEST_DOCKER=require AOD_KILLS=20 AOD_TURNS=20 AOD_SCENES=1 $(GO) test $(RACE) -v -timeout 60m -run 'TestNoKill|SurvivesKills|TestATurnSurvives|TestAKilledBackup|TestAKillAtAny' ./cmd/aod ./orchestrator ./orchestrator/servicetest

.PHONY: partition
partition: init ## disturb a server and three workers in 200 rounds of 50 runs, by seeds: no run may be lost, none with effects begun twice
	AOD_PARTITIONS=200 AOD_PARTITION_RUNS=50 AOD_FILE_MIB=100 $(GO) test $(RACE) -v -count=1 -timeout 120m -run 'TestAPartition|TestManyHandoffsOver|TestALargeFileIsCut' ./cmd/aod

.PHONY: swarm
swarm: base image ## follow docs/swarm.md on a Swarm of three engines in network namespaces, as root; drain and update workers under load
	AOD_SWARM=1 $(GO) test -vet=off -v -count=1 -timeout 20m -run TestTheGuideOfASwarm ./docs

# The state before the redesign; or another commit.
OLD ?= b727705

.PHONY: takeover
takeover: base ## kill the server of an older commit (OLD) with work of all kinds, and go on with its home with bin/aod
	old=$$(sh scripts/old-aod.sh $(OLD)) && AOD_OLD="$$old" AOD_NEW="$(CURDIR)/bin/aod" AOD_TEST_DOCKER=require \
		$(PLAIN) $(GO) test -vet=off -v -count=1 -timeout 10m -run TestANewVersionGoesOn ./cmd/aod
	@sh scripts/check-leaks.sh

.PHONY: cuts
cuts: base ## cut a server off from its engine 50 times while it has runs, flows, handoffs, a session: none may fail or begin again
	AOD_TEST_DOCKER=require AOD_CUTS=50 AOD_CUT=10 $(GO) test $(RACE) -v -timeout 60m -run 'TestNoCut|TestRunsOutlive|TestWhatWasTheConnection' ./cmd/aod

.PHONY: long
long: base ## the long forms of tests: each broken unit in its sandboxes, each example on a server and at a worker, tours at a worker, loads, a backup of 10,000 runs
	AOD_EXAMPLES=1 sh scripts/au-examples.sh
	path=$$(sh scripts/unpack-program.sh prometheus prometheus) && AOD_TEST_DOCKER=require AOD_VARIANTS=1 AOD_EXAMPLES=1 AOD_LOAD=500 AOD_RUNS=10000 AOD_DEBIAN=1 PATH="$$path:$$PATH" \
		$(GO) test $(RACE) -v -timeout 60m -run 'InSandboxes|TestRuleBreakers|GiveTheSame|CommandLineAreUnits|CommandLineUsesUnits|TestALoad|TestPagesOf|TestManyStreams|TestTunnels|TestHostileServers|TestManyRunsThrough|TestABurst|TestABackupUnderLoad|TestTheBoard|TestCurlAndGit' ./cmd/aod
	AOD_TEST_DOCKER=require AOD_EXAMPLES=1 AOD_FAR=1 $(GO) test -v -count=1 -timeout 30m -run 'GiveTheSame|ShownWorkAtAWorker' ./cmd/aod ./docs
	AOD_TEST_DOCKER=require AOD_BOMBS=20 $(GO) test $(RACE) -v -timeout 60m -run 'Bomb|MemoryHog|ProcessLimit' ./runtime/pid1
	AOD_TEST_DOCKER=require AOD_SCHEMAS=30000 $(GO) test -run TestLibrary ./sdk

.PHONY: powerloss
powerloss: base ## lose power at 30 moments of a server's work: nothing that was told may be untrue after it
	AOD_TEST_DOCKER=require AOD_MOMENTS=30 $(GO) test $(RACE) -v -timeout 30m -run ALossOfPower ./cmd/aod

.PHONY: disk
disk: base ## fill the disk below a server 20 times, and have it fail 40 times: no accepted run may be lost
	AOD_TEST_DOCKER=require AOD_FULL=20 AOD_ERRORS=40 $(GO) test $(RACE) -v -timeout 30m -run 'TestAFullDisk|TestAnErrorOfTheDisk|DamagedDatabase|TestADatabaseThatIsDamaged' ./cmd/aod

.PHONY: test-engines
test-engines: base ## the tables of sandbox, hostile programs and handoffs on Debian's Docker 26.1 and Podman 4.3, beside this engine
	@sh scripts/test-engines.sh $(ENGINES)

.PHONY: fuzz
fuzz: init ## fuzz every parser of foreign bytes for a little while each
	@sh scripts/fuzz.sh $(FUZZTIME)

.PHONY: site
site: ## make a site of docs with index and search, in dist/site (fetches Hugo and builds it, once)
	@sh scripts/ensure-go.sh
	@sh scripts/site.sh

.PHONY: clean
clean: ## remove what was built here
	rm -rf bin dist aod-output $(INITS) $(LINES)
