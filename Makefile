# The front door. Each target says its steps; the work is done in tools/.
# "make help" lists them.

.PHONY: all build check demo test trainers bench lint sanitize fuzz seeds \
    nth-calls chaos horovod-suite coverage wheel wheel-portable sdist smoke deb \
    aarch64 docs clean help
# The stages share two cores and the folder .venv: one at a time, always.
.NOTPARALLEL:

all: build

build: ## build the library, the programs and the tests (build/release)
	@tools/setup build
	@tools/build release

check: ## unit and conformance tests of build/debug, in under a minute
	@tools/build debug rueda_check
	@tools/run-tests --preset debug --only-c --c-tests '^(unit|conformance)_'

demo: ## install in .venv, then train a small network on two workers
	@tools/setup build python frameworks examples
	@tools/wheel --install
	@tools/demo

test: ## build, install in .venv, and run all tests, of C and of Python
	@tools/setup build python peers launchers frameworks tensorflow jax examples
	@tools/build release
	@tools/wheel --install
	@tools/run-tests --preset release

trainers: ## Lightning, accelerate and the HF Trainer on Rueda; installs them in .venv
	@tools/setup build python frameworks trainers
	@tools/wheel --install
	@.venv/bin/python -m pytest tests/python/test_trainers.py

bench: ## every collective, and PyTorch, beside its peers; as root, hosts too
	@tools/setup build python peers frameworks
	@tools/wheel --install
	@tools/bench

lint: ## format, warnings, clang-tidy, cppcheck, house rules, English, ruff
	@tools/setup build lint
	@tools/lint

sanitize: ## the C tests under ASan with UBSan, then under TSan
	@tools/setup build sanitize
	@tools/sanitize

# A few of its rounds are part of the tests.
ROUNDS = 1000
chaos: ## ROUNDS=1000 elastic jobs in which processes are killed and stopped
	@tools/setup build python
	@tools/wheel --install
	@tools/chaos $(ROUNDS)

# A checkout of Horovod's repository, and more words for the tool.
DIR =
ARGS =
horovod-suite: ## DIR=../horovod ARGS="--tensorflow --np 2": Horovod's own tests
	@test -d "$(DIR)/test" || \
	    { echo "DIR has to be a checkout of Horovod's repository" >&2; exit 2; }
	@tools/setup build python launchers frameworks \
	    $(if $(findstring --tensorflow,$(ARGS)),tensorflow)
	@tools/wheel --install
	@tools/horovod-suite "$(DIR)" $(ARGS)

# For each target; make fuzz SECONDS=60 is shorter.
SECONDS = 300
fuzz: ## hostile bytes for every decoder, SECONDS=300 each, two at a time
	@tools/setup build sanitize
	@tools/fuzz --seconds $(SECONDS)

COUNT = 10000
seeds: ## COUNT=10000 random collectives with faults in the simulator
	@tools/setup build
	@tools/sim-seeds $(COUNT)

nth-calls: ## each system call and allocation of two ranks fails once
	@tools/build debug
	@RUEDA_NTH_CALLS=all build/debug/tests/test_multi_nth_call

coverage: ## line coverage of the C tests; fails under 85 %
	@tools/setup build coverage
	@tools/coverage

wheel: ## build dist/*.whl
	@tools/setup build python
	@tools/wheel

wheel-portable: ## build dist/*.whl for glibc 2.28 and later
	@tools/setup build python portable
	@tools/wheel-portable

sdist: ## pack the sources into dist/*.tar.gz
	@tools/setup python
	@tools/wheel --sdist

smoke: ## try the wheel on every Python from 3.9 on that is here
	@tools/setup build python
	@tools/wheel
	@tools/smoke

deb: ## build Debian packages into build/deb, and use what is in them
	@tools/setup build python deb
	@tools/deb

aarch64: ## build for aarch64, and run tests without shared memory in qemu
	@tools/setup build aarch64
	@tools/aarch64

docs: ## build the site of the documentation (build/site); fails on warnings
	@tools/setup docs
	@tools/docs

clean: ## remove what was built; .venv stays
	rm -rf build dist

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' \
	    Makefile
