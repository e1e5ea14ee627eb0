//! Embeddings: unit vectors of hashed words, so that texts with common words are near each other.

use crate::draw::{mix, word_hash};

/// Components that each word moves. Few keep it cheap; eight keep unrelated words almost orthogonal.
const COMPONENTS: u64 = 8;

/// The vector of a text: a pure function of model, text and length, the same for every seed (a model has one set of weights).
pub(crate) fn embed(model: &str, text: &str, dimensions: usize) -> Vec<f32> {
    let mut vector = vec![0.0_f32; dimensions];
    let basis = word_hash(model, 0);
    let mut lower = String::new();
    let mut words = 0_usize;
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        lower.clear();
        lower.extend(word.chars().flat_map(char::to_lowercase));
        add(&mut vector, word_hash(&lower, basis), weight(&lower));
        words += 1;
    }
    if words == 0 {
        // punctuation alone still has a direction
        add(&mut vector, word_hash(text, basis), 1.0);
    }
    normalise(&mut vector);
    vector
}

/// Short words are mostly function words: a plain stand-in for inverse document frequency.
fn weight(word: &str) -> f32 {
    match word.chars().count() {
        0..=2 => 0.15,
        3 => 0.4,
        4 => 0.8,
        _ => 1.0,
    }
}

fn add(vector: &mut [f32], hash: u64, weight: f32) {
    for n in 0..COMPONENTS {
        let bits = mix(hash.wrapping_add(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        let index = (bits >> 1) % vector.len() as u64;
        vector[index as usize] += if bits & 1 == 0 { weight } else { -weight };
    }
}

fn normalise(vector: &mut [f32]) {
    let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    if norm > 0.0 {
        vector.iter_mut().for_each(|x| *x /= norm);
    } else if let Some(first) = vector.first_mut() {
        *first = 1.0; // all words cancelled out: only with very few dimensions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cosine(a: &str, b: &str) -> f32 {
        let (a, b) = (embed("m", a, 1536), embed("m", b, 1536));
        a.iter().zip(&b).map(|(x, y)| x * y).sum()
    }

    #[test]
    fn similar_texts_are_near_and_others_are_not() {
        let base = "Caroline adopted a puppy called Biscuit in March";
        let near = cosine(base, "Which puppy did Caroline adopt in March?");
        let far = cosine(base, "The stock market fell sharply yesterday evening");
        assert!((cosine(base, base) - 1.0).abs() < 1e-5);
        assert!((cosine(base, "CAROLINE adopted a puppy, called biscuit: in march!") - 1.0).abs() < 1e-5);
        assert!(near > 0.4 && far < 0.15 && near > far + 0.3, "near {near}, far {far}");
    }

    #[test]
    fn every_text_has_a_unit_vector_that_depends_on_the_model() {
        for text in ["a", "...", "ü", "word word word", &"long ".repeat(10_000)] {
            for dimensions in [1, 2, 256] {
                let norm: f32 = embed("m", text, dimensions).iter().map(|x| x * x).sum();
                assert!((norm - 1.0).abs() < 1e-4, "{dimensions} dimensions of {text:.10}");
            }
        }
        assert_ne!(embed("m", "puppy", 64), embed("n", "puppy", 64));
        assert_eq!(embed("m", "puppy", 64), embed("m", "puppy", 64));
    }
}
