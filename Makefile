# What runs or measures Quittance does its own set-up: `make demo` and `make test` work
# on a fresh machine. Go comes first in the path from .cache when script/setup put it there.
export PATH := $(CURDIR)/.cache/go/bin:$(PATH)
export GOTOOLCHAIN ?= auto

.DEFAULT_GOAL := help

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 15

setup: ## Install what is missing: Go, PostgreSQL, a C compiler for the race detector
	@script/setup test

demo: ## See it work: an agent dies after paying and does not pay twice. In a terminal you decide
	@script/setup
	@if [ -t 0 ] && [ -t 1 ]; then go run ./cmd/quittance demo; else go run ./cmd/quittance demo --scripted; fi

demo-scripted: ## The same with no hands: four parts, each checked against the bank's ledger
	@script/setup
	go run ./cmd/quittance demo --scripted

demo-refund: ## See a payer who paid twice on a local chain get back what is owed, and the receipt say so
	@script/setup test
	go test -count=1 -v -run TheNastyOneFromEndToEnd ./internal/crash

test: ## Run every check and test
	@script/setup test
	@script/test

fuzz: ## Send every parser what nobody would write, 10 s each (FOR=5m)
	@script/setup
	@script/fuzz $(FOR)

kills: ## Kill each example agent at random, 200 times at each bank (KILLS=n)
	@script/setup test
	QUITTANCE_TEST_KILLS=$(or $(KILLS),200) go test -count=1 -timeout 60m -run ExampleAgents -v ./internal/crash

torture: ## Kill, stop and cut off everything by a seed's plan, and check the banks' books (KILLS=n SEED=n)
	@script/setup test
	go run ./cmd/torture -kills $(or $(KILLS),1000) $(if $(SEED),-seed $(SEED)) -runs $(or $(RUNS),48) -fates $(or $(FATES),14) -report .cache/torture.json

torture-rounds: ## Play three small rounds of the torture, and one with each guard switched off
	@script/setup test
	go test -count=1 -timeout 30m -tags rounds -v ./cmd/torture

rolling: ## Run the program of before the newest migrations and this one on one database
	@script/setup test
	@script/rolling

bench: ## Measure begin and finish against the bare commit and the hand-written ceiling
	@script/setup
	go run ./cmd/bench

bench-desk: ## Measure the pages over a million effects and a million refunds, and two hundred watchers
	@script/setup test
	go test -run '^$$' -bench 'Desk|Watchers|Money' -benchtime 100x -timeout 60m ./handlers/desk

build: ## Build bin/quittance
	go build -o bin/quittance ./cmd/quittance

serve: ## Run the server on an embedded database in .cache
	@script/setup
	@$(MAKE) --no-print-directory build
	bin/quittance serve --data $(or $(DATA),.cache/data)

generate: ## Regenerate the code of the templ pages
	go tool templ generate

fmt: ## Format Go and templ files
	go fmt ./...
	go tool templ fmt .

lint: ## Check formatting, vet and staticcheck
	@script/lint

vuln: ## Look for known vulnerabilities in the dependencies (needs the network)
	go run golang.org/x/vuln/cmd/govulncheck@latest ./...

.PHONY: help setup demo demo-scripted demo-refund test fuzz kills torture torture-rounds rolling bench bench-desk build serve generate fmt lint vuln
