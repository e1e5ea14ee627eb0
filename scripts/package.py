#!/usr/bin/env python3
"""Packages of a version, made of programs that are built already: what release.yml publishes.

    python3 scripts/package.py archive --programs target/dist --target x86_64-unknown-linux-gnu --output-dir dist
    python3 scripts/package.py wheel --programs target/dist --platform linux_x86_64 --output-dir dist
    python3 scripts/package.py sums --output-dir dist        # formula and install.sh beside all archives there, and SHA256SUMS of all
    python3 scripts/package.py notes                         # what CHANGELOG.md says of this version

The same programs give the same bytes: files are sorted and have the time of the commit, or of SOURCE_DATE_EPOCH. Programs are
asked for their manual pages and completions, so that they must run here.
"""

import argparse
import base64
import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ("bench-coord", "bench-worker", "bench-sim")
SHELLS = {"bash": "bench-coord.bash", "zsh": "_bench-coord", "fish": "bench-coord.fish"}
# what Homebrew calls the machines that have an archive
BREW = {
    ("macos", "arm"): "aarch64-apple-darwin",
    ("macos", "intel"): "x86_64-apple-darwin",
    ("linux", "arm"): "aarch64-unknown-linux-gnu",
    ("linux", "intel"): "x86_64-unknown-linux-gnu",
}


def manifest(key):
    """A value of the workspace's manifest."""
    section = (ROOT / "Cargo.toml").read_text(encoding="utf-8").split("[workspace.package]")[1]
    return re.search(rf'^{key} = "([^"]+)"', section, re.MULTILINE)[1]


def python_side(section):
    """Names and values of a section of the Python side's manifest: texts and lists of texts, which TOML writes as JSON does."""
    text = (ROOT / "python/pyproject.toml").read_text(encoding="utf-8")
    inside = re.search(rf"^\[{re.escape(section)}\]\n(.*?)(?=^\[|\Z)", text, re.MULTILINE | re.DOTALL)[1]
    return {name: json.loads(value) for name, value in re.findall(r"^([\w-]+) = (.+)$", inside, re.MULTILINE)}


VERSION = manifest("version")
REPOSITORY = manifest("repository")
# characters; GitHub refuses a release whose notes have more than 125,000
MOST_OF_NOTES = 120_000


def moment():
    """Seconds since 1970 that all files have."""
    if "SOURCE_DATE_EPOCH" in os.environ:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    git = subprocess.run(["git", "-C", str(ROOT), "log", "-1", "--format=%ct"], capture_output=True, text=True, check=False)
    # a zip knows no time before 1980
    return int(git.stdout) if git.returncode == 0 and git.stdout.strip() else 315532800


def programs(folder):
    """Name and bytes of the three programs."""
    missing = [name for name in PROGRAMS if not (folder / name).is_file()]
    if missing:
        sys.exit(f"{folder} has no {', '.join(missing)}: build them first (cargo build --profile dist "
                 + " ".join(f"--package {name}" for name in PROGRAMS) + " --bins)")
    return {name: (folder / name).read_bytes() for name in PROGRAMS}


def said(program, *words):
    """What a program prints; it must be of this version."""
    done = subprocess.run([str(program), *words], capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{program} {' '.join(words)} failed: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def check_versions(folder):
    for name in PROGRAMS:
        text = said(folder / name, "--version").decode()
        if text.split()[1:2] != [VERSION]:
            sys.exit(f"{folder / name} says '{text.strip()}', and Cargo.toml {VERSION}: build it again")


def manual(folder):
    """Manual pages by their file names."""
    pages = {f"{name}.1": said(folder / name, "--man") for name in PROGRAMS[1:]}
    with tempfile.TemporaryDirectory() as made:
        said(folder / "bench-coord", "man", "--output-dir", made)
        pages.update({path.name: path.read_bytes() for path in sorted(Path(made).iterdir())})
    return pages


def bills(folder):
    """Bills of materials by their file names: none without a folder."""
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.cdx.json"))} if folder else {}


def write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    print(f"{path}  {len(data) / 1e6:.1f} MB")


def archive(args):
    """Programs, manual pages, completions, licence and bills, in one folder that names version and machine."""
    check_versions(args.programs)
    name = f"bench-coord-{VERSION}-{args.target}"
    files = {f"{name}/{program}": (data, 0o755) for program, data in programs(args.programs).items()}
    plain = {f"man/man1/{page}": data for page, data in manual(args.programs).items()}
    plain.update({
        f"completions/{file}": said(args.programs / "bench-coord", "completions", shell) for shell, file in SHELLS.items()
    })
    plain.update({f"sbom/{file}": data for file, data in bills(args.sbom).items()})
    plain.update({file: (ROOT / file).read_bytes() for file in ("LICENSE", "README.md", "CHANGELOG.md")})
    files.update({f"{name}/{file}": (data, 0o644) for file, data in plain.items()})
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.USTAR_FORMAT) as out:
        for path, (data, mode) in sorted(files.items()):
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode, entry.mtime = len(data), mode, moment()
            out.addfile(entry, io.BytesIO(data))
    packed = gzip.compress(tar.getvalue(), compresslevel=args.level, mtime=moment())
    write(args.output_dir / f"{name}.tar.gz", packed)


def description():
    """README.md for a page elsewhere: its links lead into the repository of this version."""
    base = f"{REPOSITORY}/blob/v{VERSION}/"
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    text = re.sub(r"(!\[[^\]]*\]\()(?!https?://|#)", rf"\g<1>{REPOSITORY}/raw/v{VERSION}/", text)
    return re.sub(r"(?<!\!)(\[[^\]]*\]\()(?!https?://|#)", rf"\g<1>{base}", text)


def extras():
    """What the Python side uses where it is installed."""
    lines = []
    for name, packages in python_side("project.optional-dependencies").items():
        lines += [f"Provides-Extra: {name}", *(f"Requires-Dist: {package}; extra == '{name}'" for package in packages)]
    return "\n".join(lines)


def entry_points():
    """By which pytest finds the gate."""
    group = "pytest11"
    named = python_side(f"project.entry-points.{group}").items()
    return "".join([f"[{group}]\n", *(f"{name} = {module}\n" for name, module in named)])


def metadata():
    return f"""Metadata-Version: 2.4
Name: bench-coord
Version: {VERSION}
Summary: {manifest("description")}
License-Expression: {manifest("license")}
License-File: LICENSE
Keywords: benchmark,memory,agents,llm,locomo,longmemeval
Classifier: Development Status :: 4 - Beta
Classifier: Environment :: Console
Classifier: Programming Language :: Python :: 3
Classifier: Programming Language :: Rust
Classifier: Topic :: System :: Benchmark
Project-URL: Repository, {REPOSITORY}
Project-URL: Changelog, {REPOSITORY}/blob/v{VERSION}/CHANGELOG.md
Requires-Python: >=3.9
{extras()}
Description-Content-Type: text/markdown

{description()}"""


def wheel(args):
    """The three programs, and the Python side of classes. `auditwheel repair` names the oldest glibc."""
    check_versions(args.programs)
    tag = f"py3-none-{args.platform}"
    info = f"bench_coord-{VERSION}.dist-info"
    files = {f"bench_coord-{VERSION}.data/scripts/{name}": (data, 0o755) for name, data in programs(args.programs).items()}
    package = ROOT / "python/bench_coord"
    plain = {f"bench_coord/{path.name}": path.read_bytes() for path in sorted([*package.glob("*.py"), package / "py.typed"])}
    plain[f"{info}/METADATA"] = metadata().encode()
    plain[f"{info}/entry_points.txt"] = entry_points().encode()
    plain[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: bench-coord ({VERSION})\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    plain[f"{info}/licenses/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    plain.update({f"{info}/sboms/{file}": data for file, data in bills(args.sbom).items()})
    files.update({path: (data, 0o644) for path, data in plain.items()})

    def line(path, data):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        return f"{path},sha256={digest},{len(data)}\n"

    record = "".join(line(path, data) for path, (data, _) in sorted(files.items())) + f"{info}/RECORD,,\n"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=args.level) as out:
        for path, (data, mode) in [*sorted(files.items()), (f"{info}/RECORD", (record.encode(), 0o644))]:
            entry = zipfile.ZipInfo(path, time.gmtime(moment())[:6])
            entry.external_attr, entry.compress_type = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED
            out.writestr(entry, data, compresslevel=args.level)
    write(args.output_dir / f"bench_coord-{VERSION}-{tag}.whl", packed.getvalue())


def formula(sums):
    """A Homebrew formula of the archives whose checksums these are; machines without an archive are left out."""
    blocks = []
    for system in ("macos", "linux"):
        inner = []
        for processor in ("arm", "intel"):
            file = f"bench-coord-{VERSION}-{BREW[system, processor]}.tar.gz"
            if file in sums:
                inner.append(f"""    on_{processor} do
      url "{REPOSITORY}/releases/download/v{VERSION}/{file}"
      sha256 "{sums[file]}"
    end
""")
        if inner:
            blocks.append(f"  on_{system} do\n{''.join(inner)}  end\n")
    return f"""class BenchCoord < Formula
  desc "Distributed benchmark runner for AI-agent memory systems"
  homepage "{REPOSITORY}"
  version "{VERSION}"
  license "{manifest("license")}"

{chr(10).join(blocks)}
  def install
    bin.install "bench-coord", "bench-worker", "bench-sim"
    man1.install Dir["man/man1/*.1"]
    bash_completion.install "completions/bench-coord.bash" => "bench-coord"
    zsh_completion.install "completions/_bench-coord"
    fish_completion.install "completions/bench-coord.fish"
    doc.install Dir["sbom/*.cdx.json"]
  end

  test do
    system bin/"bench-coord", "submit", "--dataset", "locomo-sim", "--preset", "quick"
  end
end
"""


def sums(args):
    files = [path for path in sorted(args.output_dir.iterdir()) if path.name.endswith((".tar.gz", ".whl"))]
    if not files:
        sys.exit(f"{args.output_dir} has no archive and no wheel")
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    for name, data in {"bench-coord.rb": formula(found).encode(), "install.sh": (ROOT / "install.sh").read_bytes()}.items():
        write(args.output_dir / name, data)
        found[name] = hashlib.sha256(data).hexdigest()
    write(args.output_dir / "SHA256SUMS", "".join(f"{digest}  {name}\n" for name, digest in found.items()).encode())


def section(title):
    """What stands below a heading of the changelog; None without that heading."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(title)}\b[^\n]*\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return found and found[1].strip()


def notes(_args):
    # they are of this version or of the next one: only a person knows
    if section("Unreleased"):
        sys.exit(f"CHANGELOG.md has entries under '## Unreleased': move them below '## {VERSION}', then tag again")
    told = section(VERSION)
    if told is None:
        sys.exit(f"CHANGELOG.md has no section '## {VERSION}'")
    if len(told) > MOST_OF_NOTES:
        # whole entries, and where the others stand
        told = told[: told.rindex("\n- ", 0, MOST_OF_NOTES)]
        told += f"\n\nMore changes of this version stand in [CHANGELOG.md]({REPOSITORY}/blob/v{VERSION}/CHANGELOG.md)."
    print(told)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(required=True)
    for verb in (archive, wheel, sums, notes):
        command = verbs.add_parser(verb.__name__)
        command.set_defaults(run=verb)
        if verb is not notes:
            command.add_argument("--output-dir", type=Path, required=True)
        if verb in (archive, wheel):
            command.add_argument("--programs", type=Path, required=True, help="folder with the three programs")
            command.add_argument("--sbom", type=Path, help="folder with bills of materials (*.cdx.json)")
            command.add_argument("--level", type=int, default=9, help="of compression, 1 to 9")
    verbs.choices["archive"].add_argument("--target", required=True, help="as cargo names the machine")
    verbs.choices["wheel"].add_argument("--platform", required=True, help="linux_x86_64, macosx_11_0_arm64, …")
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
