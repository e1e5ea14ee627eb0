//! Bodies of several parts (`multipart/form-data`, RFC 7578), as upload forms send them.
//!
//! In come names, file names and contents that are filled in; out come the bytes and their content type. No content can end a
//! part: the line between parts is made of a hash of all of them. Pure.

use bench_proto::ids::Sha256Hash;

use super::template::{Template, Vars};

/// A part of a body, compiled.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) name: String,
    /// Name of the file that it is, where it is one.
    pub(super) file: Option<Template>,
    pub(super) text: Template,
}

/// The body for these variables, and its content type. A part whose only variable may be missing and is missing is left out.
pub(super) fn render(parts: &[Part], vars: &Vars) -> (Vec<u8>, String) {
    let plain = |template: &Template| template.render_text(vars, &|text| text.to_owned());
    let filled: Vec<(&str, Option<String>, String)> = parts
        .iter()
        .filter(|part| part.text.render(vars).is_some())
        .map(|part| (part.name.as_str(), part.file.as_ref().map(plain), plain(&part.text)))
        .collect();
    let all: String = filled.iter().map(|(_, _, text)| text.as_str()).collect();
    let boundary = format!("bench-{}", Sha256Hash::of_bytes(all.as_bytes()).hex());
    let mut body = Vec::with_capacity(all.len() + 256 * filled.len());
    for (name, file, text) in filled {
        let file =
            file.map(|file| format!("; filename=\"{}\"\r\nContent-Type: text/plain; charset=utf-8", quoted(&file)));
        let file = file.unwrap_or_default();
        let head = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{}\"{file}\r\n\r\n", quoted(name));
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(text.as_bytes());
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    (body, format!("multipart/form-data; boundary={boundary}"))
}

/// A name between quotes, as browsers write it.
fn quoted(name: &str) -> String {
    name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_whole_whatever_is_in_them() {
        let template = |text: &str| Template::text(text, &["text", "id", "tags"]).expect("compiles");
        let part = |name: &str, file: Option<&str>, text: &str| Part {
            name: name.to_owned(),
            file: file.map(template),
            text: template(text),
        };
        let parts = [
            part("data", Some("{id}.txt"), "{text}"),
            part("datasetName", None, "mine"),
            part("tags", None, "{tags?}"),
        ];
        let vars = Vars::default().with("id", "a\"\r\nb").with("text", "one\r\n--bench-\r\ntwo ä");
        let (body, kind) = render(&parts, &vars);
        let boundary = kind.strip_prefix("multipart/form-data; boundary=").expect("names its boundary");
        let body = String::from_utf8(body).expect("is text");
        let pieces: Vec<&str> = body.split(&format!("--{boundary}")).collect();
        assert_eq!(pieces.len(), 4, "two parts, what is before them and the end: {body}");
        assert_eq!(
            pieces[1],
            "\r\nContent-Disposition: form-data; name=\"data\"; filename=\"a%22%0D%0Ab.txt\"\r\nContent-Type: text/plain; \
             charset=utf-8\r\n\r\none\r\n--bench-\r\ntwo ä\r\n"
        );
        assert_eq!(pieces[2], "\r\nContent-Disposition: form-data; name=\"datasetName\"\r\n\r\nmine\r\n");
        assert_eq!(pieces[3], "--\r\n");
    }
}
