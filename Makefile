# Build, demo and test. Only Go is needed; what `go` downloads, it downloads.
SHELL := /bin/bash
BIN   := bin

.PHONY: help build demo test fuzz soak bench conformance-official clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 24

build: ## both binaries, and the fixture server, into bin/
	go build -trimpath -o $(BIN)/ ./cmd/...

demo: build ## one real conversation over stdio, told as a story
	@go run ./scripts/demo -fabro $(BIN)/fabro -example examples/release

test: ## every test, with the race detector
	go vet ./...
	go test -race -timeout 10m ./...
	cd conformance/realclients && go vet ./... && go test -race -timeout 10m ./...
	cd bench && go vet ./...

bench: ## our engine and binary beside their peers, a quarter of an hour
	cd bench && ./run.sh

clean: ## what was built
	rm -rf $(BIN)
