//! The corpus, and some hundred inputs made of it, through every target. The same ones each time.

use std::{collections::BTreeSet, fs};

use bench_fuzz::{TARGETS, corpus, mutate};
use rand::{SeedableRng as _, rngs::StdRng};

/// Inputs that are made for a target.
const MADE: usize = 600;

/// Runs an input; what breaks is named and can be read again.
fn read(target: &bench_fuzz::Target, name: &str, input: &[u8]) {
    let read = std::panic::catch_unwind(|| (target.read)(input));
    if let Err(panic) = read {
        let saved = std::env::temp_dir().join(format!("{}-{name}", target.name));
        fs::write(&saved, input).expect("writable");
        eprintln!("bench-fuzz {} --replay {}", target.name, saved.display());
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn every_input_of_the_corpus_keeps_what_is_promised() {
    for target in TARGETS {
        let inputs = corpus::read(&corpus::folder(target.name)).expect("is there");
        assert!(inputs.len() >= 4, "{}: only {} inputs", target.name, inputs.len());
        inputs.iter().for_each(|(name, input)| read(target, name, input));
    }
    let folders = fs::read_dir(corpus::folder("")).expect("is there");
    let folders: BTreeSet<String> =
        folders.map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(folders, TARGETS.iter().map(|target| target.name.to_owned()).collect(), "a folder for each target");
}

#[test]
fn inputs_made_of_the_corpus_keep_what_is_promised() {
    for target in TARGETS {
        let mut rng = StdRng::seed_from_u64(17);
        let pool: Vec<Vec<u8>> =
            corpus::read(&corpus::folder(target.name)).expect("is there").into_iter().map(|(_, input)| input).collect();
        for n in 0..MADE {
            read(target, &format!("made-{n}"), &mutate::made_of(&pool, &mut rng));
        }
    }
}
