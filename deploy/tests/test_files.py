"""Dockerfile, compose file, workflows: they parse, and name nothing that does not exist."""

import re
import shlex
import unittest

import yaml
from binaries import ROOT, coordinator_flags, source, unknown_flags, variables

COMPOSE = yaml.safe_load(source("deploy/compose.yaml"))
WORKFLOWS = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / "deploy/github").glob("*.yml"))}


class Compose(unittest.TestCase):
    def ours(self):
        return {name: service for name, service in COMPOSE["services"].items() if "build" in service}

    def test_commands_and_variables_exist(self):
        self.assertEqual(set(self.ours()), {"migrate", "coordinator", "worker", "sim", "submit"})
        for name, service in self.ours().items():
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
                one_shot = other == "migrate"
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
        channel = re.search(r'channel = "(\d+\.\d+)', source("rust-toolchain.toml"))[1]
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


class Workflows(unittest.TestCase):
    def commands(self, text):
        for job in yaml.safe_load(text)["jobs"].values():
            for step in job["steps"]:
                for line in step.get("run", "").splitlines():
                    if line.strip().startswith("bench-coord "):
                        words = shlex.split(line)
                        yield words[: words.index(">>")] if ">>" in words else words

    def test_verbs_and_flags_exist(self):
        self.assertEqual(set(WORKFLOWS), {"manual.yml", "nightly.yml", "pull-request.yml"})
        for name, text in WORKFLOWS.items():
            commands = list(self.commands(text))
            gated = set() if name == "manual.yml" else {"gate"}
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
