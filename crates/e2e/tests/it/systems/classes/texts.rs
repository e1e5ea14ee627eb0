//! Classes that tests write, made of that of a README or for one test.

use std::{fs, path::Path, process::Command};

use super::sides::Side;

pub(super) fn write(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), text).expect("is written");
}

/// A class whose words come from a module beside it.
pub(super) fn with_words(side: &Side, folder: &Path) {
    let (import, module) = match side.file {
        "mine.py" => ("from words import words_of\n", "def words_of(text):\n    return set(text.lower().split())\n"),
        "mine.ts" => (
            "import { words_of } from './words.ts';\n",
            "export const words_of = (text: string) => new Set(text.toLowerCase().match(/\\S+/g));\n",
        ),
        _ => (
            "import { words_of } from './words.mjs';\n",
            "export const words_of = (text) => new Set(text.toLowerCase().match(/\\S+/g));\n",
        ),
    };
    let readme = side.readme();
    let class = side
        .behind(&readme, side.top, import, import)
        .replace("set(query.lower().split())", "words_of(query)")
        .replace("wordsOf(query)", "words_of(query)");
    assert!(class.contains("words_of(query)"), "{class}");
    write(folder, side.file, &class);
    write(folder, side.words, module);
}

/// Classes that fail in different ways; of what each says see the test.
pub(super) fn failing(side: &Side) -> &'static str {
    side.or(
        "import os
class Mine:
    env = ['MINE_KEY']
    def retain(self, bank, items): pass
    def recall(self, bank, query, k):
        raise ValueError('no such key ' + os.environ['MINE_KEY'])
class Ends(Mine):
    def recall(self, bank, query, k): raise SystemExit('enough')
class Tires:
    calls = 0
    def retain(self, bank, items): pass
    def recall(self, bank, query, k):
        self.calls += 1
        if self.calls == 1: raise ConnectionError('away for now')
        return [f'{query} {n}' for n in range(k)]
class Nothing(Mine):
    def recall(self, bank, query, k): pass
",
        "import { TryAgain } from 'bench-coord';
export class Mine {
  static env = ['MINE_KEY'];
  retain(bank, items) {}
  recall(bank, query, k) {
    throw new RangeError('no such key ' + process.env.MINE_KEY);
  }
}
export class Ends extends Mine { recall(bank, query, k) { process.exit(3); } }
export class Tires {
  calls = 0;
  retain(bank, items) {}
  async recall(bank, query, k) {
    this.calls += 1;
    if (this.calls === 1) throw new TryAgain('away for now');
    return Array.from({ length: k }, (_, n) => `${query} ${n}`);
  }
}
export class Nothing extends Mine { recall(bank, query, k) {} }
",
    )
}

/// The class with settings: `most` hits, the `order` of them, and a `note`.
pub(super) fn with_settings(side: &Side) -> String {
    let readme = side.readme();
    let text = if side.is_python() {
        readme
            .replace("import bench_coord\n", "import bench_coord\nfrom typing import Literal\n")
            .replace(
                "def __init__(self):",
                "def __init__(self, most: int = 10, order: Literal['best', 'worst'] = 'best', note='', client=None):",
            )
            .replace("self.banks = {}", "self.banks, self.most, self.order = {}, most, order")
            .replace("reverse=True)[:k]", "reverse=self.order == 'best')[:min(k, self.most)]")
    } else {
        let settings = "  static settings = { most: { type: 'whole', default: 10 }, order: ['best', 'worst'], note: '' };\n  \
                        constructor(settings) { super(); this.given = settings; }\n";
        side.behind(&readme, side.class, "", settings)
            .replace("b[1] - a[1])", "(this.given.order === 'best' ? 1 : -1) * (b[1] - a[1]))")
            .replace("slice(0, k)", "slice(0, Math.min(k, this.given.most))")
    };
    assert!(text.contains(".most)") && text.contains("best'"), "{text}");
    text
}

/// A class that notes in which process it comes to a line, and once ends that process there without a word.
pub(super) fn that_dies(side: &Side, place: &str, processes: u32) -> String {
    let text = side.behind(
        &side.readme(),
        side.class,
        &format!("    processes = {processes}\n"),
        &format!("  static processes = {processes};\n"),
    );
    let text = side.behind(&text, side.top, "import os\n", "import fs from 'node:fs';\n");
    side.behind(
        &text,
        place,
        "        print('asked', os.getpid(), flush=True)
        try:
            os.close(os.open('died', os.O_CREAT | os.O_EXCL))
            os._exit(1)
        except FileExistsError:
            pass
",
        "    console.log('asked', process.pid);
    try {
      fs.closeSync(fs.openSync('died', 'wx'));
      process.kill(process.pid, 'SIGKILL');
    } catch {}
",
    )
}

/// Compiles a text as Python does for itself, so that it is taken without a look at the text that it stands for.
pub(super) fn compile(folder: &Path, text: &str, into: &str) {
    write(folder, "compiled.py", text);
    let program = format!(
        "import importlib.util, py_compile; into = {into}\n\
         py_compile.compile('compiled.py', cfile=into, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)"
    );
    let done = Command::new("/usr/bin/python3").args(["-c", &program]).current_dir(folder).status();
    assert!(done.expect("python3 is there").success());
    fs::remove_file(folder.join("compiled.py")).expect("is removed");
}

/// Classes whose lists have no end, and whose texts and numbers are none.
pub(super) fn endless(side: &Side) -> &'static str {
    side.or(
        "import itertools
class Mine:
    def retain(self, bank, items): pass
    def recall(self, bank, query, k): return itertools.cycle(['a half \\ud83d of a character'])
class Yields(Mine):
    def recall(self, bank, query, k):
        while True: yield 'again'
class Later(Mine):
    async def recall(self, bank, query, k):
        while True: yield 'again'
class Scores(Mine):
    def recall(self, bank, query, k): return [(f'{query} {n}', float('nan')) for n in range(200000)]
class Answers(Mine):
    def answer(self, bank, query): return {'text': 'yes', 'id': 10 ** 9, 'ok': False}
class Large(Mine):
    batch = 10 ** 12
",
        "export class Mine {
  retain(bank, items) {}
  *recall(bank, query, k) { for (;;) yield 'a half \\ud83d of a character'; }
}
export class Yields extends Mine { async recall(bank, query, k) { return { *[Symbol.iterator]() { for (;;) yield 'again'; } }; } }
export class Later extends Mine { async *recall(bank, query, k) { for (;;) yield 'again'; } }
export class Scores extends Mine {
  recall(bank, query, k) { return Array.from({ length: 200000 }, (_, n) => [`${query} ${n}`, NaN]); }
}
export class Answers extends Mine { answer(bank, query) { return { text: 'yes', id: 1e9, ok: false }; } }
export class Large extends Mine { static batch = 10 ** 12; }
",
    )
}

/// Classes with settings, one of which may come from a variable that is no key, and two that say the value of one that is.
pub(super) fn with_keys(side: &Side) -> &'static str {
    side.or(
        "import os
HOST = 'localhost'
class Mine:
    env = ['MINE_KEY', 'MINE_NOTE', 'MINE_TOKEN']
    def __init__(self, url: str = f'http://{HOST}:1', note: str = os.environ.get('MINE_NOTE', '')): pass
    def retain(self, bank, items): pass
    def recall(self, bank, query, k): return []
class Keyed(Mine):
    env = ['MINE_KEY']
    def __init__(self, api_key: str = os.environ.get('MINE_KEY', '')): pass
class Told(Mine):
    env = ['MINE_KEY']
    __doc__ = 'by ' + os.environ.get('MINE_KEY', '')
",
        "const HOST = 'localhost';
export class Mine {
  static env = ['MINE_KEY', 'MINE_NOTE', 'MINE_TOKEN'];
  static settings = { url: `http://${HOST}:1`, note: process.env.MINE_NOTE ?? '' };
  constructor(settings) {}
  retain(bank, items) {}
  recall(bank, query, k) { return []; }
}
export class Keyed extends Mine { static env = ['MINE_KEY']; static settings = { api_key: process.env.MINE_KEY ?? '' }; }
export class Told extends Mine { static env = ['MINE_KEY']; static description = 'by ' + process.env.MINE_KEY; }
",
    )
}

/// A class that never answers, with a program that it has started, and one that cannot be made.
pub(super) fn hanging(side: &Side) -> &'static str {
    side.or(
        "import os, subprocess
class Mine:
    timeout = '5s'
    def __init__(self):
        sleeps = subprocess.Popen(['/bin/sleep', '600'])
        open('pids', 'w').write(f'{os.getpid()} {sleeps.pid}')
    def retain(self, bank, items): pass
    def recall(self, bank, query, k):
        while True: pass
class Broken(Mine):
    def __init__(self): raise ValueError('no disk')
",
        "import fs from 'node:fs';
import { spawn } from 'node:child_process';
export class Mine {
  static timeout = '5s';
  constructor() { fs.writeFileSync('pids', `${process.pid} ${spawn('/bin/sleep', ['600'], { stdio: 'inherit' }).pid}`); }
  retain(bank, items) {}
  recall(bank, query, k) { for (;;); }
}
export class Broken extends Mine {
  constructor() { super(); throw new RangeError('no disk'); }
}
",
    )
}
