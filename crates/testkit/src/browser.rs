//! A real Chromium, from Debian: pages are opened, worked on by a script of the test, and looked at.

use std::{
    io::Read,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::packages::install;

const PROGRAM: &str = "/usr/bin/chromium";
/// Longest time for one page.
const PATIENCE: Duration = Duration::from_secs(90);

/// The page's document after `script` ran in it, as text. Nothing outside of the machine can be reached meanwhile.
///
/// # Panics
/// When Chromium cannot be installed or does not end.
#[must_use]
pub fn document_after(page: &Path, script: &str) -> String {
    let worked_on = with_script(page, script);
    let mut command = chromium(page);
    command.args(["--virtual-time-budget=10000", "--dump-dom"]).arg(url(&worked_on));
    run(command)
}

/// How a page is opened.
#[derive(Debug, Clone, Copy)]
pub struct Visit<'a> {
    /// What stands behind the `#` of its address.
    pub fragment: &'a str,
    /// Width of the window, in pixels; no window is narrower than 500.
    pub width: u32,
}

impl Default for Visit<'_> {
    fn default() -> Self {
        Self { fragment: "", width: 1280 }
    }
}

/// What `script` returns after it worked on the page: the body of an asynchronous function. Of one that fails `{"error": …}`.
///
/// # Panics
/// When Chromium cannot be installed or does not end, or the script does not.
#[must_use]
pub fn told_after(page: &Path, visit: Visit<'_>, script: &str) -> Value {
    let worked_on = with_script(page, &telling(script));
    let mut command = chromium(page);
    let address = if visit.fragment.is_empty() { String::new() } else { format!("#{}", visit.fragment) };
    command
        .args(["--virtual-time-budget=10000", "--dump-dom"])
        .arg(format!("--window-size={},1000", visit.width))
        .arg(url(&worked_on) + &address);
    told_in(&run(command), script)
}

/// Where a script leaves what it tells.
const BEGIN: &str = "<pre id=\"told-to-the-test\">";

/// A script that leaves what the body of an asynchronous function returns; of one that fails `{"error": …}`.
fn telling(body: &str) -> String {
    format!(
        "(async () => {{ let told; \
         try {{ told = await (async () => {{ {body} }})(); }} catch (error) {{ told = {{ error: `${{error}} ${{error.stack}}` }}; }} \
         const box = document.createElement('pre'); box.id = 'told-to-the-test'; box.textContent = JSON.stringify(told); \
         document.body.append(box); }})();"
    )
}

/// What a script has left in a document.
fn told_in(document: &str, script: &str) -> Value {
    let start = document.rfind(BEGIN).unwrap_or_else(|| panic!("the script did not end: {script}")) + BEGIN.len();
    let end = document[start..].find("</pre>").expect("closed") + start;
    let text = &document[start..end];
    let text = text.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&nbsp;", "\u{a0}");
    serde_json::from_str(&text.replace("&amp;", "&")).expect("JSON")
}

/// What somebody finds who goes through pages.
#[derive(Debug)]
pub struct Walk {
    /// What the script returned.
    pub told: Value,
    /// What stood on the console of the browser.
    pub console: Vec<String>,
}

/// What `script` returns that goes through pages in a frame, as it can with pages whose policy forbids all scripts: the body of an
/// asynchronous function, in which `open(address)` and `follow(link)` return the document that was reached, and `view()` its window.
/// Addresses count from `page`, which is opened before.
///
/// # Panics
/// When Chromium cannot be installed or does not end, or the script does not.
#[must_use]
pub fn walk(page: &Path, script: &str) -> Walk {
    let beside = tempfile::tempdir().expect("a folder");
    let walker = beside.path().join("walker.html");
    let html = "<!doctype html><html><body><iframe id=frame width=1200 height=900></iframe></body></html>";
    std::fs::write(&walker, html).expect("writable");
    let first = url(page);
    let whole = format!(
        "const frame = document.getElementById('frame'); \
         const reached = (go) => new Promise((done) => {{ frame.onload = () => done(frame.contentDocument); go(); }}); \
         const open = (address) => reached(() => {{ frame.src = new URL(address, {first:?}).href; }}); \
         const follow = (link) => reached(() => link.click()); \
         const view = () => frame.contentWindow; \
         await open({first:?}); {script}"
    );
    let mut command = chromium(&walker);
    command.args([
        "--allow-file-access-from-files",
        "--enable-logging=stderr",
        "--virtual-time-budget=10000",
        "--dump-dom",
    ]);
    command.arg(url(&with_script(&walker, &telling(&whole))));
    let (document, log) = ended(command, Stdio::piped());
    let console = log.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect();
    Walk { told: told_in(&document, script), console }
}

/// A picture of the page after `script` ran in it, as PNG of this size.
///
/// # Panics
/// When Chromium cannot be installed or does not end.
pub fn picture_after(page: &Path, script: &str, width: u32, height: u32, picture: &Path) {
    let worked_on = with_script(page, script);
    let mut command = chromium(page);
    command
        .args(["--virtual-time-budget=10000", "--hide-scrollbars"])
        .arg(format!("--window-size={width},{height}"))
        .arg(format!("--screenshot={}", picture.display()))
        .arg(url(&worked_on));
    let _ = run(command);
    assert!(picture.exists(), "no picture was taken");
}

/// A page as it comes out of a printer.
#[derive(Debug)]
pub struct Printed {
    /// What can be read on it, sheet by sheet.
    pub sheets: Vec<String>,
    /// Share of the first sheet that is as light as paper.
    pub light: f64,
}

/// The page on A4 after `script` ran in it.
///
/// # Panics
/// When Chromium or poppler's programs cannot be installed or do not end.
#[must_use]
pub fn printed_after(page: &Path, script: &str) -> Printed {
    let worked_on = with_script(page, script);
    let pdf = page.with_file_name("printed.pdf");
    let mut command = chromium(page);
    command
        .args(["--virtual-time-budget=10000", "--no-pdf-header-footer"])
        .arg(format!("--print-to-pdf={}", pdf.display()))
        .arg(url(&worked_on));
    let _ = run(command);
    let text = poppler("pdftotext", &["-layout", &pdf.display().to_string(), "-"]);
    let picture = poppler("pdftoppm", &["-r", "30", "-f", "1", "-l", "1", &pdf.display().to_string()]);
    // each sheet ends with a form feed
    let text = String::from_utf8_lossy(&text).into_owned();
    let sheets = text.split_terminator('\u{c}').map(str::to_owned).collect();
    Printed { sheets, light: light_share(&picture) }
}

fn poppler(program: &str, args: &[&str]) -> Vec<u8> {
    if !Path::new("/usr/bin").join(program).exists() {
        install("poppler-utils").expect("poppler-utils can be installed");
    }
    let output = Command::new(program).args(args).output().expect("starts");
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Share of a portable pixmap (P6, one byte a colour) that is nearly white.
fn light_share(picture: &[u8]) -> f64 {
    let header: Vec<&[u8]> = picture.splitn(4, |byte| *byte == b'\n').collect();
    assert!(header.len() == 4 && header[0] == b"P6" && header[2] == b"255", "no pixmap");
    let pixels = header[3].chunks_exact(3);
    let all = pixels.len() as f64;
    pixels.filter(|colour| colour.iter().all(|part| *part > 200)).count() as f64 / all
}

/// A copy of the page beside it that ends with the script.
fn with_script(page: &Path, script: &str) -> std::path::PathBuf {
    let html = std::fs::read_to_string(page).expect("the page is there");
    let end = html.rfind("</body>").expect("the page has an end");
    let copy = page.with_file_name("worked-on.html");
    std::fs::write(&copy, format!("{}<script>{script}</script>{}", &html[..end], &html[end..])).expect("writable");
    copy
}

fn url(page: &Path) -> String {
    format!("file://{}", page.canonicalize().expect("exists").display())
}

fn chromium(page: &Path) -> Command {
    if !Path::new(PROGRAM).exists() {
        install("chromium").expect("chromium can be installed");
    }
    let mut command = Command::new(PROGRAM);
    let profile = page.with_file_name("chromium-profile");
    command.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-dev-shm-usage",
        "--host-resolver-rules=MAP * ~NOTFOUND",
    ]);
    command.arg(format!("--user-data-dir={}", profile.display()));
    command
}

fn run(command: Command) -> String {
    ended(command, Stdio::null()).0
}

/// What a browser has written to standard output, and to standard error where that is piped.
fn ended(mut command: Command, stderr: Stdio) -> (String, String) {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr).spawn().expect("starts");
    let (stdout, stderr) = (text_of(child.stdout.take()), text_of(child.stderr.take()));
    let began = Instant::now();
    while child.try_wait().expect("a child can be asked").is_none() {
        if began.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            panic!("chromium did not end within {PATIENCE:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    (stdout.join().unwrap_or_default(), stderr.join().unwrap_or_default())
}

/// Reads a pipe to its end beside whatever else is done.
fn text_of(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
