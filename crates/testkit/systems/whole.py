"""A class that has every method that a class can have."""


class Mine:
    repeat = True
    filters = ['tags', 'user', 'scope', 'scopes', 'from', 'until']
    def __init__(self): self.banks = {}
    def open(self, bank): self.banks[bank] = {}
    def retain(self, bank, items): self.banks[bank].update((item.id, item) for item in items)
    def update(self, bank, replaces, item):
        self.forget(bank, replaces)
        self.retain(bank, [item])
    def forget(self, bank, replaces):
        for one in replaces: self.banks[bank].pop(one, None)
    def ready(self, bank, expected): return len(self.banks[bank]) >= expected
    def verify(self, bank): return len(self.banks[bank])
    def list(self, bank): yield from self.banks[bank].values()
    def consolidate(self, bank): pass
    def statistics(self, bank): return {'items': len(self.banks[bank])}
    def reset(self, bank): self.banks.pop(bank, None)
    def health(self): return '1.2'
    def recall(self, bank, query, k, filter=None):
        asked, words = filter or {}, set(query.lower().split())
        def fits(item):
            time = item['time'] or ''
            return (set(asked.get('tags', [])) <= set(item.get('tags', []))
                and asked.get('user') in (None, item.get('user'))
                and ('scopes' not in asked or set(asked['scopes']) & set(item.get('scopes', [])))
                and ('from' not in asked or time >= asked['from']) and ('until' not in asked or '' < time <= asked['until']))
        overlap = lambda item: len(words & set(item.text.lower().split()))
        return sorted((item for item in self.banks[bank].values() if fits(item)), key=overlap, reverse=True)[:k]
    def answer(self, bank, query, filter=None):
        return {'text': self.recall(bank, query, 1, filter)[0].text, 'citations': ['D1:1'], 'prompt_tokens': 3}
