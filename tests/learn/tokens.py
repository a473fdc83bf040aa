#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
# Tokenizers (runtime/learn/tokenizer.h): byte pairs learnt here of a small text, and the same rules in plain Python.
#
# usage: tokens.py LIBRARY    LIBRARY: runtime/learn as a shared library
#
# In: nothing. Out: TAP. Needs the standard library only.
import collections
import copy
import ctypes
import json
import pathlib
import random
import sys
import tempfile
import unicodedata

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from data import EFORMAT, EINVAL, ERANGE, Data, Text, refused   # noqa: E402
from tap import Tap                                             # noqa: E402

PAIRS = 3
TEXT = """It's the tokenizer's own text: we'll learn pairs of it, and they've been 12 or 345 times in it.
  Straße, naïve, 日本語 and   spaces	tabs; the the the there then they them other mother brother 2024!!
""" * 3


def alphabet():
    """What each byte is spelled as."""
    prints = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spelled, more = {b: chr(b) for b in prints}, 256
    for b in range(256):
        if b not in spelled:
            spelled[b], more = chr(more), more + 1
    return spelled


SPELLED = alphabet()


def spell(data):
    return "".join(SPELLED[b] for b in data)


def kind(c):
    return "L" if unicodedata.category(c)[0] == "L" else "N" if unicodedata.category(c)[0] == "N" else \
        " " if c.isspace() and not "\x1c" <= c <= "\x1f" else "?"


def gpt2(text):
    """GPT-2's rule: contractions; letters, numbers or others behind at most one space; spaces but the last one."""
    pieces, i = [], 0
    while i < len(text):
        short = next((s for s in ("'s", "'t", "'re", "'ve", "'m", "'ll", "'d") if text.startswith(s, i)), None)
        k = i + (text[i] == " " and i + 1 < len(text) and kind(text[i + 1]) != " ")
        n = k
        if short:
            n = i + len(short)
        elif kind(text[k]) != " ":
            while n < len(text) and kind(text[n]) == kind(text[k]):
                n += 1
        else:
            while n < len(text) and kind(text[n]) == " ":
                n += 1
            n -= n < len(text) and n - i > 1
        pieces.append(text[i:n])
        i = n
    return pieces


def merged(parts, ranks):
    """Neighbours become one, those of the lowest rank first."""
    while True:
        pairs = [p for p in zip(parts, parts[1:]) if p in ranks]
        if not pairs:
            return parts
        best, out, i = min(pairs, key=ranks.get), [], 0
        while i < len(parts):
            both = tuple(parts[i:i + 2]) == best
            out.append("".join(best) if both else parts[i])
            i += 1 + both
        parts = out


def learn(text, count):
    """Merges: the most frequent pair, again and again."""
    words, merges = collections.Counter(gpt2(text)), []
    words = {tuple(spell(w.encode())): n for w, n in words.items()}
    while len(merges) < count:
        pairs = collections.Counter()
        for w, n in words.items():
            for p in zip(w, w[1:]):
                pairs[p] += n
        best = max(pairs, key=lambda p: (pairs[p], p))
        merges.append(best)
        words = {tuple(merged(list(w), {best: 0})): n for w, n in words.items()}
    return merges


def tokenizer(merges, **other):
    vocabulary = {c: i for i, c in enumerate(SPELLED[b] for b in range(256))}
    for a, b in merges:
        vocabulary.setdefault(a + b, len(vocabulary))
    added = [{"id": len(vocabulary) + i, "content": s, "special": True, "lstrip": False, "rstrip": False,
              "single_word": False} for i, s in enumerate(("<|end|>", "<|end|>more"))]
    return {"version": "1.0", "added_tokens": added, "normalizer": None,
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "vocab": vocabulary,
                      "merges": [f"{a} {b}" for a, b in merges]}} | other


class Tokenizer:
    def __init__(self, d, folder, content):
        self.d, self.path = d, folder / "tokenizer.json"
        self.path.write_text(content if isinstance(content, str) else json.dumps(content))
        self.t = ctypes.c_void_p()
        self.call("burn_tokenizer_open", str(self.path).encode(), ctypes.byref(self.t))

    def call(self, name, *args):
        error = getattr(self.d.c, name)(*args, ctypes.byref(self.d.said))
        if error:
            raise ValueError(error, self.d.said.text.decode())

    def encode(self, data):
        tokens, n = ctypes.POINTER(ctypes.c_int64)(), ctypes.c_int64()
        data = data.encode() if isinstance(data, str) else data
        self.call("burn_tokenizer_encode", self.t, data, ctypes.c_size_t(len(data)), ctypes.byref(tokens),
                  ctypes.byref(n))
        return tokens[:n.value]

    def decode(self, tokens):
        text, n = ctypes.c_void_p(), ctypes.c_size_t()
        self.call("burn_tokenizer_decode", self.t, ctypes.c_int64(len(tokens)), (ctypes.c_int64 * len(tokens))(*tokens),
                  ctypes.byref(text), ctypes.byref(n))
        return ctypes.string_at(text, n.value)


def plain(content, text, pieces=gpt2):
    """Tokens by the rules above; special ones stand in the text."""
    ids, out = content["model"]["vocab"], []
    ranks = {tuple(m.split(" ")): i for i, m in enumerate(content["model"]["merges"])}
    for i, part in enumerate(text.split("<|end|>")):
        out += [len(ids)] if i else []
        for piece in pieces(part):
            out += [ids[p] for p in merged(list(spell(piece.encode())), ranks)]
    return out


def check_encoding(tap, d, folder):
    content, draw = tokenizer(learn(TEXT, 60)), random.Random(1)
    t = Tokenizer(d, folder, content)
    tokens = t.encode(TEXT)
    tap.check("a text", tokens == plain(content, TEXT), tokens[:20])
    tap.check("is shorter by pairs", len(tokens) < 0.75 * len(TEXT.encode()), len(tokens))
    tap.check("and comes back", t.decode(tokens) == TEXT.encode())
    signs = list("the I's tr12\n\t.,!ßé日😀\u00a0αβ\u0301²½\u3000") + ["<|end|>", "'ll", "  ", "\r\n", " they"]
    wrong = []
    for _ in range(1000):
        text = "".join(draw.choice(signs) for _ in range(draw.randrange(30)))
        got = t.encode(text)
        if got != plain(content, text) or t.decode(got) != text.encode():
            wrong.append((text, got, plain(content, text)))
    tap.check("1,000 texts of odd characters", not wrong, wrong[:2])
    count = len(content["model"]["vocab"])
    tap.check("special tokens, the longest first", t.encode("a<|end|>more<|end|>") ==
              [content["model"]["vocab"]["a"], count + 1, count])
    tap.check("a token that is none", *refused(lambda: t.decode([count + 2]), ERANGE, f"no token {count + 2}"))
    tap.check("half a character is decoded", t.decode(t.encode("é")[:1]) in (b"\xc3", "é".encode()))
    tap.check("a text that is no UTF-8", *refused(lambda: t.encode(b"a\xff"), EFORMAT, "no UTF-8"))
    d.c.burn_tokenizer_close(t.t)


def check_rules(tap, d, folder):
    """Pre-tokenizers, and how merges may be written."""
    content = tokenizer(learn(TEXT, 60))
    want = plain(content, TEXT)
    lists = copy.deepcopy(content)
    lists["model"]["merges"] = [m.split(" ") for m in lists["model"]["merges"]]
    tap.check("merges as lists", Tokenizer(d, folder, lists).encode(TEXT) == want)
    split = {"type": "Split", "pattern": {"Regex": r"\p{N}{1,2}| ?\p{L}+|[^\p{L}\p{N}]"}, "behavior": "Isolated"}
    level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}

    def encode(*rules, text="12345 the times, 67", **model):
        c = tokenizer(learn(TEXT, 60), pre_tokenizer={"type": "Sequence", "pretokenizers": [*rules, level]})
        c["model"].update(model)
        return Tokenizer(d, folder, c).encode(text), c
    got, c = encode(split)
    tap.check("a rule of the file's", got == plain(c, "12345 the times, 67", lambda s: [
        "12", "34", "5", " the", " times", ",", " ", "67"]))
    got, c = encode({"type": "Digits", "individual_digits": True}, split, text="12 the")
    tap.check("several rules", got == plain(c, "12 the", lambda s: ["1", "2", " the"]))
    got, c = encode({"type": "Split", "pattern": {"String": ","}, "behavior": "Isolated"}, text="the,the")
    tap.check("a text as a rule", got == plain(c, "the,the", lambda s: ["the", ",", "the"]))
    removed = {"type": "Split", "pattern": {"Regex": r"\w+"}, "behavior": "Removed", "invert": True}
    got, c = encode(removed, text="the: it")
    tap.check("what is between is dropped", got == plain(c, "", lambda s: ["the", "it"]))
    got, c = encode(ignore_merges=True, text="the", merges=[])
    tap.check("whole pieces without merges", [list(c["model"]["vocab"])[i] for i in got] in (["the"], ["t", "h", "e"])
              and (len(got) == 1) == ("the" in c["model"]["vocab"]), got)
    spaced = tokenizer(learn(TEXT, 60), pre_tokenizer={"type": "ByteLevel", "add_prefix_space": True})
    tap.check("a space in front", Tokenizer(d, folder, spaced).encode("the") == plain(spaced, " the"))


def check_refused(tap, d, folder):
    good = tokenizer(learn(TEXT, 10))

    def but(**other):
        return good | other

    def model(**other):
        return good | {"model": good["model"] | other}
    sequence = {"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": "("},
                                                      "behavior": "Isolated"}]}
    for name, part, content in (
            ("no JSON", "line 1, column", "{"), ("another model", "(BPE): Unigram", model(type="Unigram")),
            ("a normalizer", "not known: NFC", but(normalizer={"type": "NFC"})),
            ("dropout", "not known: dropout", model(dropout=0.1)),
            ("bytes as words", "not known: byte_fallback", model(byte_fallback=True)),
            ("no pre-tokenizer", "pre-tokenizer that is not known", but(pre_tokenizer=None)),
            ("another pre-tokenizer", "not known: Metaspace", but(pre_tokenizer={"type": "Metaspace"})),
            ("a pattern that is none", "pattern, character 1", but(pre_tokenizer=sequence)),
            ("no vocabulary", "vocabulary is none", model(vocab={}) | {"added_tokens": []}),
            ("two of a number", "two tokens have the number", model(vocab={"a": 0, "b": 0})),
            ("a number that is none", "makes no sense", model(vocab={"a": -1, "b": 0})),
            ("a merge of nothing", "the vocabulary has not", model(merges=["q q"])),
            ("a merge that is none", "a merge is none", model(merges=["qq"]))):
        tap.check(f"refuses: {name}", *refused(lambda: Tokenizer(d, folder, content), EFORMAT, part))
    odd = copy.deepcopy(good)
    odd["added_tokens"][0]["lstrip"] = True
    odd = Tokenizer(d, folder, odd)
    tap.check("a special token that takes spaces", odd.encode("a") and refused(
        lambda: odd.encode("a <|end|>"), EINVAL, "takes the space beside it")[0])
    few = Tokenizer(d, folder, model(vocab={"a": 0, "b": 1}, merges=[]) | {"added_tokens": []})
    tap.check("a byte without a token", *refused(lambda: few.encode("abc"), EFORMAT, "no token for the byte 99"))


def check_dataset(tap, d, folder):
    content = tokenizer(learn(TEXT, 60))
    t = Tokenizer(d, folder, content)
    (folder / "text").write_text(TEXT)
    want, path = t.encode(TEXT), str(folder / "text").encode()
    how = Text(PAIRS, 5, tokenizer=str(t.path).encode())
    data = d.made("burn_data_text", path, ctypes.byref(how))
    field = data.contents.fields[0]
    tap.check("text: windows of pairs", d.item(data, 1) == (tuple(want[5:10]), tuple(want[6:11])), d.item(data, 1))
    tap.check("text: their names", field.class_count == len(content["model"]["vocab"]) + 2
              and field.classes[want[3]].decode() == list(content["model"]["vocab"])[want[3]])
    tap.check("text: no tokenizer", *refused(
        lambda: d.made("burn_data_text", path, ctypes.byref(Text(PAIRS, 5))), EINVAL, "no tokenizer.json is given"))
    d.c.burn_data_close(data)


def main():
    tap, d = Tap(), Data(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="burncc-tokens-") as name:
        folder = pathlib.Path(name)
        lacks, why = refused(lambda: Tokenizer(d, folder, "{}"), EINVAL, "this build has no")
        for check in check_encoding, check_rules, check_refused, check_dataset:
            tap.skip(check.__name__, why[1]) if lacks else check(tap, d, folder)
    return tap.end()


sys.exit(main())
