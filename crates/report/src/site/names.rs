//! Where each page lies, from the folder of the site. Names are made of letters, digits and a few signs that mean nothing to a file
//! system or an address, whatever the name of a dataset holds, and no two of them are the same.

/// The page of all datasets.
pub const INDEX: &str = "index.html";
/// What stands on the pages, as JSON; a folder with it is a site.
pub const DOCUMENT: &str = "site.json";
/// Folders of the pages of datasets, pairs and runs.
pub const FOLDERS: [&str; 3] = ["datasets", "pairs", "runs"];
/// Longest id of a run that has a page, in bytes: a file system takes that of two of them.
pub const MOST_ID_BYTES: usize = 120;
/// Longest name of a dataset that has a page, in bytes: its file's name is three times as long at most.
pub const MOST_NAME_BYTES: usize = 80;

/// The page of a dataset.
#[must_use]
pub fn of_dataset(name: &str) -> String {
    let mut file = String::from("datasets/");
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'@' => file.push(char::from(byte)),
            // `_` and two digits, so that different names stay different, also where large and small letters are one
            other => file.push_str(&format!("_{other:02x}")),
        }
    }
    file.push_str(".html");
    file
}

/// The page of a run; ids of runs are plain names.
#[must_use]
pub fn of_run(id: &str) -> String {
    format!("runs/{id}.html")
}

/// The page of two runs. No id of a run holds `@`, so that no other two have the same.
#[must_use]
pub fn of_pair(a: &str, b: &str) -> String {
    format!("pairs/{a}@{b}.html")
}

/// A page as a link of a page in one of the folders.
pub(super) fn from_folder(page: &str) -> String {
    format!("../{page}")
}

#[cfg(test)]
mod tests {
    use bench_proto::ids::RunId;

    use super::*;

    #[test]
    fn a_dataset_has_a_page_below_the_folder_whatever_it_is_called() {
        assert_eq!(of_dataset("longmemeval@s"), "datasets/longmemeval@s.html");
        assert_eq!(of_dataset("Mine"), "datasets/_4dine.html");
        assert_ne!(of_dataset("a_41"), of_dataset("aA"));
        for nasty in ["../x", "a/b", "a\\b", "?x#y", "\"><script>", "..", "index"] {
            let file = of_dataset(nasty);
            let name = file.strip_prefix("datasets/").expect("is below");
            let plain = |c: char| c.is_ascii_alphanumeric() || "-@_.".contains(c);
            assert!(name.chars().all(plain) && name.matches('.').count() == 1, "{file}");
        }
        assert!(of_dataset(&"\u{e4}".repeat(MOST_NAME_BYTES / 2)).len() < 255, "a file system takes it");
    }

    #[test]
    fn no_two_pairs_have_the_same_page() {
        assert_ne!(of_pair("a", "b--c"), of_pair("a--b", "c"));
        assert!(RunId::stored("a@b").is_err(), "what stands between them is in no id");
        let longest = "x".repeat(MOST_ID_BYTES);
        assert!(of_pair(&longest, &longest).len() - "pairs/".len() <= 255, "a file system takes it");
    }
}
