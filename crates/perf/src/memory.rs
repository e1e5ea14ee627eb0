//! What a process that works holds of large banks: a run over twenty banks of five megabytes each, against the same run over two.
//!
//! The plan is written into a store of its own, so that what is measured is the work alone: no dataset is read.

use std::process::Command;

use bench_proto::dataset::{BankContent, Gold, GoldRecord, Question, Session, StreamEntry, Turn};
use bench_store::{Segment, Store};
use serde_json::{Value, json};

use crate::{
    measure::{Sample, run},
    results::{new_run, spec_of, write_bank},
    scenarios::Lab,
};

const BANKS: [u32; 2] = [20, 2];
const SESSIONS: u32 = 100;
const TURNS: u32 = 100;
/// Bytes of a turn's text: with its frame, a bank has five megabytes.
const TURN_BYTES: usize = 440;
const QUESTIONS: u32 = 10;
const TARGET_MIB: f64 = 300.0;

/// Peaks of both runs, round by round.
pub(crate) async fn memory(lab: &Lab) -> anyhow::Result<Value> {
    let (mut many, mut few, mut bank_bytes) = (Vec::new(), Vec::new(), 0);
    for _ in 0..lab.rounds {
        for (banks, peaks) in BANKS.into_iter().zip([&mut many, &mut few]) {
            let folder = tempfile::tempdir()?;
            let url = format!("sqlite:{}", folder.path().join("bench.db").display());
            let store = bench_store::open(&url).await?;
            bank_bytes = write_plan(store.as_ref(), banks).await?;
            store.close().await;
            let mut command = Command::new(lab.binaries.join("bench-coord"));
            peaks.push(run(command.current_dir(folder.path()).args(["--store", &url, "resume", "memory"]))?);
        }
    }
    // a bound is held by the worst of the rounds
    let peak = |samples: &[Sample]| samples.iter().map(|sample| sample.peak_mib).fold(0.0, f64::max);
    Ok(json!({
        "scenario": "memory",
        "banks": BANKS[0],
        "bank_mib": bank_bytes as f64 / f64::from(1 << 20),
        "peak_mib": peak(&many),
        "target_mib": TARGET_MIB,
        "met": peak(&many) <= TARGET_MIB,
        "yardstick": {
            "what": format!("the same run over {} of the banks", BANKS[1]),
            "peak_mib": peak(&few),
            "ratio": peak(&many) / peak(&few),
        },
        "rounds": {"many": many, "few": few},
    }))
}

/// Writes a run that is planned and not begun; returns the bytes of one bank.
async fn write_plan(store: &dyn Store, banks: u32) -> anyhow::Result<usize> {
    let mut spec = spec_of(banks * QUESTIONS, 0);
    spec.system.version = "1.0.0".to_owned();
    let run = store.create_run(&new_run("memory", spec)).await?;
    let mut bytes = 0;
    for bank_no in 0..banks {
        let content = content(bank_no);
        let asked: Vec<Question> = (0..QUESTIONS).map(|index| question(bank_no, index)).collect();
        let gold: Vec<GoldRecord> = asked.iter().map(gold).collect();
        let segment = Segment { until: SESSIONS, questions: (0..QUESTIONS).collect() };
        bytes = write_bank(store, run, bank_no, &content, (&asked, &gold), segment).await?;
    }
    store.finish_plan(run).await?;
    Ok(bytes)
}

/// A bank in which no two turns are alike.
fn content(bank: u32) -> BankContent {
    let turn = |session: u32, at: u32| {
        let mut text = format!("In bank {bank} subject {session} was named {at} times");
        let mut word = bank.wrapping_mul(40_503) ^ session.wrapping_mul(2_654_435_761) ^ at;
        while text.len() < TURN_BYTES {
            word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            text.push_str(&format!(" word{}", word >> 18));
        }
        Turn {
            id: format!("S{session}:{at}"),
            speaker: ["user", "assistant"][at as usize % 2].to_owned(),
            text,
            ..Turn::default()
        }
    };
    let session = |number: u32| {
        StreamEntry::Session(Session {
            id: format!("S{number}"),
            turns: (0..TURNS).map(|at| turn(number, at)).collect(),
            ..Session::default()
        })
    };
    let entries = (0..SESSIONS).map(session).collect();
    BankContent { bank_id: format!("bank-{bank}"), speakers: Vec::new(), entries }
}

fn question(bank: u32, index: u32) -> Question {
    Question {
        question_id: format!("bank-{bank}:{index}"),
        index,
        category: "single-hop".to_owned(),
        text: format!("How often was subject {index} named?"),
        ask_after: SESSIONS,
        ..Question::default()
    }
}

fn gold(question: &Question) -> GoldRecord {
    GoldRecord {
        question_id: question.question_id.clone(),
        gold: Gold::Text("99 times".to_owned()),
        ..GoldRecord::default()
    }
}
