"""Dockerfile, compose file, workflows: they parse, and name nothing that does not exist."""

import hashlib
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import yaml
from binaries import ROOT, coordinator_flags, source, unknown_flags, variables

COMPOSE = yaml.safe_load(source("deploy/compose.yaml"))
WORKFLOWS = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / "deploy/github").glob("*.yml"))}


class Compose(unittest.TestCase):
    def ours(self):
        return {name: service for name, service in COMPOSE["services"].items() if "build" in service}

    def test_commands_and_variables_exist(self):
        self.assertEqual(set(self.ours()), {"token", "migrate", "coordinator", "worker", "sim", "submit"})
        for name, service in self.ours().items():
            if service["command"][0] == "sh":
                continue
            self.assertEqual(unknown_flags(service["command"]), set(), name)
            self.assertEqual(set(service["environment"]) - variables(), set(), name)
            test = service["healthcheck"].get("test")
            if test:
                self.assertEqual(unknown_flags(test[1:]), set(), name)

    def test_our_containers_can_do_little(self):
        for name, service in self.ours().items():
            self.assertTrue(service["read_only"], name)
            self.assertEqual(service["cap_drop"], ["ALL"], name)
            self.assertRegex(service["user"], r"^[1-9]\d*:[1-9]\d*$")

    def test_everything_waits_for_what_it_needs(self):
        for name, service in self.ours().items():
            for other, how in service.get("depends_on", {}).items():
                one_shot = other in ("token", "migrate")
                wanted = "service_completed_successfully" if one_shot else "service_healthy"
                self.assertEqual(how["condition"], wanted, f"{name} on {other}")
                if not one_shot:
                    self.assertIn("test", COMPOSE["services"][other]["healthcheck"], other)

    def test_ports_are_loopback_and_images_have_tags(self):
        for name, service in COMPOSE["services"].items():
            for port in service.get("ports", []):
                self.assertTrue(port.startswith("127.0.0.1:"), name)
            self.assertNotRegex(service["image"], r":latest$")
            self.assertIn(":", service["image"])

    def test_a_password_that_everybody_knows_opens_nothing_beyond_an_internal_network(self):
        self.assertTrue(COMPOSE["networks"]["store"]["internal"])
        services = COMPOSE["services"].items()
        known = [name for name, service in services if any("PASS" in key for key in service.get("environment") or {})]
        self.assertEqual(set(known), {"postgres", "rabbitmq"})
        for name in known:
            self.assertEqual(COMPOSE["services"][name]["networks"], ["store"], name)
            self.assertNotIn("ports", COMPOSE["services"][name], name)
        # the token of addresses that are published is drawn, never written here
        text = source("deploy/compose.yaml")
        self.assertNotRegex(text, r"TOKEN:-[^}]")
        self.assertIn("/dev/urandom", text)
        for name, service in self.ours().items():
            if service.get("ports"):
                self.assertIn("BENCH_HTTP_TOKEN_FILE", service["environment"], name)
                self.assertIn("token", service["depends_on"], name)
        # who mounts the token's folder before it is made would own it
        for name, service in services:
            if any(volume.startswith("token:") for volume in service.get("volumes", [])) and name not in ("token", "submit"):
                self.assertIn("token", service["depends_on"], name)
        grafana = COMPOSE["services"]["grafana"]["environment"]
        self.assertEqual((grafana["GF_AUTH_DISABLE_LOGIN_FORM"], grafana["GF_AUTH_BASIC_ENABLED"]), ("true", "false"))

    def test_workers_may_drain(self):
        worker = COMPOSE["services"]["worker"]
        drain = next(int(word.split("=")[1]) for word in worker["command"] if word.startswith("--drain="))
        self.assertEqual(worker["stop_grace_period"], f"{drain + 30}s")
        self.assertEqual(worker["deploy"]["replicas"], 2)


class Image(unittest.TestCase):
    text = source("deploy/Dockerfile")

    def test_no_root_no_frontend_no_downloads(self):
        self.assertRegex(self.text, r"\nUSER 65532:65532\n")
        self.assertNotRegex(self.text, r"(?m)^# *syntax=")
        for word in ("apt-get", "curl", "wget", "rustup"):
            self.assertNotRegex(self.text, rf"(?m)^[^#\n]*\b{word}\b")

    def test_the_toolchain_is_the_repositorys(self):
        channel = re.search(r'channel = "([\d.]+)"', source("rust-toolchain.toml"))[1]
        self.assertIn(f"rust:{channel}-bookworm", self.text)

    def test_the_three_binaries_are_in_it(self):
        for name in ("bench-coord", "bench-worker", "bench-sim"):
            self.assertIn(f"--package {name}", self.text)
            self.assertIn(f'/{name}" ', self.text.replace("\n", " "))
        health = re.search(r"HEALTHCHECK.*CMD (\[.*\])", self.text)[1]
        self.assertEqual(unknown_flags(yaml.safe_load(health)), set())

    def test_version_is_the_workspaces(self):
        version = re.search(r'\[workspace.package\]\nversion = "([^"]+)"', source("Cargo.toml"))[1]
        self.assertIn(f"ARG VERSION={version}\n", self.text)
        self.assertIn(f'appVersion: "{version}"', source("helm/bench-coord/Chart.yaml"))

    def test_the_context_has_every_member_of_the_workspace(self):
        allowed = set(re.findall(r"(?m)^!(\S+)", source(".dockerignore")))
        members = re.search(r"members = \[(.*?)\]", source("Cargo.toml"))[1]
        for member in re.findall(r'"([^"]+)"', members):
            self.assertIn(member.split("/")[0], allowed)
        # what sources outside of themselves include
        for path in ROOT.glob("*/src/**/*.rs"):
            for found in re.findall(r'include_(?:str|bytes)!\(\s*"((?:\.\./)+[^"]+)"', path.read_text(encoding="utf-8")):
                top = (path.parent / found).resolve().relative_to(ROOT).parts[0]
                self.assertIn(top, allowed, f"{path} includes {found}")


class Pinned(unittest.TestCase):
    """What is fetched is named by what it is, so that nobody can put something else in its place."""

    # images by tag alone, and so by what somebody can move: `scripts/pin-images.sh` takes from here what it writes a digest for
    TAGS = frozenset([
    ])
    PIN = r"[a-z][\w./-]*(?::[\w.-]+)?@sha256:[0-9a-f]{64}"

    def test_actions_are_named_by_commit(self):
        ours = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / ".github/workflows").glob("*.yml")}
        self.assertIn("BENCH_ADVISORIES: required", ours["release.yml"])
        workflows = [*ours.values(), *WORKFLOWS.values()]
        for line in [line for text in workflows for line in text.splitlines() if "uses:" in line]:
            self.assertRegex(line, r"uses: [\w./-]+@[0-9a-f]{40} # v[\d.]+$")

    def test_every_kind_of_input_is_fuzzed_every_week(self):
        workflow = yaml.safe_load(source(".github/workflows/fuzz.yml"))
        named = workflow["jobs"]["fuzz"]["strategy"]["matrix"]["target"]
        self.assertEqual(named, re.findall(r'Target \{ name: "(\w+)"', source("crates/fuzz/src/targets.rs")))

    def test_images_are_named_by_digest_or_listed(self):
        images = [service["image"] for service in COMPOSE["services"].values() if "build" not in service]
        images += re.findall(r"(?m)^ARG \w+_IMAGE=(\S+)", source("deploy/Dockerfile"))
        stages = set(re.findall(r"(?m)^FROM \S+ AS (\w+)", source("deploy/Dockerfile")))
        for name in re.findall(r"(?m)^FROM (\S+)", source("deploy/Dockerfile")):
            self.assertTrue(name.startswith("${") or name in stages, f"{name} is not an argument: pin-images.sh would miss it")
        open_ones = {image for image in images if not re.search(r":[\w.-]+@sha256:[0-9a-f]{64}$", image)}
        self.assertEqual(open_ones - self.TAGS, set(), "run scripts/pin-images.sh, or list it")
        self.assertEqual(self.TAGS - open_ones, set(), "is pinned or gone: take it from the list")

    def test_workflows_run_images_by_digest(self):
        """What a release is built in, and what the actions that make its image would else fetch by a tag that moves."""
        for path in sorted((ROOT / ".github/workflows").glob("*.yml")):
            for job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values():
                self.assertNotIn("services", job)
                if "container" in job:
                    self.assertEqual(job["container"], "${{ matrix.image }}")
                    for row in job["strategy"]["matrix"]["include"]:
                        self.assertRegex(row["image"], rf"^{self.PIN}$")
                        self.assertIn(f"_{row['cpu']}@", row["image"])
                for step in job.get("steps", []):
                    how = step.get("with", {})
                    if "/setup-qemu-action@" in step.get("uses", ""):
                        self.assertRegex(how["image"], rf"^{self.PIN}$")
                    if "/setup-buildx-action@" in step.get("uses", ""):
                        self.assertRegex(how["driver-opts"], rf"^image={self.PIN}$")
                    run = step.get("run", "")
                    self.assertNotIn("--sbom=", run, "name its scanner: --attest type=sbom,generator=")
                    if "generator=" in run:
                        self.assertIn('"type=sbom,generator=$scanner"', run)
                        self.assertRegex(run, rf"(?m)^scanner={self.PIN}$")

    def test_stand_ins_replace_images_and_nothing_else(self):
        for name, service in yaml.safe_load(source("scripts/containers/compose.yaml"))["services"].items():
            self.assertEqual(service, {"image": f"bench-test/{name}"})
            self.assertNotIn("build", COMPOSE["services"][name])
            self.assertTrue((ROOT / f"scripts/containers/{name}.Dockerfile").is_file())

    def test_the_script_pins_what_is_open_and_changes_nothing_without_a_registry(self):
        named = ["deploy/compose.yaml", "deploy/Dockerfile", ".github/workflows/release.yml"]
        files = ["scripts/pin-images.sh", "scripts/lib.sh", "deploy/tests/test_files.py", *named]
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name in files:
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, root / name)
            registry = root / "docker"
            path = {"PATH": f"{root}:/usr/bin:/bin"}

            def texts():
                return [(root / name).read_text(encoding="utf-8") for name in files]

            def pin(answer, *words):
                registry.write_text(f"#!/bin/sh\n{answer}\n", encoding="utf-8")
                registry.chmod(0o755)
                done = subprocess.run(["sh", root / files[0], *words], env=path, capture_output=True, text=True, check=False)
                return done.returncode, texts()

            # one image of each file that has a line to itself, by its tag again
            tags = [re.search(rf"(?m)^(?: +image: |ARG \w+_IMAGE=)({name}:\S+)@sha256:", text)[1]
                    for name, text in [("prom/prometheus", texts()[3]), ("debian", texts()[4])]]
            for name, tag in zip(files[3:5], tags, strict=True):
                text = (root / name).read_text(encoding="utf-8")
                (root / name).write_text(re.sub(rf"{re.escape(tag)}@sha256:\w+", tag, text), encoding="utf-8")
            listed = "".join(f'        "{tag}",\n' for tag in tags)
            tests = texts()[2].replace("TAGS = frozenset([\n", f"TAGS = frozenset([\n{listed}")
            (root / files[2]).write_text(tests, encoding="utf-8")

            before = texts()
            self.assertEqual(pin("exit 1"), (4, before))
            self.assertEqual(pin("echo latest"), (4, before))
            self.assertEqual(pin("exit 1", "--frobnicate"), (2, before))
            self.assertEqual(pin(f"echo sha256:{'a' * 64}", "--check"), (1, before))
            # each name has a digest of its own
            answer = "printf 'sha256:%s\\n' \"$(printf '%s' \"$4{digit}\" | sha256sum | cut -c1-64)\""
            for digit in "ab":
                code, now = pin(answer.format(digit=digit))
                self.assertEqual(code, 0)
                self.assertEqual(now[2], before[2].replace(listed, ""))
                for was, text in zip(before[3:], now[3:], strict=True):
                    digests = r"@sha256:[0-9a-f]{64}"
                    self.assertEqual(re.sub(digests, "", text), re.sub(digests, "", was), "nothing but digests")
                    for name, digest in re.findall(r"([a-z][\w./-]*(?::[\w.-]+)?)@sha256:([0-9a-f]{64})", text):
                        self.assertEqual(digest, hashlib.sha256(f"{name}{digit}".encode()).hexdigest(), name)
                for name, tag in zip(now[3:5], tags, strict=True):
                    self.assertIn(f"{tag}@sha256:", name)
                self.assertEqual(pin(answer.format(digit=digit), "--check"), (0, now))
                self.assertIn("${BENCH_IMAGE:-bench-coord:local}", now[3])
            # at one of its places an image has stayed what it was
            for left in [f"# {tags[1]}@sha256:{'0' * 64}\n", f"ARG OTHER_IMAGE={tags[1]}\n"]:
                (root / files[4]).write_text(now[4] + left, encoding="utf-8")
                self.assertEqual(pin(answer.format(digit="b"), "--check"), (1, [*now[:4], now[4] + left, *now[5:]]))

    def test_an_engine_that_was_kept_is_asked_for_no_official_images(self):
        files = ["test-containers.sh", "lib.sh", "containers/engine.sh", "containers/images.sh"]
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "scripts/containers").mkdir(parents=True)
            for name in files:
                shutil.copy(ROOT / "scripts" / name, root / "scripts" / name)
            shutil.copy(ROOT / "rust-toolchain.toml", root)
            # an engine that answers and has no Compose, and a person who may start none
            for name, text in [("docker", '[ "$1" = info ]'), ("id", "echo 1000")]:
                (root / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
                (root / name).chmod(0o755)
            for stand_ins, said in [({}, "the official images"), ({"BENCH_TEST_STAND_INS": "1"}, "as root this script starts one")]:
                path = {"PATH": f"{root}:/usr/bin:/bin", **stand_ins}
                done = subprocess.run(["sh", root / "scripts/test-containers.sh"], env=path, capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 2, done)
                self.assertIn(said, done.stdout + done.stderr)


class Release(unittest.TestCase):
    """What a tag sets off: its parts exist, may do what they need, and name one version."""

    text = source(".github/workflows/release.yml")
    jobs = yaml.safe_load(text)["jobs"]
    version = re.search(r'\[workspace.package\]\nversion = "([^"]+)"', source("Cargo.toml"))[1]

    def scripts(self):
        return [step["run"] for job in self.jobs.values() for step in job["steps"] if "run" in step]

    def test_jobs_may_do_what_they_need(self):
        self.assertEqual(yaml.safe_load(self.text)["permissions"], {"contents": "read"})
        more = {name: job["permissions"] for name, job in self.jobs.items() if "permissions" in job}
        self.assertEqual(more, {
            "publish": {"contents": "write", "id-token": "write", "attestations": "write"},
            "pypi": {"id-token": "write"},
            "image": {"contents": "read", "packages": "write"},
        })
        for job in self.jobs.values():
            self.assertIn("timeout-minutes", job)
        for script in self.scripts():
            self.assertNotIn("${{", script)

    def test_nothing_is_published_before_it_was_checked(self):
        self.assertIn("sh scripts/test.sh", self.scripts())
        for before in ("check", "bare"):
            self.assertIn(before, self.jobs["publish"]["needs"])
        self.assertIn("sudo sh scripts/test-glibc.sh dist/*.whl", [step.get("run") for step in self.jobs["bare"]["steps"]])
        nightly = yaml.safe_load(source(".github/workflows/ci.yml"))["jobs"]["packages"]
        self.assertEqual(nightly["if"], "github.event_name == 'schedule'")
        self.assertIn("make test-packages SUDO=sudo", [step.get("run") for step in nightly["steps"]])
        self.assertIn("$(SUDO) sh scripts/test-glibc.sh", source("Makefile"))
        self.assertEqual((self.jobs["pypi"]["needs"], self.jobs["image"]["needs"]), ("publish", "check"))

    def test_what_it_calls_exists(self):
        lines = [line for script in self.scripts() for line in script.splitlines()]
        calls = [shlex.split(line.split(" > ")[0].split(" && ")[-1])[2:] for line in lines if "python3 scripts/package.py" in line]
        self.assertEqual({call[0] for call in calls}, {"archive", "wheel", "sums", "notes"})
        for call in calls:
            done = subprocess.run(["python3", ROOT / "scripts/package.py", call[0], "--help"], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            for flag in [word for word in call if word.startswith("--")]:
                self.assertIn(flag, done.stdout, call)
        for script in re.findall(r"sh (scripts/\S+)", self.text):
            self.assertTrue((ROOT / script).is_file(), script)
        self.assertIn("--profile dist", self.text)
        self.assertTrue("\n[profile.dist]\n" in source("Cargo.toml"))

    def test_files_name_one_version(self):
        for name, line in [
            ("install.sh", f"version=\"${{BENCH_INSTALL_VERSION:-{self.version}}}\"\n"),
            ("CITATION.cff", f"\nversion: {self.version}\n"),
            ("CHANGELOG.md", f"\n## {self.version}"),
            *[(f"deploy/github/{name}", f"BENCH_COORD_REF: v{self.version}\n") for name in WORKFLOWS],
        ]:
            self.assertTrue(line in source(name), name)

    def test_the_notes_are_of_this_version_and_fit_and_nothing_waits(self):
        def notes(changelog):
            with tempfile.TemporaryDirectory() as folder:
                root = Path(folder)
                (root / "scripts").mkdir()
                for name in ("scripts/package.py", "Cargo.toml"):
                    shutil.copy(ROOT / name, root / name)
                (root / "CHANGELOG.md").write_text(changelog, encoding="utf-8")
                done = subprocess.run(["python3", root / "scripts/package.py", "notes"], capture_output=True, text=True, check=False)
                return done.returncode, done.stdout, done.stderr

        text = source("CHANGELOG.md")
        own = text[text.index(f"\n## {self.version}") :]
        code, told, _ = notes(f"# Changelog\n\n## Unreleased\n{own}")
        self.assertEqual(code, 0)
        self.assertIn("\n- ", told)
        self.assertNotIn("\n## ", told)
        self.assertLess(len(told), 125_000, "GitHub takes no more")
        entries = "- What has changed.\n"
        self.assertEqual(notes(f"# Changelog\n\n## {self.version}\n\n{entries * 3}")[1], entries * 3)
        _, told, _ = notes(f"# Changelog\n\n## {self.version}\n\n{entries * 10_000}")
        whole, more = told.split("\n\n")
        self.assertEqual(set(whole.splitlines()), {entries.strip()}, "no entry is cut")
        self.assertIn(f"/blob/v{self.version}/CHANGELOG.md", more)
        self.assertTrue(100_000 < len(told) < 125_000, len(told))
        code, told, why = notes(f"# Changelog\n\n## Unreleased\n\n- Something new.\n{own}")
        self.assertEqual((code, told), (1, ""))
        self.assertIn("## Unreleased", why)

    def test_the_oldest_glibc_is_the_one_that_is_built_on(self):
        oldest, other = re.findall(r"image: quay.io/pypa/manylinux_2_(\d+)_", self.text)
        self.assertEqual(oldest, other)
        self.assertIn(f'--plat "manylinux_2_{oldest}_$CPU"', self.text)
        self.assertIn(f"-ge {oldest} ]", source("install.sh"))
        self.assertTrue(f"glibc 2.{oldest}" in source("docs/DEPLOY.md"))

    def test_archives_have_one_name_everywhere(self):
        name = f"bench-coord-{self.version}-TARGET"
        for manifest in ("coordinator", "worker", "crates/sim"):
            found = re.search(r'pkg-url = "([^"]+)"', source(f"{manifest}/Cargo.toml"))[1]
            url = found.replace("{ version }", self.version).replace("{ target }", "TARGET").replace("{ repo }", "")
            self.assertEqual(url, f"/releases/download/v{self.version}/{name}.tar.gz")
        self.assertIn('name = f"bench-coord-{VERSION}-{args.target}"', source("scripts/package.py"))
        self.assertIn('name="bench-coord-$version-$target"', source("install.sh"))


class Workflows(unittest.TestCase):
    def commands(self, text):
        for job in yaml.safe_load(text)["jobs"].values():
            for step in job["steps"]:
                for line in step.get("run", "").splitlines():
                    if line.strip().startswith("bench-coord "):
                        words = shlex.split(line)
                        yield words[: words.index(">>")] if ">>" in words else words

    def test_verbs_and_flags_exist(self):
        self.assertEqual(set(WORKFLOWS), {"manual.yml", "nightly.yml", "nightly-matrix.yml", "pull-request.yml", "weekly.yml"})
        for name, text in WORKFLOWS.items():
            commands = list(self.commands(text))
            gated = set() if name in ("manual.yml", "nightly-matrix.yml", "weekly.yml") else {"gate"}
            self.assertEqual({command[1] for command in commands}, {"submit", "report"} | gated, name)
            for command in commands:
                self.assertEqual(unknown_flags(command), set(), name)
        flags = set(re.findall(r"(?<=\s)--[a-z-]+", re.search(r"set -- (.*)\n.*\"\$@\" (.*)", WORKFLOWS["manual.yml"])[0]))
        self.assertEqual(flags - {"--"} - coordinator_flags("submit"), set())

    def test_inputs_are_never_part_of_a_script(self):
        for name, text in WORKFLOWS.items():
            workflow = yaml.safe_load(text)
            self.assertEqual(workflow["permissions"], {"contents": "read"}, name)
            for job in workflow["jobs"].values():
                self.assertIn("timeout-minutes", job)
                for step in job["steps"]:
                    self.assertNotIn("${{", step.get("run", ""), name)

    def test_pull_requests_need_no_secret(self):
        self.assertNotIn("secrets.", WORKFLOWS["pull-request.yml"])


if __name__ == "__main__":
    unittest.main()
