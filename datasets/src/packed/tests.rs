//! Archives as tar makes them, and hostile ones.

use std::collections::BTreeMap;

use flate2::{Compression, write::GzEncoder};

use super::*;

/// One entry: header and content, filled up.
pub(crate) fn entry(name: &str, kind: u8, content: &[u8]) -> Vec<u8> {
    let mut block = [0_u8; 512];
    block[..name.len()].copy_from_slice(name.as_bytes());
    block[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
    block[148..156].fill(b' ');
    block[156] = kind;
    block[257..263].copy_from_slice(b"ustar\0");
    let sum: u64 = block.iter().map(|byte| u64::from(*byte)).sum();
    block[148..154].copy_from_slice(format!("{sum:06o}").as_bytes());
    let mut entry = block.to_vec();
    entry.extend_from_slice(content);
    entry.resize(entry.len().next_multiple_of(512), 0);
    entry
}

pub(crate) fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

pub(crate) fn archive(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut all = entries.concat();
    all.extend([0; 1024]);
    gz(&all)
}

fn unpack(packed: &Path, options: &OpenOptions) -> Result<Content, DatasetError> {
    let packing = Packing::by_name(&packed.to_string_lossy()).expect("packed");
    let inside = |path: &Path| {
        let path = path.to_owned();
        Ok(if packing == Packing::Gzip { Place::File(path) } else { Place::Folder(path) })
    };
    content(packed, packing, 0, &SourceFile::default(), options, inside)
}

/// Unpacks bytes under a name: what is in the cache's folder of it, or the error without its path; and the cache's folder.
fn unpacked(name: &str, bytes: &[u8]) -> (Result<BTreeMap<String, String>, String>, usize) {
    let root = tempfile::tempdir().expect("temporary folder");
    let packed = root.path().join(name);
    fs::write(&packed, bytes).expect("write");
    let options = OpenOptions { cache_dir: root.path().join("cache"), ..OpenOptions::default() };
    let outcome = unpack(&packed, &options);
    let files = outcome.map(|content| {
        let all = |content: &Content| {
            let files = content.hashed.inside.iter();
            files.map(|file| (file.name.clone(), fs::read_to_string(&file.path).expect("read"))).collect()
        };
        let files: BTreeMap<String, String> = all(&content);
        assert_eq!(all(&unpack(&packed, &options).expect("again")), files);
        files
    });
    let left = fs::read_dir(root.path().join("cache/unpacked")).map_or(0, Iterator::count);
    let error = |e: DatasetError| e.to_string().replace(&format!("{}: ", packed.display()), "");
    (files.map_err(error), left)
}

#[test]
fn files_and_folders_come_out() {
    assert_eq!(unpacked("a.json.gz", &gz(b"[1]")), (Ok([(String::new(), "[1]".to_owned())].into()), 1));
    // gzip files may follow each other
    let twice = [gz(b"[1]"), gz(b"[2]")].concat();
    assert_eq!(unpacked("a.json.gz", &twice).0.expect("both")[""], "[1][2]");

    let long = format!("{}/f.txt", "d".repeat(120));
    let pax = format!("{} path={long}\n", long.len() + 10);
    let entries = [
        entry("pax_global_header", b'g', b"52 comment=0123456789012345678901234567890123456789\n"),
        entry("top/", b'5', b""),
        entry("top/a.json", b'0', b"one"),
        entry("./top/below/b.json", b'0', &[b'x'; 600]),
        entry("x", b'x', pax.as_bytes()),
        entry("short", b'0', b"two"),
        entry("././@LongLink", b'L', format!("gnu-{long}\0").as_bytes()),
        entry("short", b'0', b"three"),
    ];
    let (files, left) = unpacked("x.tar.gz", &archive(&entries));
    let files = files.expect("unpacked");
    assert_eq!(files.keys().collect::<Vec<_>>(), [&long, &format!("gnu-{long}"), "top/a.json", "top/below/b.json"]);
    assert_eq!((files[&long].as_str(), files["top/below/b.json"].len(), left), ("two", 600, 1));
}

#[test]
fn what_could_reach_outside_or_is_no_plain_file_is_refused() {
    let deep = "d/".repeat(20) + "f";
    for (name, kind, expected) in [
        ("../f", b'0', "'..' in its name"),
        ("a/../../f", b'0', "'..' in its name"),
        ("/etc/f", b'0', "absolute name"),
        ("a\\..\\f", b'0', "none on every machine"),
        ("c:f", b'0', "none on every machine"),
        ("f", b'1', "is a link"),
        ("f", b'2', "is a link"),
        ("f", b'3', "no plain file"),
        ("f", b'6', "no plain file"),
        ("f", b'S', "no plain file"),
        (&deep, b'0', "too many folders deep"),
    ] {
        let (outcome, left) = unpacked("x.tgz", &archive(&[entry("good", b'0', b"1"), entry(name, kind, b"")]));
        let error = outcome.expect_err(name);
        assert!(error.contains(expected) && error.contains(name), "{name}: {error}");
        assert_eq!(left, 0, "{name}: nothing is left of it");
    }
    let (outcome, _) = unpacked("x.tgz", &archive(&[entry("a\tf", b'0', b"")]));
    let error = outcome.expect_err("a tab");
    assert!(
        error.ends_with("a f: has a name that is none on every machine"),
        "one line of visible characters: {error:?}"
    );
    let long = entry("././@LongLink", b'L', b"../../outside\0");
    let error = unpacked("x.tgz", &archive(&[long, entry("f", b'0', b"1")])).0.expect_err("a long name");
    assert!(error.contains("'..' in its name"), "{error}");
    let twice = [entry("f", b'0', b"1"), entry("f", b'0', b"2")];
    assert!(unpacked("x.tgz", &archive(&twice)).0.expect_err("twice").contains("is there twice"));
}

#[test]
fn bombs_and_broken_files_are_refused() {
    let zeros = vec![0_u8; 64 << 20];
    for name in ["a.gz", "a.tar.gz"] {
        let bytes = if name == "a.gz" { gz(&zeros) } else { archive(&[entry("f", b'0', &zeros)]) };
        let (outcome, left) = unpacked(name, &bytes);
        assert!(outcome.expect_err("a bomb").contains("far more comes out of it"), "{name}");
        assert_eq!(left, 0);
    }
    let many = entry("d/", b'5', b"").repeat(tar::MOST_ENTRIES + 1);
    let (outcome, left) = unpacked("a.tgz", &archive(&[many]));
    let error = outcome.expect_err("too many");
    assert!(error.contains("d/: is one entry more than 20000, the most there may be") && left == 0, "{error}");
    let huge = entry("f", b'L', &[b'a'; 20_000]);
    assert!(unpacked("a.tgz", &archive(&[huge])).0.expect_err("a long name").contains("more than 16 KiB"));
    let good = archive(&[entry("f", b'0', &[b'a'; 5_000])]);
    for (bytes, expected) in [
        (good[..good.len() / 2].to_vec(), "packed content: "),
        (b"no gzip".to_vec(), "packed content: "),
        (gz(&[b'x'; 1024]), "no tar archive"),
        (gz(&entry("f", b'0', &[b'a'; 600])[..700]), "is cut off"),
        (gz(&[b'x'; 100]), "is cut off"),
    ] {
        let error = unpacked("a.tgz", &bytes).0.expect_err(expected);
        assert!(error.contains(expected), "{error}");
    }
}

/// What is refused costs the disk nothing, wherever in the archive it stands.
#[test]
fn nothing_is_written_of_an_archive_that_is_refused() {
    let root = tempfile::tempdir().expect("temporary folder");
    let many: Vec<u8> = (0..=tar::MOST_ENTRIES).flat_map(|n| entry(&format!("{n}.json"), b'0', b"")).collect();
    let outside = [entry("a.json", b'0', b"[1]"), entry("../b.json", b'0', b"[2]")].concat();
    let cut = entry("a.json", b'0', &[b'x'; 600])[..1_000].to_vec();
    for (bytes, expected) in [(many, "one entry more"), (outside, "'..'"), (cut, "is cut off")] {
        let folder = root.path().join("files");
        match tar::unpack(|| Ok(&bytes[..]), &folder) {
            Err(Refused::Content(place, problem)) => assert!(problem.contains(expected), "{place}: {problem}"),
            _ => panic!("is refused: {expected}"),
        }
        assert!(!folder.exists(), "{expected}");
    }
}

proptest::proptest! {
    /// No content makes it panic, and a damaged byte is an error or changes what comes out, never where it goes.
    #[test]
    fn any_damage_is_survived(at in 0_usize..2048, byte in proptest::arbitrary::any::<u8>()) {
        let mut bytes = [entry("a/f", b'0', b"one"), entry("b", b'x', b"11 path=c\n")].concat();
        bytes.resize(2048, 0);
        bytes[at] = byte;
        let root = tempfile::tempdir().expect("temporary folder");
        let _ = tar::unpack(|| Ok(&bytes[..]), &root.path().join("files"));
        proptest::prop_assert!(fs::read_dir(root.path()).expect("folder").count() <= 1);
    }
}

/// Several at once make one.
#[test]
fn two_may_unpack_at_once() {
    let root = tempfile::tempdir().expect("temporary folder");
    let packed = root.path().join("a.tar.gz");
    let entries: Vec<Vec<u8>> = (0..50).map(|n| entry(&format!("d/{n}"), b'0', &[b'x'; 3000])).collect();
    fs::write(&packed, archive(&entries)).expect("write");
    let options = OpenOptions { cache_dir: root.path().join("cache"), ..OpenOptions::default() };
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let made = unpack(&packed, &options).expect("unpacks");
                assert_eq!(made.hashed.inside.len(), 50);
            });
        }
    });
    assert_eq!(fs::read_dir(root.path().join("cache/unpacked")).expect("folder").count(), 1);
}

/// A process that is killed leaves its folder, which goes with a later unpacking; one that is at work keeps it.
#[test]
fn what_a_killed_unpacking_has_left_is_removed() {
    let root = tempfile::tempdir().expect("temporary folder");
    let packed = root.path().join("a.gz");
    fs::write(&packed, gz(b"[1]")).expect("write");
    let home = root.path().join("cache/unpacked");
    let (killed, at_work) = (home.join(".making-killed"), home.join(".making-at-work"));
    for folder in [&killed, &at_work] {
        fs::create_dir_all(folder).expect("folder");
    }
    let long_ago = std::time::SystemTime::now() - 2 * KILLED_AFTER;
    File::open(&killed).expect("folder").set_modified(long_ago).expect("a time");
    let options = OpenOptions { cache_dir: root.path().join("cache"), ..OpenOptions::default() };
    unpack(&packed, &options).expect("unpacks");
    assert_eq!((killed.exists(), at_work.exists()), (false, true));
}
