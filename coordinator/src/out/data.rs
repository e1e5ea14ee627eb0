//! What goes to standard output for other programs to read, such as lines of questions and cells. Bytes are passed on as they are;
//! where GitHub's runner may read them, whole lines are passed on, made harmless to it. What is printed for people asks here too
//! whether the runner may read it ([`Kind::harmless`]).

use std::{
    borrow::Cow,
    fs::File,
    io::{ErrorKind, Result, Stdout, Write},
    os::fd::AsFd as _,
    sync::LazyLock,
};

use bench_telemetry::{logged, logged_json, on_github};

/// Whether GitHub's runner may read standard output: it reads no file that a step writes to. Whether the reader of a pipe is the runner
/// or another program is not known.
fn runner_may_read() -> bool {
    static MAY: LazyLock<bool> = LazyLock::new(|| {
        let is_file = |out: File| out.metadata().is_ok_and(|meta| meta.is_file());
        on_github() && !std::io::stdout().as_fd().try_clone_to_owned().is_ok_and(|out| is_file(out.into()))
    });
    *MAY
}

/// What is done to whole lines.
type Harmless = fn(&str) -> Cow<'_, str>;

/// What a text is to who reads it: how it is made harmless to GitHub's runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// JSON, one document or one in each line: it says the same in any case.
    Json,
    /// All else: a blank is put into what would be a command.
    Words,
}

impl Kind {
    /// By the name of a format.
    pub(crate) fn from_format(format: &str) -> Self {
        if format == "json" { Self::Json } else { Self::Words }
    }

    /// What makes such a text harmless; `None` where GitHub's runner does not read it.
    pub(super) fn harmless(self) -> Option<Harmless> {
        let harmless = match self {
            Self::Json => logged_json as Harmless,
            Self::Words => logged,
        };
        runner_may_read().then_some(harmless)
    }
}

/// A writer of data, and whether who reads it went away.
pub(crate) struct Data<W> {
    out: W,
    harmless: Option<Harmless>,
    /// The begin of a line that has no end yet.
    rest: Vec<u8>,
    left: bool,
}

impl Data<Stdout> {
    /// For JSON.
    pub(crate) fn json() -> Self {
        Self::to(std::io::stdout(), Kind::Json.harmless())
    }

    /// For cells that are harmless in other ways too.
    pub(crate) fn cells() -> Self {
        Self::to(std::io::stdout(), Kind::Words.harmless())
    }

    /// For what is wanted as it is.
    pub(crate) fn raw() -> Self {
        Self::to(std::io::stdout(), None)
    }
}

impl<W: Write> Data<W> {
    const fn to(out: W, harmless: Option<Harmless>) -> Self {
        Self { out, harmless, rest: Vec::new(), left: false }
    }

    /// Whether who reads it went away.
    pub(crate) const fn has_left(&self) -> bool {
        self.left
    }

    /// Remembers a reader that went away.
    fn noticed<T>(&mut self, written: Result<T>) -> Result<T> {
        self.left |= written.as_ref().is_err_and(|e| e.kind() == ErrorKind::BrokenPipe);
        written
    }

    fn pass(&mut self, lines: &[u8], harmless: Harmless) -> Result<()> {
        let written = match std::str::from_utf8(lines) {
            Ok(lines) => self.out.write_all(harmless(lines).as_bytes()),
            // no text of anybody
            Err(_) => self.out.write_all(lines),
        };
        self.noticed(written)
    }
}

impl<W: Write> Write for Data<W> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let Some(harmless) = self.harmless else {
            let written = self.out.write(bytes);
            return self.noticed(written);
        };
        let ends = bytes.iter().rposition(|byte| *byte == b'\n').map(|at| self.rest.len() + at + 1);
        self.rest.extend_from_slice(bytes);
        if let Some(end) = ends {
            let begun = self.rest.split_off(end);
            let lines = std::mem::replace(&mut self.rest, begun);
            self.pass(&lines, harmless)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<()> {
        if let Some(harmless) = self.harmless {
            let rest = std::mem::take(&mut self.rest);
            self.pass(&rest, harmless)?;
        }
        let flushed = self.out.flush();
        self.noticed(flushed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without(text: &str) -> Cow<'_, str> {
        text.replace("##[", "## [").into()
    }

    #[test]
    fn lines_are_made_harmless_whole_wherever_they_are_cut() {
        let text = "a ##[error]b\nü ##[x]\n##[group";
        for size in 1..text.len() {
            let (mut seen, mut raw) = (Vec::new(), Vec::new());
            let (mut data, mut as_is) = (Data::to(&mut seen, Some(without as Harmless)), Data::to(&mut raw, None));
            for piece in text.as_bytes().chunks(size) {
                data.write_all(piece).expect("writes");
                as_is.write_all(piece).expect("writes");
            }
            data.flush().expect("writes");
            as_is.flush().expect("writes");
            assert!(!data.has_left());
            assert_eq!(String::from_utf8(seen).expect("is text"), without(text), "{size}");
            assert_eq!(raw, text.as_bytes(), "{size}");
        }
    }

    #[test]
    fn the_kind_of_a_text_is_that_of_its_format() {
        assert_eq!(Kind::from_format("json"), Kind::Json);
        for format in ["md", "html", "csv", "junit"] {
            assert_eq!(Kind::from_format(format), Kind::Words, "{format}");
        }
    }

    #[test]
    fn a_reader_that_went_away_is_noticed() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> Result<usize> {
                Err(ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> Result<()> {
                Ok(())
            }
        }
        for harmless in [None, Some(without as Harmless)] {
            let mut data = Data::to(Closed, harmless);
            assert!(data.write_all(b"a\n").is_err() && data.has_left());
        }
    }
}
