"""The routes of the server, from the OpenAPI document of an application that serves the bundled models."""

import json
from typing import Any

from docs.site.text import escaped

FIRST = ("/v1/embeddings", "/search", "/documents")  # the rest follows as the server has it


def schema() -> dict[str, Any]:
    """Return the OpenAPI document of a server with both bundled models and an index in memory."""
    from munjang import BiEncoder, CrossEncoder, Index
    from munjang.server.app import create_app
    from munjang.server.embedder import Embedder
    from munjang.server.limits import AccessRules
    from munjang.server.reranker import Reranker
    from munjang.server.service import Service
    from munjang.server.views import ServedIndex

    model = BiEncoder.load()
    indexes = [ServedIndex("default", Index.open("memory:", model))]
    service = Service([Embedder("ko-en-small", model)], [Reranker("ko-en-reranker", CrossEncoder.load())], indexes)
    app: Any = create_app(service, AccessRules()).app
    found: dict[str, Any] = app.openapi()
    return found


def routes() -> str:
    """Return a section for each route: what it does, the fields of its body."""
    document = schema()
    paths = document["paths"]
    order = [*(path for path in FIRST if path in paths), *(path for path in paths if path not in FIRST)]
    sections = []
    for path in order:
        for method, route in paths[path].items():
            sections.append("\n\n".join(section(document, path, method, route)))
    return "\n\n".join(sections)


def section(document: dict[str, Any], path: str, method: str, route: dict[str, Any]) -> list[str]:
    """Return the heading, description and tables of one route."""
    parts = [f"## {method.upper()} {path}"]
    if text := route.get("description") or route.get("summary"):
        parts.append(text.strip())
    if parameters := route.get("parameters"):
        lines = ["| parameter | in | type | default |", "|---|---|---|---|"]
        for each in parameters:
            kind, default = type_of(document, each["schema"]), each["schema"].get("default")
            lines.append(f"| `{each['name']}` | {each['in']} | {kind} | {shown(default)} |")
        parts.append("\n".join(lines))
    for content in route.get("requestBody", {}).get("content", {}).values():
        if "schema" in content:  # a route of another protocol, such as MCP, describes no body
            parts += body(document, content["schema"])
    return parts


def body(document: dict[str, Any], given: dict[str, Any]) -> list[str]:
    """Return tables of the fields of a body; where several bodies are taken, one each."""
    kinds = [resolved(document, each) for each in given.get("anyOf") or given.get("oneOf") or [given]]
    parts = []
    for kind in kinds:
        fields = kind.get("properties")
        if not fields:
            continue
        if len(kinds) > 1:
            parts.append(f"**{kind.get('title', 'body')}**")
        required = kind.get("required", ())
        lines = ["| field | type | default |", "|---|---|---|"]
        for name, field in fields.items():
            default = "required" if name in required else shown(field.get("default"))
            text = f"; {escaped(field['description'])}" if field.get("description") else ""
            lines.append(f"| `{name}` | {type_of(document, field)}{text} | {default} |")
        parts.append("\n".join(lines))
    return parts


def resolved(document: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return the schema that a reference names."""
    if "$ref" in given:
        found: dict[str, Any] = document["components"]["schemas"][given["$ref"].rpartition("/")[2]]
        return found
    return given


def type_of(document: dict[str, Any], given: dict[str, Any]) -> str:
    """Return the type of a field in words."""
    if "enum" in given or "const" in given:
        return ", ".join(f"`{json.dumps(each)}`" for each in given.get("enum", [given.get("const")]))
    if several := given.get("anyOf") or given.get("oneOf"):
        return " or ".join(dict.fromkeys(type_of(document, each) for each in several))
    if "$ref" in given:
        kind = resolved(document, given)
        return type_of(document, kind) if "properties" not in kind else f"{kind.get('title', 'object')}"
    if given.get("type") == "array":
        return f"list of {type_of(document, given.get('items', {}))}"
    return str(given.get("type", "any"))


def shown(default: Any) -> str:
    """Return a default as JSON; nothing where there is none."""
    return "" if default is None else f"`{json.dumps(default, ensure_ascii=False)}`"
