# Build, demo and test. Only Go is needed; what `go` downloads, it downloads.
SHELL := /bin/bash
BIN   := bin

.PHONY: help build demo test fuzz soak bench conformance-official clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 24

build: ## both binaries, and the fixture server, static, into bin/
	CGO_ENABLED=0 go build -trimpath -o $(BIN)/ ./cmd/...

demo: build ## one real conversation over stdio, told as a story
	@go run ./scripts/demo -fabro $(BIN)/fabro -example examples/release

test: ## every test, with the race detector
	go vet ./...
	go test -race -timeout 10m ./...
	for module in conformance/realclients conformance/recordclients; do \
		(cd $$module && go vet ./... && go test -race -timeout 10m ./...) || exit 1; \
	done
	cd bench && go vet ./...

FUZZTIME ?= 10m
fuzz: ## each fuzz target for FUZZTIME
	scripts/fuzz.sh $(FUZZTIME)

REQUESTS ?= 1000000
soak: build ## a million requests with cancels, bursts and a slow reader; then the daemon, killed over and over
	go run ./scripts/soak -requests $(REQUESTS) -- $(BIN)/mcp-fixture
	FABRO_LONG=1 go test ./internal/embedded -run 'Killed|Together' -count=1 -timeout 30m

conformance-official: build ## the official suite against the fixture server, where Node is present
	scripts/conformance-official.sh

bench: ## our engine and binary beside their peers, a quarter of an hour
	cd bench && ./run.sh

clean: ## what was built
	rm -rf $(BIN)
