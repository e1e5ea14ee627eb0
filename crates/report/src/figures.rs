//! How a number is written for people: scores as per cent with two decimals, `–` for what was not computed.

use std::collections::BTreeMap;

use bench_proto::{
    profile::Written,
    summary::{Interval, OTHER_FACET_VALUES, PublishedFigure},
    text,
};

/// Longest name of a facet or of its value that is shown.
pub(crate) const TEXT_WIDTH_OF_NAMES: usize = 40;

/// Stands for a figure that was not computed.
pub(crate) const NONE: &str = "–";

/// `62.24 %`: published figures have two decimals.
pub(crate) fn percent(fraction: f64) -> String {
    format!("{:.2} %", fraction * 100.0)
}

/// `62.24 %`, or a dash.
pub(crate) fn percent_or_none(fraction: Option<f64>) -> String {
    fraction.map_or_else(|| NONE.to_owned(), percent)
}

/// `56.3 %` for 9 of 16: one decimal, of which a half is rounded up. The share as it is in binary is rounded: 41 of 80 is a
/// little less than 51.25 % there, and so in the tables that are written this way.
fn percent_half_up(fraction: f64) -> String {
    let percent = fraction * 100.0;
    // halves of a tenth that binary fractions can be; formatting would round them to an even digit
    let is_half = (percent * 4.0).fract() == 0.0;
    format!("{:.1} %", if is_half { percent + 0.01 } else { percent })
}

/// A figure as the published results of its dataset write it.
pub(crate) fn as_published(figure: &PublishedFigure) -> String {
    let Some(value) = figure.value else { return NONE.to_owned() };
    match figure.written {
        Written::Percent => percent(value),
        Written::PercentHalfUp => percent_half_up(value),
        Written::FourDecimals => format!("{value:.4}"),
    }
}

/// Like [`percent_or_none`], rounded down: 98.96 % must not be read as 99.0 %.
pub(crate) fn percent_down(fraction: Option<f64>) -> String {
    // the small term undoes what binary fractions lose, so that 0.995 stays 99.5 %
    fraction.map_or_else(|| NONE.to_owned(), |f| format!("{:.1} %", (f * 1_000.0 + 1e-9).floor() / 10.0))
}

/// `57.1 to 67.4`, in per cent without the sign, for tables.
pub(crate) fn interval(interval: Option<&Interval>) -> String {
    interval.map_or_else(|| NONE.to_owned(), |i| format!("{:.1} to {:.1}", i.low * 100.0, i.high * 100.0))
}

/// `57.1 to 67.4 % (± 5.1)`: the half-width in points.
pub(crate) fn interval_with_width(given: Option<&Interval>) -> String {
    given.map_or_else(|| NONE.to_owned(), |i| format!("{} % (± {:.1})", interval(Some(i)), (i.high - i.low) * 50.0))
}

/// `+1.50`: a difference of shares in points.
pub(crate) fn points(fraction: Option<f64>) -> String {
    fraction.map_or_else(|| NONE.to_owned(), |f| format!("{:+.2}", f * 100.0))
}

/// `-2.08 to +5.08`, in points.
pub(crate) fn points_interval(interval: Option<&Interval>) -> String {
    interval.map_or_else(|| NONE.to_owned(), |i| format!("{:+.2} to {:+.2}", i.low * 100.0, i.high * 100.0))
}

/// `0.368`, `< 0.001`, or a dash.
pub(crate) fn p_value(p: Option<f64>) -> String {
    match p {
        None => NONE.to_owned(),
        Some(p) if p < 0.001 => "< 0.001".to_owned(),
        Some(p) => format!("{p:.3}"),
    }
}

/// `0.603`, or a dash.
pub(crate) fn fraction(value: Option<f64>) -> String {
    value.map_or_else(|| NONE.to_owned(), |v| format!("{v:.3}"))
}

/// `1,986`.
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1,986`, or a dash.
pub(crate) fn count_or_none(n: Option<u64>) -> String {
    n.map_or_else(|| NONE.to_owned(), count)
}

/// `1,386` from a thousand on, `12.4` from ten on, `0.83` below.
pub(crate) fn ms(ms: f64) -> String {
    match ms {
        ms if ms >= 999.5 => count(ms.round() as u64),
        ms if ms >= 9.95 => format!("{ms:.1}"),
        ms => format!("{ms:.2}"),
    }
}

/// What a group has booked against its cap, in dollars; the costs of its runs, which are without uncertain calls, may come to less.
pub(crate) fn booked_by_group(booked: f64, cap: Option<f64>) -> String {
    let cap = cap.map(|cap| format!(" of {}", usd(cap))).unwrap_or_default();
    format!("booked by the group, calls included of which nobody knows what they cost: {}{cap}", usd(booked))
}

/// `$12.34`, `$0.0042`, `$0`.
pub(crate) fn usd(usd: f64) -> String {
    match usd {
        0.0 => "$0".to_owned(),
        usd if usd.abs() >= 1.0 => format!("${usd:.2}"),
        usd => format!("${usd:.4}"),
    }
}

/// Dollars; `$0.0010 to $0.0634` where only the least and the most of them are known, and a dash where nothing is. What differs by less
/// than is shown is no range.
pub(crate) fn usd_or_range(known: Option<f64>, range: Option<[f64; 2]>) -> String {
    match (known, range) {
        (Some(known), _) => usd(known),
        (None, Some([_, most])) if most > 0.0 && usd(most) == "$0.0000" => "less than $0.0001".to_owned(),
        (None, Some([least, most])) if usd(least) == usd(most) => usd(most),
        (None, Some([least, most])) => format!("{} to {}", usd(least), usd(most)),
        (None, None) => NONE.to_owned(),
    }
}

/// `41 min 7 s`, `2.8 s`, `3 h 0 min`.
pub(crate) fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..60 => format!("{seconds:.1} s"),
        60..3_600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3_600, whole % 3_600 / 60),
    }
}

/// `n word` with an s when it takes one.
pub(crate) fn counted(n: u64, word: &str) -> String {
    if n == 1 { format!("1 {word}") } else { format!("{} {word}s", count(n)) }
}

/// Free text on one line of at most `most` characters, without what could drive a terminal.
pub(crate) fn one_line(words: &str, most: usize) -> String {
    let mut clean = text::one_line(words).into_owned();
    if let Some((cut, _)) = clean.char_indices().nth(most) {
        clean.truncate(cut);
        clean.push('…');
    }
    clean.trim().to_owned()
}

/// Values of a facet as people order them: by number where all of them are numbers, else by name; what stands for the others
/// comes last.
pub(crate) fn in_order<T>(values: &BTreeMap<String, T>) -> Vec<(&String, &T)> {
    let mut ordered: Vec<(&String, &T)> = values.iter().collect();
    let number = |name: &str| name.parse::<f64>().ok().filter(|number| number.is_finite());
    if ordered.iter().all(|(name, _)| number(name).is_some() || *name == OTHER_FACET_VALUES) {
        let key = |name: &str| number(name).unwrap_or(f64::INFINITY);
        ordered.sort_by(|(a, _), (b, _)| key(a).total_cmp(&key(b)));
    }
    ordered.sort_by_key(|(name, _)| *name == OTHER_FACET_VALUES);
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_that_shows_nothing_is_none() {
        let range = |least, most| usd_or_range(None, Some([least, most]));
        assert_eq!(range(0.0, 0.000_03), "less than $0.0001");
        assert_eq!((range(0.001, 0.001_01), range(0.0, 0.0)), ("$0.0010".to_owned(), "$0".to_owned()));
        assert_eq!(range(0.0, 0.000_06), "$0 to $0.0001");
        assert_eq!(range(0.001, 0.0634), "$0.0010 to $0.0634");
    }

    fn published(value: Option<f64>, n: u64, written: Written) -> String {
        as_published(&PublishedFigure { name: "x".to_owned(), value, n, written })
    }

    #[test]
    fn figures_are_written_as_published_results_write_them() {
        assert_eq!(published(Some(0.812), 500, Written::FourDecimals), "0.8120");
        assert_eq!(published(Some(0.812), 500, Written::Percent), "81.20 %");
        assert_eq!(published(Some(9.0 / 16.0), 16, Written::PercentHalfUp), "56.3 %");
        assert_eq!(published(Some(0.3333), 7, Written::PercentHalfUp), "33.3 %", "grades need not be whole");
        assert_eq!(published(None, 0, Written::PercentHalfUp), "–", "0 of 0 is no accuracy");
        assert_eq!(
            [0.0, 0.5, 0.5625, 0.8875, 1.0].map(percent_half_up),
            ["0.0 %", "50.0 %", "56.3 %", "88.8 %", "100.0 %"]
        );
    }

    /// The tables of ConvoMem's authors, from their own counts.
    #[test]
    fn convomem_tables_come_out_of_their_counts() {
        let folder = std::env::var_os("BENCH_REFERENCE_DIR").map_or_else(
            || std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
            std::path::PathBuf::from,
        );
        let packed = folder.join("data/convomem/evaluation_results_csv.tar.gz");
        if !folder.is_dir() {
            eprintln!("NOT CHECKED against {}; set BENCH_REFERENCE_DIR", packed.display());
            return;
        }
        let packed = std::fs::read(packed).expect("the reference folder has the file");
        let mut archive = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&packed[..]), &mut archive).expect("a gzip file");
        let (mut tables, mut rows, mut of_nothing) = (0, 0, 0);
        for (path, table) in files(&archive).into_iter().filter(|(_, content)| content.starts_with(b"context_size,")) {
            tables += 1;
            for row in csv::Reader::from_reader(table).records() {
                let row = row.expect("a row");
                let number = |at: usize| row[at].parse::<u64>().expect("a count");
                let (correct, n) = (number(2), number(3));
                rows += 1;
                let written = published((n > 0).then(|| correct as f64 / n as f64), n, Written::PercentHalfUp);
                if n == 0 {
                    of_nothing += 1;
                    assert_eq!((&row[1], written.as_str()), ("0.0", NONE), "{path}: {row:?}");
                } else {
                    assert_eq!(written, format!("{} %", &row[1]), "{path}: {row:?}");
                }
            }
        }
        assert_eq!((tables, rows, of_nothing), (77, 1_003, 1));
    }

    /// Names and contents of the files of a tar archive: blocks of 512 bytes, a header before each content.
    fn files(archive: &[u8]) -> Vec<(String, &[u8])> {
        let (mut files, mut at) = (Vec::new(), 0);
        while let Some(header) = archive.get(at..at + 512).filter(|header| header[0] != 0) {
            let text = |part: &[u8]| String::from_utf8_lossy(part).trim_matches(['\0', ' ']).to_owned();
            let size = usize::from_str_radix(&text(&header[124..136]), 8).expect("a size");
            files.push((text(&header[..100]), &archive[at + 512..at + 512 + size]));
            at += 512 + size.next_multiple_of(512);
        }
        files
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!([0, 999, 1_000, 5_882_001].map(count), ["0", "999", "1,000", "5,882,001"]);
        assert_eq!([0.834, 12.44, 999.7, 1_385.7].map(ms), ["0.83", "12.4", "1,000", "1,386"]);
        assert_eq!([0.0, 0.0042, 12.345].map(usd), ["$0", "$0.0042", "$12.35"]);
        assert_eq!([2.84, 2_467.2, 10_800.0].map(duration), ["2.8 s", "41 min 7 s", "3 h 0 min"]);
        assert_eq!(counted(1, "bank"), "1 bank");
        assert_eq!(percent_down(Some(0.9896)), "98.9 %");
        assert_eq!(percent_down(Some(0.995)), "99.5 %");
        assert_eq!(percent_or_none(None), "–");
    }

    #[test]
    fn values_that_are_numbers_go_by_number() {
        let order = |names: &[&str]| {
            let values: BTreeMap<String, ()> = names.iter().map(|name| ((*name).to_owned(), ())).collect();
            in_order(&values).into_iter().map(|(name, ())| name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(order(&["128000", "(other)", "32000", "1000000"]), ["32000", "128000", "1000000", "(other)"]);
        assert_eq!(order(&["no", "10", "9", "(other)"]), ["10", "9", "no", "(other)"]);
    }

    #[test]
    fn free_text_cannot_break_a_line_or_drive_a_terminal() {
        assert_eq!(one_line("a\nb\u{1b}[31mred", 40), "a b [31mred");
        assert_eq!(one_line("a\u{202e}b\u{9b}c", 40), "a b c");
        assert_eq!(one_line("ääääää", 3), "äää…");
    }
}
