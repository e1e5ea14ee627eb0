"""The memory that is measured. `bench-coord systems try mine.py:Mine` shows what comes back."""

import bench_coord


class Mine(bench_coord.System):
    # parameters with a default are settings: --set mine.best_first=false
    def __init__(self, best_first: bool = True):
        self.banks = {}
        self.best_first = best_first

    def retain(self, bank, items):
        """Stores items of a conversation: each has `text`, `id`, `speaker` and `time`."""
        self.banks.setdefault(bank, []).extend(items)

    def recall(self, bank, query, k):
        """The best k items for a question: those with most words in common."""
        words = set(query.lower().split())
        overlap = lambda item: len(words & set(item.text.lower().split()))
        return sorted(self.banks[bank], key=overlap, reverse=self.best_first)[:k]

    def reset(self, bank):
        """Forgets a conversation."""
        self.banks.pop(bank, None)
