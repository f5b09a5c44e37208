# The commands of this project. Each does all it needs, and is quick when there is nothing to do.
SHELL := /bin/bash
.DEFAULT_GOAL := help
JOBS ?= $(shell nproc)

.PHONY: help build demo test chaos sanitize clang clean

help:  ## this list
	@echo "Tenure: make TARGET"
	@sed -n 's/^\([a-z]*\):.*## /  \1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 12

build:  ## the tenure program, in build/release/bin
	@tools/bootstrap --with demo
	@cmake --preset release --log-level=WARNING >/dev/null
	@cmake --build --preset release -j $(JOBS)

demo: build  ## real processes hand partitions over, are killed and frozen; ends PASS
	@build/release/bin/tenure demo $(DEMO)

test:  ## everything, on a real broker too; arguments for ctest in CTEST
	@tools/bootstrap --with test
	@cmake --preset dev --log-level=WARNING >/dev/null
	@cmake --build --preset dev -j $(JOBS) --target all all_verify_interface_header_sets
	@ctest --preset dev -j $(JOBS) --output-on-failure $(CTEST)

chaos:  ## the long run: members join, leave, are killed and frozen; arguments in CHAOS
	@tools/bootstrap --with test
	@cmake --preset release --log-level=WARNING >/dev/null
	@cmake --build --preset release -j $(JOBS)
	@cmake --preset dev --log-level=WARNING >/dev/null
	@cmake --build --preset dev -j $(JOBS) --target log_tool
	@tests/e2e/chaos $(CHAOS)

sanitize:  ## unit to mock-cluster tests under ASan + UBSan, then under TSan
	@tools/bootstrap --with test
	@for preset in asan-ubsan tsan; do \
	  cmake --preset $$preset --log-level=WARNING >/dev/null && \
	  cmake --build --preset $$preset -j $(JOBS) && \
	  ctest --preset $$preset -j $(JOBS) -L 'unit|property|contract|kafka|tools' \
	    || exit 1; done

clang:  ## builds all with clang 19 and its thread-safety analysis
	@tools/bootstrap --with all
	@cmake --preset clang --log-level=WARNING >/dev/null
	@cmake --build --preset clang -j $(JOBS)

clean:  ## the build trees; the cache of tools/bootstrap stays
	@rm -rf build
