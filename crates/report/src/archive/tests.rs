use std::sync::Arc;

use bytes::Bytes;
use object_store::memory::InMemory;

use super::{
    ArchiveError, ArchivePlace, IndexEntry, Manifest,
    fetch::{IndexNames, file, find, list, manifest, several_times, verify},
    matrix::{ARCHIVED_MATRIX_VERSION, ArchivedMatrix},
    place::Put,
    push::{PlainFile, Pushed, push, there},
    trajectory::{Trajectory, Wanted},
};

fn entry(id: &str, digest: &str) -> IndexEntry {
    IndexEntry {
        run_id: id.to_owned(),
        name: None,
        folder: format!("runs/2026-11-20/locomo/v1/{id}"),
        finished_at: Some(format!("2026-11-20T10:00:0{}Z", id.len() % 10)),
        dataset: "locomo".to_owned(),
        preset: "full".to_owned(),
        system: "bm25".to_owned(),
        system_version: "1".to_owned(),
        answerer: "extractive".to_owned(),
        judge: None,
        metric: "locomo-f1".to_owned(),
        value: Some(0.5),
        low: Some(0.4),
        high: Some(0.6),
        counted_as: None,
        counted_value: None,
        n: 100,
        verdict: "VALID".to_owned(),
        fingerprint: "f".to_owned(),
        conditions: "c".to_owned(),
        result_digest: digest.to_owned(),
        code_version: "1".to_owned(),
        without_texts: None,
    }
}

#[test]
fn what_an_object_store_says_shows_no_password_of_its_address() {
    let source = "GET http://u:plantedkey124@127.0.0.1:9/b/p: connection refused".into();
    let said = ArchiveError::from(object_store::Error::Generic { store: "S3", source }).to_string();
    assert!(said.contains("127.0.0.1:9/b/p: connection refused") && !said.contains("plantedkey124"), "{said}");
}

/// Files of a run, in a folder of their own.
struct Files {
    files: Vec<PlainFile>,
    _folder: tempfile::TempDir,
}

impl Files {
    fn with(contents: &[(&str, Vec<u8>)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |(name, bytes): &(&str, Vec<u8>)| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).expect("writable");
            PlainFile { name: (*name).to_owned(), path }
        };
        Self { files: contents.iter().map(file).collect(), _folder: folder }
    }
}

fn files() -> Files {
    Files::with(&[
        ("report.json", "{}".repeat(500).into_bytes()),
        ("questions.jsonl", "line\n".repeat(900).into_bytes()),
        ("banks.jsonl", Vec::new()),
    ])
}

/// What a file of the archive unpacks to.
async fn unpacked(place: &ArchivePlace, manifest: &Manifest, name: &str) -> Vec<u8> {
    let entry = manifest.files.iter().find(|file| file.name == name).expect("is listed");
    let mut bytes = Vec::new();
    file(place, manifest, entry, &mut bytes).await.expect("is sound");
    bytes
}

fn memory() -> ArchivePlace {
    ArchivePlace::in_store(Arc::new(InMemory::new()), "memory")
}

#[tokio::test]
async fn what_is_pushed_comes_back_byte_for_byte() {
    let (place, files) = (memory(), files());
    let entry = entry("a", "d");
    assert_eq!(push(&place, &entry, &files.files).await.expect("is pushed"), Pushed::Archived);
    assert_eq!(push(&place, &entry, &files.files).await.expect("is pushed again"), Pushed::WasThere);
    let (found, _) = find(&place, "latest").await.expect("is found");
    assert_eq!(found, entry);
    let manifest = manifest(&place, &found).await.expect("is read");
    for plain in &files.files {
        let bytes = unpacked(&place, &manifest, &plain.name).await;
        assert_eq!(bytes, std::fs::read(&plain.path).expect("readable"), "{}", plain.name);
    }
    assert_eq!(verify(&place, &found).await.expect("is verified"), Vec::<String>::new());
}

#[tokio::test]
async fn a_run_is_found_by_its_id_its_name_and_both_ends_of_its_id() {
    let (place, files) = (memory(), files());
    let ids = ["019f-first-aa", "019f-second-ab", "019f-third-bb", "nightly"];
    for (at, id) in ids.into_iter().enumerate() {
        let name = ["nightly", "weekly", "weekly", "other"][at].to_owned();
        let finished_at = Some(format!("2026-11-20T10:00:0{at}Z"));
        let entry = IndexEntry { name: Some(name), finished_at, ..entry(id, "d") };
        push(&place, &entry, &files.files).await.expect("is pushed");
    }
    for (selector, id) in [
        ("019f-first-aa", ids[0]),
        ("019f-s", ids[1]),
        ("aa", ids[0]),
        // of several with one name the last; an id before a name
        ("weekly", ids[2]),
        ("nightly", ids[3]),
        ("latest", ids[3]),
    ] {
        assert_eq!(find(&place, selector).await.expect("is found").0.run_id, id, "{selector}");
    }
    for (selector, why) in [("019f", "3 archived runs"), ("b", "2 archived runs"), ("cc", "holds no run 'cc'")] {
        let error = find(&place, selector).await.expect_err("is none").to_string();
        assert!(error.contains(why), "{selector}: {error}");
    }
}

#[tokio::test]
async fn an_object_is_read_on_from_a_byte_as_long_as_it_is_the_same_version() {
    let place = memory();
    place.create("a", Bytes::from_static(b"half way")).await.expect("is written");
    let read = async |from: Option<(u64, &str)>| {
        let mut pieces = place.pieces_from("a", from).await.expect("answers").expect("is there");
        let mut bytes = Vec::new();
        while let Some(piece) = pieces.next().await.expect("is read") {
            bytes.extend_from_slice(&piece);
        }
        (pieces.from, pieces.bytes, bytes, pieces.tag.expect("has a version"))
    };
    let (from, whole, bytes, tag) = read(None).await;
    assert_eq!((from, whole, bytes.as_slice()), (0, 8, &b"half way"[..]));
    let (from, whole, bytes, _) = read(Some((5, &tag))).await;
    assert_eq!((from, whole, bytes.as_slice()), (5, 8, &b"way"[..]));
    for other in [(5, "another"), (8, tag.as_str())] {
        assert_eq!(read(Some(other)).await.2, b"half way", "{other:?}");
    }
}

#[tokio::test]
async fn large_files_go_in_parts_under_the_name_of_their_hash() {
    // noise does not get smaller: a linear congruential generator's high bytes
    let noise = |seed: u64| -> Vec<u8> {
        let next = |state: &mut u64| {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (*state >> 56) as u8
        };
        let mut state = seed;
        (0..9 << 20).map(|_| next(&mut state)).collect()
    };
    let large = noise(1);
    let files = Files::with(&[("results.jsonl", large.clone()), ("run.json", b"{}".to_vec())]);
    let place = memory();
    let entry = entry("a", "d");
    push(&place, &entry, &files.files).await.expect("is pushed");
    let manifest = manifest(&place, &entry).await.expect("is read");
    assert_eq!(unpacked(&place, &manifest, "results.jsonl").await, large);
    let object = &manifest.files.iter().find(|file| file.name == "results.jsonl").expect("is listed").object;
    assert!(object.starts_with("results.jsonl.") && object.len() == "results.jsonl..zst".len() + 16, "{object}");
    assert_eq!(std::fs::read_dir(files.files[0].path.parent().expect("a folder")).expect("readable").count(), 2);

    // what was torn there is replaced by the next push
    let torn = memory();
    let name = format!("{}/{object}", entry.folder);
    let _ = torn.create(&name, Bytes::from_static(b"torn")).await.expect("is written");
    push(&torn, &entry, &files.files).await.expect("is pushed");
    assert_eq!(verify(&torn, &entry).await.expect("is verified"), Vec::<String>::new());
}

#[tokio::test]
async fn a_push_that_was_cut_anywhere_is_made_whole() {
    let place = memory();
    push(&place, &entry("a", "d"), &files().files).await.expect("is pushed");
    let mut objects = place.names("").await.expect("are listed");
    // the order in which they were written: files, manifest, index
    objects.sort_by_key(|name| (name.starts_with("index"), name.ends_with("manifest.json")));
    for cut in 0..objects.len() {
        for torn in [false, true] {
            let cut_place = memory();
            for (i, name) in objects[..=cut].iter().enumerate() {
                let whole = place.read(name).await.expect("is read").expect("is there");
                // the last object before the cut may be what another build had begun with
                let other = torn && i == cut && name.ends_with(".zst");
                let bytes = if other { Bytes::from_static(b"of another build") } else { whole };
                assert_eq!(cut_place.create(name, bytes).await.expect("is written"), Put::Written);
            }
            push(&cut_place, &entry("a", "d"), &files().files).await.expect("goes on");
            let (found, _) = find(&cut_place, "a").await.expect("is listed");
            assert_eq!(verify(&cut_place, &found).await.expect("is verified"), Vec::<String>::new(), "cut at {cut}");
        }
    }
}

#[tokio::test]
async fn many_writers_at_once_lose_nothing() {
    let place = memory();
    let ids = ["a", "bb", "ccc", "dddd"];
    let pushes = ids.iter().chain(&ids).map(|id| {
        let (place, entry) = (place.clone(), entry(id, "d"));
        async move { push(&place, &entry, &files().files).await }
    });
    for pushed in futures::future::join_all(pushes).await {
        pushed.expect("is pushed by one or the other");
    }
    let listed: Vec<String> =
        list(&place).await.expect("are listed").entries.into_iter().map(|entry| entry.run_id).collect();
    assert_eq!(listed, ids);
}

#[tokio::test]
async fn another_result_under_the_same_id_is_refused() {
    let place = memory();
    push(&place, &entry("a", "d"), &files().files).await.expect("is pushed");
    let refused = push(&place, &entry("a", "other"), &files().files).await.expect_err("is refused");
    assert!(matches!(refused, ArchiveError::Conflict(_)), "{refused}");
    assert_eq!(find(&place, "a").await.expect("is there").0.result_digest, "d");
}

#[tokio::test]
async fn another_result_under_the_same_id_is_refused_whatever_its_day_and_the_same_one_is_there() {
    let place = memory();
    let first = entry("a", "d");
    push(&place, &first, &files().files).await.expect("is pushed");
    let on = |date: &str, methodology: &str, digest: &str| IndexEntry {
        folder: format!("runs/{date}/locomo/{methodology}/a"),
        finished_at: Some(format!("{date}T10:00:00Z")),
        ..entry("a", digest)
    };
    let next_day = on("2026-11-21", "v1", "other");
    for other in [next_day.clone(), on("2026-11-20", "v2", "other")] {
        let refused = push(&place, &other, &files().files).await.expect_err("is refused");
        let said = refused.to_string();
        assert!(matches!(refused, ArchiveError::Conflict(_)), "{said}");
        assert!(said.contains(&first.folder) && said.contains("to another archive, with --archive"), "{said}");
    }
    // it was carried on, and nothing of it has changed
    let same = on("2026-11-21", "v1", "d");
    assert_eq!(
        there(&place, &same, &mut IndexNames::default()).await.expect("answers"),
        Some((first.clone(), Pushed::WasThere))
    );
    assert_eq!(push(&place, &same, &files().files).await.expect("answers"), Pushed::WasThere);
    assert_eq!(find(&place, "a").await.expect("is found").0, first);
    assert_eq!(place.names("index").await.expect("are listed"), [first.object()]);
    // what earlier releases have written twice is named
    let bytes = Bytes::from(serde_json::to_vec(&next_day).expect("is JSON"));
    assert_eq!(place.create(&next_day.object(), bytes).await.expect("is written"), Put::Written);
    push(&place, &entry("bb", "d"), &files().files).await.expect("another run is pushed");
    let several = several_times(&list(&place).await.expect("is listed").entries);
    let told: Vec<&String> = several.keys().collect();
    assert_eq!(told, ["a"]);
    assert!(several["a"].contains("index/2026-11-20/a.json, index/2026-11-21/a.json"), "{several:?}");
}

#[tokio::test]
async fn the_index_is_listed_once_for_several_runs() {
    let place = memory();
    let (listed, late) = (entry("listed", "d"), entry("late", "d"));
    let on_another_day = |entry: &IndexEntry| IndexEntry {
        folder: format!("runs/2026-11-21/locomo/v1/{}", entry.run_id),
        finished_at: Some("2026-11-21T10:00:00Z".to_owned()),
        ..entry.clone()
    };
    push(&place, &listed, &files().files).await.expect("is pushed");
    let mut names = IndexNames::default();
    let was_there = |entry: &IndexEntry| Some((entry.clone(), Pushed::WasThere));
    assert_eq!(there(&place, &on_another_day(&listed), &mut names).await.expect("answers"), was_there(&listed));
    // what is written behind the list is seen when it is told, and so nothing is listed again
    push(&place, &late, &files().files).await.expect("is pushed");
    assert_eq!(there(&place, &on_another_day(&late), &mut names).await.expect("answers"), None);
    names.add(&late);
    assert_eq!(there(&place, &on_another_day(&late), &mut names).await.expect("answers"), was_there(&late));
}

#[tokio::test]
async fn runs_of_a_group_whose_id_is_as_long_as_can_be_are_archived() {
    let place = memory();
    let long = format!("{}-c10-r12", "x".repeat(100));
    push(&place, &entry(&long, "d"), &files().files).await.expect("is pushed");
    let (found, _) = find(&place, &long).await.expect("is found");
    assert_eq!(verify(&place, &found).await.expect("answers"), Vec::<String>::new());
    for wrong in ["x".repeat(201), "../x".to_owned(), "x/y".to_owned(), ".x".to_owned(), "x\\y".to_owned()] {
        assert!(push(&place, &entry(&wrong, "d"), &files().files).await.is_err(), "{wrong}");
    }
}

#[tokio::test]
async fn a_changed_byte_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = ArchivePlace::folder(folder.path()).expect("opens");
    let entry = entry("a", "d");
    push(&place, &entry, &files().files).await.expect("is pushed");
    let path = folder.path().join(&entry.folder).join("report.json.zst");
    let mut bytes = std::fs::read(&path).expect("readable");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&path, bytes).expect("writable");
    let wrong = verify(&place, &entry).await.expect("is verified");
    assert!(wrong.len() == 1 && wrong[0].contains("report.json.zst"), "{wrong:?}");
}

#[tokio::test]
async fn an_index_entry_that_cannot_be_read_hides_no_other() {
    let place = memory();
    push(&place, &entry("a", "d"), &files().files).await.expect("is pushed");
    let large = Bytes::from(vec![b' '; (64 << 20) + 1]);
    place.create("index/2026-11-19/large.json", large).await.expect("is written");
    let listed = list(&place).await.expect("is listed");
    assert_eq!(listed.entries.len(), 1);
    assert!(listed.left_out[0].starts_with("index/2026-11-19/large.json is left out"), "{:?}", listed.left_out);
    let (found, left_out) = find(&place, "latest").await.expect("is found");
    assert_eq!((found.run_id.as_str(), left_out.len()), ("a", 1), "it may have been the latest");
    assert!(find(&place, "a").await.is_ok_and(|(_, left_out)| left_out.is_empty()));
}

#[tokio::test]
async fn a_name_or_a_link_in_a_folder_that_is_of_no_use_hides_no_run() {
    use std::os::unix::{ffi::OsStrExt as _, fs::symlink};
    let folder = tempfile::tempdir().expect("a folder");
    let place = ArchivePlace::folder(folder.path()).expect("opens");
    push(&place, &entry("a", "d"), &files().files).await.expect("is pushed");
    let matrices = folder.path().join("matrices/2026-01-01");
    std::fs::create_dir_all(&matrices).expect("is made");
    let index = folder.path().join("index");
    let mut named: Vec<&[u8]> = vec![b"\x1b[2J.json".as_slice(), b"of two\nlines.json".as_slice()];
    if cfg!(target_os = "linux") {
        // other systems take no such name
        named.push(b"\xff.json");
    }
    for below in [&index, &matrices] {
        for name in &named {
            std::fs::write(below.join(std::ffi::OsStr::from_bytes(name)), "{}").expect("is written");
        }
        for (name, to) in [("loop", "."), ("up", ".."), ("beyond", "../.."), ("nowhere", "missing")] {
            symlink(to, below.join(name)).expect("is made");
        }
    }
    // the store's own, while it writes
    std::fs::write(index.join("b.json#1"), "{}").expect("is written");
    let listed = list(&place).await.expect("is listed");
    assert_eq!(listed.entries, [entry("a", "d")]);
    assert_eq!(listed.left_out.len(), named.len() + 3, "{:?}", listed.left_out);
    assert!(listed.left_out.iter().all(|line| line.starts_with("index/") && line.contains(" is left out: ")));
    assert!(!listed.left_out.concat().contains(['\u{1b}', '\n']), "nothing acts: {:?}", listed.left_out);
    assert!(find(&place, "latest").await.is_ok_and(|(found, _)| found.run_id == "a"));
    assert_eq!(push(&place, &entry("b", "d"), &files().files).await.expect("is pushed"), Pushed::Archived);
    let documents = super::matrix::verify(&place, &listed.entries).await.expect("is verified");
    assert_eq!(documents.len(), named.len() + 3, "{documents:?}");
    assert_eq!(super::matrix::find(&place, "latest").await.expect("is looked for"), (None, Vec::new()));
    // an archive may be spread over several disks
    let elsewhere = tempfile::tempdir().expect("a folder");
    std::fs::rename(index.join("2026-11-20"), elsewhere.path().join("day")).expect("is moved");
    symlink(elsewhere.path().join("day"), index.join("2026-11-20")).expect("is made");
    assert_eq!(list(&place).await.expect("is listed").entries.len(), 2);
}

#[tokio::test]
async fn nothing_is_archived_through_a_link_within_the_archive() {
    use std::os::unix::fs::symlink;
    let (files, entry) = (files(), entry("a", "d"));
    for linked in ["runs", "runs/2026-11-20", "runs/2026-11-20/locomo/v1/a", "index", "index/2026-11-20"] {
        let (folder, elsewhere) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("another's folder"));
        let link = folder.path().join(linked);
        std::fs::create_dir_all(link.parent().expect("a folder")).expect("is made");
        symlink(elsewhere.path(), &link).expect("is made");
        let place = ArchivePlace::folder(folder.path()).expect("opens");
        for _ in 0..2 {
            let refused = push(&place, &entry, &files.files).await.expect_err("leads elsewhere");
            let named = refused.to_string().starts_with(&link.display().to_string());
            assert!(matches!(refused, ArchiveError::Link(_)) && named, "{linked}: {refused}");
            assert!(refused.to_string().contains("mount the disk"), "{refused}");
        }
        assert_eq!(std::fs::read_dir(elsewhere.path()).expect("is read").count(), 0, "{linked}");
    }
    // the archive itself is what its person has named
    let (folder, elsewhere) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a disk"));
    let link = folder.path().join("kept");
    symlink(elsewhere.path(), &link).expect("is made");
    let place = ArchivePlace::folder(&link).expect("opens");
    assert_eq!(push(&place, &entry, &files.files).await.expect("is pushed"), Pushed::Archived);
    assert!(elsewhere.path().join("index/2026-11-20/a.json").is_file());
}

#[test]
fn runs_that_are_not_comparable_are_not_joined() {
    let mut other = entry("bb", "d");
    other.conditions = "other graders".to_owned();
    let trajectory = Trajectory::through(vec![entry("a", "d"), other, entry("ccc", "d")], &Wanted::default());
    let ids: Vec<Vec<&str>> =
        trajectory.lines.iter().map(|line| line.points.iter().map(|p| p.run_id.as_str()).collect()).collect();
    assert_eq!(ids, [vec!["a", "ccc"], vec!["bb"]]);
    let svg = trajectory.svg();
    assert_eq!(svg.matches("class=\"path").count(), 1, "one line joins the two that are comparable");
}

#[test]
fn keys_in_a_url_are_refused_and_not_repeated() {
    let refused =
        ArchivePlace::open("s3://id:secret@bucket/x", std::iter::empty()).expect_err("is refused").to_string();
    assert!(!refused.contains("secret"), "{refused}");
    assert!(ArchivePlace::open("ftp://bucket/x", std::iter::empty()).is_err());
}

#[test]
fn an_account_that_lacks_a_part_is_told_which() {
    for (url, given, wanted) in [
        ("az://container/x", None, "name its account with AZURE_STORAGE_ACCOUNT_NAME"),
        ("s3://bucket/x", Some("AWS_ACCESS_KEY_ID"), "set AWS_SECRET_ACCESS_KEY too"),
        ("s3://bucket/x", Some("AWS_SECRET_ACCESS_KEY"), "set AWS_ACCESS_KEY_ID too"),
        ("gs://bucket/x", Some("GOOGLE_SERVICE_ACCOUNT_KEY"), "is no JSON of a service account"),
    ] {
        let environment = given.into_iter().map(|name| (name.to_owned(), "\"planted\"".to_owned()));
        let refused = ArchivePlace::open(url, environment).expect_err("is refused").to_string();
        assert!(refused.contains(wanted) && !refused.contains("Generic") && !refused.contains("planted"), "{refused}");
    }
}

#[test]
fn archives_of_all_kinds_are_understood() {
    let environment = || {
        [
            ("AWS_ACCESS_KEY_ID", "id"),
            ("AWS_SECRET_ACCESS_KEY", "planted"),
            ("AWS_REGION", "auto"),
            ("AZURE_STORAGE_ACCOUNT_NAME", "account"),
            ("AZURE_STORAGE_ACCOUNT_KEY", "cGxhbnRlZA=="),
            ("GOOGLE_SKIP_SIGNATURE", "true"),
            ("HOME", "/nowhere"),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
    };
    for (url, shown) in [
        ("s3://bucket/results", "s3://bucket/results"),
        ("gs://bucket/results/of/us", "gs://bucket/results/of/us"),
        ("az://container/results", "az://container/results"),
        ("azure://container", "azure://container"),
        (
            "https://0123abcd.r2.cloudflarestorage.com/bucket/results",
            "https://0123abcd.r2.cloudflarestorage.com/bucket/results",
        ),
        (
            "https://bucket.s3.eu-central-1.amazonaws.com/results",
            "https://bucket.s3.eu-central-1.amazonaws.com/results",
        ),
        (
            "https://account.blob.core.windows.net/container/results",
            "https://account.blob.core.windows.net/container/results",
        ),
    ] {
        let place = ArchivePlace::open(url, environment()).unwrap_or_else(|e| panic!("{url}: {e}"));
        assert_eq!(place.describe(), shown);
        assert!(!format!("{place:?}").contains("planted"), "keys are not shown");
    }
}

#[tokio::test]
async fn an_archive_is_as_open_as_its_folder() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a folder");
    for (name, mode, of_files) in [("new", None, 0o600), ("shared", Some(0o750), 0o640), ("open", Some(0o777), 0o666)] {
        let root = folder.path().join(name);
        if let Some(mode) = mode {
            std::fs::create_dir(&root).expect("is made");
            std::fs::set_permissions(&root, std::fs::Permissions::from_mode(mode)).expect("is changed");
        }
        let place = ArchivePlace::folder(&root).expect("opens");
        let file = folder.path().join("file");
        std::fs::write(&file, "large").expect("is written");
        assert_eq!(place.create("index/2026-01-01/a.json", "small".into()).await.expect("is put"), Put::Written);
        place.upload("runs/2026-01-01/d/v1/a/gold", &file).await.expect("is put");
        let mode_of = |path: &std::path::Path| path.metadata().expect("is there").permissions().mode() & 0o777;
        let mut folders = vec![root.clone()];
        while let Some(path) = folders.pop() {
            assert_eq!(mode_of(&path), mode.unwrap_or(0o700), "{}", path.display());
            for entry in std::fs::read_dir(&path).expect("readable") {
                let path = entry.expect("readable").path();
                match path.is_dir() {
                    true => folders.push(path),
                    false => assert_eq!(mode_of(&path), of_files, "{}", path.display()),
                }
            }
        }
    }
}

#[tokio::test]
async fn a_run_whose_dataset_is_a_way_elsewhere_is_archived_nowhere() {
    let around = tempfile::tempdir().expect("a folder");
    let place = ArchivePlace::folder(&around.path().join("in/here/archive")).expect("is made");
    for dataset in ["../../../../elsewhere", "..", "a/b", "/tmp"] {
        let folder = format!("runs/2026-11-20/{dataset}/v1/a");
        let entry = IndexEntry { dataset: dataset.to_owned(), folder, ..entry("a", "d") };
        let error = push(&place, &entry, &files().files).await.expect_err("is refused").to_string();
        assert!(error.contains("a cannot be archived") && error.contains("is no folder of"), "{error}");
    }
    let left: Vec<_> =
        std::fs::read_dir(around.path()).expect("readable").map(|entry| entry.expect("is read").file_name()).collect();
    assert_eq!(left, ["in"], "nothing was made beside the archive");
    assert_eq!(std::fs::read_dir(around.path().join("in/here/archive")).expect("readable").count(), 0);
}

#[tokio::test]
async fn a_manifest_that_somebody_wrote_names_no_way_out_of_the_archive() {
    let around = tempfile::tempdir().expect("a folder");
    let ours = entry("a", "d");
    let other = |run_id: &str, finished_at: &str| IndexEntry {
        run_id: run_id.to_owned(),
        finished_at: Some(finished_at.to_owned()),
        ..ours.clone()
    };
    let planted = [other("../../../out/config", "2026-11-20T10:00:00Z"), other("a", "../../evil"), entry("bb", "d")];
    for (at, planted) in planted.into_iter().enumerate() {
        let root = around.path().join(format!("in/{at}"));
        let place = ArchivePlace::folder(&root).expect("is made");
        let manifest = Manifest { manifest_version: 1, entry: planted, files: Vec::new() };
        let bytes = Bytes::from(serde_json::to_vec(&manifest).expect("is JSON"));
        let name = format!("{}/manifest.json", ours.folder);
        assert_eq!(place.create(&name, bytes).await.expect("is written"), Put::Written);
        let error = push(&place, &ours, &files().files).await.expect_err("is refused").to_string();
        assert!(error.contains("manifest.json cannot be used"), "{error}");
        let made: Vec<_> =
            std::fs::read_dir(&root).expect("readable").map(|entry| entry.expect("is read").file_name()).collect();
        assert_eq!(made, ["runs"], "no index is made of it");
    }
    let left: Vec<_> =
        std::fs::read_dir(around.path()).expect("readable").map(|entry| entry.expect("is read").file_name()).collect();
    assert_eq!(left, ["in"], "nothing was made beside the archive");
    let place = ArchivePlace::folder(&around.path().join("in/0")).expect("opens");
    for name in ["../beside/a", "index/../../beside/a", "index//a", "./a", "index/.."] {
        assert!(place.create(name, Bytes::from_static(b"x")).await.is_err(), "{name}");
    }
    assert!(!around.path().join("in/beside").exists());
}

#[tokio::test]
async fn an_index_entry_takes_the_place_of_no_other_run() {
    let place = memory();
    push(&place, &entry("a", "d"), &files().files).await.expect("is pushed");
    let bytes = |entry: &IndexEntry| Bytes::from(serde_json::to_vec(entry).expect("is JSON"));
    let planted = bytes(&IndexEntry { value: Some(1.0), ..entry("a", "d") });
    assert_eq!(place.create("index/2026-11-20/0.json", planted).await.expect("is written"), Put::Written);
    let listed = list(&place).await.expect("is listed");
    assert_eq!(listed.entries, [entry("a", "d")]);
    let why = "index/2026-11-20/0.json is left out: ";
    assert!(listed.left_out[0].starts_with(why) && listed.left_out[0].contains("index/2026-11-20/a.json"));
    assert_eq!(find(&place, "a").await.expect("is found").0, entry("a", "d"));

    // under the name that it says, on another day
    let earlier = IndexEntry { finished_at: Some("2026-11-19T10:00:00Z".to_owned()), ..entry("a", "other") };
    assert_eq!(place.create(&earlier.object(), bytes(&earlier)).await.expect("is written"), Put::Written);
    for selector in ["a", "latest"] {
        let error = find(&place, selector).await.expect_err("is refused").to_string();
        assert!(error.contains("index/2026-11-19/a.json, index/2026-11-20/a.json"), "{error}");
    }
}

#[tokio::test]
async fn a_manifest_does_not_decide_how_much_comes_out_of_a_file() {
    let (place, files, entry) = (memory(), files(), entry("a", "d"));
    push(&place, &entry, &files.files).await.expect("is pushed");
    let sound = manifest(&place, &entry).await.expect("is read");
    let changed = async |change: fn(&mut Manifest)| {
        let (other, mut manifest) = (memory(), sound.clone());
        for name in place.names("").await.expect("are listed").iter().filter(|name| !name.ends_with("manifest.json")) {
            let bytes = place.read(name).await.expect("is read").expect("is there");
            other.create(name, bytes).await.expect("is written");
        }
        change(&mut manifest);
        let bytes = serde_json::to_vec(&manifest).expect("is JSON");
        other.create(&format!("{}/manifest.json", entry.folder), bytes.into()).await.expect("is written");
        verify(&other, &entry).await.expect("answers").join("\n")
    };
    let said = changed(|manifest| manifest.files[0].plain_bytes = 2 << 30).await;
    assert!(said.contains("would become 2147483648 bytes of ") && said.ends_with("it is not unpacked"), "{said}");
    let said = changed(|manifest| manifest.files[0].bytes += 1).await;
    assert!(said.contains(" bytes, and ") && said.ends_with("were written"), "{said}");
}

#[tokio::test]
async fn results_by_another_methodology_lie_apart_and_no_other_part_of_a_path_is_one() {
    let place = memory();
    for (id, version) in [("a", "v1"), ("b", "v2"), ("c", "v31")] {
        let folder = format!("runs/2026-11-20/locomo/{version}/{id}");
        let entry = IndexEntry { folder: folder.clone(), ..entry(id, "d") };
        push(&place, &entry, &files().files).await.expect("is pushed");
        assert_eq!(find(&place, id).await.expect("is found").0.folder, folder);
    }
    for wrong in ["1", "v", "v0", "v01", "v+1", "w1", "v1a", "v99999999999"] {
        let folder = format!("runs/2026-11-20/locomo/{wrong}/a");
        let error =
            push(&place, &IndexEntry { folder, ..entry("a", "d") }, &files().files).await.expect_err("is refused");
        assert!(error.to_string().contains("is no folder of run a"), "{error}");
    }
}

#[tokio::test]
async fn runs_of_one_dataset_system_and_day_lie_side_by_side() {
    let place = memory();
    for id in ["morning", "evening"] {
        let pushed = push(&place, &entry(id, id), &files().files).await.expect("is pushed");
        assert_eq!(pushed, Pushed::Archived, "{id}");
    }
    let listed = list(&place).await.expect("are listed").entries;
    let digests: Vec<(&str, &str)> =
        listed.iter().map(|entry| (entry.run_id.as_str(), entry.result_digest.as_str())).collect();
    assert_eq!(digests, [("evening", "evening"), ("morning", "morning")]);
    for entry in &listed {
        assert_eq!(verify(&place, entry).await.expect("answers"), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_run_without_its_texts_says_so_and_is_not_mistaken_for_one_with_them() {
    let place = memory();
    let whole = entry("a", "d");
    let told = IndexEntry { without_texts: Some("no licence is stated".to_owned()), ..whole.clone() };
    assert_eq!(push(&place, &told, &files().files).await.expect("is pushed"), Pushed::Archived);
    assert_eq!(find(&place, "a").await.expect("is found").0.without_texts, told.without_texts);
    assert_eq!(push(&place, &told, &files().files).await.expect("answers"), Pushed::WasThere);
    let other = push(&place, &whole, &files().files).await.expect("answers");
    assert_eq!(other, Pushed::WasThereOtherwise { with_texts: false });
    // what older archives hold says nothing of it, and has all texts
    let text = serde_json::to_string(&whole).expect("is JSON");
    assert!(!text.contains("without_texts"), "{text}");
}

#[tokio::test]
async fn a_run_counted_as_others_do_says_so_with_its_figure() {
    let ours = entry("a", "d");
    let counted = IndexEntry { counted_as: Some("mem0-2025".to_owned()), counted_value: Some(0.625), ..ours.clone() };
    let told = |entry: &IndexEntry| {
        let badge = entry.badge();
        ["label", "message"].map(|key| badge[key].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(told(&ours), ["locomo full locomo-f1", "50.0 % (40.0 to 60.0)"]);
    assert_eq!(told(&counted), ["locomo full locomo-f1 counted as mem0-2025", "62.5 %"]);
    let text = serde_json::to_string(&ours).expect("is JSON");
    assert!(!text.contains("counted"), "{text}");
    let beyond = IndexEntry { counted_value: Some(1e300), ..counted };
    assert!(push(&memory(), &beyond, &files().files).await.is_err(), "a picture would be drawn of it");
}

#[tokio::test]
async fn a_matrix_that_grows_has_another_document_and_the_same_one_is_there_once() {
    let place = memory();
    let report = serde_json::from_str(include_str!("../../../../proto/golden/matrix.v1.json")).expect("the golden one");
    let matrix = ArchivedMatrix {
        matrix_version: ARCHIVED_MATRIX_VERSION,
        date: "2026-11-20".to_owned(),
        runs: [("p-c1-r1".to_owned(), "runs/2026-11-20/locomo/v1/p-c1-r1".to_owned())].into(),
        report,
    };
    let first = "matrices/2026-11-20/p/results-matrix-2026-11-20.json".to_owned();
    let push = async |matrix: &ArchivedMatrix| super::matrix::push(&place, matrix).await;
    assert_eq!(push(&matrix).await.expect("is pushed"), (first.clone(), Pushed::Archived));
    assert_eq!(push(&matrix).await.expect("is there"), (first.clone(), Pushed::WasThere));
    let mut grown = matrix.clone();
    grown.runs.insert("p-c9-r1".to_owned(), "runs/2026-11-20/locomo/v1/p-c9-r1".to_owned());
    let second = "matrices/2026-11-20/p/results-matrix-2026-11-20-2.json".to_owned();
    assert_eq!(push(&grown).await.expect("is pushed"), (second, Pushed::Archived));
    assert_eq!(push(&matrix).await.expect("is there"), (first.clone(), Pushed::WasThere));
    let read: ArchivedMatrix =
        serde_json::from_slice(&place.read(&first).await.expect("is read").expect("is there")).expect("is JSON");
    assert_eq!(read, matrix);
    let find = async |id: &str| super::matrix::find(&place, id).await;
    assert_eq!(find("p").await.expect("is found"), (Some(grown.clone()), vec![]), "the newest");
    for none in ["q", "../p", "", "2026-11-20"] {
        assert_eq!(find(none).await.expect("is looked for"), (None, vec![]), "{none}");
    }
    let of_other = serde_json::json!({"matrix_version": 1, "date": "2026-11-21", "runs": {}, "report": read.report});
    for (id, document) in
        [("o", of_other), ("n", serde_json::json!({"matrix_version": 99})), ("x", serde_json::json!([]))]
    {
        let name = format!("matrices/2026-11-21/{id}/results-matrix-2026-11-21.json");
        place.create(&name, document.to_string().into()).await.expect("is written");
        let (found, left_out) = find(id).await.expect("is looked for");
        assert!(found.is_none() && left_out.len() == 1, "{id}: {left_out:?}");
    }
    let newer = "matrices/2026-11-22/p/results-matrix-2026-11-22.json";
    place.create(newer, "{".into()).await.expect("is written");
    let (found, left_out) = find("p").await.expect("is found");
    assert_eq!((found, left_out.len()), (Some(grown), 1), "one that is damaged hides no older one");
    let mut elsewhere = matrix.clone();
    elsewhere.report.id = "../p".to_owned();
    assert!(matches!(push(&elsewhere).await, Err(ArchiveError::Damaged(_))));
    let undated = ArchivedMatrix { date: "----------".to_owned(), ..matrix };
    assert!(matches!(push(&undated).await, Err(ArchiveError::Damaged(_))));
}

#[tokio::test]
async fn several_who_bring_the_same_matrix_leave_one_document() {
    let place = memory();
    let report = serde_json::from_str(include_str!("../../../../proto/golden/matrix.v1.json")).expect("the golden one");
    let one = ArchivedMatrix {
        matrix_version: ARCHIVED_MATRIX_VERSION,
        date: "2026-11-20".to_owned(),
        runs: [("p-c1-r1".to_owned(), "runs/2026-11-20/locomo/v1/p-c1-r1".to_owned())].into(),
        report,
    };
    // the runs are the same, what else is said of them was said at another time
    let mut other = one.clone();
    other.report.name = Some("renamed".to_owned());
    let (first, second) = tokio::join!(super::matrix::push(&place, &one), super::matrix::push(&place, &other));
    let (first, second) = (first.expect("is pushed"), second.expect("is pushed"));
    assert_eq!(first.0, second.0);
    assert_eq!([first.1, second.1].iter().filter(|pushed| **pushed == Pushed::Archived).count(), 1);
    assert_eq!(place.names("matrices").await.expect("are listed"), [first.0]);
    // by a further axis the same runs say something else
    other.report.axes.insert("further".to_owned(), vec!["a".to_owned()]);
    let (name, pushed) = super::matrix::push(&place, &other).await.expect("is pushed");
    assert_eq!((name.ends_with("-2.json"), pushed), (true, Pushed::Archived), "{name}");
}
