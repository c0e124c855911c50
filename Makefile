# Targets from a fresh clone: `make demo`, `make test` and `make docs`.  Each makes the environment.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DOCS_STAMP := $(VENV)/.installed-docs

# Python files are compiled once, when they are first imported: tests begin hundreds of processes, and
# most of what pip installs is never imported.
unexport PYTHONDONTWRITEBYTECODE
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal

.PHONY: demo lint types layers warm check test test-thorough test-bounds coverage-kernels docs library proofs check-proved package verify.pyz browser walks clean

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(STAMP)

$(DOCS_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt -e '.[docs]'
	touch $(DOCS_STAMP)

demo: $(STAMP)
	mkdir -p demo-out
	$(BIN)/kvopt warmup >demo-out/warmup.txt 2>&1 &  # so that the next command finds machine code
	$(BIN)/kvopt generate arrival-1 --n 8 --seed 3 -o demo-out/arrival-1.json
	$(BIN)/kvopt solve demo-out/arrival-1.json -o demo-out/schedule.json
	$(BIN)/kvopt check demo-out/arrival-1.json demo-out/schedule.json
	$(BIN)/kvopt certify demo-out/arrival-1.json --policy mc-sf --policy svf -o demo-out/certificate.json
	$(BIN)/kvopt verify demo-out/certificate.json
	$(BIN)/kvopt plot demo-out/arrival-1.json --schedule demo-out/schedule.json -o demo-out/schedule.png
	$(BIN)/kvopt solve models/example-3.1.json models/example-ec.1.json demo-out/arrival-1.json
	$(BIN)/kvopt study smoke --limit 1 --out demo-out/study
	$(BIN)/kvopt report demo-out/study

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

layers: $(STAMP)
	$(BIN)/lint-imports

# Machine code, once and on two cores: else both processes of the tests compile the same.
warm: $(STAMP)
	$(BIN)/kvopt warmup

# What to run after every change: a minute and a half.
check: lint types layers
	$(PYTEST) -m 'not slow and not thorough'

test: lint types warm
	$(PYTEST)

# Many other random examples, and what takes minutes: for the night.
test-thorough: lint types layers
	HYPOTHESIS_PROFILE=thorough $(PYTEST) -m ''

# Compiled loops with every index checked.  What is kept on disk does not know of the switch, so
# this has a folder of its own, empty at first: else code without checks would run.
CHECKED := $(VENV)/checked-kernels
KERNEL_TESTS := tests/kernels tests/bounds tests/heuristics tests/search
test-bounds: $(STAMP)
	rm -rf $(CHECKED)
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(abspath $(CHECKED)) $(PYTEST) $(KERNEL_TESTS)

# Kernels as plain Python, where measures of coverage see them, on cases that are small enough.
KERNELS = $(shell grep -rlE --include='*.py' '^@(compiled|steering|borrowing|inlined)$$' kvopt | paste -sd, -)
coverage-kernels: $(STAMP)
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m coverage run --include=$(KERNELS) \
		-m pytest -m interpreted $(KERNEL_TESTS)
	$(BIN)/python -m coverage report --fail-under=90

docs: $(DOCS_STAMP)
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

# The table and the page of the instance library, from what is known.
library: $(STAMP)
	$(BIN)/python instances/extend.py --pages

# The theorems of proofs/ and the checker that is extracted from them; needs Coq and OCaml.
proofs:
	$(MAKE) --no-print-directory -C proofs

# Certificates, by `kvopt.verify` and by that checker: `make check-proved FILES="a.json b.json"`.
check-proved: proofs
	$(PYTHON) proofs/check.py $(FILES)

# Sdist and wheel, each used as a stranger would: the wheel alone, the sdist with its own tests.
package:
	$(PYTHON) tests/walks/package.py dist

# The checker as one file that needs Python and nothing else: `python verify.pyz CERTIFICATE`.
OUT ?= verify.pyz
PYZ ?= build/pyz
verify.pyz:
	rm -rf $(PYZ) && mkdir -p $(PYZ)/kvopt/verify
	cp kvopt/verify/*.py $(PYZ)/kvopt/verify
	touch $(PYZ)/kvopt/__init__.py
	$(PYTHON) -m zipapp $(PYZ) -m "kvopt.verify.__main__:main" -o $(OUT)

# The same checker for browsers, beside instances/check.html: Pyodide from npm, which is not committed.
# Then `python -m http.server -d instances` serves http://localhost:8000/check.html.
PYODIDE := 314.0.7
PYODIDE_SHA256 := 66b7949e5a0cba2250b586d7e368bf12fb482800748d182c4618254b685ffaa0
PYODIDE_FILES := $(addprefix package/,pyodide.mjs pyodide.asm.mjs pyodide.asm.wasm pyodide-lock.json python_stdlib.zip)
browser: instances/pyodide/$(PYODIDE)
	$(MAKE) --no-print-directory verify.pyz OUT=instances/verify.pyz
instances/pyodide/$(PYODIDE):
	rm -rf build/pyodide && mkdir -p build/pyodide instances/pyodide
	cd build/pyodide && npm pack --silent pyodide@$(PYODIDE)
	echo "$(PYODIDE_SHA256)  build/pyodide/pyodide-$(PYODIDE).tgz" | sha256sum --check --quiet
	tar -xzf build/pyodide/pyodide-$(PYODIDE).tgz -C instances/pyodide --strip-components=1 $(PYODIDE_FILES)
	touch $@

# The first hours of a researcher and of an engineer, from an installed wheel, with times.
walks:
	$(PYTHON) tests/walks/first_hours.py

clean:
	rm -rf $(VENV) demo-out dist docs/_build proofs/build instances/pyodide instances/verify.pyz
