/** Something to store: a turn, a session or a memory. */
export interface Item {
  /** Hits give it back. */
  id: string;
  /** What is said, with who says it. */
  text: string;
  /** The same after its date. */
  content: string;
  speaker: string | null;
  role: "user" | "assistant";
  session_id: string;
  /** RFC 3339, in UTC. */
  time: string | null;
  /** The dataset's words. */
  time_text: string | null;
  /** Of a memory. */
  tags?: string[];
  user?: string;
  scopes?: string[];
  fields?: Record<string, string>;
}

/** Something that was found, with the id or the session of its item where they are known. */
export interface Hit {
  text: string;
  id?: string | null;
  session_id?: string | null;
  /** What counts is the order of the hits, not their scores. */
  score?: number | null;
}

/** From which memories a question may be answered: all of it must hold. */
export interface Filter {
  tags?: string[];
  user?: string;
  scopes?: string[];
  from?: string;
  until?: string;
}

/** What a question brings besides its text: the last argument of `recall` and `answer`. */
export interface Asked {
  k: number;
  /** RFC 3339, in UTC. */
  time?: string | null;
  /** The dataset's words. */
  time_text?: string | null;
  filter?: Filter;
  reader_mode?: "basic" | "augmented";
}

/** What `answer` may return instead of a text: what it rests on, and the tokens that it took. */
export interface Answer {
  text: string;
  citations?: string[];
  prompt_tokens?: number;
  completion_tokens?: number;
}

/** What may be found: items, texts, hits, or pairs of one of these and its score. */
export type Found = Item | Hit | string | [Item | Hit | string, number];

/** A setting of a class: its default (a number, a text, true or false), the values that it may have with the default first, or all
 * that there is to say. */
export type Setting =
  | number
  | string
  | boolean
  | readonly (number | string | boolean)[]
  | {
      /** "text", "number", "whole" or "flag". */
      type: string;
      default?: number | string | boolean;
      values?: readonly (number | string)[];
      least?: number;
      most?: number;
      about?: string;
    };

type Maybe<T> = T | Promise<T>;

/** A memory system. `retain` and `recall` are needed; each method may be async. */
export declare class System {
  /** Version in reports. */
  static version?: string;
  /** One line of what it is. */
  static description?: string;
  /** What was stored outlives the process. Otherwise a process that is started anew is given all of it again. */
  static durable?: boolean;
  /** Storing an item twice changes nothing. */
  static repeat?: boolean;
  /** Searching changes what later searches find. */
  static learns_from_recall?: boolean;
  /** What an item is: "turn" or "session". */
  static unit?: string;
  /** Most items of one `retain`: 64 unless given. */
  static batch?: number;
  /** Operations at a time: one, unless all methods are `async`. */
  static parallel?: number;
  /** Processes side by side, each with banks of its own. */
  static processes?: number;
  /** Largest k of a recall, where there is one. */
  static max_k?: number;
  /** Time of one operation, such as "90s". `close` has as much, at most 30 seconds. */
  static timeout?: string;
  /** Parts of a question's filter that `recall` and `answer` honour, in `asked.filter`: "tags", "user", "scope", "scopes", "from",
   * "until". */
  static filters?: readonly string[];
  /** Variables of the environment that the code reads; written as a list of texts. It sees no others. */
  static env?: readonly string[];
  /** What a run may set, by name: the constructor is given an object with all of them. */
  static settings?: Record<string, Setting>;

  open?(bank: string): Maybe<string | void>;
  retain?(bank: string, items: Item[]): Maybe<unknown>;
  update?(bank: string, replaces: string[], item: Item): Maybe<unknown>;
  forget?(bank: string, replaces: string[]): Maybe<unknown>;
  ready?(bank: string, expected: number): Maybe<boolean>;
  consolidate?(bank: string): Maybe<unknown>;
  recall?(bank: string, query: string, k: number, asked: Asked): Maybe<Iterable<Found> | AsyncIterable<Found>>;
  answer?(bank: string, query: string, asked: Asked): Maybe<string | Answer>;
  /** How many items the bank holds. */
  verify?(bank: string): Maybe<number>;
  /** All that the bank holds, in any order. */
  list?(bank: string): Maybe<Iterable<Found> | AsyncIterable<Found>>;
  statistics?(bank: string): Maybe<Record<string, number>>;
  reset?(bank: string): Maybe<unknown>;
  health?(): Maybe<string | void>;
  close?(): Maybe<unknown>;
}

/** Thrown by a system whose next try may work: the operation is repeated after a while. */
export declare class TryAgain extends Error {}

/** The base URL, with `/v1`, for model calls that are for this bank: in a run with `--meter` they are then known to be the bank's,
 * also while other banks are worked on. `otherwise` where calls are not metered. */
export declare function meterUrl(bank: string, otherwise: string): string;
export declare function meterUrl(bank: string, otherwise?: string): string | undefined;
