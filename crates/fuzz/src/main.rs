//! `bench-fuzz TARGET --minutes N`: makes inputs of the corpus for as long as is wanted, keeps those that reach new places, and saves
//! what breaks a promise. A second process does the work, so that one that dies or hangs is a finding too.

use std::{
    fs,
    io::{Seek as _, Write as _},
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    sync::Mutex,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use bench_fuzz::{TARGETS, Target, corpus, coverage::Reached, mutate, targets};
use clap::Parser;
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

/// An input that takes longer hangs: of the processor's time, which others on the machine do not lengthen.
const LONGEST: Duration = Duration::from_secs(10);
/// The same of the clock, for what waits and does nothing.
const LONGEST_WAIT: Duration = Duration::from_secs(300);
/// Most inputs that are kept in memory to make others of.
const MOST_KEPT: usize = 20_000;

/// Makes inputs for a target, and saves those that break a promise.
#[derive(Debug, Parser)]
struct Args {
    /// Its name; `all` for one after the other
    target: String,
    /// How long, for each target
    #[arg(long, value_name = "N", default_value_t = 1.0)]
    minutes: f64,
    /// Where a series begins [default: a random place]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Reads this file once, and nothing else
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// Where findings and kept inputs go
    #[arg(long, value_name = "DIR", default_value = "target/fuzz")]
    output_dir: PathBuf,
    /// Do the work in this process
    #[arg(long, hide = true)]
    here: bool,
}

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    let names = || TARGETS.iter().map(|target| target.name).collect::<Vec<_>>().join(", ");
    let chosen: Vec<&Target> = match args.target.as_str() {
        "all" => TARGETS.iter().collect(),
        name => vec![targets::find(name).with_context(|| format!("no target '{name}' (known: all, {})", names()))?],
    };
    if let Some(file) = &args.replay {
        let input = fs::read(file).with_context(|| format!("{} cannot be read", file.display()))?;
        chosen.iter().for_each(|target| (target.read)(&input));
        return Ok(ExitCode::SUCCESS);
    }
    let mut found = 0;
    for target in chosen {
        let folder = args.output_dir.join(target.name);
        fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        found += if args.here { work(target, &args, &folder)? } else { supervise(target, &args, &folder)? };
    }
    Ok(if found == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Lets another process work until the time is over, again when it dies; the number of findings.
fn supervise(target: &Target, args: &Args, folder: &Path) -> anyhow::Result<u64> {
    let ends = Instant::now() + Duration::from_secs_f64(args.minutes * 60.0);
    let (last, mut found) = (folder.join("last"), 0);
    while Instant::now() < ends {
        // what an earlier process left says nothing of the next one
        let _ = fs::remove_file(&last);
        let left = ends.saturating_duration_since(Instant::now()).as_secs_f64() / 60.0;
        let mut command = Command::new(std::env::current_exe()?);
        command.args([target.name, "--here", "--minutes", &left.to_string(), "--output-dir"]).arg(&args.output_dir);
        command.args(args.seed.map(|seed| format!("--seed={}", seed + found)));
        let mut child = command.spawn().context("the working process cannot be started")?;
        let (mut begun, mut used_before) = (None, None);
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            let changed = fs::metadata(&last).and_then(|meta| meta.modified()).ok();
            let used = processor_time(child.id());
            if changed != begun {
                (begun, used_before) = (changed, used);
            }
            let quiet = begun.and_then(|at| at.elapsed().ok()).unwrap_or_default();
            let worked = used.zip(used_before).map_or(quiet, |(used, before)| used.saturating_sub(before));
            if worked > LONGEST || quiet > LONGEST_WAIT {
                child.kill()?;
            }
            std::thread::sleep(Duration::from_millis(500));
        };
        match status.code() {
            Some(0) => return Ok(found),
            // panics that were saved by the process itself
            Some(1) => return Ok(found + 1),
            _ => {
                found += 1;
                let saved = folder.join(format!("died-{:x}", rand::rng().random::<u64>()));
                fs::write(&saved, Last::read(&last)?)?;
                println!("{}: FOUND {}: the process died or hung ({status})", target.name, saved.display());
            }
        }
    }
    Ok(found)
}

/// The processor's time that a process has used; `None` where the system does not tell in `/proc`.
fn processor_time(process: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // behind the name: the state is the third field, the times of the process and of the kernel for it the 14th and 15th
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let hundredths: u64 = fields.get(11..13)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum();
    Some(Duration::from_millis(10 * hundredths))
}

/// The input that is being read, for whoever finds the process dead: its length and its bytes, over those of the one before.
struct Last(fs::File);

impl Last {
    fn write(&mut self, input: &[u8]) -> std::io::Result<()> {
        self.0.rewind()?;
        self.0.write_all(&[&(input.len() as u64).to_le_bytes(), input].concat())
    }

    fn read(path: &Path) -> std::io::Result<Vec<u8>> {
        let bytes = fs::read(path)?;
        let (length, input) = bytes.split_first_chunk::<8>().ok_or(std::io::ErrorKind::UnexpectedEof)?;
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        Ok(input[..length.min(input.len())].to_vec())
    }
}

/// Makes inputs until the time is over; the number of findings.
fn work(target: &Target, args: &Args, folder: &Path) -> anyhow::Result<u64> {
    static MESSAGE: Mutex<String> = Mutex::new(String::new());
    std::panic::set_hook(Box::new(|panic| {
        *MESSAGE.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = panic.to_string();
    }));
    let seed = args.seed.unwrap_or_else(|| rand::rng().random());
    let mut rng = StdRng::seed_from_u64(seed);
    let kept = folder.join("kept");
    fs::create_dir_all(&kept)?;
    let mut begin: Vec<Vec<u8>> = Vec::new();
    for folder in [corpus::folder(target.name), kept.clone()] {
        begin.extend(corpus::read(&folder)?.into_iter().map(|(_, input)| input));
    }
    let mut last = Last(fs::File::create(folder.join("last"))?);
    let ends = Instant::now() + Duration::from_secs_f64(args.minutes * 60.0);
    let (mut reached, mut pool, mut messages) = (Reached::default(), begin.clone(), Vec::<String>::new());
    let (began, counted, mut inputs) = (Instant::now(), Reached::is_counted(), 0_u64);
    let mut begin = begin.into_iter();
    while Instant::now() < ends {
        let first = begin.next();
        let is_first = first.is_some();
        let input = first.unwrap_or_else(|| mutate::made_of(&pool, &mut rng));
        last.write(&input)?;
        Reached::begin();
        let read = catch_unwind(AssertUnwindSafe(|| (target.read)(&input)));
        inputs += 1;
        let new = counted && reached.is_new();
        if read.is_err() {
            let message = MESSAGE.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
            // one of each kind: the place, without what the input says
            let place = message.lines().next().unwrap_or_default().to_owned();
            if !messages.contains(&place) {
                let saved = folder.join(format!("found-{seed:x}-{inputs}"));
                fs::write(&saved, &input)?;
                println!("{}: FOUND {}: {message}", target.name, saved.display());
                messages.push(place);
            }
        } else if new && !is_first && pool.len() < MOST_KEPT {
            fs::write(kept.join(format!("{seed:x}-{inputs}")), &input)?;
            pool.push(input);
        }
    }
    let led = if counted { format!("{} places reached", reached.places()) } else { "nothing counted".to_owned() };
    println!(
        "{}: {inputs} inputs in {:.1} min, {} in the pool, {led}, {} findings (seed {seed})",
        target.name,
        began.elapsed().as_secs_f64() / 60.0,
        pool.len(),
        messages.len()
    );
    Ok(messages.len() as u64)
}
