//! Sentence embeddings by a BERT model, in a folder as sentence-transformers writes it: `config.json`, `tokenizer.json`,
//! `model.safetensors`, and `sentence_bert_config.json` and `1_Pooling/config.json` where they are there. candle computes.

use std::{path::Path, sync::Arc};

use async_trait::async_trait;
use bench_proto::{failure::Failure, ids::Sha256Hash};
use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config};
use serde::{Deserialize, de::DeserializeOwned};
use tokenizers::Tokenizer;
use tokio::sync::Semaphore;

use super::{LocalModel, kept::Kept};
use crate::embed::{Embed, EmbeddingModel};

/// Windows that are computed at once: more fill the caches of a processor and gain nothing.
const WINDOWS_PER_BATCH: usize = 32;
/// Tokens of a window when the folder does not say.
const DEFAULT_WINDOW: usize = 256;
/// A window holds at least its special tokens and some text.
const SMALLEST_WINDOW: usize = 16;

/// Loads the model of a folder.
pub(super) fn load(folder: &Path) -> Result<LocalModel, String> {
    let needed = |name: &str| {
        let path = folder.join(name);
        std::fs::read(&path).map_err(|error| {
            format!(
                "{}: {error}; the folder of a local model holds config.json, tokenizer.json and model.safetensors",
                path.display()
            )
        })
    };
    let optional = |name: &str| std::fs::read(folder.join(name)).unwrap_or_default();
    let (config, tokenizer, weights) =
        (needed("config.json")?, needed("tokenizer.json")?, needed("model.safetensors")?);
    let (lengths, pooling) = (optional("sentence_bert_config.json"), optional("1_Pooling/config.json"));
    let hashes: String =
        [&config, &tokenizer, &weights, &lengths, &pooling].map(|bytes| Sha256Hash::of_bytes(bytes).hex()).concat();
    let bert = Bert::new(&config, &tokenizer, weights, &lengths, &pooling)
        .map_err(|error| format!("{}: {error}", folder.display()))?;
    let hash = Sha256Hash::of_bytes(hashes.as_bytes()).hex()[..8].to_owned();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let computed = LocalEmbeddings { bert: Arc::new(bert), free: Semaphore::new(cores) };
    Ok(LocalModel { embed: Arc::new(Kept::around(Arc::new(computed))), hash })
}

struct LocalEmbeddings {
    bert: Arc<Bert>,
    /// Processors: more computations at once would only hold more memory.
    free: Semaphore,
}

#[async_trait]
impl Embed for LocalEmbeddings {
    async fn embed(&self, _model: &EmbeddingModel, texts: &[String]) -> Result<Vec<Vec<f32>>, Failure> {
        let (bert, texts) = (Arc::clone(&self.bert), texts.to_vec());
        let failed = |error: String| Failure::permanent("embedding_local", format!("the local model failed: {error}"));
        let _processor = self.free.acquire().await.map_err(|error| failed(error.to_string()))?;
        let computed = tokio::task::spawn_blocking(move || bert.embed(&texts)).await;
        computed.map_err(|error| failed(error.to_string()))?.map_err(failed)
    }
}

/// How the vectors of tokens become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pooling {
    /// The mean of all.
    Mean,
    /// The one of the first token.
    First,
}

/// What a tokenizer puts before and after a text.
type Frame = (Vec<u32>, Vec<u32>);

struct Bert {
    model: BertModel,
    tokenizer: Tokenizer,
    frame: Frame,
    /// Tokens of a text that fit into a window.
    window: usize,
    pooling: Pooling,
    dimensions: usize,
    padding: u32,
}

#[derive(Deserialize)]
struct Kind {
    model_type: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Lengths {
    max_seq_length: Option<usize>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PoolingFile {
    pooling_mode_cls_token: bool,
    pooling_mode_max_tokens: bool,
}

/// A part of a text that the model takes at once.
struct Window {
    text: usize,
    tokens: Vec<u32>,
}

impl Bert {
    fn new(config: &[u8], tokenizer: &[u8], weights: Vec<u8>, lengths: &[u8], pooling: &[u8]) -> Result<Self, String> {
        let kind: Kind = read("config.json", config)?;
        if let Some(kind) = kind.model_type.filter(|kind| kind != "bert") {
            return Err(format!(
                "config.json: a '{kind}' model cannot be loaded, a 'bert' model can (MiniLM, BGE, E5, GTE)"
            ));
        }
        let config: Config = read("config.json", config)?;
        let lengths: Lengths =
            if lengths.is_empty() { Lengths::default() } else { read("sentence_bert_config.json", lengths)? };
        let pooling: PoolingFile =
            if pooling.is_empty() { PoolingFile::default() } else { read("1_Pooling/config.json", pooling)? };
        let pooling = match pooling {
            PoolingFile { pooling_mode_max_tokens: true, .. } => {
                return Err(
                    "1_Pooling/config.json: pooling by maximum is not known, mean and first token are".to_owned()
                );
            }
            PoolingFile { pooling_mode_cls_token: true, .. } => Pooling::First,
            _ => Pooling::Mean,
        };
        let window = lengths.max_seq_length.unwrap_or(DEFAULT_WINDOW).min(config.max_position_embeddings);
        let (tokenizer, frame) = load_tokenizer(tokenizer).map_err(|error| format!("tokenizer.json: {error}"))?;
        let window = window.max(SMALLEST_WINDOW).saturating_sub(frame.0.len() + frame.1.len()).max(1);
        let weights = VarBuilder::from_buffered_safetensors(weights, DType::F32, &Device::Cpu);
        let model = weights.and_then(|weights| BertModel::load(weights, &config));
        Ok(Self {
            model: model.map_err(|error| format!("model.safetensors: {error}"))?,
            tokenizer,
            frame,
            window,
            pooling,
            dimensions: config.hidden_size,
            padding: u32::try_from(config.pad_token_id).unwrap_or(0),
        })
    }

    /// One vector per text. A text longer than a window is not cut: the vectors of its windows are averaged by their tokens.
    fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, String> {
        let windows = self.windows(texts)?;
        let mut sums = vec![(vec![0.0_f32; self.dimensions], 0.0_f32); texts.len()];
        for batch in windows.chunks(WINDOWS_PER_BATCH) {
            let vectors = self.forward(batch).map_err(|error| error.to_string())?;
            for (window, vector) in batch.iter().zip(vectors) {
                let (sum, tokens) = &mut sums[window.text];
                let share = window.tokens.len() as f32;
                sum.iter_mut().zip(vector).for_each(|(sum, x)| *sum += share * x);
                *tokens += share;
            }
        }
        let mean = |(sum, tokens): (Vec<f32>, f32)| sum.into_iter().map(|x| x / tokens.max(1.0)).collect();
        Ok(sums.into_iter().map(mean).collect())
    }

    /// The windows of all texts, those of a length beside each other: little is padded.
    fn windows(&self, texts: &[String]) -> Result<Vec<Window>, String> {
        let inputs: Vec<&str> = texts.iter().map(String::as_str).collect();
        let encoded = self.tokenizer.encode_batch(inputs, false).map_err(|error| error.to_string())?;
        let (before, after) = &self.frame;
        let mut windows = Vec::new();
        for (text, encoding) in encoded.iter().enumerate() {
            let tokens = encoding.get_ids();
            // an empty text has a window too
            let parts = tokens.chunks(self.window).chain(tokens.is_empty().then_some(tokens));
            windows.extend(parts.map(|part| Window { text, tokens: [before, part, after].concat() }));
        }
        windows.sort_by_key(|window| window.tokens.len());
        Ok(windows)
    }

    fn forward(&self, batch: &[Window]) -> candle_core::Result<Vec<Vec<f32>>> {
        let longest = batch.iter().map(|window| window.tokens.len()).max().unwrap_or(0);
        let (mut ids, mut mask) = (Vec::new(), Vec::new());
        for Window { tokens, .. } in batch {
            let padding = longest - tokens.len();
            ids.extend(tokens.iter().copied().chain(std::iter::repeat_n(self.padding, padding)));
            mask.extend(std::iter::repeat_n(1_u32, tokens.len()).chain(std::iter::repeat_n(0, padding)));
        }
        let shape = (batch.len(), longest);
        let ids = Tensor::from_vec(ids, shape, &Device::Cpu)?;
        let mask = Tensor::from_vec(mask, shape, &Device::Cpu)?;
        // (windows, tokens, dimensions)
        let hidden = self.model.forward(&ids, &ids.zeros_like()?, Some(&mask))?;
        let pooled = match self.pooling {
            Pooling::First => hidden.narrow(1, 0, 1)?.squeeze(1)?,
            Pooling::Mean => {
                let mask = mask.to_dtype(DType::F32)?.unsqueeze(2)?;
                hidden.broadcast_mul(&mask)?.sum(1)?.broadcast_div(&mask.sum(1)?)?
            }
        };
        pooled.to_vec2()
    }
}

fn load_tokenizer(json: &[u8]) -> tokenizers::Result<(Tokenizer, Frame)> {
    let mut tokenizer = Tokenizer::from_bytes(json)?;
    // texts are parted here: the tokenizer drops most of what it cuts off
    tokenizer.with_truncation(None)?;
    tokenizer.with_padding(None);
    let frame = frame(&tokenizer)?;
    Ok((tokenizer, frame))
}

fn frame(tokenizer: &Tokenizer) -> tokenizers::Result<Frame> {
    let encode = |special| tokenizer.encode("a", special).map(|encoding| encoding.get_ids().to_vec());
    let (bare, framed) = (encode(false)?, encode(true)?);
    let at = framed.windows(bare.len().max(1)).position(|part| part == bare);
    let at = at.ok_or("what it puts around a text cannot be told: it changes the text's own tokens")?;
    Ok((framed[..at].to_vec(), framed[at + bare.len()..].to_vec()))
}

fn read<T: DeserializeOwned>(name: &str, json: &[u8]) -> Result<T, String> {
    serde_json::from_slice(json).map_err(|error| format!("{name}: {error}"))
}
