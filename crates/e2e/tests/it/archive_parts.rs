//! Large files of an archive: brought in parts, to two S3 servers, through parts that fail.

use std::fmt::Write as _;

use bench_testkit::{
    bench::{Bench, Done, wait},
    http,
    s3::S3,
    troubled_s3::{Trouble, TroubledS3},
};
use serde_json::json;

/// Letters that do not get smaller than three quarters when they are packed: noise with six bits each.
fn noise(seed: u64, letters: usize) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-";
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(ALPHABET[(state >> 58) as usize])
    };
    (0..letters).map(|_| next()).collect()
}

/// Ids of fifty questions.
fn ids() -> Vec<String> {
    let bench = Bench::new();
    let _ = bench.run(["submit", "--dataset", "locomo-sim", "--preset", "quick", "--run-id", "ids"]).expect_code(0);
    bench.questions("ids").iter().map(|q| q["question_id"].as_str().expect("an id").to_owned()).collect()
}

/// A bench with a finished run `large`: fifty answers, all with this score, whose files are larger when they are packed than a
/// part of 8 MiB.
fn with_a_large_run(place: &str, ids: &[String], score: u8) -> Bench {
    let environment = S3::environment(place).into_iter();
    let bench = environment.fold(Bench::new(), |bench, (name, value)| bench.with_env(name, value));
    let mut lines = String::new();
    for (number, id) in (0..).zip(ids) {
        let answer = noise(u64::from(score) * 1_000 + number, 235_000);
        let _ = writeln!(lines, "{}", json!({"question_id": id, "answer": answer, "score": score}));
    }
    std::fs::write(bench.path().join("answers.jsonl"), lines).expect("writable");
    let import = ["import", "--dataset", "locomo-sim", "--answers", "answers.jsonl", "--subset", "--run-id", "large"];
    let _ = bench.run(import).expect_code(0);
    bench
}

fn push(bench: &Bench, archive: &str) -> Done {
    bench.run(["archive", "push", "large", "--archive", archive])
}

fn listed(bench: &Bench, archive: &str) -> usize {
    let listed = bench.run(["archive", "list", "--archive", archive, "--json"]).expect_code(0).json();
    listed.as_array().map_or(0, Vec::len)
}

/// Pushes a large run to the server, while parts of it fail in every way.
fn large_files_survive_parts_that_fail(s3: &TroubledS3, ids: &[String]) -> Bench {
    let bench = with_a_large_run(s3.place(), ids, 1);
    let archive = "s3://bench/parts";
    // a part that fails once is brought again by the same push
    s3.trouble_part(2, 1, Trouble::LostReply);
    let _ = push(&bench, archive).expect_code(0);
    let parts = s3.parts();
    let of = |number: u32| parts.iter().filter(|part| **part == number).count();
    assert!(of(1) >= 1, "{parts:?}");
    assert_eq!(of(2), of(1) + 1, "the second part of one file was brought twice: {parts:?}");
    let _ = bench.run(["archive", "verify", "--archive", archive]).expect_code(0);
    // written once: whoever comes again brings nothing
    let _ = push(&bench, archive).expect_code(0);
    assert_eq!((s3.parts().len(), listed(&bench, archive)), (parts.len(), 1), "nothing was brought again");

    // a part that fails for good ends the push: nothing is listed, and the next push makes it whole
    let archive = "s3://bench/gone-on";
    s3.trouble_part(2, u64::MAX, Trouble::Busy);
    let failed = push(&bench, archive).expect_code(4);
    assert!(failed.stderr.contains("nothing is lost"), "{}", failed.stderr);
    assert_eq!(listed(&bench, archive), 0);
    s3.trouble_part(1, 1, Trouble::Cut);
    let _ = push(&bench, archive).expect_code(0);
    let _ = bench.run(["archive", "fetch", "large", "--archive", archive, "--output-dir", "out"]).expect_code(0);
    let bytes = |folder: &str| std::fs::read(bench.path().join(folder).join("questions.jsonl")).expect("readable");
    assert!(bytes("out") == bytes(".bench/runs/large"), "what was fetched is what was written");
    s3.heal();
    bench
}

#[test]
fn large_files_go_to_moto_in_parts() {
    let moto = S3::start();
    let s3 = TroubledS3::before(moto.place());
    let _bench = large_files_survive_parts_that_fail(&s3, &ids());
    // uploads that were given up cost room until they are ended: none is left
    let left = http::get(moto.place(), "/bench?uploads").expect("moto answers");
    assert_eq!(left.status, 200, "{}", left.body);
    assert!(left.body.contains("ListMultipartUploadsResult") && !left.body.contains("<Upload>"), "{}", left.body);
}

#[test]
fn large_files_go_to_another_s3_server_in_parts_and_are_written_once() {
    let s3 = TroubledS3::start();
    let ids = ids();
    let bench = large_files_survive_parts_that_fail(&s3, &ids);
    // two results under one id at once: one of them is archived whole, the other refused
    let other = with_a_large_run(s3.place(), &ids, 0);
    let archive = "s3://bench/race";
    let both = [&bench, &other].map(|bench| bench.start(["archive", "push", "large", "--archive", archive]));
    let mut codes = both.map(|child| wait(child).code);
    codes.sort_unstable();
    assert_eq!(codes, [0, 2]);
    let _ = bench.run(["archive", "verify", "--archive", archive]).expect_code(0);
    assert_eq!(listed(&bench, archive), 1);
}
