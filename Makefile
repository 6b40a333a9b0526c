# Fieldmesh. `make` alone lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# scripts/setup may put a Go toolchain and tools into .tools; daemons live in sbin.
export PATH := $(CURDIR)/.tools/go/bin:$(CURDIR)/.tools/bin:$(PATH):/usr/local/go/bin:/usr/sbin:/sbin
export GOTOOLCHAIN ?= auto
export CGO_ENABLED := 0
# A checkout that belongs to another user must build too; the commit comes from below.
# The agent and its callers speak HTTP/1.1 alone: HTTP/2 would be code that nothing calls, half a megabyte of it.
TAGS := nethttpomithttp2
# With -trimpath throughout, programs and tests share what is compiled, and so do checkouts in several folders.
export GOFLAGS := $(filter-out -buildvcs=% -trimpath% -tags=%,$(GOFLAGS)) -buildvcs=false -trimpath -tags=$(TAGS)

VERSION := 0.1.0
COMMIT = $(shell git -c safe.directory='*' rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
DATE = $(shell git -c safe.directory='*' log -1 --format=%cI 2>/dev/null)
STAMP = -X fieldmesh.dev/fieldmesh/internal/version.Version=$(VERSION) -X fieldmesh.dev/fieldmesh/internal/version.Commit=$(COMMIT) -X fieldmesh.dev/fieldmesh/internal/version.Date=$(DATE)
LDFLAGS = -s -w -buildid= $(STAMP)
BUILD = go build -ldflags '$(LDFLAGS)'
# What the app starts on a phone: its node's programs, with the notices of their licences.
PHONE = bin/phone
APK = android-app/ui/target/fieldmesh$(if $(FIELDMESH_KEYSTORE),,-unsigned).apk
ROOT = $(if $(filter 0,$(shell id -u)),,sudo)
SUITES = go run ./test/suites
OWN_GO = $$(find . -path ./.tools -prune -o -name '*.go' -print)

.PHONY: help rehearse kernel test test-all check build app phone app-test app-verify bench soak dist packages site clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-9s %s\n", $$1, $$2}' Makefile

rehearse: ## install what a rehearsal needs, build, rehearse campaigns/velocity.yaml
	@scripts/setup rehearse
	@$(MAKE) build
	@$(if $(ROOT),echo 'The rehearsal makes network namespaces and interfaces; that needs root.' >&2;) $(ROOT) bin/fieldmesh rehearse campaigns/velocity.yaml

kernel: ## build the kernel for rehearsals in virtual time (minutes, once)
	@scripts/setup kernel
	@rehearsal/kernel/build

test: ## install what the tests need, run them (needs root)
	@scripts/setup test
	@$(MAKE) check
	@$(MAKE) build
	@$(SUITES)

test-all: ## `make test` and the tests that it leaves out (an hour, needs root)
	@scripts/setup all
	@$(MAKE) kernel
	@packaging/iperf3/build aarch64
	@packaging/iperf3/build x86_64
	@$(MAKE) check
	@$(MAKE) build
	@$(SUITES) all

# Unit tests that are parallel mostly wait. A garbage collector that waits for more
# garbage saves a third of staticcheck's time and a tenth of the tests'.
check: ## format, vet, lint, prose and unit tests: quick, unprivileged, offline once set up
	@scripts/setup check
	@bad=$$(gofmt -l $(OWN_GO)); [ -z "$$bad" ] || { printf 'not formatted by gofmt:\n%s\n' "$$bad" >&2; exit 1; }
	@for s in scripts/setup scripts/site scripts/guest scripts/iperf3 rehearsal/kernel/build packaging/build packaging/sign packaging/iperf3/build android-app/maven android-app/agent-test android-app/ui/packaging/shrunk .ci/run; do bash -n $$s; done
	go vet -tags e2e,guest,$(TAGS) ./...
	GOGC=400 staticcheck -tags e2e,guest,$(TAGS) ./...
	@dead=$$(deadcode -test -tags e2e,guest,$(TAGS) ./...); [ -z "$$dead" ] || { printf 'called by nothing; delete:\n%s\n' "$$dead" >&2; exit 1; }
	GOGC=200 go test -vet=off -p 3 -parallel 8 ./...

build: ## build bin/fieldmesh and bin/fieldmesh-agent
	@mkdir -p bin
	$(BUILD) -o bin/ ./cmd/fieldmesh ./cmd/fieldmesh-agent

app: ## build the phone app: android-app/ui/target/fieldmesh.apk
	@scripts/setup app
	@$(MAKE) phone
	FIELDMESH_PHONE='$(CURDIR)/$(PHONE)' android-app/maven -DskipTests package

phone:
	@rm -rf $(PHONE)
	@mkdir -p $(PHONE)
	GOOS=android GOARCH=arm64 $(BUILD) -o $(PHONE)/libfieldmesh_agent.so ./cmd/fieldmesh-agent
	@iperf3=$$(packaging/iperf3/build aarch64) && cp "$${iperf3%/*}"/* $(PHONE)/
	@packaging/notices ./cmd/fieldmesh-agent >>$(PHONE)/NOTICES

app-test: ## test the phone app, its screens, and its client with real agents (needs root)
	@scripts/setup test
	@$(MAKE) build
	@$(MAKE) app-verify

# The agents' tests run as root, with the artifacts that the others fetched. With MAVEN_OPTIONS=-Pall the others run on what
# R8 makes as well, and some on every version of Android that differs.
app-verify:
	android-app/maven $(MAVEN_OPTIONS) verify
	$(ROOT) android-app/agent-test bin/fieldmesh bin/fieldmesh-agent -Dmaven.repo.local='$(CURDIR)/android-app/.repository'

bench: ## print the goals of speed and size, each beside its reference (needs root)
	@scripts/setup test
	@$(MAKE) build
	@$(SUITES) bench

soak: ## the long form of the tests that cut and kill (hours, needs root)
	@scripts/setup all
	@scripts/iperf3
	@$(MAKE) kernel
	@$(MAKE) build
	FIELDMESH_SOAK=1 go test -run Soak ./controller/run/engine
	@$(SUITES) soak

# The kernel for virtual time is built on x86-64 only; elsewhere the rest is made.
# The app is signed with the key of FIELDMESH_KEYSTORE; without one it is handed out unsigned.
dist: ## programs for linux amd64, arm64 and armv7, .deb and Termux packages, the app, checksums: in dist/
	@scripts/setup check
	@$(MAKE) app
	@if [ "$$(uname -m)" = x86_64 ]; then $(MAKE) kernel; else echo 'dist: no package of the kernel, which x86-64 builds' >&2; fi
	@$(MAKE) packages KERNEL="$$([ "$$(uname -m)" != x86_64 ] || rehearsal/kernel/build)" APP='$(APK)' PROGRAMS='$(PHONE)'

packages:
	@LDFLAGS='$(LDFLAGS)' VERSION='$(VERSION)' DATE='$(or $(DATE),1970-01-01T00:00:00Z)' ARCHES='$(ARCHES)' KERNEL='$(KERNEL)' APP='$(APP)' PROGRAMS='$(PROGRAMS)' packaging/build

site: ## build the field guides into site/, which opens offline
	@scripts/setup site
	@scripts/site site
	@echo site/index.html

clean: ## remove what was built; installed tools in .tools stay
	rm -rf bin dist site
