// Ends this process, with all that it has started, when its runner is gone: a class that does not return to the loop of
// events would not see that its input has ended.

const { workerData } = require("node:worker_threads");

setInterval(() => {
  if (process.ppid === workerData) return;
  try {
    process.kill(-process.pid, "SIGKILL");
  } catch {
    // it leads no group
  }
  process.kill(process.pid, "SIGKILL");
}, 500);
