//! The files of a run: report in all its forms, questions, plots; each appears whole or not at all.

use std::{
    collections::HashMap,
    error::Error as _,
    io::Write,
    path::{Path, PathBuf},
};

use bench_proto::{
    ids::RunId,
    summary::{QuestionLine, Summary},
};
use bench_report::html::{Beside, MOST_QUESTIONS, Page};
use bench_settings::private;
use bench_store::{RunRow, Store};

use super::{beside::beside, questions::each_question};
use crate::{app::App, exit::CliError, out};

/// Bytes of questions that are held in memory before they go to a file.
const IN_MEMORY: usize = 8 << 20;

/// Folder of a run's files: `$BENCH_HOME/runs/<run>`, unless the person named one.
#[must_use]
pub(crate) fn run_folder(app: &App, run: &RunId, output_dir: Option<&Path>) -> PathBuf {
    output_dir.map_or_else(|| app.home().join("runs").join(&run.0), Path::to_owned)
}

/// Makes sure that files can be written there, before any work.
///
/// # Errors
/// Exit 2 naming the folder.
pub(crate) fn check_writable(folder: &Path) -> Result<(), CliError> {
    try_folder(folder).map_err(|e| not_writable(folder, e))
}

/// Makes sure that the files of a run can be written, which lie in the home unless the person named a folder. None is made: who is
/// refused afterwards leaves nothing behind.
///
/// # Errors
/// Exit 2 naming the home, where nothing can be written to it, else the folder.
pub(crate) fn check_run_folder(app: &App, run: &RunId, output_dir: Option<&Path>) -> Result<(), CliError> {
    let folder = run_folder(app, run, output_dir);
    match output_dir {
        Some(_) => could_be_written(&folder).map_err(|e| not_writable(&folder, e)),
        None => check_in_home(&folder, &app.home()),
    }
}

fn check_in_home(folder: &Path, home: &Path) -> Result<(), CliError> {
    let Err(error) = could_be_written(folder) else { return Ok(()) };
    // where the home itself can be written, it is this folder that cannot
    let Err(of_home) = could_be_written(home) else { return Err(not_writable(folder, error)) };
    let what = if home.is_dir() { "written" } else { "made" };
    Err(CliError::usage(format!(
        "the home {} cannot be {what}: {of_home}; set BENCH_HOME to a folder that can be, or name other places with --store and --output-dir",
        home.display()
    ))
    .because(of_home))
}

/// Makes a folder, and a file in it that goes at once.
fn try_folder(folder: &Path) -> std::io::Result<()> {
    private::create_folder(folder)?;
    tempfile::NamedTempFile::new_in(folder).map(drop)
}

/// Makes sure that a file can be written, before any work.
///
/// # Errors
/// Exit 2 naming the file.
pub(crate) fn check_file(file: &Path) -> Result<(), CliError> {
    let made = match Named::at_path(file) {
        Named::File(place) => {
            let folder = folder_of(&place);
            private::create_folder(folder).and_then(|()| tempfile::NamedTempFile::new_in(folder).map(drop))
        }
        // it may be a pipe whose reader has not come yet
        Named::Other => Ok(()),
    };
    made.map_err(|e| {
        CliError::usage(format!("{} cannot be written: {e}; name another file", file.display())).because(e)
    })
}

/// Makes sure that files can be written to a folder, and makes none: one that is not there yet could be made.
///
/// # Errors
/// Why they cannot.
pub(crate) fn could_be_written(folder: &Path) -> std::io::Result<()> {
    let missing = |folder: &&Path| folder.symlink_metadata().is_err();
    let there = folder.ancestors().find(|above| !missing(above)).unwrap_or(Path::new("."));
    let there = if there.as_os_str().is_empty() { Path::new(".") } else { there };
    tempfile::NamedTempFile::new_in(there).map(drop)
}

fn not_writable(folder: &Path, error: std::io::Error) -> CliError {
    CliError::usage(format!("{} cannot be written: {error}; choose another place with --output-dir", folder.display()))
        .because(error)
}

/// Writes `report.json`, `report.md`, `questions.jsonl`, `report.html` and the plots; each file appears whole or not at all. Out come
/// the questions that the page holds, with what is told beside them.
///
/// # Errors
/// What the store or the disk meets.
pub(crate) async fn write_files(
    store: &dyn Store,
    run: &RunRow,
    summary: &Summary,
    folder: &Path,
) -> Result<(Vec<QuestionLine>, HashMap<String, Beside>), CliError> {
    written(store, run, summary, folder).await.map_err(|error| in_store(&run.run_id, error))
}

async fn written(
    store: &dyn Store,
    run: &RunRow,
    summary: &Summary,
    folder: &Path,
) -> Result<(Vec<QuestionLine>, HashMap<String, Beside>), CliError> {
    private::create_folder(folder).map_err(|e| disk(folder, e))?;
    let questions = write_questions(store, run, &folder.join("questions.jsonl")).await?;
    let beside = beside(store, run, &questions).await?;
    let page = Page { beside: Some(&beside), ..Page::new(summary, &questions) };
    for format in ["json", "md", "html"] {
        write_text(&folder.join(file_name(format)), &render(&page, format)?)?;
    }
    for plot in bench_report::svg::plots(summary) {
        write_text(&folder.join(plot.file_name), &plot.standalone())?;
    }
    Ok((questions, beside))
}

/// Name of the terminal table among the formats; it has no file of its own but `report.txt`.
pub(crate) const TERMINAL: &str = "terminal";

/// Name of a format's file.
#[must_use]
pub(crate) fn file_name(format: &str) -> &'static str {
    bench_report::format_named(format).map_or("report.txt", |format| format.file_name)
}

/// Checks a format's name.
///
/// # Errors
/// Exit 2 with all names.
pub(crate) fn check_format(name: &str) -> Result<(), CliError> {
    if name == TERMINAL || bench_report::format_named(name).is_some() {
        return Ok(());
    }
    let known: Vec<&str> = std::iter::once(TERMINAL).chain(bench_report::FORMATS.iter().map(|f| f.name)).collect();
    Err(CliError::usage(format!("unknown format '{name}' (known: {})", known.join(", "))))
}

/// A report in a format.
///
/// # Errors
/// Exit 2 for unknown formats.
pub(crate) fn render(page: &Page<'_>, format: &str) -> Result<String, CliError> {
    match bench_report::format_named(format) {
        Some(format) => format.render(page).map_err(CliError::infrastructure_of),
        None => {
            check_format(format)?;
            Ok(on_screen(page.summary, true, None))
        }
    }
}

/// What a person sees of a result: what fits a screen, or all of it. `page` is where its page lies.
#[must_use]
pub(crate) fn on_screen(summary: &Summary, full: bool, page: Option<&Path>) -> String {
    bench_report::terminal::render(summary, bench_report::terminal::TerminalOptions { view: out::view(), full, page })
}

/// The page of a run or of a group in its folder, where there is one.
#[must_use]
pub(crate) fn page_in(folder: &Path) -> Option<PathBuf> {
    let page = folder.join(file_name("html"));
    page.is_file().then_some(page)
}

/// The file of the page of a run or of a group, in its folder.
#[must_use]
pub(crate) fn page_file(app: &App, id: &RunId) -> PathBuf {
    run_folder(app, id, None).join(file_name("html"))
}

/// The flag that names another folder for the files of a report.
pub(crate) const OTHER_FOLDER: &str = "--output-dir DIR";

/// Shows the page of a run or of a group, whose file lies in its folder.
///
/// # Errors
/// As [`print_page`].
pub(crate) fn show_page(app: &App, id: &RunId, page: &str) -> Result<(), CliError> {
    print_page(app, (&page_file(app, id), OTHER_FOLDER), page)
}

/// Prints a page. It is no text for a person: in front of a terminal it is written to a file of the home instead, whose path is then
/// what is printed. `flag` names another place.
///
/// # Errors
/// Exit 2 where there is no home, or nothing can be written to it.
pub(crate) fn print_page(app: &App, (file, flag): (&Path, &str), page: &str) -> Result<(), CliError> {
    if !out::is_terminal() {
        out::file(out::Kind::Words, page);
        return Ok(());
    }
    if !app.home().is_dir() {
        return Err(CliError::usage(format!("there is no home here for the page: give {flag}")));
    }
    private::create_folder(folder_of(file))
        .and_then(|()| replace(file, |out| out.write_all(page.as_bytes())))
        .map_err(|error| {
            CliError::usage(format!("{} cannot be written: {error}; give {flag}", file.display())).because(error)
        })?;
    out::result(&file.display().to_string());
    Ok(())
}

/// A summary in a format that shows no single questions.
///
/// # Errors
/// As [`render`].
pub(crate) fn render_summary(summary: &Summary, format: &str) -> Result<String, CliError> {
    render(&Page::new(summary, &[]), format)
}

/// Writes a file beside its place and moves it there.
///
/// # Errors
/// Exit 4 naming the file.
pub(crate) fn write_atomically(
    path: &Path,
    fill: impl FnOnce(&mut std::io::BufWriter<&std::fs::File>) -> std::io::Result<()>,
) -> Result<(), CliError> {
    replace(path, fill).map_err(|e| disk(path, e))
}

/// Writes a text in the same way.
///
/// # Errors
/// What the disk meets.
pub(crate) fn write_text(path: &Path, text: &str) -> Result<(), CliError> {
    write_atomically(path, |file| file.write_all(text.as_bytes()))
}

/// Writes a text to a file that a person has named. A link is followed, and what is no file, such as `/dev/stdout` or a pipe, is written to.
///
/// # Errors
/// Exit 4 naming the file.
pub(crate) fn write_named(path: &Path, text: &str) -> Result<(), CliError> {
    let through = || {
        let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
        file.write_all(text.as_bytes()).and_then(|()| file.flush())
    };
    match Named::at_path(path) {
        Named::File(place) => replace(&place, |file| file.write_all(text.as_bytes())),
        Named::Other => through(),
    }
    .map_err(|e| disk(path, e))
}

/// What a person has named to be written.
enum Named {
    /// A file that is put in the place of what is there.
    File(PathBuf),
    /// A device, a pipe, or a link to what is not there.
    Other,
}

impl Named {
    fn at_path(path: &Path) -> Self {
        match (path.metadata(), path.symlink_metadata()) {
            (Ok(there), _) if there.is_file() => Self::File(path.canonicalize().unwrap_or_else(|_| path.to_owned())),
            (Ok(there), _) if there.is_dir() => Self::File(path.to_owned()),
            (Err(_), Err(_)) => Self::File(path.to_owned()),
            _ => Self::Other,
        }
    }
}

/// The same as [`write_atomically`], for files of which the store knows nothing.
///
/// # Errors
/// What the disk meets.
pub(crate) fn replace(
    path: &Path,
    fill: impl FnOnce(&mut std::io::BufWriter<&std::fs::File>) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let folder = folder_of(path);
    // temporary files are private, and so is what holds questions and answers
    let file = tempfile::Builder::new().prefix(".bench-").tempfile_in(folder)?;
    let mut writer = std::io::BufWriter::new(file.as_file());
    fill(&mut writer)?;
    writer.flush()?;
    drop(writer);
    file.persist(path)?;
    Ok(())
}

/// The folder that a file lies in.
#[must_use]
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

/// What a person reads about a file that cannot be written.
pub(crate) fn disk(path: &Path, error: std::io::Error) -> CliError {
    CliError::infrastructure(format!(
        "{} cannot be written: {error}; make room there, or name another place",
        path.display()
    ))
    .because(error)
}

/// The same of a run's files, which are made of what the store holds.
fn in_store(run: &RunId, error: CliError) -> CliError {
    if !error.source().is_some_and(|behind| behind.is::<std::io::Error>()) {
        return error;
    }
    let message = format!(
        "{error}: the results are in the store, and `bench-coord report {run} --output-dir DIR` writes them again"
    );
    error.saying(message)
}

/// Writes all questions and returns the first of them, as many as a page holds.
async fn write_questions(store: &dyn Store, run: &RunRow, path: &Path) -> Result<Vec<QuestionLine>, CliError> {
    // lines are made bank by bank and collected in a spooled file, so the store is never waited for while the writer is open; where
    // the questions will lie is room for them, and what is wrong there is told of their file
    let spool = tempfile::spooled_tempfile_in(IN_MEMORY, folder_of(path));
    let mut spool = bench_report::QuestionsWriter::new(spool);
    let mut first = Vec::new();
    each_question(store, run, |line| {
        spool.write(&line).map_err(|e| disk(path, e))?;
        if first.len() < MOST_QUESTIONS {
            first.push(line);
        }
        Ok(true)
    })
    .await?;
    let (mut spool, _) = spool.finish().map_err(|e| disk(path, e))?;
    std::io::Seek::rewind(&mut spool).map_err(|e| disk(path, e))?;
    write_atomically(path, |file| std::io::copy(&mut spool, file).map(|_| ()))?;
    Ok(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_cannot_be_written_are_made_again_by_a_command_that_names_their_run() {
        let run = RunId("mine".to_owned());
        let full = disk(Path::new("report.md"), std::io::ErrorKind::StorageFull.into());
        let told = in_store(&run, full).message;
        assert!(told.ends_with("`bench-coord report mine --output-dir DIR` writes them again"), "{told}");
        let other = in_store(&run, CliError::infrastructure("the store is away"));
        assert_eq!(other.message, "the store is away");
    }

    #[test]
    fn a_home_that_cannot_be_made_is_named_with_what_to_set() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = folder.path().join("home");
        std::fs::write(&home, "a file").expect("is written");
        let refused = check_in_home(&home.join("runs/a"), &home).expect_err("is refused");
        let begin = format!("the home {} cannot be made: ", home.display());
        assert!(refused.message.starts_with(&begin) && refused.message.contains("set BENCH_HOME to"), "{refused}");
        std::fs::remove_file(&home).expect("is removed");
        assert!(check_in_home(&home.join("runs/a"), &home).is_ok());
        assert!(!home.exists(), "a look makes nothing");
        std::fs::create_dir_all(home.join("runs")).expect("is made");
        // a part of the home that cannot be used is no reason for another home
        std::fs::write(home.join("runs/b"), "a file").expect("is written");
        let refused = check_in_home(&home.join("runs/b"), &home).expect_err("is refused");
        assert!(refused.message.ends_with("choose another place with --output-dir"), "{refused}");
    }
}
