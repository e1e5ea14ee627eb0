// What a class may use; it does not have to. The types are in index.d.ts.

/** A memory system. `retain` and `recall` are needed. */
export class System {}

/** Thrown by a system whose next try may work: the operation is repeated after a while. */
export class TryAgain extends Error {
  name = "TryAgain";
}
