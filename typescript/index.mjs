// What a class may use; it does not have to. The types are in index.d.ts.

/** A memory system. `retain` and `recall` are needed. */
export class System {}

/** Thrown by a system whose next try may work: the operation is repeated after a while. */
export class TryAgain extends Error {
  name = "TryAgain";
}

/** The base URL, with `/v1`, for model calls that are for this bank: in a run with `--meter` they are then known to be the bank's,
 * also while other banks are worked on. `otherwise` where calls are not metered. */
export function meterUrl(bank, otherwise) {
  const url = process.env.BENCH_METER_URL;
  if (!url) return otherwise;
  // as the runner names it: bench-12-g3, or bench-12-g3-i5f
  const [, name, generation] = /^(.+)-g(\d+)(?:-i.*)?$/.exec(bank) ?? [];
  if (name === undefined) return url;
  return `${url.replace(/\/v1$/, "")}/${encodeURIComponent(name)}/${Number(generation)}/v1`;
}
