//! With a real model: all-MiniLM-L6-v2, installed from the package registry. `make test-local-embeddings` runs them.

use std::{path::Path, sync::Arc};

use bench_proto::{
    dataset::{BankContent, Memory, StreamEntry},
    ids::Sha256Hash,
};
use bench_testkit::python::minilm_folder;
use serde_json::Value;

use super::*;
use crate::{BankRef, BuildContext, MemorySystem, RecallQuery, SystemSettings, embed::EmbeddingModel, registry};

fn settings(folder: &Path) -> SystemSettings {
    SystemSettings::from([
        ("vector.model".to_owned(), Value::from("local")),
        ("vector.folder".to_owned(), folder.display().to_string().into()),
    ])
}

fn system(name: &str, folder: &Path) -> Arc<dyn MemorySystem> {
    registry::build(name, &settings(folder), &BuildContext::default()).expect("builds")
}

fn bank(texts: &[&str]) -> BankRef {
    let memory = |(at, text): (usize, &&str)| {
        StreamEntry::Memory(Memory { id: format!("m{at}"), text: (*text).to_owned(), ..Memory::default() })
    };
    let entries = texts.iter().enumerate().map(memory).collect();
    let content = BankContent { bank_id: "b".to_owned(), speakers: Vec::new(), entries };
    BankRef {
        name: "bench-1-g1".to_owned(),
        handle: None,
        bank_id: "b".to_owned(),
        content_hash: Sha256Hash::of_bytes(&serde_json::to_vec(&content).expect("serialises")),
        content: Some(Arc::new(content)),
    }
}

async fn found(system: &dyn MemorySystem, bank: &BankRef, text: &str) -> Vec<(String, f64)> {
    let query = RecallQuery { question_id: "q", text, k: 2, visible_entries: u32::MAX, ..RecallQuery::default() };
    let hits = system.recall(bank, &query).await.expect("recalls").hits;
    hits.into_iter().map(|hit| (hit.id, hit.score.unwrap_or_default())).collect()
}

async fn embedded(model: &LocalModel, texts: &[&str]) -> Vec<Vec<f32>> {
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    let any = EmbeddingModel { name: "local".to_owned(), account: String::new() };
    model.embed.embed(&any, &texts).await.expect("embeds")
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_are_found_by_what_they_mean() {
    let folder = minilm_folder();
    let bank = bank(&[
        "The quarterly figures of the shipping company were poor",
        "Our kitten slept on the sofa all afternoon",
        "She repaired her bicycle on Sunday",
    ]);
    for name in ["vector", "hybrid"] {
        let system = system(name, &folder);
        let hits = found(system.as_ref(), &bank, "Where did the young cat take a nap?").await;
        assert_eq!(hits[0].0, "m1", "{name}: {hits:?}");
        assert!(system.capabilities().version.contains('+'), "the model is a part of the version");
    }
    let words = registry::build("bm25", &SystemSettings::new(), &BuildContext::default()).expect("builds");
    assert_eq!(found(words.as_ref(), &bank, "Where did the young cat take a nap?").await, [], "no word is shared");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cosines_are_those_of_the_published_model() {
    let model = LocalModels::default().open(&minilm_folder().display().to_string()).expect("loads");
    let vectors = embedded(&model, &["a cat", "a feline", "the stock market fell"]).await;
    assert_eq!(vectors[0].len(), 384);
    assert!(cosine(&vectors[0], &vectors[1]) > 0.5);
    assert!(cosine(&vectors[0], &vectors[2]) < 0.2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_has_its_vector_whoever_stands_beside_it() {
    let model = LocalModels::default().open(&minilm_folder().display().to_string()).expect("loads");
    let many: Vec<String> = (1..80).map(|n| format!("number {n} {}", "and some more words ".repeat(n % 7))).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let together = embedded(&model, &many).await;
    for at in [0, 33, 78] {
        let alone = embedded(&model, &[many[at]]).await;
        assert!(cosine(&alone[0], &together[at]) > 0.99999, "text {at}");
    }
    assert_eq!(embedded(&model, &[]).await.len(), 0);
    assert!(embedded(&model, &[""]).await[0].iter().all(|x| x.is_finite()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_texts_are_not_cut() {
    let model = LocalModels::default().open(&minilm_folder().display().to_string()).expect("loads");
    let sea = "the lamp was lit and the sea was calm and nothing happened at all ".repeat(40);
    let with_end = format!("{sea} {}", "my cat sleeps on the sofa, a lazy kitten. ".repeat(40));
    let vectors = embedded(&model, &[&sea, &with_end, "a sleeping cat"]).await;
    assert!(cosine(&vectors[0], &vectors[1]) < 0.99, "a text that was cut would be the same");
    assert!(cosine(&vectors[1], &vectors[2]) > cosine(&vectors[0], &vectors[2]), "the end is part of the vector");
}

#[test]
fn mistakes_name_the_file() {
    let refused = |folder: &Path| {
        let error = registry::build("vector", &settings(folder), &BuildContext::default()).err();
        error.expect("must be refused").to_string().replace(&folder.display().to_string(), "FOLDER")
    };
    let folder = tempfile::tempdir().expect("a folder");
    let note = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("is written");
    let mut lines = vec![refused(folder.path())];
    note("config.json", r#"{"model_type": "gpt2"}"#);
    note("tokenizer.json", "{}");
    lines.push(refused(folder.path()));
    note("model.safetensors", "nothing");
    lines.push(refused(folder.path()));
    let config = std::fs::read_to_string(minilm_folder().join("config.json")).expect("is there");
    note("config.json", &config);
    lines.push(refused(folder.path()));
    std::fs::copy(minilm_folder().join("tokenizer.json"), folder.path().join("tokenizer.json")).expect("is copied");
    lines.push(refused(folder.path()));
    insta::assert_snapshot!(lines.join("\n"));
}
