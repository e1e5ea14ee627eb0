// How modules of a system are found and read. `bench-coord` is what the runner brings along. Modules of the system's
// own folder go with the run as text: each of them is told, and read by what it is called, whatever the package.json
// around it says, which does not go along. When a run is served, those that it has recorded are read and no others.
// TypeScript is read by node where it can, else by the package amaro.
//
// The two hooks run in the thread of the modules where node has `registerHooks`, else in a thread of their own, where
// what `next` returns is a promise.

import { existsSync, readFileSync, realpathSync, statSync } from "node:fs";
import { createRequire, isBuiltin } from "node:module";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

// Endings that a relative import may leave out, and what a name for compilers stands for.
const ENDINGS = [".ts", ".mts", ".mjs", ".js", ".cjs", ".json"];
const WRITTEN_AS = { ".js": ".ts", ".mjs": ".mts" };
const COMPILED = /\.(node|wasm)$/;

// Why a module of the folder is not run, and what helps.
export const UNRECORDED =
  "it was not imported when the run was planned, so it is no part of what was recorded and trusted; import it at the top " +
  "of the file, and start a new run";

let folder, library, packages, recorded, tell;

/** `folder`: the system's own, `library`: this one, `packages`: folders whose node_modules are used, null for those
 * around the module that imports; `files`: the modules of the folder that there are, null for any; `port` or `tell` is
 * told each module of the folder that is read. */
export function initialize(rules) {
  ({ folder, library, packages } = rules);
  recorded = rules.files === null ? null : new Set(rules.files);
  tell = rules.tell ?? ((path) => rules.port.postMessage(path));
}

/** The path of a file below the system's own folder, as seen from there; null for what lies elsewhere and for packages. */
export function ownPath(path) {
  for (const root of new Set([folder, realpathSync(folder)])) {
    const inside = relative(root, path);
    const lies = inside !== "" && inside.split(sep)[0] !== ".." && !inside.startsWith(sep);
    if (lies && !inside.split(sep).includes("node_modules") && !path.startsWith(library + sep)) return inside;
  }
  return null;
}

/** Whether a file may be run: of the system's own folder those that the run has recorded. */
export function isRecorded(path) {
  const own = ownPath(path);
  return recorded === null || own === null || recorded.has(own.split(sep).join("/"));
}

/** Ends the import of a module of the folder that the run has not recorded. */
export function checkRecorded(path) {
  if (!isRecorded(path)) throw new Error(`${ownPath(path)} is not run: ${UNRECORDED}`);
}

function after(value, then) {
  return value instanceof Promise ? value.then(then) : then(value);
}

export function resolve(specifier, context, next) {
  if (specifier === "bench-coord") {
    return { url: new URL("./index.mjs", import.meta.url).href, format: "module", shortCircuit: true };
  }
  const from = context.parentURL?.startsWith("file:") ? fileURLToPath(context.parentURL) : null;
  const isOfSystem = from !== null && (ownPath(from) !== null || dirname(from) === library);
  if (!isOfSystem || isBuiltin(specifier) || /^(data|https?):/.test(specifier)) return next(specifier, context);
  if (/^(\.{0,2}\/|\.{1,2}$|file:)/.test(specifier)) {
    // by what it is called: what a link leads to has another place
    const path = fileURLToPath(new URL(specifier, context.parentURL));
    if (ownPath(path) === null && !path.split(sep).includes("node_modules")) {
      throw new Error(`'${specifier}' leads out of ${folder}, whose modules go with the run: put it there, or install it as a package`);
    }
    const found = ownPath(path) !== null && onDisk(path);
    return found ? { url: pathToFileURL(found).href, shortCircuit: true } : next(specifier, context);
  }
  if (specifier.startsWith("#")) {
    throw new Error(`'${specifier}' is explained by a package.json, which does not go with the run: import it by its path`);
  }
  return after(next(specifier, { ...context, parentURL: importer(specifier) ?? context.parentURL }), (found) => {
    const own = found.url.startsWith("file:") ? ownPath(fileURLToPath(found.url)) : null;
    if (own !== null) {
      throw new Error(`'${specifier}' is ${own} by a package.json, which does not go with the run: import it by its path`);
    }
    return found;
  });
}

/** From where a package is imported, where it is not from beside the module that imports it. */
function importer(specifier) {
  if (packages === null) return null;
  const name = specifier.split("/").slice(0, specifier.startsWith("@") ? 2 : 1).join("/");
  for (const begin of packages) {
    for (let at = begin; ; at = dirname(at)) {
      if (existsSync(join(at, "node_modules", name))) return pathToFileURL(join(at, "class.mjs")).href;
      if (at === dirname(at)) break;
    }
  }
  const where = packages.length ? `below ${packages.join(" or ")}` : "here: NODE_PATH names no folder node_modules";
  throw new Error(`Cannot find package '${name}' ${where}`);
}

/** The file that a path stands for. What has come to lie beside a recorded one does not take its place; others are found too, for
 * a path may be asked for that is data. */
export function onDisk(path) {
  const written = Object.entries(WRITTEN_AS).filter(([end]) => path.endsWith(end));
  const names = [path, ...written.map(([end, other]) => path.slice(0, -end.length) + other)];
  const inside = [...ENDINGS.map((end) => path + end), ...ENDINGS.map((end) => join(path, `index${end}`))];
  const all = [...names, ...inside];
  return all.find((one) => isRecorded(one) && isFile(one)) ?? all.find(isFile);
}

function isFile(path) {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
  } catch {
    // what should be a folder is a file
    return false;
  }
}

export function load(url, context, next) {
  const path = url.startsWith("file:") ? fileURLToPath(url) : null;
  const own = path === null ? null : ownPath(path);
  if (own === null) return next(url, context);
  if (COMPILED.test(path)) {
    throw new Error(`${own} is compiled, and only text goes with the run: install it as a package`);
  }
  checkRecorded(path);
  tell(path);
  if (/\.m?ts$/.test(path)) {
    if (process.features.typescript) return next(url, { ...context, format: "module-typescript" });
    return { format: "module", source: stripped(path), shortCircuit: true };
  }
  if (/\.js$/.test(path)) {
    const isModule = /^\s*(import|export)\b/m.test(readFileSync(path, "utf8"));
    return next(url, { ...context, format: isModule ? "module" : "commonjs" });
  }
  return next(url, path.endsWith(".mjs") ? { ...context, format: "module" } : context);
}

/** Takes the types out of a file as node does, by the package that node is built with. */
function stripped(path) {
  let amaro;
  try {
    const from = packages === null ? pathToFileURL(path).href : importer("amaro");
    amaro = createRequire(from)("amaro");
  } catch {
    throw new Error(
      `node ${process.versions.node} reads no TypeScript: 22.18 or newer does, or install the package amaro beside the file`,
    );
  }
  return amaro.transformSync(readFileSync(path, "utf8"), { mode: "strip-only" }).code;
}
