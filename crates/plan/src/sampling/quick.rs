//! The preset `quick`: 50 questions that touch as many cells as they can, a part of `fair`. A dataset's profile may have
//! another number in place of 50.
//!
//! With at most 50 (bank, category) cells: the first question of every cell, then the second of the largest cells, then
//! the third, … up to 50; cells of one size in file order, then by category name. No cell gives more than it gives to
//! `fair`, so a small dataset may have fewer than 50. LoCoMo has 49 cells: 49 + 1.
//!
//! With more cells (one question per bank, as in LongMemEval): the categories take turns in alphabetical order, each
//! giving the first question of a further cell, cells in the order of that question.

use super::{
    candidates::{Candidate, First},
    order::OrderKey,
};

/// A cell while there are few.
#[derive(Debug)]
struct Cell {
    /// Questions in it, chosen or not.
    size: usize,
    /// Its first questions, at most what `fair` takes.
    candidates: Vec<Candidate>,
}

#[derive(Debug)]
pub(super) struct Quick {
    /// Most questions.
    size: usize,
    /// All cells in file order and category order; empty as soon as there are more than `size`.
    cells: Vec<Cell>,
    cell_count: usize,
    /// By category number: the cells' first questions, the first of them.
    firsts: Vec<First>,
}

impl Quick {
    /// Of at most so many questions.
    pub(super) fn new(size: usize) -> Self {
        Self { size, cells: Vec::new(), cell_count: 0, firsts: Vec::new() }
    }

    /// Takes note of a cell. `fair` are its questions in the fair sample, in order, `size` counts all.
    /// Cells come in file order, then by category name.
    pub(super) fn offer<'a>(&mut self, category: u32, size: usize, fair: &[OrderKey], id: impl Fn(u32) -> &'a str) {
        let Some(first) = fair.first() else { return };
        while self.firsts.len() <= category as usize {
            self.firsts.push(First::new(self.size));
        }
        self.firsts[category as usize].offer(*first, category, id(first.index));
        self.cell_count += 1;
        if self.cell_count > self.size {
            self.cells = Vec::new();
            return;
        }
        let candidates = fair
            .iter()
            .take(self.size)
            .map(|&place| Candidate { place, category, id: id(place.index).into() })
            .collect();
        self.cells.push(Cell { size, candidates });
    }

    /// The chosen questions, in no particular order. `by_name` are the category numbers in alphabetical order.
    pub(super) fn choose(self, by_name: &[u32]) -> Vec<Candidate> {
        if self.cell_count > self.size {
            take_turns(self.firsts, by_name, self.size)
        } else {
            fill_cells(self.cells, self.size)
        }
    }
}

fn fill_cells(mut cells: Vec<Cell>, most: usize) -> Vec<Candidate> {
    // stable: cells of one size stay in file order, then category order
    cells.sort_by_key(|cell| std::cmp::Reverse(cell.size));
    let depth = cells.iter().map(|cell| cell.candidates.len()).max().unwrap_or(0);
    (0..depth)
        .flat_map(|round| cells.iter().filter_map(move |cell| cell.candidates.get(round)))
        .take(most)
        .cloned()
        .collect()
}

fn take_turns(firsts: Vec<First>, by_name: &[u32], most: usize) -> Vec<Candidate> {
    let sorted: Vec<Vec<Candidate>> = firsts.into_iter().map(First::into_sorted).collect();
    (0..most)
        .flat_map(|round| by_name.iter().map(move |&category| (category, round)))
        .filter_map(|(category, round)| sorted.get(category as usize)?.get(round))
        .take(most)
        .cloned()
        .collect()
}
