"""The compose file: it comes up, a run finishes in it, and what happens to its containers changes no result."""

import json
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path

from engine import COMPOSE, IMAGE, PROJECT, ROOT, WithLogs, bench, compose, containers, docker, down, inspect, until

MODELS = ["--answerer=openai:gpt-4o-mini", "--judge=openai:gpt-4o-mini", "--max-cost=5"]
LONG = ["--dataset=locomo-sim", "--preset=full", *MODELS]
# nearly a minute on any machine, because few questions wait for the provider at a time: there is time to disturb it
SLOWLY = "--concurrency=16"
OURS = ("coordinator", "worker", "sim")
# longer than a lease (15 s): the others take what a worker without a network held
CUT_OFF = 20
# how a client ends that leaves its run to the cluster
DETACHED = 3
# of a worker: to the provider, and to store and broker
NETWORKS = (f"{PROJECT}_bench", f"{PROJECT}_store")


def status(run):
    return json.loads(bench("status", run, "--json"))


def ended(run):
    progress = status(run)["progress"]
    return progress["ended"] / progress["questions"]


def wait_for(run, share):
    until(f"{share:.0%} of {run}", lambda: ended(run) >= share, patience=300, every=0.2)


def report(run):
    return json.loads(bench("report", run, "--format", "json"))


def sql(text):
    return compose("exec", "-T", "-e", "PGPASSWORD=bench", "postgres", "psql", "-h", "127.0.0.1", "-U", "bench", "-d", "bench", "-Atc", text).strip()


@cache
def undisturbed():
    """The digest of the same run on one machine without a cluster: the store is a file, the queue is in the process."""
    local = ["--env", "OPENAI_BASE_URL=http://sim:8080/v1", "--env", "OPENAI_API_KEY=none", "--network", f"{PROJECT}_bench"]
    words = ["bench-coord", "submit", *LONG, "--display=none", "--json"]
    return json.loads(docker("run", "--rm", "--read-only", "--tmpfs", "/tmp", *local, IMAGE, *words))["result_digest"]


class Compose(WithLogs):
    @classmethod
    def setUpClass(cls):
        down()
        # built before by scripts/test-containers.sh, as `docker compose run` would
        cls.demo = docker(*COMPOSE, "run", "--rm", "--no-TTY", "submit")

    @classmethod
    def tearDownClass(cls):
        down()

    def test_1_one_command_ran_the_demo_to_its_end(self):
        self.assertIn("finished", self.demo)
        self.assertIn("Result digest", self.demo)
        for service in (*OURS, "postgres", "rabbitmq"):
            for name in containers(service):
                self.assertEqual(inspect(name)["State"]["Health"]["Status"], "healthy", name)
        self.assertEqual(len(containers("worker")), 2)

    def test_2_our_containers_can_do_little(self):
        for service in OURS:
            for name in containers(service):
                found = inspect(name)
                self.assertTrue(found["HostConfig"]["ReadonlyRootfs"], name)
                self.assertEqual(found["HostConfig"]["CapDrop"], ["ALL"], name)
                proc = docker("exec", name, "cat", "/proc/1/status")
                fields = dict(line.split(":", 1) for line in proc.splitlines() if ":" in line)
                self.assertEqual(set(fields["Uid"].split()), {"65532"}, name)
                self.assertEqual(int(fields["CapEff"], 16), 0, name)
                self.assertEqual(fields["NoNewPrivs"].strip(), "1", name)

    def test_3_workers_are_scaled_killed_and_cut_off_and_the_digest_holds(self):
        wanted = undisturbed()
        bench("submit", *LONG, SLOWLY, "--detach", "--run-id=disturbed", code=DETACHED)
        wait_for("disturbed", 0.05)
        compose("up", "--detach", "--no-recreate", "--no-deps", "--scale", "worker=4", "worker")
        first, second, third, fourth = containers("worker")
        wait_for("disturbed", 0.15)
        docker("kill", first)
        wait_for("disturbed", 0.25)
        for network in NETWORKS:
            docker("network", "disconnect", network, second)
        (coordinator,) = containers("coordinator")
        docker("kill", coordinator)
        time.sleep(CUT_OFF)
        docker("start", coordinator)
        for network in NETWORKS:
            docker("network", "connect", "--alias", "worker", network, second)
        # told to stop, it drains: its calls are finished and stored
        docker("stop", third)
        self.assertEqual(inspect(third)["State"]["ExitCode"], 0)
        self.assertLess(ended("disturbed"), 1.0, "the run was over before it was disturbed")
        until("the end", lambda: status("disturbed")["status"] == "finished", patience=400)
        found = report("disturbed")
        self.assertEqual(found["result_digest"], wanted)
        self.assertEqual((found["run"]["verdict"], found["outcomes"]["coverage"]), ("VALID", 1.0))
        self.assertGreater(int(sql("SELECT coalesce(sum(losses), 0) FROM tasks")), 0, "nothing was lost: nothing was tested")
        self.assertEqual(inspect(fourth)["State"]["Health"]["Status"], "healthy")
        until("who was cut off is back", lambda: inspect(second)["State"]["Health"]["Status"] == "healthy")

    def test_4_the_cluster_is_gone_and_a_backup_goes_on(self):
        """docs/OPERATIONS.md: back up Postgres only; a broker that knows nothing; the same digest."""
        compose("up", "--detach", "--wait", "--no-recreate", "coordinator", "worker")
        wanted = undisturbed()
        bench("submit", *LONG, SLOWLY, "--detach", "--run-id=saved", code=DETACHED)
        wait_for("saved", 0.3)
        with tempfile.TemporaryDirectory() as folder:
            dump = Path(folder, "bench.dump")
            words = ["exec", "-T", "-e", "PGPASSWORD=bench", "postgres", "pg_dump", "-Fc", "-h", "127.0.0.1", "-U", "bench", "bench"]
            with dump.open("wb") as file:
                subprocess.run(["docker", *COMPOSE, *words], cwd=ROOT, stdout=file, check=True)
            down()
            compose("up", "--detach", "--wait", "postgres")
            restore = ["exec", "-T", "-e", "PGPASSWORD=bench", "postgres", "pg_restore", "--no-owner", "--exit-on-error"]
            with dump.open("rb") as file:
                where = ["-h", "127.0.0.1", "-U", "bench", "-d", "bench"]
                subprocess.run(["docker", *COMPOSE, *restore, *where], cwd=ROOT, stdin=file, check=True)
        # `submit` with the same id attaches; everything else is started because it depends on it
        words = ["bench-coord", "submit", *LONG, SLOWLY, "--run-id=saved", "--display=none", "--json"]
        found = json.loads(docker(*COMPOSE, "run", "--rm", "--no-TTY", "submit", *words))
        self.assertEqual(found["result_digest"], wanted)
        self.assertEqual(found["outcomes"]["coverage"], 1.0)

    def test_5_prometheus_scrapes_every_process_and_knows_the_rules(self):
        """The profile's collector, Jaeger and Grafana are looked at as configuration only where there is no hub."""
        services = compose("--profile", "observability", "config", "--services").split()
        self.assertLessEqual({"collector", "jaeger", "prometheus", "grafana"}, set(services))
        compose("up", "--detach", "--wait", "--no-recreate", "coordinator", "worker")
        compose("--profile", "observability", "up", "--detach", "--no-deps", "prometheus")
        (prometheus,) = containers("prometheus")
        for words in (["check", "config", "/etc/prometheus/prometheus.yml"], ["check", "rules", "/etc/prometheus/rules.yml"]):
            docker("exec", prometheus, "promtool", *words)

        def query(path):
            program = "import sys,urllib.request as r;sys.stdout.write(r.urlopen(sys.argv[1]).read().decode())"
            done = subprocess.run(["python3", "-c", program, f"http://127.0.0.1:9090/api/v1/{path}"], capture_output=True, text=True, check=False)
            return json.loads(done.stdout)["data"] if done.returncode == 0 else None

        def all_up():
            targets = (query("targets") or {"activeTargets": []})["activeTargets"]
            jobs = sorted(target["labels"]["job"] for target in targets if target["health"] == "up")
            return jobs == ["bench-coord", "bench-worker", "bench-worker"]

        until("coordinator and both workers are scraped", all_up)
        rules = {rule["name"] for group in query("rules")["groups"] for rule in group["rules"]}
        self.assertIn("BenchNobodyLeads", rules)
        leading = query("query?query=sum(bench_coordinator_leading)")["result"]
        self.assertEqual(leading[0]["value"][1], "1")
