//! Datasets of BEAM's shape: questions that are graded by lines of criteria.

use std::{fs, io, path::Path};

use serde_json::{Value, json};

/// Questions of the published chats of 100 thousand tokens.
pub const QUESTIONS: usize = 400;
/// Lines by which they are graded.
pub const LINES: usize = 1_051;

/// The published names, written again: data for tests must not come from the loader that the tests are about.
const KINDS: [&str; 10] = [
    "abstention",
    "contradiction_resolution",
    "event_ordering",
    "information_extraction",
    "instruction_following",
    "knowledge_update",
    "multi_session_reasoning",
    "preference_following",
    "summarization",
    "temporal_reasoning",
];

/// Numbers of lines of the questions of twenty chats: [`QUESTIONS`] with [`LINES`] in all, 1 to 10 each.
#[must_use]
pub fn published_shape() -> Vec<Vec<usize>> {
    const OF_A_CHAT: [usize; 20] = [1, 1, 1, 2, 2, 2, 2, 1, 10, 3, 5, 1, 4, 2, 3, 1, 6, 2, 2, 1];
    let more = LINES - QUESTIONS / 20 * OF_A_CHAT.iter().sum::<usize>();
    let chat = |number: usize| {
        let mut lines = OF_A_CHAT.to_vec();
        lines[0] += usize::from(number < more);
        lines
    };
    (0..QUESTIONS / 20).map(chat).collect()
}

/// Writes chats whose questions have so many lines each, at most twenty questions a chat: what `--dataset beam --dataset-path
/// FOLDER --allow-modified-dataset` reads.
///
/// # Errors
/// When the folder cannot be written.
pub fn write(folder: &Path, chats: &[Vec<usize>]) -> io::Result<()> {
    for (chat, lines) in chats.iter().enumerate() {
        let folder = folder.join(format!("chats/100K/{}", chat + 1));
        fs::create_dir_all(folder.join("probing_questions"))?;
        fs::write(folder.join("chat.json"), messages(chat, lines.len()).to_string())?;
        fs::write(folder.join("probing_questions/probing_questions.json"), questions(chat, lines).to_string())?;
    }
    Ok(())
}

/// A group of messages for each question.
fn messages(chat: usize, questions: usize) -> Value {
    let said = |number: usize| {
        let user = json!({"role": "user", "id": 2 * number, "content": format!("In year {number} I kept {} bees in garden {chat}.", 3 * number)});
        json!([user, {"role": "assistant", "id": 2 * number + 1, "content": "That is a lot of bees."}])
    };
    json!([{"batch_number": 1, "time_anchor": "March-15-2024", "turns": (0..questions).map(said).collect::<Vec<_>>()}])
}

fn questions(chat: usize, lines: &[usize]) -> Value {
    let mut kinds = serde_json::Map::new();
    for (number, lines) in lines.iter().enumerate() {
        let rubric: Vec<String> =
            (0..*lines).map(|line| format!("names detail {line} of year {number} in garden {chat}")).collect();
        let question = json!({
            "question": format!("How many bees were there in year {number} in garden {chat}?"),
            "rubric": rubric,
            "source_chat_ids": [2 * number],
        });
        let kind = kinds.entry(KINDS[number % KINDS.len()]).or_insert_with(|| json!([]));
        kind.as_array_mut().into_iter().for_each(|of_kind| of_kind.push(question.clone()));
    }
    Value::Object(kinds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shape_is_the_published_one() {
        let shape = published_shape();
        let lines: Vec<usize> = shape.concat();
        assert_eq!((shape.len(), lines.len(), lines.iter().sum::<usize>()), (20, QUESTIONS, LINES));
        assert!(lines.iter().all(|lines| (1..=10).contains(lines)));
    }
}
