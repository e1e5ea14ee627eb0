"""The image that deploy/Dockerfile makes: what is in it, and that it needs neither root, nor a writable root, nor a network."""

import json
import subprocess
import tomllib
import unittest

from engine import IMAGE, ROOT, docker, inspect

# as restricted as Kubernetes' restricted profile, and without any network
RESTRICTED = ["run", "--rm", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--network=none"]


class Image(unittest.TestCase):
    config = inspect(IMAGE)["Config"]

    def test_the_three_programs_run_as_nobody_special(self):
        version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
        for program in ("bench-coord", "bench-worker", "bench-sim"):
            # the commit behind it is whatever it was built of
            self.assertEqual(docker(*RESTRICTED, IMAGE, program, "--version").split()[:2], [program, version])
        self.assertEqual(docker(*RESTRICTED, IMAGE, "id", "-u").strip(), "65532")
        self.assertEqual(self.config["User"], "65532:65532")
        self.assertEqual(self.config["Healthcheck"]["Test"][:2], ["CMD", "bench-coord"])

    def test_labels_say_what_it_is(self):
        labels = self.config["Labels"]
        for name in ("title", "description", "licenses", "source", "version", "revision"):
            self.assertTrue(labels[f"org.opencontainers.image.{name}"], name)

    def test_only_its_own_folder_can_be_written(self):
        for folder in ("/", "/usr/local/bin", "/etc", "/var/lib"):
            docker(*RESTRICTED, IMAGE, "sh", "-c", f"! touch {folder}/x 2>/dev/null")
        docker(*RESTRICTED, IMAGE, "touch", "/var/lib/bench/x")

    def test_nothing_in_it_becomes_root(self):
        found = docker(*RESTRICTED, IMAGE, "find", "/usr/local", "/var/lib/bench", "-perm", "/6000")
        self.assertEqual(found.strip(), "")
        for tool in ("cargo", "rustc", "gcc", "make"):
            docker(*RESTRICTED, IMAGE, "sh", "-c", f"! command -v {tool}")

    def test_a_run_finishes_without_any_network(self):
        """Nothing calls home: there is no way out at all."""
        command = "bench-coord submit --dataset locomo-sim --preset quick --display none --json"
        report = json.loads(docker(*RESTRICTED, IMAGE, "sh", "-c", command))
        self.assertEqual((report["run"]["verdict"], report["outcomes"]["coverage"]), ("VALID", 1.0))

    def test_bills_of_materials_name_what_was_linked(self):
        locked = {(p["name"], p["version"]) for p in tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]}
        wanted = {
            "bench-coord": {"tokio", "sqlx", "lapin", "rustls", "async-openai", "object_store", "bench-worker"},
            "bench-worker": {"tokio", "sqlx", "lapin", "rustls", "async-openai"},
            "bench-sim": {"tokio", "serde"},
        }
        for program, names in wanted.items():
            text = docker(*RESTRICTED, IMAGE, "cat", f"/usr/share/doc/bench-coord/{program}.cdx.json")
            bill = json.loads(text)
            self.assertEqual((bill["bomFormat"], bill["metadata"]["component"]["name"]), ("CycloneDX", program))
            inside = {(part["name"], part["version"]) for part in bill["components"]}
            self.assertLessEqual(inside, locked, program)
            inside = {name for name, _ in inside}
            self.assertLessEqual(names, inside, program)
            # crates of tests and of other systems are not linked
            self.assertFalse({"insta", "bench-testkit", "windows-sys"} & inside, program)

    def test_the_build_context_holds_what_is_needed_and_no_more(self):
        """Sources alone: no history, no keys, nothing that was built."""
        allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
        tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
        self.assertLessEqual(allowed, {path.split("/")[0] for path in tracked.splitlines()} or allowed)


if __name__ == "__main__":
    unittest.main()
