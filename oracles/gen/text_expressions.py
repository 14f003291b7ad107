"""Regular expressions for text.py."""

import tensorflow as tf

from text_cases import case, random_texts, write


def main():
    texts = random_texts(10, invalid=0) + [b"abc", b"", b"a1_b22", b"2017-08-03 and 1999-12-31", b"aaa", b"a\nb\nab", b"a&&b--~~[c]",
                                           "Kſ µμ İi".encode(), b"a.b*c{2}", b"a{b}", b"x\x0b y\t\0z", b"a<b>"]
    odd = [b"a\xffb", b"\xff\xfea", b"\xc3", b"\x80ab", b"\xe2\x82 a"]
    patterns = ["b", "(b)", "x*", "b*", "", ".", "(?s).", r"\d+", r"\D", r"\w", r"\W", r"\s", r"\S", r"\b", r"\B", "[a&&b]", "[~~a]",
                "[[a]", "[]a]", "[^]a]", r"\<", r"\Q.*\E", r"\Qa", "a{b", "a{1", "a{,2}", "a{2}", "a{1,2}?", "a{2,}", "a+?", "(?P<n>a)b?",
                r"\010", r"\123", r"\x61", r"\x{e9}", r"\xe9", r"\p{Greek}", r"\pL", r"\PL", r"\p{^L}", "a$", r"a\z", r"(?m)^a", "(?m)b$",
                "(?U)a+", "[[:space:]]", "[[:^word:]]", r"\;", "(a)(b)(c)?", "a|", "^$", "(?i:B)c", "(?i)k", "(?i)s", "(?i)i", "(?i)μ",
                r"[\d-]", r"\\", "[^\\D]", r"[\D]", "(?i)(?-i)A", "a{0}", "(?:a{2}){2}", "}", "]", "(?s-m:b)", "()", r"\C", r"(?i)\w",
                r"[\pL\d]", r"[a-c-]", "[-a]", r"[\x00-\x1f]", r"(\d+)-(\d+)-(\d+)", "[é-ñ]", r"\A.", "é|ß", "[^a]", r"\v", r"\t|\n",
                r"[\w.]+", "(a|ab)(c|bcd)?", r"\pN|b"]
    bad = ["(", "[", "*", r"\8", r"\1", r"(a)\1", "a**", "a{1001}", "a{3,2}", "(?x)a", "(?<n>a)", "a(?=b)", "(?!a)", r"\Z", r"\e", r"\y", r"\X",
           "[[:foo:]]", "[a--b]", r"[b-\d]", "[z-a]", "a)", "a)(b", r"\x{110000}", r"\xg", "a\\", r"\p{Nonsense}", r"\pé", "(?P<n", "(?P=n)",
           "(?", "|*", "+", r"[\Q]\E"]
    show = r"<\0$1\\>"
    case("expression_texts", dict(strings=texts, odd=odd))
    for pattern in patterns:
        def replace(strings, rewrite, everywhere):
            return tf.raw_ops.RegexReplace(input=strings, pattern=pattern, rewrite=rewrite, replace_global=everywhere)
        case("expression", dict(
            strings_global=replace(texts, "-", True), strings_first=replace(texts, show, False),
            odd_global=replace(odd, show, True), odd_first=replace(odd, show, False),
            full=tf.raw_ops.RegexFullMatch(input=texts, pattern=pattern)), pattern=pattern)
    groups = tf.raw_ops.RegexReplace(input=texts, pattern=r"(\w)(\d)?", rewrite=r"\2<\1>", replace_global=True)
    case("groups", dict(strings=groups), pattern=r"(\w)(\d)?", rewrite=r"\2<\1>")
    for pattern in bad:
        try:
            tf.raw_ops.RegexReplace(input=["a"], pattern=pattern, rewrite="", replace_global=True)
            raise SystemExit(f"{pattern} was thought to be refused")
        except tf.errors.InvalidArgumentError:
            case("bad_expression", {}, pattern=pattern)
    write("expressions")
