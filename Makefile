# Everything a developer runs. `make help` lists it.

PYTHON ?= python3
VENV := .venv
SITE_VENV := .venv-site
BIN := $(VENV)/bin
# Hashes are of every file that a version has, for all machines: uv pip compile --no-deps --universal --generate-hashes FILE
REQUIREMENTS := $(filter-out requirements/site.txt,$(wildcard requirements/*.txt))
GO_ON_PATH := $(shell command -v go)
# What the program needs; a Go only where there is none. The rest is for `make develop`.
NEEDED := $(patsubst %,requirements/%.txt,runtime build verify docker view kafka $(if $(GO_ON_PATH),,toolchain))
PIP := $(BIN)/python -m pip --disable-pip-version-check
PROTOS := $(wildcard proto/*.proto)
GENERATED := $(PROTOS:proto/%.proto=emulator/rpc/generated/%_pb2.py)
JOBS ?= $(shell nproc)
# More workers of tests than cores, as clusters mostly wait; each costs some seconds before its first test.
WORKERS ?= $(shell expr $(JOBS) \* 2 + 1)
VECTORS ?= tests/conformance/vectors
GALLERY_ERAS := kafka-0.10 kafka-0.11 kafka-3.9 kafka-4.2 kip-966
# Of Apache Kafka, oldest first; a new release is one more.
RELEASES ?= 3.9.1 3.9.2 4.0.2 4.1.2 4.2.0 4.2.1 4.3.1 4.4.0
SOURCES := emulator chaos laststand tests benchmarks proto docs
# Types are checked under the names of imports: laststand has links to emulator and chaos.
PACKAGES := $(filter-out emulator chaos,$(SOURCES))

# Every node of every cluster is a process: without compiled files on disk, each would compile what it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup develop toxiproxy class-archive demo docker-images docker-demo proto format lint types check test mutants simulate tla mutation soak zookeeper-soak quorum-soak agreement conformance wire-conformance clients scenarios smoke suite rewrite docs playground site screenshots gallery min-isr mixed hazards bench clean
.DELETE_ON_ERROR:

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## create .venv from the pinned requirements, generate code, build toxiproxy-server and an archive of Spark's classes
	@$(MAKE) --no-print-directory --jobs=3 proto toxiproxy class-archive

develop: setup $(VENV)/compiled ## set up, with what lint, types and tests need beside

toxiproxy: | $(if $(GO_ON_PATH),$(BIN)/python,$(VENV)/installed)
	@$(BIN)/python -m laststand.emulator.cluster.toxiproxy_build

class-archive: | $(VENV)/installed
	@$(BIN)/python -m laststand.emulator.verification.archive_build

demo: setup ## play "last replica standing" under two protocols and compare what each of them lost
	$(BIN)/laststand run kip-966/last-replica-standing --era kafka-3.9 --era kip-966

docker-images: setup ## build all images of a cluster in containers: nodes, proxies, Spark and Java for verdicts, Prometheus
	docker/build.sh --all

docker-demo: docker-images ## the demo, with every node in a container
	$(BIN)/laststand run kip-966/last-replica-standing --era kafka-3.9 --era kip-966 --driver docker

proto: | $(VENV)/installed ## write proto/*.proto from the core's messages, and generate their Python code
	@$(BIN)/python -m proto.write
	@$(MAKE) --no-print-directory --silent $(GENERATED)

format: develop ## rewrite the sources in the project's format
	$(BIN)/ruff check --fix $(wildcard $(SOURCES))
	$(BIN)/ruff format $(wildcard $(SOURCES))

lint: develop ## check format, style and layers
	$(BIN)/ruff format --check $(wildcard $(SOURCES))
	$(BIN)/ruff check $(wildcard $(SOURCES))
	$(BIN)/lint-imports --cache-dir .import_linter_cache

types: develop ## check types
	$(BIN)/mypy $(wildcard $(PACKAGES))

check: lint types conformance ## lint, types and the fast tests, before each commit
	$(BIN)/python -m pytest -q -n $(JOBS) tests/unit tests/interaction

test: lint types ## everything: what continuous integration runs
	$(BIN)/python -m pytest -q -n $(WORKERS)

mutants: develop ## mutate the core until the fast tests miss it: SINCE=COMMIT for changed files, FILES="..." for some
	$(BIN)/python -m tests.mutants $(if $(SINCE),--since $(SINCE)) $(FILES)

conformance: develop ## run the vectors in VECTORS=DIR against core and storage
	$(BIN)/python -m tests.conformance.run $(VECTORS)

wire-conformance: develop ## play the wire cases in VECTORS=DIR against a cluster: requests and answers of Kafka's own clients
	$(BIN)/python -m tests.wire.run $(if $(filter-out tests/conformance/vectors,$(VECTORS)),$(VECTORS))

clients: develop ## every client of Apache Kafka that can be had here, against processes: Java, Go, Spark, Kafka's tools, a web UI
	$(BIN)/python -m tests.clients.install
	$(BIN)/python -m pytest -q -n $(JOBS) -m "" tests/clients

simulate: setup ## explore 1,000 seeded schedules in virtual time
	$(BIN)/laststand simulate --seeds 1..1000 --jobs $(JOBS)

tla: develop ## have TLC check the models of docs/tla: KIP-966 with all rules, and without each, and play what it finds
	$(BIN)/python -m tests.tla.check

mutation: develop ## switch off each rule in turn until the simulator finds the failure
	$(BIN)/python -m tests.simulation.mutation

scenarios: setup ## play every bundled scenario under each era that it has an expectation for
	$(BIN)/laststand run chaos/scenarios $(if $(DRIVER),--driver $(DRIVER))

smoke: setup ## play the smoke suite on processes
	$(BIN)/laststand run smoke

suite: smoke ## play the smoke suite on processes, and every bundled scenario in virtual time
	$(BIN)/laststand run chaos/scenarios --driver simulator

soak: develop ## what takes hours: unjudged mutants, 100,000 schedules, 100,000 bad frames, TLA+ models, all three judges, all scenarios and 1,010 partitions as processes, an hour in one run, cluster tests 20 times
	$(BIN)/python -m tests.mutants --unjudged
	$(BIN)/laststand simulate --seeds 1..100000 --jobs $(JOBS) --keep-going
	$(BIN)/laststand simulate --seeds 1..5000 --profile segments --jobs $(JOBS) --keep-going
	$(BIN)/python -m tests.tla.check
	$(BIN)/python -m tests.tla.on_processes
	$(BIN)/python -m tests.tla.simulated_runs --seeds 1..175 --jobs $(JOBS)
	$(BIN)/python -m tests.verification.agreement --jobs $(JOBS) --seeds 1..1000
	$(BIN)/python -m tests.independent.compare --jobs $(JOBS) --seeds 1..1000
	runs=$$(mktemp -d) && $(BIN)/laststand run chaos/scenarios --driver simulator --out $$runs && $(BIN)/python -m tests.independent.compare --runs $$runs && rm -rf $$runs
	$(BIN)/python -m pytest -q -n $(JOBS) --hypothesis-profile=soak tests/verification/test_slices.py
	$(BIN)/python -m tests.wire.bad_frames 100000
	$(BIN)/laststand run chaos/scenarios docs/examples/thousand-partitions.yaml
	$(BIN)/laststand fuzz --one-run --duration 1h
	for round in $$(seq 20); do $(BIN)/python -m pytest -q -n $(WORKERS) tests/cluster || exit 1; done

zookeeper-soak: develop ## explore 10,000 schedules of each ZooKeeper era; a finding that no known failure explains fails
	$(BIN)/python -m tests.simulation.zookeeper_soak --jobs $(JOBS)

quorum-soak: develop ## explore 10,000 schedules of the controllers' quorum, and switch off each of its rules until that is found
	$(BIN)/python -m tests.simulation.quorum_soak --jobs $(JOBS)

agreement: develop ## have both judges, the simulator's oracle and verification, judge schedules: SEEDS=1..1000 ERA=NAME
	$(BIN)/python -m tests.verification.agreement --jobs $(JOBS) $(if $(SEEDS),--seeds $(SEEDS)) $(ERA:%=--era %)

rewrite: develop ## rewrite the expected text of the interaction scripts
	$(BIN)/python -m pytest -q tests/interaction --rewrite

docs: develop ## write the pages of docs/ that follow from the program
	$(BIN)/python -m docs.generate

playground: develop ## write the simulator for browsers to build/playground; needs npm, and the network once
	$(BIN)/python -m docs.playground.build build/playground

site: setup $(SITE_VENV)/installed ## write the documents, the gallery and the playground as static pages: build/site/index.html; needs npm, and the network once
	$(BIN)/python -m docs.site.build build/site --mkdocs $(SITE_VENV)/bin/mkdocs

screenshots: develop ## play the demo and take the pictures of README; needs a browser
	rm -rf build/screenshots
	$(BIN)/laststand run kip-966/last-replica-standing --era kafka-3.9 --era kip-966 --out build/screenshots
	$(BIN)/python -m docs.screenshots build/screenshots

gallery: develop ## play each known failure, and every bundled scenario under five eras, in virtual time: build/gallery/index.html
	rm -rf build/gallery
	-$(BIN)/laststand run chaos/scenarios --driver simulator --out build/gallery $(GALLERY_ERAS:%=--era %)
	$(BIN)/python -m docs.gallery build/gallery

min-isr: develop ## measure what each min ISR protects from: docs/min-isr.md, with reports in build/min-isr/index.html
	$(BIN)/python -m docs.min_isr build/min-isr

mixed: develop ## play a fault at each step of a rolling upgrade, and each rule on one node only: docs/mixed.md
	$(BIN)/python -m docs.mixed

hazards: develop ## run the tests of hazards/ on RELEASES="..." of Apache Kafka: docs/hazards-by-release.md; takes an hour
	$(BIN)/python -m docs.hazards_by_release $(RELEASES)

bench: develop ## run all benchmarks, or one: NAME=boot|produce|console|failover|controllers|oracle|events|simulator|pages|playground|suites|kafka|listener|partitions|identity|transactions|group|loading|tap|long-run|oracle-partitions|oracle-cluster
	$(BIN)/python -m benchmarks $(NAME)

clean: ## remove generated code, caches and build output; runs in store/ and .venv stay
	rm -rf build mutants *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	rm -rf spark-warehouse metastore_db derby.log emulator/rpc/generated/*_pb2* $(VENV)/compiled
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed: make PYTHON=...")'
	@echo "making $(VENV)"
	@$(PYTHON) -m venv $(VENV)

# The compatible form of an editable install is a line in a path file; the other is an import hook, which adds 10 ms to
# the start of each process.
$(VENV)/installed: pyproject.toml $(NEEDED) | $(BIN)/python
	@echo "installing the packages of the program; this takes half a minute, and the time to download 550 MB once"
# A wheel is built of PySpark, which is 450 MB: to compress it and expand it again takes longer than all the rest.
	@$(PIP) install --quiet --no-deps --config-settings=--build-option=--compression=stored $(NEEDED:%=-r %)
	@$(PIP) install --quiet --no-deps --no-build-isolation --config-settings editable_mode=compat -e .
	@$(PIP) check
	@touch $@

$(SITE_VENV)/installed: requirements/site.txt
	@echo "installing the generator of the site into $(SITE_VENV)"
	@$(PYTHON) -m venv $(SITE_VENV)
	@$(SITE_VENV)/bin/python -m pip install --disable-pip-version-check --quiet --no-deps -r $<
	@touch $@

$(VENV)/installed-for-development: $(REQUIREMENTS) | $(VENV)/installed
	@echo "installing the packages that lint, types and tests need; this takes up to a minute"
	@$(PIP) install --quiet --no-deps $(REQUIREMENTS:%=-r %)
	@$(PIP) check
	@touch $@

# All that tests import is compiled here: else each of their workers, which begin at once, would compile all of it.
$(VENV)/compiled: $(VENV)/installed-for-development | proto
	@echo "compiling what tests import"
	@$(BIN)/python -m pytest --collect-only -qq > $@ || true

$(GENERATED) &: $(PROTOS) proto/generate.py requirements/build.txt | $(VENV)/installed
	@echo "generating code of proto/"
	@$(BIN)/python proto/generate.py
