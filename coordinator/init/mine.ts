/// <reference path="./bench-coord.d.ts" />
// The memory that is measured. `bench-coord systems try mine.ts:Mine` shows what comes back.

import { System, type Item } from "bench-coord";

export class Mine extends System {
  // what a run may set, with its default: --set mine.best_first=false
  static settings = { best_first: true };

  banks = new Map<string, Item[]>();
  sign: number;

  constructor({ best_first }: { best_first: boolean }) {
    super();
    this.sign = best_first ? 1 : -1;
  }

  /** Stores items of a conversation: each has `text`, `id`, `speaker` and `time`. */
  retain(bank: string, items: Item[]) {
    this.banks.set(bank, [...(this.banks.get(bank) ?? []), ...items]);
  }

  /** The best k items for a question: those with most words in common. */
  recall(bank: string, query: string, k: number): [Item, number][] {
    const words = wordsOf(query);
    const overlap = (item: Item) => [...wordsOf(item.text)].filter((word) => words.has(word)).length;
    const found = (this.banks.get(bank) ?? []).map((item): [Item, number] => [item, overlap(item)]);
    return found.sort((a, b) => this.sign * (b[1] - a[1])).slice(0, k);
  }

  /** Forgets a conversation. */
  reset(bank: string) {
    this.banks.delete(bank);
  }
}

function wordsOf(text: string): Set<string> {
  return new Set(text.toLowerCase().split(/\s+/));
}
