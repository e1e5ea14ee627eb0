//! A file of LongMemEval's shape that should not be held: opened and outlined, and read bank by bank, beside one pass over the
//! same file that hashes it and skips through it with serde_json. Each in a process of its own, for its peak of memory.

use std::{
    fs::File,
    io::{BufReader, BufWriter, Read, Write},
    path::Path,
    process::Command,
};

use anyhow::ensure;
use bench_datasets::OpenOptions;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::measure::{Sample, median, run};

const QUESTIONS: u64 = 500;
/// Bytes of a session in the published file: ten turns.
const SESSION_BYTES: u64 = 11_600;
/// Most of the yardstick's time that opening may take.
const MOST_RATIO: f64 = 1.5;
/// Memory that opening may take: a floor, and so many of the largest bank.
const FLOOR_MIB: f64 = 64.0;
const LARGEST_BANKS: f64 = 3.0;

/// How a file is gone through in a process of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Way {
    /// Opened as `longmemeval`, every outline asked for
    Open,
    /// The same, and every bank read
    Banks,
    /// The yardstick on the whole file in memory
    Slice,
    /// The yardstick on a reader
    Reader,
}

/// Goes through a file; the number of records, where it was found out.
pub(crate) fn go_through(path: &Path, way: Way) -> anyhow::Result<usize> {
    match way {
        Way::Slice => {
            let content = std::fs::read(path)?;
            let hash = Sha256::digest(&content);
            serde_json::from_slice::<IgnoredAny>(&content)?;
            Ok(usize::from(hash[0] == 0))
        }
        Way::Reader => {
            let mut file = Hashing { file: File::open(path)?, hash: Sha256::new() };
            serde_json::from_reader::<_, IgnoredAny>(BufReader::with_capacity(1 << 20, &mut file))?;
            Ok(usize::from(file.hash.finalize()[0] == 0))
        }
        Way::Open | Way::Banks => {
            let options = OpenOptions { path: Some(path.to_owned()), allow_modified: true, ..OpenOptions::default() };
            let dataset = bench_datasets::open("longmemeval", &options, &|_, _| ())?;
            for bank in 0..dataset.bank_count() {
                let outline = dataset.outline(bank)?;
                if way == Way::Banks {
                    ensure!(dataset.bank(bank)?.outline() == outline, "bank {bank} is not as it was outlined");
                }
            }
            Ok(dataset.bank_count())
        }
    }
}

/// A reader that hashes what it reads.
struct Hashing {
    file: File,
    hash: Sha256,
}

impl Read for Hashing {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.hash.update(&buffer[..read]);
        Ok(read)
    }
}

/// Writes a file of about so many bytes, opens it in turn with the yardsticks, and compares with the faster one.
pub(crate) fn large_file(rounds: usize, mib: u64) -> anyhow::Result<Value> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("large.json");
    let (bytes, largest) = write(&path, mib << 20)?;
    let this = std::env::current_exe()?;
    let ways = [("open", "open"), ("slice", "slice"), ("reader", "reader"), ("banks", "banks")];
    let mut samples: [Vec<Sample>; 4] = Default::default();
    // the first round fills the page cache and is not counted
    for round in 0..=rounds {
        for ((_, way), samples) in ways.iter().zip(&mut samples) {
            let sample = run(Command::new(&this).args(["go-through", "--way", way]).arg(&path))?;
            if round > 0 {
                samples.push(sample);
            }
        }
    }
    let wall = |samples: &[Sample]| median(samples.iter().map(|sample| sample.wall_seconds));
    let peak = |samples: &[Sample]| samples.iter().map(|sample| sample.peak_mib).fold(0.0, f64::max);
    let [open, slice, reader, banks] = &samples;
    let faster = wall(slice).min(wall(reader));
    let ratio = wall(open) / faster;
    let largest_mib = largest as f64 / f64::from(1 << 20);
    let most_mib = FLOOR_MIB + LARGEST_BANKS * largest_mib;
    Ok(json!({
        "scenario": "large-file",
        "bytes": bytes,
        "largest_bank_bytes": largest,
        "open_seconds": wall(open),
        "open_mib": peak(open),
        "banks_seconds": wall(banks),
        "banks_mib": peak(banks),
        "yardstick": {
            "what": "one process that hashes the file and skips through it with serde_json, the faster of both ways",
            "slice_seconds": wall(slice),
            "reader_seconds": wall(reader),
        },
        "ratio": ratio,
        "targets": {"ratio": MOST_RATIO, "mib": most_mib},
        "within": ratio <= MOST_RATIO && peak(open).max(peak(banks)) <= most_mib,
        "samples": ways.iter().zip(&samples).map(|((name, _), samples)| (*name, samples)).collect::<std::collections::BTreeMap<_, _>>(),
    }))
}

/// Writes 500 questions with haystacks that grow with the file; its bytes and those of the largest record.
fn write(path: &Path, bytes: u64) -> anyhow::Result<(u64, usize)> {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let sessions = (bytes / QUESTIONS / SESSION_BYTES).max(1);
    let (mut words, mut largest, mut written) = (Words(7), 0, 1);
    file.write_all(b"[")?;
    for question in 0..QUESTIONS {
        // as in the published files, some haystacks are a quarter larger than others
        let record =
            serde_json::to_vec(&record(question, sessions - sessions / 8 + words.below(sessions / 4 + 1), &mut words))?;
        let between: &[u8] = if question + 1 < QUESTIONS { b", " } else { b"]" };
        file.write_all(&record)?;
        file.write_all(between)?;
        largest = largest.max(record.len());
        written += (record.len() + between.len()) as u64;
    }
    file.flush()?;
    Ok((written, largest))
}

fn record(question: u64, sessions: u64, words: &mut Words) -> Value {
    const KINDS: [&str; 6] = [
        "single-session-user",
        "single-session-assistant",
        "single-session-preference",
        "multi-session",
        "temporal-reasoning",
        "knowledge-update",
    ];
    let evidence = words.below(sessions);
    let session_id =
        |n: u64| if n == evidence { format!("answer_{question}") } else { format!("filler_{question}_{n}") };
    let session = |n: u64, words: &mut Words| {
        let turn = |turn: u64, words: &mut Words| {
            let (role, bytes) = if turn.is_multiple_of(2) { ("user", 350) } else { ("assistant", 1_850) };
            let content = words.text(bytes);
            if n == evidence {
                json!({"role": role, "content": content, "has_answer": turn == 0})
            } else {
                json!({"role": role, "content": content})
            }
        };
        (0..10).map(|number| turn(number, words)).collect::<Vec<_>>()
    };
    let minute = |n: u64| n * 1_439 / sessions;
    json!({
        "question_id": format!("{question:08x}"),
        "question_type": KINDS[(question % 6) as usize],
        "question": words.text(70),
        "answer": words.text(20),
        "question_date": "2023/05/30 (Tue) 20:00",
        "haystack_dates": (0..sessions).map(|n| format!("2023/05/20 (Sat) {:02}:{:02}", minute(n) / 60, minute(n) % 60)).collect::<Vec<_>>(),
        "haystack_session_ids": (0..sessions).map(session_id).collect::<Vec<_>>(),
        "haystack_sessions": (0..sessions).map(|n| session(n, words)).collect::<Vec<_>>(),
        "answer_session_ids": [session_id(evidence)],
    })
}

/// Text as of an assistant, made of few words: lines, lists and quotes, so that every other line has something to escape.
struct Words(u64);

impl Words {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound.max(1)
    }

    fn text(&mut self, bytes: usize) -> String {
        const WORDS: [&str; 16] = [
            "the",
            "garden",
            "is",
            "watered",
            "every",
            "morning",
            "before",
            "work",
            "\"early\"",
            "and",
            "again\n",
            "in",
            "summer,",
            "as",
            "neighbours’",
            "advice\n\n1.",
        ];
        let mut text = String::with_capacity(bytes + 16);
        while text.len() < bytes {
            text.push_str(WORDS[self.below(16) as usize]);
            text.push(' ');
        }
        text
    }
}
