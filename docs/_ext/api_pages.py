"""API pages made from ``__all__``: one page per package, every public name once."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Any

import unspool

#: In the order in which a reader meets them.
PACKAGES = [p for p in unspool._FROM[""] if p not in ("ops", "settings", "report", "reproduce")] + ["settings", "ops", "report", "reproduce"]  # fmt: skip


def public_names(package: str) -> list[str]:
    """What a package exports: its ``__all__``, or what it lists in ``__dir__``."""
    module = importlib.import_module(f"unspool.{package}")
    names = list(getattr(module, "__all__", ())) or [n for n in dir(module) if not n.startswith("_")]
    return [n for n in names if not inspect.ismodule(getattr(module, n, None))]


def homes() -> dict[str, dict[str, str]]:
    """For each package its names, and for each name the package on whose page it is described."""
    owner: dict[int, str] = {}
    found: dict[str, dict[str, str]] = {}
    for package in PACKAGES:
        module = importlib.import_module(f"unspool.{package}")
        for name in public_names(package):
            thing = getattr(module, name)
            own = getattr(thing, "__module__", "") or ""
            at_home = own.split(".")[1] if own.startswith("unspool.") else package
            where = (
                at_home
                if at_home in PACKAGES and name in public_names(at_home)
                else owner.setdefault(id(thing), package)
            )
            found.setdefault(package, {})[name] = where
    return found


def write_pages(folder: Path) -> None:
    """Write ``api/index.rst`` and a page for each package; files that have not changed are left alone."""
    folder.mkdir(exist_ok=True)
    found = homes()
    top = ["API", "===", "", "Every public name, once. ``import unspool as us``; what is listed under *at the top* is ``us.NAME`` as well.", ""]  # fmt: skip
    top += [".. toctree::", "   :hidden:", "", *(f"   {p}" for p in PACKAGES), ""]
    top += [".. list-table::", "   :widths: 25 75", ""]
    for package in PACKAGES:
        doc = inspect.getdoc(importlib.import_module(f"unspool.{package}")) or ""
        top += [f"   * - :doc:`unspool.{package} <{package}>`", f"     - {_first_sentence(doc)}"]
    top += [""]
    top += ["At the top", "----------", ""]
    for package, names in unspool._FROM.items():
        if package and package.split(".")[0] in PACKAGES:
            links = ", ".join(
                f":py:obj:`~unspool.{package.split('.')[0]}.{unspool._AT_HOME.get(n, n)}`" for n in sorted(names)
            )
            top += [f"{package.split('.')[0]}", f"   {links}", ""]
    _write(folder / "index.rst", top)
    for package in PACKAGES:
        module = importlib.import_module(f"unspool.{package}")
        title = f"unspool.{package}"
        lines = [
            title,
            "=" * len(title),
            "",
            f".. py:module:: unspool.{package}",
            "",
            *(inspect.getdoc(module) or "").splitlines(),
            "",
        ]
        lines += _summary(module, found.get(package, {}))
        for name, where in found.get(package, {}).items():
            lines += _entry(package, name, where, getattr(module, name))
        _write(folder / f"{package}.rst", lines)


def _summary(module: Any, names: dict[str, str]) -> list[str]:
    """A table of all names, each with the first sentence of its docstring: what a reader scans before reading."""
    rows: list[str] = []
    for name, where in names.items():
        thing = getattr(module, name)
        described = inspect.isclass(thing) or callable(thing) or (type(thing).__module__ or "").startswith("unspool")
        doc = (inspect.getdoc(thing) or "") if described else ""
        rows += [f"   * - :py:obj:`~unspool.{where}.{name}`", f"     - {_first_sentence(doc)}"]
    return [".. list-table::", "   :widths: 30 70", "   :class: summary", "", *rows, ""] if rows else []


def _first_sentence(doc: str) -> str:
    first = " ".join(doc.split("\n\n", maxsplit=1)[0].split())
    end = first.find(". ")
    first = first if end < 0 else first[: end + 1]
    return first.replace("|", "\\|").rstrip(":") if first and not first.startswith("..") else ""


def _entry(package: str, name: str, where: str, thing: Any) -> list[str]:
    if where != package:
        return [f"``{name}``: see :py:obj:`unspool.{where}.{name}`.", ""]
    kind = "autoclass" if inspect.isclass(thing) else "autofunction" if callable(thing) and not isinstance(thing, type) and hasattr(thing, "__code__") else "autodata"  # fmt: skip
    lines = [f".. {kind}:: unspool.{package}.{name}"]
    if kind == "autoclass":
        lines += ["   :members:"] + (["   :undoc-members:"] if hasattr(thing, "__members__") else [])
    elif kind == "autodata":
        lines += ["   :no-value:"]
    return [*lines, ""]


def _write(file: Path, lines: list[str]) -> None:
    text = "\n".join(lines) + "\n"
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        file.write_text(text, encoding="utf-8")


def resolve(app: Any, env: Any, node: Any, contnode: Any) -> Any:
    """References as the code writes them: by the name at the top, by the module of the definition, or by the bare name."""
    if node.get("refdomain") != "py":
        return None
    domain = env.get_domain("py")
    bare = node["reftarget"].rpartition(".")[2]
    tried = [f"unspool.{package}.{bare}" for package in PACKAGES]
    found = [t for t in tried if t in domain.objects]
    if len(found) >= 1 and (node["reftarget"].startswith("unspool") or "." not in node["reftarget"]):
        at = domain.objects[found[0]]
        from sphinx.util.nodes import make_refnode

        return make_refnode(app.builder, node["refdoc"], at.docname, at.node_id, contnode, found[0])
    return None


def keep_bars(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """|h| in a docstring is an absolute value, not a substitution of reStructuredText."""
    if what == "data":
        lines[:] = lines if (getattr(thing, "__module__", "") or "").startswith("unspool") else []
    in_math = False
    for place, line in enumerate(lines):
        in_math = line.lstrip().startswith(".. math::") or (in_math and (not line.strip() or line.startswith("   ")))
        if "|" in line and "`" not in line and not in_math and ">>>" not in line:
            lines[place] = line.replace("|", "\\|")


def leave_out(app: Any, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """What scikit-learn adds to an estimator is described there."""
    return True if (getattr(thing, "__module__", "") or "").startswith("sklearn") else None


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("builder-inited", lambda app: write_pages(Path(app.srcdir) / "api"))
    app.connect("missing-reference", resolve)
    app.connect("autodoc-process-docstring", keep_bars)
    app.connect("autodoc-skip-member", leave_out)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
