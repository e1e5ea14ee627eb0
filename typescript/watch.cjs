// Ends this process, with all that it has started, when its runner is gone: a class that does not return to the loop of
// events would not see that its input has ended.

const { workerData } = require("node:worker_threads");

const { runner, ending } = workerData;
// Milliseconds that it has to see by itself that its input has ended, and those that it then has in all, `close` included.
const [NOTICED_MS, ENDED_MS] = [1000, 42_000];
let gone = 0;

setInterval(() => {
  if (process.ppid === runner) return;
  gone ||= Date.now();
  if (Date.now() - gone < (Atomics.load(ending, 0) === 1 ? ENDED_MS : NOTICED_MS)) return;
  try {
    process.kill(-process.pid, "SIGKILL");
  } catch {
    // it leads no group
  }
  process.kill(process.pid, "SIGKILL");
}, 500);
