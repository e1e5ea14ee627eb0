//! Exact search over vectors: a scan over 8-bit copies finds all candidates that can be among the best, their true dot
//! products decide. The error of the copies is bounded by the lengths of what rounding took away, so nothing is missed:
//! `|q·v − q̂·v̂| ≤ |q − q̂|·|v| + |q̂|·|v − v̂|`. A quarter of the memory is read, which is what the time goes into.

use multiversion::multiversion;

/// Vectors of length 1, one after the other.
#[derive(Debug, Default)]
pub struct Vectors {
    dimensions: usize,
    exact: Vec<f32>,
    small: Vec<i8>,
    scales: Vec<f32>,
    /// Largest length of what rounding took away from a vector.
    error: f32,
}

impl Vectors {
    /// Adds a vector; its length becomes 1.
    ///
    /// # Errors
    /// Another number of dimensions than the first one, or a value that is no number.
    pub fn push(&mut self, mut vector: Vec<f32>) -> Result<(), String> {
        if self.dimensions == 0 {
            self.dimensions = vector.len();
        }
        if vector.len() != self.dimensions || vector.is_empty() {
            return Err(format!("an embedding has {} dimensions, the first had {}", vector.len(), self.dimensions));
        }
        unit(&mut vector)?;
        let (small, scale, error) = rounded(&vector);
        self.exact.extend_from_slice(&vector);
        self.small.extend_from_slice(&small);
        self.scales.push(scale);
        self.error = self.error.max(error);
        Ok(())
    }

    /// Gives back memory that was held for more vectors.
    pub fn seal(&mut self) {
        self.exact.shrink_to_fit();
        self.small.shrink_to_fit();
    }

    /// Number of vectors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.scales.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.scales.is_empty()
    }

    /// Bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.exact.len() * 4 + self.small.len() + self.scales.len() * 4
    }
}

fn unit(vector: &mut [f32]) -> Result<(), String> {
    let length = vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt();
    if !length.is_finite() {
        return Err("an embedding holds a value that is no number".to_owned());
    }
    if length > 0.0 {
        vector.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
    }
    Ok(())
}

/// (8-bit copy, scale, length of the difference).
fn rounded(vector: &[f32]) -> (Vec<i8>, f32, f32) {
    let largest = vector.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
    let scale = if largest > 0.0 { largest / 127.0 } else { 1.0 };
    let small: Vec<i8> = vector.iter().map(|x| (x / scale).round().clamp(-127.0, 127.0) as i8).collect();
    let error = vector.iter().zip(&small).map(|(x, s)| (x - f32::from(*s) * scale).powi(2)).sum::<f32>().sqrt();
    (small, scale, error)
}

/// The `k` nearest by cosine, best first; equal ones in their order.
///
/// # Errors
/// A query with another number of dimensions.
pub fn nearest(vectors: &Vectors, query: &[f32], k: usize) -> Result<Vec<(usize, f32)>, String> {
    nearest_of(vectors, query, k, None)
}

/// The same among those that are admitted, where not all are.
pub(super) fn nearest_of(
    vectors: &Vectors,
    query: &[f32],
    k: usize,
    admitted: Option<&[bool]>,
) -> Result<Vec<(usize, f32)>, String> {
    if query.len() != vectors.dimensions {
        return Err(format!("the query has {} dimensions, the bank {}", query.len(), vectors.dimensions));
    }
    if k == 0 || vectors.is_empty() {
        return Ok(Vec::new());
    }
    let mut query = query.to_vec();
    unit(&mut query)?;
    let (small, scale, query_error) = rounded(&query);
    let mut rough = vec![0.0_f32; vectors.len()];
    scan(&mut rough, &vectors.small, &vectors.scales, &small, scale);
    for (rough, _) in rough.iter_mut().zip(admitted.into_iter().flatten()).filter(|(_, admitted)| !**admitted) {
        *rough = f32::NEG_INFINITY;
    }
    // a margin for the rounding of the sums themselves
    let error = query_error + (1.0 + query_error) * vectors.error + 1e-4;
    let floor = kth_largest(&rough, k) - 2.0 * error;
    let mut found: Vec<(usize, f32)> = rough
        .iter()
        .enumerate()
        .filter(|(_, score)| **score >= floor && score.is_finite())
        .map(|(at, _)| (at, dot(&query, &vectors.exact[at * vectors.dimensions..][..vectors.dimensions])))
        .collect();
    found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    found.truncate(k);
    Ok(found)
}

fn kth_largest(scores: &[f32], k: usize) -> f32 {
    if k >= scores.len() {
        return f32::NEG_INFINITY;
    }
    let mut scores = scores.to_vec();
    *scores.select_nth_unstable_by(k - 1, |a, b| b.total_cmp(a)).1
}

/// Rough dot products of a query with all vectors. Compiled once for each kind of processor, and the right one is taken at
/// run time: the binary runs everywhere, and whole numbers are the same everywhere.
#[multiversion(targets("x86_64+avx512f+avx512bw", "x86_64+avx2"))]
fn scan(rough: &mut [f32], vectors: &[i8], scales: &[f32], query: &[i8], scale: f32) {
    for ((rough, vector), vector_scale) in rough.iter_mut().zip(vectors.chunks_exact(query.len())).zip(scales) {
        // 16-bit products are what the compiler makes vector instructions of
        let sum: i32 = vector.iter().zip(query).map(|(a, b)| i32::from(i16::from(*a) * i16::from(*b))).sum();
        *rough = sum as f32 * scale * vector_scale;
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    // a fixed order of additions: the same score on every machine
    let mut lanes = [0.0_f32; 8];
    let (a_lanes, b_lanes) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f32 = a_lanes.remainder().iter().zip(b_lanes.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a_lanes.zip(b_lanes) {
        for lane in 0..8 {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    lanes.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn brute(vectors: &Vectors, query: &[f32], k: usize) -> Vec<usize> {
        let mut query = query.to_vec();
        unit(&mut query).expect("is finite");
        let mut all: Vec<(usize, f32)> = (0..vectors.len())
            .map(|at| (at, dot(&query, &vectors.exact[at * vectors.dimensions..][..vectors.dimensions])))
            .collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        all.into_iter().take(k).map(|(at, _)| at).collect()
    }

    proptest! {
        /// The scan over rounded copies misses nothing, however close the vectors are to each other.
        #[test]
        fn nothing_is_missed(
            rows in proptest::collection::vec(proptest::collection::vec(-1.0_f32..1.0, 19), 1..60),
            query in proptest::collection::vec(-1.0_f32..1.0, 19),
            k in 0_usize..70,
            every in 1_usize..5,
        ) {
            let mut vectors = Vectors::default();
            for row in rows {
                vectors.push(row).expect("has the dimensions");
            }
            let found: Vec<usize> = nearest(&vectors, &query, k).expect("searches").into_iter().map(|f| f.0).collect();
            prop_assert_eq!(found, brute(&vectors, &query, k));
            let admitted: Vec<bool> = (0..vectors.len()).map(|at| at % every == 0).collect();
            let found = nearest_of(&vectors, &query, k, Some(&admitted)).expect("searches");
            let all = brute(&vectors, &query, usize::MAX).into_iter().filter(|at| admitted[*at]);
            prop_assert_eq!(found.into_iter().map(|f| f.0).collect::<Vec<_>>(), all.take(k).collect::<Vec<_>>());
        }
    }

    #[test]
    fn wrong_vectors_are_refused() {
        let mut vectors = Vectors::default();
        vectors.push(vec![1.0, 0.0]).expect("is the first");
        assert!(vectors.push(vec![1.0]).is_err());
        assert!(vectors.push(vec![f32::NAN, 1.0]).is_err());
        vectors.push(vec![0.0, 0.0]).expect("nothing is a vector too");
        assert!(nearest(&vectors, &[1.0], 1).is_err());
        assert_eq!(nearest(&vectors, &[3.0, 0.0], 9).expect("searches"), [(0, 1.0), (1, 0.0)]);
    }
}
