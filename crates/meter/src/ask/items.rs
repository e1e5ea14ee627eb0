//! What the messages, items and parts of a request are: those of types that are known to carry a text, a picture, a thought, or a call
//! of a tool and its output. Others bring tools, have the provider do something, or have a price of their own, and are an affair of the
//! account's operator, as members of a body are.

use bench_models::members::{each_element, each_member};
use memchr::memchr;
use serde_json::value::RawValue;

use super::{
    names::{Unlisted, folded},
    tools,
};
use crate::refusal::Rejection;

/// Types that pass, in the words of OpenAI, Anthropic and those who follow them. In the order of their letters.
///
/// Not in it, among others: `additional_tools`, `tool_search_output` and `tool_addition` (tools that nobody has looked at),
/// `compaction_trigger` (a call of its own), `document_url` (read at a price for each page), `input_audio` (below), and what providers
/// tell of tools that they run.
const PASSING: [&str; 44] = [
    "apply_patch_call",
    "apply_patch_call_output",
    "base64",
    "compaction",
    "computer_call",
    "computer_call_output",
    "computer_screenshot",
    "content",
    "custom",
    "custom_tool_call",
    "custom_tool_call_output",
    "document",
    "file",
    "function",
    "function_call",
    "function_call_output",
    "image",
    "image_url",
    "input_file",
    "input_image",
    "input_text",
    "item_reference",
    "local_shell_call",
    "local_shell_call_output",
    "message",
    "output_text",
    "reasoning",
    "reasoning_text",
    "redacted_thinking",
    "reference",
    "refusal",
    "search_result",
    "shell_call",
    "shell_call_output",
    "summary_text",
    "text",
    "thinking",
    "tool_call",
    "tool_reference",
    "tool_result",
    "tool_use",
    "url",
    "video",
    "video_url",
];

/// Types and members of sounds, which have prices of their own.
const SOUNDS: [&str; 2] = ["audio_url", "input_audio"];

/// What to do in the place of a type that is not known.
const NO_TYPE: &str = "leave what is of this type out of the messages";
/// What to do in the place of a sound.
const NO_SOUND: &str = "leave sounds out, which have prices of their own, or send their text";
/// What is said of what cannot be looked at.
const UNREADABLE: &str = "messages, items and parts are objects, whose type is a text that is said once";
/// Lists and objects within each other that are looked into: those of a part of a document in a tool's result are nine.
const DEEPEST: u8 = 12;

/// Hands over what of a member's messages, items and parts passes only where the operator of the account lets it through.
///
/// # Errors
/// Where they cannot be looked at, bring tools that the provider runs, or `unlisted` says so.
pub(super) fn check(
    member: &'static str,
    said: &RawValue,
    unlisted: &mut dyn FnMut(Unlisted) -> Result<(), Rejection>,
) -> Result<(), Rejection> {
    // texts and tokens alone, as most that are embedded
    if memchr(b'{', said.get().as_bytes()).is_none() {
        return Ok(());
    }
    Look { member, unlisted }.within(said, 0)
}

struct Look<'f> {
    member: &'static str,
    unlisted: &'f mut dyn FnMut(Unlisted) -> Result<(), Rejection>,
}

impl Look<'_> {
    fn refuse(&self, why: &str) -> Rejection {
        Rejection::unreadable(Some(self.member), format!("{}: {why}", self.member))
    }

    /// A text, an item, or a list of them.
    fn within(&mut self, said: &RawValue, depth: u8) -> Result<(), Rejection> {
        if !said.get().starts_with(['{', '[']) {
            return Ok(());
        }
        if depth >= DEEPEST {
            return Err(self.refuse("too many lists and objects stand within each other"));
        }
        if said.get().starts_with('{') {
            return self.item(said, depth + 1);
        }
        let mut looked = Ok(());
        let listed = each_element(said, |one| {
            if looked.is_ok() {
                looked = self.within(one, depth + 1);
            }
        });
        listed.map_err(|_| self.refuse(UNREADABLE))?;
        looked
    }

    /// A message, an item, a part of one, or the source of such a part.
    fn item(&mut self, item: &RawValue, depth: u8) -> Result<(), Rejection> {
        let (mut types, mut looked) = (0_u32, Ok(()));
        let read = each_member(item.get().as_bytes(), |name, value| {
            if looked.is_ok() && value.get() != "null" {
                let name = folded(name);
                types += u32::from(name == "type");
                looked = self.member_of_item(&name, value, depth);
            }
        });
        looked?;
        if read.is_err() || types > 1 {
            return Err(self.refuse(UNREADABLE));
        }
        Ok(())
    }

    /// A member of an item, by its name in small letters: some readers make no difference.
    fn member_of_item(&mut self, name: &str, value: &RawValue, depth: u8) -> Result<(), Rejection> {
        match name {
            "type" => {
                let kind: String = serde_json::from_str(value.get()).map_err(|_| self.refuse(UNREADABLE))?;
                match kind.as_str() {
                    kind if SOUNDS.contains(&kind) => self.sound(),
                    kind if PASSING.contains(&kind) => Ok(()),
                    _ => (self.unlisted)(Unlisted { name: kind, instead: NO_TYPE }),
                }
            }
            // some servers go by these members alone
            name if SOUNDS.contains(&name) => self.sound(),
            "content" | "output" | "source" | "summary" | "tool_calls" => self.within(value, depth),
            // of a message (Kimi's) as of a body
            "functions" | "tools" => tools::check(self.member, Some(value)),
            "definition" | "tool" if value.get().starts_with('{') => tools::check_one(self.member, value),
            _ => Ok(()),
        }
    }

    fn sound(&mut self) -> Result<(), Rejection> {
        (self.unlisted)(Unlisted { name: "input_audio".to_owned(), instead: NO_SOUND })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is let through or not by the operator of an account, and what is refused whoever that is.
    fn looked(said: &str) -> Result<Vec<String>, Rejection> {
        let mut found = Vec::new();
        let said: &RawValue = serde_json::from_str(said).expect(said);
        check("messages", said, &mut |unlisted| {
            found.push(unlisted.name);
            Ok(())
        })?;
        Ok(found)
    }

    #[test]
    fn the_list_is_in_order_and_has_no_sounds() {
        assert!(PASSING.is_sorted_by(|a, b| a < b));
        assert!(SOUNDS.iter().all(|sound| !PASSING.contains(sound)));
        let page = include_str!("../../../../docs/METER.md");
        for kind in PASSING.iter().chain(&SOUNDS) {
            assert!(page.contains(&format!("`{kind}`")), "docs/METER.md does not name {kind}");
        }
    }

    #[test]
    fn p34_what_brings_tools_within_a_conversation_is_the_affair_of_the_account() {
        for (said, kind) in [
            (r#"[{"type":"additional_tools","tools":[{"type":"function","name":"f"}]}]"#, "additional_tools"),
            (r#"[{"type":"tool_search_output","tools":[]}]"#, "tool_search_output"),
            (r#"[{"type":"compaction_trigger"}]"#, "compaction_trigger"),
            (r#"[{"role":"user","content":[{"type":"tool_addition"}]}]"#, "tool_addition"),
            (r#"[{"role":"user","content":{"type":"tool_addition"}}]"#, "tool_addition"),
            (r#"[{"t\u0079pe":"tool_\u0061ddition"}]"#, "tool_addition"),
            (r#"[{"Type":"compaction_trigger"}]"#, "compaction_trigger"),
            (r#"[{"type":"tool_result","content":[{"type":"container_upload"}]}]"#, "container_upload"),
            (
                r#"[{"content":[{"type":"document","source":{"type":"content","content":[{"type":"mcp_call"}]}}]}]"#,
                "mcp_call",
            ),
            (r#"[{"tool_calls":[{"type":"web_search_call"}]}]"#, "web_search_call"),
            (r#"[{"type":"function_call_output","output":[{"type":"what_comes_next_year"}]}]"#, "what_comes_next_year"),
            (r#"[{"type":"document_url","document_url":"https://a.example/x.pdf"}]"#, "document_url"),
        ] {
            assert_eq!(looked(said).expect(said), [kind], "{said}");
        }
    }

    #[test]
    fn p34_sounds_have_prices_of_their_own() {
        for said in [
            r#"[{"content":[{"type":"input_audio"}]}]"#,
            r#"[{"content":[{"input_audio":{"data":"AAAA"}}]}]"#,
            r#"[{"content":[{"type":"text","audio_url":{"url":"data:audio/wav;base64,AAAA"}}]}]"#,
        ] {
            assert_eq!(looked(said).expect(said), ["input_audio"], "{said}");
        }
    }

    #[test]
    fn p34_tools_are_looked_at_wherever_they_stand_and_types_are_said_once() {
        for said in [
            r#"[{"role":"system","tools":[{"type":"web_search"}]}]"#,
            r#"[{"role":"system","Tools":[{"type":"builtin_function","function":{"name":"$web_search"}}]}]"#,
            r#"[{"role":"system","tools":{}}]"#,
            r#"[{"content":[{"tool":{"type":"tool_definition","definition":{"type":"web_search_20250305","name":"w"}}}]}]"#,
            r#"[{"content":[{"definition":{"type":"code_execution_20250825","name":"c"}}]}]"#,
            r#"[{"type":"text","type":"tool_addition"}]"#,
            r#"[{"type":"text","Type":"text"}]"#,
            r#"[{"type":7}]"#,
            r#"[{"type":["text"]}]"#,
        ] {
            let refused = looked(said).expect_err(said);
            assert_eq!(refused.status.as_u16(), 400, "{said}");
        }
        let deep = format!("{}1{}", "[{\"content\":".repeat(100), "}]".repeat(100));
        assert!(looked(&deep).is_err());
        assert!(looked(&format!("{}{{}}{}", "[".repeat(50_000), "]".repeat(50_000))).is_err(), "nothing overflows");
    }

    #[test]
    fn what_is_known_passes() {
        for said in [
            r#""a text""#,
            "[1,2,3]",
            "null",
            r#"[{"role":"user","content":"{\"type\":\"tool_addition\"}"}]"#,
            r#"[{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"x"}}]}]"#,
            r#"[{"role":"assistant","content":null,"tool_calls":[{"type":"function","function":{"name":"f"}}]}]"#,
            r#"[{"type":"message","role":"user","content":[{"type":"input_text","text":"x"}]}]"#,
            r#"[{"type":"reasoning","summary":[{"type":"summary_text","text":"x"}]},{"type":"item_reference","id":"i"}]"#,
            r#"[{"type":"function_call","name":"f"},{"type":"function_call_output","output":"{}"}]"#,
            r#"[{"type":"shell_call_output","output":[{"stdout":"x","outcome":{"type":"exit","exit_code":0}}]}]"#,
            r#"[{"content":[{"type":"tool_use","input":{"type":"tool_addition","tools":[{"type":"mcp"}]}}]}]"#,
            r#"[{"content":[{"type":"tool_result","content":[{"type":"tool_reference","tool_name":"f"}]}]}]"#,
            r#"[{"content":[{"type":"document","source":{"type":"base64","data":"AAAA"}}]}]"#,
            r#"[{"role":"system","tools":[{"type":"function","function":{"name":"f"}}]}]"#,
            r#"[{"type":null,"tools":null}]"#,
        ] {
            assert_eq!(looked(said).expect(said), Vec::<String>::new(), "{said}");
        }
    }
}
