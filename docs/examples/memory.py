"""A memory system as a process: one JSON object per line in, one out. Keep what `bank` says apart."""
import json, re, sys

banks = {}


def words(text):
    return set(re.findall(r"\w{3,}", text.lower()))


def admitted(item, wanted):
    has = lambda key: set(item.get(key, []))
    time, first, last = item.get("time"), wanted.get("from"), wanted.get("until")
    return (
        set(wanted.get("tags", [])) <= has("tags")
        and wanted.get("user") in (None, item.get("user"))
        and (not wanted.get("scopes") or has("scopes") & set(wanted["scopes"]))
        and (first is None or (time is not None and time >= first))
        and (last is None or (time is not None and time <= last))
    )


def answer(r):
    op, bank = r["op"], r.get("bank")
    if op in ("hello", "health"):
        return {"version": "1.0"}
    if op == "open":
        banks.setdefault(bank, [])
        return {}
    if op == "retain":
        banks[bank] += r["items"]
        return {"count": len(r["items"])}
    if op in ("update", "forget"):
        banks[bank] = [i for i in banks[bank] if i["id"] not in r["replaces"]] + ([r["item"]] if op == "update" else [])
        return {}
    if op == "ready":
        return {"ready": len(banks[bank]) >= r["expected"]}
    if op == "verify":
        return {"count": len(banks[bank])}
    if op == "recall":
        score = lambda item: len(words(r["query"]) & words(item["text"]))
        found = [item for item in banks.get(bank, []) if admitted(item, r.get("filter") or {})]
        best = sorted(found, key=score, reverse=True)[: r["k"]]
        return {"hits": [{"id": i["id"], "text": i["content"], "score": score(i)} for i in best if score(i)]}
    if op == "reset":
        return {"ok": banks.pop(bank, None) is not None or True}
    return {"ok": False, "lacking": True, "error": f"this system has no {op}"}


for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps({"id": request["id"], "ok": True, **answer(request)}), flush=True)
