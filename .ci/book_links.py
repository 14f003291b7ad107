"""Links of the book and of the pages at the root of the repository.

`check`            fails on a link or an anchor that leads nowhere, in markdown files
`check SITE`       the same, and in the pages of the built site
`preprocess`       is called by mdbook: lets links to files outside of docs/ lead to the repository
`self-test`        breaks links on purpose, and fails if `check` does not find them

Addresses of other sites are not asked for: no network is needed.
"""

import html.parser
import json
import pathlib
import re
import sys
import tempfile
import tomllib
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"]
FENCE = re.compile(r"^\s*(```|~~~)")
# [text](target "title") and ![text](target); the text may hold one pair of brackets.
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(\s*<?([^\s()<>]*(?:\([^\s()]*\)[^\s()<>]*)*)>?(?:\s+\"[^\"]*\")?\s*\)")
DEFINITION = re.compile(r"^ *\[[^\]\n]+\]:\s*<?(\S+?)>?\s*$", re.MULTILINE)
HTML = re.compile(r"<(?:img|a)\b[^>]*?\s(?:src|href)=\"([^\"]+)\"")
BRANCH = "main"


def repository(root):
    manifest = tomllib.loads((root / "Cargo.toml").read_text())
    return manifest["workspace"]["package"]["repository"]


def prose(text):
    """A page with its code blanked out; everything else stays where it is."""
    lines, inside = [], False
    for line in text.split("\n"):
        fence = FENCE.match(line)
        inside = inside != bool(fence)
        code = fence or inside
        lines.append(" " * len(line) if code else re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", lambda code: " " * len(code[0]), line))
    return "\n".join(lines)


def links(text):
    """The targets of a page: (line number, target)."""
    text = prose(text)
    for link in sorted((link for form in (LINK, DEFINITION, HTML) for link in form.finditer(text)), key=lambda link: link.start()):
        yield text.count("\n", 0, link.start(1)) + 1, link[1]


def anchors(text):
    """The anchors of a page: its headings as GitHub and mdbook spell them."""
    found, inside = set(), False
    for line in text.splitlines():
        if FENCE.match(line):
            inside = not inside
        heading = None if inside else re.match(r"#{1,6}\s+(.*?)\s*#*$", line)
        if heading:
            words = LINK.sub(lambda link: link[0].split("](")[0].lstrip("!["), heading[1]).lower()
            slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
            n = 0
            while (name := f"{slug}-{n}" if n else slug) in found:
                n += 1
            found.add(name)
    return found | set(re.findall(r'(?:id|name)="([^"]+)"', text))


def is_foreign(target):
    return re.match(r"[a-z][a-z0-9+.-]*:", target) is not None


def check_markdown(root):
    complaints = []
    pages = [root / page for page in PAGES] + sorted((root / "docs").rglob("*.md"))
    known = {page: anchors(page.read_text()) for page in pages}
    own = repository(root) + "/blob/"
    for page in pages:
        for number, target in links(page.read_text()):
            where = f"{page.relative_to(root)}:{number}"
            if target.startswith(own):
                path = target.removeprefix(own).partition("/")[2].partition("#")[0]
                if not (root / path).exists():
                    complaints.append(f"{where}: `{target}`: the repository has no {path}")
                continue
            if is_foreign(target):
                continue
            path, _, anchor = urllib.parse.unquote(target).partition("#")
            file = (page.parent / path).resolve() if path else page
            if not file.exists() or not file.is_relative_to(root):
                complaints.append(f"{where}: `{target}`: there is no such file")
            elif anchor and file.suffix == ".md" and anchor not in known.setdefault(file, anchors(file.read_text())):
                complaints.append(f"{where}: `{target}`: no heading of {file.relative_to(root)} has this anchor")
    return complaints + check_summary(root)


def check_summary(root):
    """Every chapter is in the summary once, and tests know every chapter with a program that is not ignored."""
    docs = root / "docs"
    listed = [target for _, target in links((docs / "SUMMARY.md").read_text())]
    # The chapter of the server is tested by its own crate, which the main crate does not use.
    crates = [root / f"crates/{name}/src/lib.rs" for name in ("estimand", "serve")]
    tested = "".join(path.read_text() for path in crates if path.exists())
    complaints = []
    for page in sorted(docs.rglob("*.md")):
        name = str(page.relative_to(docs))
        if name != "SUMMARY.md" and listed.count(name) != 1:
            complaints.append(f"docs/SUMMARY.md: {name} is listed {listed.count(name)} times, expected once")
        if re.search(r"^```rust(?!,ignore)", page.read_text(), re.MULTILINE) and f'/docs/{name}"' not in tested:
            complaints.append(f"docs/{name}: its programs are not in `book` of crates/estimand/src/lib.rs")
    return complaints


class SitePage(html.parser.HTMLParser):
    """The anchors and targets of a page of the site."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.targets = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if value and (name == "id" or (name == "name" and tag == "a")):
                self.anchors.add(value)
            if value and ((name == "href" and tag in ("a", "link")) or (name == "src" and tag in ("img", "script"))):
                self.targets.append((self.getpos()[0], value))


def check_site(site, root):
    complaints = []
    pages = {path: SitePage(path.read_text()) for path in sorted(site.rglob("*.html"))}
    if not pages:
        return [f"{site}: no pages"]
    own = repository(root) + "/"
    for path, page in pages.items():
        # 404.html is served from any address, so its own are absolute. The contents stand in a frame.
        if path.name in ("404.html", "toc.html"):
            continue
        for number, target in page.targets:
            where = f"{path.relative_to(site)}:{number}"
            if target.startswith(own):
                kind, _, rest = target.removeprefix(own).partition("/")
                file = rest.partition("/")[2].partition("#")[0]
                if kind in ("blob", "tree") and not (root / file).exists():
                    complaints.append(f"{where}: `{target}`: the repository has no {file}")
                continue
            if is_foreign(target):
                continue
            name, _, anchor = urllib.parse.unquote(target).partition("#")
            file = (path.parent / name).resolve() if name else path
            file = file / "index.html" if file.is_dir() else file
            if not file.is_file() or not file.is_relative_to(site):
                complaints.append(f"{where}: `{target}` is not in the site")
            elif anchor and file in pages and anchor not in pages[file].anchors:
                complaints.append(f"{where}: `{target}`: {file.relative_to(site)} has no such anchor")
    return complaints


def rewritten(text, chapter, root, address):
    """A chapter whose links to files outside of docs/ lead to the repository, and whose links to README.md to its page."""
    docs = root / "docs"

    for link in reversed(list(LINK.finditer(prose(text)))):
        target = link[1]
        path, hash_, anchor = target.partition("#")
        file = (chapter.parent / path).resolve()
        if not path or is_foreign(target) or not file.is_relative_to(root):
            continue
        if not (file.is_relative_to(docs) and file.is_file()):
            kind = "tree" if file.is_dir() else "blob"
            path = f"{address}/{kind}/{BRANCH}/{file.relative_to(root).as_posix()}"
        elif file.name == "README.md":
            path = path.removesuffix("README.md") + "index.md"  # as mdbook names the page
        text = text[: link.start(1)] + path + hash_ + anchor + text[link.end(1) :]
    return text


def preprocess():
    context, book = json.load(sys.stdin)
    root = pathlib.Path(context["root"]).resolve()
    address = repository(root)
    waiting = list(book.get("items") or book.get("sections"))
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict) and "Chapter" in item:
            chapter = item["Chapter"]
            waiting += chapter["sub_items"]
            if chapter.get("source_path") or chapter.get("path"):
                source = root / "docs" / (chapter.get("source_path") or chapter["path"])
                chapter["content"] = rewritten(chapter["content"], source, root, address)
    json.dump(book, sys.stdout)


def self_test():
    """A small repository with one mistake of each kind."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve()
        files = {
            "Cargo.toml": '[workspace.package]\nrepository = "https://example.org/r"\n',
            "README.md": "[a](docs/a.md#one-two) [gone\nfar](docs/gone.md)\n`[code](nowhere.md)`\n```\n[code](nowhere.md)\n```\n",
            "ARCHITECTURE.md": "[bad](docs/a.md#three)\n",
            "CONTRIBUTING.md": "[own](https://example.org/r/blob/main/gone.rs)\n",
            "CHANGELOG.md": '[x]: docs/b.md\n<img alt="x" src="y.png">\n',
            "docs/SUMMARY.md": "- [A](a.md)\n",
            "docs/a.md": "# One, two\n[up](../Cargo.toml) ![no](no.png)\n```rust\n```\n",
            "crates/estimand/src/lib.rs": "",
        }
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        (root / "docs/b.md").write_text("# B\n```rust,ignore\n```\n")
        expected = [
            "README.md:2: `docs/gone.md`: there is no such file",
            "ARCHITECTURE.md:1: `docs/a.md#three`: no heading of docs/a.md has this anchor",
            "CONTRIBUTING.md:1: `https://example.org/r/blob/main/gone.rs`: the repository has no gone.rs",
            "CHANGELOG.md:2: `y.png`: there is no such file",
            "docs/a.md:2: `no.png`: there is no such file",
            "docs/a.md: its programs are not in `book` of crates/estimand/src/lib.rs",
            "docs/SUMMARY.md: b.md is listed 0 times, expected once",
        ]
        found = check_markdown(root)
        assert found == expected, "\n".join(found)
        (root / "docs/README.md").write_text("# Start\n")
        text = "[x](../Cargo.toml#a) [y](b.md) `[z](../q)` [s](README.md#start)"
        text = rewritten(text, root / "docs/a.md", root, "https://example.org/r")
        expected = "[x](https://example.org/r/blob/main/Cargo.toml#a) [y](b.md) `[z](../q)` [s](index.md#start)"
        assert text == expected, text

        site = root / "site"
        site.mkdir()
        (site / "a.html").write_text('<h1 id="one">1</h1><a href="#one">1</a><a href="#two">2</a><a href="b.html">b</a>')
        found = check_site(site, root)
        assert found == ["a.html:1: `#two`: a.html has no such anchor", "a.html:1: `b.html` is not in the site"], found


def main():
    match sys.argv[1:]:
        case ["preprocess", "supports", _]:
            return 0
        case ["preprocess"]:
            preprocess()
            return 0
        case ["self-test"]:
            self_test()
            return 0
        case ["check"]:
            complaints = check_markdown(ROOT)
        case ["check", site]:
            complaints = check_markdown(ROOT) + check_site(pathlib.Path(site).resolve(), ROOT)
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    print("\n".join(complaints) if complaints else "all links lead somewhere")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
