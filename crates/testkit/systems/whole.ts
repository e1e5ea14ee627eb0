// A class that has every method that a class can have.

import type { Asked, Item } from 'bench-coord';

export class Mine {
  static repeat = true;
  static filters = ['tags', 'user', 'scope', 'scopes', 'from', 'until'];
  banks = new Map<string, Map<string, Item>>();
  open(bank: string) { this.banks.set(bank, new Map()); }
  retain(bank: string, items: Item[]) { for (const item of items) this.banks.get(bank)!.set(item.id, item); }
  update(bank: string, replaces: string[], item: Item) {
    this.forget(bank, replaces);
    this.retain(bank, [item]);
  }
  forget(bank: string, replaces: string[]) { for (const one of replaces) this.banks.get(bank)!.delete(one); }
  ready(bank: string, expected: number) { return this.banks.get(bank)!.size >= expected; }
  verify(bank: string) { return this.banks.get(bank)!.size; }
  *list(bank: string) { yield* this.banks.get(bank)!.values(); }
  consolidate(bank: string) {}
  statistics(bank: string) { return { items: this.banks.get(bank)!.size }; }
  reset(bank: string) { this.banks.delete(bank); }
  health() { return '1.2'; }
  async recall(bank: string, query: string, k: number, { filter = {} }: Asked) {
    const words = wordsOf(query);
    const overlap = (item: Item) => [...wordsOf(item.text)].filter((word) => words.has(word)).length;
    const fits = ({ tags = [], user, scopes = [], time }: Item) =>
      (filter.tags ?? []).every((tag) => tags.includes(tag)) &&
      (filter.user ?? user) === user &&
      (!filter.scopes || filter.scopes.some((scope) => scopes.includes(scope))) &&
      (!filter.from || (time ?? '') >= filter.from) && (!filter.until || (!!time && time <= filter.until));
    const found = [...this.banks.get(bank)!.values()].filter(fits).map((item): [Item, number] => [item, overlap(item)]);
    return found.sort((a, b) => b[1] - a[1]).slice(0, k);
  }
  async answer(bank: string, query: string, asked: Asked) {
    const [[item]] = await this.recall(bank, query, 1, asked);
    return { text: item.text, citations: ['D1:1'], prompt_tokens: 3 };
  }
}

function wordsOf(text: string) {
  return new Set(text.toLowerCase().match(/\S+/g));
}
