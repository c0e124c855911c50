# Targets from a fresh clone: `make demo`, `make test` and `make docs`.  Each makes the environment.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DOCS_STAMP := $(VENV)/.installed-docs

.PHONY: demo test docs clean

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(STAMP)

$(DOCS_STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	touch $(DOCS_STAMP)

demo: $(STAMP)
	mkdir -p demo-out
	$(BIN)/kvopt generate arrival-1 --n 8 --seed 3 -o demo-out/arrival-1.json
	$(BIN)/kvopt solve demo-out/arrival-1.json -o demo-out/schedule.json
	$(BIN)/kvopt check demo-out/arrival-1.json demo-out/schedule.json
	$(BIN)/kvopt certify demo-out/arrival-1.json --policy mc-sf --policy svf -o demo-out/certificate.json
	$(BIN)/kvopt verify demo-out/certificate.json
	$(BIN)/kvopt plot demo-out/arrival-1.json --schedule demo-out/schedule.json -o demo-out/schedule.png
	$(BIN)/kvopt solve models/example-3.1.json models/example-ec.1.json demo-out/arrival-1.json
	$(BIN)/kvopt study smoke --limit 1 --out demo-out/study
	$(BIN)/kvopt report demo-out/study

test: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2

docs: $(DOCS_STAMP)
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

clean:
	rm -rf $(VENV) demo-out docs/_build
