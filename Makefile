# Build, demo and test. Only Go is needed; what `go` downloads, it downloads.
SHELL := /bin/bash
BIN   := bin

.PHONY: build test

build: ## both binaries into bin/
	go build -trimpath -o $(BIN)/ ./cmd/...

test: ## every test, with the race detector
	go vet ./...
	go test -race ./...
