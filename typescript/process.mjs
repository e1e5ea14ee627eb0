// Runs a class as a process that bench-coord speaks to: one JSON object per line in, one out
// (docs/schemas/process-*.json). `describe` imports a file and says what its class can do; `serve` answers requests
// until its input ends. Requests and replies have descriptors of their own, which whoever starts this has moved away
// from standard input and output: what the class prints, and what it starts prints, goes to the log.

import { existsSync, readFileSync, realpathSync, writeSync } from "node:fs";
import Module, { createRequire } from "node:module";
import { Socket } from "node:net";
import { basename, dirname, join, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { inspect } from "node:util";
import { MessageChannel, Worker, receiveMessageOnPort } from "node:worker_threads";

import * as hooks from "./hooks.mjs";

// Where replies go, and where requests come from.
const [REPLIES, REQUESTS] = [3, 4];
// Longest error of a reply, in characters: the whole stack is in the log.
const LONGEST_ERROR = 280;
// Milliseconds that operations under way have when the input has ended.
const LAST_MS = 1000;
// Milliseconds that `close` has where nobody waits for this process any more: a runner that does ends it earlier.
const CLOSE_MS = 40_000;
// 1 once the input has ended: who watches then leaves `close` its time.
const ending = new Int32Array(new SharedArrayBuffer(4));
// Most items of a bank that are listed, and one more, which tells that there are.
const MOST_LISTED = 100_001;
// Largest number that an attribute may have.
const MOST = 1_000_000;
// Most processes of a class side by side.
const MOST_PROCESSES = 64;
// Longest text that a setting may have, in bytes.
const LONGEST_TEXT = 4096;
// Variables that every process sees, those of a shell included: they are no keys.
const ALWAYS = new Set(
  ["PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "PWD", "OLDPWD", "SHLVL", "_"],
);

// Operations, and what the method of each is given first.
const GIVEN = {
  open: ["bank"],
  retain: ["bank", "items"],
  update: ["bank", "replaces", "item"],
  forget: ["bank", "replaces"],
  ready: ["bank", "expected"],
  consolidate: ["bank"],
  recall: ["bank", "query", "k"],
  answer: ["bank", "query"],
  verify: ["bank"],
  list: ["bank"],
  statistics: ["bank"],
  reset: ["bank"],
  health: [],
};
// Operations whose method is also given what else a question brings.
const ASKING = ["recall", "answer"];
const ALMOST = {
  retain: ["add", "store", "insert", "remember", "save", "write", "ingest", "put"],
  recall: ["search", "query", "retrieve", "find", "lookup", "get"],
};
const LIBRARY = dirname(fileURLToPath(import.meta.url));

/** Something about the file or the class that its author can mend; the message says how. */
class Mistake extends Error {}

/** What ending this process has become: a system that wants to has failed, and is asked again. */
class Exit extends Error {
  name = "Exit";
}

const end = process.exit.bind(process);
process.exit = (code) => {
  throw new Exit(`process.exit(${code ?? ""}) was called`);
};

// ------------------------------------------------------------------------------------------------------- the class

const told = new Set();
const channel = new MessageChannel();

/** `packages`: folders whose node_modules are used; null for those around the module that imports. `files`: the modules of
 * the folder that the run has recorded; null while the class is described. */
async function load(folder, file, name, packages, files) {
  const path = join(folder, file);
  if (!existsSync(path)) throw new Mistake(`there is no file ${path}`);
  const rules = { folder, library: LIBRARY, packages, files };
  hooks.initialize({ ...rules, tell: (path) => told.add(path) });
  if (typeof Module.registerHooks === "function") {
    Module.registerHooks({ resolve: hooks.resolve, load: hooks.load });
  } else if (typeof Module.register === "function") {
    const { port2: port } = channel;
    Module.register("./hooks.mjs", import.meta.url, { data: { ...rules, port }, transferList: [port] });
  } else {
    throw new Mistake(`node 20.6 or newer is needed, ${process.execPath} is ${process.versions.node}`);
  }
  guardRequire(packages);
  let module;
  try {
    module = await import(pathToFileURL(path).href);
  } catch (error) {
    console.error(error);
    throw new Mistake(`${file} cannot be imported: ${oneLine(error, folder)}${importHint(error, file)}`);
  }
  return find(module, file, name);
}

/** `require` of the system's own modules: no compiled ones, those that the run has recorded, and packages from where imports
 * have them. */
function guardRequire(packages) {
  for (const [end, read] of Object.entries(Module._extensions)) {
    Module._extensions[end] = (module, path, ...rest) => {
      const own = hooks.ownPath(path);
      if (own !== null && end === ".node") {
        throw new Error(`${own} is compiled, and only text goes with the run: install it as a package`);
      }
      hooks.checkRecorded(path);
      return read(module, path, ...rest);
    };
  }
  const resolve = Module._resolveFilename;
  Module._resolveFilename = (asked, parent, ...rest) => {
    const found = resolve.call(Module, asked, parent, ...rest);
    const isOther = /^\.{1,2}\//.test(asked) && parent?.filename && !hooks.isRecorded(found);
    return isOther ? (hooks.onDisk(join(dirname(parent.filename), asked)) ?? found) : found;
  };
  const paths = Module._nodeModulePaths;
  Module._nodeModulePaths = (from) => {
    const isOwn = packages !== null && hooks.ownPath(join(from, "any.cjs")) !== null;
    return isOwn ? packages.flatMap((at) => paths.call(Module, at)) : paths.call(Module, from);
  };
}

function importHint(error, file) {
  const said = String(error?.message);
  if (/Cannot find package/.test(said)) return "; install it beside the file: npm install NAME";
  if (/\.m?ts$/.test(file) && /does not provide an export named/.test(said)) {
    return "; of what is only a type say so: import { type NAME }";
  }
  return "";
}

function isClass(value) {
  return typeof value === "function" && /^class\b/.test(Function.prototype.toString.call(value));
}

function find(module, file, name) {
  const classes = Object.entries(module)
    .filter(([, value]) => isClass(value))
    .map(([key, value]) => [key === "default" ? ownName(value) : key, value]);
  const systems = classes.filter(([, value]) => method(value, "recall") || method(value, "retain"));
  const shown = (systems.length ? systems : classes).map(([key]) => key).join(", ") || "none";
  if (!name) {
    if (systems.length === 1) return systems[0];
    throw new Mistake(`which class of ${file}? Write ${file}:NAME; the classes that it exports: ${shown}`);
  }
  const found = classes.find(([key]) => key === name);
  const all = classes.map(([key]) => key).join(", ") || "none";
  if (!found) throw new Mistake(`${file} exports no class '${name}'; the classes that it exports: ${all}`);
  return found;
}

/** The name that a class has in its text: `static name` is the system's. */
function ownName(cls) {
  return /^class\s+([\p{ID_Start}$_][\p{ID_Continue}$]*)/u.exec(Function.prototype.toString.call(cls))?.[1] ?? "default";
}

function method(cls, name) {
  const found = cls.prototype[name];
  return typeof found === "function" ? found : undefined;
}

/** Whether the class lists what a bank holds. A method of that name that takes something else is its own business. */
function lists(cls) {
  return (method(cls, "list")?.length ?? 2) <= 1;
}

function methods(cls) {
  return Object.keys(GIVEN).filter((op) => method(cls, op) && (op !== "list" || lists(cls)));
}

/** The methods are there and take what they are given. */
function check(name, cls) {
  const shape = (op) => `${op}(${GIVEN[op].join(", ")})`;
  for (const needed of ["retain", "recall"]) {
    if (method(cls, needed)) continue;
    const near = Object.getOwnPropertyNames(cls.prototype).find((one) => ALMOST[needed].includes(one.toLowerCase()));
    const hint = near ? ` (is it what you call '${near}'?)` : "";
    throw new Mistake(`${name} has no method ${needed}: write ${shape(needed)} { … }${hint}`);
  }
  for (const op of methods(cls)) {
    const taken = parameters(method(cls, op));
    const most = GIVEN[op].length + (ASKING.includes(op) ? 1 : 0);
    // one that takes less leaves out what comes last; the bank alone tells nothing
    const isShort = ["retain", "recall"].includes(op) && taken !== null && taken.length === 1;
    if (method(cls, op).length > most || isShort) {
      throw new Mistake(`${name}.${op} must be ${shape(op)}, it is ${op}(${taken?.join(", ") ?? "…"})`);
    }
  }
  if (cls.length > 0 && cls.settings === undefined) {
    throw new Mistake(`${name} must be made without arguments: name what it is to be given in static settings = {…}`);
  }
}

/** Names of the parameters of a method; null where they are more than names. */
function parameters(found) {
  const list = /^[^(]*\(([^()]*)\)/.exec(Function.prototype.toString.call(found))?.[1];
  const names = list?.split(",").map((one) => one.trim()).filter((one) => one !== "");
  return names?.every((one) => /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(one)) ? names : null;
}

// ---------------------------------------------------------------------------------------------------------- describe

/** What a run can set, as an adapter declares settings: those of `static settings`. */
function settingsOf(name, cls) {
  const given = cls.settings ?? {};
  if (typeof given !== "object" || Array.isArray(given)) throw new Mistake(`${name}.settings must be names with their defaults`);
  return Object.fromEntries(Object.entries(given).map(([key, known]) => [key, setting(`${name}.settings.${key}`, known)]));
}

function setting(what, known) {
  const about = what.replace(/^(.*)\.settings\.(.*)$/, "$2 of $1.settings");
  const kind = (value) => ({ boolean: "flag", number: "number", string: "text" })[typeof value];
  const canBeSaid = (value) =>
    typeof value === "string"
      ? Buffer.byteLength(value) <= LONGEST_TEXT && value.isWellFormed() && !/\p{Cc}/u.test(value)
      : typeof value === "boolean" || (Number.isFinite(value) && Math.abs(value) <= Number.MAX_SAFE_INTEGER);
  if (kind(known) && canBeSaid(known)) return { about, type: kind(known), default: known };
  if (Array.isArray(known) && known.length > 0 && known.every((one) => kind(one) === kind(known[0]) && kind(one) && canBeSaid(one))) {
    return { about, type: kind(known[0]), default: known[0], values: known };
  }
  const parts = ["about", "type", "default", "values", "least", "most"];
  if (known !== null && typeof known === "object" && !Array.isArray(known)) {
    const isKnown = ["text", "number", "whole", "flag"].includes(known.type) && Object.keys(known).every((key) => parts.includes(key));
    const numbers = [known.least, known.most].every((one) => one === undefined || Number.isFinite(one));
    if (isKnown && numbers && Array.isArray(known.values ?? [])) return { about, ...known };
  }
  throw new Mistake(
    `${what} must be a number, a text, true or false, a list of them (the first is the default), ` +
      `or { type: "whole", default: 10, … } with type one of text, number, whole, flag; it is ${inspect(known)}`,
  );
}

function attributes(name, cls) {
  const say = (key, otherwise, fits, what) => {
    const value = cls[key] ?? otherwise;
    if (value !== otherwise && !fits(value)) throw new Mistake(`${name}.${key} must be ${what}, it is ${inspect(value)}`);
    return value;
  };
  const isText = (value) => typeof value === "string";
  const bool = (key) => say(key, false, (value) => typeof value === "boolean", "true or false");
  const number = (key, otherwise, most = MOST) =>
    say(key, otherwise, (value) => Number.isInteger(value) && value >= 1 && value <= most, `a whole number from 1 to ${most}`);
  const texts = (key) => say(key, [], (value) => Array.isArray(value) && value.every(isText), "a list of names");
  return {
    durable: bool("durable"),
    repeat: bool("repeat"),
    learns_from_recall: bool("learns_from_recall"),
    unit: say("unit", "turn", (value) => ["turn", "session"].includes(value), '"turn" or "session"'),
    description: say("description", "", isText, "a text"),
    batch: number("batch", 64),
    parallel: number("parallel", null),
    processes: number("processes", null, MOST_PROCESSES),
    max_k: number("max_k", null),
    timeout: say("timeout", null, isText, 'a time such as "90s"'),
    filters: texts("filters"),
    env: texts("env"),
  };
}

/** What a class says that it honours reaches it: a filter that no parameter takes is left out of every question. */
function checkFilters(name, cls, filters) {
  for (const op of ASKING.filter((op) => filters.length > 0 && method(cls, op))) {
    const [found, given] = [method(cls, op), GIVEN[op]];
    const taken = parameters(found);
    // one whose parameters are more than names, or that looks at all that it was given, may take it
    const isShort = taken !== null && taken.length <= given.length && !/\barguments\b/.test(Function.prototype.toString.call(found));
    if (isShort) {
      throw new Mistake(
        `${name}.filters names ${filters.join(", ")}, and ${op} has no parameter that brings them: ` +
          `write ${op}(${[...given, "asked"].join(", ")}) { … }, asked.filter has them`,
      );
    }
  }
}

async function describe(folder, file, wanted) {
  const [name, cls] = await load(folder, file, wanted, null, null);
  check(name, cls);
  const has = methods(cls);
  const said = attributes(name, cls);
  checkFilters(name, cls, said.filters);
  const isAsync = has.every((op) => inspect(method(cls, op)).startsWith("[AsyncFunction"));
  // every class has a `name`; one that is given can be listed
  const given = Object.getOwnPropertyDescriptor(cls, "name")?.enumerable ? String(cls.name) : null;
  const all = {
    ...said,
    name: given ?? name.replace(/([a-z0-9])(?=[A-Z])/g, "$1-").replaceAll(/_+/g, "-").toLowerCase(),
    class: name,
    parallel: said.parallel ?? (isAsync ? null : 1),
    updates: has.includes("update"),
    withdraws: has.includes("forget"),
    lists: has.includes("list"),
    settings: settingsOf(name, cls),
    files: ownModules(file),
  };
  // as it is sent: what an object says of itself is a text too
  const sent = JSON.parse(JSON.stringify(all));
  checkStored(sent, given, folder);
  return sent;
}

/** What is said of a class is stored with its runs: no text of it has the value of a variable that the class names and whose
 * name says that it is secret, unless that value stands in the files of the class. `given` is the name that the class gives
 * itself. */
function checkStored(said, given, folder) {
  const named = said.env.filter(isSecretive).map((key) => [key, (process.env[key] ?? "").trim()]);
  const long = named.filter(([, value]) => value.length >= 4);
  const code = long.length > 0 ? said.files.map((file) => contentOf(folder, file)) : [];
  // a word that the class has written itself is from no variable
  const secrets = long.filter(([, value]) => !code.some((text) => text.includes(value)));
  const settings = Object.entries(said.settings).map(([key, { about, ...known }]) => {
    const isOwn = about !== `${key} of ${said.class}.settings`;
    return [`settings.${key}`, [key, isOwn ? about : null, known]];
  });
  const { description, timeout, filters } = said;
  for (const [place, value] of [...Object.entries({ name: given, description, timeout, filters }), ...settings]) {
    for (const text of textsIn(value)) {
      const from = secrets.find(([, value]) => text.includes(value));
      if (from) {
        throw new Mistake(`${place} comes from the variable ${from[0]} and would be stored with the run: read it in the constructor`);
      }
    }
  }
}

// What names of variables with secrets have in common: the words of `SECRETIVE` in crates/systems/src/adapter/literal.rs.
const SECRETIVE = ["KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL"];

/** Whether the name of a variable says that it holds a secret: the rule of `is_secretive` in the same file, by which the program
 * looks at what a run gives. An address or the name of a model is a setting like any other. */
function isSecretive(variable) {
  const name = variable.toUpperCase().replaceAll("-", "_").replaceAll("TOKENIZ", "");
  const isOfWords = SECRETIVE.some((word) => name.includes(word)) && !name.endsWith("_HOST");
  const isPassword = name.endsWith("PWD") && !["PWD", "OLDPWD"].includes(name);
  return isOfWords || name.includes("AUTHORIZATION") || name.endsWith("AUTH") || isPassword;
}

/** All texts of a value, however deep they lie. */
function textsIn(value) {
  if (typeof value === "string") return [value];
  return value !== null && typeof value === "object" ? Object.values(value).flatMap(textsIn) : [];
}

/** What stands in one of the files of a class; nothing where it is not there. */
function contentOf(folder, file) {
  const path = join(folder, file);
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}

/** Files of the modules that were imported from the folder of the file: what they say is a part of the system. */
function ownModules(file) {
  for (let one = receiveMessageOnPort(channel.port1); one; one = receiveMessageOnPort(channel.port1)) told.add(one.message);
  const required = Object.keys(createRequire(import.meta.url).cache);
  const own = [...told, ...required].map(hooks.ownPath).filter((path) => path !== null);
  return [...new Set([file, ...own.map((path) => path.split(sep).join("/"))])].sort();
}

// ------------------------------------------------------------------------------------------------------------ errors

/** A text without the values of the variables that a class names: they are keys for all that is known. */
function withoutValues(text) {
  const values = Object.entries(process.env).filter(([name, value]) => !ALWAYS.has(name) && value.length >= 4);
  return values.reduce((text, [, value]) => text.replaceAll(value, "[key]"), text);
}

/** An error with where it was thrown: the author's own lines, the innermost first. */
function oneLine(error, folder) {
  const isError = error instanceof Error;
  const words = isError ? `${error.name}: ${error.message}` : `${inspect(error, { depth: 0 })} was thrown`;
  const said = words.split("\n").find((line) => line.trim() !== "") ?? "";
  const lines = String((isError && error.stack) || "").split("\n");
  const broken = /^(?:file:\/\/)?(\/.*):(\d+)$/.exec(lines[0]);
  if (error instanceof SyntaxError && broken) return cut(`${basename(broken[1])} line ${broken[2]}: ${said}`);
  const frames = lines.filter((line) => /^\s+at /.test(line)).map(frame).filter((one) => one !== null);
  const own = frames.filter((one) => one.path.startsWith(realpathSync(folder) + sep) || one.path.startsWith(folder + sep));
  const at = own
    .filter((one) => !one.path.split(sep).includes("node_modules") && !one.path.startsWith(LIBRARY + sep))
    .slice(0, 2)
    .map((one) => `, ${basename(one.path)} line ${one.line}${one.name ? ` in ${one.name}` : ""}${text(one)}`)
    .join("");
  // what helps is said before where it was thrown
  const place = said.includes(hooks.UNRECORDED) ? 0 : Math.min(at.length, 160);
  return cut(said.slice(0, LONGEST_ERROR - place) + at);
}

function cut(said) {
  return withoutValues(said).slice(0, LONGEST_ERROR);
}

/** Where a line of a stack leads. */
function frame(line) {
  const place = /^\s+at (?:async )?(?:(.*?) \()?(?:file:\/\/)?(\/[^()]*?):(\d+):\d+\)?$/.exec(line);
  return place && { name: place[1]?.replace(/ \[as .*\]$/, "").split(".").at(-1), path: decoded(place[2]), line: Number(place[3]) };
}

/** A path of a stack, which is that of a URL or not: a folder may be called `50%`. */
function decoded(path) {
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}

function text({ path, line }) {
  try {
    return `: ${readFileSync(path, "utf8").split("\n")[line - 1].trim().slice(0, 60)}`;
  } catch {
    return "";
  }
}

/** Whether another try may work: connections, time limits, servers that are overloaded or broken for now. */
function mayPass(error) {
  const status = error?.status ?? error?.statusCode ?? error?.status_code;
  const names = [error?.name, error?.constructor?.name, error?.code, error?.cause?.code].map((one) => String(one ?? ""));
  return (
    [408, 429].includes(status) ||
    (status >= 500 && status < 600) ||
    names.some((one) => /^TryAgain$|Timeout|TIMEDOUT|ECONN|EPIPE|ENOTFOUND|EAI_AGAIN|UND_ERR|Connection|ConnectError/.test(one)) ||
    (error?.name === "TypeError" && error?.message === "fetch failed")
  );
}

// ----------------------------------------------------------------------------------------------------------- replies

/** A value in words, however it is made. */
function shown(value) {
  return inspect(value, { depth: 0, maxArrayLength: 2, maxStringLength: 40, breakLength: Infinity }).split("\n")[0].slice(0, 60);
}

function textOf(value, what) {
  if (typeof value === "string") return value;
  throw new TypeError(`${what} must be a text, it is ${shown(value)}`);
}

function number(value) {
  return value === null || value === undefined || !Number.isFinite(Number(value)) ? null : Number(value);
}

function count(value, what) {
  const whole = typeof value === "bigint" ? Number(value) : value;
  if (Number.isSafeInteger(whole) && whole >= 0) return whole;
  throw new TypeError(`${what} must return a number of items, it returned ${shown(value)}`);
}

function hit(found) {
  if (Array.isArray(found) && found.length === 2 && !["string", "object"].includes(typeof (found[1] ?? 0))) {
    return { ...hit(found[0]), score: number(found[1]) };
  }
  if (typeof found === "string") return { text: found };
  if (found !== null && typeof found === "object" && !Array.isArray(found) && "text" in found) {
    const isItem = typeof found.content === "string" && "session_id" in found;
    const known = { text: textOf(isItem ? found.content : found.text, "the text of a hit") };
    for (const key of ["id", "session_id"]) if (found[key] !== null && found[key] !== undefined) known[key] = String(found[key]);
    return { ...known, score: number(found.score) };
  }
  throw new TypeError(
    `recall must return a list of items, texts, { text, id }, or pairs of one of these and a score; it holds ${shown(found)}`,
  );
}

/** The first of a list, which need not have an end. */
async function first(value, most, what) {
  if (value === null || typeof value !== "object") {
    throw new TypeError(`${what} must return a list, empty where nothing is found; it returned ${shown(value)}`);
  }
  const found = [];
  if (typeof value[Symbol.iterator] === "function") {
    for (const one of value) if (found.push(hit(one)) >= most) break;
  } else if (typeof value[Symbol.asyncIterator] === "function") {
    for await (const one of value) if (found.push(hit(one)) >= most) break;
  } else {
    throw new TypeError(`${what} must return a list, empty where nothing is found; it returned ${shown(value)}`);
  }
  return found;
}

/** What an operation's method returned, as the fields of a reply. */
async function reply(op, request, value) {
  switch (op) {
    case "open":
      return typeof value === "string" ? { handle: value } : {};
    case "retain":
      return { count: request.items.length };
    case "recall":
      // one more than is asked for tells that it gives more
      return { hits: await first(value, (request.k ?? 0) + 1, "recall") };
    case "answer": {
      if (value === null || typeof value !== "object") return { text: textOf(value, "an answer") };
      const { citations, prompt_tokens, completion_tokens } = value;
      const cited = typeof citations === "string" ? [citations] : Array.from(citations ?? [], (one) => String(one?.id ?? one?.text ?? one));
      const tokens = (used) => (Number.isSafeInteger(used) && used > 0 ? used : 0);
      const known = { prompt_tokens: tokens(prompt_tokens), completion_tokens: tokens(completion_tokens) };
      return { ...known, text: textOf(value.text, "the text of an answer"), citations: cited };
    }
    case "ready":
      if (typeof value !== "boolean") throw new TypeError(`ready must return true or false, it returned ${shown(value)}`);
      return { ready: value };
    case "verify":
      return { count: count(value, "verify") };
    case "statistics": {
      const numbers = Object.entries(value ?? {}).map(([key, one]) => [wellFormed(key), number(one)]);
      return { numbers: Object.fromEntries(numbers.filter(([, one]) => one !== null)) };
    }
    case "health":
      return typeof value === "string" ? { version: value } : {};
    default:
      return {};
  }
}

// ----------------------------------------------------------------------------------------------------------- serving

function wellFormed(text) {
  return text.replace(/\p{Surrogate}/gu, "?");
}

/** JSON on one line. Halves of characters, which texts of JavaScript may hold, are no text for others. */
function say(fields) {
  let line = Buffer.from(`${JSON.stringify(fields, (_, value) => (typeof value === "string" ? wellFormed(value) : value))}\n`);
  while (line.length) {
    try {
      line = line.subarray(writeSync(REPLIES, line));
    } catch (error) {
      // a pipe that is full for now
      if (error.code !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}

/** Answers requests with the methods of one object. */
class Server {
  // banks that were removed, of a class that has no `reset` and holds them in memory
  #removed = new Set();
  // what is left of listings that are under way, by bank
  #listings = new Map();

  constructor(place, settings, packages, files) {
    Object.assign(this, { place, settings, packages, files });
  }

  async begin() {
    const [name, cls] = await load(...this.place, this.packages, this.files);
    check(name, cls);
    const known = settingsOf(name, cls);
    const defaults = Object.fromEntries(Object.entries(known).map(([key, one]) => [key, one.default]));
    this.has = new Set(methods(cls));
    this.cls = cls;
    this.system = cls.settings === undefined ? new cls() : new cls({ ...defaults, ...this.settings });
  }

  async do(op, request) {
    if (!this.has.has(op)) {
      if (op === "ready") return { ready: true, returned: true };
      if (op === "open") this.#removed.delete(request.bank);
      else if (op === "reset" && !this.cls.durable) this.#removed.add(request.bank);
      else if (op !== "health") return { ok: false, lacking: true, error: `this system has no ${op}` };
      return {};
    }
    if (this.#removed.has(request.bank)) return { ok: false, error: "the bank was removed" };
    if (op === "list" && request.offset && this.#listings.has(request.bank)) return this.page(request);
    const given = GIVEN[op].map((key) => request[key]);
    if (ASKING.includes(op)) {
      const { k, time, time_text, filter, reader_mode } = request;
      given.push({ k, time, time_text, filter, reader_mode });
    }
    const value = await this.system[op](...given);
    if (op === "list") {
      const held = await first(value, MOST_LISTED, "list");
      // a process that goes on in the place of this one in the middle of the pages has the same order
      const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
      held.sort((a, b) => order(a.id ?? "", b.id ?? "") || order(a.text, b.text));
      this.#listings.set(request.bank, held);
      return this.page(request);
    }
    return reply(op, request, value);
  }

  /** The part of a listing that is asked for. It is kept until its last page has gone. */
  page({ bank, offset = 0, limit = MOST_LISTED }) {
    const [all, behind] = [this.#listings.get(bank), offset + limit];
    const hits = all.slice(offset, behind);
    if (behind < all.length) return { hits, cursor: String(behind) };
    this.#listings.delete(bank);
    return { hits };
  }

  version() {
    const node = `node ${process.versions.node}`;
    return typeof this.cls?.version === "string" ? `${this.cls.version}, ${node}` : node;
  }

  async answer(request) {
    const { id = 0, op = "" } = request;
    try {
      if (op === "hello") {
        await this.begin();
        const closes = typeof this.system.close === "function" ? { closes: true } : {};
        say({ id, ok: true, version: this.version(), ...closes });
        return;
      }
      const fields = await this.do(op, request);
      say({ id, ok: true, ...(op === "health" ? { version: this.version() } : {}), ...fields });
    } catch (error) {
      if (error instanceof Mistake) {
        say({ id, ok: false, error: error.message });
        return;
      }
      console.error(error);
      say({ id, ok: false, error: oneLine(error, this.place[0]), retry: mayPass(error) });
    }
  }

  async serve() {
    const underWay = new Set();
    for await (const line of lines(new Socket({ fd: REQUESTS, readable: true, writable: false }))) {
      const request = JSON.parse(line);
      const task = this.answer(request);
      if (request.op === "hello") {
        await task;
        continue;
      }
      underWay.add(task);
      task.finally(() => underWay.delete(task));
    }
    Atomics.store(ending, 0, 1);
    await Promise.race([Promise.allSettled(underWay), new Promise((done) => setTimeout(done, LAST_MS))]);
    await this.close();
  }

  /** Lets the system put away what it has. How it fails, and that it did not end, is in the log. */
  async close() {
    if (typeof this.system?.close !== "function") return;
    const late = setTimeout(() => {
      console.error(`bench-coord: close() did not end within ${CLOSE_MS / 1000} s: what it had not saved is lost`);
      leave();
    }, CLOSE_MS);
    try {
      await this.system.close();
    } catch (error) {
      console.error(error);
    }
    clearTimeout(late);
  }
}

/** Lines end with a line feed and nothing else: texts of requests may hold what other readers take for an end. */
async function* lines(input) {
  let parts = [];
  for await (const piece of input) {
    let rest = piece;
    for (let at = rest.indexOf(10); at >= 0; at = rest.indexOf(10)) {
      const line = Buffer.concat([...parts, rest.subarray(0, at)]).toString();
      [parts, rest] = [[], rest.subarray(at + 1)];
      if (line.trim() !== "") yield line;
    }
    parts.push(rest);
  }
}

/** `describe` or `serve`, the process of the runner, the folder, the file and the class; to serve, with what the class is
 * made, where its packages are, and the modules of the folder that are its own. */
async function main([verb, runner, folder, file, name, settings, packages, files]) {
  const workerData = { runner: Number(runner), ending };
  new Worker(new URL("./watch.cjs", import.meta.url), { workerData, env: {} }).unref();
  // what nobody waits for must not end the process with all that it holds
  process.on("unhandledRejection", (error) => console.error(error));
  process.on("uncaughtException", (error) => console.error(error));
  if (verb === "serve") {
    await new Server([folder, file, name], JSON.parse(settings), JSON.parse(packages), JSON.parse(files)).serve();
    return;
  }
  try {
    say({ ok: true, ...(await describe(folder, file, name)) });
  } catch (error) {
    say({ ok: false, error: withoutValues(error instanceof Mistake ? error.message : oneLine(error, folder)) });
  }
}

/** Ends this process with all that it has started. */
function leave() {
  try {
    // what the system has started goes with it, also where nobody is left to see to that
    if (process.argv[2] === "serve") process.kill(-process.pid, "SIGKILL");
  } catch {
    // it leads no group
  }
  end(0);
}

main(process.argv.slice(2)).then(
  leave,
  (error) => {
    console.error(error);
    end(1);
  },
);
