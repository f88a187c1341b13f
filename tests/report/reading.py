"""Reading a page as a browser would, as far as the laws need it."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "img", "input", "link"}


@dataclass
class Element:
    tag: str
    attributes: dict
    parent: "Element | None" = None
    children: list = field(default_factory=list)

    def text(self):
        return "".join(c if isinstance(c, str) else c.text() for c in self.children)

    def all(self, tag):
        for child in self.children:
            if isinstance(child, Element):
                if child.tag == tag or tag == "*":
                    yield child
                yield from child.all(tag)


class Reader(HTMLParser):
    """Builds a tree and fails where a tag is not closed by its own."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.root = self.here = Element("", {})

    def handle_starttag(self, tag, attrs):
        made = Element(tag, dict(attrs), self.here)
        assert len(made.attributes) == len(attrs), f"{tag} repeats an attribute"
        self.here.children.append(made)
        if tag not in VOID:
            self.here = made

    def handle_startendtag(self, tag, attrs):
        self.here.children.append(Element(tag, dict(attrs), self.here))

    def handle_endtag(self, tag):
        assert self.here.tag == tag, f"</{tag}> closes <{self.here.tag}>"
        self.here = self.here.parent

    def handle_data(self, data):
        self.here.children.append(data)


def read(text):
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.here is reader.root, f"<{reader.here.tag}> is never closed"
    return reader.root


def rows(table):
    """The body and foot of a table, as text."""
    body = [r for part in ("tbody", "tfoot") for p in table.all(part) for r in p.all("tr")]
    return [[c.text() for c in r.children if isinstance(c, Element)] for r in body]
